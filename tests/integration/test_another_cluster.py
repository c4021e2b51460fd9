"""Translate offsets to a target cluster that contains the job's records at other offsets.

A plain copier plays the role of the mirror here. `test_translation.py` uses a real MirrorMaker 2.
"""

from __future__ import annotations

import json
import shlex
import struct
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from migrate.moves import find_copies
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.encoder import KafkaSplit
from tests.support.golden_topics import GOLDEN, WATERMARKS
from tests.support.kafka import Broker
from tests.support.plans import edit_and_seal_plan

pytestmark = pytest.mark.integration

# Recent, because Kafka deletes records that are a week old.
NOW = int(time.time() * 1000) - 3_600_000


@pytest.fixture(scope="module")
def other() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def _read(broker: Broker, topic: str, isolation: str = "read_uncommitted") -> list[Message]:
    """Return all records of a topic, in order within each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "tests-copies",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
        }
    )
    partitions = broker.partitions(topic)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    records, ended = [], 0
    while ended < len(partitions):
        message = consumer.poll(5)
        assert message is not None
        if message.error() is not None:
            ended += 1
        else:
            records.append(message)
    consumer.close()
    return records


def _producer(broker: Broker) -> Producer:
    servers = broker.bootstrap_servers
    return Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 200_000,
        }
    )


class Copier:
    """Copies records between topics of two brokers, like a mirror."""

    def __init__(self, source: Broker, target: Broker) -> None:
        self.source, self.target = source, target
        self._producer = _producer(target)

    def create(self, topic: str, name: str, first: int = 5) -> None:
        """Create a topic with equally many partitions and log start offsets above 0."""
        numbers = self.source.partitions(topic)
        self.target.create_topic(name, len(numbers))
        for number in numbers:
            self.target.produce(name, number, ["other"] * first)
            self.target.delete_records(name, number, first)

    def copy(
        self,
        topic: str,
        name: str,
        keep: Callable[[Message], bool] = lambda _: True,
        isolation: str = "read_uncommitted",
    ) -> None:
        for record in _read(self.source, topic, isolation):
            if keep(record):
                _, time = record.timestamp()
                self._producer.produce(
                    name,
                    record.value(),
                    record.key(),
                    record.partition() or 0,
                    timestamp=time,
                    headers=[*(record.headers() or ()), ("mirrored-by", b"a test")],
                )
        assert not self._producer.flush(30)


def _new_name(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def _produce(
    broker: Broker, topic: str, partition: int, values: Sequence[str], *, step_ms: int = 1
) -> None:
    """Produce records with individual keys, headers, and timestamps."""
    producer = _producer(broker)
    for number, value in enumerate(values):
        producer.produce(
            topic,
            value,
            f"key-{number % 5}",
            partition,
            timestamp=NOW + number * step_ms,
            headers=[("trace", str(number).encode())],
        )
    assert not producer.flush(30)


def _copied_topic(broker: Broker, other: Broker, partitions: int, records: int) -> tuple[str, str]:
    """Produce to a new topic, copy it to the other broker, and return the names of both."""
    topic, name = _new_name("orders"), _new_name("west.orders")
    broker.create_topic(topic, partitions)
    for partition in range(partitions):
        _produce(broker, topic, partition, [f"{partition}/{n}" for n in range(records)])
    copier = Copier(broker, other)
    copier.create(topic, name)
    copier.copy(topic, name)
    return topic, name


def _there(broker: Broker, topic: str) -> dict[tuple[int, bytes], int]:
    """Return the offset of the first record with each value, by partition and value."""
    offsets: dict[tuple[int, bytes], int] = {}
    for record in _read(broker, topic):
        offsets.setdefault(
            (record.partition() or 0, bytes(record.value() or b"")), record.offset() or 0
        )
    return offsets


def _to_spark(chk: Path, broker: Broker, other: Broker, *more: str) -> Result:
    return migrate(
        "to-spark", chk, "-b", broker.bootstrap_servers, "--to-bootstrap-servers",
        other.bootstrap_servers, *more,
    )  # fmt: skip


def test_to_spark_translates_positions_to_offsets_of_same_records(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Each of 41 partitions is at a different position in its log of 40 records."""
    topic, name = _copied_topic(broker, other, 41, 40)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, range(41))})
    result = _to_spark(chk, broker, other, "--topic-map", f"{topic}={name}")
    assert result.code == 0, result.stderr
    there = _there(other, name)
    offsets = json.loads(result.stdout)[name]
    assert offsets == {str(n): there[n, f"{n}/{n}".encode()] if n < 40 else 45 for n in range(41)}
    assert (
        "searched the other cluster for 41 positions: 40 matched (1600 records), 1 at the end "
        "(40 records)"
    ) in result.stderr


