"""Small functions on single values: both sides of each bound, and each message."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from decoder import DecodeError, ErrorKind
from decoder.checkpoint import translate_os_errors
from decoder.cursor import Cursor
from decoder.kafka.columns import Rows, SplitColumns
from decoder.kafka.split import Split
from decoder.keyed_state import KeyedState, KeyedStates, StateKind
from decoder.keyed_state import types as keyed
from decoder.keyed_state.java_values import Instant, LocalDate, LocalTime
from decoder.keyed_state.key_groups import key_group_of
from decoder.keyed_state.strings import read_string
from decoder.metadata import incremental, properties
from decoder.storage import StorageUnavailable, read_file
from decoder.urls import redact_url, redact_urls
from migrate.extensions.keyed_state.json_form import value_json
from migrate.extensions.keyed_state.listing import meaning
from migrate.extensions.keyed_state.select import choose_state
from migrate.inputs.flink.choose_source import source_positions
from migrate.inputs.flink.source import Source, SourceKind
from migrate.inputs.group_csv import read_group_csv
from migrate.inputs.offsets_json import read_starting_offsets
from migrate.model.errors import InputError, NoSuchName, Refused, UsageError
from migrate.model.positions import SPARK, Marker, Position, PositionSet, PositionState, Unknown
from migrate.model.topic_pattern import topic_pattern
from migrate.moves.options import MoveArguments, move_request
from migrate.storage.files import Files
from migrate.storage.new_file import _apply_umask
from migrate.storage.uris import local_path, path_of
from tests.support.keyed_bytes import OPERATOR

# -- the decoder ----------------------------------------------------------------------------------


def test_cursor_advances_past_bytes_read_by_fast_path() -> None:
    cursor = Cursor(b"abcd", "bytes")
    assert cursor.attempt(lambda data, start, end: None) is None
    assert cursor.remaining == 4
    assert cursor.attempt(lambda data, start, end: (start + 3, data[start:end])) == b"abcd"
    assert cursor.remaining == 1
    assert not cursor.skip_if(b"x") and not cursor.skip_if(b"de") and cursor.remaining == 1
    assert cursor.skip_if(b"d") and cursor.remaining == 0


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (OSError(5, "no luck", "/other"), ErrorKind.UNREADABLE, "/other: cannot be read: no luck"),
        (OSError(5, "no luck"), ErrorKind.UNREADABLE, "/chk: cannot be read: no luck"),
        (OSError("just so"), ErrorKind.UNREADABLE, "/chk: cannot be read: just so"),
        (
            StorageUnavailable(5, "no answer", "s3://b/x"),
            ErrorKind.UNAVAILABLE,
            "s3://b/x: cannot be read: no answer",
        ),
    ],
)
def test_os_error_becomes_decode_error(error: OSError, kind: ErrorKind, told: str) -> None:
    with pytest.raises(DecodeError) as refused, translate_os_errors("/chk"):
        raise error
    assert (refused.value.kind, str(refused.value)) == (kind, told)


def test_rows_stored_in_columns_behave_like_tuple() -> None:
    columns = SplitColumns(["a", "a", "b"], [0, 1, 0], [5, 6, 7], [None, 9, None])
    rows = Rows[Split](3, columns.make_items, lambda: iter(()))
    whole = (Split("a", 0, 5, None), Split("a", 1, 6, 9), Split("b", 0, 7, None))
    assert (len(rows), tuple(rows), list(reversed(rows))) == (3, whole, list(reversed(whole)))
    assert [rows[n] for n in (0, 2, -1, -3)] == [whole[0], whole[2], whole[2], whole[0]]
    assert (rows[1:], rows[:-1], rows[::2]) == (whole[1:], whole[:-1], whole[::2])
    for beyond in (3, -4):
        with pytest.raises(IndexError):
            rows[beyond]
    assert rows == whole and rows == list(whole) and rows != whole[:2] and rows != 3
    assert (hash(rows), repr(rows)) == (hash(whole), repr(whole))
    assert pickle.loads(pickle.dumps(rows)) == whole


def _run_of(number: int, size: int = 5) -> bytes:
    uri = b"s3://b/1"
    one = b"\0\x0a000123.sst\x02" + size.to_bytes(8, "big") + len(uri).to_bytes(2, "big") + uri
    return one * number


@pytest.mark.parametrize("number", [4, 128])
def test_consecutive_file_handles_of_same_shape_are_skipped_together(number: int) -> None:
    run = _run_of(number)
    assert incremental._skip_run(b"?" + run + b"?", 1, number) == (1 + len(run), 5 * number)
    assert incremental._skip_files(run, 0, number) == (len(run), 5 * number)
    # The last handle has a different shape, or is cut off.
    assert incremental._skip_run(run[:-19] + b"\x06" + run[-18:], 0, number) is None
    assert incremental._skip_run(run[:-1], 0, number) is None


def test_checkpoint_type_is_parsed_once_for_identical_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Short streams are cached, because the checkpoints of a job end in the same bytes."""
    from tests.support.keyed_bytes import _properties

    stream = _properties()
    walked: list[int] = []
    read = properties._read

    def counted(cursor: Cursor) -> Any:
        walked.append(cursor.remaining)
        return read(cursor)

    monkeypatch.setattr(properties, "_read", counted)
    properties._parse_stream.cache_clear()
    first = properties.read_checkpoint_type(Cursor(stream, "f"))
    again = properties.read_checkpoint_type(Cursor(stream, "f"))
    assert first == again
    assert walked == [len(stream)]
    cursor = Cursor(stream + b"more", "f")
    properties.read_checkpoint_type(cursor)
    assert cursor.remaining == 4
    long = stream + bytes(4096)
    properties.read_checkpoint_type(Cursor(long, "f"))
    properties.read_checkpoint_type(Cursor(long, "f"))
    assert walked[2:] == [len(long)] * 2


