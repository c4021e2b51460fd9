"""``verify``: check that the target started where the checkpoint ended."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, NamedTuple

from decoder.storage import METADATA_FILE, LocalFiles, checkpoint_number, join
from decoder.urls import redact_url
from migrate.inputs.ask_broker import ask_broker, broker_needed, valid_topics
from migrate.inputs.flink.choose_source import Choice, choose, source_positions
from migrate.inputs.flink.extract import read
from migrate.inputs.position_inputs import (
    Side,
    SideKind,
    client_metadata_warning,
    parse_side,
)
from migrate.inputs.spark_query import query_start
from migrate.model.catalog import (
    EXPECTED_POSITIONS_AMBIGUOUS,
    EXPECTED_POSITIONS_DIFFER,
    TARGET_ON_OTHER_CLUSTER,
)
from migrate.model.cluster_snapshot import ClusterSnapshot, Question
from migrate.model.errors import InputError, Refused, UsageError
from migrate.model.extensions import service
from migrate.model.log import log, timed
from migrate.model.option_names import CONNECTION_FLAGS, PROPERTIES, flag_words, option
from migrate.model.positions import (
    CLOCK_DIFFERENCE,
    GROUP_PREFIX,
    PLAN_PREFIX,
    SPARK_PREFIX,
    PositionSet,
)
from migrate.model.warning import warn
from migrate.model.warning_catalog import GROUP_ORIGIN_UNKNOWN, NO_SUCH_GROUP, NOT_CHECKED
from migrate.model.wording import with_known_prefix
from migrate.moves.declare_options import check_combinations
from migrate.moves.options import (
    Kafka,
    SideArguments,
    VerifyArguments,
    choice,
    kafka,
    target_connection,
)
from migrate.moves.plan_origin import compare_with_origin
from migrate.moves.translate import check_target_kafka, find_translation_changes
from migrate.planning import Plan
from migrate.planning.recheck import check_cluster, recreated_topics
from migrate.planning.shared_topics import shared_topics
from migrate.planning.verify import Verification, VerifiedPartition, verify_group, verify_query
from migrate.storage.recognize_file import looks_like_location
from migrate.storage.uris import AnyPath, check_no_credentials, local_path
from migrate.targets.group.rollback_file import (
    RollbackFile,
    cut_over_folders,
    history,
    superseded_commits,
    writers,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.kafka.config import KafkaConfig

TARGETS = "spark:DIR or group:NAME"
_TARGET_PREFIXES = (SPARK_PREFIX, GROUP_PREFIX)
# Folders in a job's checkpoint directory that contain no checkpoints.
_FOLDERS_OF_A_JOB = ("shared", "taskowned")
# The maximum number of directory entries to search for checkpoints.
_MOST_CHILDREN = 200


def verify(
    moved: AnyPath,
    target: str,
    *,
    run: bool = False,
    spark_conf: Mapping[str, str] | None = None,
    state: str | None = None,
    expect: str | None = None,
    sample: int | None = None,
    merge_keys: bool = False,
    ttl_ms: int | EllipsisType | None = ...,
    stopped_at_ms: int | None = None,
    one_cluster: bool = False,
    **arguments: Unpack[SideArguments],
) -> Verification:
    """Check, after a move, that the target started where the checkpoint ended.

    Args:
        moved: the checkpoint, as in ``plan``, or ``plan:FILE``.
        target: ``spark:DIR`` or ``group:NAME``.
        run: True to start Spark on a copy of the seed and check its start offsets; only for
            ``spark:DIR``.
        spark_conf: with ``run`` or ``state``, the Spark settings.
        state: the keyed state with which ``spark:DIR`` was primed, as ``OPERATOR/NAME``. The Flink
            state and the Spark state are compared key by key (``Verification.state``).
        expect: with ``state``, Spark SQL expressions over the columns of the Flink state: first one
            for each field of the Spark key, then one for each field of the Spark value. By default,
            they are the parts of the Flink key, the window if there is one, and the parts of the
            value.
        sample: with ``state``, the number of Flink keys to compare; by default all.
        merge_keys: with ``state``, True to merge Flink entries whose keys become equal in Spark, as
            in ``aggregate_rows``, and to truncate nanoseconds in keys. By default, such entries
            count as differences.
        ttl_ms: the TTL of ``state``, in milliseconds, if it has one. Entries that had expired when
            the job was stopped are omitted. None keeps every entry.
        stopped_at_ms: with ``ttl_ms``, the time when the job stopped, in epoch milliseconds. By
            default, the time of the checkpoint's ``_metadata`` or of the last access in the state,
            whichever is later.
        one_cluster: as in ``plan``, True to assume that sources that read the same topic read it
            from the same Kafka cluster if their state does not identify a cluster. In ``verify``,
            their positions must also be equal.
        arguments: see ``ChoiceArguments``, ``KafkaArguments``, and ``ToKafkaArguments``.

    Returns:
        The outcome of each partition. ``verified`` is true if

        - the result has partitions, and the outcome of each is ``ok``,
        - a plan does not differ from its origin, if the origin can be read,
        - the positions of a plan for another cluster have matches there,
        - the states, if compared, are equal,
        - the query's log has not lost its first batches, and
        - no log start offset is above the start offset of a query that has run.

        ``verified_or_moved_on`` also accepts partitions that have moved on, a log that has lost its
        first batches, and records that retention may have deleted before the first batch.

    Raises:
        QueryFailed: Spark's first batch failed, or it timed out.
        ServiceError: Spark failed while reading the query's state.
        Refused: the positions are ambiguous; the plan was made for another cluster; or the states
            cannot be compared, for example because ``ttl_ms`` is missing.
        UsageError: arguments cannot be combined, or they name something that does not exist.
        DecodeError, InputError: the checkpoint, the plan, or the target cannot be read.
        BrokerError: the broker did not answer, or it denied the request.
    """
    if state is not None:
        verify_with_state = service("stateful_query", "verify_with_state")
        with_state: Verification = verify_with_state(
            moved,
            target,
            state,
            run=run,
            spark_conf=spark_conf or {},
            expect=expect,
            sample=sample,
            merge_keys=merge_keys,
            ttl_ms=ttl_ms,
            stopped_at_ms=stopped_at_ms,
            one_cluster=one_cluster,
            arguments=arguments,
        )
        return with_state
    if expect is not None or sample is not None or merge_keys:
        raise UsageError("`expect`, `sample`, and `merge_keys` require `state`")
    if ttl_ms is not ... or stopped_at_ms is not None:
        raise UsageError("`ttl_ms` and `stopped_at_ms` require `state`")
    check_combinations(VerifyArguments, {**arguments, "run": run, "spark_conf": spark_conf})
    if run:
        from migrate.spark.resume_check import check_pyspark

        check_pyspark()
    moved = os.fspath(moved)
    brokers = _broker_options(arguments)
    _check_order(moved, target, brokers)
    job, to_kafka = kafka(arguments, SideArguments), target_connection(arguments)
    source_choice = choice(arguments)
    if moved.startswith(PLAN_PREFIX):
        expected = _expected_by_plan(moved, source_choice, one_cluster)
    else:
        expected = _expected_by_checkpoint(moved, source_choice, one_cluster)
    plan = expected.plan
    if plan is None and to_kafka.is_given:
        raise _translated_error(target)
    if plan is not None and (to_kafka.is_given or job.is_given or not plan.is_translated):
        check_target_kafka(plan, to_kafka)
    side = _parse_target(target, brokers)
    if run and side.kind is not SideKind.SPARK:
        raise UsageError(f"{option('run', True)} requires spark:DIR, because it runs a Spark query")
    broker = to_kafka.broker if to_kafka.is_given else job.broker
    if broker is None and side.kind is SideKind.GROUP:
        raise broker_needed(side.label)
    if broker is None and run:
        raise broker_needed(option("run", True))
    snapshot = _ask(broker, expected, side)
    if side.kind is SideKind.SPARK:
        verification = _verify_query(side, expected, snapshot, broker if run else None, spark_conf)
    else:
        verification = _verify_group(side, expected, snapshot)
    if plan is not None:
        check = compare_with_origin(plan, allow_external_files=source_choice.allow_external_files)
        if plan.is_translated:
            other_places, unmatched = _compare_records(plan, job, to_kafka)
            differences = (*check.differences, *other_places)
            check = replace(check, differences=differences, unmatched=unmatched)
        partitions = _only_planned(verification.partitions, plan)
        verification = replace(verification, partitions=partitions, plan=check)
    return verification


def _broker_options(arguments: SideArguments) -> str:
    """Return the user's broker options as they follow a command, such as `` -b broker:9092``."""
    words = "".join(f" {shlex.quote(word)}" for word in flag_words(CONNECTION_FLAGS, arguments))
    return words + PROPERTIES if arguments.get("kafka_properties") else words


