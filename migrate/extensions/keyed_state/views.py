"""Keyed state as flat tables that many processes can read, for the Spark data source.

``open_table`` reads the checkpoint's metadata once, in one process. Other processes then read only
chunks of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from decoder.keyed_state import KeyedState, KeyedStates, Part, StateKind, read_keyed_states
from decoder.keyed_state.key_groups import key_group_of
from decoder.keyed_state.types import Kind, Scalar
from migrate.extensions.keyed_state.listing import StateRow, state_row
from migrate.extensions.keyed_state.select import choose_state, states_of_operator
from migrate.extensions.keyed_state.type_mapping import JSON, columns
from migrate.model.column_types import BIGINT, BOOLEAN, INT, STRING, Column, ColumnType
from migrate.model.errors import UsageError
from migrate.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa

# The target size of a chunk, in bytes. A chunk of this size has a few million entries and takes a
# few seconds to read.
_CHUNK_BYTES = 16 * 1024 * 1024

# The value of the ``key`` option, which selects one key's entries.
Key = str | int
_KEY_BITS = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")


class StateView(str, Enum):
    """The tables, named after the content of their rows."""

    ENTRIES = "entries"  # the entries of one state
    STATES = "states"  # the states, as listed by `migrate state`
    TIMERS = "timers"  # all pending timers


@dataclass(frozen=True, slots=True)
class StateOptions:
    """The options of the data source; only the ``entries`` view allows ``state`` and ``key``.

    With ``truncate_keys``, nanoseconds in keys are truncated. Otherwise, nanoseconds in keys are an
    error.
    """

    view: StateView = StateView.ENTRIES
    operator: str | None = None
    state: str | None = None
    allow_external_files: bool = False
    key: str | None = None
    truncate_keys: bool = False


_NAMES = ("operator", "state", "view", "key", "allowExternalFiles", "truncateKeys")


def parse_state_options(options: Mapping[str, str]) -> StateOptions:
    """Parse the Spark options, except the path; the case of names does not matter.

    Raises:
        UsageError: an option or value is invalid, ``state`` is missing, or the view does not allow
            an option.
    """
    values = {name.lower(): value for name, value in options.items()}
    unknown = sorted(values.keys() - {name.lower() for name in _NAMES})
    if unknown:
        raise UsageError(f"unknown option {unknown[0]}; the options are {', '.join(_NAMES)}")
    name = values.get("view", StateView.ENTRIES.value).lower()
    known = [view.value for view in StateView]
    if name not in known:
        raise UsageError(f"view is {name!r}, but must be one of {', '.join(known)}")
    view, state = StateView(name), values.get("state")
    if view is StateView.ENTRIES and state is None:
        raise UsageError("the option `state` is required; view=states lists the states")
    for option in ("state", "key"):
        if view is not StateView.ENTRIES and option in values:
            raise UsageError(f"option {option} requires view=entries, but view is {name}")
    external, truncate = (_flag(values, name) for name in ("allowExternalFiles", "truncateKeys"))
    return StateOptions(view, values.get("operator"), state, external, values.get("key"), truncate)


def _flag(values: Mapping[str, str], name: str) -> bool:
    value = values.get(name.lower(), "false").lower()
    if value not in ("true", "false"):
        raise UsageError(f"{name} is {value!r}, but must be true or false")
    return value == "true"


@dataclass(frozen=True, slots=True)
class Slice:
    """A range of key groups in one subtask's part of a state.

    Attributes:
        state: the state, without its parts.
        size: the approximate number of bytes to read.
    """

    state: KeyedState
    part: Part
    key_groups: range
    size: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table, or a chunk of a table that one task reads.

    Attributes:
        slices: the slices that contain the rows; empty for view=states.
        states: the rows of view=states; empty for the other views.
        key: the only key to read; None for all keys.
        state: for view=entries, the state without its parts; None in a chunk.
        pointer: for view=entries, the checkpoint, as the user specified it.
        allow_external_files: as in ``StateOptions``.
        truncate_keys: as in ``StateOptions``.
    """

    columns: tuple[Column, ...]
    slices: tuple[Slice, ...] = ()
    states: tuple[StateRow, ...] = ()
    key: Key | None = None
    state: KeyedState | None = None
    pointer: str = ""
    allow_external_files: bool = False
    truncate_keys: bool = False

    def split(self) -> list[Table]:
        """Split the table into one chunk per task."""
        packed: list[list[Slice]] = []
        bytes_left = 0
        for slice_ in self.slices:
            if not packed or slice_.size > bytes_left:
                packed.append([])
                bytes_left = _CHUNK_BYTES
            packed[-1].append(slice_)
            bytes_left -= slice_.size
        # Return at least one chunk, because Spark adds a partition if a data source returns none.
        # The reader would then get an argument that depends on the Spark version.
        return [replace(self, slices=tuple(slices), state=None) for slices in packed or [[]]]


