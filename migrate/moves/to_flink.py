"""``to_flink``: a savepoint with other positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from decoder.urls import redact_url
from migrate.inputs.flink.choose_source import choose, choose_known
from migrate.inputs.flink.extract import Extraction, Source
from migrate.inputs.flink.read import read
from migrate.inputs.flink.source import topics_of
from migrate.inputs.position_inputs import parse_side, side_input
from migrate.model.errors import NoSuchName, Refused, UsageError
from migrate.model.log import log, timed
from migrate.model.policies import Policies
from migrate.model.positions import SAVEPOINT
from migrate.model.wording import counted
from migrate.moves.load_inputs import asker
from migrate.moves.options import Request, move_request
from migrate.moves.pipeline import plan_parts, report_plans
from migrate.moves.sink import named_location
from migrate.planning import Plan, PlannedPartition, Refusal
from migrate.planning.shared_topics import one_cluster_warnings, shared_topics
from migrate.storage.files import lies_within
from migrate.targets.location import LocalDirectory, RemoteDirectory
from migrate.targets.savepoint import ClusterPartition, write_savepoint
from migrate.targets.savepoint.changes import (
    SourceChange,
    refuse_left_out,
    restrict_to_topics,
    source_change,
    split_shared_topics,
)
from migrate.targets.savepoint.state_mismatch import check_savepoint, state_mismatches

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.moves.options import AnyPath, MoveArguments


@dataclass(frozen=True, slots=True)
class NewSavepoint:
    """A savepoint that was written.

    Attributes:
        path: its directory: an absolute path, or the URL that was named.
        partitions: what was planned, by operator id; ``current`` is where the old one had it.
        warnings: what is not refused, and must be known.
    """

    path: str
    partitions: Mapping[str, tuple[PlannedPartition, ...]] = field(repr=False)
    warnings: tuple[str, ...] = ()


class SourceMatch(NamedTuple):
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
        out: a new or empty directory, local or in a store.
        allow_state_mismatch: go on with the state although it is that of other positions: what
            lies between is counted twice, or missing from it.
        arguments: see ``MoveArguments``; ``source`` and ``cluster`` choose of the savepoint and
            of the side, where each has such.

    Raises:
        Refused: what would lose or repeat records is not allowed, the state cannot hold the
            positions, or ``out`` holds something; nothing was written.
        UsageError: arguments that do not go together, or name what is not there.
        DecodeError, InputError: one of both cannot be read.
        BrokerError: the broker did not answer, or denied what was asked.
        OSError: the directory cannot be written.
    """
    request = move_request(savepoint, SAVEPOINT, arguments)
    place = _new_place(out)
    old = read(str(request.chk), request)
    _check_outside(place, old.checkpoint.pointer)
    chosen, unknown = choose_known(old, request)
    topics = topics_of(chosen)
    side = side_input(parse_side(from_side), request, asker(request.kafka), topics)
    if isinstance(side, Extraction) and side.origin.pointer == old.origin.pointer:
        side = _without_what_stays(side)
    theirs, unknown_to_it = choose_known(side, request)
    if unknown & unknown_to_it:
        choose(old, request)  # which says what there is
    matches = _match_sources(chosen, theirs, request.policies)
    if other_clusters := list(_other_clusters(matches, theirs)):
        raise Refused(list(map(str, other_clusters)))
    if request.policies.topic_pattern is not None and len(matches) > 1:
        raise UsageError(
            "--topic-pattern: which of several sources would read a new topic is not known; choose "
            "one with --source"
        )
    _check_topic_map(request.policies.topic_map, from_side, theirs, chosen)
    used = list({id(one): one for match in matches for one in match.goes_on_from}.values())
    parts = [match.goes_on_from for match in matches]
    move = plan_parts(request, side, theirs, parts, asked_about=used, into=old, named=True)
    log.info(f"{old.origin.title}: {old.origin.pointer}")
    which = "" if side.origin.kind == "positions" else f": {side.origin.title}"
    log.info(f"positions of {redact_url(from_side)}{which}")
    changes: list[SourceChange] = []
    shared_topic_notes: list[str] = []
    for match, plan in zip(matches, move.plans, strict=True):
        change = source_change(match.source, match.cluster, plan, from_side, request.policies)
        if request.source is None or request.policies.partitions is None:
            others = [one for one in old.sources if one.operator_id != match.source.operator_id]
            change, told = split_shared_topics(change, match.source, match.cluster, others)
            shared_topic_notes += told
        changes.append(change)
    refusals, warnings = check_savepoint(
        old, chosen, move.snapshot, request.policies, named=request.source is not None
    )
    refusals += _clusters_unnamed(matches)
    refusals += _refuse_unknown_clusters(matches, request)
    refusals += _left_out(from_side, theirs, matches, request)
    refusals += _refusals_of(matches, move.plans)
    refusals += [refusal for change in changes for refusal in change.refusals]
    mismatches, moved = state_mismatches(changes, old, allowed=allow_state_mismatch)
    refusals += mismatches
    warnings += [
        *one_cluster_warnings(shared_topics(match.source for match in matches), request.policies),
        *shared_topic_notes,
        *moved,
    ]
    names = [f"operator {match.source.operator_id}" if parts[1:] else "" for match in matches]
    all_warnings = report_plans(move.plans, names, warnings)
    if refusals:
        raise Refused(list(dict.fromkeys(map(str, refusals))))
    new_offsets: dict[str, dict[ClusterPartition, int | None]] = {}
    partitions: dict[str, tuple[PlannedPartition, ...]] = {}
    for change in changes:
        new_offsets.setdefault(change.operator_id, {}).update(change.new_offsets)
        partitions[change.operator_id] = (
            *partitions.get(change.operator_id, ()),
            *change.partitions,
        )
    new, (path, _) = place.for_spark, place.to_read
    with timed(f"writing {new}"):
        write_savepoint(
            old.checkpoint, new_offsets, path, allow_external_files=request.allow_external_files
        )
    changed = sum(map(len, new_offsets.values()))
    log.info(f"wrote {new}: {counted(changed, 'partition')} changed, all else as it was")
    return NewSavepoint(new, partitions, all_warnings)


