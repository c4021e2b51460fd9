"""``to_flink``: a savepoint with other positions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from decoder.urls import shown_url
from migrate.cluster_snapshot import ClusterSnapshot
from migrate.commands.plan import plan_found
from migrate.commands.shared_options import Request, move_request
from migrate.commands.side_input import side_input
from migrate.commands.survey import asker, look
from migrate.errors import Refused, UsageError
from migrate.flink.choose_source import choose
from migrate.flink.extract import PlanInput, Source
from migrate.flink.read import read
from migrate.log import log, timed
from migrate.planning import Plan, PlannedPartition, Refusal, plan_lines
from migrate.planning.savepoint import (
    about_the_savepoint,
    about_the_state,
    left_out,
    of_topics,
    source_change,
)
from migrate.policy_options import Policies
from migrate.positions import SAVEPOINT
from migrate.savepoint import Place, write_savepoint
from migrate.spark.locations import LocalDirectory
from migrate.storage.files import is_uri, lies_within, local_path
from migrate.wording import counted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.commands.shared_options import AnyPath, MoveArguments


@dataclass(frozen=True, slots=True)
class NewSavepoint:
    """A savepoint that was written.

    Attributes:
        path: its directory, absolute.
        partitions: what was planned, by operator id; ``current`` is where the old one had it.
        warnings: what is not refused, and must be known.
    """

    path: Path
    partitions: Mapping[str, tuple[PlannedPartition, ...]] = field(repr=False)
    warnings: tuple[str, ...] = ()


class _Slot(NamedTuple):
    """A source of the savepoint in one cluster, and the side's sources that it goes on from."""

    source: Source
    cluster: str | None
    goes_on_from: Sequence[Source]


def to_flink(
    savepoint: AnyPath,
    *,
    from_side: str,
    out: AnyPath,
    allow_state_mismatch: bool = False,
    **arguments: Unpack[MoveArguments],
) -> NewSavepoint:
    """Write a new savepoint whose Kafka positions are those of a side; the old one is only read.

    Args:
        savepoint: a ``chk-<n>`` or savepoint directory, its ``_metadata``, or a job's checkpoint
            directory; a local path or a URL.
        from_side: a checkpoint, ``spark:DIR``, ``group:NAME``, ``json:FILE``, ``csv:FILE``,
            ``broker:earliest`` or ``broker:latest``.
        out: a new or empty local directory.
        allow_state_mismatch: go on with the state although it is that of other positions: what
            lies between is counted twice, or missing from it.
        arguments: see ``MoveArguments``; ``source`` and ``cluster`` choose of the savepoint.

    Raises:
        Refused: what would lose or repeat records is not allowed, the state cannot hold the
            positions, or ``out`` holds something; nothing was written.
        UsageError: arguments that do not go together, or name what is not there.
        DecodeError, UnreadableInput: one of both cannot be read.
        BrokerError: the broker did not answer, or denied what was asked.
        OSError: the directory cannot be written.
    """
    request = move_request(savepoint, SAVEPOINT, arguments)
    directory = _new_directory(out)
    old = read(str(request.chk), request)
    _check_outside(directory, old.checkpoint.pointer)
    chosen = choose(old, request)
    topics = {topic for source in chosen for topic in source.topics}
    side = side_input(from_side, request, asker(request.kafka), topics)
    slots = list(_slots(chosen, side, request.policies))
    if request.policies.topic_pattern is not None and len(slots) > 1:
        raise UsageError(
            "--topic-pattern: which of several sources would read a new topic is not known; choose "
            "one with --source"
        )
    used = list({id(one): one for slot in slots for one in slot.goes_on_from}.values())
    snapshot = look(request, side, used, also=old)
    log.info(f"{old.origin.title}: {old.origin.pointer}")
    which = "" if side.origin.kind == "positions" else f": {side.origin.title}"
    log.info(f"positions of {shown_url(from_side)}{which}")
    plans = [_plan(request, side, slot, snapshot) for slot in slots]
    changes = [
        source_change(slot.source, slot.cluster, plan, from_side, request.policies)
        for slot, plan in zip(slots, plans, strict=True)
    ]
    refusals, warnings = about_the_savepoint(
        old, chosen, snapshot, request.policies, named=request.source is not None
    )
    refusals += _clusters_unnamed(slots)
    refusals += _left_out(from_side, side, slots, request)
    refusals += [refusal for plan in plans for refusal in plan.refusals]
    refusals += [refusal for change in changes for refusal in change.refusals]
    mismatches, told = about_the_state(changes, old, allowed=allow_state_mismatch)
    refusals += mismatches
    _tell(slots, plans)
    warnings += [*told, *(text for plan in plans for text in plan.warnings)]
    for warning in dict.fromkeys(warnings):
        log.warning(warning)
    if refusals:
        raise Refused(list(dict.fromkeys(map(str, refusals))))
    wanted: dict[str, dict[Place, int | None]] = {}
    partitions: dict[str, tuple[PlannedPartition, ...]] = {}
    for change in changes:
        wanted.setdefault(change.operator_id, {}).update(change.wanted)
        partitions[change.operator_id] = (
            *partitions.get(change.operator_id, ()),
            *change.partitions,
        )
    with timed(f"writing {directory}"):
        write_savepoint(
            old.checkpoint, wanted, directory, allow_external_files=request.allow_external_files
        )
    changed = sum(map(len, wanted.values()))
    log.info(f"wrote {directory}: {counted(changed, 'partition')} changed, all else as it was")
    return NewSavepoint(directory, partitions, tuple(dict.fromkeys(warnings)))


