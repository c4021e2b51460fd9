"""A source operator with other positions: what its readers hold and what its enumerator knows,
changed together.

A position that merely moves is another starting offset in the reader's split. A partition that is
added goes to the reader that Flink would give it to, and stands as assigned in the enumerator; one
that is removed leaves both.

Source: SourceOperator.open (a reader goes on from the splits of its own state) @ Flink 2.2.0;
KafkaSourceEnumerator @ connector 1.15.4 to 5.0.0-2.2; FlinkKafkaConsumerBase.open @ 3.4.0-1.20.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from decoder.cursor import Cursor
from decoder.kafka.dynamic import DynamicSplit
from decoder.kafka.enumerator import AssignmentStatus, EnumeratorState
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
    split_fields,
)
from decoder.kafka.split import Split
from decoder.metadata.model import EmptySegment, NamedState, Operator, OperatorStateHandle
from decoder.operator_state.fetch import SubtaskState, state_elements
from decoder.state_files import StateFiles
from migrate.model.errors import Refused
from migrate.model.wording import counted, join_some
from migrate.targets.savepoint.kafka_state import (
    changed_coordinator,
    legacy_element,
    moved,
    moved_legacy,
    owner,
    reader_element,
)
from migrate.targets.savepoint.layouts import Element, Kept, blob, with_elements

_FIRST_WITH_SPLITS = 3  # the enumerator version whose entries hold whole splits
_NEWEST_CLUSTER_SPLITS = 3  # the enumerator version whose readers write splits of version 2


class ClusterPartition(NamedTuple):
    """A partition of a source; ``cluster`` is None where the state names none."""

    cluster: str | None
    topic: str
    partition: int

    def __str__(self) -> str:
        of = f" of cluster {self.cluster!r}" if self.cluster is not None else ""
        return f"{self.topic}-{self.partition}{of}"


# The next offset that each partition is to have, None for one that is to be removed.
OffsetChanges = Mapping[ClusterPartition, int | None]


class NewState(NamedTuple):
    """A handle's stream, and where in it the elements of its states begin."""

    data: bytes
    states: tuple[NamedState, ...]


class NewSource(NamedTuple):
    """What changes of an operator: the streams of some subtasks, and the coordinator's state."""

    readers: Mapping[int, NewState]
    coordinator: bytes | None


class _Format(NamedTuple):
    """How the elements of a kind of source are written: ``sized`` ones tell their length."""

    state: str
    move: Callable[[bytes, int], bytes]
    sized: bool


_SPLITS = _Format(SOURCE_READER_STATE, moved, sized=True)
_OFFSETS = _Format(LEGACY_CONSUMER_STATE, moved_legacy, sized=False)

# The elements of a subtask: what each is of (None: another source of a HybridSource), its bytes.
_Listed = list[tuple[ClusterPartition | None, bytes]]


def changed_source(
    operator: Operator, source: Source, files: StateFiles, wanted: OffsetChanges
) -> NewSource:
    """An operator's source state with these positions.

    Args:
        wanted: of the partitions that are to change, and of no others.

    Raises:
        Refused: the state cannot hold them.
        DecodeError: it cannot be read.
    """
    if isinstance(source, BeamKafkaIO):
        raise Refused(
            f"{_what(operator)}: an Apache Beam pipeline's KafkaIO, whose splits are not "
            "written; choose the other sources, or start the pipeline anew from the offsets of "
            "a consumer group"
        )
    legacy = isinstance(source, LegacyConsumer)
    form = _OFFSETS if legacy else _SPLITS
    handles = _handles(operator, form.state)
    listed: dict[int, _Listed] = {subtask: [] for subtask in handles}
    for subtask, place, data in _read(operator, source, form, files):
        listed[subtask].append((place, data))
    held = Counter(place for elements in listed.values() for place, _ in elements)
    twice = [place for place in wanted if held[place] > 1]
    if twice and not legacy:  # a FlinkKafkaConsumer's is union state: all readers list all
        raise Refused(
            f"{_what(operator)}: {held[twice[0]]} readers hold {twice[0]}, and each would read "
            "it from there; leave it out with --partitions, or take another savepoint"
        )
    added = {
        place: next_offset
        for place, next_offset in sorted(wanted.items())
        if next_offset is not None and place not in held
    }
    make = _maker(operator, source, listed, added)
    new: dict[int, list[Element]] = {}
    for subtask, elements in listed.items():
        if any(place in wanted for place, _ in elements):
            new[subtask] = list(_changed(elements, wanted, form))
    for place, next_offset in added.items():
        subtask = _subtask_for(operator, handles, place)
        as_it_is: list[Element] = [Kept(index) for index in range(len(listed[subtask]))]
        content = make(place, next_offset)
        new.setdefault(subtask, as_it_is).append(blob(content) if form.sized else content)
    readers = {}
    for subtask, elements_now in new.items():
        handle = handles[subtask]
        data = files.read(handle.stream, _what(operator))
        readers[subtask] = NewState(*with_elements(data, handle, form.state, elements_now))
    removed = {place for place, next_offset in wanted.items() if next_offset is None}
    return NewSource(readers, _coordinator(operator, source, added, removed))