def test_partitions_with_many_records_are_fetched_in_parallel(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Regression: Records of one partition filled the queue, so each other partition waited 1 s."""
    topic, name = _new_name("orders"), _new_name("west.orders")
    values = [(f"{number}".ljust(200), NOW + number) for number in range(1000)]
    for cluster, its_name, first in ((broker, topic, []), (other, name, [("other", NOW)] * 5)):
        cluster.create_topic(its_name, 40)
        producer = _producer(cluster)
        for partition in range(40):
            for value, timestamp in (*first, *values):
                producer.produce(its_name, value, partition=partition, timestamp=timestamp)
        assert not producer.flush(60)
    for partition in range(40):
        other.delete_records(name, partition, 5)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [500] * 40)})
    began = time.monotonic()
    result = _to_spark(chk, broker, other, "--topic-map", f"{topic}={name}")
    assert json.loads(result.stdout) == {name: {str(n): 505 for n in range(40)}}
    assert time.monotonic() - began < 60  # the waits of the past bug took 80 s


def test_offset_syncs_of_mirrormaker_locate_position_among_equal_timestamps(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """All records have the same timestamp, so a search by time starts too far from the position."""
    topic, name = _new_name("orders"), _new_name("west.orders")
    broker.create_topic(topic, 1)
    _produce(broker, topic, 0, [str(n) for n in range(105_000)], step_ms=0)
    copier = Copier(broker, other)
    copier.create(topic, name)
    copier.copy(topic, name)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [104_000])})
    arguments = (chk, broker, other, "--topic-map", f"{topic}={name}")
    refused = _to_spark(*arguments)
    assert refused.code == 4 and "not found" in refused.stderr

    syncs = "mm2-offset-syncs.west.internal"
    broker.create_topic(syncs, 1)
    producer = _producer(broker)
    key = struct.pack(f">h{len(topic)}si", len(topic), topic.encode(), 0)
    for own in (10, 103_900, 104_100):  # only the second sync is close to the position and below it
        producer.produce(syncs, struct.pack(">qq", own, own + 5), key, 0)
    assert not producer.flush(30)
    result = _to_spark(*arguments)
    assert result.code == 0, result.stderr
    assert json.loads(result.stdout) == {name: {"0": 104_005}}


def test_topic_not_yet_discovered_by_job_is_translated_from_its_start(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    topic, name = _copied_topic(broker, other, 1, 30)
    young, young_name = _copied_topic(broker, other, 2, 20)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [7])})
    names = [word for old in ((topic, name), (young, young_name)) for word in _mapped(*old)]
    result = _to_spark(chk, broker, other, *names, "--topic-pattern", f"{topic}|{young}")
    assert result.code == 0, result.stderr
    assert json.loads(result.stdout) == {name: {"0": 12}, young_name: {"0": 5, "1": 5}}
    unnamed = _to_spark(chk, broker, other, *names[:2], "--topic-pattern", f"{topic}|{young}")
    assert unnamed.code == 4 and "[copy-topic-missing]" in unnamed.stderr


def _mapped(topic: str, name: str) -> tuple[str, str]:
    return "--topic-map", f"{topic}={name}"


def test_lagging_mirror_is_refused_until_records_are_copied(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    topic = _new_name("orders")
    broker.create_topic(topic, 1)
    _produce(broker, topic, 0, [str(n) for n in range(100)])
    copier = Copier(broker, other)
    copier.create(topic, topic)
    copier.copy(topic, topic, lambda record: (record.offset() or 0) < 20)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [30])})
    result = _to_spark(chk, broker, other)
    # The target's log has lost its first records, which may have included earlier copies.
    assert result.code == 4 and "[copy-lagging]" in result.stderr, result.stderr
    # The mirror is far behind, so the target contains no record near the position.
    far = write_source(tmp_path / "far/chk-3", {0: splits(topic, [90])})
    result = _to_spark(far, broker, other)
    assert result.code == 4 and "mirror lags" in result.stderr, result.stderr
    copier.copy(topic, topic, lambda record: 20 <= (record.offset() or 0) < 95)
    assert json.loads(_to_spark(chk, broker, other, "--wait", "1s").stdout) == {topic: {"0": 35}}
    assert json.loads(_to_spark(far, broker, other).stdout) == {topic: {"0": 95}}


def test_mirror_that_copied_records_twice_requires_option_on_ambiguous(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """``--on-ambiguous first`` starts at the first copy and duplicates records."""
    topic = _new_name("orders")
    broker.create_topic(topic, 1)
    _produce(broker, topic, 0, [str(n) for n in range(300)])
    copier = Copier(broker, other)
    copier.create(topic, topic)
    copier.copy(topic, topic, lambda record: (record.offset() or 0) < 200)
    copier.copy(topic, topic, lambda record: (record.offset() or 0) >= 90)
    # The mirror was rewound from 200 to 90. Positions below and above 90 are ambiguous.
    for position, first in ((50, 55), (89, 94), (100, 105), (150, 155)):
        chk = write_source(tmp_path / f"{position}/chk-3", {0: splits(topic, [position])})
        result = _to_spark(chk, broker, other)
        assert result.code == 4 and "mirror went back" in result.stderr
        assert "this loses no records, but duplicates 110 records" in result.stderr
        result = _to_spark(chk, broker, other, "--on-ambiguous", "first")
        assert json.loads(result.stdout) == {topic: {"0": first}}
        assert "duplicates up to 110 records" in result.stderr
    for position, only in ((200, 315), (300, 415)):
        chk = write_source(tmp_path / f"{position}/chk-3", {0: splits(topic, [position])})
        result = _to_spark(chk, broker, other)
        assert json.loads(result.stdout or "0") == {topic: {"0": only}}, result.stderr


def _values(broker: Broker, topic: str, starts: dict[str, int]) -> Counter[bytes]:
    """Count the values that a consumer reads from these offsets by partition."""
    return Counter(
        bytes(record.value() or b"")
        for record in _read(broker, topic)
        if (record.offset() or 0) >= starts[str(record.partition())]
    )


def test_mirror_that_moves_records_to_other_partitions_is_refused(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Regression: Positions were reported as proved, but 500 records were lost and 500 duplicated.

    The test swaps one batch of 500 records between the two partitions. Around each position, the
    copies are still in order.
    """
    topic = _new_name("orders")
    broker.create_topic(topic, 2)
    other.create_topic(topic, 2)
    for partition in range(2):
        _produce(broker, topic, partition, [f"{partition}/{n}" for n in range(2000)])
    records = {
        partition: [r for r in _read(broker, topic) if r.partition() == partition]
        for partition in range(2)
    }
    producer = _producer(other)
    # Swap the third batches of the two partitions.
    for number in range(4):
        for partition in range(2):
            there = 1 - partition if number == 2 else partition
            for record in records[partition][500 * number : 500 * (number + 1)]:
                producer.produce(
                    topic, record.value(), record.key(), there,
                    timestamp=record.timestamp()[1], headers=record.headers(),
                )  # fmt: skip
    assert not producer.flush(30)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [1750, 250])})
    for more in ((), ("--compare", "all")):
        refused = _to_spark(chk, broker, other, *more)
        assert (refused.code, refused.stdout) == (4, ""), refused.stderr
        assert "other partitioning" in refused.stderr
    # The samples also detect a swap that is far from the positions.
    far = write_source(tmp_path / "far/chk-3", {0: splits(topic, [2000, 2000])})
    refused = _to_spark(far, broker, other)
    assert refused.code == 4 and "other partitioning" in refused.stderr, refused.stderr


