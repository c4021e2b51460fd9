"""A plan saved for later: reviewed by people, applied by the same commands.

``--plan-out FILE`` writes it, ``--plan FILE`` applies it, unless the cluster has moved meanwhile:
what was decided on must still be what is there. The schema is versioned; a plan of another version
is refused. It holds no secret: of Kafka only the cluster's id.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import StringConstraints, field_validator

from migrate.errors import InputError, Refused, UsageError
from migrate.planning.model import Plan, PlannedPartition, Verdict
from migrate.positions import Marker, Origin, target_of
from migrate.storage.json_models import (
    Model,
    Offset,
    OncePerPartition,
    PartitionNumber,
    read_file,
    schema_of,
    write_file,
)


class PlanFileError(InputError):
    """A file that is not a plan of this version."""


KIND: Literal["flink-offset-migrate plan"] = "flink-offset-migrate plan"

# Sides that are neither a checkpoint nor a query, by what their names begin with.
_OTHER_SIDES = ("group", "json", "csv", "broker")
# Of a partition: told by the others.
_COMPUTED = {"difference", "records_left"}


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
    topic_pattern: str | None = None
    warnings: list[str]
    partitions: OncePerPartition[SavedPartition]

    @field_validator("created_at")
    @classmethod
    def _a_moment(cls, created_at: str) -> str:
        if datetime.fromisoformat(created_at).tzinfo is None:
            raise ValueError("no time zone")
        return created_at


def plan_file(plan: Plan) -> PlanFile:
    """The plan as it is saved."""
    origin = plan.origin
    return PlanFile(
        kind=KIND,
        version=1,
        created_at=plan.made_at.isoformat(timespec="seconds"),
        checkpoint=PlannedCheckpoint(
            pointer=origin.pointer,
            id=origin.number,
            newest=(origin.number, *origin.newer)[-1],
            stopped=origin.stopped,
        ),
        cluster_id=plan.cluster_id,
        topic_ids=dict(plan.topic_ids),
        group=plan.target.name,
        source_group=plan.source_group,
        allow_ran_on=plan.allow_ran_on,
        only_some_partitions=plan.only_some_partitions,
        topic_pattern=plan.topic_pattern,
        warnings=list(plan.warnings),
        partitions=[
            SavedPartition.model_validate(planned, from_attributes=True)
            for planned in plan.partitions
        ],
    )


def save_plan(plan: Plan, path: Path) -> None:
    """Write the plan as JSON, to be applied later.

    Raises:
        Refused: it must not be carried out, or there is a file of this name.
        UsageError: it cannot be written there.
    """
    plan.check()
    try:
        write_file(plan_file(plan), path)
    except FileExistsError as error:
        raise Refused([f"{path} is there already; name a new file"]) from error
    except OSError as error:
        raise UsageError(f"the plan {path} cannot be written: {error.strerror}") from error


def read_plan(path: Path) -> Plan:
    """Read a saved plan.

    Raises:
        PlanFileError: missing, or not a plan of this version.
    """
    whence = "--plan-out writes one"
    saved = read_file(PlanFile, path, "plan of version 1", PlanFileError, whence=whence)
    checkpoint = saved.checkpoint
    newer = () if checkpoint.newest == checkpoint.id else (checkpoint.newest,)
    return Plan(
        Origin(
            _kind_of(checkpoint.pointer),
            checkpoint.pointer,
            checkpoint.id,
            newer,
            checkpoint.stopped,
        ),
        target_of(saved.group),
        tuple(PlannedPartition(**one.model_dump(exclude=_COMPUTED)) for one in saved.partitions),
        warnings=tuple(saved.warnings),
        cluster_id=saved.cluster_id,
        topic_ids=saved.topic_ids,
        source_group=saved.source_group,
        allow_ran_on=saved.allow_ran_on,
        only_some_partitions=saved.only_some_partitions,
        topic_pattern=saved.topic_pattern,
        made_at=datetime.fromisoformat(saved.created_at),
    )


def _kind_of(pointer: str) -> Literal["checkpoint", "batch", "positions"]:
    prefix, colon, _ = pointer.partition(":")
    if prefix == "spark" and colon:
        return "batch"
    return "positions" if prefix in _OTHER_SIDES and colon else "checkpoint"


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a saved plan."""
    return schema_of(PlanFile, "A saved plan of migrate")


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
