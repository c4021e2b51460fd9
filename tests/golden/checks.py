"""Check the state of each golden checkpoint, as reported by Flink's own classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

EARLIEST, LATEST, COMMITTED = -2, -1, -3
# Markers that only FlinkKafkaConsumer uses.
LEGACY_EARLIEST, LEGACY_LATEST, LEGACY_GROUP = -915623761775, -915623761774, -915623761773

Dump = dict[str, Any]
Check = Callable[[Dump], None]


class GoldenError(RuntimeError):
    """A checkpoint without the state that its scenario requires."""


def kafka_operators(dump: Dump) -> list[dict[str, Any]]:
    return [operator for operator in dump["operators"] if operator["reader_splits"] is not None]


def starts(dump: Dump) -> dict[tuple[str, int], int]:
    """Return the starting offset of each (topic, partition) in the readers' state.

    Each partition must have only one reader.
    """
    return {
        (split["topic"], split["partition"]): split["starting_offset"]
        for operator in kafka_operators(dump)
        for split in operator["reader_splits"]
    }


def require(condition: object, what: str) -> None:
    if not condition:
        raise GoldenError(what)


def midway(dump: Dump) -> None:
    found = starts(dump)
    require(found["orders", 0] == 12, "orders-0 is fully read")
    require(12 < found["orders", 1] < 80, "orders-1 is partly read")
    require(found["orders", 2] == EARLIEST, "orders-2 is still at its marker")
    require(10 < found["payments", 0] < 40, "payments-0, with log start 10, is partly read")


def with_type(name: str | None, action: str | None, output_format: str | None) -> Check:
    """Return a check of the snapshot type, which is in metadata of version 4 and later."""

    def check(dump: Dump) -> None:
        midway(dump)
        told = dump["checkpoint_type"]
        if dump["metadata_version"] >= 4:
            require(told["name"] == name, f"type {told['name']}")
            require(told.get("post_checkpoint_action") == action, "post-checkpoint action")
            require(told.get("format") == output_format, "savepoint format")

    return check


def empty_reader(dump: Dump) -> None:
    (source,) = kafka_operators(dump)
    readers = {split["subtask"] for split in source["reader_splits"]}
    require(len(readers) < source["parallelism"] == 3, "one reader has no split")
    require(10 < starts(dump)["payments", 0] < 40, "payments-0 is partly read")


def in_flight(dump: Dump) -> None:
    require(starts(dump)["orders", 1] == 80, "the source has read all of orders-1")
    require(sum(operator["in_flight_bytes"] for operator in dump["operators"]) > 0, "in-flight")


def waiting(dump: Dump) -> None:
    require(held_by(dump, "async", "waiting"), "records wait for their requests")
    buckets = held_by(dump, "file", "buckets")
    require(any(bucket["in_progress"] for bucket in buckets), f"an open file: {buckets}")


def drained(dump: Dump) -> None:
    require(not held_by(dump, "async", "waiting"), "no record waits for its request")
    buckets = held_by(dump, "file", "buckets")
    require(not any(bucket["in_progress"] for bucket in buckets), f"no open file: {buckets}")


def held_by(dump: Dump, kind: str, what: str) -> list[Any]:
    """Return the ``what`` lists in Flink's report on the operators of a kind, joined into one."""
    return [
        held for operator in dump["operators"] if kind in operator for held in operator[kind][what]
    ]


def numeric_starts(dump: Dump) -> None:
    found = starts(dump)
    require(20 < found["timed", 0] <= 40, f"timed-0 is read from 20 on: {found}")
    require(("timed", 1) in found, "timed-1 has no such timestamp")


def in_kafka(dump: Dump) -> None:
    (hybrid,) = [op["hybrid"] for op in dump["operators"] if "hybrid" in op]
    require(hybrid["enumerator"]["kafka"], "the enumerator is Kafka's")
    found = [split["kafka"]["starting_offset"] for split in hybrid["reader_splits"]]
    require(12 in found and EARLIEST in found, "orders-0 is fully read, orders-2 not at all")