@pytest.mark.parametrize(
    ("date", "told"),
    [
        (LocalDate(0, 1, 1), "0000-01-01"),
        (LocalDate(-1, 1, 1), "-0001-01-01"),
        (LocalDate(9999, 12, 31), "9999-12-31"),
        (LocalDate(10_000, 1, 1), "+10000-01-01"),
    ],
)
def test_dates_are_printed_as_in_java(date: LocalDate, told: str) -> None:
    assert str(date) == told


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 16_382, 16_383, 300])
def test_flink_strings_of_boundary_lengths_are_read(length: int) -> None:
    for character in ("a", "é", "€"):
        text = character * length
        data = _flinks(text)
        assert read_string(b"?" + data + b"?", 1) == (text, 1 + len(data))
        with pytest.raises(IndexError):
            read_string(data[:-1], 0)


def _flinks(text: str) -> bytes:
    """Encode a string like StringValue.writeString @ Flink 2.2.0."""
    units = text.encode("utf-16-be")
    numbers = [len(text) + 1, *(units[n] << 8 | units[n + 1] for n in range(0, len(units), 2))]
    out = bytearray()
    for number in numbers:
        while number >= 0x80:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        out.append(number)
    return bytes(out)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("file:/data/a:b@c", "file:/data/a:b@c"),
        ("file:///a:b@c", "file:///a:b@c"),
        ("dbfs:/a:b@c", "dbfs:/a:b@c"),
        ("file://u:p@host/x", "file://…@host/x"),
        ("s3:/AK:SECRET@b/x", "s3:/…@b/x"),
        ("s3://AK:SECRET@b/x", "s3://…@b/x"),
        ("s3://b/a@c:1", "s3://b/a@c:1"),
        ("http://host:8081/x@y", "http://host:8081/x@y"),
        ("http://u@host/x", "http://…@host/x"),
        ("abfs://c@account/x", "abfs://c@account/x"),
        ("abfs://c:k@account/x", "abfs://…@account/x"),
        ("k8s://https://u:p@host", "k8s://https://…@host"),
        ("s3://b/x?sig=abc&sv=1", "s3://b/x?sig=…&sv=…"),
        ("file:/x?a=b", "file:/x?a=b"),
        ("s3://b/chk-?", "s3://b/chk-?"),
        ("c:/x:y@z", "c:/x:y@z"),
        ("plain", "plain"),
    ],
)
def test_redact_url_hides_credentials(url: str, shown: str) -> None:
    assert redact_url(url) == shown
    assert redact_urls(f"reading {url}, then more") == f"reading {shown}, then more"


_LONG, _TEXT = keyed.Scalar(keyed.Kind.LONG), keyed.Scalar(keyed.Kind.STRING)


