"""Which sources of a checkpoint are meant: ``--source`` and ``--cluster``.

A source is named by its operator id, its name, its uid, or a topic it reads (``topic:NAME``).
Metadata up to version 4 holds no uid, but an operator id is the MurmurHash3 (128 bits, seed 0) of
its uid, so that a uid is found by hashing it.

Source: org.apache.flink.streaming.api.graph.StreamGraphHasherV2.generateUserSpecifiedHash @ Flink
1.20.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import mmh3

from migrate.extract import UNREAD_SOURCES, Extraction, Source

# What a name begins with that is a topic's.
TOPIC_PREFIX = "topic:"


class NoSuchSource(Exception):
    """No Kafka source of the checkpoint answers to the name."""


def choose_sources(extraction: Extraction, name: str | None) -> list[Source]:
    """The sources meant by ``name``, or all of them where it is None.

    None at all are chosen where the checkpoint holds nothing but sources that stand in the way
    (damaged, or of a kind not read here): the plan then refuses by them.

    Raises:
        NoSuchSource: there is none.
    """
    sources = extraction.sources
    in_the_way = any(finding.code in UNREAD_SOURCES for finding in extraction.findings)
    if not sources and not in_the_way:
        raise NoSuchSource(
            "this checkpoint holds no Kafka source; 'migrate inspect' shows what it holds"
        )
    if name is None:
        return list(sources)
    chosen = [source for source in sources if _answers_to(source, name)]
    if not chosen:
        known = "; ".join(_describe(source) for source in sources)
        raise NoSuchSource(f"no Kafka source answers to {name!r}; there are: {known}")
    return chosen


def choose_cluster(sources: Sequence[Source], cluster: str | None) -> list[Source]:
    """The sources as if they read this cluster alone, or as they are where it is None.

    A KafkaSource stays among them, as its state names no cluster: the plan then refuses to take it
    for the same one.

    Raises:
        NoSuchSource: none of them reads it.
    """
    if cluster is None or not sources:
        return list(sources)
    known = {name for source in sources for name in source.clusters if name is not None}
    if cluster not in known:
        there_are = ", ".join(map(repr, sorted(known))) or "none, and no DynamicKafkaSource"
        raise NoSuchSource(f"no Kafka source reads a cluster {cluster!r}; there are: {there_are}")
    return [
        source if None in source.clusters else source.of_cluster(cluster)
        for source in sources
        if source.clusters & {cluster, None}
    ]


def _answers_to(source: Source, name: str) -> bool:
    if name.startswith(TOPIC_PREFIX):
        return name.removeprefix(TOPIC_PREFIX) in source.topics
    return (
        name in (source.name, source.uid)
        or source.operator_id == name.lower()
        or source.operator_id == mmh3.hash_bytes(name.encode("utf-8", "surrogateescape"), 0).hex()
    )


def _describe(source: Source) -> str:
    names = "".join(f" {name!r}" for name in (source.uid, source.name) if name)
    return f"{source.operator_id}{names} ({', '.join(sorted(source.topics))})"