def _changed(elements: _Listed, wanted: OffsetChanges, form: _Format) -> Iterator[Element]:
    for index, (place, data) in enumerate(elements):
        if place is None or place not in wanted:
            yield Kept(index)
            continue
        next_offset = wanted[place]
        if next_offset is not None:
            new = form.move(data, next_offset)
            yield blob(new) if form.sized else new


def _read(
    operator: Operator, source: Source, form: _Format, files: StateFiles
) -> Iterator[tuple[int, ClusterPartition | None, bytes]]:
    """(subtask, what it is of, bytes) of every element."""
    what = _what(operator)
    states = [
        SubtaskState(subtask, handle, state)
        for subtask, handle in _handles(operator, form.state).items()
        for state in handle.states
        if state.name == form.state
    ]
    for subtask, data in state_elements(states, files, what, sized=form.sized):
        if form is _OFFSETS:
            one = read_legacy_element(Cursor(data, what), subtask)
            yield subtask, ClusterPartition(None, one.topic, one.partition), data
            continue
        split = read_reader_element(data, what)
        if isinstance(split, HybridSplit) and isinstance(source, HybridSource):
            if split.source_index != source.source_index:
                yield subtask, None, data
                continue
            split = read_any_split(split.wrapped, split.version, what)
        match split:
            case DynamicSplit():
                inner = split.split
                yield subtask, ClusterPartition(split.cluster, inner.topic, inner.partition), data
            case HybridSplit():
                yield subtask, None, data
            case _:
                yield subtask, ClusterPartition(None, split.topic, split.partition), data


def _maker(
    operator: Operator,
    source: Source,
    listed: Mapping[int, _Listed],
    added: Mapping[ClusterPartition, int],
) -> Callable[[ClusterPartition, int], bytes]:
    """What makes an element of a partition that is added.

    Raises:
        Refused: none can be made.
    """
    if isinstance(source, LegacyConsumer):
        like = next(data for elements in listed.values() for _, data in elements)
        return lambda place, at: legacy_element(like, place.topic, place.partition, at)
    current = source.current if isinstance(source, HybridSource) else source
    assert not isinstance(current, BeamKafkaIO)  # refused by changed_source
    if isinstance(current, UnknownSource):
        raise Refused(f"{_what(operator)}: it reads no Kafka source now ({current.reason})")
    if added:
        _check_may_grow(operator, current, added)
    index = source.source_index if isinstance(source, HybridSource) else None
    version = 1
    if isinstance(current, DynamicKafkaSource) and current.enumerator is not None:
        version = 2 if current.enumerator.version >= _NEWEST_CLUSTER_SPLITS else 1
    return lambda place, at: reader_element(
        place.topic,
        place.partition,
        at,
        cluster=place.cluster,
        cluster_version=version,
        source_index=index,
    )


def _check_may_grow(
    operator: Operator, source: KafkaSource | DynamicKafkaSource, added: Iterable[ClusterPartition]
) -> None:
    """Whether readers may hold partitions that they do not hold."""
    clusters: list[tuple[str | None, KafkaSource]] = (
        [(None, source)] if isinstance(source, KafkaSource) else [*source.clusters.items()]
    )
    for cluster, known in clusters:
        places = [place for place in added if place.cluster == cluster]
        if places and known.enumerator is None:
            raise Refused(
                f"{_what(operator)}: its enumerator's state is not there, so that Flink would "
                f"discover {places[0]} once more, and read it twice; no partition can be added"
            )
        entries = known.enumerator.entries if known.enumerator is not None else ()
        done = {
            (entry.topic, entry.partition)
            for entry in entries
            if entry.status is AssignmentStatus.ASSIGNED
        }
        finished = [place for place in places if (place.topic, place.partition) in done]
        if finished:
            raise Refused(
                f"{_what(operator)}: {join_some(map(str, finished), 1)} had been read to the end "
                "of a bounded source, and no reader holds it any more; leave it out with "
                "--partitions"
            )
        stops = [*(one.split.stopping_offset for one in known.reader_splits)]
        stops += [entry.split.stopping_offset for entry in entries if entry.split is not None]
        if places and any(stop is not None for stop in stops):
            raise Refused(
                f"{_what(operator)}: it is bounded, and where it would stop in {places[0]} is "
                "not in the state; leave it out with --partitions"
            )


