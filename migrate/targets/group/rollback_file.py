"""The rollback file: a consumer group's offsets before a change, and the planned offsets after it.

The file is written before anything changes, so the change can be rolled back after a crash, with
``migrate rollback FILE`` or by hand. The schema has a version. Version 1 files, from release 0.2.0
and earlier, may contain inexact metadata and have no checksum, so they are shown but not applied.
Files of any other version and edited files (``sha256``) are refused. The file contains the broker
addresses but no secrets.

A group's rollback files are also its history. Only they identify the commits that ``migrate`` made,
because ``migrate`` writes no metadata by default (see ``writers``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from migrate.model.catalog import GROUP_METADATA_NOT_UTF_8, ROLLBACK_FILE_WITHOUT_CHECKSUM
from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.model.errors import InputError, Refused
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.model.positions import TopicPartition
from migrate.model.warning import warn
from migrate.model.warning_catalog import ROLLBACK_FILE_IGNORED
from migrate.storage.json_models import (
    EditedFile,
    Model,
    Offset,
    OncePerPartition,
    PartitionNumber,
    Sha256,
    TopicName,
    read_file,
    schema_of,
)

Offsets = Mapping[TopicPartition, Committed]

LeaderEpoch = Annotated[int, Field(ge=0, le=2**31 - 1)]

KIND: Literal["flink-offset-migrate rollback"] = "flink-offset-migrate rollback"
# The first value in the file is ``kind``, so only this number of bytes is searched for ``kind``.
_KIND_BYTES = 200


class SavedOffset(Model):
    """A committed offset, with its metadata."""

    topic: TopicName
    partition: PartitionNumber
    next_offset: Offset
    metadata: str
    leader_epoch: LeaderEpoch | None


class SavedPartition(Model):
    """A partition without its offset."""

    topic: TopicName
    partition: PartitionNumber


class SavedGroup(Model):
    """The state of a consumer group: whether it exists, and its committed offsets in all topics."""

    exists: bool
    offsets: OncePerPartition[SavedOffset]

    @cached_property
    def committed(self) -> dict[TopicPartition, Committed]:
        return {
            (saved.topic, saved.partition): Committed(
                saved.next_offset, saved.metadata, saved.leader_epoch
            )
            for saved in self.offsets
        }


class RollbackFile(Model):
    """A change to a consumer group, with the state before it and the planned state after it.

    Attributes:
        topic_ids: Kafka's topic IDs, if the brokers have them. A recreated topic has a new ID.
        unchanged: the partitions in the change that already had their new offset.
        cut_over: the ID of the cut-over that made the change, or None.
        from_cluster_id: the ID of the cluster that the job reads from, if the offsets in ``after``
            were translated from that cluster; an empty string if the ID is unknown. None without a
            translation.
    """

    kind: Literal["flink-offset-migrate rollback"]
    version: Literal[1, 2]
    created_at: str
    cluster_id: str | None
    bootstrap_servers: str
    topic_ids: dict[str, str]
    group: str
    change: Literal["commit", "rollback"]
    before: SavedGroup
    after: SavedGroup
    unchanged: OncePerPartition[SavedPartition] = Field(default_factory=list)
    cut_over: str | None = None
    from_cluster_id: str | None = None
    # Rollback files of earlier releases lack this field; they are shown but not applied.
    sha256: Sha256 | None = None

    @cached_property
    def changed_partitions(self) -> frozenset[TopicPartition]:
        """The partitions whose offset, metadata, or leader epoch changes."""
        return frozenset(differing_partitions(self.before.committed, self.after.committed))

    @cached_property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions in the planned change, whether or not their offsets were changed."""
        unchanged = ((saved.topic, saved.partition) for saved in self.unchanged)
        return self.changed_partitions.union(unchanged)


class ChangeProgress(str, Enum):
    """The progress of a change, as shown by the group's offsets."""

    APPLIED = "applied"
    # The group's offsets do not show whether the change was undone or never made.
    UNCHANGED = "unchanged"
    IN_PART = "applied in part"
    MOVED_ON = "moved on"


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A rollback file and the progress of its change."""

    path: Path
    file: RollbackFile
    progress: ChangeProgress

    @property
    def meaning(self) -> str:
        """The run that wrote the file, and its effect on the group's current offsets."""
        wrote = f"an earlier {self.file.change} by migrate wrote this file"
        match self.progress:
            case ChangeProgress.UNCHANGED:
                return f"{wrote}, but it changed nothing or was rolled back"
            case ChangeProgress.IN_PART:
                return f"{wrote}; the group has only some of the offsets that it set or removed"
            case ChangeProgress.MOVED_ON:
                return f"{wrote}; the group has newer commits"
        if self.file.changed_partitions & self.file.after.committed.keys():
            return f"{wrote} and set the group's current offsets"
        return f"{wrote} and removed the group's offsets"


