"""``rollback``: restore the offsets that a consumer group had before a change."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.model.errors import Refused
from migrate.model.log import log, timed
from migrate.model.message import Message
from migrate.model.warning import warn
from migrate.model.warning_catalog import EARLIER_OFFSETS_OMITTED
from migrate.model.wording import counted
from migrate.moves.options import KafkaArguments, kafka
from migrate.storage.new_file import check_new_file
from migrate.storage.uris import AnyPath, local_path
from migrate.targets.group import rollback_file as rollback_files
from migrate.targets.group.rollback_file import ChangeProgress, RollbackFile

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.kafka.config import KafkaConfig
    from migrate.targets.group.commit import ChangeOutcome
    from migrate.targets.group.rollback_decision import RestoredOffset, RollbackPreview

_PROGRESS = {
    ChangeProgress.APPLIED: "{} was made on {}; a rollback restores the earlier offsets",
    ChangeProgress.UNCHANGED: "{} of {} changed nothing, or was already rolled back",
    ChangeProgress.IN_PART: "{} of {} was applied only in part; a rollback restores the earlier "
    "offsets",
    ChangeProgress.MOVED_ON: "the group has newer commits than {} of {}",
}


@dataclass(frozen=True, slots=True)
class GroupRollback:
    """A planned or completed rollback of a change to a consumer group.

    Attributes:
        refusals: the reasons against the rollback, one line each.
        rollback_path: the file to which the group's current offsets are saved before the rollback.
        outcome: the outcome if ``rollback`` was called with ``execute``; otherwise None. The
            ``execute`` method returns its outcome without setting this attribute.
    """

    preview: RollbackPreview
    refusals: tuple[Message, ...]
    rollback_path: Path
    outcome: ChangeOutcome | None = None
    _config: KafkaConfig = field(repr=False, kw_only=True)
    _force: bool = field(repr=False, kw_only=True)

    @property
    def partitions(self) -> Sequence[RestoredOffset]:
        """The offsets that the rollback changes, and those that it omits (``omitted``)."""
        return self.preview.partitions

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings that the user must see before the rollback."""
        return self.preview.warnings

    def execute(self, confirm: Callable[[], None] | None = None) -> ChangeOutcome:
        """Roll back, unless the group has changed since the preview.

        Args:
            confirm: called before anything is written; it may raise to stop the rollback.

        Raises:
            Refused: the rollback has refusals, the group has changed since the preview, or a file
                exists at ``rollback_path``; this call changed nothing.
            UsageError: no file can be written at ``rollback_path``.
            BrokerError, OSError: as in ``restore``; nothing was changed.
        """
        from migrate.targets.group.commit import ChangeOutcome
        from migrate.targets.group.rollback import restore

        if self.refusals:
            raise Refused(self.refusals)
        if not self.partitions:
            return ChangeOutcome(self.preview.file.group, (), None)
        check_new_file("rollback_file", self.rollback_path)
        if confirm is not None:
            confirm()
        group = self.preview.file.group
        with timed(f"bringing group {group} back"):
            return restore(self._config, self.preview, self.rollback_path, force=self._force)


def _history(file: Path, change: RollbackFile) -> Sequence[tuple[Path, RollbackFile]]:
    """Return the changes to the group whose rollback files are next to ``file``."""
    return rollback_files.history(
        [file.parent], change.cluster_id, change.group, ignore_unreadable=True
    )


def rollback(
    file: AnyPath,
    *,
    execute: bool = False,
    force: bool = False,
    rollback_file: AnyPath | None = None,
    **arguments: Unpack[KafkaArguments],
) -> GroupRollback:
    """Restore the offsets that a consumer group had before a change, from a rollback file.

    Without ``execute``, the call is a dry run. It returns the offsets that would change, and the
    reasons against the rollback; ``GroupRollback.execute`` then rolls back. The offsets are
    restored with their metadata and their leader epochs. If a partition had no committed offset
    before the change, its current offset is removed.

    Args:
        file: the rollback file.
        execute: True to roll back.
        force: True to roll back even if the group has newer commits or an offset is no longer in
            its log; offsets of deleted partitions are omitted.
        rollback_file: the file to which the group's current offsets are saved before the rollback;
            by default ``rollback-<group>-<time>.json`` next to ``file``.
        arguments: see ``KafkaArguments``; by default, the call uses the brokers that ``file``
            lists.

    Raises:
        Refused: the file was written for a different cluster; or, with ``execute``, there are other
            reasons against the rollback; nothing was changed.
        UsageError: the Kafka properties cannot be used.
        InputError: the file is not a rollback file of this version.
        BrokerError: the broker did not answer, or it denied the request.
        OSError: with ``execute``, as in ``GroupRollback.execute``.
    """
    from migrate.targets.group.rollback import read_preview

    file = local_path(os.fspath(file))
    change = rollback_files.read_to_apply(file)
    brokers = kafka(arguments)
    if not brokers.names_brokers:
        brokers = replace(brokers, bootstrap_servers=change.bootstrap_servers)
    config = brokers.config()
    with timed(f"asking {config['bootstrap.servers']} about group {change.group}"):
        preview = read_preview(config, change, _history(file, change))
    progress = _PROGRESS[preview.progress].format(f"this {change.change}", change.created_at)
    if preview.lost:
        topic, number = preview.lost[0]
        progress = (
            f"since this {change.change} of {change.created_at}, the group has lost the offsets of "
            f"{counted(len(preview.lost), 'partition')} (the first is {topic}-{number}), for "
            "example because the topic was deleted; a rollback restores the earlier offsets"
        )
    log.info(f"group {change.group}: {progress}")
    for warning in preview.warnings:
        log.warning(warning)
    if force and (omitted := [row.name for row in preview.partitions if row.omitted]):
        warn(EARLIER_OFFSETS_OMITTED(count=len(omitted), partitions=omitted))
    # Write the file next to ``file``, because ``commit-group`` searches the directory of its own
    # rollback file for changes.
    path = rollback_files.default_path(change.group, file.parent)
    if rollback_file is not None:
        path = local_path(os.fspath(rollback_file))
    refusals = (*preview.refusals, *(() if force else preview.unless_forced))
    planned = GroupRollback(preview, refusals, path, _config=config, _force=force)
    return replace(planned, outcome=planned.execute()) if execute else planned
