"""The records between two checkpoints, read by Spark's batch Kafka source.

The source reads from ``startingOffsets`` to ``endingOffsets`` and nothing after it. It skips
offsets without a record, such as those of control records, and fails if a record was deleted
(``failOnDataLoss``).

Source: KafkaBatch, KafkaOffsetReaderAdmin.fetchPartitionOffsets, KafkaDataConsumer.fetchRecord @
Spark 4.0.0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from migrate.inputs.offsets_json import starting_offsets
from migrate.model.errors import NoSuchName, UsageError
from migrate.model.positions import Marker
from migrate.model.topic_pattern import topic_pattern
from migrate.model.warning import WarningCode, WarningText, warning_text
from migrate.model.wording import counted
from migrate.spark.rehearsal.checkpoints import CheckpointPair, Range, Ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Parse = Callable[["DataFrame"], "DataFrame"]

_EARLIEST = -2  # of startingOffsets
_SUBSCRIPTIONS = ("assign", "subscribe", "subscribepattern")
# Options that the range replaces, and options of a stream alone, in lower case.
_REPLACED = {
    *_SUBSCRIPTIONS,
    "endingoffsets",
    "endingoffsetsbytimestamp",
    "endingtimestamp",
    "failondataloss",
    "maxoffsetspertrigger",
    "maxtriggerdelay",
    "minoffsetspertrigger",
    "startingoffsets",
    "startingoffsetsbytimestamp",
    "startingtimestamp",
}


@dataclass(frozen=True, slots=True)
class KafkaStream:
    """A stream's share of the records between two checkpoints.

    Attributes:
        options: the options of Spark's Kafka source, as the user gave them.
        ranges: the records in each partition.
    """

    options: Mapping[str, str]
    ranges: Ranges

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the records, as Spark's Kafka source gives them."""
        options = {
            name: value for name, value in self.options.items() if name.lower() not in _REPLACED
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
        return spark.read.format("kafka").options(**options).load()

    def gaps(self, spark: SparkSession, records: int) -> Iterator[WarningText]:
        """Yield a warning for each partition whose number of records is not that of its offsets.

        Args:
            spark: the session.
            records: the number of records that were read from all partitions.
        """
        lengths = [
            None if isinstance(range_.start, Marker) else range_.end - range_.start
            for range_ in self.ranges.values()
        ]
        if None not in lengths and sum(filter(None, lengths)) == records:
            return
        frame = self.read(spark).groupBy("topic", "partition")
        counts = {
            (row["topic"], row["partition"]): row
            for row in frame.agg(F.count("*").alias("n"), F.min("offset").alias("first")).collect()
        }
        for partition, range_ in sorted(self.ranges.items()):
            count = counts[partition]["n"] if partition in counts else 0
            start = range_.start
            name = f"{partition[0]}-{partition[1]}"
            if isinstance(start, Marker):
                start = counts[partition]["first"] if partition in counts else range_.end
                if start:
                    yield warning_text(
                        WarningCode.LOG_START,
                        f"{name}: Flink started it at the log start, which is {start} now; records "
                        "before it may have been deleted since",
                    )
            if count != range_.end - start:
                yield warning_text(
                    WarningCode.OFFSET_GAPS,
                    f"{name}: {count} records at {counted(range_.end - start, 'offset')} from "
                    f"{start} to {range_.end}: the others are control records of transactions, or "
                    "were removed by compaction; Flink may have read what was compacted since",
                )


@dataclass(frozen=True, slots=True)
class Records:
    """The records of all streams.

    Attributes:
        streams: the streams.
        events: the parsed records of each stream, which Spark reads when they are used.
        counters: what counts the records of each stream when they are read; None if Spark's
            optimizer would remove it.
    """

    spark: SparkSession
    streams: Sequence[KafkaStream]
    events: Sequence[DataFrame]
    counters: Sequence[Observation | None]

    def counts(self) -> list[int]:
        """Return the number of records of each stream, after its events were used."""
        return [
            stream.read(self.spark).count() if counter is None else counter.get["records"]
            for stream, counter in zip(self.streams, self.counters, strict=True)
        ]

    def gaps(self, counts: Sequence[int]) -> Iterator[WarningText]:
        """Yield the warnings of ``KafkaStream.gaps`` about all streams."""
        for stream, count in zip(self.streams, counts, strict=True):
            yield from stream.gaps(self.spark, count)


def read_records(
    spark: SparkSession, streams: Sequence[KafkaStream], parsers: Sequence[Parse]
) -> Records:
    """Return the records of all streams, parsed by the user's functions."""
    events: list[DataFrame] = []
    counters: list[Observation | None] = []
    for stream, parse in zip(streams, parsers, strict=True):
        counter = Observation()
        records = stream.read(spark).observe(counter, F.count(F.lit(1)).alias("records"))
        events.append(parse(records))
        # If the function drops all records by a constant condition, the optimizer removes the
        # observation, and its result would never come. Spark Connect does not show the plan.
        frame = getattr(events[-1], "_jdf", None)
        plan = None if frame is None else frame.queryExecution().optimizedPlan().toString()
        counters.append(counter if plan is None or "CollectMetrics" in plan else None)
    return Records(spark, streams, events, counters)


def streams_of(pair: CheckpointPair, kafka: Sequence[Mapping[str, str]]) -> list[KafkaStream]:
    """Return the records that each stream reads.

    Raises:
        UsageError: a stream has no subscription, or reads a topic that the job does not read.
    """
    return [_stream(pair, options) for options in kafka]


def unread_topics(pair: CheckpointPair, streams: Sequence[KafkaStream]) -> Iterator[WarningText]:
    """Yield a warning if the job has read records of topics that no stream reads."""
    unread = set(pair.ranges) - {partition for stream in streams for partition in stream.ranges}
    if unread:
        names = ", ".join(sorted({topic for topic, _ in unread}))
        yield warning_text(
            WarningCode.TOPIC_NOT_READ,
            f"the job has read {counted(len(unread), 'partition')} that no stream reads ({names}): "
            "if the state depends on these records, it will differ",
        )


def _stream(pair: CheckpointPair, options: Mapping[str, str]) -> KafkaStream:
    partitions = pair.starts.keys() | pair.ends.keys() | pair.ranges.keys()
    topics = {topic for topic, _ in partitions}
    given = {name.lower(): value for name, value in options.items()}
    subscriptions = [name for name in _SUBSCRIPTIONS if name in given]
    if len(subscriptions) != 1:
        raise UsageError("kafka: a stream needs one of subscribe, subscribePattern and assign")
    text = given[subscriptions[0]]
    if subscriptions == ["assign"]:
        wanted = {
            (topic, partition)
            for topic, numbers in json.loads(text).items()
            for partition in numbers
        }
        named = {topic for topic, _ in wanted}
        partitions = partitions & wanted
    else:
        named = (
            set(topic_pattern(text).matching(topics))
            if subscriptions == ["subscribepattern"]
            else {name.strip() for name in text.split(",")}
        )
        partitions = {partition for partition in partitions if partition[0] in named}
    for topic in sorted(named - topics):
        raise NoSuchName(f"kafka: the job does not read topic {topic}", topic, topics)
    if not partitions:
        raise UsageError(f"kafka: {text}: the job reads none of it")
    ranges = {p: range_ for p, range_ in pair.ranges.items() if p in partitions}
    if not ranges:  # the source needs a partition
        partition = min(partitions)
        end = pair.ends.get(partition, 0)
        ranges[partition] = Range(end, end)
    return KafkaStream(options, ranges)
