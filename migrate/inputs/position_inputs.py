"""A side of a diff or a move, from its name to positions.

``CHK`` · ``group:NAME`` · ``spark:DIR`` · ``json:FILE`` · ``csv:FILE`` · ``broker:earliest`` ·
``broker:latest`` · ``broker:TIME``

A name is first only understood (`parse_side`), so that what is wrong with it shows before anything
is read or asked. Then both sides are loaded together (`load_sides`): the broker is asked for the
topics that either of them names, and a ``broker:`` side for those of the other. A side to move from
is loaded by itself, as a plan takes it (`side_input`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from decoder import Checkpoint, CheckpointKind
from decoder.urls import redact_url
from migrate.inputs.flink.choose_source import ANY_SOURCE, Choice, Reading, choose, source_positions
from migrate.inputs.flink.extract import (
    Code,
    Extraction,
    Finding,
    ListedPositions,
    PlanInput,
    Severity,
    listed_source,
)
from migrate.inputs.flink.read import read
from migrate.inputs.group_csv import read_group_csv
from migrate.inputs.offsets_json import read_starting_offsets
from migrate.inputs.spark_log import committed_positions
from migrate.inputs.spark_query import output_warning, query_positions
from migrate.model.cluster_snapshot import BrokerError, ClusterSnapshot, GroupView
from migrate.model.errors import InputError, Refused, UsageError
from migrate.model.log import timed
from migrate.model.policies import milliseconds_of
from migrate.model.positions import (
    Logs,
    Origin,
    PositionSet,
    group_positions,
    log_at,
    log_ends,
    log_starts,
)
from migrate.model.wording import counted
from migrate.storage.files import Files, check_no_credentials, local_path, path_of

# What a broker may be asked about; a file may hold any name.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
# What a ``broker:`` side may be: one end of every log; else it is a time.
_LOG_ENDS = {"earliest": log_starts, "latest": log_ends}


class Ask(Protocol):
    """Asks a broker for the log ranges of topics, and for a group: ``broker.take_snapshot``,
    configured. ``at`` is a time in milliseconds of the epoch (``LogRange.first_at``)."""

    def __call__(
        self, topics: Iterable[str], group: str | None, at: int | None = None
    ) -> ClusterSnapshot: ...


class SideKind(str, Enum):
    """What a side is; the name of all but a checkpoint begins with it."""

    CHECKPOINT = "checkpoint"
    GROUP = "group"
    SPARK = "spark"
    JSON = "json"
    CSV = "csv"
    BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Side:
    """A side as it was named.

    Attributes:
        label: its whole name.
        what: which one of its kind: a checkpoint's pointer, a group's name, a Spark query's
            directory, a file's path, ``earliest``, ``latest`` or a time.
        at: the time of a ``broker:`` side, in milliseconds of the epoch; None where it is an end.
    """

    kind: SideKind
    label: str
    what: str
    at: int | None = None


_PREFIXES = {kind.value for kind in SideKind if kind is not SideKind.CHECKPOINT}


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
        UsageError: nothing follows the kind, or ``broker:`` names neither an end nor a time.
        InputError: a Spark query by a URI of a kind that is not read, or credentials in one.
    """
    prefix, _, what = name.partition(":")
    if prefix != SideKind.GROUP.value:
        check_no_credentials(name, InputError)
    if prefix not in _PREFIXES:
        return Side(SideKind.CHECKPOINT, name, name)
    if not what:
        raise UsageError(f"{name!r}: nothing follows {prefix}:")
    kind = SideKind(prefix)
    if kind is SideKind.SPARK:
        return Side(kind, name, path_of(what, Files()))
    return Side(kind, name, what, _time_of(name, what) if kind is SideKind.BROKER else None)


def _time_of(name: str, what: str) -> int | None:
    if what in _LOG_ENDS:
        return None
    try:
        return milliseconds_of(what, "broker:")
    except UsageError as error:
        raise UsageError(
            f"{name!r}: broker:earliest, broker:latest or broker:TIME, as 2026-11-20T18:00:00Z"
        ) from error


