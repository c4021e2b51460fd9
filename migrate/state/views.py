"""Keyed state as flat tables that many processes read: what Spark's data source stands on.

``open_table`` looks at what there is, once. Its shares are read elsewhere: each by what it holds,
without another look at the checkpoint's metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from decoder.keyed_state import KeyedState, KeyedStates, Part, StateKind, read_keyed_states
from decoder.keyed_state.key_groups import key_group_of
from decoder.keyed_state.types import Kind, Scalar
from migrate.model.errors import UsageError
from migrate.state.columns import BIGINT, BOOLEAN, INT, JSON, STRING, Column, ColumnType, columns
from migrate.state.listing import StateRow, state_row
from migrate.state.select import choose_state, of_operator
from migrate.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa

# What a task reads at most, where it can be cut: some million entries, and some seconds of work.
_SHARE_BYTES = 16 * 1024 * 1024

# A key that may be asked for by itself.
Key = str | int
_KEY_BITS = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")


class View(str, Enum):
    """The tables: what a row is about."""

    ENTRIES = "entries"  # of one state
    STATES = "states"  # as `migrate state` lists them
    TIMERS = "timers"  # all pending timers


class BadStateOption(UsageError):
    """An option that is not known, not of the known values, or missing."""


@dataclass(frozen=True, slots=True)
class StateOptions:
    """What is to be read; ``state``, and the one ``key`` of it, are of the entries alone."""

    view: View = View.ENTRIES
    operator: str | None = None
    state: str | None = None
    allow_external_files: bool = False
    key: str | None = None


_NAMES = ("operator", "state", "view", "key", "allowExternalFiles")


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
    for name in ("state", "key"):
        if view is not View.ENTRIES and name in given:
            raise BadStateOption(f"option {name} is of view=entries, not of view={named}")
    external = _flag("allowExternalFiles", given)
    return StateOptions(view, given.get("operator"), state, external, given.get("key"))


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
        key: the only one that is asked for; None: all.
        state: of view=entries, whose they are, without its parts.
        pointer, allow_external_files: the checkpoint, as it was asked for.
    """

    view: View
    columns: tuple[Column, ...]
    slices: tuple[Slice, ...] = ()
    states: tuple[StateRow, ...] = ()
    key: Key | None = None
    state: KeyedState | None = None
    pointer: str = ""
    allow_external_files: bool = False

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
        return [
            Share(self.view, self.columns, tuple(some), key=self.key) for some in packed or [[]]
        ]


@dataclass(frozen=True, slots=True)
class Share:
    """What one task reads of a table."""

    view: View
    columns: tuple[Column, ...]
    slices: tuple[Slice, ...]
    states: tuple[StateRow, ...] = ()
    key: Key | None = None


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
            key = None if options.key is None else _key(state, options.key)
            slices = tuple(_slices(state, None if key is None else _key_group(state, key)))
            return Table(
                options.view,
                columns(state),
                slices,
                key=key,
                state=replace(state, parts=()),
                pointer=chk,
                allow_external_files=options.allow_external_files,
            )
        case View.STATES:
            states = of_operator(found, options.operator).states
            return Table(options.view, _LISTED, states=tuple(map(state_row, states)))
        case View.TIMERS:
            return _timers(of_operator(found, options.operator))


def _key(state: KeyedState, told: str) -> Key:
    match state.key:
        case Scalar(Kind.STRING, mutable=False):
            return told
        case Scalar(kind, mutable=False) if kind in _KEY_BITS:
            bound = 1 << _KEY_BITS[kind] - 1
            if _WHOLE_NUMBER.fullmatch(told) and -bound <= int(told) < bound:
                return int(told)
            raise BadStateOption(
                f"key = {told!r}: the keys of state {state.name!r} are {kind.name}"
            )
        case _:
            raise BadStateOption(
                f"option key is of keys that are text or whole numbers; those of state "
                f"{state.name!r} are neither: choose of them by where()"
            )


def _key_group(state: KeyedState, key: Key) -> int | None:
    """None where it could lie in any."""
    key_group = key_group_of(state.key, state.max_parallelism)
    return None if key_group is None else key_group(b"", 0, key)


def _slices(state: KeyedState, only: int | None = None) -> Iterator[Slice]:
    """Those of all key groups, or of one."""
    alone = replace(state, parts=())
    for part in state.parts:
        for key_groups, size in part.shares(_SHARE_BYTES):
            if only is None:
                yield Slice(alone, part, key_groups, size)
            elif only in key_groups:
                yield Slice(alone, part, range(only, only + 1), size)


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
        batches = part_batches(one.state, one.part, one.key_groups, share.columns, _CONSTANTS)
        yield from batches if share.key is None else _of_key(batches, share.key)


def _of_key(batches: Iterable[pa.RecordBatch], key: Key) -> Iterator[pa.RecordBatch]:
    import pyarrow.compute as pc

    for batch in batches:
        yield batch.filter(pc.equal(batch.column("key"), key))


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
