"""Is this operator a KafkaSource? Nothing in a checkpoint says so: it is told by decoding.

Every FLIP-27 source keeps its splits as byte arrays in SourceReaderState and its enumerator as
bytes in coordinator state. An operator is a KafkaSource, or a DynamicKafkaSource, when *all* of it
decodes as that, each to its last byte; read leniently, a HybridSource's split comes out as topic ''
partition 65544.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from decoder.errors import DecodeError
from decoder.kafka.dynamic import (
    DynamicEnumeratorState,
    DynamicSplit,
    read_dynamic_coordinator_state,
)
from decoder.kafka.enumerator import EnumeratorState, read_coordinator_state
from decoder.kafka.reader_state import read_reader_element
from decoder.kafka.split import Split

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ReaderSplit:
    """A split and the index of the subtask whose reader holds it."""

    subtask: int
    split: Split


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """The state of one KafkaSource operator; ``enumerator`` is None where none was stored."""

    reader_splits: tuple[ReaderSplit, ...]
    enumerator: EnumeratorState | None


@dataclass(frozen=True, slots=True)
class DynamicKafkaSource:
    """The state of one DynamicKafkaSource operator.

    Attributes:
        clusters: by cluster id, a KafkaSource's state: of every cluster that a reader or the
            enumerator knows.
        enumerator: as stored; None where it was not.
    """

    clusters: Mapping[str, KafkaSource]
    enumerator: DynamicEnumeratorState | None


@dataclass(frozen=True, slots=True)
class UnknownSource:
    """A source that no decoder accepts whole.

    ``reason`` is what the strictest decoder stumbled over. ``partly_kafka`` says that some of it
    does decode as a Kafka source's: then it may be a damaged one, not another kind.
    """

    reason: str
    partly_kafka: bool


@dataclass(slots=True)
class _Readers:
    """What the readers of an operator hold, by what it decodes as.

    ``reason`` is the first failure, as text: an error would keep its bytes alive.
    """

    plain: list[ReaderSplit] = field(default_factory=list)
    dynamic: dict[str, list[ReaderSplit]] = field(default_factory=dict)
    reason: str | None = None


def recognise(
    elements: Iterable[tuple[int, bytes]], coordinator_state: bytes | None
) -> KafkaSource | DynamicKafkaSource | UnknownSource:
    """Decode the state of a source operator, all of it or none.

    Args:
        elements: (subtask index, element of SourceReaderState) of every subtask.
        coordinator_state: the operator's coordinator state, if it has one.
    """
    readers = _read_readers(elements)
    plain = _attempt(read_coordinator_state, coordinator_state)
    dynamic = _attempt(read_dynamic_coordinator_state, coordinator_state)
    partly_kafka = bool(readers.plain or readers.dynamic) or _knows_splits(plain, dynamic)
    reason = readers.reason
    if reason is None and readers.plain and readers.dynamic:
        reason = "its splits are of a KafkaSource and of a DynamicKafkaSource"
    if reason is not None:
        return UnknownSource(reason, partly_kafka)
    # Without splits in a reader, the coordinator's state tells the kind.
    told_plain = bool(readers.plain) or isinstance(plain, EnumeratorState)
    if readers.dynamic or (not told_plain and isinstance(dynamic, DynamicEnumeratorState)):
        if isinstance(dynamic, str):
            return UnknownSource(dynamic, partly_kafka)
        source = DynamicKafkaSource(_by_cluster(readers.dynamic, dynamic), dynamic)
        return source if partly_kafka else _NO_SPLIT
    if isinstance(plain, str):
        return UnknownSource(plain, partly_kafka)
    return KafkaSource(tuple(readers.plain), plain) if partly_kafka else _NO_SPLIT


_NO_SPLIT = UnknownSource("it holds no split of any kind", partly_kafka=False)


def _read_readers(elements: Iterable[tuple[int, bytes]]) -> _Readers:
    readers = _Readers()
    for subtask, element in elements:
        try:
            split = read_reader_element(element, f"reader state of subtask {subtask}")
        except DecodeError as error:
            readers.reason = readers.reason or str(error)
            continue
        if isinstance(split, DynamicSplit):
            held = ReaderSplit(subtask, split.split)
            readers.dynamic.setdefault(split.cluster, []).append(held)
        else:
            readers.plain.append(ReaderSplit(subtask, split))
    return readers


def _attempt(read: Callable[[bytes, str], _T], coordinator_state: bytes | None) -> _T | str | None:
    """What ``read`` makes of the coordinator's state, or why it makes nothing of it."""
    if coordinator_state is None:
        return None
    try:
        return read(coordinator_state, "coordinator state")
    except DecodeError as error:
        return str(error)


def _knows_splits(
    plain: EnumeratorState | str | None, dynamic: DynamicEnumeratorState | str | None
) -> bool:
    enumerators = [plain] if isinstance(plain, EnumeratorState) else []
    if isinstance(dynamic, DynamicEnumeratorState):
        enumerators += dynamic.clusters.values()
    return any(enumerator.entries for enumerator in enumerators)


def _by_cluster(
    readers: Mapping[str, list[ReaderSplit]], enumerator: DynamicEnumeratorState | None
) -> dict[str, KafkaSource]:
    enumerators = enumerator.clusters if enumerator is not None else {}
    return {
        cluster: KafkaSource(tuple(readers.get(cluster, ())), enumerators.get(cluster))
        for cluster in sorted(readers.keys() | enumerators.keys())
    }
