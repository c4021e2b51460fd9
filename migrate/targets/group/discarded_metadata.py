"""Warn about metadata that a commit would replace; no I/O here."""

from __future__ import annotations

from collections.abc import Mapping

from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.model.offset_metadata import holds_offset
from migrate.model.positions import TopicPartition
from migrate.model.warning import warn
from migrate.model.warning_catalog import METADATA_DISCARDED, METADATA_DISCARDED_UNTIL_ROLLBACK


def warn_of_discarded_metadata(
    group: GroupView,
    new_offsets: Mapping[TopicPartition, Committed],
    *,
    has_rollback: bool = False,
) -> None:
    """Warn if a commit would replace metadata that may be meaningful to the group's client.

    Args:
        group: the group before the commit.
        new_offsets: the offsets to commit.
        has_rollback: True if a rollback would restore the metadata.
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
        warning = METADATA_DISCARDED_UNTIL_ROLLBACK if has_rollback else METADATA_DISCARDED
        partition = f"{topic}-{number}"
        warn(warning(count=len(discarded), group=group.name, partition=partition))
