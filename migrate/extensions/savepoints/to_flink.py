"""``to_flink``: write a savepoint with different positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from decoder.urls import redact_url
from migrate.extensions.savepoints.catalog import OUTPUT_INSIDE_SAVEPOINT
from migrate.extensions.savepoints.match_sources import (
    SourceMatch,
    check_common_topic,
    check_topic_map,
    left_out_topic_refusals,
    match_sources,
    other_cluster_refusals,
    unknown_cluster_refusals,
    unnamed_position_refusals,
)
from migrate.extensions.savepoints.state_mismatch import check_savepoint, state_mismatches
from migrate.extensions.savepoints.write import write_savepoint
from migrate.inputs.flink.choose_source import choose, choose_leniently
from migrate.inputs.flink.extract import Extraction, read
from migrate.inputs.flink.source import topics_of
from migrate.inputs.position_inputs import SIDE_PREFIXES, SideKind, parse_side, side_input
from migrate.model.catalog import LOCATION_NOT_A_DIRECTORY, LOCATION_NOT_EMPTY
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log, timed
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.model.positions import SAVEPOINT, ClusterPartition
from migrate.model.warning import WarningText
from migrate.model.wording import counted
from migrate.moves.load_inputs import ChosenInput
from migrate.moves.options import MoveArguments, Request, move_request
from migrate.moves.pipeline import Move, make_move, report_plans
from migrate.moves.plan import check_origin
from migrate.moves.sink import named_location
from migrate.planning import Plan, PlannedPartition
from migrate.planning.shared_topics import one_cluster_warnings, shared_topics
from migrate.planning.source_changes import (
    SourceChange,
    change_cluster,
    remove_partitions_of_others,
    source_change,
)
from migrate.storage.files import is_same_place
from migrate.storage.uris import AnyPath, is_within
from migrate.targets.location import LocalDirectory, RemoteDirectory

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, slots=True)
class NewSavepoint:
    """A savepoint that was written.

    Attributes:
        path: the savepoint's directory, as an absolute path or as the URL that was passed.
        partitions: the planned partitions, by operator ID. ``current`` is the next offset in the
            old savepoint; None if unknown. For a new partition, or a partition that starts at the
            log start, ``current`` is the log start offset, or 0 if the new next offset is 0.
    """

    path: str
    partitions: Mapping[str, Sequence[PlannedPartition]] = field(repr=False)
    warnings: tuple[str, ...] = ()


def to_flink(
    savepoint: AnyPath,
    *,
    from_side: str,
    out: AnyPath,
    allow_state_mismatch: bool = False,
    **arguments: Unpack[MoveArguments],
) -> NewSavepoint:
    """Write a copy of a savepoint, with the Kafka positions of a different input.

    The original savepoint does not change.

    Args:
        savepoint: a ``chk-<n>`` or savepoint directory, its ``_metadata``, or a job's checkpoint
            directory; each as a local path or a URL.
        from_side: the input with the positions (the side), which can be any input that ``diff``
            compares.
        out: a new or empty directory, either local or in an object store.
        allow_state_mismatch: True to write the savepoint even though the job's state belongs to the
            old positions. The state then double-counts or omits the records between the old and the
            new positions. By default, such a savepoint is refused.
        arguments: see ``MoveArguments``. ``source`` and ``cluster`` apply to the savepoint and to
            the side. If only one of these two inputs contains the specified source or cluster, the
            option is ignored for the other input. If neither input contains the specified source or
            cluster, the call fails. The side's positions refer to the job's cluster. If
            ``to_kafka_config`` specifies a different cluster, the savepoint gets the topics and
            offsets of the cluster in ``to_kafka_config``.

    Raises:
        Refused: the move would lose or duplicate records and no option allows it, the state cannot
            store the positions, or ``out`` is a file, is not empty, or is inside the savepoint;
            nothing was written.
        UsageError: arguments cannot be combined, or they name something that does not exist.
        DecodeError, InputError: the savepoint or the side cannot be read.
        BrokerError: the broker did not answer, or it denied the request.
        OSError: the directory cannot be written.
    """
    _check_order(str(savepoint), from_side)
    request = move_request(SAVEPOINT, arguments)
    directory = _output_directory(out)
    path, _ = directory.to_read
    old = read(str(savepoint), allow_external_files=request.allow_external_files)
    if is_within(path, old.checkpoint.pointer):
        raise Refused(OUTPUT_INSIDE_SAVEPOINT(directory=path))
    chosen, ignored = choose_leniently(old, request)
    side = side_input(
        parse_side(from_side),
        request.kafka.broker,
        topics_of(chosen),
        allow_external_files=request.allow_external_files,
    )
    is_own_side = is_same_place(side.origin.pointer, old.origin.pointer)
    if isinstance(side, Extraction) and is_own_side:
        # The side and the savepoint have the same findings, and ``check_savepoint`` examines those
        # that are not about a single partition.
        findings = (finding for finding in side.findings if finding.code.policy.by_partition)
        side = replace(side, findings=tuple(findings))
    all_side_sources, ignored_by_side = choose_leniently(side, request)
    if ignored & ignored_by_side:
        choose(old, request)  # raises an error that lists the existing names
    policies = request.job_policies
    if request.to_kafka.is_given and policies.partitions is not None:
        raise UsageError(
            f"{option('partitions')} cannot be combined with a different target cluster, because "
            "all partitions of a source must be in the same cluster"
        )
    matches = match_sources(chosen, all_side_sources, policies)
    if other_clusters := list(other_cluster_refusals(matches, all_side_sources)):
        raise Refused(other_clusters)
    if request.policies.topic_pattern is not None and len(matches) > 1:
        raise UsageError(
            f"{option('topic_pattern')} requires a single source, because it is unclear which of "
            f"several sources reads a new topic; choose one with {option('source')}"
        )
    if not request.to_kafka.is_given:
        check_topic_map(policies.topic_map, from_side, all_side_sources, chosen)
    check_common_topic(matches, all_side_sources, from_side, request)
    parts = [match.side_sources for match in matches]
    used = list(chain.from_iterable(parts))
    move = make_move(request, ChosenInput(side, used), parts, into=old, ignore_other_sources=True)
    log.info(f"{old.origin.title}: {old.origin.pointer}")
    which = "" if side.origin.kind == "positions" else f": {side.origin.title}"
    log.info(f"positions of {redact_url(from_side)}{which}")
    changes, of_others = _changes(move, matches, old, from_side)
    ignore_others = request.source is not None
    refusals, warnings = check_savepoint(
        old, chosen, move.snapshot, policies, ignore_other_sources=ignore_others
    )
    refusals += unnamed_position_refusals(matches)
    refusals += unknown_cluster_refusals(matches, request)
    refusals += left_out_topic_refusals(from_side, all_side_sources, matches, request)
    refusals += _plan_refusals(matches, move.plans)
    refusals += [refusal for change in changes for refusal in change.refusals]
    mismatches, accepted = state_mismatches(changes, old, side.origin, allowed=allow_state_mismatch)
    refusals += mismatches
    if request.to_kafka.is_given:
        changes = [
            change_cluster(change, match.source, match.cluster, plan)
            for change, match, plan in zip(changes, matches, move.plans, strict=True)
        ]
        refusals += [refusal for change in changes for refusal in change.refusals]
    shared = shared_topics(match.source for match in matches)
    warnings += [*one_cluster_warnings(shared, policies), *of_others, *accepted]
    names = [f"operator {match.source.operator_id}" if parts[1:] else "" for match in matches]
    all_warnings = report_plans(move.plans, names, (*warnings, *move.warnings))
    if refusals:
        raise Refused(list(dict.fromkeys(refusals)))
    if request.flink_rest is not None and not is_own_side:
        check_origin(old.origin, request, writes=False)
    check_origin(side.origin, request, move.plans, writes=True)
    return _write(directory, old, changes, all_warnings, request)


def _changes(
    move: Move, matches: Sequence[SourceMatch], old: Extraction, from_side: str
) -> tuple[list[SourceChange], list[WarningText]]:
    """Return each source's change, and warnings about new partitions that other sources read."""
    policies = move.request.job_policies
    changes, warnings = [], []
    for match, plan in zip(matches, move.plans, strict=True):
        own = match.source
        own_plan = replace(plan.in_job_cluster(), snapshot=move.snapshot)
        change = source_change(own, match.cluster, own_plan, from_side, policies)
        if move.request.source is None or policies.partitions is None:
            others = [source for source in old.sources if source.operator_id != own.operator_id]
            change, of_others = remove_partitions_of_others(change, own, match.cluster, others)
            warnings += of_others
        changes.append(change)
    return changes, warnings


