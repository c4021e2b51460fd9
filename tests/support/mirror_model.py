"""Model logs and the mirrors that copy them, with the origin of every copy.

The model computes the records that a consumer reads if it starts at an offset of the new log. It
includes the records that the mirror has not copied yet. The model shares no code with ``migrate``,
except the type ``Record``.
"""

from __future__ import annotations

import math
import random
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from migrate.model.record import Headers, Record, Surroundings

TOPIC = "orders"
KINDS = (
    "keeping",
    "late",
    "lagging",
    "went back",
    "going back",
    "re-partitioning",
    "filtering",
    "skipping",
    "foreign records",
    "transactional",
    "compacting",
    "compacting and lagging",
    "changing",
    "reordering",
    "two mirrors",
)
Partition = tuple[str, int]
# A mirror's offset sync, with the partition, a record's offset, and the offset of its copy.
Sync = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Original:
    """A record of the old cluster; ``number`` is unique in its partition."""

    partition: int
    number: int
    offset: int
    key: str
    content: str
    time: int
    is_aborted: bool = False
    is_tombstone: bool = False

    @property
    def identity(self) -> tuple[object, ...]:
        """Return the parts that distinguish records; records with equal parts count as the same."""
        return self.key, self.content, self.time, self.is_tombstone

    def at(self, offset: int) -> Record:
        content = f"{self.key}|{self.content}|{self.time}|{self.is_tombstone}"
        return Record(
            offset,
            content.encode(),
            self.key.encode(),
            timestamp=self.time,
            is_tombstone=self.is_tombstone,
        )


@dataclass(frozen=True, slots=True)
class Copy:
    """A record of the new cluster; ``origin`` is None if no mirror has copied it."""

    offset: int
    origin: Original | None
    record: Record


@dataclass(slots=True)
class ModelLog:
    """A log as a reader sees it: the records, the log start offset, and the log end offset."""

    records: list[Record]
    start: int
    end: int


class ModelReader:
    """Read logs of the model as ``RecordReader`` reads Kafka's logs."""

    def __init__(
        self,
        logs: Mapping[int, ModelLog],
        *,
        is_compacted: bool = False,
        syncs: Sequence[Sequence[Sync]] = (),
    ) -> None:
        self._logs, self._is_compacted = logs, is_compacted
        self._syncs = {f"mm2-offset-syncs.{n}.internal": each for n, each in enumerate(syncs)}

    def around(
        self, positions: Mapping[Partition, int], most_before: int, most_after: int
    ) -> dict[Partition, Surroundings]:
        return {p: self._around(p, at, most_before, most_after) for p, at in positions.items()}

    def _around(self, p: Partition, at: int, most_before: int, most_after: int) -> Surroundings:
        log = self._logs[p[1]]
        at = min(max(at, log.start), log.end)
        place = bisect_left(log.records, at, key=lambda record: record.offset)
        after = log.records[place : place + most_after]
        is_to_end = place + most_after >= len(log.records)
        if is_to_end and len(after) == most_after and after:
            # A reader stops as soon as it has enough records, even if it has not seen the log end.
            is_to_end = after[-1].offset + 1 >= log.end
        unread = log.end if is_to_end else (after[-1].offset + 1 if after else at)
        before = log.records[max(0, place - most_before) : place]
        return Surroundings(
            at, tuple(before), tuple(after), unread,
            most_before >= place, is_to_end, log.start, log.end,
        )  # fmt: skip

    def around_times(
        self, times: Mapping[Partition, int], most_before: int, most_after: int
    ) -> dict[Partition, Surroundings]:
        positions = {}
        for partition, time in times.items():
            log = self._logs[partition[1]]
            newer = (record.offset for record in log.records if record.timestamp >= time)
            positions[partition] = next(newer, log.end)
        return self.around(positions, most_before, most_after)

    def log_ranges(self, partitions: Iterable[Partition]) -> dict[Partition, tuple[int, int]]:
        return {p: (self._logs[p[1]].start, self._logs[p[1]].end) for p in partitions}

    def log_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {p: self._logs[p[1]].end for p in partitions}

    def compacted_topics(self, topics: Iterable[str]) -> set[str]:
        return set(topics) if self._is_compacted else set()

    def take_snapshot(self, partitions: Iterable[Partition]) -> None:
        """Do nothing, because the logs do not change."""

    def partitions(self, topic: str) -> list[int]:
        return list(self._logs)

    def topics(self) -> list[str]:
        return list(self._syncs)

    def newest_contents(self, partition: Partition, most: int) -> list[tuple[bytes, bytes]]:
        name = TOPIC.encode()
        return [
            (
                struct.pack(f">h{len(name)}si", len(name), name, number),
                struct.pack(">qq", own, copy),
            )
            for number, own, copy in self._syncs[partition[0]][-most:]
        ]


