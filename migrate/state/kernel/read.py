"""A state's entries by way of the kernel: the same batches as the plain reader's, sooner.

What it has no program for has no ``FastReader``. A key group that it refuses, or that does not
pass the checks of whole columns, the plain reader reads from where the last batch ended: it tells
what is wrong, or reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from decoder.keyed_state import KeyedState, KeyGroupLayout, Part
from migrate.state.kernel import operations as k
from migrate.state.kernel.arrays import Buffers, Rejected
from migrate.state.kernel.program import MOST_LISTS, Unknown, program_of

# Of a batch.
_ROWS = 16_384
# How many bytes of a column's texts there is room for at first.
_TEXT_BYTES = 1 << 20
# How many times the room for one entry is doubled.
_MOST_DOUBLED = 6

# (key group, how many of its entries to leave out) -> the rest, read plainly
Plain = Callable[[int, int], Iterator[pa.RecordBatch]]
# The schema's fields that no entry has, by name: what stands in them.
Constants = dict[str, object]


class FastReader:
    """Reads what one subtask has of a state."""

    def __init__(
        self,
        state: KeyedState,
        part: Part,
        schema: pa.Schema,
        constants: Constants,
        plain: Plain,
    ) -> None:
        """
        Raises:
            Unknown: it is of a shape that is not known.
        """
        if part.layout is None or part.source.head.unread is not None:
            raise Unknown("no key groups in a form that is known")
        own = part.info
        if (own.key, own.namespace, own.map_key, own.value, own.kind, own.ttl) != (
            *(state.key, state.namespace, state.map_key, state.value, state.kind, state.ttl),
        ):
            raise Unknown("serializers that differ by subtask")
        self._heap = part.layout is KeyGroupLayout.HEAP
        self._part = part
        self._schema = schema
        self._constants = constants
        self._plain = plain
        self._max_parallelism = state.max_parallelism
        self._program = program_of(
            part.source.head.states, part.number, state.max_parallelism, self._heap
        )
        self._starts = np.array(self._program.starts, np.int64)
        self._buffers = Buffers(self._program, _ROWS, _TEXT_BYTES)
        self._doubled = 0
        self._at = np.zeros(3, np.int64)
        self._seen = np.zeros(len(self._starts), np.uint8)
        self._lists = np.zeros(MOST_LISTS, np.int64)
        self._in_the_way = False
        # Of what is in the buffers: a key group; how many of its entries are out already; by table,
        # where its rows begin.
        self._held: list[tuple[int, int, list[int]]] = []

    def batches(self, key_groups: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """The entries of these key groups.

        Raises:
            DecodeError, DoesNotFit: as the plain reader does.
        """
        for key_group in key_groups:
            if self._in_the_way:
                yield from self._plain(key_group, 0)
                continue
            self._hold(key_group, 0)
            frames = self._part.frames(key_group)
            # Nothing holds a frame when the next one is read.
            while (data := next(frames, None)) is not None:
                if (yield from self._frame(key_group, data)):
                    break
        yield from self._flush()

    def _hold(self, key_group: int, out: int) -> None:
        self._held.append((key_group, out, self._buffers.rows.tolist()))

    def _frame(self, key_group: int, data: bytes) -> Generator[pa.RecordBatch, None, bool]:
        """Whether the plain reader has read the rest of the key group."""
        self._at[:] = (0, -1, 0)
        self._seen[:] = 0
        while True:
            status = self._walk(data)
            if status == k.DONE:
                return False
            if status == k.FULL and not self._buffers.rows.any():
                # One entry alone is too large for them.
                if self._doubled < _MOST_DOUBLED:
                    self._make_buffers(self._doubled + 1)
                    continue
                status = k.REFUSED
            try:
                batch, out = self._batch()
            except Rejected:
                yield from self._plainly()
                return True
            if batch is not None:
                yield batch
            if status == k.REFUSED:
                # It may be a state that has no program: then it is in the way everywhere.
                self._in_the_way = self._heap and bool((self._starts[:, k.START] < 0).any())
                self._held = [(key_group, out, [])]
                yield from self._plainly()
                return True
            self._clear()
            self._hold(key_group, out)

    def _make_buffers(self, doubled: int) -> None:
        self._doubled = doubled
        self._buffers = Buffers(self._program, _ROWS << doubled, _TEXT_BYTES << doubled)

    def _walk(self, data: bytes) -> int:
        buffers = self._buffers
        from migrate.state.kernel.kernel import walk

        frame = np.frombuffer(data, np.uint8)
        return walk(
            *(frame, self._heap, self._part.number, self._starts, buffers.ops, buffers.columns),
            *(buffers.slots, buffers.valid, buffers.text, buffers.rows, buffers.room),
            *(buffers.used, self._at, self._seen, self._lists),
        )

    def _batch(self) -> tuple[pa.RecordBatch | None, int]:
        """What is in the buffers, if anything; and how many entries of the last key group are out
        then.

        Raises:
            Rejected: some of it the plain reader has to judge.
        """
        if not self._held:
            return None, 0
        program, buffers = self._program, self._buffers
        for node in program.checks:
            buffers.check(node)
        for keys in program.keys:
            buffers.check_keys(keys, self._key_groups(keys.table), self._max_parallelism)
        elements = program.elements
        entries = 0 if elements is None else buffers.child(elements.column)
        count = int(buffers.rows[entries])
        _, out, begins = self._held[-1]
        here = count - begins[entries]
        if count == 0:
            return None, out
        parent = None
        if elements is not None:
            parent = np.repeat(np.arange(buffers.rows[0]), buffers.lengths(elements.column))
        arrays = []
        for field in self._schema:
            if field.name in self._constants:
                arrays.append(pa.array([self._constants[field.name]] * count, field.type))
                continue
            if field.name == "key_group":
                arrays.append(pa.array(self._key_groups(entries).astype(np.int32)))
                continue
            node = program.nodes[field.name]
            made = buffers.array(node, field.type)
            arrays.append(made if node.table == entries else made.take(pa.array(parent)))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        if program.not_empty is not None:
            kept = buffers.lengths(program.not_empty.column) > 0
            if not kept.all():
                here = int(kept[begins[0] :].sum())
                batch = batch.filter(pa.array(kept))
        return batch, out + here

    def _key_groups(self, table: int) -> NDArray[Any]:
        """Of each row of a table."""
        begins = [begins[table] for _, _, begins in self._held]
        counts = np.diff(np.array([*begins, self._buffers.rows[table]], np.int64)).tolist()
        return np.repeat(np.array([held[0] for held in self._held], np.int64), counts)

    def _flush(self) -> Iterator[pa.RecordBatch]:
        try:
            batch, _ = self._batch()
        except Rejected:
            yield from self._plainly(done=True)
            return
        self._clear()
        if batch is not None:
            yield batch

    def _plainly(self, done: bool = False) -> Iterator[pa.RecordBatch]:
        """What is in the buffers, and what is left of the last key group where that is not done."""
        begins = [begins for _, _, begins in self._held]
        ends = [*begins[1:], self._buffers.rows.tolist() if done else None]
        held = [one for one, end in zip(self._held, ends, strict=True) if one[2] != end]
        self._clear()
        for key_group, out, _ in held:
            yield from self._plain(key_group, out)

    def _clear(self) -> None:
        self._held = []
        if self._doubled:
            self._make_buffers(0)
        else:
            self._buffers.clear()
