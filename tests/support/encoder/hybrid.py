"""Encode the state of a HybridSource, including the state of its current source.

The layouts follow `HybridSourceSplitSerializer` and `HybridSourceEnumeratorStateSerializer`
(flink-connector-base 1.15.4, 2.2.0).
"""

from __future__ import annotations

from tests.support.encoder.data_output import DataOutput


def encode_hybrid_split(
    source_index: int, split_id: str, split: bytes, split_version: int = 0
) -> bytes:
    """Encode a split like HybridSource's serializer in version 0, its only version.

    Args:
        source_index: the index of the source that has the inner split.
        split_id: the id of the split.
        split: the inner split.
        split_version: the version of the inner split.
    """
    out = DataOutput()
    out.i32(source_index)
    out.utf(split_id)
    out.i32(split_version)
    out.sized(split)
    return out.to_bytes()


def encode_hybrid_enumerator(
    source_index: int, enumerator_version: int, enumerator: bytes
) -> bytes:
    """Encode an enumerator like HybridSource's serializer in version 0, its only version.

    Args:
        source_index: the index of the current source.
        enumerator_version: the version of the current source's enumerator.
        enumerator: the enumerator of the current source.
    """
    out = DataOutput()
    out.i32(source_index)
    out.i32(enumerator_version)
    out.sized(enumerator)
    return out.to_bytes()
