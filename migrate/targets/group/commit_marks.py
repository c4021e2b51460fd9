"""How our commits are told from others', and what has become of them: pure.

What Kafka keeps beside a committed offset outlives the machine that committed it. So a group whose
consumers have gone on is noticed without the rollback file of the move, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from migrate.model.cluster_snapshot import GroupView
from migrate.model.positions import TopicPartition
from migrate.model.wording import counted

# What is written beside each of our offsets begins so.
METADATA_PREFIX = "flink-offset-migrate "
_CUT_OVER = "cut-over="
# Kafka's own limit is offset.metadata.max.bytes, 4096 by default; it may be set lower.
_METADATA_BYTES = 200


def commit_metadata(origin: str, cut_over: str = "") -> str:
    """Return the text that is written beside an offset.

    Args:
        origin: where the offset came from, ``chk-42 cbc357cc`` for example.
        cut_over: the id of the cut-over that commits, or an empty string.
    """
    text = METADATA_PREFIX + (f"{_CUT_OVER}{cut_over} " if cut_over else "") + origin
    printable = "".join(character if character.isprintable() else "?" for character in text)
    return printable.encode()[:_METADATA_BYTES].decode(errors="ignore")


def cut_over_of(metadata: str) -> str | None:
    """Return the id of the cut-over that wrote this text beside an offset, or None."""
    mark = METADATA_PREFIX + _CUT_OVER
    return metadata.removeprefix(mark).partition(" ")[0] if metadata.startswith(mark) else None


def moved_on_refusals(
    group: GroupView, next_offsets: Mapping[TopicPartition, int]
) -> Iterator[str]:
    """Why a commit would take a group back behind what others have committed, in one line.

    Others are all but us: the group's consumers, or a Flink job that commits for it. Two groups are
    taken to have gone on: one in which some of our commits still stand beside theirs, and one that
    is behind the new offsets nowhere and beyond them somewhere, as it is once its consumers have
    committed everywhere. One that is behind in places was somewhere else before: to be moved is
    what it is for, and a warning says how far.

    Args:
        group: the group as it is.
        next_offsets: what is to be committed.
    """
    held = {place: group.committed[place] for place in next_offsets if place in group.committed}
    ours = {place for place, now in held.items() if now.metadata.startswith(METADATA_PREFIX)}
    ahead = {
        place: now.next_offset - next_offsets[place]
        for place, now in held.items()
        if place not in ours and now.next_offset > next_offsets[place]
    }
    behind = any(now.next_offset < next_offsets[place] for place, now in held.items())
    if not ahead or (behind and not ours):
        return
    topic, partition = first = min(ahead)
    since = ""
    if ours:
        kept = min(ours)
        mark = f"{_CUT_OVER}{cut_over_of(held[kept].metadata)} "
        origin = held[kept].metadata.removeprefix(METADATA_PREFIX).removeprefix(mark)
        origin = origin.partition(" ")[0]
        since = f" since an earlier commit-group ({kept[0]}-{kept[1]} still has that of {origin})"
    yield (
        f"group {group.name} has moved on{since}: others have committed beyond these offsets in "
        f"{counted(len(ahead), 'partition')} (the first is {topic}-{partition}: "
        f"{held[first].next_offset}, to go back to {next_offsets[first]}), and up to "
        f"{sum(ahead.values())} records be read again; add --allow-moved-on to go back all the same"
    )
