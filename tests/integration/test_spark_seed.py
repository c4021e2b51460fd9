"""Run real Spark queries with a seeded checkpoint directory and with startingOffsets.

`migrate` writes the seeds. The queries also set different `startingOffsets`, so a test passes only
if the seed determines the start.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from migrate.targets.location import LocalDirectory
from migrate.targets.seed import UNFINISHED
from migrate.targets.seed import write_seed as write_seed_of_sources
from migrate.targets.source_options import SourceStart
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.kafka import Broker, Record
from tests.support.seeds import write_seed
from tests.support.spark import Spark, SparkQueryError

pytestmark = pytest.mark.integration

TOPIC = "spark-seed"
# Partition -> (log start offset, log end offset)
LOGS = {0: (0, 100), 1: (0, 100), 2: (40, 100)}

STATELESS_AND_STATEFUL = pytest.mark.parametrize(
    "stateful", [False, True], ids=["stateless", "stateful"]
)


@pytest.fixture(scope="module")
def servers(broker: Broker) -> str:
    broker.create_topic(TOPIC, len(LOGS))
    for partition, (log_start, log_end) in LOGS.items():
        broker.produce(TOPIC, partition, _values(range(log_end)))
        broker.delete_records(TOPIC, partition, before=log_start)
    return broker.bootstrap_servers


@pytest.fixture
def checkpoint_dir(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def seed(checkpoint_dir: Path, next_offsets: Mapping[int, int], topic: str = TOPIC) -> None:
    """Write a seed with the code of `migrate`, without a checkpoint."""
    write_seed(
        {(topic, partition): next_offsets[partition] for partition in next_offsets}, checkpoint_dir
    )


def _values(numbers: range) -> list[str]:
    return [f"record {number}" for number in numbers]


def _records_from(next_offsets: Mapping[int, int]) -> list[Record]:
    return [
        (TOPIC, partition, offset, f"record {offset}")
        for partition, next_offset in sorted(next_offsets.items())
        for offset in range(next_offset, LOGS[partition][1])
    ]


@STATELESS_AND_STATEFUL
def test_query_starts_exactly_at_seed(
    servers: str, spark: Spark, checkpoint_dir: Path, stateful: bool
) -> None:
    # Positions in the middle, at the start, and at the end of a log.
    positions = {0: 37, 1: 0, 2: 100}
    seed(checkpoint_dir, positions)

    records = spark.read_all(
        servers,
        {"subscribe": TOPIC},
        checkpoint_dir,
        starting_offsets="earliest",
        stateful=stateful,
    )

    assert records == _records_from(positions)


@STATELESS_AND_STATEFUL
def test_seeded_query_resumes_from_its_own_progress(
    tmp_path: Path, broker: Broker, spark: Spark, checkpoint_dir: Path, stateful: bool
) -> None:
    topic = f"spark-seed-restart-{'stateful' if stateful else 'stateless'}"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, _values(range(20)))
    seed(checkpoint_dir, {0: 5}, topic)

    def run() -> list[int]:
        """Run the query, and return the offsets that it has read in this run and earlier runs."""
        records = spark.read_all(
            broker.bootstrap_servers, {"subscribe": topic}, checkpoint_dir, stateful=stateful
        )
        return [offset for _, _, offset, _ in records]

    def verified(*flags: str) -> Result:
        target = f"spark:{checkpoint_dir}"
        return migrate("verify", chk, target, "-b", broker.bootstrap_servers, *flags)

    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [5])})
    before = verified()
    assert before.code == 0 and "WILL-START-AT" in before.stdout
    assert run() == list(range(5, 20))
    broker.produce(topic, 0, _values(range(20, 30)))
    assert run() == list(range(5, 30))
    after = verified()
    assert after.code == 0 and "STARTED-AT" in after.stdout
    assert "verified: the one partition started where the checkpoint ended" in after.stderr
    broker.delete_records(topic, 0, before=25)  # the query has already read these records
    later = verified()
    assert later.code == 5 and "STARTED-AT" in later.stdout
    assert _UNTOLD in later.stderr
    assert verified("--allow-moved-on").code == 0


_UNTOLD = (
    "the start offsets in the checkpoint location were correct in the one partition; it cannot be "
    "determined whether retention deleted "
    "records before the first batch\n"
)


def test_records_expired_before_first_batch_are_not_verified(
    tmp_path: Path, broker: Broker, spark: Spark, checkpoint_dir: Path
) -> None:
    """Regression: With failOnDataLoss=false, 20 records were lost, but the seed was "verified"."""
    topic = "spark-seed-retention"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, _values(range(40)))
    seed(checkpoint_dir, {0: 5}, topic)
    broker.delete_records(topic, 0, before=25)
    options = {"subscribe": topic, "failOnDataLoss": "false"}
    read = spark.read_all(broker.bootstrap_servers, options, checkpoint_dir)
    assert [offset for *_, offset, _ in read] == list(range(25, 40))
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [5])})
    found = migrate("verify", chk, f"spark:{checkpoint_dir}", "-b", broker.bootstrap_servers)
    assert found.code == 5
    assert "verified" not in found.stderr
    assert found.stderr.endswith(_UNTOLD)


@pytest.mark.parametrize(
    ("positions", "told"),
    [
        pytest.param(
            {0: 101, 1: 0, 2: 40}, "offset was changed from 101 to 100", id="beyond the log end"
        ),
        pytest.param(
            {0: 0, 1: 0, 2: 39}, "Could not read records in offset", id="below the log start"
        ),
        pytest.param(
            {0: 0, 1: 0}, "starts from 40 instead of 0", id="not listed, log start above 0"
        ),
    ],
)
def test_query_fails_on_seed_with_unavailable_offsets(
    servers: str,
    spark: Spark,
    checkpoint_dir: Path,
    positions: Mapping[int, int],
    told: str,
) -> None:
    seed(checkpoint_dir, positions)

    with pytest.raises(SparkQueryError, match=told):
        spark.read_all(
            servers,
            {"subscribe": TOPIC},
            checkpoint_dir,
            starting_offsets="earliest",
        )


def test_partition_missing_from_seed_starts_at_0_if_log_starts_at_0(
    servers: str, spark: Spark, checkpoint_dir: Path
) -> None:
    seed(checkpoint_dir, {0: 99, 2: 99})

    records = spark.read_all(servers, {"subscribe": TOPIC}, checkpoint_dir)

    assert records == _records_from({0: 99, 1: 0, 2: 99})


def test_starting_offsets_must_list_every_partition(
    servers: str, spark: Spark, checkpoint_dir: Path
) -> None:
    """Spark refuses ``startingOffsets`` if any partition is missing."""
    with pytest.raises(SparkQueryError, match="must specify all TopicPartitions"):
        spark.read_all(
            servers,
            {"subscribe": TOPIC},
            checkpoint_dir,
            starting_offsets=json.dumps({TOPIC: {"0": 0, "1": 0}}),
        )


def test_restarted_query_ignores_starting_offsets(
    servers: str, spark: Spark, checkpoint_dir: Path
) -> None:
    def run(next_offset: int) -> list[Record]:
        starting_offsets = json.dumps({TOPIC: {"0": next_offset, "1": 100, "2": 100}})
        return spark.read_all(
            servers, {"subscribe": TOPIC}, checkpoint_dir, starting_offsets=starting_offsets
        )

    assert run(90) == _records_from({0: 90, 1: 100, 2: 100})
    assert run(0) == _records_from({0: 90, 1: 100, 2: 100})


# -- ignored and incomplete seeds ----------------------------------------------------------------


@pytest.fixture
def sink(broker: Broker) -> str:
    name = f"spark-seed-sink-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    return name


@pytest.mark.parametrize(
    ("options", "first"),
    [
        pytest.param({"startingOffsets": "earliest"}, 0, id="ignores the seed"),
        pytest.param({"startingOffsets": '{"TOPIC":{"0":37}}'}, 37, id="heeds startingOffsets"),
    ],
)
def test_continuous_trigger_ignores_seed(
    broker: Broker,
    spark: Spark,
    tmp_path: Path,
    checkpoint_dir: Path,
    sink: str,
    options: Mapping[str, str],
    first: int,
) -> None:
    topic = f"{sink}-read"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, _values(range(60)))
    seed(checkpoint_dir, {0: 20}, topic)
    options = {name: value.replace("TOPIC", topic) for name, value in options.items()}
    query = (
        spark.stream(broker.bootstrap_servers, subscribe=topic, **options)
        .selectExpr("CAST(offset AS STRING) AS value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("topic", sink)
        .option("checkpointLocation", str(checkpoint_dir))
        .trigger(continuous="1 second")
        .start()
    )
    deadline = time.monotonic() + 60
    try:
        while not (written := broker.records(sink)) or written[-1][3] != "59":
            assert time.monotonic() < deadline and query.isActive
            time.sleep(0.2)
    finally:
        query.stop()
    assert [int(value) for *_, value in written] == list(range(first, 60))
    # The seed and the checkpoint contain 20, but the query did not start there.
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [20])})
    verified = migrate("verify", chk, f"spark:{checkpoint_dir}", "-b", broker.bootstrap_servers)
    assert verified.code == 5, verified.stdout
    assert "1 cannot tell" in verified.stdout
    assert "started with the continuous trigger" in verified.stderr


def test_query_starts_from_seed_without_metadata_file(
    servers: str, spark: Spark, checkpoint_dir: Path
) -> None:
    positions = {0: 37, 1: 90, 2: 50}
    seed(checkpoint_dir, positions)
    (checkpoint_dir / "metadata").unlink()
    assert spark.read_all(servers, {"subscribe": TOPIC}, checkpoint_dir) == _records_from(positions)


def test_query_silently_skips_records_if_seed_has_no_sources_directory(
    servers: str, spark: Spark, checkpoint_dir: Path
) -> None:
    seed(checkpoint_dir, {0: 37, 1: 90, 2: 50})
    shutil.rmtree(checkpoint_dir / "sources")
    assert spark.read_all(servers, {"subscribe": TOPIC}, checkpoint_dir) == []


def test_query_rejects_unfinished_seed(servers: str, spark: Spark, checkpoint_dir: Path) -> None:
    """``metadata`` contains invalid JSON until all other files of the seed are written."""
    seed(checkpoint_dir, {0: 37, 1: 90, 2: 50})
    (checkpoint_dir / "metadata").write_bytes(UNFINISHED)
    with pytest.raises(Py4JJavaError, match="JsonParseException"):
        spark.read_all(servers, {"subscribe": TOPIC}, checkpoint_dir)


def test_query_starts_from_seed_written_directly_into_mounted_directory(
    servers: str, spark: Spark, checkpoint_dir: Path
) -> None:
    positions = {0: 37, 1: 90, 2: 50}
    source = SourceStart(0, {(TOPIC, partition): start for partition, start in positions.items()})
    write_seed_of_sources([source], LocalDirectory("a mount", checkpoint_dir, mounted=True))
    assert spark.read_all(servers, {"subscribe": TOPIC}, checkpoint_dir) == _records_from(positions)


# -- seeds that do not match the query -----------------------------------------------------------


def test_query_fails_on_seed_of_different_topic(
    broker: Broker, servers: str, spark: Spark, checkpoint_dir: Path
) -> None:
    other = f"spark-seed-other-{uuid.uuid4().hex[:8]}"
    broker.create_topic(other, 1)
    broker.produce(other, 0, _values(range(10)))
    seed(checkpoint_dir, {0: 5}, other)
    with pytest.raises(SparkQueryError, match=r"are gone|starts from 40 instead of 0"):
        spark.read_all(servers, {"subscribe": TOPIC}, checkpoint_dir)


def test_query_without_fail_on_data_loss_skips_records_silently(
    servers: str, spark: Spark, checkpoint_dir: Path
) -> None:
    seed(checkpoint_dir, {0: 100, 1: 100, 2: 10})
    options = {"subscribe": TOPIC, "failOnDataLoss": "false"}
    # The records 10 to 39 were deleted.
    assert spark.read_all(servers, options, checkpoint_dir) == _records_from({2: 40})


def test_partition_added_after_planning_is_read_from_first_record(
    broker: Broker, spark: Spark, checkpoint_dir: Path
) -> None:
    topic = f"spark-seed-added-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, _values(range(10)))
    seed(checkpoint_dir, {0: 5}, topic)
    broker.add_partitions(topic, 2)
    broker.produce(topic, 1, _values(range(3)))
    records = spark.read_all(broker.bootstrap_servers, {"subscribe": topic}, checkpoint_dir)
    assert [record[1:3] for record in records] == [
        *((0, offset) for offset in range(5, 10)),
        *((1, offset) for offset in range(3)),
    ]


def test_partition_missing_from_all_batches_is_not_verified(
    tmp_path: Path, broker: Broker, spark: Spark, checkpoint_dir: Path
) -> None:
    """Regression: A query that never read partition 1 was "verified" for both partitions.

    The query assigns its partitions.
    """
    topic = f"spark-seed-assigned-{uuid.uuid4().hex[:8]}"
    servers = broker.bootstrap_servers
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, _values(range(10)))
    seed(checkpoint_dir, {0: 5}, topic)
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [5])})
    broker.add_partitions(topic, 2)
    broker.produce(topic, 1, _values(range(3)))
    assigned = spark.read_all(servers, {"assign": json.dumps({topic: [0]})}, checkpoint_dir)
    assert [record[1:3] for record in assigned] == [(0, offset) for offset in range(5, 10)]
    result = migrate("verify", chk, f"spark:{checkpoint_dir}", "-b", servers)
    assert result.code == 5
    assert ": 1 ok, 1 cannot tell\n" in result.stdout
    assert (
        "cannot tell (1): neither in the start offsets in the checkpoint location nor"
        in result.stderr
    )
    # A query that subscribes to the topic reads partition 1 in its next batch.
    assert len(spark.read_all(servers, {"subscribe": topic}, checkpoint_dir)) == 5 + 3
    result = migrate("verify", chk, f"spark:{checkpoint_dir}", "-b", servers)
    assert (result.code, "all 2 partitions started" in result.stderr) == (0, True)


def _run_with_state(broker: Broker, spark: Spark, checkpoint_dir: Path) -> str:
    """Run a stateful query from offset 5 of a topic with ten records, and return the topic."""
    topic = f"spark-seed-state-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, _values(range(10)))
    seed(checkpoint_dir, {0: 5}, topic)
    options = {"subscribe": topic}
    read = spark.read_all(broker.bootstrap_servers, options, checkpoint_dir, stateful=True)
    assert len(read) == 5
    return topic


def test_copied_query_reads_new_partition_whose_log_starts_above_0(
    tmp_path: Path, broker: Broker, spark: Spark, checkpoint_dir: Path
) -> None:
    """Regression: The copy reported "new partition, from 4", but the query failed on start."""
    topic = _run_with_state(broker, spark, checkpoint_dir)
    servers, options = broker.bootstrap_servers, {"subscribe": topic}
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [10])})
    broker.produce(topic, 0, _values(range(2)))
    broker.add_partitions(topic, 2)
    broker.produce(topic, 1, _values(range(6)))
    broker.delete_records(topic, 1, before=4)
    new = tmp_path / "new"
    copy = ("copy-query", f"spark:{checkpoint_dir}", "--from", chk, "--checkpoint-dir", new)
    copied = migrate(*copy, "-b", servers)
    assert copied.code == 0, copied.stderr
    assert f"{topic}-1: new partition, from 4\n" in copied.stderr
    assert f": migrate diff {chk} spark:{new} -b {servers}\n" in copied.stderr
    # Spark cannot read a file sink if the sink's log does not start with batch 0.
    shutil.copytree(tmp_path / f"{checkpoint_dir.name}-sink", tmp_path / "new-sink")
    records = spark.read_all(servers, options, new, stateful=True)
    assert [record[1:3] for record in records] == [(0, 10), (0, 11), (1, 4), (1, 5)]


def test_copied_query_fails_with_new_file_sink(
    tmp_path: Path, broker: Broker, spark: Spark, checkpoint_dir: Path
) -> None:
    """Regression: ``migrate`` recommended a new sink directory, and Spark failed at batch 9."""
    topic = _run_with_state(broker, spark, checkpoint_dir)
    servers, options = broker.bootstrap_servers, {"subscribe": topic}
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [8])})
    copy = ("copy-query", f"spark:{checkpoint_dir}", "--from", chk, "-b", servers)
    copied = migrate(*copy, "--checkpoint-dir", tmp_path / "new", "--sink", tmp_path / "new-sink")
    assert copied.code == 0, copied.stderr
    assert "new-sink contains no batch of the query, so batches 0 to" in copied.stderr
    with pytest.raises(Py4JJavaError, match="_spark_metadata/0 doesn't exist"):
        spark.read_all(servers, options, tmp_path / "new", stateful=True)


def test_query_fails_on_topic_recreated_after_planning(
    broker: Broker, spark: Spark, checkpoint_dir: Path
) -> None:
    topic = f"spark-seed-recreated-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, _values(range(10)))
    seed(checkpoint_dir, {0: 8}, topic)
    broker.delete_topic(topic)
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, _values(range(4)))
    with pytest.raises(SparkQueryError, match="offset was changed from 8 to 4"):
        spark.read_all(broker.bootstrap_servers, {"subscribe": topic}, checkpoint_dir)
