"""The Kafka source or sink of an operator, from its list states and its coordinator state."""

from __future__ import annotations

from itertools import chain

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.kafka.beam import (
    BEAM_BUNDLE,
    BEAM_KAFKA,
    WRAPPER_STATE,
    BeamMark,
    read_beam_wrapper_element,
)
from decoder.kafka.enumerator import open_coordinator_state
from decoder.kafka.legacy import (
    LEGACY_CONSUMER_STATE,
    LegacyConsumer,
    LegacyOffset,
    read_legacy_element,
)
from decoder.kafka.reader_state import SOURCE_READER_STATE
from decoder.kafka.sink import (
    COMMITTER_STATE,
    WRITER_STATE,
    FileBucket,
    FileSinkState,
    KafkaWriterState,
    PendingFile,
    PendingTransaction,
    SinkState,
    UnknownSink,
    read_committer_state,
    read_writer_state,
)
from decoder.kafka.source import (
    BeamKafkaIO,
    DynamicKafkaSource,
    HybridSource,
    KafkaSource,
    UnknownSource,
    recognise_source,
)
from decoder.metadata.model import DistributionMode, Operator
from decoder.operator_state.fetch import SubtaskState, byte_array_states, state_elements
from decoder.operator_state.stream import extent
from decoder.state_files import StateFiles

Source = (
    KafkaSource | DynamicKafkaSource | HybridSource | LegacyConsumer | BeamKafkaIO | UnknownSource
)
Sink = SinkState | FileSinkState | UnknownSink

_KAFKA_STATES = frozenset(
    {SOURCE_READER_STATE, LEGACY_CONSUMER_STATE, WRAPPER_STATE, WRITER_STATE, COMMITTER_STATE}
)

# Outside a Beam pipeline, a WRAPPER_STATE that is larger than this many bytes, summed over all
# subtasks, is not read, because a user function may have large state with this name.
_MAX_WRAPPER_BYTES = 32 * 1024 * 1024

# The kinds of errors that usually mean that the state belongs to a different kind of sink.
_ERRORS_IN_BYTES = frozenset({ErrorKind.TRUNCATED, ErrorKind.CORRUPT, ErrorKind.UNSUPPORTED})
_UNKNOWN_KIND = "neither a KafkaSink's nor a FileSink's"


def read_source(
    operator: Operator, files: StateFiles, operators: tuple[Operator, ...]
) -> Source | None:
    """Read an operator's source state, or return None if there is no source state.

    If all readers have finished, a source has only coordinator state. Other operators may also have
    coordinator state, so the layout of this state must show whether the operator is a source.

    Args:
        operator: the operator.
        files: the checkpoint's files.
        operators: all operators of the job, to determine whether the job is a Beam pipeline.

    Raises:
        DecodeError: a file that contains the state is missing, damaged, or outside the checkpoint.
    """
    states = _list_states(operator)
    legacy_states = states.get(LEGACY_CONSUMER_STATE)
    if legacy_states:
        return _read_legacy(legacy_states, files, _operator_label(operator))
    wrapper_states = states.get(WRAPPER_STATE)
    if wrapper_states:
        is_beam = any(BEAM_BUNDLE in other.state_names for other in operators)
        wrapped = _read_beam_wrapper(wrapper_states, files, _operator_label(operator), is_beam)
        if wrapped is not None:
            return wrapped
    reader_states = states.get(SOURCE_READER_STATE, [])
    wrong_mode = _find_wrong_mode(reader_states, DistributionMode.SPLIT_DISTRIBUTE)
    if wrong_mode is not None:
        return wrong_mode
    coordinator = operator.coordinator_state
    if not reader_states and coordinator is None:
        return None
    source = recognise_source(
        byte_array_states(reader_states, files, _operator_label(operator)),
        coordinator.data if coordinator is not None else None,
    )
    inner = source.current if isinstance(source, HybridSource) else source
    if reader_states or not isinstance(inner, UnknownSource):
        return source
    assert coordinator is not None  # checked above
    try:
        open_coordinator_state(coordinator.data, "coordinator state")
    except DecodeError:
        return None
    return UnknownSource(inner.reason, partly_kafka=False)


