"""A plan saved for later: reviewed by people, applied by the same commands.

``--plan-out FILE`` writes it, ``--plan FILE`` applies it, unless the cluster has moved meanwhile:
what was decided on must still be what is there. The schema is versioned; a plan of another version
is refused. It holds no secret: of Kafka only the cluster's id.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import StringConstraints, field_validator

from migrate.errors import InputError
from migrate.extract import Extraction, is_last_output
from migrate.json_models import (
    Model,
    Offset,
    OncePerPartition,
    PartitionNumber,
    read_file,
    schema_of,
)
from migrate.planning import Plan, PlannedPartition, Verdict
from migrate.policies import Policies
from migrate.positions import Marker, TopicPartition
from migrate.snapshot import ClusterSnapshot, LogRange
from migrate.wording import counted


class PlanFileError(InputError):
    """A file that is not a plan of this version."""


class PlannedCheckpoint(Model):
    """``pointer`` is absolute: a plan is applied from another folder, or by another program.

    ``newest`` is the number of the newest complete checkpoint beside it, its own where there is no
    newer one. ``stopped``: the job ended with it, so that it is the job's last output.
    """

    pointer: str
    id: Offset
    newest: Offset
    stopped: bool


class SavedPartition(Model):
    """One topic-partition: see PlannedPartition, whose fields these are.

    ``position`` is what the checkpoint says, a marker included; None where it does not tell.
    """

    topic: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    partition: PartitionNumber
    verdict: Verdict
    position: Offset | Marker | None
    next_offset: Offset | None
    current: Offset | None
    flink_committed: Offset | None
    difference: int | None
    records_left: Offset | None
    log_start: Offset | None
    log_end: Offset | None
    lost: Offset | None
    repeated: Offset | None
    operator_id: str | None
    subtask: Offset | None


class PlanFile(Model):
    """A plan without refusals, and what the cluster looked like when it was made."""

    kind: Literal["flink-offset-migrate plan"]
    version: Literal[1]
    created_at: str
    checkpoint: PlannedCheckpoint
    cluster_id: str | None
    topic_ids: dict[str, str]
    group: str | None
    source_group: str | None
    allow_ran_on: bool
    only_some_partitions: bool
    warnings: list[str]
    partitions: OncePerPartition[SavedPartition]

    @field_validator("created_at")
    @classmethod
    def _a_moment(cls, created_at: str) -> str:
        if datetime.fromisoformat(created_at).tzinfo is None:
            raise ValueError("no time zone")
        return created_at

    @property
    def next_offsets(self) -> dict[TopicPartition, int]:
        return {
            (saved.topic, saved.partition): saved.next_offset
            for saved in self.partitions
            if saved.next_offset is not None
        }

    @property
    def topics(self) -> set[str]:
        return {saved.topic for saved in self.partitions}


def plan_file(
    plan: Plan,
    extraction: Extraction,
    snapshot: ClusterSnapshot | None,
    policies: Policies,
    group: str | None,
    made_at: datetime,
) -> PlanFile:
    """The plan as it is saved."""
    checkpoint = extraction.checkpoint
    source_group = snapshot.source_group if snapshot is not None else None
    return PlanFile(
        kind="flink-offset-migrate plan",
        version=1,
        created_at=made_at.isoformat(timespec="seconds"),
        checkpoint=PlannedCheckpoint(
            pointer=_absolute(checkpoint.pointer),
            id=checkpoint.checkpoint_id,
            newest=(checkpoint.checkpoint_id, *checkpoint.newer_siblings)[-1],
            stopped=is_last_output(checkpoint),
        ),
        cluster_id=snapshot.cluster_id if snapshot is not None else None,
        topic_ids=snapshot.topic_ids if snapshot is not None else {},
        group=group,
        source_group=source_group.name if source_group is not None else None,
        allow_ran_on=policies.allow_ran_on,
        only_some_partitions=policies.partitions is not None,
        warnings=list(plan.warnings),
        partitions=[_saved(planned) for planned in plan.partitions],
    )


def _saved(planned: PlannedPartition) -> SavedPartition:
    position, log = planned.position, planned.log
    return SavedPartition(
        topic=planned.topic,
        partition=planned.partition,
        verdict=planned.verdict,
        position=position.start if position is not None else None,
        next_offset=planned.next_offset,
        current=planned.current,
        flink_committed=planned.flink_committed,
        difference=planned.difference,
        records_left=planned.records_left,
        log_start=log.start if log is not None else None,
        log_end=log.end if log is not None else None,
        lost=planned.lost,
        repeated=planned.repeated,
        operator_id=planned.operator_id,
        subtask=position.subtask if position is not None else None,
    )


def _absolute(pointer: str) -> str:
    """As the decoder looks beside it: links followed. What is no local path is whole already."""
    return pointer if "://" in pointer else os.path.realpath(pointer)


def read_plan(path: Path) -> PlanFile:
    """Read a saved plan.

    Raises:
        PlanFileError: missing, or not a plan of this version.
    """
    whence = "--plan-out writes one"
    return read_file(PlanFile, path, "plan of version 1", PlanFileError, whence=whence)


def other_cluster(plan: PlanFile, snapshot: ClusterSnapshot) -> str:
    """That it was made for another cluster than this one; empty where it was not."""
    if plan.cluster_id == snapshot.cluster_id:
        return ""
    return f"this is cluster {snapshot.cluster_id}; the plan is for {plan.cluster_id}"


def recreated_topics(plan: PlanFile, snapshot: ClusterSnapshot) -> list[str]:
    """Those that were deleted and created again since it was made, by Kafka's own ids of them."""
    return sorted(
        topic
        for topic, topic_id in plan.topic_ids.items()
        if snapshot.topic_ids.get(topic, topic_id) != topic_id
    )