def test_key_without_computable_java_hash_code_has_unknown_key_group() -> None:
    pojo = keyed.Pojo("A", ())
    name = "org.apache.flink.api.java.tuple.Tuple2"

    def pair(class_name: str, *parts: keyed.Type) -> keyed.Struct:
        named = tuple(keyed.Field(f"f{n}", part) for n, part in enumerate(parts))
        return keyed.Struct(class_name, named)

    assert key_group_of(pair(name, _LONG, _TEXT), 128) is not None
    for unknown in (
        pair(name, _LONG, pojo),
        pair("com.shop.Pair", _LONG, _TEXT),
        keyed.Either(_LONG, pojo),
        keyed.Either(pojo, _LONG),
        keyed.Scalar(keyed.Kind.LONG, mutable=True),
        pojo,
    ):
        assert key_group_of(unknown, 128) is None
    group = key_group_of(pair(name, _LONG, _TEXT), 128)
    assert group is not None
    assert group(b"", 0, {"f0": 1, "f1": "a\ufffd"}) is None  # original unknown
    assert group(b"", 0, {"f0": 1, "f1": "a"}) is not None


# -- display of keyed state -----------------------------------------------------------------------


def _state(name: str, kind: StateKind = StateKind.VALUE, key: keyed.Type = _LONG) -> KeyedState:
    return KeyedState(
        name, kind, key, _TEXT, None, _LONG, False, None, OPERATOR.hex(), None, None, 128, ()
    )


_SQL_KEY = keyed.Sql(keyed.SqlRow(()))


@pytest.mark.parametrize(
    ("state", "beside", "told"),
    [
        (
            _state("_timer_state/event_user-timers", StateKind.TIMERS),
            set(),
            "pending event-time timers of its function",
        ),
        (
            _state("_timer_state/processing_window-timers", StateKind.TIMERS),
            set(),
            "pending processing-time timers of windows",
        ),
        (_state("_timer_state/event_theirs", StateKind.TIMERS), set(), "pending event-time timers"),
        (_state("theirs", StateKind.TIMERS), set(), "pending timers"),
        (_state("window-contents"), {"window-contents"}, "contents of each window"),
        (
            _state("window-contents"),
            {"merging-window-set"},
            "contents of each window, under f1 of merging-window-set",
        ),
        (_state("count"), set(), ""),
        (_state("count"), {"window-contents"}, "elements counted by the window's trigger"),
        (_state("other"), {"window-contents"}, ""),
        (_state("accState"), set(), ""),
        (_state("accState", key=_SQL_KEY), set(), "SQL accumulators"),
        (
            _state("distinctAcc_0", key=_SQL_KEY),
            set(),
            "SQL DISTINCT: values, and the aggregates that have seen them",
        ),
        (_state("agg0$map", key=_SQL_KEY), set(), "SQL: data view of an aggregate function"),
        (
            _state("distinctAcc_0_null_state", key=_SQL_KEY),
            set(),
            "SQL: data view of an aggregate function, for NULL",
        ),
        (_state("theirs", key=_SQL_KEY), set(), ""),
    ],
)
def test_meaning_of_flink_internal_state_is_described(
    state: KeyedState, beside: set[str], told: str
) -> None:
    assert meaning(state, beside) == told


@pytest.mark.parametrize("operator", [None, "theirs"])
def test_choose_state_fails_for_checkpoint_without_keyed_state(operator: str | None) -> None:
    with pytest.raises(NoSuchName, match=r"^this checkpoint contains no keyed state$"):
        choose_state(KeyedStates((), ()), operator, "count")


def test_values_without_json_equivalent_become_strings() -> None:
    inf = float("inf")
    told = [value_json(one) for one in (inf, -inf, float("nan"), 0.5, b"\0\xff")]
    assert told == ["Infinity", "-Infinity", "NaN", 0.5, "00ff"]
    assert value_json(Instant(0, 1)) == "1970-01-01T00:00:00.000000001Z"
    assert value_json([LocalTime(1, 2, 0, 0), {"a": LocalDate(2024, 2, 29)}, None]) == [
        "01:02",
        {"a": "2024-02-29"},
        None,
    ]


# -- moves ----------------------------------------------------------------------------------------


def test_topic_pattern_is_rejected_with_topic_map_on_same_cluster() -> None:
    """With a target cluster, a topic pattern can be combined with a topic map."""
    both: MoveArguments = {"topic_pattern": "a.*", "topic_map": {"a": "b"}}
    with pytest.raises(UsageError, match="cannot be combined with topic_map"):
        move_request(SPARK, both)
    brokers: MoveArguments = {"bootstrap_servers": "a:1", "to_bootstrap_servers": "b:1"}
    for arguments in ({"topic_pattern": "a.*"}, {**brokers, **both}):
        policies = move_request(SPARK, cast(MoveArguments, arguments)).policies
        assert policies.topic_pattern == topic_pattern("a.*")


