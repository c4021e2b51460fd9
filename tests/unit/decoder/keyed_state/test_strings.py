"""Strings with invalid Unicode are inexact in every output, so they are refused as keys."""

from __future__ import annotations

import pytest

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state import KeyedState
from migrate.extensions.keyed_state.arrow import record_batches
from tests.support.compare_readers import compare_readers
from tests.support.encoder import keyed_values as of
from tests.support.encoder.keyed_state import Entry, key_group_of
from tests.support.encoder.keyed_state import KeyedState as Encoded
from tests.support.keyed_bytes import MAX_PARALLELISM, handle_of_states, json_entries, only, read

_HALVES = ("\ud83d", "\ude00")
_FORMS = pytest.mark.parametrize("heap", [False, True], ids=["canonical", "heap"])


def _counts(keys: tuple[str, ...], heap: bool) -> KeyedState:
    entries = tuple(Entry(key_group_of(key, MAX_PARALLELISM), key, None, 1) for key in keys)
    state = Encoded("counts", "VALUE", of.VOID_NAMESPACE, of.LONG, entries)
    return only(read(handle_of_states([state], key=of.STRING, heap=heap)))


def _refused(state: KeyedState, part: str) -> None:
    for rows in (state.entries, lambda: record_batches(state)):
        with pytest.raises(
            DecodeError, match=f"a {part} in key group .* different keys could"
        ) as error:
            list(rows())
        assert error.value.kind is ErrorKind.UNSUPPORTED
    compare_readers(state)


@_FORMS
def test_keys_with_lone_surrogates_are_refused(heap: bool) -> None:
    _refused(_counts(_HALVES, heap), "key")


@_FORMS
def test_key_may_contain_replacement_character(heap: bool) -> None:
    state = _counts(("\ufffd", "\U0001f600"), heap)
    assert {line["key"] for line in json_entries(state)} == {"\ufffd", "\U0001f600"}
    compare_readers(state)


@_FORMS
def test_map_keys_with_lone_surrogates_are_refused(heap: bool) -> None:
    entry = Entry(key_group_of(1, MAX_PARALLELISM), 1, None, dict.fromkeys(_HALVES, 1))
    map_of = of.MapOf(of.STRING, of.LONG)
    state = Encoded("map", "MAP", of.VOID_NAMESPACE, map_of, (entry,))
    _refused(only(read(handle_of_states([state], heap=heap))), "map key")


@_FORMS
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\ud83d", "a\ufffd"),
        ("\ude00ab", "\ufffdab"),
        ("\ud83d\ud83d\ude00a", "\ufffd\U0001f600a"),
        ("\ud83d\u20aca", "\ufffd\u20aca"),
    ],
)
def test_lone_surrogate_in_value_becomes_replacement_character(
    text: str, expected: str, heap: bool
) -> None:
    entry = Entry(key_group_of(1, MAX_PARALLELISM), 1, None, text)
    state = Encoded("text", "VALUE", of.VOID_NAMESPACE, of.STRING, (entry,))
    read_state = only(read(handle_of_states([state], heap=heap)))
    assert [line["value"] for line in json_entries(read_state)] == [expected]
    compare_readers(read_state)
