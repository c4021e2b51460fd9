"""The state of a HybridSource, which contains the state of its current source.

The layouts are those of `HybridSourceSplitSerializer` and `HybridSourceEnumeratorStateSerializer`
(flink-connector-base 1.15.4, 2.2.0).
"""

from __future__ import annotations

from tests.support.encoder.data_output import DataOutput


def encode_hybrid_split(
    source_index: int, split_id: str, split: bytes, split_version: int = 0
) -> bytes:
    """Encode a split of the source at `source_index`; version 0 is the only version."""
    out = DataOutput()
    out.i32(source_index)
    out.utf(split_id)
    out.i32(split_version)
    out.sized(split)
    return out.to_bytes()


def encode_hybrid_enumerator(
    source_index: int, enumerator_version: int, enumerator: bytes
) -> bytes:
    """Encode the enumerator of the current source; version 0 is the only version."""
    out = DataOutput()
    out.i32(source_index)
    out.i32(enumerator_version)
    out.sized(enumerator)
    return out.to_bytes()
