"""Follow a query with a consumer group.

The group is at the newest committed batch or the batch before, and never at a later batch.
"""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from migrate.inputs.spark_log import newest_committed_batch, positions_after
from migrate.spark import CommitToGroup
from migrate.storage.files import Files
from tests.support.command import Result, migrate, running
from tests.support.groups import member
from tests.support.kafka import Broker
from tests.support.seeds import write_seed
from tests.support.spark import Spark

pytestmark = pytest.mark.integration

_SECONDS = 60
_KILLS = 4
_SEED = 20


class Gate:
    """A foreachBatch function that holds each batch while it is shut."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self.waiting = threading.Event()

    def shut(self) -> None:
        self.waiting.clear()
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def __call__(self, rows: DataFrame, _: int) -> None:
        rows.count()
        self.waiting.set()
        assert self._open.wait(_SECONDS)


class Case:
    """A topic of two partitions, a query that keeps reading the topic, and a group."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker, self.query, self.gate = broker, folder / "query", Gate()
        self.topic = f"t-{uuid.uuid4().hex[:8]}"
        self.group = f"g-{self.topic}"
        broker.create_topic(self.topic, 2)
        write_seed({(self.topic, 0): 0, (self.topic, 1): 0}, self.query)

    @contextmanager
    def running(self, spark: Spark) -> Iterator[StreamingQuery]:
        started = (
            spark.stream(self.broker.bootstrap_servers, subscribe=self.topic)
            .writeStream.foreachBatch(self.gate)
            .option("checkpointLocation", str(self.query))
            .start()
        )
        try:
            yield started
        finally:
            self.gate.open()
            started.stop()

    def produce(self) -> None:
        for partition in range(2):
            self.broker.produce(self.topic, partition, ["x", "y", "z"])

    def arguments(self, *more: str | Path) -> list[str]:
        to = ("--group", self.group, "-b", self.broker.bootstrap_servers)
        return [str(one) for one in ("follow", f"spark:{self.query}", *to, *more)]

    def follow(self, *more: str | Path) -> Result:
        return migrate(*self.arguments("--once", *more))

    def following(self, *more: str) -> AbstractContextManager[subprocess.Popen[str]]:
        return running(*self.arguments(*more))

    @property
    def batch(self) -> int | None:
        return newest_committed_batch(str(self.query), Files())

    def after(self, batch: int) -> dict[tuple[str, int], int]:
        starts = positions_after("", str(self.query), batch, Files()).starts
        return {place: start for place, start in starts.items() if isinstance(start, int)}

    @property
    def held(self) -> dict[tuple[str, int], int]:
        return self.broker.committed(self.group)

    def read_all(self) -> bool:
        """Return whether the query has committed all records of the topic."""
        ends = {(self.topic, p): len(self.broker.records(self.topic)) // 2 for p in range(2)}
        return self.batch is not None and self.after(self.batch) == ends


@pytest.fixture
def case(broker: Broker, tmp_path: Path) -> Case:
    return Case(broker, tmp_path)


def _await(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_killed_follow_command_leaves_group_at_committed_batch(case: Case, spark: Spark) -> None:
    at_random = random.Random(_SEED)
    empty = case.follow()
    assert (empty.code, case.held) == (0, {})
    assert "the query has not committed a batch, so the group gets no offsets yet" in empty.stderr
    with case.running(spark):
        for number in range(_KILLS):
            first, before = case.batch, case.held
            with case.following("--every", "50ms") as process:
                assert process.stderr is not None and process.stderr.readline()
                case.produce()
                time.sleep(at_random.uniform(0, 1.2) if number else 0)
                process.kill()
            held = case.held
            _await(case.read_all)
            newest = case.batch
            assert newest is not None
            batches = [case.after(batch) for batch in range((first or 0), newest + 1)]
            # The offsets of all partitions belong to the same committed batch.
            assert held == before or held in batches, (held, batches)
            caught_up = case.follow()
            assert caught_up.code == 0, caught_up.stderr
            assert case.held == case.after(newest)


def test_follow_does_not_commit_offsets_of_uncommitted_batch(case: Case, spark: Spark) -> None:
    with case.running(spark) as query:
        inside = CommitToGroup(case.query, f"{case.group}-inside", case.broker.bootstrap_servers)
        spark.session.streams.addListener(inside)
        try:
            case.produce()
            _await(case.read_all)
            first = case.after(case.batch or 0)
            assert case.follow().code == 0
            _await(lambda: case.broker.committed(inside.group) == first)

            case.gate.shut()
            case.produce()
            assert case.gate.waiting.wait(_SECONDS)
            assert (case.query / "offsets" / str((case.batch or 0) + 1)).exists()
            done = case.follow()
            assert done.code == 0 and "no change" in done.stderr
            assert "[output-beyond]" in done.stderr
            assert case.held == first == case.broker.committed(inside.group)

            case.gate.open()
            _await(case.read_all)
            second = case.after(case.batch or 0)
            _await(lambda: case.broker.committed(inside.group) == second)
            assert inside.problem is None and inside.followed is not None
            assert inside.followed.batch == case.batch
            assert query.isActive

            # The listener does not commit to an active group, and the query continues.
            with member(case.broker, inside.group, case.topic):
                case.produce()
                _await(case.read_all)
                _await(lambda: inside.problem is not None)
                assert "has 1 member" in str(inside.problem)
                assert case.broker.committed(inside.group) == second
        finally:
            spark.session.streams.removeListener(inside)


def test_follow_refuses_group_ahead_of_query_and_exports_metrics(
    case: Case, spark: Spark, tmp_path: Path
) -> None:
    metrics = tmp_path / "follow.prom"
    case.produce()
    with case.running(spark):
        _await(case.read_all)
    case.produce()
    place, other = (case.topic, 0), (case.topic, 1)

    case.broker.commit(case.group, {place: 5, other: 1})
    refused = case.follow("--metrics-file", metrics)
    assert refused.code == 4 and not metrics.exists()
    assert f"(the first is {case.topic}-0: 5, but the query is at 3)" in refused.stderr
    assert "[group-ahead-of-query]" in refused.stderr
    assert case.held == {place: 5, other: 1}

    with member(case.broker, case.group, case.topic):
        joined = case.follow("--allow-moved-on")
        assert joined.code == 4 and "has 1 member" in joined.stderr
    assert case.held == {place: 5, other: 1}

    done = case.follow("--allow-moved-on", "--metrics-file", metrics)
    assert done.code == 0, done.stderr
    assert "2 offsets committed, lag 6" in done.stderr
    assert case.held == {place: 3, other: 3}
    told = metrics.read_text()
    labels = f'group="{case.group}",topic="{case.topic}",partition="0"'
    assert f"migrate_follow_lag{{{labels}}} 3\n" in told
    assert f"migrate_follow_next_offset{{{labels}}} 3\n" in told
    assert f'migrate_follow_batch{{group="{case.group}"}} {case.batch}\n' in told

    case.broker.delete_topic(case.topic)
    gone = case.follow()
    assert gone.code == 4
    assert "[query-partitions-missing]" in gone.stderr


def test_deleted_topic_is_reported_and_remaining_topics_are_followed(
    case: Case, spark: Spark
) -> None:
    other, query = f"{case.topic}-gone", case.query.with_name("both")
    case.broker.create_topic(other, 1)
    case.broker.produce(other, 0, ["x"])
    case.produce()
    both = (
        spark.stream(case.broker.bootstrap_servers, subscribe=f"{case.topic},{other}")
        .writeStream.format("noop")
        .option("checkpointLocation", str(query))
        .trigger(availableNow=True)
    )
    write_seed({(case.topic, 0): 0, (case.topic, 1): 0, (other, 0): 0}, query)
    both.start().awaitTermination(_SECONDS)
    case.query = query
    case.broker.delete_topic(other)
    for _ in range(2):
        done = case.follow()
        assert done.code == 0, done.stderr
        assert (
            f"the query has read {other}-0, but these brokers do not have these partitions"
            in done.stderr
        )
        assert case.held == {(case.topic, 0): 3, (case.topic, 1): 3}
    with case.following("--every", "50ms") as process:
        assert process.stderr is not None
        assert "[missing-partitions]" in process.stderr.readline()
        assert "is at the end of batch 0" in process.stderr.readline()


def test_emptied_location_is_reported_and_metrics_stay_unchanged(
    case: Case, spark: Spark, tmp_path: Path
) -> None:
    """Regression: A missing mount was reported as a query without a committed batch.

    The metrics file was also overwritten.
    """
    case.produce()
    with case.running(spark):
        _await(case.read_all)
    batch, metrics = case.batch, tmp_path / "metrics"
    with case.following("--every", "1s", "--metrics-file", str(metrics)) as process:
        assert process.stderr is not None
        assert f"is at the end of batch {batch}" in process.stderr.readline()
        (tmp_path / "empty").mkdir()
        _await(metrics.exists)  # then `migrate` waits
        case.query.rename(tmp_path / "away")
        (tmp_path / "empty").rename(case.query)
        warning = process.stderr.readline()
        assert (
            f"batch {batch} was committed, but spark:{case.query} now has no committed" in warning
        )
        written = metrics.read_text()
        assert "[look-failed]" in process.stderr.readline()
        assert metrics.read_text() == written
        case.query.rmdir()
        (tmp_path / "away").rename(case.query)
        _await(lambda: metrics.read_text() != written)


def test_follow_ends_on_ctrl_c_and_retries_unreachable_broker(case: Case, spark: Spark) -> None:
    case.produce()
    with case.running(spark):
        _await(case.read_all)
    with case.following("--every", "100ms") as process:
        assert process.stderr is not None
        assert "is at the end of batch" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(_SECONDS) == 130
        assert process.stderr.read() == ""
    assert case.held == case.after(case.batch or 0)
    away = ("follow", f"spark:{case.query}", "--group", case.group, "-b", "127.0.0.1:1")
    assert migrate(*away, "--once").code == 6
    with running(*away, "--every", "100ms") as process:
        assert process.stderr is not None
        assert "polling again in 0.1 s" in process.stderr.readline()
        assert process.poll() is None