def in_files(dump: Dump) -> None:
    (hybrid,) = [op["hybrid"] for op in dump["operators"] if "hybrid" in op]
    require(hybrid["enumerator"]["current_source_index"] == 0, "the first source")
    require(hybrid["reader_splits"], "a file is being read")


def transactions(dump: Dump) -> None:
    sinks = [operator["sink"] for operator in dump["operators"] if "sink" in operator]
    require(any(sink["writers"] for sink in sinks), "writers keep the prefix")
    require(any(sink["transactions"] for sink in sinks), "transactions to commit")


def one_each(dump: Dump) -> None:
    (source,) = kafka_operators(dump)
    readers = {split["subtask"] for split in source["reader_splits"]}
    require(len(source["reader_splits"]) == 3, "each partition once")
    require(len(readers) == source["parallelism"], "every subtask reads")
    keyed(dump)


def widest(dump: Dump) -> None:
    (source,) = kafka_operators(dump)
    require(source["max_parallelism"] == 32768, "max parallelism")


def table_source(dump: Dump) -> None:
    require(len(kafka_operators(dump)) == 1 and len(starts(dump)) > 1, "one source")


def many_splits(dump: Dump) -> None:
    require(len(starts(dump)) == 40, "40 splits")


def split_finished(dump: Dump) -> None:
    found = starts(dump)
    require(("payments", 0) not in found, "the finished split is gone from reader state")
    require(10 < found["payments", 1] < 80, "the other one is partly read")
    (source,) = kafka_operators(dump)
    listed = {(split["topic"], split["partition"]) for split in source["enumerator"]["splits"]}
    require(("payments", 0) in listed, "the enumerator still lists the finished split")


def subtask_finished(dump: Dump) -> None:
    split_finished(dump)
    (source,) = kafka_operators(dump)
    require(len(source["finished_subtasks"]) == 1, "one subtask is finished")


def source_finished(dump: Dump) -> None:
    require(any(operator["finished"] for operator in dump["operators"]), "a finished operator")
    require(("orders", 1) in starts(dump), "the other source goes on")


def two_sources(dump: Dump) -> None:
    positions = [
        {(split["topic"], split["partition"]): split["starting_offset"] for split in splits}
        for splits in (operator["reader_splits"] for operator in kafka_operators(dump))
    ]
    require(len(positions) == 2 and positions[0] != positions[1], "two sources that disagree")
    keyed(dump)


def keyed(dump: Dump) -> None:
    require(sum(operator["keyed_state_bytes"] for operator in dump["operators"]) > 0, "keyed state")


def two_clusters(dump: Dump) -> None:
    (source,) = [operator for operator in dump["operators"] if "dynamic" in operator]
    found = {
        (split["cluster"], split["topic"], split["partition"]): split["starting_offset"]
        for split in source["dynamic"]["reader_splits"]
    }
    require(found["east", "orders", 0] == 12, "orders-0 of east is fully read")
    require(12 < found["east", "orders", 1] < 80, "orders-1 of east is partly read")
    require(30 < found["west", "orders", 1] < 100, "orders-1 of west is partly read")
    require(found["east", "orders", 1] != found["west", "orders", 1], "two positions of orders-1")
    require(found["east", "orders", 2] == EARLIEST, "orders-2 of east is still at its marker")
    require(("west", "orders", 2) not in found, "west has no orders-2")


def no_kafka(dump: Dump) -> None:
    require(not kafka_operators(dump), "no KafkaSource")
    sources = [op for op in dump["operators"] if op["coordinator_state_bytes"] is not None]
    require(len(sources) >= 4, "four sources of other kinds")
    require(all("SourceReaderState" in op["state_names"] for op in sources), "readers with splits")


def markers(dump: Dump) -> None:
    found = {
        split["starting_offset"]
        for operator in kafka_operators(dump)
        for split in operator["reader_splits"]
        if split["topic"] == "idle"
    }
    require(COMMITTED in found, f"marker -3 among {sorted(found)}")
    # Later connectors (here, 3.4 and 5.0) resolve "latest" in the enumerator (FLINK-28303).
    if dump["metadata_version"] == 3:
        require(LATEST in found, f"marker -1 among {sorted(found)}")