@dataclass(slots=True)
class Case:
    """Two clusters with a mirror between them, and a job that has read to ``positions``.

    Attributes:
        is_hidden: True if the logs contain no evidence. In one case, the mirror has dropped
            records, and its last copy equals an earlier one, as if the mirror lagged. In the other
            case, retention has deleted the record or the copy with the evidence.
        syncs: the syncs of each topic of offset syncs.
        written: all records that the mirror has copied unchanged to their partition, by partition.
            Retention or compaction may have deleted the copies.
        changed: like ``written``, but for records that the mirror has changed.
        has_others: True if other clients also write to the new log of a mirror that rewinds.
    """

    kind: str
    originals: dict[int, list[Original]]
    kept: dict[int, list[Original]]
    old_ranges: dict[int, tuple[int, int]]
    copies: dict[int, list[Copy]]
    new_ranges: dict[int, tuple[int, int]]
    future: dict[int, list[Original]]
    positions: dict[int, int]
    reads_committed: bool
    old_compacted: bool
    new_compacted: bool
    began: dict[int, int] = field(default_factory=dict)
    is_hidden: bool = False
    syncs: list[list[Sync]] = field(default_factory=list)
    written: dict[int, set[int]] = field(default_factory=dict)
    changed: dict[int, set[int]] = field(default_factory=dict)
    has_others: bool = False

    def readers(self) -> tuple[ModelReader, ModelReader, ModelReader]:
        """Return readers of the old log, of its committed records, and of the new log."""
        old, committed = {}, {}
        for partition, kept in self.kept.items():
            start, end = self.old_ranges[partition]
            old[partition] = ModelLog([o.at(o.offset) for o in kept], start, end)
            committed[partition] = ModelLog(
                [o.at(o.offset) for o in kept if not o.is_aborted], start, end
            )
        new = {
            partition: ModelLog([copy.record for copy in copies], *self.new_ranges[partition])
            for partition, copies in self.copies.items()
        }
        return (
            ModelReader(old, is_compacted=self.old_compacted, syncs=self.syncs),
            ModelReader(committed, is_compacted=self.old_compacted),
            ModelReader(new, is_compacted=self.new_compacted),
        )

    def lost_and_repeated(self, starts: Mapping[int, int]) -> tuple[int, int]:
        """Return how many records are lost and how many are duplicated by starting at ``starts``.

        ``starts`` has all partitions between which the mirror moves records. A superseded record of
        a compacted topic is not lost.
        """
        read: list[Original] = []
        lost = 0
        for partition, start in starts.items():
            copies = self.copies[partition]
            first = self.began.get(partition, 0)
            for copy in copies:
                if copy.offset >= start and copy.origin is not None:
                    read.append(copy.origin)
                # If a start is behind another producer's record, this record is lost.
                lost += copy.origin is None and first <= copy.offset < start
            read += self.future[partition]
        unread = [
            o
            for partition in starts
            for o in self.originals[partition]
            if o.offset >= self.positions[partition]
        ]
        if self.old_compacted or self.new_compacted:
            # The last tombstone of a key may be deleted from either log.
            newest = self._newest_by_key(read, starts)
            gone = [
                o
                for o in unread
                if o.is_tombstone or newest.get((o.partition, o.key), -1) > o.number
            ]
        else:
            gone = [o for o in unread if o.is_aborted]
        wanted, counted = Counter(o.identity for o in unread), Counter(o.identity for o in read)
        lost += (wanted - Counter(o.identity for o in gone) - counted).total()
        if self.reads_committed:
            wanted = Counter(o.identity for o in unread if not o.is_aborted)
        return lost, (counted - wanted).total()

    def _newest_by_key(
        self, read: Iterable[Original], starts: Mapping[int, int]
    ) -> dict[tuple[int, str], float]:
        """Return, for each key, the number of the newest record that was read or is a tombstone.

        If a record of another producer was read, it counts as the newest record of its key.
        """
        newest: dict[tuple[int, str], float] = {}
        tombstones = (o for p in starts for o in self.originals[p] if o.is_tombstone)
        for o in (*read, *tombstones):
            key = o.partition, o.key
            newest[key] = max(newest.get(key, -1), o.number)
        for partition, start in starts.items():
            for copy in self.copies[partition]:
                if copy.origin is None and copy.offset >= start:
                    newest[partition, copy.record.key.decode()] = math.inf
        return newest


