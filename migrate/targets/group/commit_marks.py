"""The metadata of our commits, and what it shows about later commits; no I/O here.

Kafka keeps metadata with each committed offset. So a later run can recognize our commits, even
without the rollback file of the move.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from migrate.model.cluster_snapshot import GroupView
from migrate.model.positions import TopicPartition
from migrate.model.wording import counted

METADATA_PREFIX = "flink-offset-migrate "
_CUT_OVER = "cut-over="
# If an offset is of another cluster than the checkpoint, its metadata ends with this text.
_TRANSLATED = " translated"
# Kafka's own limit is offset.metadata.max.bytes: 4096 by default, but brokers can set a lower one.
_METADATA_BYTES = 200


def commit_metadata(origin: str, cut_over: str = "", *, is_translated: bool = False) -> str:
    """Return the metadata of an offset that we commit.

    ``origin`` is where the offset came from, ``chk-42 cbc357cc`` for example. ``cut_over`` is the
    id of the cut-over that commits.
    """
    text = METADATA_PREFIX + (f"{_CUT_OVER}{cut_over} " if cut_over else "") + origin
    text += _TRANSLATED if is_translated else ""
    printable = "".join(character if character.isprintable() else "?" for character in text)
    return printable.encode()[:_METADATA_BYTES].decode(errors="ignore")


def is_translated(metadata: str) -> bool:
    """Return whether we committed this metadata with an offset of another cluster."""
    return metadata.startswith(METADATA_PREFIX) and metadata.endswith(_TRANSLATED)


def cut_over_of(metadata: str) -> str | None:
    """Return the id of the cut-over that committed this metadata, or None."""
    mark = METADATA_PREFIX + _CUT_OVER
    return metadata.removeprefix(mark).partition(" ")[0] if metadata.startswith(mark) else None


def moved_on_refusals(
    group: GroupView, next_offsets: Mapping[TopicPartition, int]
) -> Iterator[str]:
    """Yield a refusal if a commit would move a group back from offsets that others committed.

    "Others" are the group's consumers, or a Flink job that commits for the group. The group has
    moved on if others have committed beyond the new offset of a partition, and one of these is
    true:

    - A commit of ours is still in another partition.
    - No partition is behind its new offset. This suggests that the consumers have committed in
      every partition.

    If there are no commits of ours and some partition is behind, the group has not moved on: it was
    at other positions before the move.
    """
    committed = {
        partition: group.committed[partition]
        for partition in next_offsets
        if partition in group.committed
    }
    ours = {
        partition
        for partition, offset in committed.items()
        if offset.metadata.startswith(METADATA_PREFIX)
    }
    ahead = {
        partition: offset.next_offset - next_offsets[partition]
        for partition, offset in committed.items()
        if partition not in ours and offset.next_offset > next_offsets[partition]
    }
    behind = any(
        offset.next_offset < next_offsets[partition] for partition, offset in committed.items()
    )
    if not ahead or (behind and not ours):
        return
    topic, partition = first = min(ahead)
    since = ""
    if ours:
        kept = min(ours)
        mark = f"{_CUT_OVER}{cut_over_of(committed[kept].metadata)} "
        origin = committed[kept].metadata.removeprefix(METADATA_PREFIX).removeprefix(mark)
        origin = origin.partition(" ")[0]
        since = f" since an earlier commit-group ({kept[0]}-{kept[1]} still has that of {origin})"
    yield (
        f"group {group.name} has moved on{since}: others have committed beyond these offsets in "
        f"{counted(len(ahead), 'partition')} (the first is {topic}-{partition}: "
        f"{committed[first].next_offset}, to go back to {next_offsets[first]}), and up to "
        f"{counted(sum(ahead.values()), 'record')} would be read again; add --allow-moved-on to go "
        "back all the same"
    )
