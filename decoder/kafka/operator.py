"""What an operator keeps for Kafka: read from its list states and its coordinator's state.

Which states an operator has is in ``_metadata``; their elements are fetched here.
"""

from __future__ import annotations

from itertools import chain

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.kafka.beam import BEAM_KAFKA, WRAPPER_STATE, BeamMark, read_beam_wrapped
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
from decoder.metadata.model import DistributionMode, InlineState, Operator
from decoder.operator_state.fetch import SubtaskState, byte_array_states, state_elements
from decoder.operator_state.stream import extent
from decoder.state_files import StateFiles

Source = (
    KafkaSource | DynamicKafkaSource | HybridSource | LegacyConsumer | BeamKafkaIO | UnknownSource
)
Sink = SinkState | FileSinkState | UnknownSink

_OF_KAFKA = frozenset(
    {SOURCE_READER_STATE, LEGACY_CONSUMER_STATE, WRAPPER_STATE, WRITER_STATE, COMMITTER_STATE}
)

# Of a job that is no pipeline of Beam's: a user's function may keep any amount under that name.
_LARGEST_WRAPPER = 32 * 1024 * 1024

# Kinds of error that are about bytes: of a sink of another kind, as a rule.
_UNDECODABLE = frozenset({ErrorKind.TRUNCATED, ErrorKind.CORRUPT, ErrorKind.UNSUPPORTED})
_OF_ANOTHER_KIND = "not a KafkaSink's"


def read_source(
    operator: Operator, files: StateFiles, in_beam_pipeline: bool = False
) -> Source | None:
    """What an operator's source state is recognised as; None where it has none.

    ``in_beam_pipeline``: whether another of the job's operators is of Apache Beam's runner.

    Readers that have all finished leave only the coordinator's state behind. Other operators have
    coordinators too, so that this alone makes a source only where it is laid out as a source's.

    Raises:
        DecodeError: a file of its state is not there, not the checkpoint's, or damaged.
    """
    states = _list_states(operator)
    legacy_states = states.get(LEGACY_CONSUMER_STATE)
    if legacy_states:
        return _read_legacy(legacy_states, files, _what(operator))
    wrapper_states = states.get(WRAPPER_STATE)
    if wrapper_states:
        wrapped = _read_beam_wrapper(wrapper_states, files, _what(operator), in_beam_pipeline)
        if wrapped is not None:
            return wrapped
    reader_states = states.get(SOURCE_READER_STATE, [])
    spread = _spread_otherwise(reader_states, DistributionMode.SPLIT_DISTRIBUTE)
    if spread is not None:
        return spread
    coordinator = operator.coordinator_state
    if not reader_states and coordinator is None:
        return None
    source = recognise_source(
        byte_array_states(reader_states, files, _what(operator)),
        coordinator.data if coordinator is not None else None,
    )
    inner = source.current if isinstance(source, HybridSource) else source
    if reader_states or not isinstance(inner, UnknownSource):
        return source
    assert coordinator is not None  # with no reader's state there is one, as asked above
    return UnknownSource(inner.reason, partly_kafka=False) if _is_a_sources(coordinator) else None


def _is_a_sources(coordinator: InlineState) -> bool:
    try:
        open_coordinator_state(coordinator.data, "coordinator state")
    except DecodeError:
        return False
    return True


def _read_legacy(
    states: list[SubtaskState], files: StateFiles, what: str
) -> LegacyConsumer | UnknownSource:
    """A FlinkKafkaConsumer, where all of the state decodes: its name alone proves nothing."""
    spread = _spread_otherwise(states, DistributionMode.UNION)
    if spread is not None:
        return spread
    offsets: list[LegacyOffset] = []
    reason: str | None = None
    for subtask, element in state_elements(states, files, what, sized=False):
        cursor = Cursor(element, f"{what} subtask {subtask} {LEGACY_CONSUMER_STATE}")
        try:
            offsets.append(read_legacy_element(cursor, subtask))
        except DecodeError as error:
            reason = reason or str(error)
    if reason is not None or not offsets:
        return UnknownSource(reason or "it lists no partition", partly_kafka=bool(offsets))
    return LegacyConsumer(tuple(offsets))


