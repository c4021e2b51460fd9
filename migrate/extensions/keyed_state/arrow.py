"""Entries of a keyed state as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from decoder.keyed_state import Entry, KeyedState, Part
from migrate.extensions.keyed_state.type_mapping import columns
from migrate.model.column_types import Column, arrow_array, arrow_schema
from migrate.model.errors import InputError, UsageError
from migrate.model.wording import install_command

if TYPE_CHECKING:
    import pyarrow as pa

    from migrate.extensions.keyed_state.kernel.read import FastReader

_NO_CONSTANTS: Mapping[str, object] = MappingProxyType({})
# The approximate limits on the number of rows and the number of bytes in a batch.
_ROWS = 8192
_BYTES = 16 * 1024 * 1024


class DoesNotFit(InputError):
    """A value that does not fit into its column.

    Examples are a timestamp whose microseconds need more than 64 bits, and a null as a map key.
    """


def check_arrow() -> None:
    """Raise UsageError if pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise UsageError(f"Arrow batches require pyarrow: {install_command('parquet')}")


def record_batches(state: KeyedState, *, truncate_keys: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield all entries of a state; if the state has no entries, yield one batch without rows.

    Args:
        state: the state.
        truncate_keys: True to truncate nanoseconds in keys, namespaces, and map keys.

    Raises:
        DecodeError: as in ``KeyedState.entries``.
        DoesNotFit: a value does not fit into its column.
    """
    import pyarrow as pa

    selected = columns(state, truncate_keys=truncate_keys)

    state.check_readable()
    empty = True
    for part in state.parts:
        for batch in part_batches(state, part, part.key_groups, selected):
            empty = False
            yield batch
    if empty:
        yield pa.RecordBatch.from_pylist([], schema=arrow_schema(selected))


def part_batches(
    state: KeyedState,
    part: Part,
    key_groups: Iterable[int],
    selected: Sequence[Column] | None = None,
    constants: Mapping[str, object] = _NO_CONSTANTS,
) -> Iterator[pa.RecordBatch]:
    """Yield the entries of some key groups of a part, in batches.

    Args:
        state: the state.
        part: the part of the state that one subtask wrote.
        key_groups: the numbers of the key groups.
        selected: the columns of the batches; None for all columns of the state.
        constants: the values of the columns that are not part of an entry, such as ``uid``, by the
            column's name. Every row contains the same value.

    Raises:
        DecodeError, DoesNotFit: as in ``record_batches``.
    """
    if selected is None:
        selected = columns(state)
    fast = _fast_reader(state, part, selected, constants)
    if fast is not None:
        yield from fast.batches(key_groups)
    else:
        yield from plain_batches(state, part, key_groups, selected, constants)


def _fast_reader(
    state: KeyedState, part: Part, selected: Sequence[Column], constants: Mapping[str, object]
) -> FastReader | None:
    """Return the compiled reader; None if it cannot read a type or column, or numba is missing."""
    exact, truncated = columns(state), columns(state, truncate_keys=True)
    if find_spec("numba") is None or any(
        column.name not in constants and column not in exact and column not in truncated
        for column in selected
    ):
        return None
    # In these columns, a timestamp with nanoseconds is refused. In other columns, it is truncated.
    exact_names = {column.name for column in selected if column not in truncated}
    from migrate.extensions.keyed_state.kernel.program import CannotCompile
    from migrate.extensions.keyed_state.kernel.read import FastReader

    def plain(key_group: int, skip: int) -> Iterator[pa.RecordBatch]:
        return plain_batches(state, part, [key_group], selected, constants, skip)

    try:
        return FastReader(state, part, arrow_schema(selected), constants, plain, exact_names)
    except CannotCompile:
        return None


def plain_batches(
    state: KeyedState,
    part: Part,
    key_groups: Iterable[int],
    selected: Sequence[Column],
    constants: Mapping[str, object] = _NO_CONSTANTS,
    skip: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Yield entries like ``part_batches``, but in pure Python; omit the first ``skip`` entries."""
    entries: list[Entry] = []
    rows = 1  # the number of rows in the next batch, estimated from the size of the last batch
    for batch_of_entries in part.batches(key_groups):
        entries += batch_of_entries[skip:]
        skip = max(0, skip - len(batch_of_entries))
        if len(entries) >= rows:
            batch = _batch_of(state, selected, entries, constants)
            rows = max(1, min(_ROWS, _BYTES * len(entries) // max(1, batch.nbytes)))
            yield batch
            entries = []
    if entries:
        yield _batch_of(state, selected, entries, constants)


def _batch_of(
    state: KeyedState,
    columns: Sequence[Column],
    entries: Sequence[Entry],
    constants: Mapping[str, object],
) -> pa.RecordBatch:
    by_name = Entry._make(zip(*entries, strict=True))._asdict()
    for name, constant in constants.items():
        by_name[name] = (constant,) * len(entries)
    try:
        return _batch(columns, [by_name[column.name] for column in columns])
    except DoesNotFit as error:
        raise DoesNotFit(f"state {state.name!r}: {error}") from error


def batch_of_rows(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> pa.RecordBatch:
    """Return one batch with these columns and rows."""
    return _batch(columns, list(zip(*rows, strict=True)))


def _batch(columns: Sequence[Column], by_column: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    import pyarrow as pa

    arrays = []
    for column, values in zip(columns, by_column, strict=True):
        try:
            arrays.append(arrow_array(column, values))
        except (pa.ArrowException, OverflowError, ValueError) as error:
            raise DoesNotFit(
                f"a value does not fit into column {column.name} {column.type.ddl}: {error}; "
                "`migrate state` prints it as JSON"
            ) from error
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))
