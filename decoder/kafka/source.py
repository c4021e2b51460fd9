"""Recognize the kind of a source by decoding its state, because checkpoints do not store the kind.

Every FLIP-27 source stores its splits as byte arrays in SourceReaderState and its enumerator as
bytes in coordinator state. An operator is recognized as a source of a particular kind only if *all*
of its state decodes as state of this kind, to the last byte. Without this rule, a HybridSource
split could be read as partition 65544 of a topic without a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeVar

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.kafka.beam import (
    BEAM_KAFKA,
    BEAM_SPLIT,
    BeamMark,
    read_beam_element,
    read_beam_enumerator,
)
from decoder.kafka.bulk import element_topics, read_uniform_splits
from decoder.kafka.columns import Rows, SplitColumns, make_rows
from decoder.kafka.dynamic import DynamicEnumeratorState, DynamicSplit, read_dynamic_enumerator
from decoder.kafka.enumerator import EnumeratorState, open_coordinator_state, read_enumerator
from decoder.kafka.hybrid import HybridEnumeratorState, HybridSplit, read_hybrid_enumerator
from decoder.kafka.reader_state import read_any_split, read_reader_element
from decoder.kafka.split import Split
from decoder.operator_state.stream import ByteArrays

_T = TypeVar("_T")
_AnySplit = Split | DynamicSplit | HybridSplit


class ReaderSplit(NamedTuple):
    """A split, and the index of its reader's subtask."""

    subtask: int
    split: Split


def split_fields(splits: Sequence[ReaderSplit]) -> Iterator[tuple[int, str, int, int, int | None]]:
    """Return (subtask, topic, partition, starting offset, stopping offset) for each split."""
    if isinstance(splits, Rows):
        return splits.fields()
    return ((subtask, *split) for subtask, split in splits)


class KafkaSource(NamedTuple):
    """The state of one KafkaSource operator; ``enumerator`` is None if its state was not stored."""

    reader_splits: Sequence[ReaderSplit]
    enumerator: EnumeratorState | None


class DynamicKafkaSource(NamedTuple):
    """The state of one DynamicKafkaSource operator.

    Attributes:
        clusters: the state of each cluster that occurs in the readers' or the enumerator's state,
            by cluster ID.
        retained: the IDs of the clusters that the metadata service no longer lists.
        enumerator: the enumerator's state, or None if it was not stored.
    """

    clusters: Mapping[str, KafkaSource]
    retained: frozenset[str]
    enumerator: DynamicEnumeratorState | None


class BeamKafkaIO(NamedTuple):
    """The state of KafkaIO in an Apache Beam pipeline.

    Attributes:
        assigned: the partitions in the readers' splits, each with the reader's subtask.
        unassigned: the partitions in the splits that are not assigned to a reader.
    """

    assigned: tuple[tuple[int, BeamMark], ...]
    unassigned: tuple[BeamMark, ...]


class UnknownSource(NamedTuple):
    """A source whose state has no splits, or does not decode as the state of one recognized kind.

    ``reason`` is the first problem. ``partly_kafka`` is True if some of the state decodes as Kafka
    source state or contains the name of Beam's KafkaIO. Such a source may be a damaged Kafka
    source.
    """

    reason: str
    partly_kafka: bool


class HybridSource(NamedTuple):
    """The state of one HybridSource operator.

    Attributes:
        other_splits: the number of splits from other sources in the readers' state.
    """

    source_index: int
    current: KafkaSource | DynamicKafkaSource | UnknownSource
    other_splits: int


