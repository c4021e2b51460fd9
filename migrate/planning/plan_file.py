"""Save and reload a plan, so that people can review the plan before it is applied.

``--plan-out FILE`` writes a plan, and ``--plan FILE`` applies it. A plan with a different schema
version is refused. The file contains no secrets.

``sha256`` is the checksum of the file's JSON without this field, with sorted keys, without
whitespace, and with escapes for non-ASCII characters. A file with a different checksum was edited
and is refused.

If the target reads from a different cluster than the job does, ``to_cluster_id`` and
``to_topic_ids`` refer to that cluster, and each partition with a next offset has a ``translation``.
Otherwise ``to_cluster_id`` and all translations are null, and ``to_topic_ids`` is empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator

from decoder.urls import redact_url
from migrate.inputs.position_inputs import SIDE_PREFIXES, SideKind
from migrate.model.catalog import PLAN_OF_VERSION_1
from migrate.model.errors import InputError, UsageError
from migrate.model.option_names import option
from migrate.model.positions import Marker, Origin, target_of
from migrate.planning.plan import MatchOutcome, Plan, PlannedPartition, Translation, Verdict
from migrate.storage.json_models import (
    Model,
    Offset,
    OncePerPartition,
    PartitionNumber,
    Sha256,
    TopicName,
    parse,
    read_content,
    schema_of,
    write_file,
)
from migrate.storage.new_file import already_there
from migrate.storage.recognize_file import directory_advice

KIND: Literal["flink-offset-migrate plan"] = "flink-offset-migrate plan"
VERSION: Literal[2] = 2

# Fields with the same names and values in a ``Plan`` and in its file.
_SAME_FIELDS = (
    "cluster_id",
    "topic_ids",
    "source_group",
    "queried_flink",
    "allow_ran_on",
    "only_some_partitions",
    "topic_pattern",
    "topic_map",
    "to_cluster_id",
    "to_topic_ids",
)


class PlannedCheckpoint(Model):
    """The checkpoint or other input on which a plan is based.

    ``pointer`` is the absolute path or URI of a checkpoint, or the name of another input. ``id`` is
    the number of the checkpoint, or of a Spark query's newest committed batch. ``newest`` is the
    number of the newest complete checkpoint of the job. ``stopped`` is true if the job ended with
    the checkpoint. ``operators`` are the operator IDs of the chosen sources; for a Spark query, the
    query's ID. ``cluster`` is a DynamicKafkaSource's ID for its Kafka cluster. ``written_at``,
    ``copied_from``, and ``is_legacy`` are the same as in Origin. Plans of earlier releases lack
    ``written_at``. For such plans, the time of the plan is used instead.
    """

    pointer: str
    id: Offset
    newest: Offset
    stopped: bool
    operators: list[str]
    cluster: str | None
    written_at: Offset | None = None
    copied_from: str | None = None
    is_legacy: bool = False


class SavedTranslation(Model):
    """The position in the job's cluster, with the fields of ``Translation``."""

    topic: TopicName
    next_offset: Offset
    log_start: Offset
    log_end: Offset
    outcome: MatchOutcome
    before: Offset
    after: Offset
    is_searched_to_end: bool
    # Plans of earlier releases lack these fields.
    compared: Offset = 0
    unread: Offset = 0


class SavedPartition(Model):
    """One topic-partition, with the fields of ``PlannedPartition``.

    ``position`` is the offset or marker in the checkpoint; null if the checkpoint has neither.
    """

    topic: TopicName
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
    translation: SavedTranslation | None


def _check_at_positions(rows: list[SavedPartition]) -> list[SavedPartition]:
    for row in rows:
        own = row.translation.next_offset if row.translation is not None else row.next_offset
        if row.verdict.is_at_position and own != row.position:
            raise ValueError(
                f"{row.topic}-{row.partition}: the verdict is {row.verdict.value!r}, but its "
                f"next_offset {own} differs from its position {row.position}"
            )
    return rows


# Fields in the file that are computed from other fields.
_COMPUTED_FIELDS = {"difference", "records_left"}