def _source(*positions: Position) -> Source:
    kind = SourceKind.KAFKA_SOURCE
    return Source("a" * 32, None, None, kind, 1, 128, {None: True}, positions)


def test_positions_of_sources_are_merged_and_conflicts_are_refused() -> None:
    at = PositionState.NEXT
    five, lost = Position("t", 0, at, 5), Position("t", 1, PositionState.UNRESOLVED, None)
    earliest = Position("u", 0, PositionState.EARLIEST, Marker.EARLIEST)
    assert source_positions("chk", [_source(five, lost), _source(five, earliest)], "n") == (
        PositionSet(
            "chk",
            {("t", 0): 5, ("t", 1): Unknown.UNRESOLVED, ("u", 0): Marker.EARLIEST},
            "n",
        )
    )
    with pytest.raises(Refused) as refused:
        source_positions("chk", [_source(lost), _source(Position("t", 1, at, 0))])
    assert refused.value.codes == ["sources-at-different-positions"]
    assert refused.value.facts == [
        {"label": "chk", "partition": "t-1", "first": "unresolved", "second": "0"}
    ]
    east, west = (Position("t", 0, at, 5, cluster=one) for one in ("east", "west"))
    assert source_positions("chk", [_source(east)]).starts == {("t", 0): 5}
    with pytest.raises(Refused) as refused:
        source_positions("chk", [_source(west, east)])
    assert refused.value.codes == ["side-in-several-clusters"]
    assert refused.value.facts == [{"label": "chk", "clusters": ["east", "west"]}]


def test_starting_offsets_accept_markers_and_reject_out_of_range_numbers(tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    file.write_text('{"t":{"0":0,"1":-2,"2":-1,"2147483647":9223372036854775807}}')
    assert read_starting_offsets("json", file).starts == {
        ("t", 0): 0,
        ("t", 1): Marker.EARLIEST,
        ("t", 2): Marker.LATEST,
        ("t", 2**31 - 1): 2**63 - 1,
    }
    for text in ('{"t":{"0":-3}}', '{"t":{"2147483648":0}}', '{"t":{"0":9223372036854775808}}'):
        file.write_text(text)
        with pytest.raises(InputError):
            read_starting_offsets("json", file)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_seed_directory_gets_mode_from_umask(tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    stage.mkdir(mode=0o700)
    _apply_umask(stage)
    assert stage.stat().st_mode & 0o7777 == 0o750
    assert os.umask(0o027) == 0o027


@pytest.mark.parametrize("read", [read_starting_offsets, read_group_csv])
def test_binary_file_and_device_are_not_read_as_text(tmp_path: Path, read: Any) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError) as refused:
        read("side", file)
    assert refused.value.codes == ["not-utf-8"]
    assert refused.value.facts == [{"path": file, "reason": "invalid start byte"}]
    with pytest.raises(InputError) as refused:
        read("side", Path("/dev/zero"))
    assert refused.value.codes == ["cannot-read-file"]
    assert refused.value.facts[0]["reason"] == "a pipe or a device, not a regular file"


def test_read_file_enforces_size_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_file(file, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes, the limit for this file") as caught:
        read_file(file, 4)
    assert caught.value.filename == str(file)
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "missing")
    # stat reports the size 0 for files in /proc, although they have content.
    made_up = read_file("/proc/self/status")
    assert made_up.startswith(b"Name:") and made_up.endswith(b"\n")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("/data/chk-7", "/data/chk-7"),
        ("chk-7", "chk-7"),
        ("file:///data/chk-7", "/data/chk-7"),
        ("file:/data/chk-7", "/data/chk-7"),
        ("s3a://b/chk-7", "s3a://b/chk-7"),
    ],
)
def test_file_uri_becomes_path_and_other_locations_are_unchanged(name: str, path: str) -> None:
    assert path_of(name, Files()) == path


@pytest.mark.parametrize(
    ("name", "shown", "code"),
    [
        ("ftp://host/x", "ftp://host/x", "uri-not-supported"),
        ("s3://AK:SECRET@b/x", "s3://…@b/x", "credentials-in-uri"),
    ],
)
def test_refusal_of_unusable_uri_hides_credentials(name: str, shown: str, code: str) -> None:
    with pytest.raises(InputError) as refused:
        path_of(name, Files())
    assert refused.value.codes == [code]
    assert refused.value.facts[0]["uri"] == shown
    assert "SECRET" not in str(refused.value)
    with pytest.raises(UsageError):
        local_path(name)
