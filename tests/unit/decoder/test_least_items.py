"""Check counts against the remaining bytes, and accept items of the smallest possible size.

Each reader gets a list of minimal items, with few or no bytes after the list.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack, unpack_from

import pytest

from decoder import DecodeError, ErrorKind
from decoder.cursor import Cursor
from decoder.kafka.enumerator import read_enumerator
from decoder.kafka.sink import KafkaWriterState, read_writer_state
from decoder.metadata.java_stream import read_object_stream
from decoder.metadata.parse import parse_metadata
from tests.support.encoder import (
    EARLIEST,
    ByteStreamHandle,
    EnumeratorSplit,
    KafkaSplit,
    KeyGroupsHandle,
    Metadata,
    Operator,
    Subtask,
    encode_enumerator,
    encode_metadata,
    encode_split,
    encode_writer_element,
)
from tests.support.hostile import inline, java_class, metadata, operator, reader_state, subtask

_MANY = (1, 4, 5, 100)


@pytest.mark.parametrize("number", _MANY)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_enumerator_partitions_of_minimal_size_are_accepted(version: int, number: int) -> None:
    entries = [EnumeratorSplit(KafkaSplit("a", partition, EARLIEST)) for partition in range(number)]
    data = encode_enumerator(version, entries)
    found = read_enumerator(Cursor(data, "bytes"), version)
    assert [entry.partition for entry in found.entries] == list(range(number))


def test_writer_transactions_of_minimal_size_are_accepted() -> None:
    held = read_writer_state(encode_writer_element("p", 2, {"": 5}), "w")
    assert held == KafkaWriterState("p", ("",))


@pytest.mark.parametrize("number", _MANY)
def test_operators_of_minimal_size_are_accepted(number: int) -> None:
    data = metadata([operator([], number=one) for one in range(number)])
    assert len(parse_metadata(data, "bytes").operators) == number


@pytest.mark.parametrize("number", [1, 200])
def test_list_elements_of_minimal_size_are_accepted(number: int) -> None:
    state = reader_state([5] * number, inline(b""))
    data = metadata([operator([subtask(managed=state)])])
    assert parse_metadata(data, "bytes").operators


@pytest.mark.parametrize("number", [1, 128])
def test_subtask_key_groups_of_minimal_size_are_accepted(number: int) -> None:
    handle = KeyGroupsHandle(0, (5,) * number, ByteStreamHandle("", b""), None, True)
    data = encode_metadata(
        Metadata(1, (Operator(bytes(16), 1, 128, subtasks=(Subtask(0, managed_keyed=handle),)),)), 3
    )
    assert parse_metadata(data, "bytes").operators


@pytest.mark.parametrize("code", ["B", "S", "I", "J"])
def test_java_array_elements_of_minimal_size_are_accepted(code: str) -> None:
    size = {"B": 1, "S": 2, "I": 4, "J": 8}[code]
    data = b"\xac\xed\0\5\x75" + java_class(f"[{code}") + pack(">i", 9) + bytes(9 * size)
    assert read_object_stream(Cursor(data, "bytes")) is not None


# -- counts that are too high by one ---------------------------------------------------------------


def _one_more(data: bytes, at: int) -> bytes:
    """Return the data with the count at the byte ``at`` increased by one."""
    (count,) = unpack_from(">i", data, at)
    return data[:at] + pack(">i", count + 1) + data[at + 4 :]


def _refused(read: Callable[[], object]) -> DecodeError:
    with pytest.raises(DecodeError) as refused:
        read()
    return refused.value


@pytest.mark.parametrize("number", _MANY)
@pytest.mark.parametrize(("version", "item", "left"), [(1, 7, 0), (2, 11, 1), (3, 31, 1)])
def test_partition_count_that_needs_more_than_remaining_bytes_is_refused(
    version: int, item: int, left: int, number: int
) -> None:
    entries = [EnumeratorSplit(KafkaSplit("a", partition, EARLIEST)) for partition in range(number)]
    data = _one_more(encode_enumerator(version, entries), 0)
    error = _refused(lambda: read_enumerator(Cursor(data, "bytes"), version))
    bytes_left = number * item + left
    if version == 3:
        assert error.problem == (f"{number + 1} splits cannot fit into the {bytes_left} bytes left")
        assert error.field == "splits"
    else:
        assert error.problem == (
            f"{number + 1} items of at least {item} bytes cannot fit into the {bytes_left} bytes "
            "left"
        )
        assert (error.kind, error.field, error.byte_offset) == (
            ErrorKind.TRUNCATED,
            "partitions",
            0,
        )


def _version_0(*subtasks: int, claimed: int | None = None) -> bytes:
    """Return an enumerator with the given number of splits for each subtask."""
    data = pack(">ii", len(subtasks) if claimed is None else claimed, 0)
    partition = 0
    for place, number in enumerate(subtasks):
        data += pack(">ii", place, number)
        for _ in range(number):
            split = encode_split("a", partition, EARLIEST)
            data += pack(">i", len(split)) + split
            partition += 1
    return data


def _read_0(data: bytes) -> list[int]:
    found = read_enumerator(Cursor(data, "bytes"), 0)
    return [entry.partition for entry in found.entries]


def test_counts_in_enumerator_version_0_are_checked_against_remaining_bytes() -> None:
    assert _read_0(_version_0()) == []
    assert _read_0(_version_0(0)) == []
    assert _read_0(_version_0(2, 0, 1)) == [0, 1, 2]
    error = _refused(lambda: _read_0(_version_0(0, 0, claimed=3)))
    assert (error.problem, error.field) == (
        "3 subtasks cannot fit into the 16 bytes left",
        "subtasks",
    )
    error = _refused(lambda: _read_0(_version_0(0, claimed=-1)))
    assert error.problem == "-1 subtasks cannot fit into the 8 bytes left"
    error = _refused(lambda: _read_0(_one_more(_version_0(2), 12)))
    assert error.problem == "3 items of at least 27 bytes cannot fit into the 54 bytes left"
    assert error.field == "splits"


def test_operator_count_that_needs_more_than_remaining_bytes_is_refused() -> None:
    for number in (0, 1, 3):
        data = metadata([operator([], number=one) for one in range(number)])
        error = _refused(lambda data=data: parse_metadata(_one_more(data, 20), "bytes"))  # type: ignore[misc]
        assert error.problem == (
            f"{number + 1} items of at least 29 bytes cannot fit into the {29 * number} bytes left"
        )
        assert error.field == "operators"


def test_transaction_count_that_needs_more_than_remaining_bytes_is_refused() -> None:
    data = encode_writer_element("p", 2, {"": 5})
    error = _refused(lambda: read_writer_state(_one_more(data, len(data) - 14), "w"))
    assert error.problem == "2 items of at least 10 bytes cannot fit into the 10 bytes left"
    assert error.field == "open transactions"


@pytest.mark.parametrize(("code", "size"), [("B", 1), ("S", 2), ("I", 4), ("J", 8), ("Z", 1)])
def test_java_array_length_that_needs_more_than_remaining_bytes_is_refused(
    code: str, size: int
) -> None:
    data = b"\xac\xed\0\5\x75" + java_class(f"[{code}") + pack(">i", 9) + bytes(8 * size)
    error = _refused(lambda: read_object_stream(Cursor(data, "bytes")))
    assert error.problem == (
        f"9 items of at least {size} bytes cannot fit into the {8 * size} bytes left"
    )