class PlanFile(Model):
    """A plan without refusals, with the state of the cluster when the plan was made."""

    kind: Literal["flink-offset-migrate plan"]
    version: Literal[2]
    created_at: str
    checkpoint: PlannedCheckpoint
    cluster_id: str | None
    to_cluster_id: str | None
    # Plans of earlier releases lack this field.
    to_topic_ids: dict[str, str] = Field(default_factory=dict)
    topic_ids: dict[str, str]
    group: str | None
    source_group: str | None
    # Plans of earlier releases lack this field.
    queried_flink: bool = False
    allow_ran_on: bool
    only_some_partitions: bool
    topic_pattern: str | None
    topic_map: dict[str, str]
    warnings: list[str]
    partitions: Annotated[OncePerPartition[SavedPartition], AfterValidator(_check_at_positions)]
    sha256: Sha256

    @field_validator("created_at")
    @classmethod
    def _check_time_zone(cls, created_at: str) -> str:
        if datetime.fromisoformat(created_at).tzinfo is None:
            raise ValueError("no time zone")
        return created_at


def plan_file(plan: Plan) -> PlanFile:
    """Return the content of the plan's file."""
    origin = plan.origin
    return PlanFile(
        kind=KIND,
        version=VERSION,
        created_at=plan.made_at.isoformat(timespec="seconds"),
        checkpoint=PlannedCheckpoint(
            pointer=origin.pointer,
            id=origin.number,
            newest=(origin.number, *origin.newer)[-1],
            stopped=origin.stopped,
            operators=list(plan.operators),
            cluster=plan.source_cluster,
            written_at=origin.written_at,
            copied_from=redact_url(origin.copied_from) if origin.copied_from else None,
            is_legacy=origin.is_legacy,
        ),
        group=plan.target.group,
        warnings=list(plan.warnings),
        partitions=[
            SavedPartition.model_validate(planned, from_attributes=True)
            for planned in plan.partitions
        ],
        sha256="0" * 64,  # ``write_file`` replaces it
        **{name: getattr(plan, name) for name in _SAME_FIELDS},
    )


def save_plan(plan: Plan, path: Path) -> None:
    """Write the plan: see ``Plan.save``."""
    plan.check()
    try:
        write_file(plan_file(plan), path)
    except FileExistsError as error:
        raise already_there(path) from error
    except OSError as error:
        raise UsageError(
            f"the plan {path} cannot be written: {error.strerror}; choose a different file"
        ) from error


def read_plan(path: Path) -> Plan:
    """Read a saved plan.

    Raises:
        InputError: the file is missing, is not a plan of this version, or was edited.
    """
    flag = option("plan_out", "FILE")
    create = f"create a plan with {flag} of `migrate to-spark` or `migrate commit-group`"
    hint = directory_advice(path) or create
    content = read_content(path, creation_hint=hint)
    raw = _raw_plan(content)
    if raw.get("version") == 1:
        raise InputError(PLAN_OF_VERSION_1(path=path))
    saved = parse(
        PlanFile,
        content,
        path,
        f"plan of version {VERSION}",
        creation_hint=hint,
        edited_hint=f"create a new plan with {option('plan_out')} and the changed options",
        written_hint=f"pass a plan that {option('plan_out')} has written",
    )
    checkpoint = saved.checkpoint
    newer = () if checkpoint.newest == checkpoint.id else (checkpoint.newest,)
    kind, made_at = _kind_of(checkpoint.pointer), datetime.fromisoformat(saved.created_at)
    written_at = checkpoint.written_at
    if written_at is None and kind == "checkpoint":
        written_at = int(made_at.timestamp() * 1000)
    return Plan(
        Origin(
            kind,
            checkpoint.pointer,
            checkpoint.id,
            newer,
            checkpoint.stopped,
            written_at,
            checkpoint.copied_from,
            checkpoint.is_legacy,
        ),
        target_of(saved.group),
        tuple(map(_planned_partition, saved.partitions)),
        warnings=tuple(saved.warnings),
        operators=tuple(checkpoint.operators),
        source_cluster=checkpoint.cluster,
        made_at=made_at,
        **{name: getattr(saved, name) for name in _SAME_FIELDS},
    )


def _planned_partition(row: SavedPartition) -> PlannedPartition:
    fields = row.model_dump(exclude=_COMPUTED_FIELDS)
    if row.translation is not None:
        fields["translation"] = Translation(**fields["translation"])
    return PlannedPartition(**fields)


def _raw_plan(content: bytes) -> Mapping[str, Any]:
    """Return the JSON of a plan of any version; empty if the content is not a plan."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return raw if isinstance(raw, dict) and raw.get("kind") == KIND else {}


def _kind_of(pointer: str) -> Literal["checkpoint", "batch", "positions"]:
    prefix, colon, _ = pointer.partition(":")
    if not colon or prefix not in SIDE_PREFIXES:
        return "checkpoint"
    return "batch" if prefix == SideKind.SPARK.value else "positions"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a saved plan."""
    return schema_of(PlanFile, "A saved plan of migrate")


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
