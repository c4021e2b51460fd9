"""Create seeds in formats that are rare or missing in the golden checkpoints.

The tests' own encoder writes them. The classes of Flink and the connector can read the encoder's
bytes (tests/integration/test_encoder.py).
"""

from __future__ import annotations

from tests.support.encoder import (
    UNASSIGNED,
    EnumeratorSplit,
    KafkaSplit,
    StreamCluster,
    encode_coordinator,
    encode_dynamic_enumerator,
    encode_dynamic_split,
    encode_enumerator,
    encode_hybrid_enumerator,
    encode_hybrid_split,
    encode_split,
)
from tests.support.encoder.legacy import encode_legacy_element
from tests.support.encoder.sink import (
    Committable,
    encode_committer_element,
    encode_writer_element,
)

_SPLIT = KafkaSplit("orders", 3, 42)
_KNOWN = [EnumeratorSplit(_SPLIT), EnumeratorSplit(KafkaSplit("orders", 4, -2), UNASSIGNED)]
_UNTIL = 1_800_000_000_000


def encoded_seeds() -> dict[str, list[bytes]]:
    """Return the seeds of each target, by the target's name."""
    inner = encode_enumerator(3, _KNOWN)
    split = encode_split("orders", 3, 42)
    hybrid = encode_hybrid_enumerator(1, 3, inner)
    streams = {"s": {"c": StreamCluster(("orders",), "broker:9092", None, b"initializer")}}
    dynamic = [
        encode_dynamic_enumerator(1, streams, 3, {"c": inner}),
        encode_dynamic_enumerator(2, streams, 3, {"c": inner}),
        encode_dynamic_enumerator(3, streams, 3, {"c": inner}, {"gone": (_UNTIL, inner)}),
    ]
    reader_elements = [
        b"\0" + encode_hybrid_split(1, "orders-3", split),
        b"\1" + encode_dynamic_split("c", _SPLIT, 1),
        b"\2" + encode_dynamic_split("c", _SPLIT, 2, _UNTIL),
    ]
    return {
        "reader-element": reader_elements,
        "enumerator": [bytes([n]) + encode_enumerator(n, _KNOWN) for n in range(4)],
        "dynamic-enumerator": [bytes([n]) + state for n, state in enumerate(dynamic, 1)],
        "hybrid-enumerator": [b"\0" + hybrid],
        "legacy-element": [encode_legacy_element("orders", 3, offset) for offset in (-1, 42)],
        "recognise": [b"\0" + encode_coordinator(1, 0, hybrid)],
        "writer-state": [
            encode_writer_element("prefix", 1, {}),
            encode_writer_element("prefix", 2, {"prefix-0-1": 7}),
        ],
        "committer-state": [
            encode_committer_element(flink, {7: {0: [Committable("prefix-0-1")], 1: []}})
            for flink in ("1.14", "1.15", "1.20", "2.2")
        ],
    }
