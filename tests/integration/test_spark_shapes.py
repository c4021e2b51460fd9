"""Seed queries of every shape, and check the exact start of each Kafka source.

`to-spark` moves the checkpoint of one job with three sources: orders, payments, and both. A real
query of each shape then reads all records in Kafka. Every output row lists the records behind it,
and the logs contain records on both sides of each position. The last tests prove that a start that
is off by one record changes the output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from migrate.targets.location import location
from migrate.targets.seed import write_seed as write_seed_of_sources
from migrate.targets.source_options import SourceStart
from tests.support.checkpoints import SourceState, source_operator, splits, write_checkpoint
from tests.support.command import migrate
from tests.support.kafka import Broker
from tests.support.seeds import write_seed
from tests.support.spark import Spark, run_to_end

pytestmark = pytest.mark.integration

ORDERS, PAYMENTS = "shapes-orders", "shapes-payments"
# (topic, partition) -> (log start offset, log end offset)
LOGS = {
    (ORDERS, 0): (0, 60),
    (ORDERS, 1): (0, 60),
    (ORDERS, 2): (20, 60),
    (PAYMENTS, 0): (0, 60),
    (PAYMENTS, 1): (0, 60),
}
# The positions of the sources ``orders`` and ``payments``.
POSITIONS = {
    (ORDERS, 0): 17,
    (ORDERS, 1): 8,
    (ORDERS, 2): 41,
    (PAYMENTS, 0): 5,
    (PAYMENTS, 1): 30,
}
# The positions of the source ``both``, which reads the same topics.
OTHER_POSITIONS = {place: next_offset + 7 for place, next_offset in POSITIONS.items()}

Place = tuple[str, int]
Starts = dict[Place, int]
Record = tuple[str, int, int]


@pytest.fixture(scope="module")
def servers(broker: Broker) -> str:
    for topic in (ORDERS, PAYMENTS):
        broker.create_topic(topic, len([place for place in LOGS if place[0] == topic]))
    for (topic, partition), (log_start, log_end) in LOGS.items():
        broker.produce(topic, partition, [f"record {number}" for number in range(log_end)])
        broker.delete_records(topic, partition, before=log_start)
    return broker.bootstrap_servers


@pytest.fixture(scope="module")
def chk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job with the sources ``orders``, ``payments``, and ``both``.

    The positions of ``both`` differ.
    """

    def state(number: int, uid: str, *topics: str, at: Starts) -> SourceState:
        held = [
            split
            for topic in topics
            for split in splits(topic, [start for place, start in at.items() if place[0] == topic])
        ]
        return SourceState({0: held}, operator_id=bytes([number] * 16), uid=uid)

    return write_checkpoint(
        tmp_path_factory.mktemp("job") / "chk-7",
        source_operator(state(1, "orders", ORDERS, at=POSITIONS)),
        source_operator(state(2, "payments", PAYMENTS, at=POSITIONS)),
        source_operator(state(3, "both", ORDERS, PAYMENTS, at=OTHER_POSITIONS)),
        version=6,
    )


@dataclass(frozen=True)
class World:
    """The parts of a query."""

    spark: Spark
    servers: str
    folder: Path

    @property
    def session(self) -> SparkSession:
        return self.spark.session

    def stream(self, **options: str) -> DataFrame:
        records = self.spark.stream(self.servers, **options)
        return records.select("topic", "partition", "offset", "timestamp")

    def orders(self) -> DataFrame:
        return self.stream(subscribe=ORDERS)

    def payments(self) -> DataFrame:
        return self.stream(subscribe=PAYMENTS)

    def both(self) -> DataFrame:
        return self.stream(subscribe=f"{ORDERS},{PAYMENTS}", maxOffsetsPerTrigger="110")


def records_from(starts: Starts) -> set[Record]:
    return {
        (topic, partition, offset)
        for (topic, partition), start in starts.items()
        for offset in range(start, LOGS[topic, partition][1])
    }


def of(topic: str, starts: Starts = POSITIONS) -> Starts:
    return {place: start for place, start in starts.items() if place[0] == topic}


def rows_from(starts: Starts) -> list[tuple[object, ...]]:
    return sorted(records_from(starts))