def _read_legacy(
    states: list[SubtaskState], files: StateFiles, label: str
) -> LegacyConsumer | UnknownSource:
    """Read a FlinkKafkaConsumer; return an UnknownSource if its state is not valid or is empty."""
    wrong_mode = _find_wrong_mode(states, DistributionMode.UNION)
    if wrong_mode is not None:
        return wrong_mode
    offsets: list[LegacyOffset] = []
    reason: str | None = None
    for subtask, element in state_elements(states, files, label, sized=False):
        cursor = Cursor(element, f"{label} subtask {subtask} {LEGACY_CONSUMER_STATE}")
        try:
            offsets.append(read_legacy_element(cursor, subtask))
        except DecodeError as error:
            reason = reason or str(error)
    if reason is not None or not offsets:
        return UnknownSource(reason or "it lists no partition", partly_kafka=bool(offsets))
    return LegacyConsumer(tuple(offsets))


def _read_beam_wrapper(
    states: list[SubtaskState], files: StateFiles, label: str, in_beam_pipeline: bool
) -> BeamKafkaIO | UnknownSource | None:
    """Read an UnboundedSourceWrapper from Apache Beam.

    Return None if the state seems to belong to a user function or to a different Beam source.
    """
    extents = [extent(owner.handle, owner.state) for owner in states if owner.state.byte_offsets]
    size = sum(span.end - span.start for span in extents if span is not None)
    if size > _MAX_WRAPPER_BYTES and not in_beam_pipeline:
        return None
    marks: list[tuple[int, BeamMark]] = []
    reason: str | None = None
    others = False
    try:
        for subtask, element in state_elements(states, files, label, sized=False):
            if BEAM_KAFKA not in element:
                if not (in_beam_pipeline or marks or reason):
                    return None
                others = True
                continue
            try:
                name = f"{label} subtask {subtask} {WRAPPER_STATE}"
                marks += [(subtask, mark) for mark in read_beam_wrapper_element(element, name)]
            except DecodeError as error:
                reason = reason or str(error)
    except DecodeError:
        if in_beam_pipeline or marks or reason:
            raise
        return None
    if marks and others:
        reason = reason or f"some elements of its {WRAPPER_STATE} are not from KafkaIO"
    if reason is not None:
        return UnknownSource(reason, partly_kafka=True)
    return BeamKafkaIO(tuple(marks), ()) if marks else None


def read_sink(operator: Operator, files: StateFiles) -> Sink | None:
    """Read an operator's sink state, or return None if there is no sink state.

    If the state cannot be read, the result is an UnknownSink, not an error, because no position
    depends on the state.
    """
    states = _list_states(operator)
    writer_states, committer_states = (
        [owner for owner in states.get(name, ()) if owner.state.byte_offsets]
        for name in (WRITER_STATE, COMMITTER_STATE)
    )
    if not writer_states and not committer_states:
        return None
    label = _operator_label(operator)
    try:
        written = [
            read_writer_state(element, f"{label} subtask {subtask} {WRITER_STATE}")
            for subtask, element in state_elements(writer_states, files, label)
        ]
        pending = tuple(
            chain.from_iterable(
                read_committer_state(element, f"{label} subtask {subtask} {COMMITTER_STATE}")
                for subtask, element in state_elements(committer_states, files, label)
            )
        )
    except DecodeError as error:
        return UnknownSink(_UNKNOWN_KIND if error.kind in _ERRORS_IN_BYTES else str(error))
    writers = tuple(state for state in written if isinstance(state, KafkaWriterState))
    transactions = tuple(item for item in pending if isinstance(item, PendingTransaction))
    if len(writers) == len(written) and len(transactions) == len(pending):
        return SinkState(writers, transactions)
    buckets = tuple(state for state in written if isinstance(state, FileBucket))
    pending_files = tuple(item for item in pending if isinstance(item, PendingFile))
    if len(buckets) == len(written) and len(pending_files) == len(pending):
        return FileSinkState(buckets, pending_files)
    return UnknownSink(_UNKNOWN_KIND)


def _operator_label(operator: Operator) -> str:
    return f"operator {operator.operator_id}"


def _list_states(operator: Operator) -> dict[str, list[SubtaskState]]:
    """Return the subtasks' list states that may belong to a Kafka source or sink, by name."""
    states: dict[str, list[SubtaskState]] = {}
    for subtask in operator.subtasks:
        if (handle := subtask.managed_operator_state) is not None:
            for state in handle.states:
                if state.name in _KAFKA_STATES:
                    states.setdefault(state.name, []).append(
                        SubtaskState(subtask.index, handle, state)
                    )
    return states


def _find_wrong_mode(states: list[SubtaskState], mode: DistributionMode) -> UnknownSource | None:
    """Return an UnknownSource if a state does not have this distribution mode, otherwise None."""
    for _, _, state in states:
        if state.mode is not mode:
            reason = f"its {state.name} has the distribution mode {state.mode.name}"
            return UnknownSource(reason, partly_kafka=False)
    return None
