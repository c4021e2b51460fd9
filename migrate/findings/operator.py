"""About an operator: what it holds that does not move, and sources that are not read."""

from __future__ import annotations

from collections.abc import Iterator

from decoder.kafka.legacy import LEGACY_CONSUMER_STATE
from decoder.kafka.operator import Sink
from decoder.kafka.reader_state import SOURCE_READER_STATE
from decoder.kafka.sink import WRITER_STATE, SinkState, UnknownSink
from decoder.kafka.source import UnknownSource
from decoder.metadata.model import Operator
from migrate.findings.model import Finding, Severity
from migrate.sources import KafkaState
from migrate.wording import counted

# List state of FlinkKafkaProducer, the sink before KafkaSink: @ connector 1.15.4.
_LEGACY_PRODUCER_STATES = frozenset({"next-transactional-id-hint", "next-transactional-id-hint-v2"})
# List state of StreamingFileSink and of SQL's filesystem connector: StreamingFileSinkHelper @ Flink
# 1.20.3.
_FILE_SINK_STATE = "bucket-states"
# FileWriterBucket.prepareCommit @ Flink 1.20.3 closes a file where its rolling policy says so, or
# at the end of input, which a stop with a savepoint is not unless it drains the job.
_GOES_ON_WRITING = (
    "a file that it goes on writing over checkpoints (row formats do, by default) stays hidden "
    "(.inprogress), even at a stop with a savepoint: records before these positions are in it, and "
    "Flink alone, restored from here, would finish it"
)


def about_an_operator(
    operator: Operator, state: KafkaState | UnknownSource | None, sink: Sink | None, stopped: bool
) -> Iterator[Finding]:
    """``stopped``: whether the checkpoint is the job's last output."""
    if operator.in_flight_bytes:
        yield Finding(
            "in-flight-records",
            Severity.BLOCKER,
            operator.operator_id,
            f"{operator.in_flight_bytes} bytes of records lie in its channels, past the source "
            "and not yet processed (an unaligned checkpoint): moving from here loses them; take "
            "an aligned checkpoint, or stop the job with a savepoint",
        )
    if isinstance(state, UnknownSource):
        yield _about_an_unknown_source(operator, state)
    if sink is not None or not _LEGACY_PRODUCER_STATES.isdisjoint(operator.state_names):
        yield _about_a_sink(operator, sink, stopped)
        return
    if _FILE_SINK_STATE in operator.state_names:
        yield Finding(
            "files-in-progress",
            Severity.WARNING,
            operator.operator_id,
            f"a file sink: {_GOES_ON_WRITING}",
        )
        return
    held = [
        f"{size} bytes of {what}"
        for size, what in (
            (operator.keyed_state_bytes, "keyed state"),
            (operator.operator_state_bytes, "operator state"),
        )
        if size
    ]
    if held and state is None and SOURCE_READER_STATE not in operator.state_names:
        yield Finding(
            "state-not-moved",
            Severity.NOTE,
            operator.operator_id,
            f"it holds {' and '.join(held)}: records consumed but not yet emitted may be among "
            "them (windows, joins, buffers), and state does not move",
        )


def _about_an_unknown_source(operator: Operator, state: UnknownSource) -> Finding:
    if state.partly_kafka:
        return Finding(
            "damaged-source",
            Severity.BLOCKER,
            operator.operator_id,
            "some of its state is a Kafka source's and some of it does not decode: a damaged "
            f"Kafka source, or a kind not known here ({state.reason})",
        )
    if LEGACY_CONSUMER_STATE in operator.state_names:
        return Finding(
            "legacy-consumer",
            Severity.BLOCKER,
            operator.operator_id,
            "its state is named as that of a FlinkKafkaConsumer, the source before KafkaSource, "
            f"and holds no position that can be read ({state.reason})",
        )
    return Finding(
        "another-source-kind",
        Severity.WARNING,
        operator.operator_id,
        f"its source state is not a KafkaSource's; it is not moved ({state.reason})",
    )


def _about_a_sink(operator: Operator, sink: Sink | None, stopped: bool) -> Finding:
    """A stop-with-savepoint commits what is pending before the job ends."""
    if isinstance(sink, SinkState) and not sink.pending:
        return Finding("sink-state", Severity.NOTE, operator.operator_id, _nothing_pending(sink))
    match sink:
        case SinkState():
            prefixes = ", ".join(repr(p) for p in sorted({t.prefix for t in sink.pending}))
            kept = (
                f"a KafkaSink keeps {counted(len(sink.pending), 'transaction')} yet to be "
                f"committed (transactional id prefix {prefixes})"
            )
        case UnknownSink():
            kept = (
                "a sink keeps what it has yet to commit in this state, which is not read here "
                f"({sink.reason})"
            )
        case None:
            kept = (
                "a FlinkKafkaProducer, the sink before KafkaSink, keeps the transactions that it "
                "has yet to commit in this state, which is not read here"
            )
    return Finding(
        "pending-transactions",
        Severity.NOTE if stopped else Severity.WARNING,
        operator.operator_id,
        f"{kept}: "
        + (
            "the job committed it when it stopped with this savepoint"
            if stopped
            else "unless the job commits it or is restored from here, that output is lost"
        )
        + (f"; of a file sink, {_GOES_ON_WRITING}" if _may_be_files(operator, sink) else ""),
    )


def _may_be_files(operator: Operator, sink: Sink | None) -> bool:
    """Whether it is a writer, of a sink that is not known: a FileSink's is among them."""
    return isinstance(sink, UnknownSink) and WRITER_STATE in operator.state_names


def _nothing_pending(sink: SinkState) -> str:
    if not sink.writers:
        return "it is a sink's committer, and no transaction is waiting to be committed"
    prefixes = ", ".join(repr(prefix) for prefix in sorted({w.prefix for w in sink.writers}))
    under_way = sum(len(writer.under_way) for writer in sink.writers)
    return f"it is a KafkaSink's writer (transactional id prefix {prefixes})" + (
        f", with {counted(under_way, 'transaction')} under way" if under_way else ""
    )