def counts_from(starts: Starts) -> list[tuple[object, ...]]:
    """Return the number of records, the first offset, and the last offset of each partition."""
    return sorted(
        (*place, LOGS[place][1] - start, start, LOGS[place][1] - 1)
        for place, start in starts.items()
    )


def pairs_from(left: Starts, right: Starts) -> list[tuple[object, ...]]:
    """Return all pairs of records that a join outputs."""
    return sorted(
        (*one, *other)
        for one in records_from(left)
        for other in records_from(right)
        if one[2] % 20 == other[2] % 20
    )


# -- transformations -----------------------------------------------------------------------------


def renamed(frame: DataFrame, suffix: str) -> DataFrame:
    return frame.select(*[F.col(name).alias(f"{name}_{suffix}") for name in frame.columns])


def join(left: DataFrame, right: DataFrame) -> DataFrame:
    left, right = renamed(left, "a"), renamed(right, "b")
    joined = left.join(right, F.expr("offset_a % 20 = offset_b % 20"))
    return joined.select(*(f"{n}_{s}" for s in "ab" for n in ("topic", "partition", "offset")))


IDENTITY = ("topic", "partition", "offset")
COUNTS = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("count", LongType()),
        StructField("first", LongType()),
        StructField("last", LongType()),
    ]
)


def aggregated(frame: DataFrame) -> DataFrame:
    """Compute the number of records, the first offset, and the last offset of each partition."""
    return (
        frame.withWatermark("timestamp", "1 hour")
        .groupBy("topic", "partition")
        .agg(
            F.count("*").alias("count"),
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
        )
    )


def deduplicated(frame: DataFrame) -> DataFrame:
    return frame.withWatermark("timestamp", "1 hour").dropDuplicates([*IDENTITY, "timestamp"])


def passed_with_state(frame: DataFrame) -> DataFrame:
    """Output each record if the state has not seen the record. Each record is its own group.

    With larger groups, PySpark 4.0.0 fails with pyarrow 26.
    """

    def pass_on(
        key: tuple[str, int, int], _: Iterable[object], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        if not state.exists:
            yield pd.DataFrame([key], columns=list(IDENTITY))
        state.update((1,))

    return frame.groupBy(*IDENTITY).applyInPandasWithState(
        pass_on,
        "topic STRING, partition INT, offset LONG",
        "seen INT",
        "append",
        GroupStateTimeout.NoTimeout,
    )


class Counter(StatefulProcessor):
    """Counts the records of each partition, and stores the first and the last offset."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("counts", StructType(COUNTS.fields[2:]))

    def handleInputRows(
        self, key: tuple[str, int], rows: Iterator[pd.DataFrame], timerValues: object
    ) -> Iterator[pd.DataFrame]:
        total, first, last = self._state.get() or (0, 1 << 62, -1)
        for group in rows:
            total += len(group)
            first, last = min(first, group["offset"].min()), max(last, group["offset"].max())
        self._state.update((total, int(first), int(last)))
        yield pd.DataFrame([(*key, total, first, last)], columns=COUNTS.names)

    def close(self) -> None:
        pass


def counted_by_processor(frame: DataFrame) -> DataFrame:
    return frame.groupBy("topic", "partition").transformWithStateInPandas(
        Counter(), COUNTS, "Update", "None"
    )


# -- outputs -------------------------------------------------------------------------------------


def collected(
    frame: DataFrame, checkpoint_dir: Path, *, mode: str = "append", available_now: bool = True
) -> list[tuple[object, ...]]:
    """Run a query with a foreachBatch sink, and return the rows of all batches."""
    rows: list[tuple[object, ...]] = []

    def keep(batch: DataFrame, _: int) -> None:
        rows.extend(tuple(row) for row in batch.collect())

    writer = frame.writeStream.foreachBatch(keep).outputMode(mode)
    writer = writer.option("checkpointLocation", str(checkpoint_dir))
    if available_now:
        run_to_end(writer.trigger(availableNow=True).start())
        return sorted(rows)
    query = writer.trigger(processingTime="100 milliseconds").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return sorted(rows)


def last_of_each(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return the last update of each partition, because the counts only grow."""
    latest: dict[tuple[object, ...], tuple[object, ...]] = {}
    for row in sorted(rows):
        latest[row[:2]] = row
    return sorted(latest.values())


def seed(
    chk: Path, world: World, *spark_sources: str, source: str | None = None, options: str = ""
) -> Path:
    """Move the job, or one of its sources, to a query with these Kafka sources."""
    checkpoint_dir = world.folder / "checkpoint"
    result = migrate(
        "to-spark",
        chk,
        "-b",
        world.servers,
        "--checkpoint-dir",
        checkpoint_dir,
        *(argument for one in spark_sources for argument in ("--spark-source", one)),
        *(() if source is None else ("--source", source)),
        *options.split(),
    )
    assert result.code == 0, result.stderr
    return checkpoint_dir


@pytest.fixture
def world(spark: Spark, servers: str, tmp_path: Path) -> World:
    return World(spark, servers, tmp_path)


# -- one source ----------------------------------------------------------------------------------

STATE_STORES = "org.apache.spark.sql.execution.streaming.state"
BOTH_TOPICS = ("0=orders", "0=payments")  # two Flink sources are merged into one Spark source


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"subscribe": f"{ORDERS},{PAYMENTS}", "minPartitions": "7"}, id="subscribe"),
        pytest.param({"subscribePattern": "shapes-(orders|payments)"}, id="subscribePattern"),
        pytest.param(
            {"assign": json.dumps({ORDERS: [0, 1, 2], PAYMENTS: [0, 1]})},
            id="assign",
        ),
    ],
)
def test_two_flink_sources_are_merged_into_single_spark_source(
    world: World, chk: Path, options: dict[str, str]
) -> None:
    checkpoint_dir = seed(chk, world, *BOTH_TOPICS)
    rows = collected(world.stream(**options).select(*IDENTITY), checkpoint_dir)
    assert rows == rows_from(POSITIONS)


