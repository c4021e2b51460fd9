"""Handles of keyed state as written by the encoder and read by Flink (test_encoder.py).

Covers the contents and the refusals.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.metadata.keyed import (
    ChangelogState,
    IncrementalState,
    KeyedHandle,
    KeyGroupsState,
    read_keyed_handle,
)
from decoder.metadata.model import InlineState
from tests.support.encoder import (
    ByteStreamHandle,
    ChangelogBytesHandle,
    ChangelogFilesHandle,
    ChangelogHandle,
    IncrementalHandle,
    KeyGroupsHandle,
)
from tests.support.encoder.data_output import DataOutput

_INLINE = ByteStreamHandle("inline", b"state")
_GROUPS = KeyGroupsHandle(3, (9, 0, 12), _INLINE, "id")
_FILES = IncrementalHandle(
    7, "backend", 5, 2, 44, _INLINE, (("a.sst", _INLINE),), (("CURRENT", _INLINE),), "id"
)
_BYTES = ChangelogBytesHandle(0, 4, 1, 2, ((-1, b"meta"), (2, b"change")), "id")
_CHANGES = ChangelogFilesHandle(0, 4, ((8, _INLINE),), 5, 5, "id", "storage")
_CHANGELOG = ChangelogHandle(0, 4, 9, (_GROUPS,), (_BYTES, _CHANGES), 1, 2, "id")


def _read(handle: object) -> tuple[KeyedHandle | None, int]:
    out = DataOutput()
    handle.write(out)  # type: ignore[attr-defined]
    cursor = Cursor(out.to_bytes(), "_metadata")
    return read_keyed_handle(cursor, "keyed"), cursor.remaining


@pytest.mark.parametrize("handle_id", ["id", None])
@pytest.mark.parametrize("savepoint", [True, False])
def test_key_groups_handle_is_read(handle_id: str | None, savepoint: bool) -> None:
    if savepoint and handle_id is not None:
        return
    found = _read(replace(_GROUPS, handle_id=handle_id, savepoint=savepoint))
    assert found == (KeyGroupsState(savepoint, 3, (9, 0, 12), InlineState("inline", b"state")), 0)


@pytest.mark.parametrize(("size", "handle_id"), [(44, "id"), (None, None)])
def test_rocksdb_incremental_handle_is_read(size: int | None, handle_id: str | None) -> None:
    inline = InlineState("inline", b"state")
    found = _read(replace(_FILES, checkpointed_size=size, handle_id=handle_id))
    assert found == (IncrementalState(5, 2, inline, (("a.sst", inline), ("CURRENT", inline))), 0)


@pytest.mark.parametrize(
    "handle",
    [
        _CHANGELOG,
        replace(_CHANGELOG, checkpoint_id=None),
        _BYTES,
        _CHANGES,
        replace(_CHANGES, storage_id=None),
    ],
)
def test_changelog_changes_are_counted(handle: object) -> None:
    found = _read(handle)[0]
    assert isinstance(found, ChangelogState)
    assert found.change_count > 0


def test_base_handles_of_changelog_are_read() -> None:
    groups, files = _read(_GROUPS)[0], _read(_FILES)[0]
    assert isinstance(groups, KeyGroupsState) and isinstance(files, IncrementalState)
    handle = replace(_CHANGELOG, first_key_group=3, key_groups=4, materialized=(_GROUPS, _FILES))
    handle = replace(handle, non_materialized=())
    assert _read(handle)[0] == ChangelogState((groups, files), 0)


def test_base_of_rescaled_changelog_is_limited_to_key_groups_of_subtask() -> None:
    """After rescaling, the base can contain more key groups than the subtask's changelog.

    The result contains only the key groups that both contain.
    """
    handle = replace(_CHANGELOG, materialized=(_FILES,), non_materialized=())
    for first, count, own in ((6, 5, (6, 1)), (0, 6, (5, 1)), (0, 9, (5, 2)), (9, 2, (9, 0))):
        found = _read(replace(handle, first_key_group=first, key_groups=count))[0]
        assert isinstance(found, ChangelogState)
        (base,) = found.base
        assert isinstance(base, IncrementalState)
        assert (base.first, base.key_groups) == own


def test_changelog_based_on_changelog_is_refused() -> None:
    handle = replace(_CHANGELOG, materialized=(replace(_CHANGELOG, materialized=()),))
    with pytest.raises(DecodeError, match="unknown kind of keyed state handle: 14"):
        _read(handle)


def test_missing_keyed_handle_is_read_as_none() -> None:
    assert read_keyed_handle(Cursor(b"\0", "_metadata"), "keyed") is None


@pytest.mark.parametrize(
    ("handle", "problem"),
    [
        (replace(_GROUPS, first_key_group=-1), "3 key groups from -1 on exceed the limit of 32768"),
        (
            replace(_GROUPS, first_key_group=32_766),
            "3 key groups from 32766 on exceed the limit of 32768",
        ),
        (replace(_GROUPS, offsets=(1, -2)), "a key group cannot be at a negative position"),
        (replace(_FILES, first_key_group=-1), "2 key groups from -1 on exceed the limit of 32768"),
        (
            replace(_FILES, first_key_group=32_767),
            "2 key groups from 32767 on exceed the limit of 32768",
        ),
        (replace(_FILES, key_groups=-1), "-1 key groups from 5 on exceed the limit of 32768"),
    ],
)
def test_keyed_handle_with_impossible_key_groups_is_refused(handle: object, problem: str) -> None:
    with pytest.raises(DecodeError) as refused:
        _read(handle)
    assert problem in refused.value.problem
    assert (refused.value.kind, refused.value.field) == (ErrorKind.CORRUPT, "keyed")


def test_keyed_handle_without_stream_or_of_unknown_kind_is_refused() -> None:
    out = DataOutput()
    _GROUPS.write(out)
    stream = DataOutput()
    _INLINE.write(stream)
    whole = out.to_bytes()
    without = whole[: whole.index(stream.to_bytes())] + b"\0"
    with pytest.raises(DecodeError, match="keyed state without a stream"):
        read_keyed_handle(Cursor(without, "_metadata"), "keyed")
    with pytest.raises(DecodeError, match="unknown kind of keyed state handle: 99") as refused:
        read_keyed_handle(Cursor(b"\x63", "_metadata"), "keyed")
    assert (refused.value.kind, refused.value.byte_offset) == (ErrorKind.UNSUPPORTED, 0)


def test_keyed_handle_with_highest_key_groups_or_without_offsets_is_accepted() -> None:
    assert _read(replace(_GROUPS, first_key_group=32_765))[1] == 0
    assert _read(replace(_FILES, first_key_group=32_766))[1] == 0
    assert _read(replace(_GROUPS, offsets=(-1, -1, 0)))[1] == 0
    assert _read(replace(_GROUPS, offsets=()))[1] == 0