def _new_place(out: AnyPath) -> LocalDirectory | RemoteDirectory:
    """The directory to write.

    Raises:
        Refused: it holds something.
        UsageError: there can be none of this name.
    """
    place = named_location("--out", out)
    if isinstance(place, LocalDirectory) and place.mounted:
        raise UsageError(
            f"--out {place.name}: a store without a rename cannot be given a savepoint whole "
            "through its mount; name its URL, or a local directory, and copy it there"
        )
    names = place.names()
    if names is None:
        raise Refused(
            [f"{place.for_spark} is a file or a symbolic link, or lies in a file; name a new one"]
        )
    if names:
        raise Refused([f"{place.for_spark} is not empty; name a new directory"])
    return place


def _check_outside(place: LocalDirectory | RemoteDirectory, pointer: str) -> None:
    """The old savepoint is never changed: nothing is written into its directory."""
    path, _ = place.to_read
    if lies_within(path, pointer):
        raise Refused([f"{path} lies in the savepoint itself; name a directory elsewhere"])


def _without_what_stays(side: Extraction) -> Extraction:
    """The savepoint itself as a side: what it holds besides positions is not left behind."""
    findings = tuple(one for one in side.findings if one.code.policy.by_partition)
    return replace(side, findings=findings)


def _match_sources(
    chosen: Sequence[Source], theirs: Sequence[Source], policies: Policies
) -> list[SourceMatch]:
    """Each source of the savepoint, by cluster, with what it goes on from: of a checkpoint of the
    same job its own operator, else whatever has its topics, of that cluster where it names one."""
    matches: list[SourceMatch] = []
    for source in chosen:
        for cluster in sorted(source.clusters, key=lambda name: name or ""):
            own = source.of_cluster(cluster) if cluster is not None else source
            same = [one for one in theirs if one.operator_id == source.operator_id]
            of_it = [
                one if cluster is None or None in one.clusters else one.of_cluster(cluster)
                for one in same or theirs
            ]
            matches.append(
                SourceMatch(own, cluster, tuple(restrict_to_topics(of_it, own.topics, policies)))
            )
    if policies.partitions is None or len(matches) == 1:
        return matches
    named = {
        (policies.topic_map.get(topic, topic), partition)
        for topic, partitions in policies.partitions.items()
        for partition in partitions
    }
    held = [{position.topic_partition for position in match.source.positions} for match in matches]
    new = {topic for topic, _ in named - set().union(*held)}
    return [
        match
        if named & own or new & match.source.topics
        else match._replace(goes_on_from=())  # it keeps its positions
        for match, own in zip(matches, held, strict=True)
    ]