def test_aggregation_counts_records_from_position_in_seed(world: World, chk: Path) -> None:
    checkpoint_dir = seed(chk, world, *BOTH_TOPICS)
    rows = collected(aggregated(world.both()), checkpoint_dir, mode="update")
    assert last_of_each(rows) == counts_from(POSITIONS)


def test_transform_with_state_counts_records_from_position_in_seed(world: World, chk: Path) -> None:
    """The query uses ``transformWithStateInPandas``."""
    checkpoint_dir = seed(chk, world, *BOTH_TOPICS)
    provider = "spark.sql.streaming.stateStore.providerClass"
    world.session.conf.set(provider, f"{STATE_STORES}.RocksDBStateStoreProvider")
    try:
        rows = collected(counted_by_processor(world.both()), checkpoint_dir, mode="update")
    finally:
        world.session.conf.unset(provider)
    assert last_of_each(rows) == counts_from(POSITIONS)


def test_apply_in_pandas_with_state_processes_each_record_once(world: World, chk: Path) -> None:
    """The query uses ``applyInPandasWithState``."""
    checkpoint_dir = seed(chk, world, *BOTH_TOPICS)
    assert collected(passed_with_state(world.both()), checkpoint_dir) == rows_from(POSITIONS)


def test_deduplication_by_processing_time_emits_each_record_once(world: World, chk: Path) -> None:
    checkpoint_dir = seed(chk, world, *BOTH_TOPICS)
    frame = deduplicated(world.both()).select(*IDENTITY)
    assert collected(frame, checkpoint_dir, available_now=False) == rows_from(POSITIONS)


# -- several sources -----------------------------------------------------------------------------


def test_streams_in_union_are_numbered_from_left_to_right(world: World, chk: Path) -> None:
    checkpoint_dir = seed(chk, world, "0=orders", "1=payments", "2=both", options="--one-cluster")
    frame = world.orders().union(world.payments()).union(world.both()).select(*IDENTITY)
    assert collected(frame, checkpoint_dir) == sorted(
        [*rows_from(POSITIONS), *rows_from(OTHER_POSITIONS)]
    )


def test_single_flink_source_is_split_over_both_sides_of_join(world: World, chk: Path) -> None:
    topics = (PAYMENTS, ORDERS)  # not in alphabetical order
    names = [f"{number}=topic:{topic}" for number, topic in enumerate(topics)]
    checkpoint_dir = seed(chk, world, *names, source="both")
    rows = collected(join(world.payments(), world.orders()), checkpoint_dir)
    assert rows == pairs_from(*(of(topic, OTHER_POSITIONS) for topic in topics))


