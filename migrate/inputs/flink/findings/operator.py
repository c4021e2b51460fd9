"""Findings about operator state that is not migrated, and about sources that are not read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from decoder import Operator, SinkState, UnknownSource
from decoder.kafka.beam import BEAM_BUNDLE
from decoder.kafka.legacy import LEGACY_CONSUMER_STATE
from decoder.kafka.operator import Sink
from decoder.kafka.reader_state import SOURCE_READER_STATE
from decoder.kafka.sink import WRITER_STATE, FileSinkState, UnknownSink
from migrate.inputs.flink.source import KafkaState
from migrate.model.finding import Finding
from migrate.model.finding_catalog import (
    ANOTHER_SOURCE_KIND,
    ASYNC_RECORDS,
    BEAM_BUNDLE_RECORDS,
    BEAM_FUNCTION,
    BEAM_PUSHED_BACK_RECORDS,
    BEAM_STABLE_INPUT_RECORDS,
    DAMAGED_SOURCE,
    FILE_MAY_BE_IN_PROGRESS,
    FILES_IN_PROGRESS,
    IDLE_COMMITTER,
    IDLE_FILE_SINK,
    IDLE_KAFKA_SINK,
    KAFKA_SINK_WITH_OPEN_TRANSACTIONS,
    LEGACY_CONSUMER,
    PENDING_FILES,
    PENDING_FILES_AFTER_STOP,
    PENDING_FILES_RESTORED,
    PENDING_OF_PRODUCER,
    PENDING_OF_PRODUCER_AFTER_STOP,
    PENDING_OF_PRODUCER_RESTORED,
    PENDING_TRANSACTIONS,
    PENDING_TRANSACTIONS_AFTER_STOP,
    PENDING_TRANSACTIONS_RESTORED,
    PENDING_UNREADABLE,
    PENDING_UNREADABLE_AFTER_STOP,
    PENDING_UNREADABLE_RESTORED,
    PENDING_UNREADABLE_WITH_FILES,
    PENDING_UNREADABLE_WITH_FILES_AFTER_STOP,
    STATE_NOT_MOVED,
    UNALIGNED_RECORDS,
)
from migrate.model.message import Message

# List states of FlinkKafkaProducer @ connector 1.15.4. KafkaSink has replaced this sink.
_LEGACY_PRODUCER_STATES = frozenset({"next-transactional-id-hint", "next-transactional-id-hint-v2"})
# List state of StreamingFileSink and of the SQL filesystem connector: StreamingFileSinkHelper @
# Flink 1.20.3.
_FILE_SINK_STATE = "bucket-states"
# List state of AsyncWaitOperator @ Flink 1.10.3 to 2.3.0. The state is the operator's queue. The
# queue contains the records whose asynchronous requests are still unanswered, and the watermarks
# after these records. endInput() waits for the answers, but a stop-with-savepoint calls endInput()
# only with --drain (StreamOperatorWrapper.finish @ 1.20.3). For queues in keyed state, see
# ``keyed_queues``.
_ASYNC_QUEUE = "_async_wait_operator_state_"
# List states of DoFnOperator @ Beam 2.50.0 and 2.62.0, and the finding about each. The keys are
# prefixes of the state names, because the names for @RequiresStableInput end with a number
# (BufferingDoFnRunner).
_BEAM_BUFFERS = {
    BEAM_BUNDLE: BEAM_BUNDLE_RECORDS,
    "pushed-back-elements": BEAM_PUSHED_BACK_RECORDS,
    "stable-input-buffer": BEAM_STABLE_INPUT_RECORDS,
}
# Pairs of messages about pending output: for a job that may be running, and for a stopped job.
#
# A running job commits the output of a checkpoint soon after the checkpoint is complete. A
# stop-with-savepoint commits the output of its savepoint. If this commit fails, `flink stop` fails
# with StopWithSavepointStoppingException @ Flink 1.15.4 to 2.2.0.
#
# During a stop, a task ends only after it has handled the notification that the savepoint is
# complete (StreamTask.afterInvoke, notifyCheckpointComplete). A commit error fails the task, and
# the job then does not become FINISHED. FileCommitter.commit raises every error and never retries.
# FlinkKafkaProducer (TwoPhaseCommitSinkFunction) also raises every error. However, a KafkaSink only
# logs that a transaction was aborted (KafkaCommitter.commit), so its job can become FINISHED
# without that output. Flink 1.15.4, 2.2.0; connector 4.0.1.
_PENDING_FILES = PENDING_FILES, PENDING_FILES_AFTER_STOP
_PENDING_OF_PRODUCER = PENDING_OF_PRODUCER, PENDING_OF_PRODUCER_AFTER_STOP
_PENDING_TRANSACTIONS = PENDING_TRANSACTIONS, PENDING_TRANSACTIONS_AFTER_STOP
_PENDING_UNREADABLE = PENDING_UNREADABLE, PENDING_UNREADABLE_AFTER_STOP
# The state may belong to a FileSink writer. FileWriterBucket.prepareCommit @ Flink 1.20.3 closes a
# file if the rolling policy requires it, or at the end of the input. A stop-with-savepoint reaches
# the end of the input only with --drain, so without --drain a file can stay open.
_PENDING_UNREADABLE_WRITER = (
    PENDING_UNREADABLE_WITH_FILES,
    PENDING_UNREADABLE_WITH_FILES_AFTER_STOP,
)
# List states that contain no records. In ``end_of_input_state``, SinkWriterOperator @ Flink 2.0.0
# stores whether its input has ended.
_WITHOUT_RECORDS = frozenset({"end_of_input_state"})


def findings_of_operator(
    operator: Operator, state: KafkaState | UnknownSource | None, sink: Sink | None, stopped: bool
) -> Iterator[Finding]:
    """Yield the findings about an operator; the caller adds the operator's ID and name.

    Args:
        operator: any operator in the checkpoint.
        state: the state of the operator as a source; None if the operator is not a source.
        sink: the state of the operator as a sink; None if the operator is not a sink.
        stopped: True if the job ended with this checkpoint.
    """
    counts = _element_counts(operator)
    if BEAM_BUNDLE in counts and operator.keyed_state_bytes:
        # The positions of a splittable DoFn are in its restrictions. The restrictions are keyed
        # state of a DoFnOperator (SplittableParDoViaKeyedWorkItems @ Beam 2.62.0,
        # ExecutableStageDoFnOperator of portable pipelines).
        yield Finding(BEAM_FUNCTION())
    if operator.in_flight_bytes:
        yield Finding(
            UNALIGNED_RECORDS(bytes=operator.in_flight_bytes),
            void_after_stop=True,  # savepoints are aligned: CheckpointOptions.forConfig @ 1.20.3
        )
    waiting = counts.get(_ASYNC_QUEUE)
    if waiting:
        yield Finding(ASYNC_RECORDS(records=waiting))
        return
    buffers = [
        buffer(records=count)
        for name, buffer in _BEAM_BUFFERS.items()
        if (count := sum(counts[state] for state in counts if state.startswith(name)))
    ]
    yield from map(Finding, buffers)
    if buffers:
        return
    if isinstance(state, UnknownSource):
        yield _unknown_source_finding(operator, state)
    if isinstance(sink, FileSinkState):
        yield from _file_sink_findings(sink, stopped)
        return
    if sink is not None or not _LEGACY_PRODUCER_STATES.isdisjoint(counts):
        yield _sink_finding(operator, sink, stopped)
        # The writer of an unknown sink may buffer records (AsyncSinkWriter.snapshotState @ 2.2.0),
        # so also report the size of its state.
        if not (isinstance(sink, UnknownSink) and WRITER_STATE in counts):
            return
    elif _FILE_SINK_STATE in counts:
        yield Finding(FILE_MAY_BE_IN_PROGRESS())
        return
    if state is not None or SOURCE_READER_STATE in counts:
        return
    sizes = [f"{size} bytes of {kind}" for size, kind in _state_sizes(operator)]
    if sizes:
        yield Finding(STATE_NOT_MOVED(sizes=" and ".join(sizes)))


def state_bytes(operator: Operator) -> int:
    """Return the size, in bytes, of the part of an operator's state that might contain records."""
    return sum(size for size, _ in _state_sizes(operator))