def _check_order(moved: str, target: str, brokers: str) -> None:
    """Refuse a target passed as ``moved``, swapped prefixes, or a mistyped prefix in ``moved``.

    ``brokers`` are the broker options for a suggested command.
    """
    corrected = [_with_prefix_of_kind(moved), _with_prefix_of_kind(target)]
    corrected.sort(key=lambda name: name.startswith(_TARGET_PREFIXES))  # the target is last
    is_target = [name.startswith(_TARGET_PREFIXES) for name in corrected]
    if not {moved, target}.issuperset(corrected) and is_target == [False, True]:
        raise UsageError(
            f"{PLAN_PREFIX} is for a file, and {SPARK_PREFIX} is for a directory; did you mean: "
            f"migrate verify {shlex.join(map(redact_url, corrected))}{brokers}"
        )
    if moved.startswith(_TARGET_PREFIXES):
        if target.startswith(_TARGET_PREFIXES):
            brokers = " -b HOST:PORT" if GROUP_PREFIX in (moved[:6], target[:6]) else ""
            raise UsageError(
                "both arguments are targets; pass the savepoint or plan:FILE first, and then one "
                "target; to compare the two, run `migrate diff "
                f"{redact_url(moved)} {redact_url(target)}{brokers}`"
            )
        swapped = shlex.join((redact_url(target), redact_url(moved)))
        raise UsageError(
            f"pass the checkpoint before the target: migrate verify {swapped}{brokers}"
        )
    exists = os.path.exists(moved)
    if not exists and (similar := with_known_prefix(moved, ("plan", "group", "spark"))):
        raise UsageError(f"{moved}: no such checkpoint or plan; did you mean {similar}?")