def test_dataframe_in_union_with_itself_is_read_as_one_stream(world: World, chk: Path) -> None:
    checkpoint_dir = seed(chk, world, "0=orders")
    frame = world.orders()
    rows = collected(frame.union(frame).select(*IDENTITY), checkpoint_dir)
    assert rows == sorted(rows_from(of(ORDERS)) * 2)


@pytest.mark.parametrize(
    ("joined", "streams"),
    [
        pytest.param(lambda frame: join(frame, frame), 1, id="under new names"),
        pytest.param(
            lambda frame: (
                frame.alias("a")
                .join(frame.alias("b"), F.expr("a.offset % 20 = b.offset % 20"))
                .select(*(f"{side}.{name}" for side in "ab" for name in IDENTITY))
            ),
            2,
            id="under aliases",
        ),
    ],
)
def test_number_of_streams_in_self_join_depends_on_aliases(
    world: World, joined: Callable[[DataFrame], DataFrame], streams: int
) -> None:
    """With renamed columns, both sides share one stream.

    With aliases, each side is its own stream.
    """
    # The two sources have different positions, to show which position each side uses.
    sides = [of(ORDERS), of(ORDERS, OTHER_POSITIONS)]
    checkpoint_dir = world.folder / "checkpoint"
    write_seed_of_sources(
        [SourceStart(number, side) for number, side in enumerate(sides)],
        location(str(checkpoint_dir)),
    )
    rows = collected(joined(world.orders()), checkpoint_dir)
    assert rows == pairs_from(sides[0], sides[streams - 1])


@pytest.mark.parametrize("kind", ["rate", "files"])
def test_stream_of_non_kafka_source_also_has_source_number(
    world: World, chk: Path, kind: str
) -> None:
    """The Kafka source has the number 1, because a stream of a different kind has the number 0."""
    checkpoint_dir = seed(chk, world, "1=orders")
    if kind == "rate":
        other = world.session.readStream.format("rate-micro-batch").option("rowsPerBatch", "3")
        beside = other.load().withColumnRenamed("value", "number")
    else:
        texts = world.folder / "texts"
        texts.mkdir()
        (texts / "one.txt").write_text("1\n2\n3\n")
        beside = world.session.readStream.format("text").load(str(texts))
    empty = beside.filter("1 = 0")
    columns = [F.lit("").alias("topic"), F.lit(0).alias("partition"), F.lit(0).alias("offset")]
    frame = empty.select(*columns).union(world.orders().select(*IDENTITY))
    assert collected(frame, checkpoint_dir) == rows_from(of(ORDERS))


def test_query_with_wrong_source_number_starts_at_log_end_and_verify_fails(
    world: World, chk: Path
) -> None:
    checkpoint_dir = seed(chk, world, "1=orders")
    assert collected(world.orders().select(*IDENTITY), checkpoint_dir) == []
    result = migrate("verify", chk, "--source", "orders", f"spark:{checkpoint_dir}")
    assert (result.code, result.stdout) == (4, "")
    assert f"two sources of the query at {checkpoint_dir} read {ORDERS}-0 and" in result.stderr
    assert "[streams-at-different-positions]" in result.stderr


# -- detection of shifted starts -----------------------------------------------------------------


@pytest.mark.parametrize("place", sorted(POSITIONS), ids=str)
@pytest.mark.parametrize("by", [-1, 1])
def test_expected_results_change_if_any_start_offset_is_shifted(place: Place, by: int) -> None:
    wrong = {**POSITIONS, place: POSITIONS[place] + by}
    assert rows_from(wrong) != rows_from(POSITIONS)
    assert counts_from(wrong) != counts_from(POSITIONS)
    assert pairs_from(of(ORDERS, wrong), of(PAYMENTS, wrong)) != pairs_from(
        of(ORDERS), of(PAYMENTS)
    )


def test_query_output_reveals_shifted_seed(world: World) -> None:
    wrong = {**POSITIONS, (ORDERS, 1): 7, (PAYMENTS, 1): 31}
    checkpoint_dir = world.folder / "checkpoint"
    write_seed(wrong, checkpoint_dir)
    rows = collected(aggregated(world.both()), checkpoint_dir, mode="update")
    assert last_of_each(rows) == counts_from(wrong) != counts_from(POSITIONS)
