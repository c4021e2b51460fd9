"""Findings about operator state that is not migrated, and about sources that are not read."""

from __future__ import annotations

from collections.abc import Iterator

from decoder import Operator, SinkState, UnknownSource
from decoder.kafka.beam import BEAM_BUNDLE
from decoder.kafka.legacy import LEGACY_CONSUMER_STATE
from decoder.kafka.operator import Sink
from decoder.kafka.reader_state import SOURCE_READER_STATE
from decoder.kafka.sink import WRITER_STATE, FileSinkState, UnknownSink
from migrate.inputs.flink.source import KafkaState
from migrate.model.finding import Code, Finding
from migrate.model.wording import counted

# List states of FlinkKafkaProducer, the predecessor of KafkaSink, @ connector 1.15.4.
_LEGACY_PRODUCER_STATES = frozenset({"next-transactional-id-hint", "next-transactional-id-hint-v2"})
# List state of StreamingFileSink and of the SQL filesystem connector: StreamingFileSinkHelper @
# Flink 1.20.3.
_FILE_SINK_STATE = "bucket-states"
# List state of AsyncWaitOperator @ Flink 1.10.3 to 2.3.0. The state is a queue of in-flight records
# (which wait for the answer to a request) and the watermarks after them. endInput() waits for the
# answers. A stop calls endInput() only with --drain (StreamOperatorWrapper.finish @ 1.20.3). For
# queues in keyed state, see ``keyed_queues``.
_ASYNC_QUEUE = "_async_wait_operator_state_"
# List states of DoFnOperator @ Beam 2.50.0 and 2.62.0, by the prefix of the state's name (the names
# for @RequiresStableInput end with a number; see BufferingDoFnRunner). The texts describe the
# records in the state and how to release them.
_BEAM_BUFFERS = {
    BEAM_BUNDLE: (
        "that the operator emitted for the checkpoint at the end of a bundle",
        "run the pipeline with --finishBundleBeforeCheckpointing, and take a new checkpoint",
    ),
    "pushed-back-elements": (
        "that are waiting for side inputs",
        "take a new checkpoint once their side inputs are ready "
        "(--finishBundleBeforeCheckpointing does not release them)",
    ),
    "stable-input-buffer": (
        "that are waiting until the checkpoint is complete (@RequiresStableInput)",
        "take a new checkpoint after a checkpoint interval without input "
        "(--finishBundleBeforeCheckpointing does not release them)",
    ),
}
# A running job commits the output of a checkpoint soon after the checkpoint is complete. A stop
# commits the output of its savepoint. If a stop's commit fails, `flink stop` ends with
# StopWithSavepointStoppingException @ Flink 1.15.4 to 2.2.0.
_LOST_TEXT = (
    "if the job is still running, a stop-with-savepoint commits that output; otherwise it is lost "
    "unless the job is restored from this checkpoint"
)
_AFTER_A_STOP = "the savepoint does not show whether the stop committed that output"
# After a stop, a task ends only once it has handled the notification that the savepoint is complete
# (StreamTask.afterInvoke, notifyCheckpointComplete). A commit error fails the task, and the
# job then does not become FINISHED. FileCommitter.commit raises every error and retries none.
# FlinkKafkaProducer (TwoPhaseCommitSinkFunction) also raises every error. However, a KafkaSink only
# logs that a transaction was aborted (KafkaCommitter.commit), so its job can become FINISHED
# without that output. Flink 1.15.4, 2.2.0; connector 4.0.1.
_IF_FINISHED = "the stop committed that output if Flink shows the job as FINISHED"
# List states without records. SinkWriterOperator @ Flink 2.0.0 stores in ``end_of_input_state``
# whether its input has ended.
_WITHOUT_RECORDS = frozenset({"end_of_input_state"})
# FileWriterBucket.prepareCommit @ Flink 1.20.3 closes a file if the rolling policy requires it, or
# at the end of the input. A stop-with-savepoint reaches the end of the input only with --drain, so
# without --drain a file can stay open.
_HIDDEN_FILE_TEXT = "its records stay hidden (.inprogress) after a move"
_OPEN_FILE_TEXT = f"a file sink may have an unfinished file; {_HIDDEN_FILE_TEXT}"


