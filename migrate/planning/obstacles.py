"""What stands in the way of a move as a whole: findings, other clusters' brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from migrate.cluster_snapshot import ClusterSnapshot
from migrate.flink.extract import Code, Finding, PlanInput, Severity, Source
from migrate.planning.model import Refusal
from migrate.policy_options import Policies
from migrate.positions import Marker, PositionState
from migrate.wording import counted


def concerning(found: PlanInput, chosen: Sequence[Source], named: bool) -> list[Finding]:
    """The findings that bear on moving the chosen sources, but for those told by partition.

    So do those about sinks and state; those about other sources do too, unless the user chose
    these by name or it is about the job as a whole.
    """
    others = {source.operator_id for source in found.sources}
    others -= {source.operator_id for source in chosen}
    told = [
        finding
        for finding in found.findings
        if not finding.code.bearing.by_partition
        and (
            not named
            or finding.code.bearing.job_wide
            or not (finding.operator_id in others or finding.code.bearing.another_source)
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
        bearing = finding.code.bearing
        if finding.severity is Severity.BLOCKER and not bearing.allowed(policies):
            yield Refusal(where(finding) + finding.message, bearing.way_out)


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


def disagreements(chosen: Sequence[Source]) -> Iterator[Refusal]:
    """Sources that read one topic must agree on all of it: positions are per operator."""
    # Of each topic, by the place of each source that reads it, the starts of its partitions.
    by_topic: dict[str, dict[int, dict[int, tuple[PositionState, int | Marker | None]]]] = {}
    for place, source in enumerate(chosen):
        for position in source.positions:
            view = by_topic.setdefault(position.topic, {}).setdefault(place, {})
            view[position.partition] = position.state, position.start
    for topic, readers in sorted(by_topic.items()):
        views = list(readers.values())
        differing = sorted(
            partition
            for partition in set().union(*views)
            if any(view.get(partition) != views[0].get(partition) for view in views)
        )
        if differing:
            shown = [view.get(differing[0], (None, None))[1] for view in views]
            starts = " and ".join(_show_start(start) for start in shown)
            names = ", ".join(chosen[place].operator_id for place in readers)
            yield Refusal(
                f"{len(views)} sources read topic {topic} and disagree on {len(differing)} of "
                f"its partitions (operators {names}; {topic}-{differing[0]}: {starts})",
                _way_to_agree([chosen[place] for place in readers]),
            )


def _way_to_agree(readers: Iterable[Source]) -> str:
    """A KafkaSource's state names no cluster: one topic name on two of them is two logs."""
    if any(None in source.clusters for source in readers):
        return (
            "choose one with --source OPERATOR_ID or, if they read the same Kafka cluster, which "
            "their state does not tell, take the lower with --merge-sources min"
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