def _with_prefix_of_kind(name: str) -> str:
    """Return ``plan:FILE`` for ``spark:FILE``, and ``spark:DIR`` for ``plan:DIR``.

    Return any other name unchanged, also if DIR is not a Spark checkpoint location.
    """
    path = name.removeprefix(SPARK_PREFIX).removeprefix(PLAN_PREFIX)
    if name.startswith(SPARK_PREFIX) and os.path.isfile(path):
        return PLAN_PREFIX + path
    if name.startswith(PLAN_PREFIX) and os.path.isdir(path):
        names = (entry.name for entry in Path(path).iterdir())
        return SPARK_PREFIX + path if looks_like_location(names) else name
    return name


def _parse_target(target: str, brokers: str) -> Side:
    """Parse the target's name; ``brokers`` are the broker options for a suggested command.

    Raises:
        UsageError: the name is neither ``spark:DIR`` nor ``group:NAME``.
        InputError: the URL contains credentials.
    """
    if target.startswith(_TARGET_PREFIXES):
        return parse_side(target)
    check_no_credentials(target, InputError)
    if similar := with_known_prefix(target, ("spark", "group")):
        raise UsageError(f"{target}: no such target; did you mean {similar}?")
    if target.startswith(("json:", "csv:", "broker:")):
        if not brokers and target.startswith("broker:"):
            brokers = " -b HOST:PORT"
        raise UsageError(
            f"{target}: verify requires spark:DIR or group:NAME; to compare any two sides, run "
            f"`migrate diff CHK {target}{brokers}`"
        )
    if target.startswith(PLAN_PREFIX):
        raise UsageError(
            f"{target} is not a target; pass plan:FILE as the first argument, and the target as "
            f"the second: migrate verify {target} TARGET{brokers}"
        )
    if os.path.isfile(target):
        raise UsageError(
            f"{target} is a file, not a target; to use a plan, pass plan:{target} as the first "
            f"argument, and {TARGETS} as the second"
        )
    if advice := _checkpoint_advice(target.rstrip("/")):
        raise UsageError(advice)
    raise UsageError(f"{target} is not a target; {_prefix_advice(target)}")