def test_target_with_records_produced_before_mirror_finished_is_refused(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Regression: 20 records that a producer wrote to the target too early were never consumed.

    Records that are produced after the mirror has finished are consumed.
    """
    topic, late = _new_name("orders"), _new_name("late")
    for name in (topic, late):
        broker.create_topic(name, 1)
        other.create_topic(name, 1)
        _produce(broker, name, 0, [f"old {n}" for n in range(3000)])
    copier = Copier(broker, other)
    copier.copy(topic, topic, lambda record: (record.offset() or 0) < 1500)
    _produce(other, topic, 0, [f"new {n}" for n in range(20)])
    copier.copy(topic, topic, lambda record: (record.offset() or 0) >= 1500)
    copier.copy(late, late)
    _produce(other, late, 0, [f"new {n}" for n in range(20)])
    for position in (1400, 1510, 2990, 3000):
        chk = write_source(tmp_path / f"{position}/chk-3", {0: splits(topic, [position])})
        refused = _to_spark(chk, broker, other)
        assert (refused.code, refused.stdout) == (4, ""), (position, refused.stderr)
        assert "foreign records" in refused.stderr, (position, refused.stderr)
    chk = write_source(tmp_path / "late/chk-3", {0: splits(late, [2990])})
    moved = _to_spark(chk, broker, other)
    read = _values(other, late, json.loads(moved.stdout)[late])
    wanted = [*(f"old {n}" for n in range(2990, 3000)), *(f"new {n}" for n in range(20))]
    assert read == Counter(value.encode() for value in wanted)


def _produce_equal(broker: Broker, topic: str, values: Sequence[str]) -> None:
    producer = _producer(broker)
    for value in values:
        producer.produce(topic, value, partition=0, timestamp=NOW)
    assert not producer.flush(30)


def test_missing_copies_of_equal_records_are_reported_as_expired_or_lagging(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Regression: Records were skipped because equal records hid the missing copies.

    In the target, retention deleted 9 of 10 equal records, or 61 of 100 were not copied yet.
    """
    expired, lagging = _new_name("expired"), _new_name("lagging")
    for topic, values in (
        (expired, ["a", *["x"] * 10, "b", "c"]),
        (lagging, ["a", *["x"] * 100, "b"]),
    ):
        broker.create_topic(topic, 1)
        other.create_topic(topic, 1)
        _produce_equal(broker, topic, values)
    copier = Copier(broker, other)
    copier.copy(expired, expired)
    other.delete_records(expired, 0, 10)  # one record x remains
    chk = write_source(tmp_path / "expired/chk-3", {0: splits(expired, [2])})
    refused = _to_spark(chk, broker, other)
    assert (refused.code, refused.stdout) == (4, "")
    assert (
        "expired there: the target's log starts 8 records after the position"
    ) in refused.stderr, refused.stderr
    copier.copy(lagging, lagging, lambda record: (record.offset() or 0) < 40)
    chk = write_source(tmp_path / "lagging/chk-3", {0: splits(lagging, [101])})
    for more in ((), ("--wait", "1s")):
        refused = _to_spark(chk, broker, other, *more)
        assert (refused.code, refused.stdout) == (4, "")
        assert (
            "mirror lags: the mirror has not copied at least 61 consumed records yet"
            in refused.stderr
        ), refused.stderr
    copier.copy(lagging, lagging, lambda record: (record.offset() or 0) >= 40)
    done = _to_spark(chk, broker, other)
    assert json.loads(done.stdout or "0") == {lagging: {"0": 101}}, done.stderr


def test_duplicate_count_is_lower_bound_while_rewound_mirror_is_copying(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Regression: ``migrate`` reported up to 60 duplicates, but 120 records were duplicated.

    A rewound mirror may stop at any time, so its existing copies are only a lower bound.
    """
    topic = _new_name("orders")
    broker.create_topic(topic, 1)
    other.create_topic(topic, 1)
    _produce(broker, topic, 0, [str(n) for n in range(200)])
    copier = Copier(broker, other)
    copier.copy(topic, topic)
    copier.copy(topic, topic, lambda record: 80 <= (record.offset() or 0) < 90)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [100])})
    refused = _to_spark(chk, broker, other)
    assert (refused.code, refused.stdout) == (4, "")
    assert "mirror went back" in refused.stderr
    assert "duplicates at least 10 records" in refused.stderr, refused.stderr
    copier.copy(topic, topic, lambda record: (record.offset() or 0) >= 90)
    allowed = _to_spark(chk, broker, other, "--on-ambiguous", "first")
    assert "duplicates up to 120 records" in allowed.stderr, allowed.stderr
    read = _values(other, topic, json.loads(allowed.stdout)[topic])
    assert read.keys() == {str(n).encode() for n in range(80, 200)}
    assert read.total() == 100 + 120


def test_mirror_that_lacks_aborted_records_is_refused_even_after_wait(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Regression: After ``--wait``, a mirror without aborted records was reported as complete."""
    topic = _new_name("orders")
    broker.create_topic(topic, 1)
    other.create_topic(topic, 1)
    _produce(broker, topic, 0, ["0", "1"])
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": _new_name("t")}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in ("2", "3"):
        producer.produce(topic, value, partition=0, timestamp=NOW + 10)
    producer.flush(30)
    producer.abort_transaction(30)
    copier = Copier(broker, other)
    copier.copy(topic, topic, lambda record: (record.offset() or 0) < 2)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [5])})
    refused = _to_spark(chk, broker, other, "--wait", "1s")
    assert (refused.code, refused.stdout) == (4, "")
    assert "duplicates at most 2 records" in refused.stderr, refused.stderr
    # A later record shows whether the mirror copies aborted records.
    _produce(broker, topic, 0, ["later"])
    copier.copy(topic, topic, lambda record: (record.offset() or 0) > 4)
    done = _to_spark(chk, broker, other)
    assert json.loads(done.stdout or "0") == {topic: {"0": 2}}, done.stderr


