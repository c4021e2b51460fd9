"""``verify``: check that the target started where the checkpoint ended."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import TYPE_CHECKING, NamedTuple

from migrate.inputs.flink.choose_source import Choice, choose, source_positions
from migrate.inputs.flink.read import read
from migrate.inputs.position_inputs import (
    Ask,
    Side,
    SideKind,
    needs_a_broker,
    parse_side,
    possible_topics,
)
from migrate.inputs.spark_log import (
    began_continuous,
    committed_positions,
    has_run,
    kafka_seeds,
    logged_batches,
    starting_positions,
)
from migrate.model.cluster_snapshot import BrokerError, GroupView
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log, timed
from migrate.model.positions import Logs, PositionSet, group_positions
from migrate.moves.load_inputs import asker
from migrate.moves.options import Kafka, SideArguments, choice, kafka
from migrate.moves.plan_origin import compare_with_origin
from migrate.planning import Plan
from migrate.planning.recheck import other_cluster, recreated_topics
from migrate.planning.shared_topics import shared_topics
from migrate.planning.verify import QueryStart, Verification, verify_group, verify_log, verify_query
from migrate.storage.files import Files
from migrate.storage.uris import local_path
from migrate.targets.group.commit_marks import METADATA_PREFIX

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.moves.options import AnyPath

_PLAN = "plan:"


def verify(
    moved: AnyPath,
    target: str,
    *,
    run: bool = False,
    spark_conf: Mapping[str, str] | None = None,
    state: str | None = None,
    expect: str | None = None,
    sample: int | None = None,
    ttl_ms: int | EllipsisType | None = ...,
    stopped_at_ms: int | None = None,
    one_cluster: bool = False,
    **arguments: Unpack[SideArguments],
) -> Verification:
    """Check after the move that the target started where the checkpoint ended.

    Args:
        moved: the checkpoint, as for ``plan``, or ``plan:FILE``.
        target: ``spark:DIR`` or ``group:NAME``.
        run: for ``spark:DIR``, start Spark on a copy of the seed, and check where Spark begins.
        spark_conf: with ``run`` or ``state``, Spark's settings.
        state: for a ``spark:DIR`` that was primed with a keyed state, ``OPERATOR/NAME`` of that
            state in Flink: compare Flink's and Spark's state key by key (``Verification.state``).
        expect: with ``state``, Spark SQL expressions over the columns of Flink's state: one for
            each field of Spark's key, then one for each field of Spark's value. By default the
            parts of Flink's key and value, in their order.
        sample: with ``state``, compare this number of Flink's keys only.
        ttl_ms: the time to live of ``state``, in milliseconds, if it has one: entries that had
            expired when the job was stopped are left out. None keeps every entry.
        stopped_at_ms: with ``ttl_ms``, when the job was stopped, in epoch milliseconds. By default
            when the checkpoint's ``_metadata`` was written, or the last access in the state if that
            is later.
        one_cluster: as for ``plan``: whether to assume that sources of one topic read the same
            Kafka cluster if their state names no cluster. Here their positions must also be equal.
        arguments: see ``ChoiceArguments`` and ``KafkaArguments``.

    Returns:
        The outcome of each partition. ``verified`` is true if every partition started where it
        should, no difference was found between the plan (if there is one) and its checkpoint or
        between the states (if compared), and the query's log has its first batches.
        ``verified_or_moved_on`` also accepts partitions that have moved on, and a log without its
        first batches.

    Raises:
        QueryFailed: Spark's first batch failed.
        ServiceError: Spark failed while it read the query's state.
        Refused: the positions are ambiguous; or the plan was made for another cluster.
        UsageError: arguments that do not go together, or that name something that does not exist.
        DecodeError, InputError: the checkpoint, the plan or the target cannot be read.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    if spark_conf and not (run or state):
        raise UsageError("--spark-conf goes with --run or --state")
    if state is None and (expect is not None or sample is not None):
        raise UsageError("--expect and --sample go with --state")
    if state is None and (ttl_ms is not ... or stopped_at_ms is not None):
        raise UsageError("--ttl and --stopped-at go with --state")
    if sample is not None and sample < 1:
        raise UsageError(f"--sample {sample}: not a number of keys")
    if run or state:
        from migrate.spark.resume_check import check_there_is_pyspark

        check_there_is_pyspark()
    brokers, chosen = kafka(arguments, SideArguments), choice(arguments)
    ask = asker(brokers)
    expected = _expected(os.fspath(moved), chosen, one_cluster)
    side = parse_side(target)
    match side.kind:
        case SideKind.SPARK:
            verification = _verify_query(side, expected, brokers, run, spark_conf or {})
        case SideKind.GROUP:
            if run or state:
                raise UsageError(
                    "--run and --state are about a Spark query: each goes with spark:DIR"
                )
            if ask is None:
                raise needs_a_broker(side.label)
            verification = _verify_group(side, expected, ask)
        case _:
            raise UsageError(
                f"{target}: a target is named spark:{target} (the checkpoint location of a query) "
                f"or group:{target}; the checkpoint comes before it"
            )
    if state is None:
        return verification
    from migrate.spark.transfer.verify_state import verify_state

    operator, slash, name = state.partition("/")
    if not (operator and slash and name):
        raise UsageError(f"--state {state!r}: not OPERATOR/NAME, as `migrate state CHK` lists them")
    if expected.plan is not None:
        raise UsageError("--state is of a savepoint: not with plan:FILE")
    with timed(f"comparing state {state} with {side.label}"):
        proof = verify_state(
            os.fspath(moved),
            side.what,
            operator,
            name,
            expect=expect,
            sample=sample,
            conf=spark_conf or {},
            ttl_ms=ttl_ms,
            stopped_at_ms=stopped_at_ms,
            allow_external_files=chosen.allow_external_files,
        )
    return replace(verification, state=proof)


