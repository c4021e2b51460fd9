"""Move one cluster of a DynamicKafkaSource with ``--cluster``."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkpoints import operator_with_elements, splits, write_checkpoint
from tests.support.command import Result, migrate
from tests.support.encoder import (
    EARLIEST,
    EnumeratorSplit,
    KafkaSplit,
    StreamCluster,
    encode_coordinator,
    encode_dynamic_enumerator,
    encode_dynamic_reader_element,
    encode_enumerator,
)
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def other() -> Iterator[Broker]:
    """The broker of the other cluster."""
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker, other: Broker) -> str:
    """Create a topic on both brokers.

    On ``broker``, the topic has two partitions with the offsets 4 to 10. On ``other``, it has one
    partition with the offsets 7 to 30.
    """
    name = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    for partition in range(2):
        broker.produce(name, partition, map(str, range(10)))
        broker.delete_records(name, partition, 4)
    other.create_topic(name, 1)
    other.produce(name, 0, map(str, range(30)))
    other.delete_records(name, 0, 7)
    return name


@pytest.fixture
def chk(tmp_path: Path, broker: Broker, other: Broker, topic: str) -> Path:
    """A checkpoint of a job that reads the topic in clusters A and B, and a second topic in B."""
    held = {
        "A": splits(topic, [EARLIEST, 6]),
        "B": [KafkaSplit(topic, 0, EARLIEST), KafkaSplit("of-B-alone", 0, 9)],
    }
    elements = [encode_dynamic_reader_element(c, split) for c in held for split in held[c]]
    enumerators = {c: encode_enumerator(3, list(map(EnumeratorSplit, held[c]))) for c in held}
    servers = {"A": broker.bootstrap_servers, "B": other.bootstrap_servers}
    clusters = {c: StreamCluster([topic], servers[c]) for c in held}
    state = encode_dynamic_enumerator(2, {topic: clusters}, 3, enumerators)
    operator = operator_with_elements({0: elements}, encode_coordinator(1, 2, state))
    return write_checkpoint(tmp_path / "chk-7", operator)


def _offsets(result: Result) -> dict[str, dict[str, int]]:
    assert result.code == 0, result.stderr
    written: dict[str, dict[str, int]] = json.loads(result.stdout)
    return written


def test_earliest_position_is_resolved_by_broker_of_selected_cluster(
    broker: Broker, other: Broker, topic: str, chk: Path
) -> None:
    here = migrate("to-spark", chk, "--cluster", "A", "-b", broker.bootstrap_servers)
    assert _offsets(here) == {topic: {"0": 4, "1": 6}}
    other.create_topic("of-B-alone", 1)
    other.produce("of-B-alone", 0, map(str, range(9)))
    there = migrate("to-spark", chk, "--cluster", "B", "-b", other.bootstrap_servers)
    assert _offsets(there) == {topic: {"0": 7}, "of-B-alone": {"0": 9}}


@pytest.mark.parametrize("per_stream", [False, True])
def test_brokers_of_different_cluster_are_refused(
    broker: Broker, other: Broker, topic: str, chk: Path, per_stream: bool
) -> None:
    options = ("--spark-source", f"0=topic:{topic}") if per_stream else ()

    def told(*more: str) -> tuple[int, bool]:
        result = migrate("to-spark", chk, *options, *more)
        return result.code, "[other-brokers]" in result.stderr

    here, there = broker.bootstrap_servers, other.bootstrap_servers
    assert told("--cluster", "A", "-b", here) == (0, False)
    # The other cluster has only one partition.
    assert told("--cluster", "A", "-b", there) == (4, True)
    assert told("-b", here) == (4, False)  # the checkpoint has two clusters


def test_checkpoint_of_two_clusters_requires_cluster_option(
    tmp_path: Path, broker: Broker, chk: Path
) -> None:
    seed = tmp_path / "seed"
    result = migrate("to-spark", chk, "-b", broker.bootstrap_servers, "--checkpoint-dir", seed)
    assert (result.code, result.stdout) == (4, "")
    assert "'A', 'B'" in result.stderr
    assert "--cluster ID" in result.stderr
    assert not seed.exists()


def test_commit_group_moves_positions_of_selected_cluster(
    broker: Broker, topic: str, chk: Path
) -> None:
    group = f"g-{topic}"
    arguments = ("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers)
    refused = migrate(*arguments, "--execute", "--yes")
    assert (refused.code, broker.committed(group)) == (4, {})
    rollback = chk.parent / "rollback.json"
    done = migrate(*arguments, "--cluster", "A", "--execute", "--yes", "--rollback-file", rollback)
    assert done.code == 0, done.stderr
    assert broker.committed(group) == {(topic, 0): 4, (topic, 1): 6}