def _new_directory(out: AnyPath) -> Path:
    """The directory to write.

    Raises:
        Refused: it holds something.
        UsageError: it is no local directory.
    """
    text = os.fspath(out)
    if is_uri(text) and not text.startswith("file:"):
        raise UsageError(
            f"--out {shown_url(text)}: a local directory is written; copy it to the store whole, "
            "_metadata last: its files are named relative to it"
        )
    directory = local_path(text).absolute()
    names = LocalDirectory(str(directory), directory).names()
    if names is None:
        raise Refused([f"{directory} is a file or a symbolic link; name a new directory"])
    if names:
        raise Refused([f"{directory} is not empty; name a new directory"])
    return directory


def _check_outside(directory: Path, pointer: str) -> None:
    """The old savepoint is never changed: nothing is written into its directory."""
    if lies_within(directory, pointer):
        raise Refused([f"{directory} lies in the savepoint itself; name a directory elsewhere"])


def _slots(chosen: Sequence[Source], side: PlanInput, policies: Policies) -> Iterator[_Slot]:
    """Each source of the savepoint, by cluster, with what it goes on from: of a checkpoint of the
    same job its own operator, else whatever has its topics."""
    for source in chosen:
        for cluster in sorted(source.clusters, key=lambda name: name or ""):
            own = source.of_cluster(cluster) if cluster is not None else source
            same = [one for one in side.sources if one.operator_id == source.operator_id]
            of_it = [one.of_cluster(cluster) if cluster else one for one in same]
            yield _Slot(own, cluster, tuple(of_topics(of_it or side.sources, own.topics, policies)))


def _clusters_unnamed(slots: Sequence[_Slot]) -> Iterator[Refusal]:
    """Positions that name no cluster cannot be those of several."""
    unnamed = {
        slot.cluster
        for slot in slots
        if slot.cluster is not None
        and any(slot.cluster not in one.clusters for one in slot.goes_on_from)
    }
    if len(unnamed) > 1:
        yield Refusal(
            f"the savepoint reads {len(unnamed)} Kafka clusters: "
            + ", ".join(sorted(map(repr, unnamed))),
            "these positions are of one: choose it with --cluster ID",
        )


def _left_out(
    name: str, side: PlanInput, slots: Sequence[_Slot], request: Request
) -> Iterator[Refusal]:
    """Topics that the side has and no source of the savepoint takes."""
    taken = {
        position.topic for slot in slots for one in slot.goes_on_from for position in one.positions
    }
    own = {slot.source.operator_id for slot in slots}
    same = [source for source in side.sources if source.operator_id in own]
    # Of one job its other sources go on as they are.
    topics = {topic for source in same or side.sources for topic in source.topics} - taken
    if request.policies.partitions is not None:
        topics &= request.policies.partitions.keys()
    if topics and request.source is None:
        yield left_out(name, topics)
    elif topics:
        log.info(f"note: --source leaves out {', '.join(sorted(topics))}")


def _plan(request: Request, side: PlanInput, slot: _Slot, snapshot: ClusterSnapshot | None) -> Plan:
    if not slot.goes_on_from:  # what it lacks is told of the savepoint's partitions
        return Plan(side.origin, SAVEPOINT, (), snapshot=snapshot)
    return plan_found(request, side, slot.goes_on_from, snapshot, named=True)


def _tell(slots: Sequence[_Slot], plans: Sequence[Plan]) -> None:
    for slot, plan in zip(slots, plans, strict=True):
        of_it = f"operator {slot.source.operator_id}: " if len(slots) > 1 else ""
        for line in plan_lines(plan):
            log.info(of_it + line)