def findings_of_operator(
    operator: Operator, state: KafkaState | UnknownSource | None, sink: Sink | None, stopped: bool
) -> Iterator[Finding]:
    """Yield the findings about an operator; the caller adds its ID and its name.

    Args:
        operator: any operator in the checkpoint.
        state: the state of the operator as a source; None if it is not a source.
        sink: the state of the operator as a sink; None if it is not a sink.
        stopped: True if the job ended with this checkpoint.
    """
    counts = _element_counts(operator)
    if BEAM_BUNDLE in counts and operator.keyed_state_bytes:
        # The positions of a splittable DoFn are in its restrictions. The restrictions are keyed
        # state of a DoFnOperator (SplittableParDoViaKeyedWorkItems @ Beam 2.62.0,
        # ExecutableStageDoFnOperator of portable pipelines).
        yield Finding(
            Code.ANOTHER_SOURCE_KIND,
            "an Apache Beam DoFn with keyed state; if it reads Kafka (a splittable DoFn), "
            "its positions are not moved; run it with --experiments=use_deprecated_read",
        )
    if operator.in_flight_bytes:
        yield Finding(
            Code.IN_FLIGHT_RECORDS,
            f"{operator.in_flight_bytes} bytes of records in its channels are not yet "
            "processed (an unaligned checkpoint); a move loses them; take an aligned "
            "checkpoint, or use stop-with-savepoint",
            void_after_stop=True,  # savepoints are aligned: CheckpointOptions.forConfig @ 1.20.3
        )
    waiting = counts.get(_ASYNC_QUEUE)
    if waiting:
        yield Finding(
            Code.IN_FLIGHT_RECORDS,
            f"its queue contains up to {counted(waiting, 'record')} waiting for responses "
            "(async I/O); a move loses them; stop the job with --drain, which waits for the "
            "responses (if the job has ended, restore it from this checkpoint first)",
        )
        return
    buffers = [
        (count, records, way_out)
        for name, (records, way_out) in _BEAM_BUFFERS.items()
        if (count := sum(counts[state] for state in counts if state.startswith(name)))
    ]
    for count, records, way_out in buffers:
        yield Finding(
            Code.IN_FLIGHT_RECORDS,
            f"an Apache Beam pipeline stores {counted(count, 'record')} here {records}; a "
            f"move loses them; {way_out}",
        )
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
        yield Finding(Code.FILES_IN_PROGRESS, _OPEN_FILE_TEXT)
        return
    if state is not None or SOURCE_READER_STATE in counts:
        return
    sizes = [f"{size} bytes of {kind}" for size, kind in _state_sizes(operator)]
    if sizes:
        yield Finding(
            Code.STATE_NOT_MOVED,
            f"it has {' and '.join(sizes)} that will not be migrated; this state may "
            "contain records that were read but not emitted",
        )


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
        return Finding(
            Code.DAMAGED_SOURCE,
            "some of its state belongs to a Kafka source, and some cannot be decoded; the "
            f"source is damaged, or its kind is unsupported ({state.reason})",
        )
    if LEGACY_CONSUMER_STATE in operator.state_names:
        return Finding(
            Code.LEGACY_CONSUMER,
            "its state has the name that FlinkKafkaConsumer uses (the source before "
            f"KafkaSource) but contains no readable position ({state.reason})",
        )
    return Finding(
        Code.ANOTHER_SOURCE_KIND,
        f"its source state does not belong to a KafkaSource, so it is not moved ({state.reason})",
    )


def _file_sink_findings(sink: FileSinkState, stopped: bool) -> Iterator[Finding]:
    paths = [bucket.path for bucket in sink.buckets if bucket.in_progress]
    if paths:
        yield Finding(
            Code.FILES_IN_PROGRESS,
            f"a FileSink has {counted(len(paths), 'unfinished file')} (the first is in "
            f"{paths[0]!r}); {_HIDDEN_FILE_TEXT}",
        )
    if sink.pending:
        contents = f"a FileSink has {counted(len(sink.pending), 'finished file')} to commit"
        yield Finding(
            Code.PENDING_TRANSACTIONS,
            f"{contents}; {_IF_FINISHED if stopped else _LOST_TEXT}",
            void_after_stop=True,
            void_if_finished=True,
            # FileCommitter.commit, RecoverableFsDataOutputStream.Committer.commitAfterRecovery
            # (which does nothing if the file is committed) @ Flink 1.20.3
            when_restored=(
                f"{contents}; the restored job commits the output that the stop did not "
                "commit; a second commit changes nothing"
            ),
        )
    if not paths and not sink.pending:
        yield Finding(Code.SINK_STATE, "it is a FileSink writer with no open file")


def _sink_finding(
    operator: Operator, sink: SinkState | UnknownSink | None, stopped: bool
) -> Finding:
    """Return the finding about a sink that commits its output when a checkpoint is complete."""
    if isinstance(sink, SinkState) and not sink.pending:
        return Finding(Code.SINK_STATE, _nothing_pending_text(sink))
    after_a_stop = _AFTER_A_STOP
    match sink:
        case SinkState():
            prefixes = ", ".join(repr(p) for p in sorted({t.prefix for t in sink.pending}))
            contents = (
                f"a KafkaSink has {counted(len(sink.pending), 'transaction')} to commit "
                f"(transactional id prefix {prefixes})"
            )
        case UnknownSink():
            contents = (
                f"a sink may have output to commit, but its state cannot be read ({sink.reason})"
            )
        case None:
            contents = (
                "a FlinkKafkaProducer may have transactions to commit; `migrate` does not read them"
            )
            after_a_stop = _IF_FINISHED
    # The unknown state may belong to a FileSink writer.
    may_be_files = isinstance(sink, UnknownSink) and WRITER_STATE in operator.state_names
    return Finding(
        Code.PENDING_TRANSACTIONS,
        f"{contents}; "
        + (after_a_stop if stopped else _LOST_TEXT)
        + (f"; {_OPEN_FILE_TEXT}" if may_be_files else ""),
        void_after_stop=True,
        void_if_finished=sink is None,
    )


def _nothing_pending_text(sink: SinkState) -> str:
    if not sink.writers:
        return "it is a sink committer without transactions to commit"
    prefixes = ", ".join(repr(prefix) for prefix in sorted({w.prefix for w in sink.writers}))
    under_way = sum(len(writer.open_transactions) for writer in sink.writers)
    return f"it is a KafkaSink writer (transactional id prefix {prefixes})" + (
        f", with {counted(under_way, 'transaction')} in progress" if under_way else ""
    )
