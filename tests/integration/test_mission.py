"""Check that Flink and its successor process every record exactly once.

The successor is Spark or a consumer of the group. Flink's exactly-once sink shows the records that
Flink processed, and a plain Kafka consumer reads the whole topic.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.inputs.spark_log import committed_positions
from tests.support import command
from tests.support.flink import CountRun, run_count_job
from tests.support.groups import PROTOCOLS, read_from_group
from tests.support.kafka import Broker, Record
from tests.support.migration import (
    MODES,
    FlinkResult,
    Mode,
    PartitionCounts,
    Progress,
    continue_on_spark,
    count_records,
    migrate,
    run_flink,
)
from tests.support.spark import Spark

pytestmark = pytest.mark.integration


@dataclass(frozen=True, slots=True)
class Scene:
    """The result of a Flink job, and the broker that the job has read."""

    broker: Broker
    flink: FlinkResult


@pytest.fixture(scope="module", params=["1.20", "2.2"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    with Broker() as broker:
        workdir = tmp_path_factory.mktemp("mission")
        yield Scene(broker, run_flink(request.param, broker, workdir, print))


@pytest.fixture
def flink(scene: Scene) -> FlinkResult:
    return scene.flink


def _nothing_is_lost_or_repeated(flink: FlinkResult, counts: list[PartitionCounts]) -> None:
    assert [(a.topic, a.partition) for a in counts] == flink.partitions()
    for one in counts:
        assert (one.lost, one.repeated) == (0, 0), one
        assert one.by_flink + one.after_flink == one.in_kafka, one
        # Every partition has grown since the savepoint, so the successor reads a part of each.
        assert one.after_flink > 0, one


def _wrong(flink: FlinkResult, records: Iterable[Record]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return the numbers of lost and duplicated records of each affected partition."""
    return {
        (one.topic, one.partition): (one.lost, one.repeated)
        for one in count_records(flink, records)
        if one.lost or one.repeated
    }


def test_flink_job_leaves_partitions_in_every_state_of_progress(flink: FlinkResult) -> None:
    found = {
        (progress, log_start > 0) for progress, log_start in map(flink.progress, flink.partitions())
    }
    assert found >= {
        (Progress.UNTOUCHED, False),
        (Progress.UNTOUCHED, True),
        (Progress.PARTLY_READ, False),
        (Progress.PARTLY_READ, True),
        (Progress.FULLY_READ, False),
        (Progress.ADDED_LATER, False),
    }


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_spark_loses_and_duplicates_no_records_after_move(
    flink: FlinkResult, spark: Spark, mode: Mode, tmp_path: Path
) -> None:
    _nothing_is_lost_or_repeated(flink, continue_on_spark(flink, spark, mode, tmp_path, print))


def test_lost_and_duplicated_records_of_query_are_detected(
    flink: FlinkResult, spark: Spark, tmp_path: Path
) -> None:
    """Increase one start offset and decrease another by one.

    This proves that the previous test can fail.
    """
    orders = flink.topics[0]
    servers = ("--bootstrap-servers", flink.bootstrap_servers)
    right = json.loads(migrate("to-spark", str(flink.savepoint), *servers, say=print))
    right[orders]["0"] += 1
    right[orders]["1"] -= 1
    records = spark.read_all(
        flink.bootstrap_servers,
        {"subscribe": ",".join(flink.topics)},
        tmp_path / "checkpoint",
        starting_offsets=json.dumps(right),
    )
    assert _wrong(flink, records) == {(orders, 0): (1, 0), (orders, 1): (0, 1)}


# -- consumer groups -----------------------------------------------------------------------------


def _commit_group(flink: FlinkResult, group: str, folder: Path) -> None:
    migrate(
        *("commit-group", str(flink.savepoint), "--group", group),
        *("--bootstrap-servers", flink.bootstrap_servers, "--execute", "--yes"),
        *("--rollback-file", str(folder / "rollback.json")),
        say=print,
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_consumer_group_loses_and_duplicates_no_records_after_move(
    scene: Scene, tmp_path: Path, protocol: str
) -> None:
    broker, flink = scene.broker, scene.flink
    group = f"goes-on-{protocol}"
    _commit_group(flink, group, tmp_path)
    records = read_from_group(broker, group, flink.topics, protocol)

    _nothing_is_lost_or_repeated(flink, count_records(flink, records))
    assert broker.committed(group) == {
        (topic, partition): log_end
        for topic in flink.topics
        for partition, (_, log_end) in broker.watermarks(topic).items()
    }


def test_lost_and_duplicated_records_of_group_are_detected(scene: Scene, tmp_path: Path) -> None:
    """Increase one offset and decrease another by one.

    This proves that the previous test can fail.
    """
    broker, flink = scene.broker, scene.flink
    _commit_group(flink, "wrong", tmp_path)
    orders = flink.topics[0]
    right = broker.committed("wrong")
    broker.commit("wrong", {(orders, 0): right[orders, 0] + 1, (orders, 1): right[orders, 1] - 1})
    records = read_from_group(broker, "wrong", flink.topics, "classic")
    assert _wrong(flink, records) == {(orders, 0): (1, 0), (orders, 1): (0, 1)}


def test_round_trip_to_spark_and_back_counts_every_record_exactly_once(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    """After Spark, Flink resumes its counts from the migrated state.

    The state does not contain the records that Spark read.
    """
    topic, version = f"there-and-back-{uuid.uuid4().hex[:8]}", "2.2"
    flags = ("-b", broker.bootstrap_servers)
    broker.create_topic(topic, 3)
    for partition, size in ((0, 40), (1, 60)):
        broker.produce(topic, partition, map(str, range(size)))

    def count(until: dict[tuple[str, int], int], workdir: Path, restored: Path | None) -> CountRun:
        return run_count_job(
            version=version,
            bootstrap_servers=broker.bootstrap_servers,
            topics=[topic],
            until=until,
            workdir=workdir,
            restored=restored,
        )

    first = count({(topic, 0): 12, (topic, 1): 20}, tmp_path / "first", None)
    query, again = tmp_path / "query", tmp_path / "again"
    assert command.migrate("to-spark", first.snapshot, *flags, "--checkpoint-dir", query).code == 0
    by_spark = spark.read_all(broker.bootstrap_servers, {"subscribe": topic}, query)
    goes_on = committed_positions("it", query).next_offsets
    # Add records to each partition, and add a partition that neither Flink nor Spark has read.
    broker.add_partitions(topic, 4)
    for partition in range(4):
        broker.produce(topic, partition, map(str, range(10)))
    to_flink = ("to-flink", first.snapshot, "--from", f"spark:{query}", "--out", again, *flags)
    # Flink's state lacks the records that Spark has read.
    assert command.migrate(*to_flink).code == 4
    assert command.migrate(*to_flink, "--allow-state-mismatch").code == 0
    ends = {(topic, n): end for n, (_, end) in broker.watermarks(topic).items()}
    left = {place: end - goes_on.get(place, 0) for place, end in ends.items()}
    second = count(left, tmp_path / "second", again)

    seen = Counter((one.partition, one.offset) for run in (first, second) for one in run.counted)
    seen.update((partition, offset) for _, partition, offset, _ in by_spark)
    assert by_spark
    assert seen == Counter((n, at) for (_, n), end in ends.items() for at in range(end))
    before = Counter(one.partition for one in first.counted)
    counted: dict[int, list[int]] = {}
    for one in second.counted:
        counted.setdefault(one.partition, []).append(one.count)
    assert counted == {
        n: list(range(before[n] + 1, before[n] + 1 + many)) for (_, n), many in left.items()
    }