def _checkpoint_advice(directory: str) -> str:
    """Return the message about a target that belongs to Flink; "" for any other directory."""
    head, folder = os.path.split(directory)
    if folder in _FOLDERS_OF_A_JOB and _checkpoint_kind(head or "."):
        directory = head or "."
    pass_target = f"pass {TARGETS} after the checkpoint"
    if kind := _checkpoint_kind(directory):
        return (
            f"{directory} is {kind}, not a target; {pass_target}; to compare two checkpoints, run "
            f"`migrate diff CHK {directory}`"
        )
    if any(_checkpoint_kind(join(directory, name)) for name in _names(directory)[:_MOST_CHILDREN]):
        return (
            f"{directory} contains Flink checkpoints, and is not a target; {pass_target}; to list "
            f"the checkpoints, run `migrate scan {directory}`"
        )
    return ""


def _checkpoint_kind(directory: str) -> str:
    """Return whether a directory is a checkpoint or a job's directory; "" for any other one."""
    names = _names(directory)
    if METADATA_FILE in names:
        return "a Flink checkpoint"
    if "taskowned" in names or any(checkpoint_number(name) is not None for name in names):
        return "the checkpoint directory of a Flink job"
    return ""


def _names(directory: str) -> list[str]:
    """Return the names in a local directory; an empty list if it cannot be listed."""
    with suppress(OSError):
        return LocalFiles().list_directory(directory) or []
    return []


def _prefix_advice(target: str) -> str:
    """Return the advice to add the plausible prefix to a target that has no prefix."""
    is_directory = os.path.isdir(target)
    if is_directory or "/" in target:
        return f"for a Spark query's checkpoint location, pass spark:{target} after the checkpoint"
    if ":" in target:
        return f"pass {TARGETS} after the checkpoint"
    return f"for a consumer group, pass group:{target} after the checkpoint"


class _Expected(NamedTuple):
    """The expected start of a target.

    Attributes:
        new_at_earliest: True if a new partition must start at the log start.
        plan: the plan that the positions come from, or None if they come from a checkpoint.
        written_at: the time when the checkpoint was written, in epoch milliseconds; None for a plan
            with topic IDs.
    """

    starts: PositionSet
    new_at_earliest: bool
    plan: Plan | None = None
    written_at: int | None = None

    def recreated(self, snapshot: ClusterSnapshot | None) -> Sequence[str]:
        """Return the topics that were recreated since the plan was made."""
        if self.plan is None or snapshot is None:
            return ()
        return recreated_topics(self.plan.in_target_cluster(), snapshot)


