"""MirrorMaker 2's offset syncs, which map offsets of some records to offsets of their copies.

A mirror writes the syncs to partition 0 of ``mm2-offset-syncs.ALIAS.internal``, by default in the
source cluster of the mirror (``offset-syncs.topic.location``). The mirror writes a sync every 100
records, and also for the last records when it commits (OffsetSyncWriter @ connect-mirror 4.1.1). A
sync may belong to an earlier copy of the topic or to a different target cluster. A sync therefore
only shows where to search for a record's copy. It is evidence only if the records match
(``match_records``).

Layout: the key is the topic (length as int16, UTF-8) and the partition (int32); the value is the
record's offset and the offset of its copy (int64 each), big-endian (OffsetSync @ connect-mirror
4.1.1; ReplicationPolicy.offsetSyncsTopic @ connect-mirror-client 4.1.1).
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence

from migrate.kafka.records import Partition, RecordReader

_TOPIC = re.compile(r"mm2-offset-syncs\.(.+)\.internal")
# The maximum number of syncs to read from a topic; older syncs are ignored. By default, a mirror
# writes a sync for every 100 records.
_MOST_SYNCS = 200_000

# The offsets of a record and of its copy.
OffsetSync = tuple[int, int]


def read_offset_syncs(reader: RecordReader) -> Mapping[Partition, Sequence[Sequence[OffsetSync]]]:
    """Return the offset syncs of all mirrors in a cluster, by copied partition.

    For each partition, every mirror has its own sequence of syncs, in the order in which the mirror
    wrote them.

    Raises:
        BrokerError: the broker did not answer, or denied access.
    """
    all_syncs: dict[Partition, list[Sequence[OffsetSync]]] = defaultdict(list)
    for topic in filter(_TOPIC.fullmatch, reader.topics()):
        syncs: dict[Partition, list[OffsetSync]] = defaultdict(list)
        for key, value in reader.newest_contents((topic, 0), _MOST_SYNCS):
            if (sync := parse_offset_sync(key, value)) is not None:
                partition, offsets = sync
                syncs[partition].append(offsets)
        for partition, own in syncs.items():
            all_syncs[partition].append(own)
    return all_syncs


def parse_offset_sync(key: bytes, value: bytes) -> tuple[Partition, OffsetSync] | None:
    """Return the partition and the two offsets in a sync; None if the layout is different."""
    if len(key) < 6 or len(value) != 16:
        return None
    (length,) = struct.unpack_from(">h", key)
    if len(key) != 2 + length + 4:
        return None
    try:
        topic = key[2 : 2 + length].decode()
    except UnicodeDecodeError:
        return None
    (partition,) = struct.unpack_from(">i", key, 2 + length)
    own, copy = struct.unpack(">qq", value)
    return ((topic, partition), (own, copy)) if min(partition, own, copy) >= 0 else None
