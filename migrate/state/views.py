"""Keyed state as flat tables that many processes read: what Spark's data source stands on.

``open_table`` looks at what there is, once. Its shares are read elsewhere: each by what it holds,
without another look at the checkpoint's metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from decoder.keyed_state import KeyedState, KeyedStates, Part, StateKind, read_keyed_states
from migrate.errors import UsageError
from migrate.state.choose_state import choose_state, of_operator
from migrate.state.columns import BIGINT, BOOLEAN, INT, JSON, STRING, Column, ColumnType, columns
from migrate.state.listing import StateRow, state_row
from migrate.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa

# What a task reads at most, where it can be cut: some million entries, and some seconds of work.
_SHARE_BYTES = 16 * 1024 * 1024


class View(str, Enum):
    """The tables: what a row is about."""

    ENTRIES = "entries"  # of one state
    STATES = "states"  # as `migrate state` lists them
    TIMERS = "timers"  # all pending timers


class BadStateOption(UsageError):
    """An option that is not known, not of the known values, or missing."""


@dataclass(frozen=True, slots=True)
class StateOptions:
    """What is to be read; ``state`` is of the entries alone."""

    view: View = View.ENTRIES
    operator: str | None = None
    state: str | None = None
    allow_external_files: bool = False


_NAMES = ("operator", "state", "view", "allowExternalFiles")


def parse_state_options(options: Mapping[str, str]) -> StateOptions:
    """Spark's options, whose names it takes in any case, without the path.

    Raises:
        BadStateOption: an unknown name or value; the message names the known ones.
    """
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(given.keys() - {name.lower() for name in _NAMES})
    if unknown:
        raise BadStateOption(f"no such option: {unknown[0]}; there are: {', '.join(_NAMES)}")
    named = given.get("view", View.ENTRIES.value).lower()
    if named not in [view.value for view in View]:
        known = ", ".join(view.value for view in View)
        raise BadStateOption(f"view = {named!r}: not one of {known}")
    view, state = View(named), given.get("state")
    if view is View.ENTRIES and state is None:
        raise BadStateOption("no state: option state names it, and view=states lists them")
    if view is not View.ENTRIES and state is not None:
        raise BadStateOption(f"option state is of view=entries, not of view={named}")
    return StateOptions(view, given.get("operator"), state, _flag("allowExternalFiles", given))


def _flag(name: str, given: Mapping[str, str]) -> bool:
    value = given.get(name.lower(), "false").lower()
    if value not in ("true", "false"):
        raise BadStateOption(f"{name} = {value!r}: not one of true, false")
    return value == "true"


@dataclass(frozen=True, slots=True)
class Slice:
    """Some key groups of what a subtask holds of a state.

    Attributes:
        state: the state, without its parts.
        part: where the key groups are.
        key_groups: which.
        size: about how many bytes that takes to read.
    """

    state: KeyedState
    part: Part
    key_groups: range
    size: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table to be read.

    Attributes:
        view: which.
        columns: its columns; they are all that is needed to read a share.
        slices: where its rows are; of view=states none.
        states: of view=states, its rows.
    """

    view: View
    columns: tuple[Column, ...]
    slices: tuple[Slice, ...] = ()
    states: tuple[StateRow, ...] = ()

    def shares(self) -> list[Share]:
        """Work for a task each: some slices, or some rows."""
        if self.view is View.STATES:
            return [Share(self.view, self.columns, (), self.states)]
        packed: list[list[Slice]] = []
        room = 0
        for one in self.slices:
            if not packed or one.size > room:
                packed.append([])
                room = _SHARE_BYTES
            packed[-1].append(one)
            room -= one.size
        # Of no partition Spark makes one of its own, in ways that differ by its version.
        return [Share(self.view, self.columns, tuple(some)) for some in packed or [[]]]


@dataclass(frozen=True, slots=True)
class Share:
    """What one task reads of a table."""

    view: View
    columns: tuple[Column, ...]
    slices: tuple[Slice, ...]
    states: tuple[StateRow, ...] = ()


def open_table(chk: str, options: StateOptions) -> Table:
    """Look at what there is.

    Raises:
        DecodeError: the checkpoint, or a state that is asked for, cannot be read.
        UsageError: no such operator or state, or an extra is missing.
        Refused: several operators have such a state.
    """
    found = read_keyed_states(chk, Files(), allow_external_files=options.allow_external_files)
    match options.view:
        case View.ENTRIES:
            assert options.state is not None
            state = choose_state(found, options.operator, options.state)
            state.check_readable()
            return Table(options.view, columns(state), tuple(_slices(state)))
        case View.STATES:
            states = of_operator(found, options.operator).states
            return Table(options.view, _LISTED, states=tuple(map(state_row, states)))
        case View.TIMERS:
            return _timers(of_operator(found, options.operator))


def _slices(state: KeyedState) -> Iterator[Slice]:
    alone = replace(state, parts=())
    for part in state.parts:
        for key_groups, size in part.shares(_SHARE_BYTES):
            yield Slice(alone, part, key_groups, size)


def read_share(share: Share) -> Iterator[pa.RecordBatch]:
    """The rows of a share.

    Raises:
        DecodeError: as for ``Part.batches``.
        DoesNotFit: a value has no place in its column.
    """
    from migrate.state.arrow import batch_of_rows, part_batches

    if share.states:
        yield batch_of_rows(share.columns, share.states)
    for one in share.slices:
        yield from part_batches(one.state, one.part, one.key_groups, share.columns, _CONSTANTS)


# -- view=states ---------------------------------------------------------------------------------

_LISTED = tuple(
    Column(name, BOOLEAN if name in ("ttl", "readable") else STRING) for name in StateRow._fields
)


# -- view=timers ---------------------------------------------------------------------------------


def _timers(found: KeyedStates) -> Table:
    """The timers of all operators, or of one. Where their keys, or their namespaces, are not all of
    one type, the column is their JSON."""
    for one in found.unread:
        raise one.error
    states = [state for state in found.states if state.kind is StateKind.TIMERS]
    for state in states:
        state.check_readable()
    types: dict[str, list[ColumnType]] = {"key": [], "namespace": []}
    for state in states:
        for column in columns(state):
            if column.name in types:
                types[column.name].append(column.type)
    made = [
        *(Column(name, STRING) for name in _CONSTANTS),
        Column("key_group", INT),
        *(Column(name, _common(some)) for name, some in types.items()),
        Column("value", BIGINT),
    ]
    slices = tuple(one for state in states for one in _slices(state))
    return Table(View.TIMERS, tuple(made), slices)


def _common(types: Sequence[ColumnType]) -> ColumnType:
    if not types:
        return STRING
    return types[0] if all(one == types[0] for one in types) else JSON


# What is alike in all rows of a state.
_CONSTANTS: Mapping[str, Callable[[KeyedState], Any]] = {
    "operator_id": lambda state: state.operator_id,
    "uid": lambda state: state.uid,
    "name": lambda state: state.operator_name,
    "state": lambda state: state.name,
}
