"""Read the records between two checkpoints with Spark's batch Kafka source.

The source reads from ``startingOffsets`` up to ``endingOffsets`` (exclusive). It skips the offsets
of control records and of records that log compaction has removed. With ``failOnDataLoss``, the
source fails if it must read an offset below the log start offset.

Source: KafkaBatch, KafkaOffsetReaderAdmin.fetchPartitionOffsets, KafkaDataConsumer.fetchRecord @
Spark 4.0.0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from migrate.extensions.stateful_query.catalog import LOG_START, OFFSET_GAPS, TOPIC_NOT_READ
from migrate.extensions.stateful_query.rehearsal.checkpoints import CheckpointPair, Range, Ranges
from migrate.inputs.offsets_json import starting_offsets
from migrate.model.errors import NoSuchName, UsageError
from migrate.model.positions import Marker, TopicPartition
from migrate.model.topic_pattern import topic_pattern
from migrate.model.warning import WarningText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Parse = Callable[["DataFrame"], "DataFrame"]

_EARLIEST = -2  # in startingOffsets
_SUBSCRIPTIONS = ("assign", "subscribe", "subscribepattern")
# ``_read`` removes the user's options that start with one of these prefixes. It sets some of these
# options itself, and the others are only for streaming reads.
_REPLACED = (
    *(*_SUBSCRIPTIONS, "ending", "failondataloss", "starting"),
    *("maxoffsetspertrigger", "maxtriggerdelay", "minoffsetspertrigger"),
)


@dataclass(slots=True)
class KafkaStream:
    """A stream of the query, with the stream's records between two checkpoints.

    Attributes:
        options: the options of Spark's Kafka source, as the user passed them.
        ranges: the records in each partition.
        events: the parsed records; set by ``parse``.
    """

    options: Mapping[str, str]
    ranges: Ranges
    events: DataFrame = field(init=False)
    _spark: SparkSession = field(init=False)
    # Counts the records when Spark reads the events; None if Spark's optimizer removes the count.
    _counter: Observation | None = field(init=False)

    def parse(self, spark: SparkSession, parse: Parse) -> None:
        """Set ``events`` to the records, parsed by the user's function."""
        self._spark = spark
        counter = Observation()
        self.events = parse(self._read().observe(counter, F.count(F.lit(1)).alias("records")))
        # If the function drops all records because of a constant condition, the optimizer removes
        # the observation (CollectMetrics) from the plan. ``count`` would then wait forever, so the
        # observation is not used. Spark Connect does not show the plan, so this check is not
        # possible there, and the observation is always used.
        frame = getattr(self.events, "_jdf", None)
        plan = None if frame is None else frame.queryExecution().optimizedPlan().toString()
        self._counter = counter if plan is None or "CollectMetrics" in plan else None

    def _read(self) -> DataFrame:
        """Return the records from Spark's Kafka source."""
        options = {
            name: value
            for name, value in self.options.items()
            if not name.lower().startswith(_REPLACED)
        }
        partitions: dict[str, list[int]] = {}
        for topic, partition in self.ranges:
            partitions.setdefault(topic, []).append(partition)
        first = {
            partition: _EARLIEST if isinstance(range_.start, Marker) else range_.start
            for partition, range_ in self.ranges.items()
        }
        last = {partition: range_.end for partition, range_ in self.ranges.items()}
        options |= {
            "assign": json.dumps(partitions),
            "startingOffsets": starting_offsets(first),
            "endingOffsets": starting_offsets(last),
            "failOnDataLoss": "true",
        }
        return self._spark.read.format("kafka").options(**options).load()

    def count(self) -> tuple[int, list[WarningText]]:
        """Return the number of records, and warnings about gaps.

        Call this method only after Spark has read ``events``. The warnings are about offsets
        without a record, and about partitions that were read from the log start offset.
        """
        starts = [range_.start for range_ in self.ranges.values() if isinstance(range_.start, int)]
        if self._counter is not None and len(starts) == len(self.ranges):
            # Use the observed number only if it shows that every offset has a record. A lower
            # number may be wrong: if the user's function has run a Spark action, such as ``first``,
            # the observation counts only the records of this action.
            observed: int = self._counter.get["records"]
            if observed == sum(range_.end for range_ in self.ranges.values()) - sum(starts):
                return observed, []
        frame = self._read().groupBy("topic", "partition")
        rows = frame.agg(F.count("*").alias("n"), F.min("offset").alias("first")).collect()
        counts = {(row["topic"], row["partition"]): (row["n"], row["first"]) for row in rows}
        return sum(count for count, _ in counts.values()), list(self._gap_warnings(counts))

    def _gap_warnings(
        self, counts: Mapping[TopicPartition, tuple[int, int]]
    ) -> Iterator[WarningText]:
        """Yield the warnings of ``count``.

        ``counts`` contains the number of records in each partition, and the offset of the first
        record.
        """
        for partition, range_ in sorted(self.ranges.items()):
            count, first = counts.get(partition, (0, range_.end))
            start = range_.start
            name = f"{partition[0]}-{partition[1]}"
            if isinstance(start, Marker):
                start = first
                if start:
                    yield WarningText(LOG_START(partition=name, start=start))
            if count != range_.end - start:
                yield WarningText(
                    OFFSET_GAPS(
                        partition=name,
                        offsets=range_.end - start,
                        start=start,
                        end=range_.end,
                        records=count,
                    )
                )


def unread_topics(pair: CheckpointPair, streams: Sequence[KafkaStream]) -> Iterator[WarningText]:
    """Yield a warning if the job has read partitions that none of the query's streams reads."""
    unread = set(pair.ranges) - {partition for stream in streams for partition in stream.ranges}
    if unread:
        topics = sorted({topic for topic, _ in unread})
        yield WarningText(TOPIC_NOT_READ(count=len(unread), topics=topics))


def stream_of(pair: CheckpointPair, options: Mapping[str, str]) -> KafkaStream:
    """Return the stream for the subscription in the options of a Kafka source.

    Raises:
        UsageError: the options do not contain exactly one subscription, or the job does not read
            the subscribed topics.
    """
    partitions = pair.starts.keys() | pair.ends.keys() | pair.ranges.keys()
    topics = {topic for topic, _ in partitions}
    given = {name.lower(): value for name, value in options.items()}
    subscriptions = [name for name in _SUBSCRIPTIONS if name in given]
    if len(subscriptions) != 1:
        raise UsageError(
            "the options of a stream in `kafka` contain no subscription or several subscriptions; "
            "pass exactly one of subscribe, subscribePattern, and assign"
        )
    text = given[subscriptions[0]]
    if subscriptions == ["assign"]:
        assigned = json.loads(text).items()
        partitions &= {(topic, number) for topic, numbers in assigned for number in numbers}
        named = {topic for topic, numbers in assigned if numbers}
    elif subscriptions == ["subscribepattern"]:
        named = set(topic_pattern(text).matching(topics))
    else:
        named = {name.strip() for name in text.split(",")}
    partitions = {partition for partition in partitions if partition[0] in named}
    for topic in sorted(named - topics):
        raise NoSuchName(
            f"kafka contains topic {topic}, but the job does not read it", topic, topics
        )
    if not partitions:
        raise UsageError(
            f"the job reads none of the partitions in `kafka` ({text}); pass the topics that the "
            f"job "
            "reads"
        )
    ranges = {p: range_ for p, range_ in pair.ranges.items() if p in partitions}
    if not ranges:  # Spark's source needs at least one partition
        partition = min(partitions)
        end = pair.ends.get(partition, 0)
        ranges[partition] = Range(end, end)
    return KafkaStream(options, ranges)
