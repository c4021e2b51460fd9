"""Change the state of a source operator, in its readers and its enumerator.

A changed position is a different starting offset in the reader's split. A partition is added to the
reader to which Flink would assign it, and to the enumerator as an assigned entry. A partition that
should no longer be read is removed from the reader and from the enumerator.

Source: SourceOperator.open (a reader continues from the splits of its own state) @ Flink 2.2.0;
KafkaSourceEnumerator @ connector 1.15.4 to 5.0.0-2.2; FlinkKafkaConsumerBase.open @ 3.4.0-1.20.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from decoder.cursor import Cursor
from decoder.kafka.dynamic import DynamicSplit
from decoder.kafka.enumerator import AssignmentStatus
from decoder.kafka.hybrid import HybridSplit
from decoder.kafka.legacy import LEGACY_CONSUMER_STATE, LegacyConsumer, read_legacy_element
from decoder.kafka.operator import Source
from decoder.kafka.reader_state import SOURCE_READER_STATE, read_any_split, read_reader_element
from decoder.kafka.source import (
    BeamKafkaIO,
    DynamicKafkaSource,
    HybridSource,
    UnknownSource,
)
from decoder.kafka.split import Split
from decoder.metadata.model import EmptySegment, Operator, OperatorStateHandle
from decoder.operator_state.fetch import SubtaskState, state_elements
from decoder.state_files import StateFiles
from migrate.extensions.savepoints.catalog import (
    BEAM_POSITIONS,
    ENUMERATOR_MISSING,
    NO_CURRENT_KAFKA_SOURCE,
    PARTITION_ALREADY_FINISHED,
    READER_STATE_MISSING,
    SEVERAL_READERS,
    STOP_OFFSET_MISSING,
)
from migrate.extensions.savepoints.kafka_state import (
    changed_coordinator,
    legacy_element,
    move_legacy,
    move_split,
    owner,
    reader_element,
)
from migrate.extensions.savepoints.layouts import Element, Kept, NewState, blob, with_elements
from migrate.extensions.savepoints.positions import OffsetChanges
from migrate.inputs.flink.source import kafka_clusters
from migrate.model.errors import Refused
from migrate.model.positions import ClusterPartition

_FIRST_WITH_SPLITS_V2 = 3  # from this enumerator version on, readers write splits of version 2


# The elements of a subtask, each as its partition (or None; see `_partition_of`) and bytes.
_Elements = list[tuple[ClusterPartition | None, bytes]]


def changed_source(
    operator: Operator, source: Source, files: StateFiles, changes: OffsetChanges
) -> tuple[dict[int, NewState], bytes | None]:
    """Return an operator's source state with different positions.

    Returns:
        The new state of each reader whose state changes, by ``id(handle)``; and the new state of
        the coordinator, or None if the coordinator's state does not change.

    Raises:
        Refused: the state cannot store the new positions.
        DecodeError: the state cannot be read.
    """
    if isinstance(source, BeamKafkaIO):
        raise Refused(BEAM_POSITIONS(operator=operator.operator_id))
    current = source.current if isinstance(source, HybridSource) else source
    if isinstance(current, UnknownSource):
        raise Refused(NO_CURRENT_KAFKA_SOURCE(operator=operator.operator_id, reason=current.reason))
    is_legacy = isinstance(source, LegacyConsumer)
    state_name = LEGACY_CONSUMER_STATE if is_legacy else SOURCE_READER_STATE
    handles = _handles(operator, state_name)
    elements = _read(operator, source, state_name, files, handles)
    readers = Counter(key for subtask_elements in elements.values() for key, _ in subtask_elements)
    shared = [key for key in changes if readers[key] > 1]
    if shared and not is_legacy:  # in a FlinkKafkaConsumer, every subtask stores all partitions
        raise Refused(
            SEVERAL_READERS(
                operator=operator.operator_id, readers=readers[shared[0]], partition=str(shared[0])
            )
        )
    added = {
        key: next_offset
        for key, next_offset in sorted(changes.items())
        if next_offset is not None and key not in readers
    }
    if added and not is_legacy:
        _check_can_add(operator, source, added)
    new = {
        subtask: list(_changed(subtask_elements, changes, is_legacy))
        for subtask, subtask_elements in elements.items()
        if any(key in changes for key, _ in subtask_elements)
    }
    known = [data for subtask_elements in elements.values() for _, data in subtask_elements]
    for key, next_offset in added.items():
        subtask = _subtask_for(operator, handles, key)
        unchanged: list[Element] = [Kept(index) for index in range(len(elements[subtask]))]
        element = _new_element(source, key, next_offset, known)
        new.setdefault(subtask, unchanged).append(element)
    states = {}
    for subtask, new_elements in new.items():
        handle = handles[subtask]
        data = files.read(handle.stream, _name(operator))
        states[id(handle)] = with_elements(data, handle, state_name, new_elements)
    state = operator.coordinator_state
    removed = {key: None for key, next_offset in changes.items() if next_offset is None}
    if state is None or is_legacy or not (added or removed):
        return states, None
    return states, changed_coordinator(state.data, source, {**added, **removed})


def _changed(elements: _Elements, changes: OffsetChanges, is_legacy: bool) -> Iterator[Element]:
    for index, (key, data) in enumerate(elements):
        if key is None or key not in changes:
            yield Kept(index)
            continue
        next_offset = changes[key]
        if next_offset is None:
            continue
        yield move_legacy(data, next_offset) if is_legacy else blob(move_split(data, next_offset))


def _read(
    operator: Operator,
    source: Source,
    state_name: str,
    files: StateFiles,
    handles: Mapping[int, OperatorStateHandle],
) -> dict[int, _Elements]:
    """Return the elements of each subtask."""
    name = _name(operator)
    states = [
        SubtaskState(subtask, handle, state)
        for subtask, handle in handles.items()
        for state in handle.states
        if state.name == state_name
    ]
    is_legacy = isinstance(source, LegacyConsumer)
    elements: dict[int, _Elements] = {subtask: [] for subtask in handles}
    for subtask, data in state_elements(states, files, name, sized=not is_legacy):
        if is_legacy:
            offset = read_legacy_element(Cursor(data, name), subtask)
            key: ClusterPartition | None = ClusterPartition(None, offset.topic, offset.partition)
        else:
            key = _partition_of(read_reader_element(data, name), source, name)
        elements[subtask].append((key, data))
    return elements


def _partition_of(
    split: Split | DynamicSplit | HybridSplit, source: Source, name: str
) -> ClusterPartition | None:
    """Return a split's partition; None if it is from a HybridSource's earlier or later source."""
    if isinstance(split, HybridSplit) and isinstance(source, HybridSource):
        if split.source_index != source.source_index:
            return None
        split = read_any_split(split.wrapped, split.version, name)
    match split:
        case DynamicSplit(cluster=cluster, split=inner):
            return ClusterPartition(cluster, inner.topic, inner.partition)
        case HybridSplit():
            return None
        case _:
            return ClusterPartition(None, split.topic, split.partition)


def _new_element(
    source: Source, key: ClusterPartition, next_offset: int, elements: Sequence[bytes]
) -> bytes:
    """Return the element for an added partition; ``elements`` are the source's old elements."""
    if isinstance(source, LegacyConsumer):
        return legacy_element(elements[0], key.topic, key.partition, next_offset)
    current = source.current if isinstance(source, HybridSource) else source
    version = 1
    if isinstance(current, DynamicKafkaSource) and current.enumerator is not None:
        version = 2 if current.enumerator.version >= _FIRST_WITH_SPLITS_V2 else 1
    element = reader_element(
        key.topic,
        key.partition,
        next_offset,
        cluster=key.cluster,
        cluster_version=version,
        source_index=source.source_index if isinstance(source, HybridSource) else None,
    )
    return blob(element)