def test_tombstone_not_copied_yet_is_reported_as_mirror_lag(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Regression: A mirror that had not copied a tombstone was reported as "at the end".

    In the target log, a transaction marker is at the offset where the tombstone would be.
    """
    topic = _new_name("customers")
    for cluster in (broker, other):
        cluster.create_topic(topic, 1, {"cleanup.policy": "compact"})
    producer = _producer(broker)
    for number, (key, value) in enumerate((("a", "1"), ("b", "1"), ("a", None))):
        producer.produce(topic, value, key, 0, timestamp=NOW + number)
    assert not producer.flush(30)
    copies = Producer(
        {"bootstrap.servers": other.bootstrap_servers, "transactional.id": _new_name("t")}
    )
    copies.init_transactions(30)
    copies.begin_transaction()
    for record in _read(broker, topic)[:2]:
        copies.produce(topic, record.value(), record.key(), 0, timestamp=record.timestamp()[1])
    copies.commit_transaction(30)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [3])})
    refused = _to_spark(chk, broker, other)
    assert (refused.code, refused.stdout) == (4, "")
    assert "mirror lags" in refused.stderr, refused.stderr


def test_compare_all_proves_position_and_detects_changed_record(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """``--compare all`` proves the position even if a mirror has written transaction markers.

    In a second copy, it detects one changed record.
    """
    topic, changed = _new_name("orders"), _new_name("changed")
    broker.create_topic(topic, 1)
    _produce(broker, topic, 0, [str(n) for n in range(12_000)])
    copies = Producer(
        {"bootstrap.servers": other.bootstrap_servers, "transactional.id": _new_name("t")}
    )
    copies.init_transactions(30)
    for name in (topic, changed):
        other.create_topic(name, 1)
        for number, record in enumerate(_read(broker, topic)):
            if number % 1000 == 0:
                copies.begin_transaction()
            value = b"?" if name == changed and number == 3210 else record.value()
            copies.produce(
                name, value, record.key(), 0,
                timestamp=record.timestamp()[1], headers=record.headers(),
            )  # fmt: skip
            if number % 1000 == 999:
                copies.commit_transaction(30)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [11_500])})
    matched = _to_spark(chk, broker, other)
    assert json.loads(matched.stdout or "0") == {topic: {"0": 11_511}}, matched.stderr
    assert (
        "1 matched (" in matched.stderr
        and "migrate assumes that the mirror preserves" in matched.stderr
    )
    proved = _to_spark(chk, broker, other, "--compare", "all")
    assert json.loads(proved.stdout or "0") == {topic: {"0": 11_511}}, proved.stderr
    assert "reading up to 12,000 records of the job's cluster" in proved.stderr
    assert (
        "1 proved (" in proved.stderr
        and "migrate assumes that the mirror preserves" not in proved.stderr
    )
    for more in ((), ("--compare", "all")):
        wrong = _to_spark(chk, broker, other, "--topic-map", f"{topic}={changed}", *more)
        assert wrong.code == 4 and "other partitioning" in wrong.stderr, wrong.stderr


def test_verify_fails_for_plan_based_on_sampled_records(
    broker: Broker, other: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test lowers the limit above which records are only sampled."""
    topic, name = _new_name("orders"), _new_name("west")
    broker.create_topic(topic, 1)
    _produce(broker, topic, 0, [f"{n}" for n in range(7000)])
    copier = Copier(broker, other)
    copier.create(topic, name)
    copier.copy(topic, name)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [6900])})
    clusters = (
        "-b", broker.bootstrap_servers, "--to-bootstrap-servers", other.bootstrap_servers,
    )  # fmt: skip
    monkeypatch.setattr(find_copies, "_MOST_RECORDS", 100)
    for compare, code in (("samples", 5), ("all", 0)):
        plan, location = tmp_path / f"{compare}.json", tmp_path / compare
        made = migrate(
            "to-spark", chk, *clusters, "--topic-map", f"{topic}={name}", "--compare", compare,
            "--plan-out", plan,
        )  # fmt: skip
        assert made.code == 0, made.stderr
        assert ("[history-sampled]" in made.stderr) == (compare == "samples")
        applied = migrate("to-spark", "--plan", plan, *clusters, "--checkpoint-dir", location)
        assert applied.code == 0, applied.stderr
        verified = migrate("verify", f"plan:{plan}", f"spark:{location}", *clusters)
        assert verified.code == code, verified.output