def differing_partitions(before: Offsets, after: Offsets) -> list[TopicPartition]:
    """Return the partitions whose offset, metadata, or leader epoch differs, in order."""
    return sorted(
        partition
        for partition in before.keys() | after.keys()
        if before.get(partition) != after.get(partition)
    )


def default_path(group: str, folder: Path) -> Path:
    """Return the path ``rollback-<group>-<time>.json``; the name is valid in every file system."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", group)[:100]
    time = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
    return folder / f"rollback-{safe}-{time}.json"


def rollback_file(
    change: Literal["commit", "rollback"],
    cluster_id: str | None,
    bootstrap_servers: str,
    before: GroupView,
    after: Offsets,
    topic_ids: Mapping[str, str],
    *,
    unchanged: Iterable[TopicPartition] = (),
    cut_over: str | None = None,
    from_cluster_id: str | None = None,
) -> RollbackFile:
    """Return the rollback file of a change; for the arguments, see ``RollbackFile``.

    Raises:
        Refused: the group has metadata that is not UTF-8. A JSON file cannot store such metadata
            exactly.
    """
    for (topic, partition), committed in before.committed.items():
        if not _is_utf8(committed.metadata):
            raise Refused(
                GROUP_METADATA_NOT_UTF_8(group=before.name, partition=f"{topic}-{partition}")
            )
    return RollbackFile(
        kind=KIND,
        version=2,
        created_at=datetime.now(timezone.utc).isoformat(timespec="microseconds"),
        cluster_id=cluster_id,
        bootstrap_servers=bootstrap_servers,
        topic_ids=dict(topic_ids),
        group=before.name,
        change=change,
        before=SavedGroup(exists=before.exists, offsets=_saved(before.committed)),
        after=SavedGroup(exists=bool(after), offsets=_saved(after)),
        unchanged=[
            SavedPartition(topic=topic, partition=number) for topic, number in sorted(unchanged)
        ],
        cut_over=cut_over,
        from_cluster_id=from_cluster_id,
    )


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _saved(offsets: Offsets) -> list[SavedOffset]:
    return [
        SavedOffset(
            topic=topic,
            partition=partition,
            next_offset=committed.next_offset,
            metadata=committed.metadata,
            leader_epoch=committed.leader_epoch,
        )
        for (topic, partition), committed in sorted(offsets.items())
    ]


def read(path: Path) -> RollbackFile:
    """Read a rollback file.

    Raises:
        InputError: the file is missing, is not a rollback file of this version, or was edited.
    """
    return read_file(
        RollbackFile,
        path,
        "rollback file of version 1 or 2",
        creation_hint=f"pass a file that commit-group with {option('execute', True)} wrote, or a "
        "copy of it",
    )


def read_to_apply(path: Path) -> RollbackFile:
    """Read a rollback file, and refuse it if its checksum shows that it was edited.

    Raises:
        InputError: as in ``read``, or the file has no checksum or has version 1.
    """
    file = read(path)
    if file.version == 1 or file.sha256 is None:
        raise EditedFile(ROLLBACK_FILE_WITHOUT_CHECKSUM(path=path))
    return file


def change_progress(file: RollbackFile, now: GroupView) -> ChangeProgress:
    """Return the progress of a change, as shown by the offsets of its partitions."""
    before, after, held = file.before.committed, file.after.committed, now.committed
    changed = file.changed_partitions
    if all(held.get(partition) == after.get(partition) for partition in changed):
        return ChangeProgress.APPLIED
    if all(held.get(partition) == before.get(partition) for partition in changed):
        return ChangeProgress.UNCHANGED
    return ChangeProgress.MOVED_ON if moved_on_partitions(file, now) else ChangeProgress.IN_PART


def moved_on_partitions(file: RollbackFile, now: GroupView) -> list[TopicPartition]:
    """Return the changed partitions whose committed offset is neither the old nor the new one."""
    before, after, held = file.before.committed, file.after.committed, now.committed
    return sorted(
        partition
        for partition in file.changed_partitions & held.keys()
        if held[partition] not in (before.get(partition), after.get(partition))
    )


def newest_of(changes: Sequence[tuple[Path, RollbackFile]], now: GroupView) -> LoggedChange | None:
    """Return the newest change in a ``history``, with its progress; None if there is no change."""
    if not changes:
        return None
    path, file = changes[0]
    return LoggedChange(path, file, change_progress(file, now))


def history(
    folders: Iterable[Path],
    cluster_id: str | None,
    group: str,
    *,
    ignore_unreadable: bool = False,
) -> list[tuple[Path, RollbackFile]]:
    """Return the rollback files of a group in the folders, newest change first.

    Args:
        folders: the folders.
        cluster_id: the ID of the group's cluster; changes in other clusters are omitted.
        group: the group.
        ignore_unreadable: as in ``rollback_files``.

    Raises:
        InputError: as in ``rollback_files``.
    """
    files = {
        path.resolve(): (path, file)
        for folder in {folder.resolve(): folder for folder in folders}.values()
        for path, file in rollback_files(folder, group, ignore_unreadable=ignore_unreadable)
        if file.cluster_id == cluster_id
    }
    return sorted(files.values(), key=lambda found: found[1].created_at, reverse=True)


def writers(
    changes: Iterable[RollbackFile], group: GroupView
) -> dict[TopicPartition, RollbackFile]:
    """Return the change that wrote each partition's offset, as far as the files show it.

    A partition is omitted if no file covers it. A partition is also omitted if its offset,
    metadata, or leader epoch differs from the result of the newest change, because another client
    has then committed after the change. A rollback reassigns a partition to the change that had
    written the restored offset. A client that commits the same offset without metadata and without
    a leader epoch is not detected.

    Args:
        changes: the changes to the group, newest first.
        group: the current state of the group.
    """
    found: dict[TopicPartition, RollbackFile] = {}
    decided, restored = set[TopicPartition](), set[TopicPartition]()
    for change in changes:
        for partition in change.partitions - decided:
            held = group.committed.get(partition)
            if held is None or held != change.after.committed.get(partition):
                if partition not in restored:
                    decided.add(partition)
            elif change.change == "rollback":
                restored.add(partition)
            else:
                found[partition] = change
                decided.add(partition)
    return found


def last_writers(
    changes: Iterable[RollbackFile], group: GroupView
) -> dict[TopicPartition, RollbackFile]:
    """Return the newest change that wrote the current offset of each partition.

    Unlike in ``writers``, a rollback counts as the writer of the offsets that it restored.

    Args:
        changes: the changes to the group, newest first.
        group: the current state of the group.
    """
    found: dict[TopicPartition, RollbackFile] = {}
    for change in changes:
        for partition in change.changed_partitions - found.keys():
            held = group.committed.get(partition)
            if held is not None and held == change.after.committed.get(partition):
                found[partition] = change
    return found


def superseded_commits(
    changes: Iterable[tuple[Path, RollbackFile]], group: GroupView
) -> dict[TopicPartition, tuple[Path, RollbackFile]]:
    """Return each partition's newest change, if another client has committed a new offset since.

    A partition is omitted if its newest change is a rollback. It is also omitted if the group has
    the offset from before the change, which means that the change was never made or was undone.

    Args:
        changes: the changes to the group, newest first.
        group: the current state of the group.
    """
    newest: dict[TopicPartition, tuple[Path, RollbackFile]] = {}
    for path, change in changes:
        for partition in change.partitions - newest.keys():
            newest[partition] = path, change
    return {
        partition: (path, change)
        for partition, (path, change) in newest.items()
        if change.change == "commit"
        and (held := group.committed.get(partition)) is not None
        and held != change.before.committed.get(partition)
        and held != change.after.committed.get(partition)
    }


def cut_over_folders(parent: Path) -> list[Path]:
    """Return the cut-over folders in a folder, except those of cut-overs that were rolled back.

    The rollback files of these cut-overs are part of a group's history. A cut-over with an
    unreadable record counts as not rolled back.
    """
    folders = (file.parent for file in sorted(parent.glob("*/record.json")))
    return [folder for folder in folders if not _went_back(folder)]


def _went_back(folder: Path) -> bool:
    try:
        document = json.loads((folder / "record.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and document.get("state") == "went back"


def rollback_files(
    folder: Path, group: str, *, ignore_unreadable: bool = False
) -> Iterator[tuple[Path, RollbackFile]]:
    """Yield the rollback files of a group among the ``*.json`` files in a folder.

    Args:
        folder: the folder.
        group: the group.
        ignore_unreadable: True to skip an unreadable rollback file of the group with a warning. An
            older file may then seem newest, so a cut-over, which shows a warning too late, passes
            False.

    Raises:
        InputError: a rollback file of the group was edited or is incomplete, or another release
            wrote it; only without ``ignore_unreadable``.
    """
    for path in folder.glob("*.json"):
        try:
            if not path.is_file():
                continue  # opening a named pipe would wait for a writer
            with path.open("rb") as opened:
                ours = KIND.encode() in opened.read(_KIND_BYTES)
            if ours and (file := read(path)).group == group:
                yield path, file
        except InputError as error:
            if not _names_group(path, group):
                continue
            if not ignore_unreadable:
                raise
            for reason in error.reasons:
                what = reason.what if isinstance(reason, Message) else reason
                warn(ROLLBACK_FILE_IGNORED(reason=what, group=group))
        except OSError:
            continue


def _names_group(path: Path, group: str) -> bool:
    """Return whether the text of a file that ``read`` refuses contains the group's name as one."""
    name = re.escape(json.dumps(group))
    return re.search(rf'"group"\s*:\s*{name}', path.read_text(errors="replace")) is not None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a rollback file."""
    return schema_of(RollbackFile, "A rollback file of migrate")


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
