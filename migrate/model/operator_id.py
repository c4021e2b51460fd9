"""The operator ID of an operator with a uid: the MurmurHash3 (128 bits, seed 0) of the uid.

Source: org.apache.flink.streaming.api.graph.StreamGraphHasherV2.generateUserSpecifiedHash @ Flink
1.20.3.
"""


def operator_id_of(uid: str) -> str:
    """Return the operator ID that Flink derives from a uid: 32 hex digits."""
    import mmh3  # imported here because few commands need it

    return mmh3.hash_bytes(uid.encode("utf-8", "surrogateescape"), 0).hex()
