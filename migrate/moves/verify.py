"""``verify``: did the target start where the checkpoint ended?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import TYPE_CHECKING, TypedDict

from migrate.inputs.flink.choose_source import Choice, Reading, choose, source_positions
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
from migrate.storage.files import Files, local_path
from migrate.targets.group.commit_marks import METADATA_PREFIX

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.moves.options import AnyPath
    from migrate.planning.state_proof import StateProof

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
    """After the move: did the target start where the checkpoint ended?

    Args:
        moved: the checkpoint, as for ``plan``, or ``plan:FILE``.
        target: ``spark:DIR`` or ``group:NAME``.
        run: for ``spark:DIR``, start Spark on a copy of the seed, and see where it begins.
        spark_conf: with ``run`` or ``state``, Spark's settings.
        state: for a primed ``spark:DIR``, ``OPERATOR/NAME`` of the state that it was primed with:
            compare the two key by key (``Verification.state``).
        expect: with ``state``, expressions of Spark's SQL over the state's columns: what each field
            of Spark's key, then of its value, holds. By default the parts of key and value.
        sample: with ``state``, compare so many keys of Flink's.
        ttl_ms: with a ``state`` that has a time to live, how long that is, in milliseconds: entries
            that had expired when the job was stopped are left out. None keeps every entry.
        stopped_at_ms: with ``ttl_ms``, when the job was stopped, in epoch milliseconds. By default
            when the checkpoint's ``_metadata`` was written, or the last access in the state if that
            is later.
        one_cluster: as for ``plan``: sources that read one topic at the same positions, and whose
            state names no Kafka cluster, are one.
        arguments: see ``ChoiceArguments`` and ``KafkaArguments``.

    Returns:
        Each partition's outcome; ``verified`` where all started where they should, and a plan is
        what its checkpoint holds. What ``--allow-moved-on`` counts as verified too is
        ``verified_or_moved_on``.

    Raises:
        QueryFailed: Spark's first batch failed.
        ServiceError: Spark failed as it read its state.
        Refused: positions that can be read in two ways.
        UsageError: arguments that do not go together, or name what is not there.
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
    asked = kafka(arguments, SideArguments)
    ask = asker(asked)
    chosen = choice(arguments)
    expected, new_at_earliest, plan = _expected(os.fspath(moved), chosen, one_cluster)
    side = parse_side(target)
    match side.kind:
        case SideKind.SPARK:
            logs, recreated, _ = _look(ask, expected, plan, None)
            with timed(f"reading {side.label}"):
                query = _query(side, asked, run, spark_conf or {})
            if ask is None:
                log.warning("not checked against Kafka: offsets may be gone; add -b HOST:PORT")
            found = verify_query(
                expected, query, logs, new_at_earliest=new_at_earliest, recreated=recreated
            )
            found = _by_its_log(_of_the_plan(found, plan, chosen), query, side)
            if state is None:
                return found
            proof = _state(
                os.fspath(moved),
                side,
                state,
                chosen,
                expect=expect,
                sample=sample,
                conf=spark_conf or {},
                ttl_ms=ttl_ms,
                stopped_at_ms=stopped_at_ms,
            )
            return replace(found, state=proof)
        case SideKind.GROUP:
            if run or state:
                raise UsageError(
                    "--run and --state are about a Spark query: each goes with spark:DIR"
                )
            if ask is None:
                raise needs_a_broker(side.label)
            logs, recreated, group = _look(ask, expected, plan, side.what)
            if group is None:
                raise BrokerError(f"the broker did not tell of group {side.what}")
            if note := group_positions(side.label, group).note:
                log.warning(f"{side.label}: {note}")
            found = verify_group(
                expected,
                group,
                logs,
                new_at_earliest=new_at_earliest,
                metadata_prefix=METADATA_PREFIX,
                recreated=recreated,
            )
            return _of_the_plan(found, plan, chosen)
        case _:
            raise UsageError(
                f"{target}: a target is named spark:{target} (the checkpoint location of a query) "
                f"or group:{target}; the checkpoint comes before it"
            )


