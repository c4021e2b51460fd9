"""The state of a HybridSource, which wraps the state of its current source.

A HybridSource reads a list of sources one after another, such as files and then Kafka. Split
version 0: ``i32 sourceIndex, UTF splitId, i32 wrappedVersion, i32 n``, n bytes of the wrapped
split. Enumerator version 0: ``i32 currentSourceIndex, i32 wrappedVersion, i32 n``, n bytes of the
wrapped enumerator. The list of sources is not in the state.

Source: org.apache.flink.connector.base.source.hybrid.{HybridSourceSplitSerializer,
HybridSourceEnumeratorStateSerializer} @ Flink 1.15.4 to 2.2.0.
"""

from __future__ import annotations

from typing import NamedTuple

from decoder.cursor import Cursor

_ENUMERATOR_VERSIONS = (0,)


class HybridSplit(NamedTuple):
    """The version and bytes of a split from the source at ``source_index``."""

    source_index: int
    version: int
    wrapped: bytes


class HybridEnumeratorState(NamedTuple):
    """The index of the current source, and the version and bytes of its enumerator's state."""

    source_index: int
    version: int
    wrapped: bytes


def read_hybrid_split(cursor: Cursor) -> HybridSplit:
    """Read one split of version 0 that extends to the end of ``cursor``.

    Raises:
        DecodeError: the bytes are not exactly a HybridSourceSplit.
    """
    index = _read_source_index(cursor)
    if not cursor.utf("split id"):
        cursor.fail("a split's id cannot be empty", "split id", back=2)
    split = HybridSplit(index, cursor.i32("wrapped split version"), cursor.blob("wrapped split"))
    cursor.finish("split of a HybridSource")
    return split


def read_hybrid_enumerator(cursor: Cursor, version: int) -> HybridEnumeratorState:
    """Read a HybridSourceEnumeratorState that extends to the end of ``cursor``.

    Raises:
        DecodeError: the version is not supported, or the bytes are not exactly a
            HybridSourceEnumeratorState.
    """
    cursor.check_version(version, "HybridSource's enumerator", _ENUMERATOR_VERSIONS, back=0)
    state = HybridEnumeratorState(
        _read_source_index(cursor),
        cursor.i32("wrapped enumerator version"),
        cursor.blob("wrapped enumerator"),
    )
    cursor.finish("enumerator state of a HybridSource")
    return state


def _read_source_index(cursor: Cursor) -> int:
    index = cursor.i32("source index")
    if index < 0:
        cursor.fail(f"a source's index cannot be negative: {index}", "source index", back=4)
    return index
