"""Are the brokers that were asked those of the cluster that the job read?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrate.flink.extract import Source

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