def _read_beam_wrapper(
    states: list[SubtaskState], files: StateFiles, what: str, in_beam_pipeline: bool
) -> BeamKafkaIO | UnknownSource | None:
    """Of Apache Beam's UnboundedSourceWrapper; None of what a user's function keeps under the name
    that they share, and of sources of Beam's that are not Kafka's."""
    places = [extent(held.handle, held.state) for held in states if held.state.byte_offsets]
    size = sum(place.end - place.start for place in places if place is not None)
    if size > _LARGEST_WRAPPER and not in_beam_pipeline:
        return None
    marks: list[tuple[int, BeamMark]] = []
    reason: str | None = None
    others = False
    try:
        for subtask, element in state_elements(states, files, what, sized=False):
            if BEAM_KAFKA not in element:
                if not (in_beam_pipeline or marks or reason):
                    return None
                others = True
                continue
            try:
                place = f"{what} subtask {subtask} {WRAPPER_STATE}"
                marks += [(subtask, mark) for mark in read_beam_wrapped(element, place)]
            except DecodeError as error:
                reason = reason or str(error)
    except DecodeError:
        if in_beam_pipeline or marks or reason:
            raise
        return None
    if marks and others:
        reason = reason or f"some of its {WRAPPER_STATE} is not KafkaIO's"
    if reason is not None:
        return UnknownSource(reason, partly_kafka=True)
    return BeamKafkaIO(tuple(marks), ()) if marks else None


def read_sink(operator: Operator, files: StateFiles) -> Sink | None:
    """What an operator keeps of a sink; None where it keeps nothing of one.

    What cannot be read of a sink is no obstacle: no position depends on it.
    """
    states = _list_states(operator)
    writer_states, committer_states = (
        [held for held in states.get(name, ()) if held.state.byte_offsets]
        for name in (WRITER_STATE, COMMITTER_STATE)
    )
    if not writer_states and not committer_states:
        return None
    what = _what(operator)
    try:
        held = [
            read_writer_state(element, f"{what} subtask {subtask} {WRITER_STATE}")
            for subtask, element in state_elements(writer_states, files, what)
        ]
        pending = tuple(
            chain.from_iterable(
                read_committer_state(element, f"{what} subtask {subtask} {COMMITTER_STATE}")
                for subtask, element in state_elements(committer_states, files, what)
            )
        )
    except DecodeError as error:
        return UnknownSink(_OF_ANOTHER_KIND if error.kind in _UNDECODABLE else str(error))
    writers = tuple(state for state in held if isinstance(state, KafkaWriterState))
    if len(writers) == len(held):
        return SinkState(writers, pending)
    buckets = tuple(state for state in held if isinstance(state, FileBucket))
    if len(buckets) == len(held) and not pending:
        return FileSinkState(buckets)
    return UnknownSink(_OF_ANOTHER_KIND)


def _what(operator: Operator) -> str:
    return f"operator {operator.operator_id}"


def _list_states(operator: Operator) -> dict[str, list[SubtaskState]]:
    """By name, its list states that may be Kafka's, of each subtask that has one."""
    states: dict[str, list[SubtaskState]] = {}
    for subtask in operator.subtasks:
        if (handle := subtask.managed_operator_state) is not None:
            for state in handle.states:
                if state.name in _OF_KAFKA:
                    held = SubtaskState(subtask.index, handle, state)
                    states.setdefault(state.name, []).append(held)
    return states


def _spread_otherwise(states: list[SubtaskState], mode: DistributionMode) -> UnknownSource | None:
    """A state of the right name that is spread over the subtasks as no source's is."""
    for held in states:
        if held.state.mode is not mode:
            return UnknownSource(
                f"its {held.state.name} is spread as {held.state.mode.name}", partly_kafka=False
            )
    return None
