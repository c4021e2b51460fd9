"""Parse the bytes of MirrorMaker 2's offset syncs. `test_translation.py` uses a real mirror."""

from __future__ import annotations

import struct

import pytest

from migrate.kafka.offset_syncs import parse_offset_sync

KEY = struct.pack(">h", 6) + b"orders" + struct.pack(">i", 3)
VALUE = struct.pack(">qq", 1000, 997)


def test_offset_sync_is_parsed() -> None:
    assert parse_offset_sync(KEY, VALUE) == (("orders", 3), (1000, 997))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((KEY[:size], VALUE) for size in range(len(KEY))),
        *((KEY, VALUE[:size]) for size in range(len(VALUE))),
        (KEY + b"\0", VALUE),
        (KEY, VALUE + b"\0"),
        (struct.pack(">h", -1) + KEY[2:], VALUE),
        (struct.pack(">h", 6) + b"\xff" * 6 + KEY[-4:], VALUE),
        (KEY, struct.pack(">qq", 5, -1)),
    ],
)
def test_malformed_offset_sync_is_ignored(key: bytes, value: bytes) -> None:
    assert parse_offset_sync(key, value) is None
