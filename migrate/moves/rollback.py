"""``rollback``: a consumer group brought back to what it held before a change."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.model.errors import Refused
from migrate.model.log import log, timed
from migrate.moves.options import Kafka, kafka
from migrate.storage.uris import local_path
from migrate.targets.group import rollback_file as rollback_files
from migrate.targets.group.rollback_file import check_rollback_path

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.kafka.config import KafkaConfig
    from migrate.moves.options import AnyPath, KafkaArguments
    from migrate.targets.group.commit import ChangeOutcome
    from migrate.targets.group.rollback_decision import RestoredOffset, RollbackPreview


@dataclass(frozen=True, slots=True)
class GroupRollback:
    """A change to a consumer group that is taken back: before, and once done, its outcome.

    Attributes:
        preview: the change, how far it came, the group as it is, and what it is to hold.
        refusals: why it must not be done, a line each.
        rollback_path: where what the group holds is written before it is changed.
        outcome: what came of it; None as long as it was not done.
    """

    preview: RollbackPreview
    refusals: tuple[str, ...]
    rollback_path: Path
    outcome: ChangeOutcome | None = None
    _file: Path = field(repr=False, kw_only=True)
    _config: KafkaConfig = field(repr=False, kw_only=True)
    _force: bool = field(repr=False, kw_only=True)

    @property
    def partitions(self) -> Sequence[RestoredOffset]:
        """What changes, partition by partition."""
        return self.preview.partitions

    @property
    def warnings(self) -> Sequence[str]:
        """What else must be known."""
        return self.preview.warnings

    def execute(self, confirm: Callable[[], None] | None = None) -> ChangeOutcome:
        """Do it, unless something has moved since it was looked at.

        Args:
            confirm: called when all is looked at and nothing is written; it may raise.

        Raises:
            Refused: it must not be done, or no longer; nothing was changed.
            UsageError: the rollback file cannot be written.
            BrokerError, OSError: as for ``restore``; nothing was changed.
        """
        from migrate.targets.group.commit import ChangeOutcome
        from migrate.targets.group.rollback import restore

        if self.refusals:
            raise Refused(self.refusals)
        if not self.partitions:
            return ChangeOutcome(self.preview.file.group, (), None)
        check_rollback_path(self.rollback_path)
        if confirm is not None:
            confirm()
        group = self.preview.file.group
        with timed(f"bringing group {group} back"):
            return restore(
                self._config, self._file, self.preview, self.rollback_path, force=self._force
            )


def rollback(
    file: AnyPath,
    *,
    execute: bool = False,
    force: bool = False,
    rollback_file: AnyPath | None = None,
    **arguments: Unpack[KafkaArguments],
) -> GroupRollback:
    """Bring a consumer group back to what it held before a change, by its rollback file.

    Without ``execute`` a dry run: what would come back, and what speaks against it;
    ``GroupRollback.execute`` does it then. Offsets, their metadata and their leader epochs come
    back as they were, and where there was none there will be none.

    Args:
        file: the rollback file.
        execute: do it.
        force: go back although the group has moved on since, or an offset is no longer one of its
            log; what belongs to no partition is left out.
        rollback_file: where what the group holds is written before it is changed; by default
            ``rollback-<group>-<time>.json`` beside ``file``.
        arguments: see ``KafkaArguments``; by default the brokers that ``file`` names.

    Raises:
        Refused: with ``execute``, what must not be done; nothing was changed.
        UsageError: Kafka properties that cannot be used as given.
        InputError: it is no rollback file of this version.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    from migrate.targets.group.rollback import read_preview

    file = local_path(os.fspath(file))
    change = rollback_files.read(file)
    config = _brokers(change.bootstrap_servers, arguments).config()
    with timed(f"asking {config['bootstrap.servers']} about group {change.group}"):
        preview = read_preview(config, file, change)
    log.info(
        f"group {change.group}, {change.change} of {change.created_at}: {preview.progress.value}"
    )
    for warning in preview.warnings:
        log.warning(warning)
    found = GroupRollback(
        preview,
        (*preview.refusals, *(() if force else preview.unless_forced)),
        # Beside the file that it follows: a later run looks for both there.
        local_path(os.fspath(rollback_file))
        if rollback_file is not None
        else rollback_files.default_path(change.group, file.parent),
        _file=file,
        _config=config,
        _force=force,
    )
    return replace(found, outcome=found.execute()) if execute else found


def _brokers(named: str, arguments: KafkaArguments) -> Kafka:
    """Return the brokers of the arguments or, without any, those that the file names."""
    asked = kafka(arguments)
    return asked if asked.names_brokers else replace(asked, bootstrap_servers=named)