def moved_meanwhile(plan: PlanFile, snapshot: ClusterSnapshot) -> Iterator[str]:
    """What is no longer as it was when the plan was made, in lines; nothing where all is.

    Records may have been produced, and records below every planned offset deleted: neither
    changes what the plan does. Nor is a topic looked at again for being ``suspect``: one that was
    when the plan was made is so in the plan, and one created again since has another id.
    """
    if other := other_cluster(plan, snapshot):
        yield other
        return
    recreated = recreated_topics(plan, snapshot)
    for topic in recreated:
        yield f"topic {topic} was deleted and created again since the plan was made"
    if recreated:
        return
    planned = {(saved.topic, saved.partition): saved for saved in plan.partitions}
    there = {(topic, n): log for topic, logs in snapshot.topics.items() for n, log in logs.items()}
    if not plan.only_some_partitions:
        for topic, partition in sorted(there.keys() - planned.keys()):
            yield f"{topic}-{partition} is new since the plan was made"
    for place, saved in planned.items():
        log = there.get(place)
        yield from _log_moved(saved, log)
        if log is not None and snapshot.target_group is not None:
            current = snapshot.target_group.next_offset(*place)
            if current != saved.current:
                yield (
                    f"the group held {_held(saved.current)} for {saved.topic}-{saved.partition} "
                    f"and now holds {_held(current)}"
                )


def _log_moved(saved: SavedPartition, log: LogRange | None) -> Iterator[str]:
    name = f"{saved.topic}-{saved.partition}"
    if log is None:
        if saved.log_end is not None:
            yield f"{name} is gone since the plan was made"
        return
    if saved.log_end is None:
        yield f"{name} was not there when the plan was made, and is now"
    if saved.next_offset is not None and not log.start <= saved.next_offset <= log.end:
        yield (
            f"{name} now holds {log.start} to {log.end}: its next offset {saved.next_offset} "
            "is no longer in the log"
        )
    if saved.log_end is not None and log.end < saved.log_end:
        yield (
            f"{name} ended at {saved.log_end} and now ends at {log.end}: it has lost records, "
            "or was recreated (before Kafka 2.8 topics have no id to tell by)"
        )


def _held(next_offset: int | None) -> str:
    return "no offset" if next_offset is None else str(next_offset)


def ran_on_since(
    plan: PlanFile, snapshot: ClusterSnapshot | None, newer_checkpoints: Sequence[int]
) -> Iterator[str]:
    """What shows that the job has run on since the plan was made, in lines about it.

    Args:
        snapshot: with the plan's ``source_group``, where it has one.
        newer_checkpoints: the job's complete checkpoints that are newer than the plan's, the last
            written at the end.
    """
    since = _since(plan.checkpoint, newer_checkpoints)
    if since:
        yield f"it has completed chk-{since[-1]}"
    group = snapshot.source_group if snapshot is not None else None
    if group is None:
        return
    moved = [
        (saved, now)
        for saved in plan.partitions
        if (now := group.next_offset(saved.topic, saved.partition)) != saved.flink_committed
    ]
    if moved:
        first, now = moved[0]
        yield (
            f"its group {group.name!r} has moved in {counted(len(moved), 'partition')} (the "
            f"first is {first.topic}-{first.partition}: it held {_held(first.flink_committed)} and "
            f"now holds {_held(now)})"
        )


def _since(checkpoint: PlannedCheckpoint, newer: Sequence[int]) -> Sequence[int]:
    """Those newer checkpoints that were not there when the plan was made."""
    known = checkpoint.newest
    if known == checkpoint.id:
        return newer
    if known in newer:
        return newer[newer.index(known) + 1 :]
    return [number for number in newer if number > known]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a saved plan."""
    return schema_of(PlanFile, "A saved plan of migrate")


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
