"""Compare the kernel and the plain reader, the two readers of keyed state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa

from decoder import DecodeError
from decoder.keyed_state import KeyedState, Part
from migrate.extensions.keyed_state.arrow import DoesNotFit, plain_batches
from migrate.extensions.keyed_state.kernel.program import CannotCompile
from migrate.extensions.keyed_state.kernel.read import FastReader
from migrate.extensions.keyed_state.type_mapping import columns
from migrate.model.column_types import arrow_schema
from tests.support.keyed_rows import with_numbers


class KernelResult(NamedTuple):
    """The result of the kernel for one part of a state.

    Attributes:
        supported: True if the kernel supports the type of the state.
        handed_over: for each key group that the kernel left to the plain reader, its number, and
            the number of its entries that the kernel had read.
        rows: the number of rows; None if the type is not supported or both readers raised an error.
    """

    supported: bool
    handed_over: list[tuple[int, int]]
    rows: int | None


def compare_readers(state: KeyedState) -> list[KernelResult]:
    """Read each part with both readers, and assert that the rows or the errors are equal."""
    return [_part(state, part) for part in state.parts]


def _part(state: KeyedState, part: Part) -> KernelResult:
    arrow_columns = columns(state)
    schema = arrow_schema(arrow_columns)
    handed_over: list[tuple[int, int]] = []

    def plain(key_group: int, skip: int) -> Iterator[pa.RecordBatch]:
        handed_over.append((key_group, skip))
        return plain_batches(state, part, [key_group], arrow_columns, skip=skip)

    plain_rows = _outcome(
        lambda: plain_batches(state, part, part.key_groups, arrow_columns), schema
    )
    try:
        reader = FastReader(state, part, schema, {}, plain)
    except CannotCompile:
        return KernelResult(False, [], None)
    fast_rows = _outcome(lambda: reader.batches(part.key_groups), schema)
    if isinstance(plain_rows, str) or isinstance(fast_rows, str):
        assert fast_rows == plain_rows, (state.name, fast_rows, plain_rows)
        return KernelResult(True, handed_over, None)
    fast_rows.validate(full=True)
    assert fast_rows.equals(plain_rows) or _comparable(fast_rows) == _comparable(plain_rows), (
        state.name
    )
    return KernelResult(True, handed_over, fast_rows.num_rows)


def _outcome(read: Callable[[], Iterator[pa.RecordBatch]], schema: pa.Schema) -> pa.Table | str:
    try:
        return pa.Table.from_batches(list(read()), schema)
    except (DecodeError, DoesNotFit) as error:
        return f"{type(error).__name__}: {error}"


def _comparable(table: pa.Table) -> str:
    """Return the rows as text, because a NaN does not equal itself."""
    return repr(with_numbers(table).to_pylist())