@dataclass(slots=True)
class _Readers:
    """The splits of an operator's readers, by their kind.

    ``reason`` is the text of the first error; the exception itself would keep the bytes in memory.
    ``beam_damaged`` is True if a split of Beam's KafkaIO could not be read.
    """

    plain: list[tuple[int, SplitColumns]] = field(default_factory=list)
    dynamic: list[tuple[int, DynamicSplit]] = field(default_factory=list)
    hybrid: list[tuple[int, HybridSplit]] = field(default_factory=list)
    beam: list[tuple[int, BeamMark]] = field(default_factory=list)
    reason: str | None = None
    beam_damaged: bool = False
    _topics: dict[bytes, str] = field(default_factory=element_topics)

    def add_state(self, subtask: int, state: Iterable[bytes]) -> None:
        """Read the elements of one reader's state, and add their splits."""
        plain = state.plain if isinstance(state, ByteArrays) else None
        columns_of_state = read_uniform_splits(plain, self._topics) if plain is not None else None
        if columns_of_state is not None:
            self.plain.append((subtask, columns_of_state))
            return
        for element in state:
            if _names_beam(element):
                self._add_beam(subtask, element)
            else:
                self.add(subtask, partial(read_reader_element, element))

    def add(self, subtask: int, read: Callable[[str], _AnySplit]) -> None:
        try:
            split = read(f"reader state of subtask {subtask}")
        except DecodeError as error:
            self.reason = self.reason or str(error)
            return
        match split:
            case Split():
                topic, partition, start, stop = split
                self.plain.append(
                    (subtask, SplitColumns((topic,), (partition,), (start,), (stop,)))
                )
            case DynamicSplit():
                self.dynamic.append((subtask, split))
            case HybridSplit():
                self.hybrid.append((subtask, split))

    def _add_beam(self, subtask: int, element: bytes) -> None:
        try:
            marks = read_beam_element(element, f"reader state of subtask {subtask}")
        except DecodeError as error:
            self.reason = self.reason or str(error)
            self.beam_damaged = self.beam_damaged or BEAM_KAFKA in element
        else:
            self.beam += [(subtask, mark) for mark in marks]

    def plain_splits(self) -> Rows[ReaderSplit]:
        def make_items() -> Iterator[ReaderSplit]:
            return chain.from_iterable(
                make_rows(ReaderSplit, repeat(subtask), columns.make_items())
                for subtask, columns in self.plain
            )

        def fields() -> Iterator[tuple[Any, ...]]:
            return chain.from_iterable(
                zip(repeat(subtask), *columns, strict=False) for subtask, columns in self.plain
            )

        return Rows(sum(len(columns.topics) for _, columns in self.plain), make_items, fields)

    @property
    def kinds(self) -> list[str]:
        """The kinds of source to which the splits belong."""
        by_kind = {
            "KafkaSource": self.plain,
            "DynamicKafkaSource": self.dynamic,
            "HybridSource": self.hybrid,
            "BeamKafkaIO": self.beam,
        }
        return [kind for kind, splits in by_kind.items() if splits]


class _Enumerator:
    """An enumerator's bytes, with a property for each kind of source to which they might belong.

    Each property contains the bytes decoded as the enumerator state of that kind of source, the
    error text if they cannot be decoded, or None if no enumerator state was stored.
    """

    def __init__(self, body: Cursor | None, version: int, reason: str | None = None) -> None:
        self._body = body
        self._version = version
        self._reason = reason

    @cached_property
    def plain(self) -> EnumeratorState | str | None:
        return self._attempt(read_enumerator)

    @cached_property
    def dynamic(self) -> DynamicEnumeratorState | str | None:
        return self._attempt(read_dynamic_enumerator)

    @cached_property
    def beam(self) -> list[BeamMark] | str | None:
        return self._attempt(read_beam_enumerator)

    @cached_property
    def hybrid(self) -> HybridEnumeratorState | str | None:
        return self._attempt(read_hybrid_enumerator)

    def _attempt(self, read: Callable[[Cursor, int], _T]) -> _T | str | None:
        if self._body is None:
            return self._reason
        try:
            return read(self._body.rest("coordinator state"), self._version)
        except DecodeError as error:
            return str(error)


def recognise_source(
    states: Iterable[tuple[int, Iterable[bytes]]], coordinator_state: bytes | None
) -> KafkaSource | DynamicKafkaSource | HybridSource | BeamKafkaIO | UnknownSource:
    """Recognize a source from its operator's state.

    If any part of the state does not decode, the result is an UnknownSource, or a HybridSource
    whose ``current`` is an UnknownSource.

    Args:
        states: (subtask index, elements of its SourceReaderState) for every subtask.
        coordinator_state: the operator's coordinator state, if it has one.

    Raises:
        DecodeError: the iteration over ``states`` raised this error. If the error is TOO_LARGE, the
            result is an UnknownSource instead, because no Kafka source has that much state.
    """
    readers = _Readers()
    try:
        for subtask, state in states:
            readers.add_state(subtask, state)
    except DecodeError as error:
        if error.kind is not ErrorKind.TOO_LARGE:
            raise
        readers.reason = readers.reason or str(error)
    enumerator = _open_enumerator(coordinator_state)
    # If no reader has splits, the coordinator state determines the kind.
    reader_kinds = readers.kinds
    kinds = reader_kinds or [_kind_of(enumerator)]
    if kinds == ["HybridSource"] and readers.reason is None:
        return _recognise_hybrid(readers, enumerator.hybrid)
    coordinator_bytes = coordinator_state or b""
    if reader_kinds == ["BeamKafkaIO"] or (not reader_kinds and _names_beam(coordinator_bytes)):
        return _recognise_beam(readers, enumerator, coordinator_bytes)
    return _recognise(readers, kinds, enumerator)


def _names_beam(data: bytes) -> bool:
    """Return whether serialized bytes contain the class name of Beam's split or of KafkaIO."""
    return BEAM_SPLIT in data or BEAM_KAFKA in data


def _recognise_beam(
    readers: _Readers, enumerator: _Enumerator, coordinator_bytes: bytes
) -> BeamKafkaIO | UnknownSource:
    """Recognize a Beam KafkaIO."""
    partly_kafka = bool(readers.beam) or readers.beam_damaged or BEAM_KAFKA in coordinator_bytes
    if readers.reason is not None:
        return UnknownSource(readers.reason, partly_kafka)
    unassigned = enumerator.beam
    if isinstance(unassigned, str):
        return UnknownSource(unassigned, partly_kafka)
    if not unassigned and _names_beam(coordinator_bytes):
        reason = "its coordinator state mentions splits without a reader, but lists none"
        return UnknownSource(reason, partly_kafka)
    return BeamKafkaIO(tuple(readers.beam), tuple(unassigned or ()))


