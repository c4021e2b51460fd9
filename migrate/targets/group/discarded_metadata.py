"""Warn about metadata that a commit would replace; no I/O here."""

from __future__ import annotations

from collections.abc import Mapping

from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.model.offset_metadata import holds_offset
from migrate.model.positions import TopicPartition
from migrate.model.warning import WarningCode, warn
from migrate.model.wording import counted


def warn_of_discarded_metadata(
    group: GroupView, new_offsets: Mapping[TopicPartition, Committed], remedy: str = ""
) -> None:
    """Warn if a commit would replace metadata that may be meaningful to the group's client.

    Args:
        group: the group before the commit.
        new_offsets: the offsets to commit.
        remedy: the end of the warning, if there is a way to restore the metadata.
    """
    discarded = sorted(
        partition
        for partition, new in new_offsets.items()
        if (held := group.committed.get(partition)) is not None
        and held.metadata not in ("", new.metadata)
        and not holds_offset(held, new)
    )
    if discarded:
        topic, number = discarded[0]
        warn(
            WarningCode.METADATA_DISCARDED,
            f"the commit discards the metadata of {counted(len(discarded), 'offset')} of group "
            f"{group.name} (the first is {topic}-{number}); the group's client may need "
            f"it{remedy}",
        )
