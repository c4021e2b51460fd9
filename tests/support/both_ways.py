"""Keyed state read by the kernel, held against the plain reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa

from decoder import DecodeError
from decoder.keyed_state import KeyedState, Part
from migrate.state.arrow import DoesNotFit, arrow_schema, plain_batches
from migrate.state.columns import columns
from migrate.state.kernel.program import Unknown
from migrate.state.kernel.read import FastReader
from tests.support.keyed_rows import with_numbers


class Way(NamedTuple):
    """How the kernel did.

    Attributes:
        known: whether it knows the shape.
        handed_over: (key group, entries that were out already) of what the plain reader read in
            its place.
        rows: how many came out, both ways; None: an error did.
    """

    known: bool
    handed_over: list[tuple[int, int]]
    rows: int | None


def both_ways(state: KeyedState) -> list[Way]:
    """Read each part both ways; the rows, or the errors, are the same. How the kernel did."""
    return [_part(state, part) for part in state.parts]


def _part(state: KeyedState, part: Part) -> Way:
    made = columns(state)
    schema = arrow_schema(made)
    handed_over: list[tuple[int, int]] = []

    def plain(key_group: int, leave_out: int) -> Iterator[pa.RecordBatch]:
        handed_over.append((key_group, leave_out))
        return plain_batches(state, part, [key_group], made, leave_out=leave_out)

    plain_rows = _outcome(lambda: plain_batches(state, part, part.key_groups, made), schema)
    try:
        reader = FastReader(state, part, schema, {}, plain)
    except Unknown:
        return Way(False, [], None)
    fast_rows = _outcome(lambda: reader.batches(part.key_groups), schema)
    if isinstance(plain_rows, str) or isinstance(fast_rows, str):
        assert fast_rows == plain_rows, (state.name, fast_rows, plain_rows)
        return Way(True, handed_over, None)
    fast_rows.validate(full=True)
    assert fast_rows.equals(plain_rows) or _distinguished(fast_rows) == _distinguished(
        plain_rows
    ), state.name
    return Way(True, handed_over, fast_rows.num_rows)


def _outcome(read: Callable[[], Iterator[pa.RecordBatch]], schema: pa.Schema) -> pa.Table | str:
    try:
        return pa.Table.from_batches(list(read()), schema)
    except (DecodeError, DoesNotFit) as error:
        return f"{type(error).__name__}: {error}"


def _distinguished(table: pa.Table) -> str:
    """Where a NaN is one."""
    return repr(with_numbers(table).to_pylist())
