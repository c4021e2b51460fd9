"""Obstacles to a move as a whole, such as findings and positions in several clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from migrate.inputs.flink.source import Source, topics_of
from migrate.inputs.plan_input import PlanInput
from migrate.model.catalog import (
    CLUSTER_NOT_IDENTIFIED,
    ONE_GROUP_FOR_SEVERAL_SOURCES,
    SEVERAL_CLUSTERS,
    TOPIC_NAME_TAKEN,
)
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.errors import NoSuchName
from migrate.model.finding import Code, Finding, Severity
from migrate.model.finding_catalog import STATE_OF_OPERATORS_NOT_MOVED
from migrate.model.message import Message, MessageTemplate
from migrate.model.option_names import option
from migrate.model.policies import Policies
from migrate.model.positions import Marker
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import OTHER_BROKERS


def check_topic_names(policies: Policies, chosen: Iterable[Source]) -> None:
    """Check that a chosen source reads each topic in ``--topic-map`` and ``--partitions``.

    A topic that matches ``--topic-pattern`` counts as read.

    Raises:
        NoSuchName: one of these topics is not read by any chosen source.
    """
    topics = topics_of(chosen)
    for name, names in (
        ("topic_map", policies.topic_map),
        ("partitions", policies.partitions or {}),
    ):
        pattern = policies.topic_pattern
        unknown = sorted(set(names) - topics - set(pattern.matching(names) if pattern else ()))
        if unknown:
            they_read = f"the sources read: {', '.join(sorted(topics)) or 'no topic'}"
            raise NoSuchName(
                f"{option(name)} {unknown[0]}: no source reads this topic",
                unknown[0],
                topics,
                they_read,
            )


def relevant_findings(
    plan_input: PlanInput, chosen: Sequence[Source], ignore_other_sources: bool
) -> list[Finding]:
    """Return the findings that are relevant to a move of the chosen sources.

    Findings that the plan reports by partition are omitted. One finding with the total size
    replaces all findings about state that does not move. With ``ignore_other_sources``, findings
    about other sources are omitted, unless they are about the whole job.
    """
    others = {source.operator_id for source in plan_input.sources}
    others -= {source.operator_id for source in chosen}
    findings: list[Finding] = []
    with_state: set[str | None] = set()
    for finding in plan_input.findings:
        policy = finding.code.policy
        of_another = finding.operator_id in others or policy.another_source
        if policy.by_partition or (ignore_other_sources and of_another and not policy.job_wide):
            continue
        if finding.code is Code.STATE_NOT_MOVED:
            with_state.add(finding.operator_id)
        else:
            findings.append(finding)
    sizes = [size for operator, size in plan_input.state_bytes.items() if operator in with_state]
    if sizes:
        findings.append(Finding(STATE_OF_OPERATORS_NOT_MOVED(count=len(sizes), bytes=sum(sizes))))
    return findings


def blocker_refusals(findings: Iterable[Finding], policies: Policies) -> Iterator[Message]:
    """Yield a refusal for each blocking finding that the policies do not allow."""
    for finding in findings:
        policy = finding.code.policy
        if finding.severity is Severity.BLOCKER and not policy.allowed(policies):
            own = finding.message.template
            way_out = "; ".join(filter(None, (own.way_out, policy.way_out)))
            refusal = MessageTemplate(own.code, own.what, way_out)
            yield refusal(**finding.message.facts).about(finding.operator)


def several_cluster_refusals(chosen: Sequence[Source]) -> Iterator[Message]:
    """Yield a refusal if positions are in several clusters; a target reads from only one cluster.

    Also refuse if only some sources identify their cluster, because the remaining sources may read
    from a different cluster.
    """
    clusters = {cluster for source in chosen for cluster in source.clusters}
    named = sorted(cluster for cluster in clusters if cluster is not None)
    if len(named) > 1:
        yield SEVERAL_CLUSTERS(count=len(named), clusters=named)
    if named and None in clusters:
        unnamed = [source.operator_id for source in chosen if None in source.clusters]
        yield CLUSTER_NOT_IDENTIFIED(operators=unnamed, clusters=" or ".join(map(repr, named)))


def name_collision_refusals(
    topics: Collection[str], topic_map: Mapping[str, str]
) -> Iterator[Message]:
    """Yield a refusal for each new topic name that is also the name of a different moving topic.

    A moving topic that is itself renamed does not count, because its old name is then free.
    """
    for old, new in sorted(topic_map.items()):
        if old in topics and new in topics and new not in topic_map:
            yield TOPIC_NAME_TAKEN(old=old, new=new)


def shared_group_refusals(
    chosen: Iterable[Source], snapshot: ClusterSnapshot | None
) -> Iterator[Message]:
    """Yield a refusal if ``--source-group`` is set and several sources are at ``committed``.

    Each of these sources has its own group, so no single group can contain the offsets of all
    of them.
    """
    if snapshot is None or snapshot.source_group is None:
        return
    marked = [
        source.operator_id
        for source in chosen
        if any(position.start is Marker.COMMITTED for position in source.positions)
    ]
    if len(marked) > 1:
        yield ONE_GROUP_FOR_SEVERAL_SOURCES(count=len(marked), operators=marked)


# The port that a client uses for an address without a port.
_DEFAULT_PORT = "9092"
_MAX_NAMED = 3


def other_brokers_warnings(
    chosen: Sequence[Source], bootstrap_servers: str | None
) -> Iterator[WarningText]:
    """Warn if none of the brokers that the user specified is in the DynamicKafkaSource's state.

    This is only a warning, because a broker may have several names. ``several_cluster_refusals``
    refuses sources that read from several clusters.
    """
    clusters = {cluster for source in chosen for cluster in source.clusters if cluster is not None}
    if bootstrap_servers is None or len(clusters) != 1:
        return
    (cluster,) = clusters
    lists = {servers for source in chosen for servers in source.brokers.get(cluster, ())}
    known = {address for servers in lists for address in _addresses(servers)}
    if known and known.isdisjoint(_addresses(bootstrap_servers)):
        yield WarningText(
            OTHER_BROKERS(cluster=cluster, brokers=sorted(known), servers=bootstrap_servers)
        )


def _addresses(servers: str) -> Iterator[str]:
    """Yield each server as ``host:port``, without the protocol that librdkafka allows."""
    for server in servers.split(","):
        address = server.strip().lower().rpartition("://")[2]
        if address:
            has_port = address.rpartition(":")[2].isdecimal()
            yield address if has_port else f"{address}:{_DEFAULT_PORT}"