def load_sides(
    left: Side,
    right: Side,
    ask: Ask | None,
    choice: Choice = ANY_SOURCE,
) -> Sides:
    """Read both sides.

    Args:
        left: one side.
        right: the other.
        ask: asks the broker, or None without one.
        choice: which source of a checkpoint is meant.

    Raises:
        UsageError: a side needs a broker and there is none, or both sides are ``broker:`` ones.
        NoSuchName: a checkpoint has no such source.
        InputError, DecodeError: what a side names cannot be read.
        Refused: a side holds a partition twice.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    if left.kind is right.kind is SideKind.BROKER:
        raise UsageError("both sides are the broker: one of them must name the topics")
    for side in (left, right):
        if ask is None and side.kind in (SideKind.GROUP, SideKind.BROKER):
            raise needs_a_broker(side.label)
    warnings: list[str] = []
    loaded = {side: _load(side, ask, choice, warnings) for side in (left, right)}
    at = left.at if left.at is not None else right.at
    logs = ask_logs(ask, loaded[left].topics | loaded[right].topics, at)
    warnings += [
        f"{side.label}: {told}"
        for side in (left, right)
        if side.kind is SideKind.SPARK
        and not _at_the_end(loaded[side], logs)
        and (told := output_warning(side.what, Files()))
    ]

    def positions(side: Side) -> PositionSet:
        if side.kind is SideKind.BROKER:
            return log_end_side(side, logs)
        return loaded[side]

    return Sides(positions(left), positions(right), logs, tuple(dict.fromkeys(warnings)))


def log_end_side(side: Side, logs: Logs) -> PositionSet:
    """What a ``broker:`` side is, of these logs, for which its time was asked."""
    return _LOG_ENDS.get(side.what, log_at)(side.label, logs)


def _at_the_end(positions: PositionSet, logs: Logs) -> bool:
    """Whether no record lies beyond."""
    return all(
        (log := logs.get(topic, {}).get(partition)) is not None and start == log.end
        for (topic, partition), start in positions.starts.items()
    )


def ask_logs(ask: Ask | None, topics: Iterable[str], at: int | None = None) -> Logs:
    """The log ranges of those topics that the broker has; none without a broker.

    Args:
        at: a time whose first records are asked for, too.
    """
    possible = possible_topics(topics)
    return ask(possible, None, at).topics if ask is not None and possible else {}


def possible_topics(topics: Iterable[str]) -> set[str]:
    """Without names that no topic can have: asked for one, a broker refuses the whole request."""
    return {topic for topic in topics if _TOPIC.fullmatch(topic)}


def ask_group(ask: Ask | None, side: Side) -> GroupView:
    """The group of a ``group:`` side.

    Raises:
        UsageError: there is no broker to ask.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    if ask is None:
        raise needs_a_broker(side.label)
    group = ask((), side.what).source_group
    if group is None:
        raise BrokerError(f"the broker did not tell of group {side.what}")
    return group


def needs_a_broker(label: str) -> UsageError:
    """That a side cannot be had without one."""
    return UsageError(f"{label} needs a broker: add --bootstrap-servers HOST:PORT")


def _load(
    side: Side,
    ask: Ask | None,
    choice: Choice,
    warnings: list[str],
) -> PositionSet:
    match side.kind:
        case SideKind.CHECKPOINT:
            extraction = read(side.what, choice)
            warnings += _blockers(side.label, extraction)
            chosen = choose(extraction, choice)
            return source_positions(side.label, chosen, _kind_and_id(extraction.checkpoint))
        case SideKind.GROUP:
            positions = group_positions(side.label, ask_group(ask, side))
            warnings += [f"{side.label}: {positions.note}"] if positions.note else []
            return positions
        case SideKind.SPARK:
            return committed_positions(side.label, side.what)
        case SideKind.JSON | SideKind.CSV:
            return _of_a_file(side)
        case SideKind.BROKER:
            return PositionSet(side.label, {})  # that of the other side's topics, once it is asked


def _of_a_file(side: Side) -> PositionSet:
    read_file = read_starting_offsets if side.kind is SideKind.JSON else read_group_csv
    return read_file(side.label, local_path(side.what))


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


# -- a side to move from ------------------------------------------------------------------------


def side_input(side: Side, how: Reading, ask: Ask | None, topics: Collection[str]) -> PlanInput:
    """What a side is, as a plan takes it.

    Args:
        how: how a checkpoint is read.
        ask: asks the broker, or None without one.
        topics: those that a ``broker:`` side is to tell of.

    Raises:
        Refused: the query or the group has not committed anything.
        UsageError: it needs a broker.
        DecodeError, InputError: it cannot be read.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    pointer = name = side.label
    findings: tuple[Finding, ...] = ()
    match side.kind:
        case SideKind.CHECKPOINT:
            return read(side.what, how)
        case SideKind.SPARK:
            with timed(f"reading {redact_url(name)}"):
                return query_positions(name)
        case SideKind.GROUP:
            group = ask_group(ask, side)
            positions = group_positions(name, group)
            if not positions.starts:
                note = f": {positions.note}" if positions.note else ""
                raise Refused(f"{name} has committed nothing{note}")
            findings = _about_members(group)
        case SideKind.BROKER:
            positions = _log_ends(side, ask, topics)
        case SideKind.JSON | SideKind.CSV:
            positions = _of_a_file(side)
            pointer = f"{side.kind.value}:{local_path(side.what).absolute()}"
    source = listed_source(name, name, positions, starts_others=False)
    return ListedPositions(Origin("positions", pointer, 0), (source,), findings)


def _log_ends(side: Side, ask: Ask | None, topics: Collection[str]) -> PositionSet:
    if ask is None:
        raise needs_a_broker(side.label)
    if not topics:
        raise UsageError(f"{side.label} names no topic: name partitions with --partitions")
    return log_end_side(side, ask_logs(ask, topics, side.at))


def _about_members(group: GroupView) -> tuple[Finding, ...]:
    if not group.members:
        return ()
    return (
        Finding(
            Code.GROUP_READS,
            Severity.BLOCKER,
            None,
            f"group {group.name!r} has {counted(len(group.members), 'member')}: its consumers go "
            "on reading, and what they read since would be read again",
        ),
    )