def _coordinator(
    operator: Operator,
    source: Source,
    added: Mapping[ClusterPartition, int],
    removed: Iterable[ClusterPartition],
) -> bytes | None:
    """The coordinator's state; None where it stays as it is."""
    state = operator.coordinator_state
    if state is None or isinstance(source, LegacyConsumer | BeamKafkaIO | UnknownSource):
        return None
    new: dict[str | None, dict[tuple[str, int], int]] = {}
    for place, next_offset in added.items():
        new.setdefault(place.cluster, {})[place.topic, place.partition] = next_offset
    gone: dict[str | None, set[tuple[str, int]]] = {}
    for place in removed:
        gone.setdefault(place.cluster, set()).add((place.topic, place.partition))
    return changed_coordinator(state.data, source, new, gone) if new or gone else None


def _handles(operator: Operator, state: str) -> dict[int, OperatorStateHandle]:
    """By subtask, the handles with a state of this name."""
    return {
        subtask.index: handle
        for subtask in operator.subtasks
        if (handle := subtask.managed_operator_state) is not None
        if any(one.name == state for one in handle.states)
    }


def _subtask_for(
    operator: Operator, handles: Mapping[int, OperatorStateHandle], place: ClusterPartition
) -> int:
    """The subtask that Flink would give a partition to, or the next one that keeps such a state:
    one that had finished keeps none."""
    readers = operator.parallelism
    first = owner(place.topic, place.partition, readers)
    for step in range(readers):
        handle = handles.get((first + step) % readers)
        if handle is not None and not isinstance(handle.stream, EmptySegment):
            return (first + step) % readers
    raise Refused(
        f"{_what(operator)}: none of its {counted(readers, 'subtask')} keeps reader state that "
        f"{place} could be added to; take the savepoint while they run"
    )


def next_offsets(source: Source) -> dict[ClusterPartition, int]:
    """Where each partition that a reader holds starts, a marker as it is stored; of a
    FlinkKafkaConsumer the next offset."""
    match source:
        case LegacyConsumer():
            return {
                ClusterPartition(None, one.topic, one.partition): one.stored_offset + 1
                for one in source.offsets
            }
        case HybridSource():
            return next_offsets(source.current)
        case DynamicKafkaSource():
            return {
                ClusterPartition(cluster, topic, partition): start
                for cluster, state in source.clusters.items()
                for _, topic, partition, start, _ in split_fields(state.reader_splits)
            }
        case KafkaSource():
            return {
                ClusterPartition(None, topic, partition): start
                for _, topic, partition, start, _ in split_fields(source.reader_splits)
            }
        case BeamKafkaIO() | UnknownSource():
            return {}


Entries = Mapping[ClusterPartition, tuple[AssignmentStatus, Split | None]]


def entries(source: Source) -> Entries:
    """What the enumerator knows; of a FlinkKafkaConsumer, which has none, nothing."""
    return {
        ClusterPartition(cluster, entry.topic, entry.partition): (entry.status, entry.split)
        for cluster, enumerator in _enumerators(source).items()
        for entry in enumerator.entries
    }


def entries_after(source: Source, wanted: OffsetChanges) -> Entries:
    """What the enumerator is to know with these positions: what it knew, without what is removed;
    what is added stands assigned, with the start that it was discovered with where it was."""
    known, held, enumerators = entries(source), next_offsets(source), _enumerators(source)
    after = {place: entry for place, entry in known.items() if wanted.get(place, 0) is not None}
    for place, next_offset in wanted.items():
        if next_offset is None or place in held or place.cluster not in enumerators:
            continue
        whole = enumerators[place.cluster].version == _FIRST_WITH_SPLITS
        new = Split(place.topic, place.partition, next_offset, None) if whole else None
        after[place] = AssignmentStatus.ASSIGNED, known[place][1] if place in known else new
    return after


def _enumerators(source: Source) -> dict[str | None, EnumeratorState]:
    """By cluster, None where the state names none."""
    match source:
        case HybridSource():
            return _enumerators(source.current)
        case KafkaSource():
            return {None: source.enumerator} if source.enumerator is not None else {}
        case DynamicKafkaSource():
            return {
                cluster: state.enumerator
                for cluster, state in source.clusters.items()
                if state.enumerator is not None
            }
        case LegacyConsumer() | BeamKafkaIO() | UnknownSource():
            return {}


def _what(operator: Operator) -> str:
    return f"operator {operator.operator_id}"
