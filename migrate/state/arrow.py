"""Entries of a keyed state as batches of Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from decoder.keyed_state import Entry, KeyedState, Part
from migrate.model.errors import InputError, UsageError
from migrate.model.wording import install_command
from migrate.state.columns import (
    ArrayOf,
    Column,
    ColumnType,
    DecimalOf,
    Leaf,
    MapOf,
    PairsOf,
    StructOf,
    columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from migrate.state.kernel.read import FastReader

# Of a batch, about: rows, and bytes.
_ROWS = 8192
_BYTES = 16 * 1024 * 1024


class MissingArrow(UsageError):
    """pyarrow is not installed."""


class DoesNotFit(InputError):
    """A value has no place in its column: a timestamp beyond 64 bits of microseconds, a null as the
    key of a map."""


def check_arrow() -> None:
    """Raise MissingArrow where pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise MissingArrow(f"a state in Arrow batches needs pyarrow: {install_command('parquet')}")


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """The schema of batches of these columns."""
    import pyarrow as pa

    return pa.schema([(column.name, arrow_type(column.type)) for column in columns])


def arrow_type(type_: ColumnType) -> pa.DataType:
    import pyarrow as pa

    match type_:
        case Leaf(ddl):
            return _leaves()[ddl]
        case DecimalOf(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayOf(element):
            return pa.list_(arrow_type(element))
        case MapOf(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case PairsOf(key, value):
            return arrow_type(ArrayOf(StructOf((("key", key), ("value", value)))))
        case StructOf(fields):
            return pa.struct([(name, arrow_type(part)) for name, part in fields])


def _leaves() -> dict[str, pa.DataType]:
    import pyarrow as pa

    return {
        "BOOLEAN": pa.bool_(),
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "STRING": pa.string(),
        "BINARY": pa.binary(),
        "VOID": pa.null(),
        "DATE": pa.date32(),
        # The one unit that Spark takes.
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
        "TIMESTAMP_NTZ": pa.timestamp("us"),
    }


def record_batches(state: KeyedState) -> Iterator[pa.RecordBatch]:
    """All entries of a state; of one without entries a batch without rows.

    Raises:
        DecodeError: as for ``KeyedState.entries``.
        DoesNotFit: a value has no place in its column.
    """
    import pyarrow as pa

    state.check_readable()
    empty = True
    for part in state.parts:
        for batch in part_batches(state, part, None):
            empty = False
            yield batch
    if empty:
        yield pa.RecordBatch.from_pylist([], schema=arrow_schema(columns(state)))


def part_batches(
    state: KeyedState,
    part: Part,
    key_groups: Iterable[int] | None,
    made: Sequence[Column] | None = None,
    constants: Mapping[str, Callable[[KeyedState], Any]] = MappingProxyType({}),
) -> Iterator[pa.RecordBatch]:
    """The same of some key groups of a part, or of all that it has; nothing where they are empty.

    Args:
        made: the columns, where they are not the state's own.
        constants: what stands in those that no entry has, by name.

    Raises:
        as ``record_batches``.
    """
    found = columns(state) if made is None else made
    wanted = part.key_groups if key_groups is None else key_groups
    fast = _fast_reader(state, part, found, constants)
    if fast is not None:
        yield from fast.batches(wanted)
    else:
        yield from plain_batches(state, part, wanted, found, constants)


def _fast_reader(
    state: KeyedState,
    part: Part,
    made: Sequence[Column],
    constants: Mapping[str, Callable[[KeyedState], Any]],
) -> FastReader | None:
    """What reads it by the kernel; None where the extra ``fast`` is not installed, or the kernel
    does not know the shape."""
    own = columns(state)
    if find_spec("numba") is None or any(
        column.name not in constants and column not in own for column in made
    ):
        return None
    from migrate.state.kernel.program import Unknown
    from migrate.state.kernel.read import FastReader

    def plain(key_group: int, leave_out: int) -> Iterator[pa.RecordBatch]:
        return plain_batches(state, part, [key_group], made, constants, leave_out)

    told = {name: constant(state) for name, constant in constants.items()}
    try:
        return FastReader(state, part, arrow_schema(made), told, plain)
    except Unknown:
        return None


def plain_batches(
    state: KeyedState,
    part: Part,
    key_groups: Iterable[int],
    made: Sequence[Column],
    constants: Mapping[str, Callable[[KeyedState], Any]] = MappingProxyType({}),
    leave_out: int = 0,
) -> Iterator[pa.RecordBatch]:
    """As ``part_batches``, without the kernel; ``leave_out``: how many entries at the start."""
    entries: list[Entry] = []
    rows = 1  # what the first ones take tells how many a batch may have
    for some in part.batches(key_groups):
        entries += some[leave_out:]
        leave_out = max(0, leave_out - len(some))
        if len(entries) >= rows:
            batch = _batch_of(state, made, entries, constants)
            rows = max(1, min(_ROWS, _BYTES * len(entries) // max(1, batch.nbytes)))
            yield batch
            entries = []
    if entries:
        yield _batch_of(state, made, entries, constants)


def _batch_of(
    state: KeyedState,
    columns: Sequence[Column],
    entries: Sequence[Entry],
    constants: Mapping[str, Callable[[KeyedState], Any]],
) -> pa.RecordBatch:
    by_name = Entry._make(zip(*entries, strict=True))._asdict()
    for name, constant in constants.items():
        by_name[name] = (constant(state),) * len(entries)
    try:
        return _batch(columns, [by_name[column.name] for column in columns])
    except DoesNotFit as error:
        raise DoesNotFit(f"state {state.name!r}: {error}") from error


def batch_of_rows(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> pa.RecordBatch:
    """Rows as one batch of these columns."""
    return _batch(columns, list(zip(*rows, strict=True)))


def _batch(columns: Sequence[Column], by_column: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    import pyarrow as pa

    schema = arrow_schema(columns)
    arrays = []
    for column, field, values in zip(columns, schema, by_column, strict=True):
        convert = column.type.convert
        try:
            if convert is not None:
                values = [None if value is None else convert(value) for value in values]
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowException, OverflowError, ValueError) as error:
            raise DoesNotFit(
                f"a value does not fit into column {column.name} {column.type.ddl}: {error}; "
                "`migrate state --format json` prints it"
            ) from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