def make_case(seed: int) -> Case:
    """Return a random case; the same seed always gives the same case."""
    rng = random.Random(seed)
    kind = rng.choice(KINDS)
    numbers = range(1 if rng.random() < 0.7 and kind != "re-partitioning" else rng.choice((2, 3)))
    compacts = kind.startswith("compacting")
    reads_committed = rng.random() < 0.4
    # In a compacted topic, equal records count as one.
    style = "distinct" if compacts else rng.choice(("distinct", "distinct", "runs", "few"))
    # This draw has its own generator, so that the seeds in ``FALSE_ONCE`` keep their cases.
    if style != "distinct" and random.Random(f"beats 1531 {seed}").random() < 0.25:
        style = "beats"
    clock = rng.choice(("rising", "rising", "constant", "mixed"))
    has_transactions = rng.random() < (0.3 if not compacts else 0)
    most = rng.choice((6, 20, 60, 200))
    originals, ends = {}, {}
    for partition in numbers:
        originals[partition], ends[partition] = _old_log(
            rng, partition, most, style, clock, has_transactions, compacts
        )
    positions = {p: rng.randint(0, ends[p]) for p in numbers}
    case = Case(
        kind, originals, {}, {}, {}, {}, {}, positions, reads_committed,
        compacts and rng.random() < 0.6, compacts and rng.random() < 0.7,
    )  # fmt: skip
    # So does this draw.
    others = random.Random(f"others 176 {seed}").random() < 0.3
    case.has_others = others and kind in ("went back", "going back")
    gone_before = dict.fromkeys(numbers, 0)
    if kind == "late":
        gone_before = {p: rng.randint(0, positions[p]) for p in numbers}
    present = {p: [o for o in originals[p] if o.offset >= gone_before[p]] for p in numbers}
    if case.old_compacted and rng.random() < 0.4:  # before the mirror has copied
        present = {p: _compacted(rng, present[p]) for p in numbers}
    visible = {
        p: [o for o in present[p] if not (o.is_aborted and reads_committed)] for p in numbers
    }
    _mirror(rng, case, visible)
    case.syncs = _syncs(random.Random(f"syncs {seed}"), case)
    for p in numbers:
        kept, (start, end) = present[p], (gone_before[p], ends[p])
        if case.old_compacted:
            kept = _compacted(rng, kept)
        if rng.random() < 0.3:
            start = max(start, rng.randint(0, positions[p]))
        case.kept[p] = [o for o in kept if o.offset >= start]
        left = {o.number for o in case.kept[p]}
        case.future[p] = [o for o in case.future[p] if o.number in left]
        case.old_ranges[p] = (start, end)
    for p in numbers:
        copies, end = case.copies[p], case.new_ranges[p][1]
        if case.new_compacted:
            survivors = {id(o) for o in _compacted(rng, copies)}
            copies = [copy for copy in copies if id(copy) in survivors]
        start = 0
        if copies and rng.random() < 0.3:
            start = rng.choice(copies).offset
        # Records that the mirror wrote to a different partition, where retention has deleted them.
        case.is_hidden |= any(
            copy.origin is not None and copy.origin.partition != p
            for copy in copies
            if copy.offset < start
        )
        # Records that the mirror wrote too early, and that retention has deleted.
        gone = [c.origin.number for c in copies if c.origin is not None and c.offset < start]
        there = [c.origin.number for c in copies if c.origin is not None and c.offset >= start]
        case.is_hidden |= kind == "reordering" and max(gone, default=-1) > min(there, default=0)
        case.copies[p] = [copy for copy in copies if copy.offset >= start]
        case.new_ranges[p] = (start, end)
        # Before the copy of the first record that the old log still has, records of other producers
        # cannot be distinguished from older copies.
        first = case.kept[p][0].number if case.kept[p] else None
        later = [
            copy.offset
            for copy in case.copies[p]
            if copy.origin is not None and first is not None
            and copy.origin.partition == p and copy.origin.number >= first
        ]  # fmt: skip
        case.began[p] = min(later, default=end)
    case.is_hidden |= _has_lost_witness(case)
    return case