class _Expected(NamedTuple):
    """Where a target should have started.

    Attributes:
        positions: the expected position of each partition.
        new_at_earliest: whether a new partition should start at ``earliest``.
        plan: the plan that the positions come from, or None if they come from a checkpoint.
        allow_external_files: as for ``read_checkpoint``.
    """

    positions: PositionSet
    new_at_earliest: bool
    plan: Plan | None
    allow_external_files: bool


def _expected(moved: str, choice: Choice, one_cluster: bool) -> _Expected:
    """Read where the target should have started.

    Raises:
        Refused: several sources read one topic, at different positions or perhaps on two clusters.
        UsageError: an option about a checkpoint is combined with a plan.
    """
    allow_external_files = choice.allow_external_files
    if moved.startswith(_PLAN):
        from migrate.planning.plan_file import read_plan

        options = {
            "--source": choice.source is not None,
            "--cluster": choice.cluster is not None,
            "--one-cluster": one_cluster,
        }
        for option, is_set in options.items():
            if is_set:
                raise UsageError(f"{option} is about a checkpoint: not with plan:FILE")
        plan = read_plan(local_path(moved.removeprefix(_PLAN)))
        return _Expected(PositionSet(moved, plan.next_offsets), False, plan, allow_external_files)
    extraction = read(moved, allow_external_files=allow_external_files)
    chosen = choose(extraction, choice)
    at_earliest = all(source.absent_start_at_earliest for source in chosen)
    shared = shared_topics(chosen)
    for topic in shared:
        if one_cluster and topic.differing:
            raise Refused(
                f"{moved}: {topic.refuse_disagreement().what}; choose one with --source "
                "OPERATOR_ID, or verify the plan that was applied (plan:FILE)"
            )
    positions = source_positions(moved, chosen)
    for topic in shared:
        if topic.may_be_two and not one_cluster:
            raise Refused(
                f"{moved}: {len(topic.sources)} sources read topic {topic.name} ({topic.readers}), "
                "and their state does not name their Kafka cluster; choose one with --source "
                "OPERATOR_ID, or if they read the same Kafka cluster, add --one-cluster, or verify "
                "the plan that was applied (plan:FILE)"
            )
    return _Expected(positions, at_earliest, None, allow_external_files)