def _expected_by_plan(moved: str, choice: Choice, one_cluster: bool) -> _Expected:
    """Read the expected start from ``plan:FILE``.

    Raises:
        UsageError: an option for checkpoints is set, or the file name is missing.
        InputError: the plan cannot be read.
    """
    from migrate.planning.plan_file import read_plan

    for name, is_set in (
        ("source", choice.source is not None),
        ("cluster", choice.cluster is not None),
        ("one_cluster", one_cluster),
    ):
        if is_set:
            raise UsageError(
                f"{option(name)} requires a checkpoint, and cannot be combined with plan:FILE"
            )
    if moved == PLAN_PREFIX:
        raise UsageError(f"{moved!r}: the file name is missing; write {PLAN_PREFIX}FILE")
    plan = read_plan(local_path(moved.removeprefix(PLAN_PREFIX)))
    written_at = plan.origin.written_at if not (plan.topic_ids or plan.is_translated) else None
    return _Expected(PositionSet(moved, plan.next_offsets), False, plan, written_at)


def _expected_by_checkpoint(moved: str, choice: Choice, one_cluster: bool) -> _Expected:
    """Read the expected start from a checkpoint.

    Raises:
        Refused: several sources read the same topic, at different positions or possibly on two
            clusters.
    """
    extraction = read(moved, allow_external_files=choice.allow_external_files)
    chosen = choose(extraction, choice)
    for topic in shared_topics(chosen):
        if one_cluster and topic.differing:
            facts = topic.disagreement_refusal(one_cluster=True).facts
            raise Refused(EXPECTED_POSITIONS_DIFFER(chk=moved, **facts))
        if topic.may_be_two_topics and not one_cluster:
            facts = topic.unnamed_cluster_refusal().facts
            raise Refused(EXPECTED_POSITIONS_AMBIGUOUS(chk=moved, **facts))
    at_earliest = all(source.starts_absent_partitions_at_log_start for source in chosen)
    written_at = extraction.origin.written_at
    return _Expected(source_positions(moved, chosen), at_earliest, written_at=written_at)


def _ask(broker: KafkaConfig | None, expected: _Expected, side: Side) -> ClusterSnapshot | None:
    """Query the broker about the expected topics and, if the target is a group, about the group.

    Raises:
        Refused: the plan was made for another cluster.
    """
    if broker is None:
        return None
    group = side.what if side.kind is SideKind.GROUP else None
    topics, since = valid_topics(expected.starts.topics), expected.written_at
    if since is not None:
        since += round(
            1000 * CLOCK_DIFFERENCE
        )  # the producers' clocks may differ from the storage clock
    snapshot = ask_broker(broker, Question(topics, group, since=since))
    if expected.plan is not None and expected.plan.cluster_id is not None:
        check_cluster(expected.plan.in_target_cluster(), snapshot)
    return snapshot


def _translated_error(target: str) -> Refused:
    return Refused(TARGET_ON_OTHER_CLUSTER(target=target))


def _only_planned(
    partitions: tuple[VerifiedPartition, ...], plan: Plan
) -> tuple[VerifiedPartition, ...]:
    """If the user chose partitions, omit the partitions that the plan does not move."""
    if not plan.only_some_partitions:
        return partitions
    planned = plan.next_offsets
    return tuple(row for row in partitions if row.topic_partition in planned)