def _open_enumerator(coordinator_state: bytes | None) -> _Enumerator:
    if coordinator_state is None:
        return _Enumerator(None, 0)
    try:
        version, body = open_coordinator_state(coordinator_state, "coordinator state")
    except DecodeError as error:
        return _Enumerator(None, 0, str(error))
    return _Enumerator(body, version)


def _recognise(
    readers: _Readers, kinds: list[str], enumerator: _Enumerator
) -> KafkaSource | DynamicKafkaSource | UnknownSource:
    """Recognize a KafkaSource or DynamicKafkaSource, or the current source of a HybridSource.

    ``kinds`` are the kinds of source to which the splits belong. If there are no splits, ``kinds``
    contains the kind of source to which the enumerator belongs.
    """
    partly_kafka = bool(
        readers.plain
        or readers.dynamic
        or any(_wraps_kafka(split) for _, split in readers.hybrid)
        or readers.beam
        or readers.beam_damaged
        or _has_splits(enumerator)
    )
    if readers.reason is not None:
        return UnknownSource(readers.reason, partly_kafka)
    if len(kinds) > 1:
        return UnknownSource(f"its splits belong to a {' and a '.join(kinds)}", partly_kafka)
    match kinds[0]:
        case "DynamicKafkaSource":
            dynamic = enumerator.dynamic
            if isinstance(dynamic, str):
                return UnknownSource(dynamic, partly_kafka)
            return _dynamic_source(readers.dynamic, dynamic) if partly_kafka else _NO_SPLIT
        case "HybridSource":
            return UnknownSource("a HybridSource inside of a HybridSource", partly_kafka)
        case _:
            plain = enumerator.plain
            if isinstance(plain, str):
                return UnknownSource(plain, partly_kafka)
            return KafkaSource(readers.plain_splits(), plain) if partly_kafka else _NO_SPLIT


_NO_SPLIT = UnknownSource("it contains no split of any kind", partly_kafka=False)


def _kind_of(enumerator: _Enumerator) -> str:
    if isinstance(enumerator.plain, EnumeratorState):
        return "KafkaSource"
    if isinstance(enumerator.dynamic, DynamicEnumeratorState):
        return "DynamicKafkaSource"
    return "HybridSource" if isinstance(enumerator.hybrid, HybridEnumeratorState) else "unknown"


def _has_splits(enumerator: _Enumerator) -> bool:
    plain = enumerator.plain
    if isinstance(plain, EnumeratorState) and plain.entries:
        return True
    dynamic = enumerator.dynamic
    return isinstance(dynamic, DynamicEnumeratorState) and any(
        cluster.entries for cluster in (*dynamic.clusters.values(), *dynamic.retained.values())
    )


def _dynamic_source(
    readers: list[tuple[int, DynamicSplit]], enumerator: DynamicEnumeratorState | None
) -> DynamicKafkaSource:
    by_cluster: dict[str, list[ReaderSplit]] = {}
    retained = set(enumerator.retained if enumerator is not None else ())
    for subtask, (cluster, split, retained_until) in readers:
        by_cluster.setdefault(cluster, []).append(ReaderSplit(subtask, split))
        if retained_until is not None:
            retained.add(cluster)
    known = {**enumerator.retained, **enumerator.clusters} if enumerator is not None else {}
    clusters = {
        cluster: KafkaSource(tuple(by_cluster.get(cluster, ())), known.get(cluster))
        for cluster in sorted(by_cluster.keys() | known.keys())
    }
    return DynamicKafkaSource(clusters, frozenset(retained), enumerator)


def _recognise_hybrid(
    readers: _Readers, enumerator: HybridEnumeratorState | str | None
) -> HybridSource | UnknownSource:
    """Recognize a HybridSource."""
    if not isinstance(enumerator, HybridEnumeratorState):
        reason = enumerator or (
            "the current source of the HybridSource cannot be determined, because its "
            "coordinator state is missing"
        )
        return UnknownSource(reason, any(_wraps_kafka(split) for _, split in readers.hybrid))
    index = enumerator.source_index
    current = _Readers()
    other_splits = 0
    for subtask, split in readers.hybrid:
        if split.source_index == index:
            current.add(subtask, partial(read_any_split, split.wrapped, split.version))
        else:
            other_splits += 1
    inner = _Enumerator(Cursor(enumerator.wrapped, "coordinator state"), enumerator.version)
    kinds = current.kinds or [_kind_of(inner)]
    return HybridSource(index, _recognise(current, kinds, inner), other_splits)


def _wraps_kafka(split: HybridSplit) -> bool:
    try:
        inner = read_any_split(split.wrapped, split.version, "wrapped split")
    except DecodeError:
        return False
    return not isinstance(inner, HybridSplit)
