"""Read the entries of a state with the kernel. The result is the same as with the plain reader.

If the kernel refuses a key group, the plain reader reads this key group. If the columns fail a
check, the plain reader reads all key groups that have entries in the buffers. The plain reader
always skips the entries that were already returned, and raises an error if an entry is corrupt. The
kernel then continues with the next key group. However, if the kernel would probably refuse every
further key group, the plain reader reads all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from decoder.keyed_state import KeyedState, KeyGroupLayout, Part
from migrate.extensions.keyed_state.kernel.arrays import Buffers, NeedsPlainReader
from migrate.extensions.keyed_state.kernel.compiler import compile_program
from migrate.extensions.keyed_state.kernel.operations import DONE, FULL, REFUSED, START
from migrate.extensions.keyed_state.kernel.program import MAX_LISTS, CannotCompile

# The capacity of the buffers, in rows and in bytes of text for each column.
_ROWS = 16_384
_TEXT_BYTES = 1 << 20
# The number of times that the capacity may be doubled for a large entry.
_MAX_DOUBLINGS = 6

# The plain reader. The arguments are a key group, and the number of entries to skip in this group.
Plain = Callable[[int, int], Iterator[pa.RecordBatch]]


class _Segment(NamedTuple):
    """Rows of one key group in the buffers.

    Attributes:
        returned: the number of the key group's entries in earlier batches.
        first_rows: for each table, the index of the segment's first row.
    """

    key_group: int
    returned: int
    first_rows: list[int]


class FastReader:
    """A reader for one subtask's part of a state.

    ``exact`` lists the columns in which nanoseconds are an error.

    Raises:
        CannotCompile: the kernel cannot read the state's types or the part's format, or the part's
            types differ from the state's types.
    """

    def __init__(
        self,
        state: KeyedState,
        part: Part,
        schema: pa.Schema,
        constants: Mapping[str, object],
        plain: Plain,
        exact: Collection[str] = (),
    ) -> None:
        if part.layout is None or part.state_source.head.error is not None:
            raise CannotCompile("no key groups in a recognized format")
        info = part.info
        if (info.key, info.namespace, info.map_key, info.value, info.kind, info.ttl) != (
            *(state.key, state.namespace, state.map_key, state.value, state.kind, state.ttl),
        ):
            raise CannotCompile("serializers that differ by subtask")
        self._heap = part.layout is KeyGroupLayout.HEAP
        self._part = part
        self._schema = schema
        self._constants = constants
        self._plain = plain
        self._exact = exact
        self._max_parallelism = state.max_parallelism
        self._program = compile_program(
            part.state_source.head.states, part.number, state.max_parallelism, self._heap
        )
        self._starts = np.array(self._program.starts, np.int64)
        self._buffers = Buffers(self._program, _ROWS, _TEXT_BYTES)
        self._doublings = 0
        self._at = np.zeros(3, np.int64)
        self._seen = np.zeros(len(self._starts), np.uint8)
        self._lists = np.zeros(MAX_LISTS, np.int64)
        self._kernel_blocked = False
        self._segments: list[_Segment] = []

    def batches(self, key_groups: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Yield the entries of key groups.

        Raises:
            DecodeError, DoesNotFit: for the same reasons as the plain reader.
        """
        for key_group in key_groups:
            if self._kernel_blocked:
                yield from self._plain(key_group, 0)
                continue
            self._begin_segment(key_group, 0)
            frames = self._part.frames(key_group)
            while (data := next(frames, None)) is not None:
                if (yield from self._read_frame(key_group, data)):
                    break
        yield from self._flush()

    def _begin_segment(self, key_group: int, returned: int) -> None:
        self._segments.append(_Segment(key_group, returned, self._buffers.rows.tolist()))

    def _read_frame(self, key_group: int, data: bytes) -> Generator[pa.RecordBatch, None, bool]:
        """Yield batches; return whether the plain reader has read the rest of the key group."""
        self._at[:] = (0, -1, 0)
        self._seen[:] = 0
        while True:
            status = self._walk(data)
            if status == DONE:
                return False
            if status == FULL and not self._buffers.rows.any():
                # The buffers are too small for a single entry.
                if self._doublings < _MAX_DOUBLINGS:
                    self._make_buffers(self._doublings + 1)
                    continue
                status = REFUSED
            try:
                batch, returned = self._batch()
            except NeedsPlainReader:
                last = self._segments[-1]  # the kernel has not finished this key group
                complete = [segment for segment in self._segments_with_rows() if segment != last]
                yield from self._read_plainly([*complete, last])
                return True
            if batch is not None:
                yield batch
            if status == REFUSED:
                # In the heap backend's format, a key group contains the entries of all states. If a
                # state has no program, the kernel refuses its entries, so it would probably refuse
                # every further key group too.
                self._kernel_blocked = self._heap and bool((self._starts[:, START] < 0).any())
                self._clear()
                yield from self._plain(key_group, returned)
                return True
            self._clear()
            self._begin_segment(key_group, returned)

    def _make_buffers(self, doublings: int) -> None:
        self._doublings = doublings
        self._buffers = Buffers(self._program, _ROWS << doublings, _TEXT_BYTES << doublings)

    def _walk(self, data: bytes) -> int:
        from migrate.extensions.keyed_state.kernel.kernel import walk

        buffers = self._buffers
        frame = np.frombuffer(data, np.uint8)
        return walk(
            *(frame, self._heap, self._part.number, self._starts, buffers.ops, buffers.columns),
            *(buffers.slots, buffers.valid, buffers.text, buffers.rows, buffers.capacity),
            *(buffers.used, self._at, self._seen, self._lists),
        )

    def _batch(self) -> tuple[pa.RecordBatch | None, int]:
        """Return the entries in the buffers as a batch; None if there are no entries.

        The second result is the total number of entries of the last key group, in this batch and
        in all earlier batches.

        Raises:
            NeedsPlainReader: the columns fail a check.
        """
        if not self._segments:
            return None, 0
        program, buffers = self._program, self._buffers
        for node in program.checks:
            buffers.check(node)
        for keys in program.keys:
            buffers.check_keys(keys, self._key_groups(keys.table), self._max_parallelism)
        map_entries = program.map_entries
        entry_table = 0 if map_entries is None else buffers.child(map_entries.column)
        count = int(buffers.rows[entry_table])
        _, returned, first_rows = self._segments[-1]
        if count == 0:
            return None, returned
        last_count = count - first_rows[entry_table]
        parents = None
        if map_entries is not None:
            parents = np.repeat(np.arange(buffers.rows[0]), buffers.lengths(map_entries.column))
        arrays = []
        for field in self._schema:
            if field.name in self._constants:
                arrays.append(pa.array([self._constants[field.name]] * count, field.type))
                continue
            if field.name == "key_group":
                arrays.append(pa.array(self._key_groups(entry_table).astype(np.int32)))
                continue
            node = program.nodes[field.name]
            array = buffers.array(node, field.type, exact=field.name in self._exact)
            arrays.append(array if node.table == entry_table else array.take(pa.array(parents)))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        if program.list_elements is not None:
            is_entry = buffers.lengths(program.list_elements.column) > 0
            if not is_entry.all():
                last_count = int(is_entry[first_rows[0] :].sum())
                batch = batch.filter(pa.array(is_entry))
        return batch, returned + last_count

    def _key_groups(self, table: int) -> NDArray[Any]:
        """Return the key group of each row of a table."""
        first_rows = [segment.first_rows[table] for segment in self._segments]
        counts = np.diff(np.array([*first_rows, self._buffers.rows[table]], np.int64)).tolist()
        key_groups = [segment.key_group for segment in self._segments]
        return np.repeat(np.array(key_groups, np.int64), counts)

    def _flush(self) -> Iterator[pa.RecordBatch]:
        try:
            batch, _ = self._batch()
        except NeedsPlainReader:
            yield from self._read_plainly(self._segments_with_rows())
            return
        self._clear()
        if batch is not None:
            yield batch

    def _segments_with_rows(self) -> list[_Segment]:
        """Return the segments with rows in the buffers."""
        starts = [segment.first_rows for segment in self._segments]
        ends = [*starts[1:], self._buffers.rows.tolist()]
        return [
            segment
            for segment, end in zip(self._segments, ends, strict=True)
            if segment.first_rows != end
        ]

    def _read_plainly(self, segments: Sequence[_Segment]) -> Iterator[pa.RecordBatch]:
        """Clear the buffers, and reread the segments' key groups; omit entries already returned."""
        self._clear()
        for segment in segments:
            yield from self._plain(segment.key_group, segment.returned)

    def _clear(self) -> None:
        self._segments = []
        if self._doublings:
            self._make_buffers(0)
        else:
            self._buffers.clear()