def _verify_query(
    side: Side, expected: _Expected, brokers: Kafka, run: bool, settings: Mapping[str, str]
) -> Verification:
    """Check where a query started or, with ``run``, where Spark begins with a copy of the seed."""
    logs, recreated, _ = _ask(asker(brokers), expected, None)
    files = Files()
    with timed(f"reading {side.label}"):
        has_begun, continuous = has_run(side.what, files), began_continuous(side.what, files)
        goes_on = None
        if run:
            started = _run(side, brokers, settings)
        else:
            started = starting_positions(side.label, side.what)
            goes_on = committed_positions(side.label, side.what) if has_begun else started
    if not brokers.is_named:
        log.warning("not checked against Kafka: offsets may be gone; add -b HOST:PORT")
    verification = verify_query(
        expected.positions,
        QueryStart(started, goes_on, has_begun, continuous),
        logs,
        new_at_earliest=expected.new_at_earliest,
        recreated=recreated,
    )
    verification = _compare_plan(verification, expected)
    if not has_begun or continuous:
        return verification
    with timed(f"reading the log of {side.label}"):
        batches = list(logged_batches(side.what, files))
        return verify_log(verification, kafka_seeds(side.what, files), batches)


def _run(side: Side, brokers: Kafka, settings: Mapping[str, str]) -> PositionSet:
    from migrate.spark.resume_check import run_first_batch

    if not brokers.is_named:
        raise UsageError("--run needs a broker: add --bootstrap-servers HOST:PORT")
    log.info("starting Spark on a copy of the seed")
    with timed("running Spark on a copy of the seed"):
        resume = run_first_batch(side.label, side.what, brokers.config(), settings)
    log.info(f"Spark {resume.spark} planned its first batch, and read {resume.records} records")
    return resume.started


def _verify_group(side: Side, expected: _Expected, ask: Ask) -> Verification:
    """Check the offsets that a consumer group holds."""
    logs, recreated, group = _ask(ask, expected, side.what)
    if group is None:
        raise BrokerError(f"the broker did not tell of group {side.what}")
    if note := group_positions(side.label, group).note:
        log.warning(f"{side.label}: {note}")
    verification = verify_group(
        expected.positions,
        group,
        logs,
        new_at_earliest=expected.new_at_earliest,
        metadata_prefix=METADATA_PREFIX,
        recreated=recreated,
    )
    return _compare_plan(verification, expected)


def _ask(
    ask: Ask | None, expected: _Expected, group: str | None
) -> tuple[Logs | None, Sequence[str], GroupView | None]:
    """Ask the broker, if one is named, for the logs of the topics and for the group.

    Returns:
        The logs, the topics that were created again since the plan was made, and the group.

    Raises:
        Refused: the plan was made for another cluster.
    """
    if ask is None:
        return None, (), None
    snapshot, plan = ask(possible_topics(expected.positions.topics), group), expected.plan
    if plan is None or plan.cluster_id is None:
        return snapshot.topics, (), snapshot.source_group
    if other := other_cluster(plan, snapshot):
        raise Refused([other])
    return snapshot.topics, recreated_topics(plan, snapshot), snapshot.source_group


def _compare_plan(verification: Verification, expected: _Expected) -> Verification:
    """Add how the plan compares with its origin; drop partitions that the plan does not move."""
    plan = expected.plan
    if plan is None:
        return verification
    check = compare_with_origin(plan, allow_external_files=expected.allow_external_files)
    verification = replace(verification, plan=check)
    if not plan.only_some_partitions:
        return verification
    moved = plan.next_offsets
    kept = (row for row in verification.partitions if row.topic_partition in moved)
    return replace(verification, partitions=tuple(kept))