def stored(dump: Dump) -> list[tuple[int, str, int, int]]:
    """Return (subtask, topic, partition, stored offset) tuples for all FlinkKafkaConsumers."""
    return [
        (entry["subtask"], entry["topic"], entry["partition"], entry["stored_offset"])
        for operator in dump["operators"]
        for entry in operator.get("legacy", ())
    ]


def stored_offsets(dump: Dump) -> dict[tuple[str, int], int]:
    """Return the stored offset of each (topic, partition), each listed by only one subtask."""
    return {(topic, partition): offset for _, topic, partition, offset in stored(dump)}


def legacy(dump: Dump) -> None:
    found = stored_offsets(dump)
    require(found["orders", 0] == 11, "orders-0 is fully read: the last offset, not the next")
    require(11 < found["orders", 1] < 79, "orders-1 is partly read")
    require(found["orders", 2] == -1, "orders-2 is empty: one before its first offset")
    require(9 < found["payments", 0] < 40, "payments-0 has its log start, 10, behind it")
    require({subtask for subtask, *_ in stored(dump)} == {0, 1}, "both subtasks hold some")
    keyed(dump)


def legacy_names(dump: Dump) -> None:
    lengths = {len(topic) for _, topic, _, _ in stored(dump)}
    require(lengths == {1, 249}, "the shortest and the longest name")


def legacy_starts(dump: Dump) -> None:
    found = sorted((topic, partition, offset) for _, topic, partition, offset in stored(dump))
    require(("timed", 1, 9) in found, "timed-1 has no such timestamp: its end")
    require(("idle", 0, 4) in found, "idle-0 from its end or its group")
    require(all(offset >= -1 for *_, offset in found), "no markers")


def legacy_markers(dump: Dump) -> None:
    found = {offset for *_, offset in stored(dump)}
    require({LEGACY_EARLIEST, LEGACY_LATEST, LEGACY_GROUP, 3, 39} <= found, f"{sorted(found)}")


def legacy_rescaled(dump: Dump) -> None:
    require(sorted(p for _, _, p, _ in stored(dump)) == [0, 1, 2], "each partition once")
    require(len({subtask for subtask, *_ in stored(dump)}) > 1, "more subtasks than before")


def legacy_stopped(dump: Dump) -> None:
    found = stored_offsets(dump)
    require(0 <= found["orders", 1] < 39, f"the job had processed 40 of orders-1: {found}")


def old(dump: Dump) -> None:
    if dump["metadata_version"] == 2:
        found = stored_offsets(dump)
        require(0 < found["orders", 1] < 79 and found["orders", 2] == -1, "FlinkKafkaConsumer")
    else:
        (source,) = kafka_operators(dump)
        require(source["enumerator"]["serializer_version"] == 0, "enumerator state 0")
        require(source["enumerator"]["coordinator_version"] == 0, "coordinator state 0")
        require(0 < starts(dump)["orders", 1] < 80, f"orders-1 is partly read: {starts(dump)}")


def beam(dump: Dump) -> None:
    (marks,) = [operator["beam"] for operator in dump["operators"] if "beam" in operator]
    found = {(mark["topic"], mark["partition"]): mark["next_offset"] for mark in marks}
    require(len(marks) == len(found) == 6, f"six partitions, each once: {found}")
    require(found["orders", 0] == 12, "orders-0 is fully read")
    require(12 < found["orders", 1] < 80, f"orders-1 is partly read: {found}")
    require(found["orders", 2] == 0, "orders-2 is empty")
    require(
        10 < found["payments", 0] < 40, f"payments-0, with log start 10, is partly read: {found}"
    )
    require({mark["subtask"] for mark in marks} == {0, 1}, "both subtasks hold some")


def beam_sdf(dump: Dump) -> None:
    require(not any("beam" in operator for operator in dump["operators"]), "no mark in it")
    keyed(dump)
