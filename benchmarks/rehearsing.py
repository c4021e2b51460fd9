"""Measure a rehearsal with ten million records and a million keys, and write its section."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import cast

from confluent_kafka import Producer

from benchmarks import words
from benchmarks.machine import OtherProcesses
from benchmarks.processes import BenchmarkError, output_of
from benchmarks.results import Rehearsal, Results
from benchmarks.state_files import Shape, create_missing, encoded_state
from benchmarks.words import paragraph, table
from tests.support.checkpoints import SourceState, source_operator, splits
from tests.support.encoder import keyed_values as of
from tests.support.kafka import Broker

TOPIC = "bench"
_KEYS = 1_000_000
_RECORDS = 10_000_000
_PARTITIONS = 2
# The targets for two cores without other processes.
_TARGET_SECONDS = 180
_TARGET_BYTES = 2_000_000_000


def _shape(name: str, checkpoint_id: int, count: int, next_offset: int) -> Shape:
    """Return a checkpoint whose keys have each counted ``count`` records."""
    source = source_operator(SourceState({0: splits(TOPIC, [next_offset] * _PARTITIONS)}))
    write = encoded_state(
        "canonical", "VALUE", of.LONG, _KEYS, lambda _: count, source, checkpoint_id
    )
    return Shape(name, "`ValueState<Long>`, canonical", write)


EARLIER = _shape("rehearsed-earlier", 7, 1, 0)
LATER = _shape("rehearsed-later", 8, 1 + _RECORDS // _KEYS, _RECORDS // _PARTITIONS)


def measure_rehearsal() -> Rehearsal:
    """Measure a rehearsal in a separate process, with a broker on the same machine.

    Raises:
        BenchmarkError: the rehearsal failed, or did not use all keys and records.
    """
    create_missing(EARLIER)
    create_missing(LATER)
    with Broker() as broker:
        broker.create_topic(TOPIC, _PARTITIONS)
        _produce(broker.bootstrap_servers)
        others = OtherProcesses()
        script = [sys.executable, "-m", "benchmarks.rehearse_state", broker.bootstrap_servers]
        output = output_of([*script, str(EARLIER.directory), str(LATER.directory)])
    rehearsal = cast(Rehearsal, {**json.loads(output), "others_cores": others.cores()})
    if (rehearsal["keys"], rehearsal["records"]) != (_KEYS, _RECORDS):
        raise BenchmarkError(f"rehearse: {rehearsal}")
    return rehearsal


def _produce(servers: str) -> None:
    settings = {"linger.ms": 50, "batch.num.messages": 50_000, "acks": 1}
    producer = Producer({"bootstrap.servers": servers, **settings})
    for number in range(_RECORDS):
        value = f"customer-{number % _KEYS:07},1"
        while True:
            try:
                producer.produce(TOPIC, value=value, partition=number % _PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(120):
        raise BenchmarkError("records were not delivered")


def rehearsal_section(results: Results) -> Iterator[str]:
    """Yield the lines of the section."""
    rehearsal = results["rehearsed"]
    yield from ("## Rehearsal of a query", "")
    yield from paragraph(
        "`rehearse` starts with the state of a checkpoint in which each key has counted one "
        "record. It reads the records up to a later checkpoint from a broker on the same machine. "
        "It uses RocksDB and two cores, with a heap of at most 1 GB. The time excludes the start "
        f"of Spark. The results were measured on {words.measured(results, 'rehearsed')}. Other "
        "processes, including the broker, used "
        f"{words.digits(rehearsal['others_cores'])} cores. The memory figures exclude the "
        "workers that read the state."
    )
    yield ""
    peaks = (words.size(rehearsal["peak_bytes"]), words.size(rehearsal["python_peak_bytes"]))
    yield from table(
        ("Keys", "Records", "Time", "Peak memory of the JVM", "Peak memory of the driver's Python"),
        (
            (
                f"{rehearsal['keys']:,}",
                f"{rehearsal['records']:,}",
                words.seconds(rehearsal["seconds"]),
                *peaks,
            ),
        ),
    )
    yield ""
    memory = rehearsal["peak_bytes"] + rehearsal["python_peak_bytes"]
    is_reached = rehearsal["seconds"] <= _TARGET_SECONDS and memory <= _TARGET_BYTES
    reached = "reached" if is_reached else "missed"
    yield from paragraph(
        f"The target is {words.seconds(_TARGET_SECONDS)} and {words.size(_TARGET_BYTES)} on two "
        f"idle cores. This run {reached} the target."
    )