def open_table(chk: str, options: StateOptions) -> Table:
    """Return the table that the options select.

    Raises:
        DecodeError: the checkpoint or a state of the table cannot be read.
        UsageError: no operator or state has the name in the options, ``key`` does not match the
            type of the state's keys, or an extra is missing.
        Refused: several operators have a state with this name.
    """
    keyed = read_keyed_states(chk, Files(), allow_external_files=options.allow_external_files)
    match options.view:
        case StateView.ENTRIES:
            assert options.state is not None
            state = choose_state(keyed, options.operator, options.state)
            state.check_readable()
            key = None if options.key is None else _key(state, options.key)
            slices = tuple(_slices(state, key))
            return Table(
                columns(state, truncate_keys=options.truncate_keys),
                slices,
                key=key,
                state=replace(state, parts=()),
                pointer=chk,
                allow_external_files=options.allow_external_files,
                truncate_keys=options.truncate_keys,
            )
        case StateView.STATES:
            states = states_of_operator(keyed, options.operator).states
            return Table(_LISTED, states=tuple(map(state_row, states)))
        case StateView.TIMERS:
            return _timer_table(states_of_operator(keyed, options.operator), options.truncate_keys)


def _key(state: KeyedState, text: str) -> Key:
    """Parse the ``key`` option."""
    match state.key:
        case Scalar(Kind.STRING, mutable=False):
            return text
        case Scalar(kind, mutable=False) if kind in _KEY_BITS:
            bound = 1 << _KEY_BITS[kind] - 1
            if _WHOLE_NUMBER.fullmatch(text) and -bound <= int(text) < bound:
                return int(text)
            raise UsageError(
                f"key {text!r} is not a valid {kind.name}, but the keys of state "
                f"{state.name!r} have this type; pass a key of this type"
            )
        case _:
            raise UsageError(
                "the option `key` supports only keys of the Java types String, Byte, Short, "
                f"Integer, and Long, but the keys of state {state.name!r} have a different type; "
                "filter the rows with where() instead"
            )


def _slices(state: KeyedState, key: Key | None = None) -> Iterator[Slice]:
    """Yield slices of all key groups, or only the key group of ``key`` if it can be computed."""
    state_only = replace(state, parts=())
    compute_key_group = key_group_of(state.key, state.max_parallelism)
    only = None
    if key is not None and compute_key_group is not None:
        only = compute_key_group(b"", 0, key)
    for part in state.parts:
        for key_groups, size in part.key_group_ranges(_CHUNK_BYTES):
            if only is None:
                yield Slice(state_only, part, key_groups, size)
            elif only in key_groups:
                yield Slice(state_only, part, range(only, only + 1), size)


def read_chunk(chunk: Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk.

    Raises:
        DecodeError: as in ``Part.batches``.
        DoesNotFit: a value does not fit into its column.
    """
    import pyarrow.compute as pc

    from migrate.extensions.keyed_state.arrow import batch_of_rows, part_batches

    if chunk.states:
        yield batch_of_rows(chunk.columns, chunk.states)
    for slice_ in chunk.slices:
        state = slice_.state
        constants = {
            "operator_id": state.operator_id,
            "uid": state.uid,
            "name": state.operator_name,
            "state": state.name,
        }
        for batch in part_batches(state, slice_.part, slice_.key_groups, chunk.columns, constants):
            if chunk.key is None:
                yield batch
            else:
                yield batch.filter(pc.equal(batch.column("key"), chunk.key))


_LISTED = tuple(
    Column(name, BOOLEAN if name in ("ttl", "readable") else STRING) for name in StateRow._fields
)


def _timer_table(keyed: KeyedStates, truncate_keys: bool) -> Table:
    """Return the table of all timers.

    The ``key`` (or ``namespace``) column contains JSON if its type differs between states.
    """
    for unread in keyed.unread:
        raise unread.error
    states = [state for state in keyed.states if state.kind is StateKind.TIMERS]
    types: dict[str, list[ColumnType]] = {"key": [], "namespace": []}
    for state in states:
        state.check_readable()
        for column in columns(state, truncate_keys=truncate_keys):
            if column.name in types:
                types[column.name].append(column.type)
    table_columns = (
        *(Column(name, STRING) for name in ("operator_id", "uid", "name", "state")),
        Column("key_group", INT),
        *(Column(name, _common_type(column_types)) for name, column_types in types.items()),
        Column("value", BIGINT),
    )
    slices = tuple(slice_ for state in states for slice_ in _slices(state))
    return Table(table_columns, slices)


def _common_type(types: Sequence[ColumnType]) -> ColumnType:
    if not types:
        return STRING
    return types[0] if all(type_ == types[0] for type_ in types) else JSON