def _syncs(rng: random.Random, case: Case) -> list[list[Sync]]:
    """Return offset syncs of the mirror, an earlier copy of the topic, and a different target."""
    share = rng.choice((0.0, 0.05, 0.3, 1.0))
    own, earlier, other = list[Sync](), list[Sync](), list[Sync]()
    for p, copies in case.copies.items():
        shift = rng.randint(-3, 3)
        for copy in copies:
            if copy.origin is None or copy.origin.partition != p:
                continue
            if rng.random() < share:
                own.append((p, copy.origin.offset, copy.offset))
            if rng.random() < 0.5:
                earlier.append((p, copy.origin.offset, max(0, copy.offset + shift)))
            if rng.random() < 0.5:
                other.append((p, copy.origin.offset, max(0, copy.offset - shift)))
    topics = [[*(earlier if rng.random() < 0.4 else []), *own]]
    if rng.random() < 0.4:
        topics.append(other)
    return topics


def _has_lost_witness(case: Case) -> bool:
    """Return whether the old cluster lacks a record with evidence of the mirror's actions."""
    if case.old_compacted or case.new_compacted:
        return False
    kept = {(o.partition, o.number) for log in case.kept.values() for o in log}
    identities = {o.identity for log in case.kept.values() for o in log}
    for partition, copies in case.copies.items():
        origins = [copy.origin for copy in copies if copy.origin is not None]
        is_kept = [(o.partition, o.number) in kept for o in origins]
        # The old log has lost a copied record, but it still contains an equal record.
        if any(
            not there and o.identity in identities
            for there, o in zip(is_kept, origins, strict=True)
        ):
            return True
        # Records of other partitions are between copies of records that the old log has lost.
        own = [
            o.partition == partition and there for there, o in zip(is_kept, origins, strict=True)
        ]
        first = own.index(True) if any(own) else len(own)
        lost = any(o.offset > 0 and o.partition == partition for o in origins[:first])
        if any(o.partition != partition for o in origins[:first]) and (
            lost or case.old_ranges[partition][0] > 0
        ):
            return True
    return False


def _old_log(
    rng: random.Random,
    partition: int,
    most: int,
    style: str,
    clock: str,
    has_transactions: bool,
    compacts: bool,
) -> tuple[list[Original], int]:
    records: list[Original] = []
    offset, time = 0, 1000
    while len(records) < most and rng.random() > 0.02:
        size = rng.randint(1, 4)
        is_aborted = has_transactions and rng.random() < 0.3
        for _ in range(size):
            number = len(records)
            key = f"k{rng.randint(0, 5)}"
            content = f"{partition}/{number}"
            if clock == "rising":
                time += rng.randint(0, 2)
            elif clock == "mixed":
                time = 1000 + rng.randint(0, 40)
            same = time
            if style == "few":
                key, content, same = "k", f"{partition}{rng.choice('ab')}", 1000
            elif style == "beats" and rng.random() < 0.6:  # equal records between others
                key, content, same = "k", f"{partition} beat", time // 8 * 8
            elif style == "runs" and records and rng.random() < 0.5:
                key, content, same = records[-1].key, records[-1].content, records[-1].time
            is_tombstone = compacts and rng.random() < 0.15
            records.append(
                Original(partition, number, offset, key, content, same, is_aborted, is_tombstone)
            )
            offset += 1
        offset += has_transactions  # the marker
    return records, offset


_Batch = tuple[int, list[Original]]
_Entry = TypeVar("_Entry", Original, Copy)