def test_verify_fails_for_second_copies_of_expired_records(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Regression: The plan was "verified", although the mirror had copied 3 records twice.

    Both logs have deleted these records, but the target still has the second copies. The plan was
    also reported as "proved".
    """
    topic, name = _new_name("orders"), _new_name("west")
    broker.create_topic(topic, 1)
    _produce(broker, topic, 0, [f"{n}" for n in range(30)])
    copier = Copier(broker, other)
    copier.create(topic, name)
    copier.copy(topic, name)
    copier.copy(topic, name, lambda record: (record.offset() or 0) < 3)
    broker.delete_records(topic, 0, 10)
    other.delete_records(name, 0, 10)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [28])})
    clusters = (
        "-b", broker.bootstrap_servers, "--to-bootstrap-servers", other.bootstrap_servers,
    )  # fmt: skip
    plan, location = tmp_path / "plan.json", tmp_path / "location"
    made = migrate(
        "to-spark", chk, *clusters, "--topic-map", f"{topic}={name}", "--compare", "all",
        "--plan-out", plan,
    )  # fmt: skip
    assert made.code == 0, made.stderr
    assert "up to 3 records could not be compared" in made.stderr
    assert "[history-sampled]" in made.stderr
    done = migrate("to-spark", "--plan", plan, *clusters, "--checkpoint-dir", location)
    start = json.loads(done.stdout)[name]["0"]
    read = [r.value() for r in _read(other, name) if (r.offset() or 0) >= start]
    assert read == [b"28", b"29", b"0", b"1", b"2"]  # these 3 records are duplicates
    verified = migrate("verify", f"plan:{plan}", f"spark:{location}", *clusters)
    assert verified.code == 5, verified.output


def test_verify_fails_after_mirror_has_copied_records_twice(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Regression: The plan was "verified", although the mirror had copied the records twice."""
    topic = _new_name("orders")
    broker.create_topic(topic, 1)
    other.create_topic(topic, 1)
    _produce(broker, topic, 0, [str(n) for n in range(50)])
    copier = Copier(broker, other)
    copier.copy(topic, topic)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [20])})
    clusters = (
        "-b", broker.bootstrap_servers, "--to-bootstrap-servers", other.bootstrap_servers,
    )  # fmt: skip
    plan, location = tmp_path / "plan.json", tmp_path / "location"
    assert migrate("to-spark", chk, *clusters, "--plan-out", plan).code == 0
    done = migrate("to-spark", "--plan", plan, *clusters, "--checkpoint-dir", location)
    assert done.code == 0, done.stderr
    verify = ("verify", f"plan:{plan}", f"spark:{location}", *clusters)
    assert migrate(*verify).code == 0
    copier.copy(topic, topic, lambda record: (record.offset() or 0) >= 10)
    twice = migrate(*verify)
    assert twice.code == 5, twice.stdout + twice.stderr
    assert (
        "not verified: 1 partition cannot be matched with certainty" in twice.stdout + twice.stderr
    )
    again = migrate("to-spark", "--plan", plan, *clusters)
    assert again.code == 4 and "mirror went back" in again.stderr
    # A plan that accepts the duplicates is applied, but not verified.
    plan.unlink()
    allowed = (chk, *clusters, "--on-ambiguous", "first", "--plan-out", plan)
    assert migrate("to-spark", *allowed).code == 0
    second = tmp_path / "second"
    done = migrate("to-spark", "--plan", plan, *clusters, "--checkpoint-dir", second)
    assert done.code == 0, done.stderr
    assert migrate("verify", f"plan:{plan}", f"spark:{second}", *clusters).code == 5
    # Records that the job's cluster has deleted can no longer be compared.
    broker.delete_records(topic, 0, 30)
    assert migrate(*verify).code == 5


def test_wrong_topic_map_and_expired_records_are_refused(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    topic = _new_name("orders")
    broker.create_topic(topic, 2)
    for partition in range(2):
        _produce(broker, topic, partition, [f"{partition}/{n}" for n in range(100)])
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [10, 50])})
    missing = _to_spark(chk, broker, other)
    assert (
        missing.code == 4 and (f"specify the copy with --topic-map {topic}=NAME") in missing.stderr
    )
    # The topic has a different number of partitions.
    wide = _new_name("wide")
    other.create_topic(wide, 3)
    result = _to_spark(chk, broker, other, "--topic-map", f"{topic}={wide}")
    assert result.code == 4
    assert f"{topic} has 2 partitions, but {wide} in the target's cluster has 3" in (result.stderr)
    # Two topics have the same records and would get the same name.
    first, second = _copied_topic(broker, other, 1, 20)
    broker.create_topic(second, 1)
    _produce(broker, second, 0, [f"0/{n}" for n in range(20)])
    both = write_source(tmp_path / "both/chk-3", {0: [*splits(first, [1]), *splits(second, [1])]})
    result = _to_spark(both, broker, other, "--topic-map", f"{first}={second}")
    assert (result.code, result.stdout) == (4, "")
    assert f"the checkpoint already has a topic {second}" in result.stderr
    # In the target, partition 0 has expired records, and partition 1 has records of partition 0.
    name = _new_name("west")
    copier = Copier(broker, other)
    copier.create(topic, name)
    copier.copy(topic, name, lambda record: record.partition() == 0)
    other.delete_records(name, 0, 60)
    _produce(other, name, 1, [f"0/{n}" for n in range(100)])
    result = _to_spark(chk, broker, other, "--topic-map", f"{topic}={name}")
    assert result.code == 4
    assert (
        f"{name}-0: expired there: the target's log starts 45 records after the position"
        in result.stderr
    )
    assert f"{name}-1: not found" in result.stderr


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_positions_among_aborted_transactions_are_translated(
    broker: Broker, other: Broker, tmp_path: Path, isolation: str
) -> None:
    """One mirror copies the records of aborted transactions, and one mirror skips these records."""
    topic = _new_name("orders")
    broker.create_topic(topic, 1)
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": _new_name("t")}
    )
    producer.init_transactions(30)
    for number in range(60):
        producer.begin_transaction()
        for part in "ab":
            producer.produce(topic, f"{number}{part}", partition=0)
        if number % 3 == 1 or number == 59:
            producer.flush(30)
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    copier = Copier(broker, other)
    copier.create(topic, topic)
    copier.copy(topic, topic, isolation=isolation)
    there = _there(other, topic)
    records = _read(broker, topic)
    for position in (0, 1, 2, 3, 4, 50, 51, 52, 100, 170, 178, 179, 180):
        chk = write_source(tmp_path / f"{position}/chk-3", {0: splits(topic, [position])})
        result = _to_spark(chk, broker, other, "--wait", "1s")
        later = (bytes(r.value() or b"") for r in records if (r.offset() or 0) >= position)
        end = other.watermarks(topic)[0][1]
        wanted = next((there[0, value] for value in later if (0, value) in there), end)
        assert json.loads(result.stdout or "0") == {topic: {"0": wanted}}, (position, result.stderr)
    # The last position is at the log end, after aborted records. Before the plan is applied, its
    # positions are proved again.
    plan = tmp_path / "plan.json"
    assert _to_spark(chk, broker, other, "--wait", "1s", "--plan-out", str(plan)).code == 0
    clusters = ("-b", broker.bootstrap_servers, "--to-bootstrap-servers", other.bootstrap_servers)
    applied = migrate("to-spark", "--plan", plan, *clusters)
    assert json.loads(applied.stdout or "0") == {topic: {"0": wanted}}, applied.stderr