def _other_clusters(matches: Sequence[SourceMatch], theirs: Sequence[Source]) -> Iterator[Refusal]:
    """Offsets of one cluster are not those of another."""
    own = {match.cluster for match in matches} - {None}
    others = {cluster for one in theirs for cluster in one.clusters} - own - {None}
    if own and others:
        ours, of_others = (", ".join(sorted(map(repr, names))) for names in (own, others))
        yield Refusal(
            f"the savepoint reads cluster {ours}, and these positions are of {of_others}",
            "choose one that both name with --cluster ID; or name positions as json:FILE, which "
            "are those of the savepoint's cluster",
        )


def _clusters_unnamed(matches: Sequence[SourceMatch]) -> Iterator[Refusal]:
    """Positions that name no cluster cannot be those of several."""
    unnamed = {
        match.cluster
        for match in matches
        if match.cluster is not None
        and any(match.cluster not in one.clusters for one in match.goes_on_from)
    }
    if len(unnamed) > 1:
        yield Refusal(
            f"the savepoint reads {len(unnamed)} Kafka clusters: "
            + ", ".join(sorted(map(repr, unnamed))),
            "these positions are of one: choose it with --cluster ID",
        )


def _refuse_unknown_clusters(matches: Sequence[SourceMatch], request: Request) -> Iterator[Refusal]:
    """Refuse topics that several sources read, perhaps on different Kafka clusters.

    Sources that each go on from their own operator need no cluster to be told apart, unless a
    broker is asked, which is one cluster's.
    """
    if request.policies.one_cluster:
        return
    moving = [match for match in matches if match.goes_on_from]
    from_others = {
        match.source.operator_id
        for match in moving
        if any(one.operator_id != match.source.operator_id for one in match.goes_on_from)
    }
    for topic in shared_topics(match.source for match in moving):
        ids = {source.operator_id for source in topic.sources}
        if topic.may_be_two and (request.kafka.given or from_others & ids):
            yield topic.refuse_unnamed_cluster()


def _refusals_of(matches: Sequence[SourceMatch], plans: Sequence[Plan]) -> Iterator[Refusal]:
    """Return the plans' refusals, with the operator where a refusal is not about all of them."""
    for match, plan in zip(matches, plans, strict=True):
        for refusal in plan.refusals:
            if all(refusal in other.refusals for other in plans):
                yield refusal
            else:
                yield replace(refusal, what=f"operator {match.source.operator_id}: {refusal.what}")


def _check_topic_map(
    topic_map: Mapping[str, str], side: str, theirs: Sequence[Source], chosen: Sequence[Source]
) -> None:
    """Check the names of ``--topic-map``: OLD is the side's, NEW the savepoint's.

    Raises:
        NoSuchName: the side has no topic OLD, or no source of the savepoint reads NEW.
    """
    known = topics_of(theirs)
    read = topics_of(chosen)
    for old, new in topic_map.items():
        if old not in known:
            raise NoSuchName(
                f"--topic-map {old}={new}: {side} has no topic {old}",
                old,
                known,
                f"it has: {', '.join(sorted(known))}",
            )
        if new not in read:
            raise NoSuchName(
                f"--topic-map {old}={new}: no source of the savepoint reads {new}",
                new,
                read,
                f"they read: {', '.join(sorted(read))}. A savepoint keeps the names of its topics: "
                f"name the one that goes on from {side}'s {old}",
            )


def _left_out(
    name: str, theirs: Sequence[Source], matches: Sequence[SourceMatch], request: Request
) -> Iterator[Refusal]:
    """Topics that the side has and no source of the savepoint takes."""
    taken = {
        position.topic
        for match in matches
        for one in match.goes_on_from
        for position in one.positions
    }
    own = {match.source.operator_id for match in matches}
    same = [source for source in theirs if source.operator_id in own]
    # Of one job its other sources go on as they are.
    topics = topics_of(same or theirs) - taken
    if request.policies.partitions is not None:
        topics &= request.policies.partitions.keys()
    if topics and request.source is None:
        yield refuse_left_out(name, topics)
    elif topics:
        log.info(f"note: --source leaves out {', '.join(sorted(topics))}")
