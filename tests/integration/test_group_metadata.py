"""Compare offsets, leader epochs, and metadata of groups with Kafka's Java client."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate.kafka.groups import ConsumerGroups
from migrate.model.cluster_snapshot import Committed
from migrate.model.offset_metadata import is_of_kafka_streams
from migrate.storage.json_models import write_file
from migrate.targets.group.rollback_file import rollback_file
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.jars import classpath
from tests.support.java_groups import JavaGroups, JavaOffset
from tests.support.jdk import compile_java, run_java
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration

_STREAMS = Path(__file__).parents[1] / "support/java/StreamsCount.java"
_LENGTHS = (0, 1, 8, 12, 24, 40, 4096)
_TEXTS = {
    **{f"{length}-bytes": os.urandom(length).hex()[:length].encode() for length in _LENGTHS},
    "non-ascii": "größe 東京 🚚".encode(),
    "trailing-nul": b"flink-offset-migrate chk-7\x00",
    "nul-inside": b"\x0a\x14\x00\x1e\x28",
}


@pytest.fixture
def chk(tmp_path: Path, topic: str) -> Path:
    return write_source(tmp_path / "chk-7", {0: splits(topic, [3, 4, 5])})


def _view(broker: Broker, group: str) -> dict[tuple[str, int], JavaOffset]:
    """Return what our client reads, in the form of the Java client."""
    view = ConsumerGroups({"bootstrap.servers": broker.bootstrap_servers}).view(group)
    return {
        partition: (one.next_offset, one.leader_epoch, one.metadata.encode())
        for partition, one in view.committed.items()
    }


@pytest.mark.parametrize("metadata", _TEXTS.values(), ids=_TEXTS)
def test_offsets_read_from_group_match_java_client(
    broker: Broker, java: JavaGroups, topic: str, group: str, metadata: bytes
) -> None:
    committed: dict[tuple[str, int], JavaOffset] = {
        (topic, 0): (7, 3, metadata),
        (topic, 1): (8, None, metadata[::-1] if metadata.isascii() else b""),
        (topic, 2): (9, 0, b""),
    }
    java.commit(group, committed)
    assert java.committed(group) == committed
    for _ in range(20):
        assert _view(broker, group) == committed


def test_commit_group_writes_no_metadata(
    broker: Broker, java: JavaGroups, topic: str, group: str, chk: Path, tmp_path: Path
) -> None:
    result = _commit(broker, group, chk, tmp_path / "back.json")
    assert result.code == 0, result.stderr
    assert java.committed(group) == {
        (topic, partition): (offset, None, b"") for partition, offset in enumerate((3, 4, 5))
    }


@pytest.mark.parametrize("text", ["moved by the data team", "größe 🚚"])
def test_value_of_metadata_option_is_committed_unchanged(
    broker: Broker, java: JavaGroups, topic: str, group: str, chk: Path, tmp_path: Path, text: str
) -> None:
    result = _commit(broker, group, chk, tmp_path / "back.json", "--metadata", text)
    assert result.code == 0, result.stderr
    assert set(java.committed(group).values()) == {
        (offset, None, text.encode()) for offset in (3, 4, 5)
    }


@pytest.mark.parametrize("metadata", _TEXTS.values(), ids=_TEXTS)
def test_rollback_restores_metadata_of_java_client(
    broker: Broker,
    java: JavaGroups,
    topic: str,
    group: str,
    chk: Path,
    tmp_path: Path,
    metadata: bytes,
) -> None:
    """Partition 2 had no offset. The group also reads a topic that the move does not change."""
    other = f"{topic}-other"
    broker.create_topic(other, 1)
    held: dict[tuple[str, int], JavaOffset] = {
        (topic, 0): (1, 0, metadata),
        (topic, 1): (2, None, b""),
        (other, 0): (0, 7, metadata),
    }
    java.commit(group, held)
    result = _commit(broker, group, chk, tmp_path / "back.json")
    assert result.code == 0, result.stderr
    assert java.committed(group) == {
        **{(topic, partition): (offset, None, b"") for partition, offset in enumerate((3, 4, 5))},
        (other, 0): held[other, 0],
    }
    back = migrate("rollback", tmp_path / "back.json", "--execute", "--yes")
    assert back.code == 0, back.stderr
    assert java.committed(group) == held


def test_verify_detects_stale_leader_epoch_and_commit_removes_it(
    broker: Broker, java: JavaGroups, topic: str, group: str, chk: Path, tmp_path: Path
) -> None:
    """Regression: The offset was "verified", but a Java consumer never received records."""
    java.commit(group, {(topic, n): (offset, 40, b"") for n, offset in enumerate((3, 4, 5))})
    servers = ("-b", broker.bootstrap_servers)
    wrong = migrate("verify", chk, f"group:{group}", *servers)
    assert wrong.code == 5, wrong.stdout
    assert "3 topic recreated" in wrong.stdout, wrong.stdout
    done = _commit(broker, group, chk, tmp_path / "back.json")
    assert done.code == 0, done.stderr
    assert set(java.committed(group).values()) == {(3, None, b""), (4, None, b""), (5, None, b"")}
    assert migrate("verify", chk, f"group:{group}", *servers).code == 0


def test_commit_warns_of_discarded_metadata(
    broker: Broker, java: JavaGroups, topic: str, group: str, chk: Path, tmp_path: Path
) -> None:
    """Partition 1 already has its new offset.

    Its metadata may list records processed after this offset.
    """
    java.commit(
        group, {(topic, 0): (1, None, b"bDUAAAAAAA=="), (topic, 1): (4, None, b"bDUAAAAAAA==")}
    )
    dry = migrate("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers)
    assert dry.code == 0, dry.stderr
    assert (
        f"the commit discards the metadata of 2 offsets of group {group} (the first is "
        f"{topic}-0); the group's client may need it; a rollback restores the metadata "
        "[metadata-discarded]"
    ) in dry.stderr
    assert "dry run: 3 of 3 offsets would change" in dry.stderr


def test_to_spark_from_group_warns_of_metadata_written_by_client(
    broker: Broker, java: JavaGroups, topic: str, group: str
) -> None:
    java.commit(
        group,
        {
            (topic, 0): (1, None, b"bDUAAAAAAA=="),
            (topic, 1): (4, None, b""),
            (topic, 2): (4, None, b""),
        },
    )
    result = migrate("to-spark", f"group:{group}", "-b", broker.bootstrap_servers)
    assert result.code == 0, result.stderr
    assert "[metadata-of-client]" in result.stderr
    assert f"(the first is {topic}-0)" in result.stderr


@pytest.fixture(scope="module")
def strict() -> Iterator[Broker]:
    """A broker that allows 8 bytes of metadata, and has a listener with OAUTHBEARER."""
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    settings = {
        "offset.metadata.max.bytes": "8",
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": (
            f'{module} required unsecuredLoginStringClaim_sub="broker";'
        ),
    }
    with Broker(settings, listeners={"OAUTH": "SASL_PLAINTEXT"}) as running:
        yield running


def test_metadata_that_exceeds_limit_of_broker_is_refused(
    strict: Broker, chk: Path, topic: str, tmp_path: Path
) -> None:
    """Without ``--metadata``, the same commit succeeds and can be rolled back."""
    strict.create_topic(topic, 3)
    for partition in range(3):
        strict.produce(topic, partition, map(str, range(10)))
    with JavaGroups(strict.bootstrap_servers) as java:
        java.commit("g", {(topic, 0): (1, 0, b"8 bytes.")})
        before = java.committed("g")
        refused = _commit(strict, "g", chk, tmp_path / "r.json", "--metadata", "nine bytes")
        assert (refused.code, java.committed("g")) == (6, before), refused.stderr
        assert "OFFSET_METADATA_TOO_LARGE" in refused.stdout + refused.stderr
        done = _commit(strict, "g", chk, tmp_path / "back.json")
        assert done.code == 0, done.stderr
        back = migrate("rollback", tmp_path / "back.json", "--execute", "--yes")
        assert back.code == 0, back.stderr
        assert java.committed("g") == before


def _unsecured_token(_: str) -> tuple[str, float]:
    now = time.time()
    parts = ({"alg": "none"}, {"sub": "us", "iat": now, "exp": now + 300})
    encoded = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts
    )
    return ".".join((*encoded, "")), now + 300


@pytest.mark.parametrize(
    "token",
    [
        {"oauth_cb": _unsecured_token},
        {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": "principal=us",
        },
    ],
    ids=["callback", "librdkafka"],
)
def test_groups_are_read_and_committed_with_oauth_tokens(
    strict: Broker, group: str, token: dict[str, Any]
) -> None:
    topic = f"topic-of-{group}"
    strict.create_topic(topic, 1)
    config = {
        "bootstrap.servers": strict.address("OAUTH"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        **token,
    }
    groups = ConsumerGroups(config)
    assert not groups.view(group).exists  # waits for the coordinator of a new broker
    assert groups.commit(group, {(topic, 0): Committed(0, "8 bytes.", 3)}) == {}
    assert groups.view(group).committed == {(topic, 0): Committed(0, "8 bytes.", 3)}
    assert groups.remove(group, [(topic, 0)]) == {}
    assert groups.view(group).committed == {}
    with JavaGroups(strict.bootstrap_servers) as java:
        assert java.committed(group) == {}


@pytest.fixture(params=["2.8.2", "4.1.1"])
def streams(request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> Streams:
    return Streams(str(request.param), broker.bootstrap_servers, tmp_path)


class Streams:
    """A Kafka Streams application of the classic protocol."""

    def __init__(self, release: str, servers: str, folder: Path) -> None:
        self._jars = classpath(f"kafka-streams-{release}")
        self._servers, self._folder = servers, folder

    def run(self, application: str, topic: str, records: int) -> str:
        """Process a number of records, commit, and return how the application ended."""
        state = self._folder / f"state-{records}"
        arguments = [self._servers, application, topic, str(state), str(records)]
        classes = compile_java([_STREAMS], self._jars)
        return run_java("StreamsCount", [classes, *self._jars], arguments, timeout=120).strip()


def test_group_of_streams_application_is_refused_and_can_be_rolled_back(
    broker: Broker,
    java: JavaGroups,
    streams: Streams,
    topic: str,
    group: str,
    chk: Path,
    tmp_path: Path,
) -> None:
    """Regression: After a commit and a rollback, Streams 2.8.2 did not start.

    The restored metadata ended with a NUL character.
    """
    assert streams.run(group, topic, 30) == "processed"
    held = java.committed(group)
    assert {offset for offset, _, _ in held.values()} == {10}
    assert all(is_of_kafka_streams(metadata.decode()) for _, _, metadata in held.values())
    back = tmp_path / "back.json"
    _await_empty(broker, group)
    refused = _commit(broker, group, chk, back, "--allow-moved-on")
    assert (refused.code, back.exists()) == (4, False), refused.stderr
    assert f"group {group} belongs to a Kafka Streams application" in refused.stderr
    # Simulate the commit of an earlier release, which did not refuse these groups.
    groups = ConsumerGroups({"bootstrap.servers": broker.bootstrap_servers})
    view = groups.view(group)
    assert (view.state, view.type) == ("Empty", "streams")
    after = {partition: Committed(3) for partition in held}
    write_file(
        rollback_file("commit", groups.cluster_id(), broker.bootstrap_servers, view, after, {}),
        back,
    )
    assert groups.commit(group, after) == {}
    restored = migrate("rollback", back, "--execute", "--yes")
    assert restored.code == 0, restored.stderr
    assert java.committed(group) == held
    assert streams.run(group, topic, 0) == "processed"  # the application can start


def _await_empty(broker: Broker, group: str) -> None:
    """Wait until the session of a stopped member has timed out."""
    groups = ConsumerGroups({"bootstrap.servers": broker.bootstrap_servers})
    deadline = time.monotonic() + 60
    while groups.view(group).members:
        assert time.monotonic() < deadline
        time.sleep(0.5)


def _commit(broker: Broker, group: str, chk: Path, back: Path, *options: str) -> Result:
    return migrate(
        "commit-group",
        chk,
        *("--group", group, "-b", broker.bootstrap_servers, "--rollback-file", back),
        *("--execute", "--yes", *options),
    )
