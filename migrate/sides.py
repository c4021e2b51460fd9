"""The two sides of a diff, from their names to positions.

``CHK`` · ``group:NAME`` · ``spark:DIR`` · ``json:FILE`` · ``csv:FILE`` · ``broker:earliest`` ·
``broker:latest``

A name is first only understood (`parse_side`), so that what is wrong with it shows before anything
is read or asked. Then both sides are loaded together (`load_sides`): the broker is asked for the
topics that either of them names, and a ``broker:`` side for those of the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from typing_extensions import assert_never

from decoder import Checkpoint, read_checkpoint
from decoder.metadata.model import CheckpointKind
from migrate.choose import choose_cluster, choose_sources
from migrate.errors import UsageError
from migrate.extract import Extraction, Severity, extract
from migrate.position_files import read_group_csv, read_starting_offsets
from migrate.position_set import (
    Logs,
    PositionSet,
    group_positions,
    log_ends,
    log_starts,
    source_positions,
)
from migrate.snapshot import BrokerError, ClusterSnapshot, GroupView
from migrate.spark_progress import committed_positions
from migrate.storage import Files

# What a broker may be asked about; a file may hold any name.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")

# Asks a broker for the log ranges of topics, and for a group: ``broker.take_snapshot``, configured.
Ask: TypeAlias = Callable[[Iterable[str], str | None], ClusterSnapshot]


class BadSide(UsageError):
    """A side that is not named as one, or that cannot be had with what else was given."""


class LogEnd(str, Enum):
    """Which end of every log a ``broker:`` side is."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class CheckpointSide:
    label: str
    pointer: str


@dataclass(frozen=True, slots=True)
class GroupSide:
    label: str
    group: str


@dataclass(frozen=True, slots=True)
class SparkSide:
    label: str
    directory: str


@dataclass(frozen=True, slots=True)
class JsonSide:
    label: str
    path: Path


@dataclass(frozen=True, slots=True)
class CsvSide:
    label: str
    path: Path


@dataclass(frozen=True, slots=True)
class BrokerSide:
    label: str
    end: LogEnd


Side: TypeAlias = CheckpointSide | GroupSide | SparkSide | JsonSide | CsvSide | BrokerSide


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides, what the broker said of their topics, and what to know of the checkpoints."""

    left: PositionSet
    right: PositionSet
    logs: Logs
    warnings: tuple[str, ...]


def parse_side(name: str) -> Side:
    """Understand the name of a side; what has no kind before a colon is a checkpoint.

    Raises:
        BadSide: nothing follows the kind, or ``broker:`` has no such end.
    """
    kind, _, rest = name.partition(":")
    match kind:
        case "group" | "spark" | "json" | "csv" | "broker" if not rest:
            raise BadSide(f"{name!r}: nothing follows {kind}:")
        case "group":
            return GroupSide(name, rest)
        case "spark":
            return SparkSide(name, rest)
        case "json":
            return JsonSide(name, Path(rest))
        case "csv":
            return CsvSide(name, Path(rest))
        case "broker":
            try:
                return BrokerSide(name, LogEnd(rest))
            except ValueError as error:
                raise BadSide(f"{name!r}: broker:earliest or broker:latest") from error
        case _:
            return CheckpointSide(name, name)


def load_sides(
    left: Side,
    right: Side,
    ask: Ask | None,
    source: str | None = None,
    cluster: str | None = None,
    *,
    allow_external_files: bool = False,
) -> Sides:
    """Read both sides.

    Args:
        left: one side.
        right: the other.
        ask: asks the broker, or None without one.
        source: which source of a checkpoint is meant, as for ``choose_sources``.
        cluster: which cluster of a DynamicKafkaSource, as for ``choose_cluster``.
        allow_external_files: as for ``read_checkpoint``.

    Raises:
        BadSide: a side needs a broker and there is none, or both sides are ``broker:`` ones.
        NoSuchSource: a checkpoint has no such source.
        UnreadableInput, DecodeError: what a side names cannot be read.
        AmbiguousPositions: a side holds a partition twice.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    if isinstance(left, BrokerSide) and isinstance(right, BrokerSide):
        raise BadSide("both sides are the broker: one of them must name the topics")
    for side in (left, right):
        if ask is None and isinstance(side, GroupSide | BrokerSide):
            raise _needs_a_broker(side.label)
    warnings: list[str] = []
    named = {
        side: _load(side, ask, source, cluster, allow_external_files, warnings)
        for side in (left, right)
        if not isinstance(side, BrokerSide)
    }
    logs = ask_logs(ask, set().union(*(loaded.topics for loaded in named.values())))

    def positions(side: Side) -> PositionSet:
        if not isinstance(side, BrokerSide):
            return named[side]
        match side.end:
            case LogEnd.EARLIEST:
                return log_starts(side.label, logs)
            case LogEnd.LATEST:
                return log_ends(side.label, logs)
            case _:
                assert_never(side.end)

    return Sides(positions(left), positions(right), logs, tuple(dict.fromkeys(warnings)))


def ask_logs(ask: Ask | None, topics: Iterable[str]) -> Logs:
    """The log ranges of those topics that the broker has; none without a broker."""
    # Asked for a name that no topic can have, a broker refuses the whole request.
    possible = {topic for topic in topics if _TOPIC.fullmatch(topic)}
    return ask(possible, None).topics if ask is not None and possible else {}


def ask_group(ask: Ask | None, side: GroupSide) -> GroupView:
    """The group of a side.

    Raises:
        BadSide: there is no broker to ask.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    if ask is None:
        raise _needs_a_broker(side.label)
    group = ask((), side.group).source_group
    if group is None:
        raise BrokerError(f"the broker did not tell of group {side.group}")
    return group


def _needs_a_broker(label: str) -> BadSide:
    return BadSide(f"{label} needs a broker: add --bootstrap-servers HOST:PORT")


def _load(
    side: CheckpointSide | GroupSide | SparkSide | JsonSide | CsvSide,
    ask: Ask | None,
    source: str | None,
    cluster: str | None,
    allow_external_files: bool,
    warnings: list[str],
) -> PositionSet:
    match side:
        case CheckpointSide():
            extraction = extract(
                read_checkpoint(side.pointer, Files(), allow_external_files=allow_external_files)
            )
            warnings += _blockers(side.label, extraction)
            chosen = choose_cluster(choose_sources(extraction, source), cluster)
            return source_positions(side.label, chosen, _kind_and_id(extraction.checkpoint))
        case GroupSide():
            return group_positions(side.label, ask_group(ask, side))
        case SparkSide():
            return committed_positions(side.label, side.directory)
        case JsonSide():
            return read_starting_offsets(side.label, side.path)
        case CsvSide():
            return read_group_csv(side.label, side.path)
        case _:
            assert_never(side)


def _kind_and_id(checkpoint: Checkpoint) -> str:
    kind = checkpoint.type.kind
    name = "snapshot" if kind is CheckpointKind.UNKNOWN else kind.value
    return f"{name} {checkpoint.checkpoint_id}"


def _blockers(label: str, extraction: Extraction) -> list[str]:
    """What would stop a move from this checkpoint; its positions can be looked at all the same."""
    return [
        f"{label}: {finding.message}"
        for finding in extraction.findings
        if finding.severity is Severity.BLOCKER
    ]