class _StateOptions(TypedDict):
    """The options of ``verify`` that are about the state."""

    expect: str | None
    sample: int | None
    conf: Mapping[str, str]
    ttl_ms: int | EllipsisType | None
    stopped_at_ms: int | None


def _state(
    moved: str, side: Side, state: str, reading: Choice, **options: Unpack[_StateOptions]
) -> StateProof:
    """Compare a keyed state of a savepoint with Spark's.

    Raises:
        UsageError: it is not named ``OPERATOR/NAME``, or the checkpoint is a plan.
    """
    from migrate.spark.transfer.verify_state import verify_state

    operator, slash, name = state.partition("/")
    if not (operator and slash and name):
        raise UsageError(f"--state {state!r}: not OPERATOR/NAME, as `migrate state CHK` lists them")
    if moved.startswith(_PLAN):
        raise UsageError("--state is of a savepoint: not with plan:FILE")
    with timed(f"comparing state {state} with {side.label}"):
        return verify_state(
            moved,
            side.what,
            operator,
            name,
            allow_external_files=reading.allow_external_files,
            **options,
        )


def _expected(
    moved: str, choice: Choice, one_cluster: bool
) -> tuple[PositionSet, bool, Plan | None]:
    """Return where the target should have started, whether a new partition starts at earliest, and
    the plan if there is one.

    Raises:
        Refused: sources read one topic at different positions, or perhaps on two
            clusters.
        UsageError: an option about a checkpoint goes with a plan.
    """
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
        return PositionSet(moved, plan.next_offsets), False, plan
    extraction = read(moved, choice)
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
    return positions, at_earliest, None


def _by_its_log(found: Verification, query: QueryStart, side: Side) -> Verification:
    """Add what a query that has run did since, by its log."""
    if not query.has_run or query.continuous:
        return found
    with timed(f"reading the log of {side.label}"):
        files = Files()
        batches = [*logged_batches(side.what, files)]
        return verify_log(found, kafka_seeds(side.what, files), batches)


def _of_the_plan(found: Verification, plan: Plan | None, how: Reading) -> Verification:
    """Add how a plan compares with what it was made from, and leave out what was not to move."""
    if plan is None:
        return found
    found = replace(found, plan=compare_with_origin(plan, how))
    if not plan.only_some_partitions:
        return found
    moved = plan.next_offsets
    kept = (one for one in found.partitions if one.topic_partition in moved)
    return replace(found, partitions=tuple(kept))


def _look(
    ask: Ask | None, expected: PositionSet, plan: Plan | None, group: str | None
) -> tuple[Logs | None, Sequence[str], GroupView | None]:
    """The logs of the topics, which of these were created again since the plan was made, and the
    group; nothing without a broker.

    Raises:
        Refused: the plan is of another cluster.
    """
    if ask is None:
        return None, (), None
    found = ask(possible_topics(expected.topics), group)
    if plan is None or plan.cluster_id is None:
        return found.topics, (), found.source_group
    if other := other_cluster(plan, found):
        raise Refused([other])
    return found.topics, recreated_topics(plan, found), found.source_group


def _query(side: Side, kafka: Kafka, run: bool, settings: Mapping[str, str]) -> QueryStart:
    """Where a query started; with ``run``, where Spark begins on a copy of the seed."""
    files = Files()
    has_begun, continuous = has_run(side.what, files), began_continuous(side.what, files)
    if run:
        return QueryStart(_starts_of_a_run(side, kafka, settings), None, has_begun, continuous)
    started = starting_positions(side.label, side.what)
    goes_on = committed_positions(side.label, side.what) if has_begun else started
    return QueryStart(started, goes_on, has_begun, continuous)


def _starts_of_a_run(side: Side, kafka: Kafka, settings: Mapping[str, str]) -> PositionSet:
    from migrate.spark.resume_check import run_first_batch

    if not kafka.given:
        raise UsageError("--run needs a broker: add --bootstrap-servers HOST:PORT")
    log.info("starting Spark on a copy of the seed")
    with timed("running Spark on a copy of the seed"):
        resume = run_first_batch(side.label, side.what, kafka.config(), settings)
    log.info(f"Spark {resume.spark} planned its first batch, and read {resume.records} records")
    return resume.started
