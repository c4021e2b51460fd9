"""What stands in the way of a move as a whole: findings, other clusters' brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from migrate.inputs.flink.extract import Code, Finding, PlanInput, Severity, Source
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.policies import MergeSources, Policies
from migrate.model.positions import Marker, PositionState
from migrate.model.wording import counted, printable
from migrate.planning.plan import Refusal


def relevant_findings(found: PlanInput, chosen: Sequence[Source], named: bool) -> list[Finding]:
    """The findings that bear on moving the chosen sources, but for those told by partition.

    So do those about sinks and state; those about other sources do too, unless the user chose
    these by name or it is about the job as a whole.
    """
    others = {source.operator_id for source in found.sources}
    others -= {source.operator_id for source in chosen}
    told = [
        finding
        for finding in found.findings
        if not finding.code.policy.by_partition
        and (
            not named
            or finding.code.policy.job_wide
            or not (finding.operator_id in others or finding.code.policy.another_source)
        )
    ]
    return [
        *(finding for finding in told if finding.code is not Code.STATE_NOT_MOVED),
        *_left_behind(found, told),
    ]


def _left_behind(found: PlanInput, told: Iterable[Finding]) -> Iterator[Finding]:
    """What is said of each operator that keeps state, in one."""
    ids = {finding.operator_id for finding in told if finding.code is Code.STATE_NOT_MOVED}
    held = [size for operator_id, size in found.state_bytes.items() if operator_id in ids]
    if held:
        yield Finding(
            Code.STATE_NOT_MOVED,
            Severity.WARNING,
            None,
            f"{counted(len(held), 'operator')} hold{'s' if len(held) == 1 else ''} {sum(held)} "
            "bytes of state that does not move: records consumed but not yet emitted may be among "
            "it (windows, joins, buffers)",
        )


def blocked_by_findings(findings: Iterable[Finding], policies: Policies) -> Iterator[Refusal]:
    for finding in findings:
        policy = finding.code.policy
        if finding.severity is Severity.BLOCKER and not policy.allowed(policies):
            yield Refusal(where(finding) + finding.message, policy.way_out)


def where(finding: Finding) -> str:
    return f"operator {finding.operator_id}: " if finding.operator_id is not None else ""


def clusters_mixed_up(chosen: Sequence[Source]) -> Iterator[Refusal]:
    """A target takes one cluster, and one topic-partition of two clusters is two positions."""
    clusters = {cluster for source in chosen for cluster in source.clusters}
    named = sorted(cluster for cluster in clusters if cluster is not None)
    if len(named) > 1:
        yield Refusal(
            f"there are positions of {len(named)} Kafka clusters: {', '.join(map(repr, named))}",
            "a target takes one: choose it with --cluster ID",
        )
    if named and None in clusters:
        unnamed = [source.operator_id for source in chosen if None in source.clusters]
        yield Refusal(
            f"the state of some sources does not name their Kafka cluster (operators "
            f"{', '.join(unnamed)}): it may not be {' or '.join(map(repr, named))}, which the "
            "others read",
            "move them one by one with --source",
        )


# Where a source goes on in each partition of a topic.
_Starts = dict[int, tuple[PositionState, int | Marker | None]]


def named(source: Source) -> str:
    """Return a source's operator id, with its uid or name where the checkpoint has one."""
    name = source.uid or source.name
    return f"{source.operator_id} ({printable(name)})" if name else source.operator_id


def disagreements(chosen: Sequence[Source], *, one_cluster: bool = False) -> Iterator[Refusal]:
    """Refuse topics of which several sources hold different positions.

    Args:
        chosen: the sources to move, with the positions that move.
        one_cluster: whether the user says that they read the same Kafka cluster.
    """
    for topic, readers in _shared_topics(chosen).items():
        views = [starts for _, starts in readers]
        differing = _differing_partitions(views)
        if differing:
            shown = [view.get(differing[0], (None, None))[1] for view in views]
            starts = " and ".join(_show_start(start) for start in shown)
            names = ", ".join(source.operator_id for source, _ in readers)
            yield Refusal(
                f"{len(readers)} sources read topic {topic} and disagree on {len(differing)} of "
                f"its partitions (operators {names}; {topic}-{differing[0]}: {starts})",
                _way_to_agree([source for source, _ in readers], one_cluster),
            )


def clusters_not_named(chosen: Sequence[Source], policies: Policies) -> Iterator[Refusal]:
    """Refuse topics that several sources read whose state does not name their Kafka cluster.

    One topic name on two clusters is two logs. Where such sources also disagree,
    ``disagreements`` refuses them, unless the lower position is taken.

    Args:
        chosen: the sources to move, with the positions that move.
        policies: what the user allows.
    """
    if policies.one_cluster:
        return
    for topic, readers in _shared_topics(chosen).items():
        sources = [source for source, _ in readers]
        disagree = _differing_partitions([starts for _, starts in readers])
        if _may_read_two_clusters(sources) and not (
            policies.merge_sources is MergeSources.FAIL and disagree
        ):
            yield cluster_not_named(topic, sources)


def cluster_not_named(topic: str, sources: Sequence[Source]) -> Refusal:
    """Return the refusal of a topic that these sources may read on different Kafka clusters."""
    return Refusal(
        f"{len(sources)} sources read topic {topic} (operators {', '.join(map(named, sources))}), "
        "and their state does not name their Kafka cluster: on two clusters these are two topics",
        "choose one with --source OPERATOR_ID or, if they read the same Kafka cluster, add "
        "--one-cluster",
    )