def _compare_records(
    plan: Plan, job: Kafka, to_kafka: Kafka
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Compare the records of both clusters.

    Return a line for each offset at which the records differ, and one for each position without a
    match.

    Raises:
        Refused: the brokers of the job belong to a different cluster than in the plan.
    """
    if not (job.is_given and to_kafka.is_given):
        both_clusters = (
            f"pass the job's cluster with {option('bootstrap_servers')}, and the target's cluster "
            f"with {option('to_kafka_config')}"
        )
        return (), (f"{plan.origin.pointer}: no record compared: {both_clusters}",)
    check_cluster(plan.in_job_cluster(), ask_broker(job.config(), Question(frozenset())))
    changes = find_translation_changes(plan, job.config(), to_kafka.config())
    unmatched = [message.what for message in (*changes.unmatched, *changes.duplicates)]
    other_places = tuple(message.what for message in changes.other_places)
    return other_places, (*unmatched, *changes.sampled)


def _verify_query(
    side: Side,
    expected: _Expected,
    snapshot: ClusterSnapshot | None,
    run_with: KafkaConfig | None,
    settings: Mapping[str, str] | None,
) -> Verification:
    """Check the start positions of a query or, with ``run_with``, of Spark on a copy of the seed.

    If no broker was queried, ``snapshot`` is None. ``settings`` are the Spark settings for the run
    on the copy.
    """
    with timed(f"reading {side.label}"):
        query = query_start(side.label, side.what, start_from_spark=run_with is not None)
    if run_with is not None:
        query = replace(query, start_positions=_run(side, run_with, settings or {}))
    if snapshot is None:
        warn(NOT_CHECKED())
    return verify_query(
        expected.starts,
        query,
        snapshot.topics if snapshot is not None else None,
        new_at_earliest=expected.new_at_earliest,
        recreated=expected.recreated(snapshot),
    )


def _run(side: Side, broker: KafkaConfig, settings: Mapping[str, str]) -> PositionSet:
    from migrate.spark.resume_check import run_first_batch

    log.info("starting Spark on a copy of the start offsets")
    with timed("running Spark on a copy of the start offsets"):
        resume = run_first_batch(side.label, side.what, broker, settings)
    log.info(f"Spark {resume.spark} planned its first batch, and read {resume.records} records")
    return resume.start_positions


def _verify_group(
    side: Side, expected: _Expected, snapshot: ClusterSnapshot | None
) -> Verification:
    """Check the offsets of a consumer group."""
    assert snapshot is not None and snapshot.source_group is not None  # ``_ask`` queried it
    group = snapshot.source_group
    # Search for rollback files in the current folder, and in the folders of its cut-overs.
    folders = [Path(), *cut_over_folders(Path())]
    changes = history(folders, snapshot.cluster_id, group.name, ignore_unreadable=True)
    written = writers((change for _, change in changes), group)
    superseded = superseded_commits(changes, group)
    if expected.plan is None:
        sources = (*written.items(), *((place, found[1]) for place, found in superseded.items()))
        translated = {topic for (topic, _), change in sources if change.from_cluster_id is not None}
        topics, committed = expected.starts.topics, {topic for topic, _ in group.committed}
        # After a move with --topic-map, the group has no offsets in the checkpoint's topics.
        if translated & topics or (translated and not committed & topics):
            raise _translated_error(side.label)
    if warning := client_metadata_warning(group, written):
        log.warning(warning)
    if not group.exists:
        warn(NO_SUCH_GROUP(side=side.label, alike=group.alike))
    verification = verify_group(
        expected.starts,
        group,
        snapshot.topics,
        new_at_earliest=expected.new_at_earliest,
        written_by_us=written,
        superseded={
            place: (str(path), change.after.committed[place].next_offset)
            for place, (path, change) in superseded.items()
        },
        recreated=expected.recreated(snapshot),
        recreated_since_commit=_recreated_since_commit(changes, snapshot),
    )
    is_known = written or superseded or verification.verified
    if expected.plan is None and group.committed and not is_known:
        warn(GROUP_ORIGIN_UNKNOWN(side=side.label))
    return verification


def _recreated_since_commit(
    changes: Sequence[tuple[Path, RollbackFile]], snapshot: ClusterSnapshot
) -> set[str]:
    """Return the topics that have a different ID than in the newest change of their offsets."""
    ids: dict[str, str] = {}
    for _, change in changes:  # newest first
        ids = {**change.topic_ids, **ids}
    now = snapshot.topic_ids
    return {topic for topic, then in ids.items() if topic in now and now[topic] != then}