def _state_sizes(operator: Operator) -> list[tuple[int, str]]:
    """Return (size in bytes, kind) for the keyed state and for the operator state.

    Empty state is omitted. Operator state is omitted if none of its elements can be a record.
    """
    has_records = any(
        count and name not in _WITHOUT_RECORDS for name, count in _element_counts(operator).items()
    )
    sizes = (
        (operator.keyed_state_bytes, "keyed state"),
        (operator.operator_state_bytes if has_records else 0, "operator state"),
    )
    return [(size, kind) for size, kind in sizes if size]


def _element_counts(operator: Operator) -> dict[str, int]:
    """Return the number of elements of each managed and raw operator state, by name."""
    counts: dict[str, int] = {}
    for handle in operator.operator_state_handles:
        for state in handle.states:
            counts[state.name] = counts.get(state.name, 0) + len(state.byte_offsets)
    return counts


def _unknown_source_finding(operator: Operator, state: UnknownSource) -> Finding:
    if state.partly_kafka:
        return Finding(DAMAGED_SOURCE(reason=state.reason))
    if LEGACY_CONSUMER_STATE in operator.state_names:
        return Finding(LEGACY_CONSUMER(reason=state.reason))
    return Finding(ANOTHER_SOURCE_KIND(reason=state.reason))


