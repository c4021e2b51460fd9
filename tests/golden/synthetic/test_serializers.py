"""Read the output of Flink's serializers and compare it with Flink's objects.

A few values of each serializer are read as the value of a state, as an element of a list, and, if
possible, as a key.
"""

from __future__ import annotations

import json
import struct
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from decoder.errors import DecodeError, ErrorKind
from tests.support.encoder.data_output import DataOutput
from tests.support.encoder.keyed_state import Entry, KeyedState, encode_head, key_group_of
from tests.support.encoder.keyed_values import LONG, STRING, VOID_NAMESPACE, ListOf
from tests.support.keyed_bytes import (
    MAX_PARALLELISM,
    BytesSerializer,
    Handle,
    canonical_group,
    handle_of_states,
    handle_of_value,
    json_entries,
    only,
    read,
)

WRITTEN: list[dict[str, Any]] = json.loads((Path(__file__).parent / "serializers.json").read_text())
_KEYS = [one for one in WRITTEN if "key" in one]
# Types whose key group is not checked, because the decoder does not compute their hash codes.
_ANY_GROUP = {
    "count window",
    "DecimalData",
    "enum",
    "global window",
    "nullable",
    "nullable, padded",
    "StringData",
    "time window",
    "TimestampData",
    *(f"{kind} value" for kind in ("boolean", "byte", "char", "double", "float", "int", "long")),
    *(f"{kind} value" for kind in ("null", "short", "string")),
}
_ONE = (1).to_bytes(8, "big")


def _by_name(written: list[dict[str, Any]]) -> list[Any]:
    return [
        pytest.param(list(group), id=name)
        for name, group in groupby(written, lambda one: f"{one['flink'][0]} {one['name']}")
    ]


@pytest.mark.parametrize("heap", [False, True], ids=["canonical", "heap"])
@pytest.mark.parametrize("written", _by_name(WRITTEN))
def test_decoded_value_matches_flinks_object(written: list[dict[str, Any]], heap: bool) -> None:
    for one in written:
        snapshot, value = bytes.fromhex(one["snapshot"]), bytes.fromhex(one["value"])
        for flink in one["flink"]:
            state = only(read(handle_of_value(snapshot, value, heap=heap), flink=flink))
            assert state.readable, state.reason
            assert [line["value"] for line in json_entries(state)] == [one["told"]]


@pytest.mark.parametrize("heap", [False, True], ids=["canonical", "heap"])
@pytest.mark.parametrize("written", _by_name(WRITTEN))
def test_decoded_list_elements_match_flinks_objects(
    written: list[dict[str, Any]], heap: bool
) -> None:
    group = key_group_of(1, MAX_PARALLELISM)
    for one in written:
        element, value = (
            BytesSerializer(bytes.fromhex(one["snapshot"])),
            bytes.fromhex(one["value"]),
        )
        entry = Entry(group, 1, None, [value] * 3)
        handle = handle_of_states(
            [KeyedState("list", "LIST", VOID_NAMESPACE, ListOf(element), (entry,))], heap=heap
        )
        state = only(read(handle, flink=one["flink"][-1]))
        assert [line["value"] for line in json_entries(state)] == [[one["told"]] * 3]


def _keyed(one: dict[str, Any], key_group: int, *, heap: bool) -> Handle:
    """Return a state with the value 1 for the key in the namespace ``ns``."""
    key = BytesSerializer(bytes.fromhex(one["snapshot"]))
    out = DataOutput()
    out.raw(encode_head(key, [KeyedState("count", "VALUE", STRING, LONG, ())]))
    start = out.position
    if heap:
        out.i32(key_group)
        out.raw(struct.pack(">hi", 0, 1))
        STRING.write(out, "ns")
        out.raw(bytes.fromhex(one["value"]) + _ONE)
    else:
        flinks = bytes((key_group,)) + bytes.fromhex(one["key"])[1:]
        out.raw(canonical_group((0, flinks, _ONE)))
    return Handle(out.to_bytes(), (start,), key_group, savepoint=not heap)


@pytest.mark.parametrize("heap", [False, True], ids=["canonical", "heap"])
@pytest.mark.parametrize("written", _by_name(_KEYS))
def test_decoded_key_matches_flinks_object(written: list[dict[str, Any]], heap: bool) -> None:
    for one in written:
        state = only(read(_keyed(one, one["key_group"], heap=heap), flink=one["flink"][0]))
        assert json_entries(state) == [
            {"key_group": one["key_group"], "key": one["told"], "namespace": "ns", "value": 1}
        ]


@pytest.mark.parametrize("heap", [False, True], ids=["canonical", "heap"])
@pytest.mark.parametrize(
    "written", _by_name([one for one in _KEYS if one["name"] not in _ANY_GROUP])
)
def test_key_in_wrong_key_group_is_refused(written: list[dict[str, Any]], heap: bool) -> None:
    for one in written:
        other = one["key_group"] ^ 1
        state = only(read(_keyed(one, other, heap=heap), flink=one["flink"][0]))
        problem = f"a key of key group {one['key_group']} is in key group {other}; "
        with pytest.raises(DecodeError, match=problem) as refused:
            json_entries(state)
        assert refused.value.kind is ErrorKind.CORRUPT
        assert refused.value.field == "state 'count'"


# The maximum number of places at which the test truncates a value.
_MOST_CUTS = 12


@pytest.mark.parametrize("written", _by_name(WRITTEN))
@pytest.mark.slow
def test_value_truncated_at_any_byte_is_reported_as_truncated(
    written: list[dict[str, Any]],
) -> None:
    """The state has the heap layout, so no bytes follow the value."""
    for one in written:
        snapshot, value = bytes.fromhex(one["snapshot"]), bytes.fromhex(one["value"])
        for end in range(0, len(value), 1 + len(value) // _MOST_CUTS):
            state = only(
                read(handle_of_value(snapshot, value[:end], heap=True), flink=one["flink"][0])
            )
            with pytest.raises(DecodeError) as refused:
                json_entries(state)
            assert (refused.value.kind, end) == (ErrorKind.TRUNCATED, end), refused.value


@pytest.mark.parametrize("written", _by_name(WRITTEN))
def test_value_with_extra_byte_is_refused(written: list[dict[str, Any]]) -> None:
    for one in written:
        snapshot, value = bytes.fromhex(one["snapshot"]), bytes.fromhex(one["value"])
        state = only(read(handle_of_value(snapshot, value + b"\0"), flink=one["flink"][0]))
        with pytest.raises(DecodeError, match="1 bytes are left over") as refused:
            json_entries(state)
        assert refused.value.kind is ErrorKind.CORRUPT
