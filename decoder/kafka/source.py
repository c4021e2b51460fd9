"""Is this operator a KafkaSource? Nothing in a checkpoint says so: it is told by decoding.

Every FLIP-27 source keeps its splits as byte arrays in SourceReaderState and its enumerator as
bytes in coordinator state. An operator is a KafkaSource when *all* of it decodes, each to its last
byte; read leniently, a HybridSource's split comes out as topic '' partition 65544.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from decoder.errors import DecodeError
from decoder.kafka.enumerator import EnumeratorState, read_coordinator_state
from decoder.kafka.reader_state import read_reader_element
from decoder.kafka.split import Split


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
class UnknownSource:
    """A source that no decoder accepts whole.

    ``reason`` is what the strictest decoder stumbled over. ``partly_kafka`` says that some of it
    does decode as a KafkaSource's: then it may be a damaged KafkaSource, not another kind.
    """

    reason: str
    partly_kafka: bool


def recognise(
    elements: Iterable[tuple[int, bytes]], coordinator_state: bytes | None
) -> KafkaSource | UnknownSource:
    """Decode the state of a source operator, all of it or none.

    Args:
        elements: (subtask index, element of SourceReaderState) of every subtask.
        coordinator_state: the operator's coordinator state, if it has one.
    """
    reason: str | None = None  # of the first failure, as text: an error would keep its bytes alive
    splits: list[ReaderSplit] = []
    for subtask, element in elements:
        try:
            split = read_reader_element(element, f"reader state of subtask {subtask}")
            splits.append(ReaderSplit(subtask, split))
        except DecodeError as error:
            reason = reason or str(error)
    enumerator: EnumeratorState | None = None
    if coordinator_state is not None:
        try:
            enumerator = read_coordinator_state(coordinator_state, "coordinator state")
        except DecodeError as error:
            reason = reason or str(error)
    entries = enumerator.entries if enumerator is not None else ()
    if reason is not None:
        return UnknownSource(reason, partly_kafka=bool(splits or entries))
    if not splits and not entries:
        return UnknownSource("it holds no split of any kind", partly_kafka=False)
    return KafkaSource(tuple(splits), enumerator)