def _file_sink_findings(sink: FileSinkState, stopped: bool) -> Iterator[Finding]:
    paths = [bucket.path for bucket in sink.buckets if bucket.in_progress]
    if paths:
        yield Finding(FILES_IN_PROGRESS(count=len(paths), path=paths[0]))
    if sink.pending:
        files = len(sink.pending)
        yield Finding(
            _PENDING_FILES[stopped](files=files),
            void_after_stop=True,
            void_if_finished=True,
            # A restored job commits these files. A file that is already committed stays unchanged
            # (FileCommitter.commit, RecoverableFsDataOutputStream.Committer.commitAfterRecovery @
            # Flink 1.20.3).
            when_restored=PENDING_FILES_RESTORED(files=files),
        )
    if not paths and not sink.pending:
        yield Finding(IDLE_FILE_SINK())


def _sink_finding(
    operator: Operator, sink: SinkState | UnknownSink | None, stopped: bool
) -> Finding:
    """Return the finding about a sink that commits its output when a checkpoint is complete."""
    if isinstance(sink, SinkState) and not sink.pending:
        return Finding(_nothing_pending(sink))
    match sink:
        case SinkState():
            facts: dict[str, Any] = {
                "transactions": len(sink.pending),
                "prefixes": sorted({transaction.prefix for transaction in sink.pending}),
            }
            templates, restored = _PENDING_TRANSACTIONS, PENDING_TRANSACTIONS_RESTORED
        case UnknownSink():
            facts, restored = {"reason": sink.reason}, PENDING_UNREADABLE_RESTORED
            is_writer = WRITER_STATE in operator.state_names
            templates = _PENDING_UNREADABLE_WRITER if is_writer else _PENDING_UNREADABLE
        case None:
            facts = {}
            templates, restored = _PENDING_OF_PRODUCER, PENDING_OF_PRODUCER_RESTORED
    return Finding(
        templates[stopped](**facts),
        void_after_stop=True,
        void_if_finished=sink is None,
        when_restored=restored(**facts),
    )


def _nothing_pending(sink: SinkState) -> Message:
    if not sink.writers:
        return IDLE_COMMITTER()
    prefixes = sorted({writer.prefix for writer in sink.writers})
    if under_way := sum(len(writer.open_transactions) for writer in sink.writers):
        return KAFKA_SINK_WITH_OPEN_TRANSACTIONS(prefixes=prefixes, count=under_way)
    return IDLE_KAFKA_SINK(prefixes=prefixes)