def test_records_of_open_transaction_are_reported_as_mirror_lag(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """The job has consumed the uncommitted records.

    The mirror copies records only after the commit.
    """
    topic = _new_name("orders")
    broker.create_topic(topic, 1)
    _produce(broker, topic, 0, ["0", "1"])
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": _new_name("t")}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in ("2", "3"):
        producer.produce(topic, value, partition=0, timestamp=NOW + 10)
    assert not producer.flush(30)
    copier = Copier(broker, other)
    copier.create(topic, topic)
    copier.copy(topic, topic, isolation="read_committed")
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [4])})
    refused = _to_spark(chk, broker, other, "--wait", "1s")
    assert (refused.code, refused.stdout) == (4, "")
    assert "mirror lags: the mirror has not copied at most 2 consumed records yet" in refused.stderr
    producer.commit_transaction(30)
    copier.copy(topic, topic, lambda record: (record.offset() or 0) >= 2, "read_committed")
    result = _to_spark(chk, broker, other)
    assert json.loads(result.stdout or "0") == {topic: {"0": 9}}, result.stderr


def test_lagging_mirror_of_compacted_topic_is_refused(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Records with the same key could hide that some records have not been copied."""
    topic = _new_name("customers")
    broker.create_topic(topic, 1, {"cleanup.policy": "compact"})
    _produce(broker, topic, 0, [str(n) for n in range(20)])  # with five keys
    copier = Copier(broker, other)
    copier.create(topic, topic)
    copier.copy(topic, topic, lambda record: (record.offset() or 0) < 10)
    for position, missing in ((12, 2), (20, 10)):
        chk = write_source(tmp_path / f"{position}/chk-3", {0: splits(topic, [position])})
        refused = _to_spark(chk, broker, other)
        assert (refused.code, refused.stdout) == (4, "")
        text = f"mirror lags: the mirror has not copied at most {missing} consumed records yet"
        assert text in refused.stderr, refused.stderr


def test_positions_in_compacted_topic_map_to_next_copied_record(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Compaction removed the record at the position and some neighboring records."""
    topic = _new_name("customers")
    broker.create_topic(topic, 1, {"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(200):
        producer.produce(topic, str(number), str(number % 50), 0, timestamp=NOW + number)
    producer.flush(30)
    copier = Copier(broker, other)
    copier.create(topic, topic)
    # After compaction, the log contains the last value of each key and some older records.
    gone = {*range(0, 100, 3), 100, 101, 120}
    copier.copy(topic, topic, lambda record: record.offset() not in gone)
    there = _there(other, topic)
    for position in (1, 99, 100, 101, 102, 120, 150, 199, 200):
        chk = write_source(tmp_path / f"{position}/chk-3", {0: splits(topic, [position])})
        result = _to_spark(chk, broker, other)
        wanted = next(
            (there[0, str(n).encode()] for n in range(position, 200) if n not in gone),
            other.watermarks(topic)[0][1],
        )
        assert json.loads(result.stdout or "0") == {topic: {"0": wanted}}, (position, result.stderr)


def test_offsets_of_group_in_target_cluster_are_committed_and_rolled_back(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    topic, group = _new_name("orders"), _new_name("readers")
    broker.create_topic(topic, 1)
    _produce(broker, topic, 0, [str(n) for n in range(30)])
    copier = Copier(broker, other)
    copier.create(topic, topic)
    copier.copy(topic, topic)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [12])})
    file = tmp_path / "rollback.json"
    arguments = (
        "commit-group", chk, "--group", group, "-b", broker.bootstrap_servers,
        "--to-bootstrap-servers", other.bootstrap_servers,
    )  # fmt: skip
    dry = migrate(*arguments)
    assert dry.code == 0 and "1 of 1 offset would change" in dry.stderr, dry.stderr
    done = migrate(*arguments, "--execute", "--yes", "--rollback-file", file)
    assert done.code == 0, done.stderr
    consumer = Consumer({"bootstrap.servers": other.bootstrap_servers, "group.id": group})
    consumer.subscribe([topic])
    first = consumer.poll(30)
    consumer.close()
    assert first is not None and first.value() == b"12"
    # Regression: The suggested command had options that rollback does not have.
    preview = done.stderr.splitlines()[-1].partition("to preview a rollback: migrate ")[2]
    assert preview == f"rollback {file} -b {other.bootstrap_servers}"
    previewed = migrate(*shlex.split(preview), "--force")
    assert previewed.code == 0 and "1 offset would be removed" in previewed.stderr
    back = migrate("rollback", file, "--execute", "--yes", "--force")
    assert back.code == 0, back.stderr


def test_saved_plan_is_refused_after_target_topic_is_recreated(
    broker: Broker, other: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test saves, shows, applies, and verifies the plan. It then recreates the topic."""
    # The rollback file in this directory shows that the offsets were translated.
    monkeypatch.chdir(tmp_path)
    topic, name, group = _new_name("orders"), _new_name("west"), _new_name("readers")
    broker.create_topic(topic, 2)
    for partition in range(2):
        _produce(broker, topic, partition, [f"{partition}/{n}" for n in range(50)])
    copier = Copier(broker, other)
    copier.create(topic, name)
    copier.copy(topic, name)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [12, 50])})
    clusters = (
        "-b", broker.bootstrap_servers, "--to-bootstrap-servers", other.bootstrap_servers,
    )  # fmt: skip
    plan, rollback = tmp_path / "plan.json", tmp_path / "rollback.json"
    made = migrate(
        "commit-group", chk, "--group", group, *clusters, "--topic-map", f"{topic}={name}",
        "--plan-out", plan,
    )  # fmt: skip
    assert made.code == 0, made.stderr
    assert f"--to-bootstrap-servers {other.bootstrap_servers}" in made.stderr
    saved = json.loads(plan.read_text())
    assert saved["to_cluster_id"] != saved["cluster_id"]
    assert [row["next_offset"] for row in saved["partitions"]] == [17, 55]
    assert saved["partitions"][0]["translation"] == {
        "topic": topic, "next_offset": 12, "log_start": 0, "log_end": 50, "outcome": "matched",
        "before": 12, "after": 38, "is_searched_to_end": True, "compared": 50,
        "unread": 0,
    }  # fmt: skip
    shown = migrate("show", plan)
    assert "12+38" in shown.stdout and "at the end" in shown.stdout
    # Before the plan is applied, the group has no offsets, so the verification fails.
    verify = ("verify", f"plan:{plan}", f"group:{group}")
    assert migrate(*verify, "-b", broker.bootstrap_servers).code == 2
    assert migrate(*verify, *clusters).code == 5
    applied = migrate(
        "commit-group", "--plan", plan, *clusters, "--execute", "--yes", "--rollback-file", rollback
    )
    assert applied.code == 0, applied.stderr
    copier.copy(topic, name, lambda _: False)
    _produce(broker, topic, 1, ["1/50"])
    copier.copy(topic, name, lambda record: record.value() == b"1/50")
    verified = migrate(*verify, *clusters)
    assert verified.code == 0, verified.stderr + verified.stdout
    one_cluster = migrate(*verify, "--to-bootstrap-servers", other.bootstrap_servers)
    assert one_cluster.code == 5 and "no record compared" in one_cluster.output
    # The offsets in the checkpoint belong to the other cluster.
    for more in (clusters, ("-b", other.bootstrap_servers)):
        refused = migrate("verify", chk, f"group:{group}", *more)
        assert refused.code == 4 and "(plan:FILE), and add --to-kafka-config FILE" in refused.stderr
    compared = migrate(
        "diff", chk, f"group:{group}", *clusters, "--topic-map", f"{topic}={name}", "--format",
        "json", "--exit-code",
    )  # fmt: skip
    assert compared.code == 0, compared.stdout
    back = migrate("rollback", rollback, "--execute", "--yes")
    assert back.code == 0, back.stderr
    # In the recreated topic, the offset of each record is lower by one.
    other.delete_topic(name)
    copier.create(topic, name, 4)
    copier.copy(topic, name)
    refused = migrate("commit-group", "--plan", plan, *clusters, "--execute", "--yes")
    assert refused.code == 4 and "was recreated" in refused.stderr, refused.stderr


def test_two_addresses_of_one_cluster_are_refused(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """Regression: Each topic was compared with itself, and offsets were committed there."""
    topic, group = _new_name("orders"), _new_name("readers")
    broker.create_topic(topic, 1)
    _produce(broker, topic, 0, [str(n) for n in range(30)])
    copier = Copier(broker, other)
    copier.create(topic, topic)
    copier.copy(topic, topic)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [12])})
    job, target = ("-b", broker.bootstrap_servers), ("-b", other.bootstrap_servers)
    # 127.0.0.1 and localhost are two addresses of each broker.
    again = ("--to-bootstrap-servers", broker.bootstrap_servers.replace("127.0.0.1", "localhost"))
    there = ("--to-bootstrap-servers", other.bootstrap_servers)
    for command in (
        ("to-spark", chk, "--checkpoint-dir", tmp_path / "out"),
        ("commit-group", chk, "--group", group, "--execute", "--yes"),
        ("to-flink", chk, "--from", chk, "--out", tmp_path / "out"),
        ("diff", chk, f"group:{group}"),
    ):
        refused = migrate(*command, *job, *again)
        assert (refused.code, refused.stdout) == (4, ""), refused.stderr
        assert "[one-cluster-for-both]" in refused.stderr
        assert f"so topic {topic} would be compared with itself" in refused.stderr
    assert broker.committed(group) == {}
    assert not (tmp_path / "out").exists()
    plan = tmp_path / "plan.json"
    made = migrate("commit-group", chk, "--group", group, *job, *there, "--plan-out", plan)
    assert made.code == 0, made.stderr
    for way in (("commit-group", "--plan", plan), ("verify", f"plan:{plan}", f"group:{group}")):
        refused = migrate(*way, *job, *again)
        assert refused.code == 4 and "[plan-for-other-target-cluster]" in refused.stderr
        # Regression: ``verify`` compared the target's records with themselves.
        refused = migrate(*way, *target, *there)
        assert refused.code == 4 and "[plan-for-other-cluster]" in refused.stderr, refused.output


def test_plan_with_offset_of_wrong_record_is_refused(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """A different program changed an offset in the plan and recomputed the checksum."""
    topic = _new_name("orders")
    broker.create_topic(topic, 1)
    _produce(broker, topic, 0, [str(n) for n in range(50)])
    copier = Copier(broker, other)
    copier.create(topic, topic)
    copier.copy(topic, topic)
    chk = write_source(tmp_path / "chk-3", {0: splits(topic, [12])})
    clusters = (
        "-b", broker.bootstrap_servers, "--to-bootstrap-servers", other.bootstrap_servers,
    )  # fmt: skip
    plan, location = tmp_path / "plan.json", tmp_path / "location"
    made = migrate("to-spark", chk, *clusters, "--plan-out", plan)
    assert made.code == 0, made.stderr

    def later(content: dict[str, Any]) -> None:
        content["partitions"][0]["next_offset"] += 1

    done = migrate("to-spark", "--plan", plan, *clusters, "--checkpoint-dir", location)
    assert done.code == 0, done.stderr
    verify = ("verify", f"plan:{plan}", f"spark:{location}", *clusters)
    right = migrate(*verify)
    assert right.code == 0, right.stdout + right.stderr
    edit_and_seal_plan(plan, later)
    refused = migrate("to-spark", "--plan", plan, *clusters)
    assert refused.code == 4
    assert "the plan starts at offset 18, but the record that follows" in refused.stderr
    assert "has offset 17 in the target's cluster" in refused.stderr
    wrong = migrate(*verify)
    assert wrong.code == 5
    assert "has offset 17 in the target's cluster" in wrong.stderr


def test_to_flink_writes_savepoint_for_target_cluster(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    topic, name = _copied_topic(broker, other, 3, 50)
    chk = write_source(
        tmp_path / "chk-3", {0: splits(topic, [12, 50]), 1: [KafkaSplit(topic, 2, 0)]}
    )
    new = tmp_path / "savepoint"
    arguments = (
        "to-flink", chk, "--from", chk, "--out", new, "-b", broker.bootstrap_servers,
        "--to-bootstrap-servers", other.bootstrap_servers,
    )  # fmt: skip
    refused = migrate(*arguments)
    assert refused.code == 4 and "--topic-map" in refused.stderr
    written = migrate(*arguments, "--topic-map", f"{topic}={name}")
    assert written.code == 0, written.stderr
    listed = json.loads(migrate("inspect", new, "--format", "json").stdout)
    positions = listed["sources"][0]["positions"]
    assert [(p["topic"], p["partition"], p["next_offset"]) for p in positions] == [
        (name, 0, 17),
        (name, 1, 55),
        (name, 2, 5),
    ]


def test_cut_over_to_group_in_target_cluster_is_verified_and_rolled_back(
    broker: Broker, other: Broker, tmp_path: Path
) -> None:
    """The plan, the group, its verification, and its rollback refer to the target cluster."""
    copier, names = Copier(other, broker), {}
    for topic in ("orders", "payments"):
        bounds = WATERMARKS[topic]
        other.create_topic(topic, len(bounds))
        for partition, (log_start, log_end) in bounds.items():
            _produce(other, topic, int(partition), list(map(str, range(log_end))))
            if log_start:
                other.delete_records(topic, int(partition), log_start)
        names[topic] = _new_name(topic)
        copier.create(topic, names[topic])
        copier.copy(topic, names[topic])
    group = _new_name("readers")
    (tmp_path / "there.properties").write_text(f"bootstrap.servers={broker.bootstrap_servers}\n")
    spec = tmp_path / "orders.yaml"
    content = {
        "version": 1,
        "flink": {"savepoint": str(next((GOLDEN / "2.2/stop").glob("savepoint-*")))},
        "kafka": {
            "bootstrap-servers": other.bootstrap_servers,
            "to-config": "there.properties",
        },
        "move": {"topic-map": names, "wait": "1s"},
        "target": {"group": group},
    }
    spec.write_text(yaml.safe_dump(content))
    done = migrate("cut-over", spec, "--execute", "--yes", "--until", "verify")
    assert done.code == 0, done.stderr
    record = json.loads((tmp_path / "orders.cut-over/record.json").read_text())
    planned = {(row["topic"], row["partition"]): row["planned"] for row in record["partitions"]}
    assert broker.committed(group) == planned
    for topic, name in names.items():
        here, there = _read(other, topic), _there(broker, name)
        for row in record["partitions"]:
            if row["topic"] == name and row["checkpoint"] not in ("earliest", None):
                unread = [
                    bytes(r.value() or b"")
                    for r in here
                    if r.partition() == row["partition"] and (r.offset() or 0) >= row["checkpoint"]
                ]
                assert not unread or there[row["partition"], unread[0]] == row["planned"]
    back = migrate("cut-over", spec, "--back", "--nothing-started", "--execute", "--yes")
    assert back.code == 0, back.stderr
    assert broker.committed(group) == {}