def _check_can_add(operator: Operator, source: Source, added: Iterable[ClusterPartition]) -> None:
    """Check that partitions can be added.

    Raises:
        Refused: the enumerator's state is missing, the source has already read a partition to its
            end, or the source is bounded.
    """
    for cluster, state in kafka_clusters(source).items():
        new = [key for key in added if key.cluster == cluster]
        if new and state.enumerator is None:
            raise Refused(ENUMERATOR_MISSING(operator=operator.operator_id, partition=str(new[0])))
        entries = state.enumerator.entries if state.enumerator is not None else ()
        assigned = {
            (entry.topic, entry.partition)
            for entry in entries
            if entry.status is AssignmentStatus.ASSIGNED
        }
        finished = [key for key in new if (key.topic, key.partition) in assigned]
        if finished:
            raise Refused(
                PARTITION_ALREADY_FINISHED(
                    operator=operator.operator_id, partitions=list(map(str, finished))
                )
            )
        splits = [reader.split for reader in state.reader_splits]
        splits += [entry.split for entry in entries if entry.split is not None]
        if new and any(split.stopping_offset is not None for split in splits):
            raise Refused(STOP_OFFSET_MISSING(operator=operator.operator_id, partition=str(new[0])))


def _handles(operator: Operator, state: str) -> dict[int, OperatorStateHandle]:
    """Return the handles that contain a state with this name, by subtask."""
    return {
        subtask.index: handle
        for subtask in operator.subtasks
        if (handle := subtask.managed_operator_state) is not None
        if any(named.name == state for named in handle.states)
    }


def _subtask_for(
    operator: Operator, handles: Mapping[int, OperatorStateHandle], key: ClusterPartition
) -> int:
    """Return the subtask to which Flink would assign a partition.

    If this subtask has no reader state, because it has finished, return the next subtask with
    reader state.
    """
    parallelism = operator.parallelism
    first = owner(key.topic, key.partition, parallelism)
    for step in range(parallelism):
        subtask = (first + step) % parallelism
        handle = handles.get(subtask)
        if handle is not None and not isinstance(handle.stream, EmptySegment):
            return subtask
    raise Refused(
        READER_STATE_MISSING(operator=operator.operator_id, partition=key, count=parallelism)
    )


def _name(operator: Operator) -> str:
    return f"operator {operator.operator_id}"