def _compacted(rng: random.Random, records: list[_Entry]) -> list[_Entry]:
    """Compact the records up to a random place: remove superseded records, and maybe tombstones."""
    reached = rng.randint(0, len(records))
    newest = {_key(record): index for index, record in enumerate(records[:reached])}
    drops_tombstones = rng.random() < 0.5
    return [
        record
        for index, record in enumerate(records)
        if index >= reached
        or (newest[_key(record)] == index and not (drops_tombstones and _is_tombstone(record)))
    ]


def _key(record: Original | Copy) -> str:
    return record.key if isinstance(record, Original) else record.record.key.decode()


def _is_tombstone(record: Original | Copy) -> bool:
    return record.is_tombstone if isinstance(record, Original) else record.record.is_tombstone


def _mirror(rng: random.Random, case: Case, visible: dict[int, list[Original]]) -> None:
    """Copy the visible records as a mirror of the case's kind does.

    Set the copies, the ranges of the new log, the records that are still to be copied (``future``),
    ``written``, ``changed``, and ``is_hidden`` of the case.
    """
    numbers, kind = list(visible), case.kind
    writes_markers = kind == "transactional" or rng.random() < 0.15
    size = rng.choice((1, 2, 5, 20))
    logs: dict[int, list[Copy]] = {p: [] for p in numbers}
    ends = dict.fromkeys(numbers, 0)
    drops = _dropping(rng, kind)
    added: Headers = (("mirror", b"west"),) if rng.random() < 0.3 else ()
    written: list[Original] = []

    def write(partition: int, origin: Original | None, is_changed: bool = False) -> None:
        offset = ends[partition]
        ends[partition] += 1
        if origin is None:
            name = f"foreign/{rng.random()}"
            record = Record(offset, name.encode(), f"k{rng.randint(0, 5)}".encode(), timestamp=1020)
        else:
            record = origin.at(offset)._replace(headers=added)
            written.append(origin)
            if is_changed:
                record = record._replace(digest=record.digest + b"!")
        logs[partition].append(Copy(offset, origin, record))

    for p in numbers:
        if rng.random() < 0.1:  # the topic had records before the mirror started
            for _ in range(rng.randint(1, 4)):
                write(p, None)
    passes = {p: _passes(rng, kind, len(visible[p])) for p in numbers}
    if case.has_others:
        again = random.Random(f"again {rng.random()}")
        for p in numbers:
            passes[p] = _with_short_pass(again, passes[p], len(visible[p]))
    batches = {
        p: [
            (p, visible[p][begin : min(last, begin + size)])
            for first, last in passes[p]
            for begin in range(first, last, size)
        ]
        for p in numbers
    }
    for p in numbers:
        if kind == "reordering":
            for at in range(1, len(batches[p])):
                if rng.random() < 0.2:
                    batches[p][at - 1 : at + 1] = batches[p][at - 1 : at + 1][::-1]
        elif kind == "two mirrors":
            batches[p] = _riffled(rng, batches[p], batches[p])
    # Interleave the batches of the partitions at random; keep the order within each partition.
    order = [p for p in numbers for _ in batches[p]]
    rng.shuffle(order)
    left = {p: iter(batches[p]) for p in numbers}
    stays = rng.choice((0.0, 0.5, 0.9))
    foreign_left = rng.randint(1, 6) if kind == "foreign records" else 0
    moved_producers = rng.random() < 0.1
    for p, batch in (next(left[p]) for p in order):
        is_moved = kind == "re-partitioning" and rng.random() >= stays
        there = rng.choice(numbers) if is_moved else p
        for origin in batch:
            if not drops(origin):
                write(there, origin, kind == "changing" and rng.random() < 0.1)
        if writes_markers:
            # Add a commit marker and, in some cases, the offsets of an aborted transaction.
            ends[there] += 1 if rng.random() < 0.9 else len(batch) + 2
        while foreign_left and rng.random() < 0.4:
            write(p, None)
            foreign_left -= 1
    for p in numbers:
        # If a mirror has rewound, skipped, or dropped records, and then copied no more records, it
        # looks like a mirror that will still copy them. Such records therefore count as future.
        newest_first = (o.number for o in written[::-1] if o.partition == p)
        is_complete = kind in ("reordering", "two mirrors")
        last = max(newest_first, default=-1) if is_complete else next(newest_first, -1)
        rest = [origin for origin in visible[p] if origin.number > last]
        case.future[p] = rest
        # If an earlier record equals the newest copied one, dropped records leave no evidence.
        equal = {o.identity for o in visible[p] if o.number < last}
        newest = [o for o in visible[p] if o.number == last]
        case.is_hidden |= kind in ("filtering", "skipping") and any(
            o.identity in equal for o in newest
        )
        if moved_producers and not rest:
            for _ in range(rng.randint(1, 4)):
                write(p, None)
    if case.has_others:
        for p in numbers:
            ends[p] += _add_others(random.Random(f"others {rng.random()}"), logs[p])
    for p in numbers:
        own = [(c, c.origin) for c in logs[p] if c.origin is not None and c.origin.partition == p]
        plain = {o.number for c, o in own if c.record.digest == o.at(0).digest}
        case.written[p] = plain
        case.changed[p] = {o.number for _, o in own} - plain
    case.copies = logs
    case.new_ranges = {p: (0, ends[p]) for p in numbers}