def taken_as_one_cluster(chosen: Sequence[Source], policies: Policies) -> Iterator[str]:
    """Name the sources of one topic that are moved as one because of ``--one-cluster``."""
    if not policies.one_cluster:
        return
    for topic, sources in topics_of_unknown_clusters(chosen):
        yield (
            f"--one-cluster: operators {', '.join(map(named, sources))} are taken to read "
            f"topic {topic} of the same Kafka cluster, which their state does not name"
        )


def topics_of_unknown_clusters(sources: Iterable[Source]) -> Iterator[tuple[str, list[Source]]]:
    """Return the topics that several sources read, perhaps on different clusters, with these."""
    for topic, readers in _shared_topics(sources).items():
        of_topic = [source for source, _ in readers]
        if _may_read_two_clusters(of_topic):
            yield topic, of_topic


def _may_read_two_clusters(sources: Iterable[Source]) -> bool:
    return any(None in source.clusters for source in sources)


def _shared_topics(sources: Iterable[Source]) -> dict[str, list[tuple[Source, _Starts]]]:
    """Return the topics that several sources read: each source, and where it goes on there."""
    readers: dict[str, list[tuple[Source, _Starts]]] = {}
    for source in sources:
        by_topic: dict[str, _Starts] = {}
        for position in source.positions:
            starts = by_topic.setdefault(position.topic, {})
            starts[position.partition] = position.state, position.start
        for topic, starts in by_topic.items():
            readers.setdefault(topic, []).append((source, starts))
    return {topic: readers[topic] for topic in sorted(readers) if len(readers[topic]) > 1}


def _differing_partitions(views: Sequence[_Starts]) -> list[int]:
    """Return the partitions that not all views have at the same start, in order."""
    return sorted(
        partition
        for partition in set().union(*views)
        if any(view.get(partition) != views[0].get(partition) for view in views)
    )


def _way_to_agree(readers: Iterable[Source], one_cluster: bool) -> str:
    """Return how the user can choose between sources of one topic."""
    if not one_cluster and _may_read_two_clusters(readers):
        return (
            "choose one with --source OPERATOR_ID or, if they read the same Kafka cluster, which "
            "their state does not tell, take the lower with --one-cluster --merge-sources min"
        )
    return "choose one with --source OPERATOR_ID, or take the lower with --merge-sources min"


def _show_start(start: int | Marker | None) -> str:
    match start:
        case int():
            return str(start)
        case Marker():
            return start.value
        case None:
            return "none"


def names_collide(chosen: Iterable[Source], policies: Policies) -> Iterator[Refusal]:
    """A topic of the checkpoint must not be renamed to another one of it that moves too."""
    topics = {topic for source in chosen for topic in source.topics}
    for old, new in sorted(policies.topic_map.items()):
        if old in topics and new in topics and new not in policies.topic_map:
            yield Refusal(
                f"--topic-map {old}={new}: {new} is a topic of the checkpoint itself",
                "rename that one too, or leave it out with --partitions",
            )


def groups_mixed_up(
    chosen: Iterable[Source], snapshot: ClusterSnapshot | None
) -> Iterator[Refusal]:
    """Each source has a consumer group of its own: one cannot stand for two."""
    if snapshot is None or snapshot.source_group is None:
        return
    marked = [
        source.operator_id
        for source in chosen
        if any(position.start is Marker.COMMITTED for position in source.positions)
    ]
    if len(marked) > 1:
        yield Refusal(
            f"{len(marked)} sources are still at the 'committed' marker (operators "
            f"{', '.join(marked)}), and --source-group names the group of one",
            "move them one by one with --source",
        )


# What a client takes where an address names no port.
_PORT = "9092"
# Of what the state names: it may be a long list.
_SHOWN = 3


def other_brokers(chosen: Sequence[Source], asked: str | None) -> Iterator[str]:
    """A cluster that a DynamicKafkaSource knows by other brokers than those that were asked.

    No proof that it is another one: one broker may be reached by several names.

    Args:
        chosen: the sources that move; of several clusters none is told of, as they are refused.
        asked: ``host:port`` of some brokers, with commas between; None where none was asked.
    """
    if asked is None:
        return
    clusters = {cluster for source in chosen for cluster in source.clusters if cluster is not None}
    if len(clusters) != 1:
        return
    (cluster,) = clusters
    named = {servers for source in chosen for servers in source.brokers.get(cluster, ())}
    known = {address for servers in named for address in _addresses(servers)}
    if known and known.isdisjoint(_addresses(asked)):
        shown = ", ".join(sorted(known)[:_SHOWN]) + (", …" if len(known) > _SHOWN else "")
        yield (
            f"the job knows cluster {cluster!r} by {shown}, and {asked} was asked: if that is not "
            "another address of it, the offsets are of other logs; name its own brokers with "
            "--bootstrap-servers"
        )


def _addresses(servers: str) -> Iterator[str]:
    """Each as ``host:port``; librdkafka lets a protocol stand before it."""
    for server in servers.split(","):
        address = server.strip().lower().rpartition("://")[2]
        if address:
            yield address if address.rpartition(":")[2].isdecimal() else f"{address}:{_PORT}"