def _write(
    directory: LocalDirectory | RemoteDirectory,
    old: Extraction,
    changes: Sequence[SourceChange],
    warnings: tuple[str, ...],
    request: Request,
) -> NewSavepoint:
    new_offsets: dict[str, dict[ClusterPartition, int | None]] = {}
    partitions: dict[str, list[PlannedPartition]] = {}
    for change in changes:
        new_offsets.setdefault(change.operator_id, {}).update(change.new_offsets)
        partitions.setdefault(change.operator_id, []).extend(change.partitions)
    new, (path, _) = directory.for_spark, directory.to_read
    with timed(f"writing {new}"):
        write_savepoint(
            old.checkpoint, new_offsets, path, allow_external_files=request.allow_external_files
        )
    changed = sum(map(len, new_offsets.values()))
    log.info(f"wrote {new}: {counted(changed, 'partition')} changed, everything else unchanged")
    return NewSavepoint(new, partitions, warnings)


def _check_order(savepoint: str, from_side: str) -> None:
    """Raise UsageError if the positions were passed as the savepoint."""
    if savepoint.partition(":")[0] not in SIDE_PREFIXES:
        return
    is_swapped = parse_side(from_side).kind is SideKind.CHECKPOINT
    positions = redact_url(savepoint)
    chk = redact_url(from_side) if is_swapped else "SAVEPOINT"
    raise UsageError(
        f"{positions} is not a savepoint; pass the savepoint first, and the positions with "
        f"{option('from_side')}: migrate to-flink {chk} --from {positions}"
    )