def _with_short_pass(
    rng: random.Random, passes: list[tuple[int, int]], count: int
) -> list[tuple[int, int]]:
    """Let half of the mirrors copy everything, then rewind, and copy a few records again."""
    if rng.random() < 0.5:
        return passes
    first = rng.randint(0, count)
    last = min(count, first + rng.randint(0, 4))
    return [(0, count), (first, last)]


def _add_others(rng: random.Random, copies: list[Copy]) -> int:
    """Insert records of other clients, mostly near the end; return the number of added records."""
    number = rng.randint(1, 6)
    for _ in range(number):
        last = rng.choice((0, len(copies), max(0, len(copies) - rng.randint(0, 8))))
        at = rng.randint(last, len(copies))
        offset = (
            copies[at].offset if at < len(copies) else 1 + max([-1, *(c.offset for c in copies)])
        )
        time = rng.choice((1000, 1020, 5000))
        record = Record(offset, f"other/{rng.random()}".encode(), b"other", timestamp=time)
        copies[at:] = [
            Copy(offset, None, record),
            *(
                Copy(copy.offset + 1, copy.origin, copy.record._replace(offset=copy.offset + 1))
                for copy in copies[at:]
            ),
        ]
    return number


def _riffled(rng: random.Random, one: list[_Batch], other: list[_Batch]) -> list[_Batch]:
    """Interleave the batches of two mirrors at random; keep the order of each mirror's batches."""
    left, mixed = [list(one), list(other)], list[_Batch]()
    while batches := rng.choice([some for some in left if some] or [[]]):
        mixed.append(batches.pop(0))
    return mixed


def _dropping(rng: random.Random, kind: str) -> Callable[[Original], bool]:
    """Return a function that decides whether a mirror drops a record."""
    if kind != "filtering":
        return lambda _: False
    how = rng.choice(("one", "key", "some"))
    chosen, key = rng.randint(0, 40), f"k{rng.randint(0, 5)}"
    dropped: dict[int, bool] = {}

    def drops(origin: Original) -> bool:
        if how == "one":
            return origin.number == chosen
        if how == "key":
            return origin.key == key
        return dropped.setdefault(origin.number, rng.random() < 0.1)

    return drops


def _passes(rng: random.Random, kind: str, count: int) -> list[tuple[int, int]]:
    """Return the ranges of records that the mirror copies, in the order in which it copies them."""
    end = count
    if kind in ("lagging", "compacting and lagging") or rng.random() < 0.2:
        end = rng.randint(0, count)
    if kind in ("reordering", "two mirrors"):
        end = count
    passes = [(0, end)]
    if kind == "late" and rng.random() < 0.5:
        passes = [(rng.randint(0, end), end)]
    if kind in ("went back", "going back") or (kind == "transactional" and rng.random() < 0.3):
        passes, reached = [], 0
        for _ in range(rng.randint(1, 3)):
            to = rng.randint(reached, count)
            passes.append((rng.randint(0, reached), to))
            reached = to
        passes.append((rng.randint(0, reached), count))
        if kind == "going back":
            first, last = passes[-1]
            passes[-1] = (first, rng.randint(first, last))
    if kind == "skipping" and end:
        first = rng.randint(0, end)
        passes = [(0, first), (rng.randint(first, end), end)]
    return passes
