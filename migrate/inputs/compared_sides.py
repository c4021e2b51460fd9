"""The two sides of a diff, loaded together.

The broker is queried for the log range (start and end) of each partition of the topics on both
sides. A ``broker:`` side has the same topics as the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from decoder import CheckpointKind
from migrate.inputs.ask_broker import ask_group, ask_logs, broker_needed
from migrate.inputs.flink.choose_source import ANY_SOURCE, Choice, choose, source_positions
from migrate.inputs.flink.extract import read
from migrate.inputs.position_inputs import (
    Side,
    SideKind,
    broker_positions,
    client_metadata_warning,
    file_positions,
    group_positions,
)
from migrate.inputs.spark_log import committed_positions
from migrate.inputs.spark_query import location_warnings, output_warning
from migrate.model.errors import UsageError
from migrate.model.finding import Severity
from migrate.model.positions import CLOCK_DIFFERENCE, Logs, PositionSet, log_of
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import NO_SUCH_GROUP, PARTITIONS_ABSENT
from migrate.storage.files import Files
from migrate.storage.suggest_path import suggesting_group

if TYPE_CHECKING:
    from migrate.kafka.config import KafkaConfig


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of a diff, the log ranges of their topics, and warnings."""

    left: PositionSet
    right: PositionSet
    logs: Logs
    warnings: tuple[WarningText, ...]


def load_sides(
    left: Side,
    right: Side,
    broker: KafkaConfig | None,
    choice: Choice = ANY_SOURCE,
    *,
    left_broker: KafkaConfig | None = None,
    translate: Callable[[PositionSet, PositionSet], PositionSet] | None = None,
) -> Sides:
    """Read both sides of a diff.

    ``left_broker`` is required only if the two sides are in different clusters. ``translate`` takes
    both sides, and returns the left side's positions in the right side's cluster.

    Raises:
        UsageError: a side requires a broker but the user did not specify one, or both sides are
            ``broker:``.
        NoSuchName: a checkpoint has no Kafka source, or lacks the chosen source or cluster.
        InputError, DecodeError: a side cannot be read.
        Refused: a side has two different positions for one partition, or positions in several
            clusters.
        BrokerError: the broker did not answer, or denied access.
    """
    if left.kind is right.kind is SideKind.BROKER:
        raise UsageError(
            "both inputs have the prefix `broker:`; replace one of them with an input that "
            "contains topics"
        )
    for side in (left, right):
        if broker is None and side.kind in (SideKind.GROUP, SideKind.BROKER):
            raise broker_needed(side.label)
    warnings: list[WarningText] = []
    # The two ``Side`` objects may be equal, for example for groups with the same name in two
    # clusters.
    loaded = [
        _load(side, own_broker, choice, warnings)
        for side, own_broker in ((left, left_broker or broker), (right, broker))
    ]
    if translate is not None:
        loaded[0] = translate(loaded[0], loaded[1])
    time_ms = left.time_ms if left.time_ms is not None else right.time_ms
    since = _since(loaded) if translate is None else None
    logs = ask_logs(broker, loaded[0].topics | loaded[1].topics, time_ms, since)
    for index, side in enumerate((left, right)):
        positions = loaded[index]
        if side.kind is SideKind.BROKER:
            loaded[index] = broker_positions(side, logs)
        elif (
            index == 0  # only a move from a query duplicates its output, and a move is from LEFT
            and side.kind is SideKind.SPARK
            and not _is_at_the_end(positions, logs)
            and (warning := output_warning(side.what, Files()))
        ):
            warnings.append(WarningText(warning.about(side.label)))
    if broker is not None:
        for positions in loaded:
            warnings += _absent_partitions(positions, logs)
    return Sides(loaded[0], loaded[1], logs, tuple(dict.fromkeys(warnings)))


def _since(sides: Iterable[PositionSet]) -> int | None:
    """Return a time at which every checkpoint among the sides was complete; None if unknown."""
    times = [side.written_at for side in sides if side.written_at is not None]
    return max(times) + round(1000 * CLOCK_DIFFERENCE) if times else None


def _absent_partitions(positions: PositionSet, logs: Logs) -> Iterator[WarningText]:
    """Yield a warning if the broker lacks partitions of a side."""
    absent = [
        f"{topic}-{partition}"
        for topic, partition in sorted(positions.starts)
        if log_of(logs, topic, partition) is None
    ]
    if absent:
        message = PARTITIONS_ABSENT(side=positions.label, count=len(absent), partition=absent[0])
        yield WarningText(message)


def _is_at_the_end(positions: PositionSet, logs: Logs) -> bool:
    """Return whether every position is at the end of its log."""
    return all(
        (log := log_of(logs, topic, partition)) is not None and start == log.end
        for (topic, partition), start in positions.starts.items()
    )


def _load(
    side: Side, broker: KafkaConfig | None, choice: Choice, warnings: list[WarningText]
) -> PositionSet:
    """Return a side's positions (none for ``broker:``), and add its warnings to ``warnings``."""
    match side.kind:
        case SideKind.CHECKPOINT:
            with suggesting_group(side.what):
                extraction = read(side.what, allow_external_files=choice.allow_external_files)
            warnings += [  # findings that block a move do not block a comparison
                WarningText(finding.message.about(side.label))
                for finding in extraction.findings
                if finding.severity is Severity.BLOCKER
            ]
            kind = extraction.checkpoint.type.kind
            name = "snapshot" if kind is CheckpointKind.UNKNOWN else kind.value
            note = f"{name} {extraction.checkpoint.checkpoint_id}"
            positions = source_positions(side.label, choose(extraction, choice), note)
            return replace(positions, written_at=extraction.origin.written_at)
        case SideKind.GROUP:
            group = ask_group(broker, side.what)
            positions = group_positions(side.label, group)
            if warning := client_metadata_warning(group):
                warnings.append(warning)
            if positions.note:
                warnings.append(WarningText(NO_SUCH_GROUP(side=side.label, alike=group.alike)))
            return positions
        case SideKind.SPARK:
            positions = committed_positions(side.label, side.what)
            warnings += [
                WarningText(finding.message.about(side.label))
                for finding in location_warnings(side.what, Files())
            ]
            return positions
        case SideKind.BROKER:
            return PositionSet(side.label, {})
        case _:
            return file_positions(side)
