"""Check the output contract of ``migrate state`` with state written by Flink."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pyarrow import parquet

from decoder.keyed_state import read_keyed_states, streams
from migrate.extensions.keyed_state import cli as state_command
from migrate.extensions.keyed_state.listing import meaning
from migrate.extensions.keyed_state.read_state import write_state
from migrate.extensions.keyed_state.report import entries_json, states_table
from migrate.model.log import watchers
from migrate.report.schemas import json_schema
from tests.golden.state.generate import STATE
from tests.golden.state.test_state_manifest import ENTRIES
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.keyed_checkpoint import write_totals
from tests.support.keyed_rows import expected_states

_BY_NAME = {entry["name"]: entry for entry in ENTRIES}


def _golden(name: str) -> Path:
    return STATE / str(_BY_NAME[name]["path"])


def _states(*arguments: str | Path) -> list[dict[str, Any]]:
    done = migrate("state", *arguments, "--format", "json")
    assert done.code == 0, done.stderr
    report = json.loads(done.stdout)
    jsonschema.validate(report, json_schema("state"), jsonschema.Draft202012Validator)
    states: list[dict[str, Any]] = report["states"]
    return states


def _lines(text: str) -> Counter[str]:
    return Counter(json.dumps(json.loads(line), sort_keys=True) for line in text.splitlines())


def _told(entries: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(entry, sort_keys=True) for entry in entries)


@pytest.mark.parametrize("version", ["1.15", "1.20", "2.2"])
def test_state_list_matches_states_restored_by_flink(version: str) -> None:
    entry = _BY_NAME[f"{version}/kinds/canonical"]
    listed = _states(STATE / entry["path"])
    expected = json.loads((STATE / entry["expected"]).read_text())
    assert Counter(
        (one["operator_id"], one["uid"], one["name"], one["state"], one["kind"]) for one in listed
    ) == Counter(
        (of["operator_id"], of["uid"], of["name"], state["state"], state["kind"])
        for of in expected
        for state in of["states"]
    )
    types = {
        one["state"]: (one["key_type"], one["namespace_type"], one["value_type"], one["ttl"])
        for one in listed
    }
    assert types["value"] == ("BIGINT", None, "BIGINT", False)
    assert types["lasting-list"] == ("BIGINT", None, "ARRAY<STRING>", True)
    assert types["map"] == ("BIGINT", None, "BIGINT", False)
    assert types["aggregating"] == ("BIGINT", None, "STRUCT<f0: BIGINT, f1: DOUBLE>", False)
    assert types["_timer_state/event_user-timers"] == ("BIGINT", None, "BIGINT", False)
    assert all(one["readable"] and one["reason"] is None for one in listed)


def test_state_list_shows_spark_types_including_structs_for_windows() -> None:
    types = {
        (one["name"], one["state"]): (one["namespace_type"], one["value_type"])
        for one in _states(_golden("2.2/windows/canonical"))
    }
    window = "STRUCT<start: BIGINT, end: BIGINT>"
    row = "STRUCT<f0: STRING, f1: BIGINT, f2: BIGINT>"
    assert types["TumblingEventTimeWindows", "window-contents"] == (window, row)
    assert types["GlobalWindows", "count"] == (None, "BIGINT")
    decimals = {one["value_type"] for one in _states(_golden("2.2/sql-groups/canonical"))}
    assert any("DECIMAL(10,2)" in (type_ or "") for type_ in decimals)


@pytest.mark.parametrize(
    ("name", "operator", "state"),
    [
        ("2.2/kinds/canonical", "kinds", "lasting-map"),  # inline in _metadata
        ("1.15/files/retained", None, "lasting-list"),
        ("1.20/file-merging/retained", None, "map"),
        ("2.2/rocksdb/native", None, "map"),
        ("1.20/compressed/native", None, "list"),
        ("2.2/windows/canonical", "sessions", "merging-window-set"),
        ("2.2/composites/canonical", None, "either"),
        ("1.20/sql-rows/canonical", None, "deduplicate-state"),
        ("2.2/windows/canonical", "tumbling", "_timer_state/event_window-timers"),
        ("2.2/windows/native", "evicted", "window-contents"),
    ],
)
def test_state_entries_are_printed_as_json_lines(
    name: str, operator: str | None, state: str
) -> None:
    chosen = ["--operator", operator] if operator else []
    done = migrate("state", _golden(name), *chosen, "--state", state)
    assert (done.code, done.stderr) == (0, "")
    told = [
        one["entries"]
        for (of, own), one in expected_states(_BY_NAME[name]).items()
        if own == state and (operator is None or of == _operator_id(name, operator))
    ]
    assert told and told[0]
    assert _lines(done.stdout) == _told(told[0])


def _operator_id(name: str, uid: str) -> str:
    operators = json.loads((STATE / _BY_NAME[name]["expected"]).read_text())
    return str(next(one["operator_id"] for one in operators if one["uid"] == uid))


def test_csv_columns_match_fields_of_state() -> None:
    entry = _BY_NAME["2.2/kinds/canonical"]
    done = migrate("state", STATE / entry["path"], "--state", "lasting-map", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(rows[0]) == ["key_group", "key", "map_key", "value", "last_access"]
    (told,) = (
        one["entries"] for (_, name), one in expected_states(entry).items() if name == "lasting-map"
    )
    assert Counter(tuple(row.values()) for row in rows) == Counter(
        tuple("" if one[name] is None else str(one[name]) for name in rows[0]) for one in told
    )
    windows = _golden("2.2/windows/canonical")
    lists = migrate(
        *("state", windows, "--operator", "late", "--state", "window-contents"),
        *("--format", "csv", "--limit", "1"),
    )
    (row,) = csv.DictReader(io.StringIO(lists.stdout))
    assert json.loads(row["namespace"]).keys() == {"start", "end"}
    assert isinstance(json.loads(row["value"]), list)


def test_table_of_state_shows_first_50_entries_and_message_reports_that_more_exist(
    tmp_path: Path,
) -> None:
    chk = write_totals(tmp_path / "savepoint-1", 60)
    done = migrate("state", chk, "--state", "total", "--format", "table")
    assert len(done.stdout.splitlines()) == 51
    assert "shows only the first 50 entries" in done.stderr
    done = migrate("state", chk, "--state", "total", "--format", "table", "--limit", "60")
    assert (len(done.stdout.splitlines()), done.stderr) == (61, "")


# -- selection of a state ------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.15", "2.2"])
def test_operator_is_selected_by_uid_id_or_name(version: str) -> None:
    """Before Flink 2.0, the metadata contains no UID, but the option accepts the UID."""
    name = f"{version}/windows/canonical"
    operator_id = _operator_id("2.2/windows/canonical", "sessions")
    names = ["sessions", operator_id, operator_id.upper()]
    outputs = {
        migrate("state", _golden(name), "--operator", one, "--state", "merging-window-set").stdout
        for one in names
    }
    assert len(outputs) == 1 and outputs != {""}
    if version == "2.2":
        listed = _states(_golden(name), "--operator", "Interval Join")
        assert {one["uid"] for one in listed} == {"interval-join"}


def _refused(code: int, done: Result, *says: str) -> None:
    assert (done.code, done.stdout) == (code, ""), done
    assert all(one in done.stderr for one in says), done.stderr
    assert "Traceback" not in done.stderr


def test_misspelled_operator_or_state_gets_suggestions() -> None:
    windows = _golden("2.2/windows/canonical")
    _refused(
        2,
        migrate("state", windows, "--operator", "session", "--state", "window-contents"),
        *("'session'", "did you mean 'sessions'", _operator_id("2.2/windows/canonical", "late")),
    )
    _refused(2, migrate("state", windows, "--operator", "nothing-like-it"), "'sliding'")
    _refused(
        2,
        migrate("state", windows, "--operator", "sessions", "--state", "window-content"),
        *("did you mean 'window-contents'", "'merging-window-set'"),
    )
    _refused(2, migrate("state", windows, "--limit", "3"), "--state")


def test_state_name_in_several_operators_requires_operator_option() -> None:
    done = migrate("state", _golden("2.2/windows/canonical"), "--state", "window-contents")
    _refused(4, done, "--operator", "'tumbling'", "'sliding'")


def test_newest_checkpoint_in_job_directory_is_read(tmp_path: Path) -> None:
    job = tmp_path / "job"
    shutil.copytree(_golden("2.2/kinds/retained"), job / "chk-9")
    write_totals(job / "chk-8", 3)
    assert {one["uid"] for one in _states(job)} == {"kinds"}
    assert {one["uid"] for one in _states(job / "chk-9" / "_metadata")} == {"kinds"}
    _refused(3, migrate("state", tmp_path / "nothing"), "nothing")


def test_error_for_state_with_operator_before_slash_suggests_two_options(tmp_path: Path) -> None:
    """``prime`` and ``verify-state`` accept OPERATOR/NAME.

    ``state`` has an option for each part.
    """
    chk = write_totals(tmp_path / "chk-8", 3)
    _refused(
        2,
        migrate("state", chk, "--state", "totals/total"),
        "no keyed state 'totals/total'; pass --operator totals and --state total",
    )


def test_checkpoint_without_keyed_state_has_empty_list(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-1", {0: splits("orders", [1])})
    done = migrate("state", chk)
    assert (done.code, done.stdout) == (0, "")
    assert "no keyed state" in done.stderr
    assert _states(chk) == []
    _refused(2, migrate("state", chk, "--operator", "x", "--state", "y"), "no keyed state")


# -- unreadable states ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "operator", "state", "named"),
    [
        ("2.2/kryo/canonical", None, "secret", "testjobs.Secret"),
        ("2.2/pojos/canonical", None, "tree", "testjobs.Things$Tree"),
        # The class of these values appears only when the values are read.
        ("1.20/pojos/canonical", None, "manager", "testjobs.Things$Manager"),
        ("2.2/pojos/native", None, "manager", "testjobs.Secret"),
    ],
)
@pytest.mark.parametrize("format", ["json", "csv", "table"])
def test_error_for_unreadable_state_contains_its_class(
    name: str, operator: str | None, state: str, named: str, format: str
) -> None:
    chosen = ["--operator", operator] if operator else []
    done = migrate("state", _golden(name), *chosen, "--state", state, "--format", format)
    _refused(3, done, named)


def test_state_list_reports_reason_for_unreadable_state() -> None:
    by_name = {one["state"]: one for one in _states(_golden("2.2/kryo/canonical"))}
    secret = by_name["secret"]
    assert (secret["readable"], secret["value_type"], secret["key_type"]) == (False, None, "INT")
    assert "testjobs.Secret" in secret["reason"]
    assert by_name["before"]["readable"]


def test_state_list_reports_unreadable_field() -> None:
    by_name = {one["state"]: one for one in _states(_golden("2.2/pojos/canonical"))}
    assert by_name["holder"]["reason"] == (
        "testjobs.Secret: Kryo writes it, and no snapshot contains its fields (field 'secret')"
    )
    assert by_name["then"]["readable"]


def test_state_list_warns_of_classes_stored_in_values() -> None:
    by_name = {one["state"]: one for one in _states(_golden("2.2/kryo/canonical"))}
    assert by_name["list"]["readable"]
    assert by_name["list"]["reason"] == (
        "java.lang.Object: Kryo stores each object's class in the values, so unreadable "
        "values are found only when they are read"
    )
    assert by_name["instant"]["readable"] and by_name["instant"]["reason"] is None
    shown = migrate("state", _golden("2.2/kryo/canonical"), "--format", "table")
    assert by_name["list"]["reason"] in shown.stdout


def test_changelog_state_is_refused() -> None:
    _refused(3, migrate("state", _golden("1.20/changelog/retained")), "changelog")
    done = migrate(*("state", _golden("1.20/changelog/retained")), "--state", "value")
    _refused(3, done, "changelog")


# -- streaming -----------------------------------------------------------------------------------


def test_limit_option_stops_reading_state_before_damaged_entries(tmp_path: Path) -> None:
    chk = write_totals(tmp_path / "savepoint-1", 500)
    state = chk / "totals"
    data = bytearray(state.read_bytes())
    data[-40] ^= 0x55  # in the last key groups
    state.write_bytes(bytes(data))
    limited = migrate("state", chk, "--state", "total", "--limit", "100")
    assert (limited.code, limited.stderr, len(limited.stdout.splitlines())) == (0, "", 100)
    _refused(3, migrate("state", chk, "--state", "total"), "'total'")


@pytest.mark.parametrize("name", ["2.2/kinds/canonical", "1.20/file-merging/retained"])
def test_entries_are_written_to_parquet_file(name: str, tmp_path: Path) -> None:
    state = "lasting-map" if name == "2.2/kinds/canonical" else "map"
    file = tmp_path / "entries.parquet"
    done = migrate("state", _golden(name), "--state", state, "--output", file)
    (entries,) = [
        expected["entries"]
        for (_, named), expected in expected_states(_BY_NAME[name]).items()
        if named == state
    ]
    written = parquet.read_table(file).select(["key_group", "map_key"]).to_pylist()
    assert _told(written) == _told(
        {"key_group": entry["key_group"], "map_key": entry["map_key"]} for entry in entries
    )
    assert (done.code, done.stdout) == (0, "")
    assert done.stderr == f"wrote {file}: {len(entries)} entries\n"
    before = file.read_bytes()
    again = migrate("state", _golden(name), "--state", state, "--output", file)
    assert (again.code, again.stderr.splitlines()[0]) == (
        4,
        f"refused: {file} already exists; choose a new file [already-exists]",
    )
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "ending"), [("t.csv", ".csv"), ("t.JSON", ".JSON"), ("t.parquet.gz", ".gz")]
)
def test_output_file_with_extension_of_different_format_is_refused(
    name: str, ending: str, tmp_path: Path
) -> None:
    """Regression: `--output t.csv` wrote a Parquet file named t.csv."""
    chk = write_totals(tmp_path / "savepoint-1", 3)
    refused = migrate("state", chk, "--state", "total", "--output", tmp_path / name)
    assert (refused.code, refused.stderr) == (
        2,
        f"migrate: --output {tmp_path / name}: the file would be Parquet, not {ending}; choose a "
        "name that ends with .parquet; for CSV or JSON, use --format and redirect stdout\n",
    )
    assert not (tmp_path / name).exists()
    for good in ("a.parquet", "b.PARQUET", "c.pq", "d"):
        assert write_state(chk, tmp_path / good, state="total") == 3
        assert parquet.read_table(tmp_path / good).num_rows == 3


class _Watcher:
    def __init__(self) -> None:
        self.told: list[str] = []

    def begin(self, what: str) -> None:
        self.told.append(f"begin {what}")

    def seen(self, text: str) -> None:
        self.told.append(text)

    def end(self) -> None:
        self.told.append("end")


def test_long_output_reports_its_progress(tmp_path: Path) -> None:
    """Regression: `state --output` was silent for half a minute."""
    chk, watcher = write_totals(tmp_path / "savepoint-1", 20_000), _Watcher()
    watchers.append(watcher)
    try:
        write_state(chk, tmp_path / "t.parquet", state="total")
        writing = watcher.told[watcher.told.index("end") + 1 :]
        done = migrate("state", chk, "--state", "total", "--format", "csv")
    finally:
        watchers.remove(watcher)
    begin, *seen, end = writing
    assert (begin, end) == (f"begin writing {tmp_path / 't.parquet'}", "end")
    counts = [int(text.removesuffix(" entries")) for text in seen]
    assert len(counts) > 1 and counts == sorted(counts) and counts[-1] == 20_000
    # Progress is also reported here, because stdout is not a terminal.
    assert done.stdout.count("\n") == 20_001
    assert "begin printing the entries of total" in watcher.told
    assert watcher.told[-2:] == ["20000 entries", "end"]


def test_damaged_state_leaves_no_parquet_file(tmp_path: Path) -> None:
    chk = write_totals(tmp_path / "savepoint-1", 500)
    state = chk / "totals"
    data = bytearray(state.read_bytes())
    data[-40] ^= 0x55
    state.write_bytes(bytes(data))
    done = migrate("state", chk, "--state", "total", "--output", tmp_path / "new" / "x.parquet")
    assert done.code == 2 and "--output" in done.stderr  # the folder does not exist
    _refused(3, migrate("state", chk, "--state", "total", "--output", tmp_path / "x"), "'total'")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["savepoint-1"]


def test_partial_output_before_damage_is_reported_as_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_command, "_BUFFER_SIZE", 10_000)
    chk = write_totals(tmp_path / "savepoint-1", 500)
    state = chk / "totals"
    data = bytearray(state.read_bytes())
    data[-40] ^= 0x55
    state.write_bytes(bytes(data))
    done = migrate("state", chk, "--state", "total")
    assert done.code == 3
    assert 100 < len(done.stdout.splitlines()) < 500
    assert "the printed entries are incomplete" in done.stderr


@pytest.mark.slow
def test_entries_are_streamed_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One key group at a time is in memory, as for files of more than 8 MB."""
    monkeypatch.setattr(streams, "_MAX_WHOLE_BYTES", 0)
    monkeypatch.setattr(streams, "_MIN_READ_BYTES", 0)
    count = 10_000
    chk = write_totals(tmp_path / "savepoint-1", count)
    (state,) = read_keyed_states(chk).states
    tracemalloc.start()
    try:
        lines = sum(1 for _ in entries_json(state, state.entries()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert lines == count
    assert peak < (chk / "totals").stat().st_size / 3


@pytest.mark.slow
def test_closing_pipe_while_entries_are_printed_is_not_a_failure(tmp_path: Path) -> None:
    chk = write_totals(tmp_path / "savepoint-1", 4_000)
    command = [sys.executable, "-m", "migrate", "state", str(chk), "--state", "total"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        assert json.loads(running.stdout.readline()).keys() == {"key_group", "key", "value"}
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == 0


# -- tables --------------------------------------------------------------------------------------


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("name", ["windows", "pojos", "sql-windows", "kinds", "kryo"])
def test_table_of_states_does_not_break_words_at_80_columns(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    states = read_keyed_states(_golden(f"2.2/{name}/canonical")).states
    lines = states_table(states, _Terminal()).splitlines()
    assert max(len(line) for line in lines if not line.startswith("operator ")) <= 80
    words = set(" ".join(lines).split())
    for state in states:
        assert state.name in words
        if state.reason is not None:
            assert set(state.reason.split()) <= words
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "state", "says"),
    [
        ("windows", "window-contents", "contents of each window, under f1 of merging-window-set"),
        (
            "windows",
            "merging-window-set",
            "merging windows: f0 is the current window, f1 the window",
        ),
        ("windows", "_timer_state/event_window-timers", "pending event-time timers of windows"),
        ("windows", "count", "elements counted by the window's trigger"),
        ("windows", "LEFT_BUFFER", "interval join: left side"),
        ("sql-groups", "accState", "SQL accumulators"),
        ("sql-groups", "distinctAcc_0", "SQL DISTINCT"),
        ("sql-windows", "session-window-mapping", "SQL merging windows"),
        ("sql-joins", "left-records", "SQL join: left side"),
        ("sql-ranks", "data-state-with-append", "SQL top n"),
    ],
)
def test_internal_states_of_flink_are_described(name: str, state: str, says: str) -> None:
    done = migrate("state", _golden(f"2.2/{name}/canonical"))
    assert any(state in line and says in line for line in done.stdout.splitlines()), done.stdout


def test_only_contents_of_merging_windows_are_described_by_merging_window_set() -> None:
    done = migrate("state", _golden("2.2/windows/canonical"), "--operator", "tumbling")
    everything = migrate("state", _golden("2.2/windows/canonical"))
    assert "contents of each window" in done.stdout
    assert "merging" not in done.stdout
    # Both states belong to session windows.
    assert everything.stdout.count("under f1 of merging-window-set") == 2


@pytest.mark.parametrize("name", ["accState", "count", "left", "timeout", "LEFT"])
def test_state_of_job_is_not_mistaken_for_internal_state(tmp_path: Path, name: str) -> None:
    done = migrate("state", write_totals(tmp_path / "savepoint-1", 1, name))
    assert name in done.stdout
    assert "MEANING" not in done.stdout


def test_every_internal_state_of_sql_jobs_is_described() -> None:
    """In SQL jobs, every state is internal."""
    for entry in ENTRIES:
        if "/sql-" not in entry["name"]:
            continue
        states = read_keyed_states(STATE / entry["path"]).states
        names = {state.name for state in states}
        assert [state.name for state in states if not meaning(state, names)] == []
