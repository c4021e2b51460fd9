"""Parse the names of the inputs ("sides") to a diff or a move, and read their positions.

The names are ``CHK``, ``group:NAME``, ``spark:DIR``, ``json:FILE``, ``csv:FILE``,
``csv:FILE#GROUP``, ``hudi:TEXT``, ``broker:earliest``, ``broker:latest``, and ``broker:TIME``.
`parse_side` reads no positions, so that an invalid name is reported before anything is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from decoder.urls import redact_url
from migrate.inputs.ask_broker import ask_group, ask_logs, broker_needed
from migrate.inputs.flink.extract import read
from migrate.inputs.group_csv import read_group_csv
from migrate.inputs.offsets_json import read_starting_offsets
from migrate.inputs.plan_input import ListedPositions, PlanInput, listed_source
from migrate.model.catalog import GROUP_MISSING, NO_COMMITTED_OFFSETS
from migrate.model.cluster_snapshot import GroupView
from migrate.model.errors import InputError, Refused, UsageError
from migrate.model.finding import Finding
from migrate.model.finding_catalog import GROUP_READS
from migrate.model.log import log, timed
from migrate.model.offset_metadata import with_client_metadata
from migrate.model.option_names import option
from migrate.model.policies import parse_time
from migrate.model.positions import Logs, Origin, PositionSet, Start, TopicPartition
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import METADATA_OF_CLIENT
from migrate.model.wording import did_you_mean, with_known_prefix
from migrate.storage.files import Files
from migrate.storage.uris import AnyPath, check_no_credentials, local_path, path_of

if TYPE_CHECKING:
    from migrate.kafka.config import KafkaConfig


class SideKind(str, Enum):
    """The kind of a side, and the prefix of its name; a checkpoint has no prefix."""

    CHECKPOINT = "checkpoint"
    GROUP = "group"
    SPARK = "spark"
    JSON = "json"
    CSV = "csv"
    HUDI = "hudi"
    BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Side:
    """The parsed name of a side.

    Attributes:
        label: the name with its prefix.
        what: the name without its prefix (a checkpoint pointer, a group name, a Spark query
            directory, a file path, a Hudi Streamer text, ``earliest``, ``latest``, or a time).
        time_ms: the time of ``broker:TIME`` in epoch milliseconds; None for other sides.
    """

    kind: SideKind
    label: str
    what: str
    time_ms: int | None = None


_UNKNOWN_PREFIX = re.compile(r"(?!file:)[a-z-]+:(?!/)")
SIDE_PREFIXES = {kind.value for kind in SideKind if kind is not SideKind.CHECKPOINT}
FILE_READERS: Mapping[SideKind, Callable[[str, Path], PositionSet]] = {
    SideKind.JSON: read_starting_offsets,
    SideKind.CSV: read_group_csv,
}


def parse_side(side: AnyPath) -> Side:
    """Parse the name of a side; the name of a checkpoint has no prefix.

    Raises:
        UsageError: the prefix is invalid, or nothing follows it; ``broker:`` is not followed by
            ``earliest``, ``latest``, or a time; or ``local_path`` raises it.
        InputError: a URI contains credentials, or the URI of a Spark query has an unknown scheme.
    """
    name = os.fspath(side)
    prefix, _, what = name.partition(":")
    if prefix != SideKind.GROUP.value:
        check_no_credentials(name, InputError)
    if prefix == "plan":
        raise UsageError(
            f"{name}: only verify accepts a plan:FILE argument; pass the plan's savepoint or "
            f"spark:DIR, or apply the plan with to-spark or commit-group ({option('plan', 'FILE')})"
        )
    if prefix not in SIDE_PREFIXES:
        exists = os.path.exists(name)
        if not exists and (similar := with_known_prefix(name, SIDE_PREFIXES)):
            raise UsageError(f"{name}: the kind of input is unknown; did you mean {similar}?")
        if _UNKNOWN_PREFIX.match(name) and not exists:
            raise UsageError(
                f"{name}: the kind of input is unknown; pass CHK without a prefix, group:NAME, "
                "spark:DIR, json:FILE, csv:FILE, hudi:TEXT, broker:earliest, broker:latest, or "
                "broker:TIME"
            )
        return Side(SideKind.CHECKPOINT, name, name)
    if not what:
        raise UsageError(f"{name!r} is incomplete; add a value after {prefix}:")
    kind = SideKind(prefix)
    if kind is SideKind.JSON and what.lstrip().startswith(("{", "[")):
        raise UsageError(
            "the prefix json: requires the name of a file, but the argument is JSON text; save "
            "this text to a file, and pass the file name, for example json:offsets.json"
        )
    if kind in FILE_READERS:
        return Side(kind, name, str(local_path(what)))
    if kind is SideKind.SPARK:
        return Side(kind, name, path_of(what, Files()))
    if kind is not SideKind.BROKER or what in ("earliest", "latest"):
        return Side(kind, name, what)
    try:
        return Side(kind, name, what, parse_time(what, "broker:"))
    except UsageError as error:
        raise UsageError(f"{error}; or use broker:earliest or broker:latest") from error


def side_input(
    side: Side,
    broker: KafkaConfig | None,
    topics: Collection[str],
    *,
    allow_external_files: bool = False,
) -> PlanInput:
    """Read a side as the input to a plan.

    Args:
        side: the parsed name.
        broker: the librdkafka properties; None if the user did not specify a broker.
        topics: the topics of a ``broker:`` side.
        allow_external_files: as in ``read_checkpoint``, if the side is a checkpoint.

    Raises:
        Refused: the group has no committed offsets, or ``query_positions`` raises it.
        UsageError: the side requires a broker but the user did not specify one, or a ``broker:``
            side has no topics.
        DecodeError, InputError: the side cannot be read.
        BrokerError: the broker did not answer, or denied access.
    """
    pointer = name = side.label
    findings: tuple[Finding, ...] = ()
    match side.kind:
        case SideKind.CHECKPOINT:
            return read(side.what, allow_external_files=allow_external_files)
        case SideKind.SPARK:
            from migrate.inputs.spark_query import query_positions  # most moves read no query

            with timed(f"reading {redact_url(name)}"):
                return query_positions(name)
        case SideKind.GROUP:
            group = ask_group(broker, side.what)
            if warning := client_metadata_warning(group):
                log.warning(warning)
            positions = group_positions(name, group)
            if not positions.starts:
                if group.exists:
                    raise Refused(NO_COMMITTED_OFFSETS(group=group.name))
                raise Refused(GROUP_MISSING(group=group.name, alike=group.alike))
            if group.members:
                findings = (Finding(GROUP_READS(group=group.name, members=len(group.members))),)
        case SideKind.BROKER:
            if broker is None:
                raise broker_needed(side.label)
            if not topics:
                raise UsageError(
                    f"{name} contains no topics; list partitions with {option('partitions')}"
                )
            positions = broker_positions(side, ask_logs(broker, topics, side.time_ms))
        case _:
            positions = file_positions(side)
            is_file = side.kind in FILE_READERS
            what = Path(side.what).absolute() if is_file else side.what
            pointer = f"{side.kind.value}:{what}"
    source = listed_source(name, name, positions, starts_others=False)
    return ListedPositions(Origin("positions", pointer, 0), (source,), findings)


def client_metadata_warning(
    group: GroupView, known: Container[TopicPartition] = ()
) -> WarningText | None:
    """Return a warning if the group's client may have processed records beyond its offsets.

    Args:
        group: the group.
        known: partitions whose metadata was not written by the group's client.
    """
    partitions = [place for place in with_client_metadata(group.committed) if place not in known]
    if not partitions:
        return None
    topic, number = partitions[0]
    return WarningText(
        METADATA_OF_CLIENT(group=group.name, count=len(partitions), partition=f"{topic}-{number}")
    )


def group_positions(label: str, group: GroupView) -> PositionSet:
    """Return the committed offsets of a consumer group in all of its topics."""
    starts = {place: committed.next_offset for place, committed in group.committed.items()}
    note = "" if group.exists else "the group does not exist" + did_you_mean(group.alike)
    return PositionSet(label, starts, note)


def file_positions(side: Side) -> PositionSet:
    """Read the file of a ``json:`` or ``csv:`` side, or the text of a ``hudi:`` side."""
    if side.kind is SideKind.HUDI:
        # Imported here, because most moves do not read Hudi text.
        from migrate.inputs.hudi_text import read_hudi_text

        return read_hudi_text(side.label, side.what)
    return FILE_READERS[side.kind](side.label, Path(side.what))


def broker_positions(side: Side, logs: Logs) -> PositionSet:
    """Return the positions of a ``broker:`` side.

    ``logs`` must be the result of a query with the time ``side.time_ms``.
    """
    starts: dict[TopicPartition, Start] = {}
    for topic, partitions in logs.items():
        for partition, kept in partitions.items():
            start = {"earliest": kept.start, "latest": kept.end}.get(side.what, kept.first_at)
            if start is not None:
                starts[topic, partition] = start
    return PositionSet(side.label, starts)
