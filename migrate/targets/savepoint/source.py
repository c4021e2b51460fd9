"""The changed state of a source operator: its readers and its enumerator change together.

A changed position is another starting offset in the reader's split. An added partition goes to the
reader to which Flink would assign it, and becomes an assigned entry of the enumerator. A removed
partition is removed from the reader and from the enumerator.

Source: SourceOperator.open (a reader continues from the splits of its own state) @ Flink 2.2.0;
KafkaSourceEnumerator @ connector 1.15.4 to 5.0.0-2.2; FlinkKafkaConsumerBase.open @ 3.4.0-1.20.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

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
    KafkaSource,
    UnknownSource,
)
from decoder.metadata.model import EmptySegment, NamedState, Operator, OperatorStateHandle
from decoder.operator_state.fetch import SubtaskState, state_elements
from decoder.state_files import StateFiles
from migrate.model.errors import Refused
from migrate.model.wording import counted, join_some
from migrate.targets.savepoint.kafka_state import (
    changed_coordinator,
    legacy_element,
    move_legacy,
    move_split,
    owner,
    reader_element,
)
from migrate.targets.savepoint.layouts import Element, Kept, blob, with_elements
from migrate.targets.savepoint.positions import ClusterPartition, OffsetChanges

_FIRST_WITH_SPLITS_V2 = 3  # from this enumerator version on, readers write splits of version 2


class NewState(NamedTuple):
    """The new stream of a handle, and its states with their new element offsets."""

    data: bytes
    states: tuple[NamedState, ...]


class NewSource(NamedTuple):
    """The changes of an operator.

    Attributes:
        readers: the new reader state, by subtask; unchanged subtasks are left out.
        coordinator: the new coordinator state; None if it does not change.
    """

    readers: Mapping[int, NewState]
    coordinator: bytes | None


class _Format(NamedTuple):
    """The format of a source's elements.

    Attributes:
        state: the name of the list state.
        move: the function that returns an element with another next offset.
        sized: whether an element begins with its length.
    """

    state: str
    move: Callable[[bytes, int], bytes]
    sized: bool


_SPLITS = _Format(SOURCE_READER_STATE, move_split, sized=True)
_OFFSETS = _Format(LEGACY_CONSUMER_STATE, move_legacy, sized=False)

# The elements of a subtask: partition and bytes. The partition is None if the element belongs to
# another source of a HybridSource than the current one.
_Elements = list[tuple[ClusterPartition | None, bytes]]


def changed_source(
    operator: Operator, source: Source, files: StateFiles, changes: OffsetChanges
) -> NewSource:
    """Return an operator's source state with other positions.

    Args:
        operator: the operator in ``_metadata``.
        source: the operator's decoded state.
        files: the object that reads the files of the state.
        changes: the partitions that change.

    Raises:
        Refused: the state cannot hold the new positions.
        DecodeError: the state cannot be read.
    """
    if isinstance(source, BeamKafkaIO):
        raise Refused(
            f"{_name(operator)}: an Apache Beam pipeline's KafkaIO, whose splits are not "
            "written; choose the other sources, or start the pipeline anew from the offsets of "
            "a consumer group"
        )
    is_legacy = isinstance(source, LegacyConsumer)
    format_ = _OFFSETS if is_legacy else _SPLITS
    handles = _handles(operator, format_.state)
    elements: dict[int, _Elements] = {subtask: [] for subtask in handles}
    for subtask, key, data in _read(operator, source, format_, files, handles):
        elements[subtask].append((key, data))
    readers = Counter(key for subtask_elements in elements.values() for key, _ in subtask_elements)
    shared = [key for key in changes if readers[key] > 1]
    if shared and not is_legacy:  # each FlinkKafkaConsumer has all partitions in its state (union)
        raise Refused(
            f"{_name(operator)}: {readers[shared[0]]} readers hold {shared[0]}, and each would "
            "read it from there; leave it out with --partitions, or take another savepoint"
        )
    added = {
        key: next_offset
        for key, next_offset in sorted(changes.items())
        if next_offset is not None and key not in readers
    }
    make_element = _element_maker(operator, source, elements, added)
    new: dict[int, list[Element]] = {}
    for subtask, subtask_elements in elements.items():
        if any(key in changes for key, _ in subtask_elements):
            new[subtask] = list(_changed(subtask_elements, changes, format_))
    for key, next_offset in added.items():
        subtask = _subtask_for(operator, handles, key)
        unchanged: list[Element] = [Kept(index) for index in range(len(elements[subtask]))]
        content = make_element(key, next_offset)
        new.setdefault(subtask, unchanged).append(blob(content) if format_.sized else content)
    states = {}
    for subtask, new_elements in new.items():
        data = files.read(handles[subtask].stream, _name(operator))
        states[subtask] = NewState(
            *with_elements(data, handles[subtask], format_.state, new_elements)
        )
    removed = {key for key, next_offset in changes.items() if next_offset is None}
    state = operator.coordinator_state
    if (
        state is None
        or not (added or removed)
        or isinstance(source, LegacyConsumer | UnknownSource)
    ):
        return NewSource(states, None)
    return NewSource(states, changed_coordinator(state.data, source, added, removed))


def _changed(elements: _Elements, changes: OffsetChanges, format_: _Format) -> Iterator[Element]:
    for index, (key, data) in enumerate(elements):
        if key is None or key not in changes:
            yield Kept(index)
            continue
        next_offset = changes[key]
        if next_offset is not None:
            new = format_.move(data, next_offset)
            yield blob(new) if format_.sized else new


def _read(
    operator: Operator,
    source: Source,
    format_: _Format,
    files: StateFiles,
    handles: Mapping[int, OperatorStateHandle],
) -> Iterator[tuple[int, ClusterPartition | None, bytes]]:
    """Yield the subtask, the partition and the bytes of every element."""
    name = _name(operator)
    states = [
        SubtaskState(subtask, handle, state)
        for subtask, handle in handles.items()
        for state in handle.states
        if state.name == format_.state
    ]
    for subtask, data in state_elements(states, files, name, sized=format_.sized):
        if format_ is _OFFSETS:
            offset = read_legacy_element(Cursor(data, name), subtask)
            yield subtask, ClusterPartition(None, offset.topic, offset.partition), data
            continue
        split = read_reader_element(data, name)
        if isinstance(split, HybridSplit) and isinstance(source, HybridSource):
            if split.source_index != source.source_index:
                yield subtask, None, data
                continue
            split = read_any_split(split.wrapped, split.version, name)
        match split:
            case DynamicSplit():
                inner = split.split
                yield subtask, ClusterPartition(split.cluster, inner.topic, inner.partition), data
            case HybridSplit():
                yield subtask, None, data
            case _:
                yield subtask, ClusterPartition(None, split.topic, split.partition), data


def _element_maker(
    operator: Operator,
    source: Source,
    elements: Mapping[int, _Elements],
    added: Mapping[ClusterPartition, int],
) -> Callable[[ClusterPartition, int], bytes]:
    """Return a function that makes the element of an added partition.

    Raises:
        Refused: no element can be made.
    """
    if isinstance(source, LegacyConsumer):
        template = next(
            data for subtask_elements in elements.values() for _, data in subtask_elements
        )
        return lambda key, at: legacy_element(template, key.topic, key.partition, at)
    current = source.current if isinstance(source, HybridSource) else source
    assert not isinstance(current, BeamKafkaIO)  # refused by changed_source
    if isinstance(current, UnknownSource):
        raise Refused(f"{_name(operator)}: it reads no Kafka source now ({current.reason})")
    if added:
        _check_can_add(operator, current, added)
    index = source.source_index if isinstance(source, HybridSource) else None
    version = 1
    if isinstance(current, DynamicKafkaSource) and current.enumerator is not None:
        version = 2 if current.enumerator.version >= _FIRST_WITH_SPLITS_V2 else 1
    return lambda key, at: reader_element(
        key.topic,
        key.partition,
        at,
        cluster=key.cluster,
        cluster_version=version,
        source_index=index,
    )


def _check_can_add(
    operator: Operator,
    source: KafkaSource | DynamicKafkaSource,
    added: Iterable[ClusterPartition],
) -> None:
    """Check that partitions can be added to the readers' state.

    Raises:
        Refused: they cannot.
    """
    clusters: list[tuple[str | None, KafkaSource]] = (
        [(None, source)] if isinstance(source, KafkaSource) else [*source.clusters.items()]
    )
    for cluster, state in clusters:
        new = [key for key in added if key.cluster == cluster]
        if new and state.enumerator is None:
            raise Refused(
                f"{_name(operator)}: its enumerator's state is not there, so that Flink would "
                f"discover {new[0]} once more, and read it twice; no partition can be added"
            )
        entries = state.enumerator.entries if state.enumerator is not None else ()
        assigned = {
            (entry.topic, entry.partition)
            for entry in entries
            if entry.status is AssignmentStatus.ASSIGNED
        }
        finished = [key for key in new if (key.topic, key.partition) in assigned]
        if finished:
            raise Refused(
                f"{_name(operator)}: {join_some(map(str, finished), 1)} had been read to the end "
                "of a bounded source, and no reader holds it any more; leave it out with "
                "--partitions"
            )
        splits = [reader.split for reader in state.reader_splits]
        splits += [entry.split for entry in entries if entry.split is not None]
        if new and any(split.stopping_offset is not None for split in splits):
            raise Refused(
                f"{_name(operator)}: it is bounded, and where it would stop in {new[0]} is "
                "not in the state; leave it out with --partitions"
            )


def _handles(operator: Operator, state: str) -> dict[int, OperatorStateHandle]:
    """Return the handles with a state of this name, by subtask."""
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

    If that subtask has finished and has no reader state, return the next subtask that has some.
    """
    parallelism = operator.parallelism
    first = owner(key.topic, key.partition, parallelism)
    for step in range(parallelism):
        subtask = (first + step) % parallelism
        handle = handles.get(subtask)
        if handle is not None and not isinstance(handle.stream, EmptySegment):
            return subtask
    raise Refused(
        f"{_name(operator)}: none of its {counted(parallelism, 'subtask')} keeps reader state that "
        f"{key} could be added to; take the savepoint while they run"
    )


def _name(operator: Operator) -> str:
    return f"operator {operator.operator_id}"
