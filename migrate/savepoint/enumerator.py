"""What a source's enumerator knows of partitions, changed: entries cut out, assigned, and added.

An entry's own start is where it was discovered, for ever: a position that merely moves changes
nothing here. A partition that a reader is to hold must stand here as assigned: Flink would else
discover it, and give it out once more, from its log start.

Source: KafkaSourceEnumStateSerializer, KafkaSourceEnumerator.getPartitionChange @ connector 1.15.4
to 5.0.0-2.2; SourceCoordinatorSerdeUtils @ Flink 2.2.0. The layouts are those of
``decoder.kafka.enumerator``, ``dynamic`` and ``hybrid``.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from decoder.cursor import Cursor, RecordingCursor
from decoder.kafka.dynamic import read_dynamic_enumerator
from decoder.kafka.enumerator import AssignmentStatus, EnumeratorEntry, read_entries
from decoder.kafka.hybrid import read_hybrid_enumerator
from decoder.kafka.source import DynamicKafkaSource, HybridSource, KafkaSource
from migrate.errors import Refused
from migrate.positions import TopicPartition
from migrate.savepoint.data_output import blob, i32, utf
from migrate.savepoint.splits import split

# By cluster (None: one that the state does not name), the partitions that readers are to hold.
Added = Mapping[str | None, Mapping[TopicPartition, int]]
Removed = Mapping[str | None, Set[TopicPartition]]


def changed_coordinator(
    data: bytes,
    source: KafkaSource | DynamicKafkaSource | HybridSource,
    added: Added,
    removed: Removed,
) -> bytes:
    """A source's coordinator state with other entries.

    Raises:
        Refused: it is of a version that lists partitions by subtask, or has no enumerator of a
            cluster.
    """
    cursor = Cursor(data, "coordinator state")
    head = cursor.raw(4, "coordinator version")
    version = cursor.i32("enumerator version")
    body = cursor.blob("enumerator state")
    rest = cursor.raw(cursor.remaining, "split assignment")
    return head + i32(version) + blob(_changed(body, version, source, added, removed)) + rest


def _changed(
    body: bytes,
    version: int,
    source: KafkaSource | DynamicKafkaSource | HybridSource | object,
    added: Added,
    removed: Removed,
) -> bytes:
    match source:
        case HybridSource():
            inner = read_hybrid_enumerator(Cursor(body, "enumerator state"), version)
            wrapped = _changed(inner.wrapped, inner.version, source.current, added, removed)
            return i32(inner.source_index) + i32(inner.version) + blob(wrapped)
        case DynamicKafkaSource():
            return _changed_clusters(body, version, added, removed)
        case _:
            return _changed_entries(body, version, added.get(None, {}), removed.get(None, set()))


def _changed_clusters(body: bytes, version: int, added: Added, removed: Removed) -> bytes:
    cursor = RecordingCursor(body, "enumerator state")
    state = read_dynamic_enumerator(cursor, version)
    places = {id(met.what): met for met in cursor.found}
    known = {**state.retained, **state.clusters}
    if missing := sorted(str(name) for name in added if name not in known):
        raise Refused([f"cluster {missing[0]!r} has no enumerator yet: no partition can be added"])
    out, end = b"", 0
    for met in sorted(places[id(one)] for one in known.values()):
        name = next(name for name, one in known.items() if one is met.what)
        frame = body[met.start + 4 : met.end]
        new = _changed_entries(
            frame, known[name].version, added.get(name, {}), removed.get(name, set())
        )
        out += body[end : met.start] + blob(new)
        end = met.end
    return out + body[end:]


def _changed_entries(
    body: bytes, version: int, added: Mapping[TopicPartition, int], removed: Set[TopicPartition]
) -> bytes:
    if not added and not removed:
        return body
    if version == 0:
        raise Refused(
            [
                "its enumerator is of version 0 (connector 1.12.0 to 1.12.2), which no partition "
                "is added to or removed from; restore the job with a later one and take a savepoint"
            ]
        )
    cursor = Cursor(body, "enumerator state")
    count = cursor.i32("partitions")
    head = cursor.raw(4, "split version") if version == 3 else b""
    kept: list[bytes] = []
    left = dict(added)
    for _ in range(count):
        start = cursor.byte_offset
        (entry,) = read_entries(cursor, version, 1)
        place = entry.topic, entry.partition
        if place in removed:
            continue
        data = body[start : cursor.byte_offset]
        if left.pop(place, None) is not None and _has_status(entry, version):
            data = data[:-4] + _ASSIGNED
        kept.append(data)
    kept += [_entry(place, next_offset, version) for place, next_offset in sorted(left.items())]
    return i32(len(kept)) + head + b"".join(kept) + body[cursor.byte_offset :]


_ASSIGNED = i32(AssignmentStatus.ASSIGNED.value)


def _has_status(entry: EnumeratorEntry, version: int) -> bool:
    return version >= 2 and entry.status is not AssignmentStatus.ASSIGNED


def _entry(place: TopicPartition, next_offset: int, version: int) -> bytes:
    topic, partition = place
    if version == 3:
        return blob(split(topic, partition, next_offset)) + _ASSIGNED
    return utf(topic) + i32(partition) + (_ASSIGNED if version == 2 else b"")