def _output_directory(out: AnyPath) -> LocalDirectory | RemoteDirectory:
    """Return the directory to which to write the savepoint.

    Raises:
        Refused: the directory is not empty, or the path is not a directory.
        UsageError: the name is not valid, or the path is on a mounted object store that cannot
            rename directories.
    """
    directory = named_location("out", out)
    if isinstance(directory, LocalDirectory) and directory.mounted:
        raise UsageError(
            f"{option('out', directory.name)} is a mounted object store that cannot rename "
            "directories, so migrate cannot write a complete savepoint to it; pass the URL of "
            "the store, or write to a local directory and copy the savepoint"
        )
    names, name = directory.names(), directory.for_spark
    if names is None:
        raise Refused(LOCATION_NOT_A_DIRECTORY(directory=name))
    if names:
        raise Refused(LOCATION_NOT_EMPTY(directory=name))
    return directory


def _plan_refusals(matches: Sequence[SourceMatch], plans: Sequence[Plan]) -> Iterator[Message]:
    """Yield the plans' refusals; if a refusal is not in all plans, add the operator's ID to it."""
    for match, plan in zip(matches, plans, strict=True):
        for refusal in plan.refusals:
            if all(refusal in other.refusals for other in plans):
                yield refusal
            else:
                yield refusal.about(f"operator {match.source.operator_id}")
