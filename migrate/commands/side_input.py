"""A side as what a plan is made from, whichever it is."""

from __future__ import annotations

from collections.abc import Collection

from decoder.urls import shown_url
from migrate.cluster_snapshot import GroupView
from migrate.comparing.group_csv import read_group_csv
from migrate.comparing.sides import (
    Ask,
    Side,
    SideKind,
    ask_group,
    ask_logs,
    log_end_side,
    needs_a_broker,
    parse_side,
)
from migrate.errors import Refused, UsageError
from migrate.flink.choose_source import Reading
from migrate.flink.extract import Code, Finding, PlanInput, Severity
from migrate.flink.listed import ListedPositions, listed_source
from migrate.flink.read import read
from migrate.log import timed
from migrate.positions import Origin, PositionSet, group_positions
from migrate.spark.offsets_json import read_starting_offsets
from migrate.spark.query import query_positions
from migrate.storage.files import local_path
from migrate.wording import counted


def side_input(name: str, how: Reading, ask: Ask | None, topics: Collection[str]) -> PlanInput:
    """What a side is, as a plan takes it.

    Args:
        how: how a checkpoint is read.
        ask: asks the broker, or None without one.
        topics: those that a ``broker:`` side is to tell of.

    Raises:
        Refused: the query or the group has not committed anything.
        UsageError: it is not named as a side, or needs a broker.
        InputError: credentials in a URL.
        DecodeError, UnreadableInput: it cannot be read.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    side = parse_side(name)
    if side.kind is SideKind.CHECKPOINT:
        return read(side.what, how)
    if side.kind is SideKind.SPARK:
        with timed(f"reading {shown_url(name)}"):
            return query_positions(name)
    if side.kind is SideKind.GROUP:
        group = ask_group(ask, side)
        positions = group_positions(name, group)
        if not positions.starts:
            raise Refused([f"{name} has committed nothing" + _note(positions)])
        return _listed(side, name, positions, _about_members(group))
    if side.kind is SideKind.BROKER:
        return _listed(side, name, _log_ends(side, ask, topics))
    file = local_path(side.what)
    read_file = read_starting_offsets if side.kind is SideKind.JSON else read_group_csv
    return _listed(side, f"{side.kind.value}:{file.absolute()}", read_file(name, file))


def _listed(
    side: Side, pointer: str, positions: PositionSet, findings: tuple[Finding, ...] = ()
) -> ListedPositions:
    source = listed_source(side.label, side.label, positions, starts_others=False)
    return ListedPositions(Origin("positions", pointer, 0), (source,), findings)


def _note(positions: PositionSet) -> str:
    return f": {positions.note}" if positions.note else ""


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
