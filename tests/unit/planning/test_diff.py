"""Compare two sides, verify a move, and render the results."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from decoder import read_checkpoint
from migrate.inputs.compared_sides import load_sides
from migrate.inputs.flink.choose_source import Choice, source_positions
from migrate.inputs.flink.extract import extract
from migrate.inputs.group_csv import group_csv, read_group_csv
from migrate.inputs.offsets_json import read_starting_offsets
from migrate.inputs.position_inputs import parse_side
from migrate.inputs.spark_query import QueryStart
from migrate.model.cluster_snapshot import (
    ClusterSnapshot,
    Committed,
    GroupView,
    LogRange,
    Question,
)
from migrate.model.errors import InputError, Refused, UsageError
from migrate.model.positions import Marker, PositionSet, Start, Unknown
from migrate.planning.diff import (
    Diff,
    Relation,
    deleted_record_warnings,
    diff,
    recreated_topic_warnings,
)
from migrate.planning.verify import (
    StartOutcome,
    Verification,
    VerifiedPartition,
    verify_group,
    verify_log,
    verify_query,
)
from migrate.report.diff import (
    diff_csv,
    diff_json,
    diff_table,
)
from migrate.report.diff_page import diff_page
from migrate.report.right_side import RightFormat, export_right_side
from migrate.report.schemas import json_schema
from migrate.report.verification import outcome_lines, summary_line
from tests.support.checkpoints import (
    OPERATOR_ID,
    SourceState,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import migrate
from tests.support.encoder import COMMITTED, EARLIEST, LATEST
from tests.support.golden import golden
from tests.support.reasons import message_of
from tests.support.spark_files import batch, spark_directory


def side(starts: Mapping[int, Start], topic: str = "t") -> PositionSet:
    return PositionSet("side", {(topic, partition): start for partition, start in starts.items()})


def logs(ranges: Mapping[int, tuple[int, int]]) -> dict[str, dict[int, LogRange]]:
    return {"t": {partition: LogRange(*bounds) for partition, bounds in ranges.items()}}


def relations(compared: Diff) -> list[Relation]:
    return [row.relation for row in compared.rows]


# -- diff ----------------------------------------------------------------------------------------


def test_diff_measures_right_side_relative_to_left_side() -> None:
    compared = diff(side({0: 5, 1: 5, 2: 5}), side({0: 5, 1: 8, 2: 1}), {})
    assert relations(compared) == [Relation.SAME, Relation.AHEAD, Relation.BEHIND]
    assert [row.difference for row in compared.rows] == [0, 3, -4]
    assert [row.records_between for row in compared.rows] == [0, 3, 4]


def test_difference_is_undefined_for_partition_missing_from_one_side() -> None:
    compared = diff(side({0: 5}), side({1: 5}), {})
    assert relations(compared) == [Relation.ONLY_LEFT, Relation.ONLY_RIGHT]
    assert [row.difference for row in compared.rows] == [None, None]


def test_diff_treats_offset_0_as_valid_offset() -> None:
    compared = diff(side({0: 0, 1: 0}), side({0: 0, 1: 7}), {})
    assert relations(compared) == [Relation.SAME, Relation.AHEAD]


def test_diff_sorts_rows_by_partition_number() -> None:
    compared = diff(side({10: 1, 9: 1}), side({100: 1, 2: 1}), {})
    assert [row.partition for row in compared.rows] == [2, 9, 10, 100]


def test_diff_resolves_earliest_to_log_start_offset_if_available() -> None:
    earliest = side({0: Marker.EARLIEST, 1: Marker.EARLIEST, 2: Marker.EARLIEST})
    compared = diff(earliest, side({0: 3, 1: 9, 2: 3}), logs({0: (3, 10), 1: (3, 10)}))
    assert relations(compared) == [Relation.SAME, Relation.AHEAD, Relation.UNRESOLVED]
    assert compared.rows[1].difference == 6


def test_diff_does_not_resolve_latest_to_current_log_end_offset() -> None:
    compared = diff(side({0: Marker.LATEST}), side({0: 10}), logs({0: (0, 10)}))
    assert relations(compared) == [Relation.UNRESOLVED]


@pytest.mark.parametrize(
    ("state", "differs"),
    [
        (Marker.EARLIEST, False),
        (Marker.LATEST, True),
        (Marker.COMMITTED, True),
        (Unknown.UNRESOLVED, True),
    ],
)
def test_equal_markers_count_as_difference_except_earliest(
    state: Marker | Unknown, differs: bool
) -> None:
    """The marker "latest" or "committed" can mean a different offset on each side."""
    assert diff(side({0: state}), side({0: state}), {}).differs is differs


def test_diff_record_count_excludes_offsets_outside_log() -> None:
    left, right = side({0: 5, 1: 5, 2: 1, 3: 30}), side({0: 20, 1: 50, 2: 4, 3: 40})
    ranges = logs({0: (10, 30), 1: (0, 30), 2: (10, 30), 3: (10, 30)})
    compared = diff(left, right, ranges)
    assert [row.difference for row in compared.rows] == [15, 45, 3, 10]
    assert [row.records_between for row in compared.rows] == [10, 25, 0, 0]


def test_diff_totals_count_offsets_ahead_and_offsets_behind_separately() -> None:
    compared = diff(side({0: 5, 1: 5, 2: 0}), side({0: 8, 1: 2, 3: 0}), {})
    totals = compared.totals
    assert (totals.offsets_ahead, totals.offsets_behind) == (3, 3)
    assert (totals.partitions, totals.ahead, totals.behind) == (4, 1, 1)
    assert (totals.only_left, totals.only_right, totals.same, totals.unresolved) == (1, 1, 0, 0)


def test_diff_totals_are_grouped_by_topic() -> None:
    left = PositionSet("left", {("a", 0): 1, ("b", 0): 1, ("b", 1): 1})
    right = PositionSet("right", {("a", 0): 3, ("b", 0): 1, ("b", 1): 0})
    by_topic = diff(left, right, {}).by_topic
    assert list(by_topic) == ["a", "b"]
    assert (by_topic["a"].offsets_ahead, by_topic["a"].offsets_behind) == (2, 0)
    assert (by_topic["b"].same, by_topic["b"].offsets_behind) == (1, 1)


# -- reports -------------------------------------------------------------------------------------


def _every_relation() -> Diff:
    left = side({0: 5, 1: 5, 2: 9, 3: 5, 5: Marker.LATEST, 6: Marker.EARLIEST})
    right = side({0: 5, 1: 8, 2: 1, 4: 5, 5: 7, 6: 2**63 - 1})
    return diff(left, right, logs({0: (0, 10), 6: (2, 2**63 - 1)}))


def test_diff_json_matches_schema() -> None:
    report = json.loads(diff_json(_every_relation()))
    jsonschema.Draft202012Validator.check_schema(json_schema("diff"))
    jsonschema.validate(report, json_schema("diff"), jsonschema.Draft202012Validator)
    assert {row["relation"] for row in report["partitions"]} == {r.value for r in Relation}
    assert report["partitions"][3]["right"] == {"state": "absent", "next_offset": None}
    assert report["partitions"][6]["left"] == {"state": "earliest", "next_offset": 2}
    assert report["partitions"][6]["difference"] == 2**63 - 3
    assert report["differs"] is True


def test_diff_json_escapes_undecodable_path() -> None:
    nameless = PositionSet("json:\udcff", {("t", 0): 1})
    assert json.loads(diff_json(diff(nameless, nameless, {})))["left"]["label"] == "json:\\udcff"


def test_lag_is_log_end_offset_minus_offset_of_right_side(tmp_path: Path) -> None:
    left = side({0: 5, 1: 5, 2: 5, 3: 5, 4: 5, 5: 5})
    right = side({0: 5, 1: 10, 2: 11, 3: Marker.LATEST, 5: Marker.EARLIEST})
    ranges = logs(dict.fromkeys(range(5), (0, 10)) | {5: (3, 10)})
    compared = diff(left, right, ranges)
    # An offset beyond the log end is of a different log, and `latest` is not the current log end.
    lags = [5, 0, None, None, None, 7]
    assert [row.lag for row in compared.rows] == lags
    assert (compared.totals.lag, compared.totals.lag_unknown) == (12, 2)
    report = json.loads(diff_json(compared))
    assert [row["lag"] for row in report["partitions"]] == lags
    assert (report["totals"]["lag"], report["totals"]["lag_unknown"]) == (12, 2)
    rows = csv.DictReader(io.StringIO(diff_csv(compared)))
    assert [row["lag"] for row in rows] == ["5", "0", "", "", "", "7"]
    assert re.search(r"LAG\n.* 10 +5\n", diff_table(compared, io.StringIO()))
    page = diff_page(compared, datetime(2026, 1, 2, tzinfo=timezone.utc))
    assert "lag of right" in page and '<td class="number">7</td>' in page
    without = diff(left, right, {})
    assert (without.totals.lag, without.totals.lag_unknown) == (None, 5)
    assert "LAG" not in diff_table(without, io.StringIO())


def test_diff_csv_has_one_row_per_partition() -> None:
    rows = list(csv.DictReader(io.StringIO(diff_csv(_every_relation()))))
    assert [row["relation"] for row in rows] == [
        "same",
        "ahead",
        "behind",
        "only-left",
        "only-right",
        "unresolved",
        "ahead",
    ]
    assert list(rows[1].values())[:5] == ["t", "1", "5", "8", "3"]
    assert (rows[3]["left"], rows[3]["right"], rows[3]["difference"]) == ("5", "", "")
    assert (rows[6]["left"], rows[6]["left_state"]) == ("2", "earliest")


def test_diff_table_shows_states_with_resolved_offsets() -> None:
    table = diff_table(_every_relation(), io.StringIO())
    assert "earliest = 2" in table
    assert "latest" in table
    assert "7 partitions: 1 same, 2 ahead (by" in table
    assert "\x1b" not in table


@pytest.mark.slow
def test_diff_table_has_one_row_per_topic_for_thousands_of_partitions() -> None:
    many = diff(side(dict.fromkeys(range(1500), 5)), side(dict.fromkeys(range(1500), 6)), {})
    folded = diff_table(many, io.StringIO())
    assert len(folded.splitlines()) < 10
    assert folded.count("1500") >= 3  # partitions, ahead, offsets ahead
    assert len(diff_table(many, io.StringIO(), every_partition=True).splitlines()) > 1500


@pytest.mark.parametrize("partitions", [1, 3000], ids=["by partition", "by topic"])
def test_diff_table_escapes_control_characters_in_names(partitions: int) -> None:
    name = "[red]\x1b[2J\u202e"
    hostile = side(dict.fromkeys(range(partitions), 1), topic=name)
    table = diff_table(diff(hostile, PositionSet(name, hostile.starts, name), {}), io.StringIO())
    assert table.count("[red]\\x1b[2J\\u202e") == 3  # the side, its note, and the one row
    assert "\x1b" not in table


# -- checkpoints ---------------------------------------------------------------------------------


def test_source_positions_keep_markers_of_checkpoint(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3, EARLIEST, LATEST, COMMITTED])})
    extraction = extract(read_checkpoint(str(chk)))
    assert source_positions("chk", extraction.sources).starts == {
        ("t", 0): 3,
        ("t", 1): Marker.EARLIEST,
        ("t", 2): Marker.LATEST,
        ("t", 3): Marker.COMMITTED,
    }


@pytest.mark.parametrize(("other", "ambiguous"), [(1, False), (2, True), (EARLIEST, True)])
def test_checkpoint_with_conflicting_sources_is_refused_as_diff_side(
    tmp_path: Path, other: int, ambiguous: bool
) -> None:
    first = source_operator(SourceState({0: splits("t", [1])}))
    second = source_operator(
        SourceState({0: splits("t", [other])}, operator_id=bytes(range(16, 32)))
    )
    chk = parse_side(str(write_checkpoint(tmp_path / "chk-7", first, second)))
    if ambiguous:
        with pytest.raises(Refused) as refused:
            load_sides(chk, chk, None)
        assert refused.value.codes == ["sources-at-different-positions"]
        assert message_of(refused.value).facts["partition"] == "t-0"
        chosen = load_sides(chk, chk, None, Choice(source=OPERATOR_ID.hex()))
        assert chosen.left.starts == {("t", 0): 1}
    else:
        loaded = load_sides(chk, chk, None).left
        assert (loaded.starts, loaded.note) == ({("t", 0): 1}, "snapshot 7")


# -- files ---------------------------------------------------------------------------------------


def test_starting_offsets_file_may_contain_markers(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    path.write_text('\ufeff{"t":{"0":7,"10":-2,"2":-1},"<u>":{"0":9223372036854775807}}\n')
    assert read_starting_offsets("json:x", path).starts == {
        ("t", 0): 7,
        ("t", 10): Marker.EARLIEST,
        ("t", 2): Marker.LATEST,
        ("<u>", 0): 2**63 - 1,
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is not valid JSON"),
        ("[]", "the JSON is not an object of topics"),
        ('{"t":5}', "the value of topic t is not an object of partitions"),
        ('{"t":{"0":-3}}', "-3 is neither an offset nor -1 (latest) nor -2 (earliest)"),
        ('{"t":{"0":1.0}}', "'t' partition 0: 1.0 is not an offset"),
        ('{"t":{"0":true}}', "'t' partition 0: True is not an offset"),
        ('{"t":{"0":"1"}}', "'t' partition 0: '1' is not an offset"),
        ('{"t":{"0":NaN}}', "NaN is not an offset"),
        ('{"t":{"0":9223372036854775808}}', "'t' partition 0: 9223372036854775808 is not an"),
        ('{"t":{"0":' + "9" * 5000 + "}}", "it is not valid JSON"),
        ('{"t":{"x":1}}', "'x' is not a partition number"),
        ('{"t":{"01":1}}', "'01' is not a partition number"),
        ('{"t":{"٣":1}}', "'٣' is not a partition number"),
        ('{"t":{"2147483648":1}}', "'2147483648' is not a partition number"),
        ('{"t":{"0":1,"0":2}}', "'0' is listed twice"),
        ('{"t":{"0":1},"t":{"1":2}}', "'t' is listed twice"),
        ('{"\\ud800":{"0":1}}', "topic '\\ud800' is not a string"),
        ("[" * 100_000, "the JSON is nested too deeply"),
    ],
)
def test_invalid_starting_offsets_file_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "offsets.json"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_starting_offsets("json:x", path)
    assert refused.value.codes == ["not-offsets"]
    facts = message_of(refused.value).facts
    assert facts["place"] == f"the file {path}"
    assert facts["problem"].startswith(problem)


@pytest.mark.parametrize("text", ["{}", '{"t":{}}'])
def test_starting_offsets_file_without_offsets_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "offsets.json"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_starting_offsets("json:x", path)
    assert refused.value.codes == ["no-offsets-in-file"]


def test_group_csv_round_trips(tmp_path: Path) -> None:
    offsets = {("b", 10): 2**63 - 1, ("b", 9): 0, ('a,"', 0): 5}
    path = tmp_path / "offsets.csv"
    path.write_text(group_csv(offsets), newline="")
    assert read_group_csv("csv:x", path).starts == offsets
    assert path.read_text().endswith("b,9,0\nb,10,9223372036854775807\n")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("t,0\n", 1, "it has 2 fields instead of 3 or 4"),
        ("t,0,1\nt,1,2,3,4\n", 2, "it has 5 fields instead of 3 or 4"),
        ("t,0,1\ng,t,1,2\n", 2, "it has 4 fields, but earlier lines have 3"),
        ("g,t,0,1\n\nt,1,2\n", 3, "it has 3 fields, but earlier lines have 4"),
        ("t\0,0,1\n", 1, ""),
        ("t,0,1\nt\x1b[2J,0,1\n", 2, r"'t\x1b[2J' is not a topic name"),
        ('"t\n",0,1\n', 2, r"'t\n' is not a topic name"),
        ("g,t\x7f,0,1\n", 1, r"'t\x7f' is not a topic name"),
        ("t,0,-1\n", 1, "'-1' is not an offset"),
        ("t,0,1_0\n", 1, "'1_0' is not an offset"),
        ("t,0,1\nt,0,1\n", 2, "'t' partition 0 is listed twice"),
        ('"t,0,1\n', 1, ""),
        ("x" * 30_000 + ",0,-1", 1, "'-1' is not an offset"),
        ("t,0," + "9" * 30_000, 1, f"'{'9' * 60}'… is not an offset"),
        ('"' + "a\n" * 100_000, 65537, "field larger than field limit"),
    ],
)
def test_invalid_group_csv_is_refused(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_group_csv("csv:x", path)
    assert refused.value.codes == ["not-offsets"]
    facts = message_of(refused.value).facts
    assert facts["place"] == f"line {line} of {path}"
    assert facts["problem"].startswith(problem)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no-offsets-in-file"),
        ("\n\n", "no-offsets-in-file"),
        ("topic,partition,offset\nt,0,1\n", "csv-header"),
        ('{"t":{"0":5}}', "json-passed-as-csv"),
        ("\ufeff \n" + json.dumps({"t" * 50_000: {"0": 5}}), "json-passed-as-csv"),
        ("t,0,1\n" + "x" * 50_000, "csv-line-too-long"),
    ],
)
def test_file_that_is_not_a_group_csv_is_refused(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_group_csv("csv:x", path)
    assert refused.value.codes == [code]


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["csv", "json"])
def test_offsets_file_is_limited_to_16_mib_and_100000_offsets(tmp_path: Path, prefix: str) -> None:
    """Regression: A CSV file of 23 MB took 7 GB of memory and 218 seconds."""
    path = tmp_path / "offsets"
    read = read_group_csv if prefix == "csv" else read_starting_offsets

    def write(offsets: int) -> None:
        rows = {str(partition): 1 for partition in range(offsets)}
        lines = "".join(f"t,{partition},1\n" for partition in rows)
        path.write_text(lines if prefix == "csv" else json.dumps({"t": rows}))

    write(100_000)
    assert len(read("side", path).starts) == 100_000
    write(100_001)
    with pytest.raises(InputError) as refused:
        read("side", path)
    assert refused.value.codes == ["too-many-offsets"]
    with path.open("wb") as file:
        file.truncate(16 * 2**20 + 1)
    with pytest.raises(InputError, match="larger than 16777216 bytes"):
        read("side", path)


@pytest.mark.parametrize(
    "value", ['"' + "x" * 100_000 + '"', "[" * 900 + "]" * 900, "[" + "0," * 100_000 + "0]"]
)
def test_invalid_offset_is_truncated_in_message(tmp_path: Path, value: str) -> None:
    path = tmp_path / "offsets.json"
    path.write_text(f'{{"t":{{"0":{value}}}}}')
    with pytest.raises(InputError, match=r"'t' partition 0: .* is not an offset") as refused:
        read_starting_offsets("json:x", path)
    assert len(str(refused.value)) < 500


def test_offsets_file_passed_without_json_prefix_gets_hint(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    path.write_text('{"t":{"0":5}}')
    result = migrate("to-spark", path)
    assert (result.code, result.stdout) == (3, "")
    assert f"`migrate to-spark` and `migrate diff` accept it as json:{path}" in result.stderr


_OTHERS = {
    "groups-csv": "a,0,1\na,10,2\nit's,0,0\n",
    "flink-sql": """\
'topic' = 'a',
'scan.startup.mode' = 'specific-offsets',
'scan.startup.specific-offsets' = 'partition:0,offset:1;partition:10,offset:2'

'topic' = 'it''s',
'scan.startup.mode' = 'specific-offsets',
'scan.startup.specific-offsets' = 'partition:0,offset:0'
""",
}


@pytest.mark.parametrize("format", _OTHERS)
def test_diff_exports_right_side_in_formats_of_other_programs(tmp_path: Path, format: str) -> None:
    side = tmp_path / "offsets.json"
    side.write_text('{"it\'s":{"0":0},"a":{"10":2,"0":1}}')
    written = migrate("diff", f"json:{side}", f"json:{side}", "--format", format)
    assert (written.code, written.stdout) == (0, _OTHERS[format])
    side.write_text('{"a":{"0":-1}}')
    refused = migrate("diff", f"json:{side}", f"json:{side}", "--format", format)
    assert (refused.code, refused.stdout) == (4, "")
    assert "the position of a-0 is latest, not an offset; " in refused.stderr
    side.write_text('{"a":{"0":-2}}')
    refused = migrate("diff", f"json:{side}", f"json:{side}", "--format", format)
    assert (
        "the position of a-0 is earliest, not an offset; to resolve the position, add "
        "--bootstrap-servers HOST:PORT" in refused.stderr
    )


@pytest.mark.parametrize("format", _OTHERS)
def test_export_warns_about_partitions_missing_from_right_side(tmp_path: Path, format: str) -> None:
    """Regression: The export omitted them silently.

    The program that read the export then used other offsets.
    """
    left, right = tmp_path / "left.json", tmp_path / "right.json"
    left.write_text(json.dumps({"a": {"0": 1, "1": 2}, "u": {"7": 3}}))
    right.write_text('{"it\'s":{"0":0},"a":{"10":2,"0":1}}')
    written = migrate("diff", f"json:{left}", f"json:{right}", "--format", format)
    assert (written.code, written.stdout) == (0, _OTHERS[format])
    assert f"warning: json:{right} has no offset for a-1, u-7" in written.stderr
    assert "warning" not in migrate("diff", *[f"json:{right}"] * 2, "--format", format).stderr


@pytest.mark.parametrize("format", get_args(RightFormat))
def test_right_side_without_offsets_is_not_exported(format: RightFormat) -> None:
    """Regression: The export was an empty file.

    The program that read the export then kept its old offsets.
    """
    empty = diff(side({0: 3}), PositionSet("group:g", {}), {})
    with pytest.raises(Refused, match="group:g has no offset to write"):
        export_right_side(empty, format)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("diff", "json:a"), "Missing argument 'RIGHT'"),
        (("diff", "json:a", "broker:noon"), "broker:noon is not a time; write the time as 2026-"),
        (("to-spark", "broker:2026-11-20"), "broker:2026-11-20 requires a broker"),
    ],
)
def test_missing_or_malformed_side_is_usage_error(arguments: tuple[str, ...], told: str) -> None:
    result = migrate(*arguments)
    assert (result.code, result.stdout) == (2, "")
    assert told in result.stderr


def test_group_csv_with_group_column_is_read(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text('g,"t",0,1\r\ng,"t",1,2\r\n', newline="")
    assert read_group_csv("csv:x", path).starts == {("t", 0): 1, ("t", 1): 2}


def test_missing_offsets_file_is_named_in_error(tmp_path: Path) -> None:
    for read in (read_group_csv, read_starting_offsets):
        with pytest.raises(InputError) as refused:
            read("side", tmp_path / "nothing")
        assert refused.value.codes == ["file-missing"]
        assert message_of(refused.value).facts["path"] == tmp_path / "nothing"


# -- sides ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("group:", "spark:", "json:", "csv:", "broker:", "broker:newest", "broker:Latest"),
        *("topic:orders", "no-such-prefix:" + 300 * "a", "x:\0"),
    ],
)
def test_invalid_side_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        parse_side(name)


@pytest.mark.parametrize("name", ["group:g", "broker:latest"])
def test_side_requiring_broker_fails_before_reading_files(name: str) -> None:
    with pytest.raises(UsageError, match=r'add bootstrap_servers="HOST:PORT"$'):
        load_sides(parse_side("json:/no/such/file"), parse_side(name), None)


def test_comparison_of_two_broker_inputs_without_topics_is_refused() -> None:
    with pytest.raises(UsageError, match="an input that contains topics"):
        load_sides(parse_side("broker:earliest"), parse_side("broker:latest"), None)


def test_invalid_topic_names_are_not_sent_to_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "offsets.json"
    path.write_text(json.dumps({name: {"0": 1} for name in ("", "a b", "<i>", "t", "x" * 250)}))
    questions = _answer(monkeypatch, LogRange(0, 9))
    loaded = load_sides(parse_side(f"json:{path}"), parse_side("broker:latest"), _BROKER)
    assert [question.topics for question in questions] == [{"t"}]
    assert loaded.right.starts == {("t", 0): 9}


def test_broker_is_queried_for_timestamp_of_either_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "offsets.json"
    path.write_text('{"t": {"0": 1}}')
    questions = _answer(monkeypatch, LogRange(0, 9, first_at=5))
    sides = [f"json:{path}", "broker:1970-01-01T00:00:07Z"]
    for left, right in (sides, sides[::-1], [sides[0], "broker:latest"]):
        load_sides(parse_side(left), parse_side(right), _BROKER)
    assert [question.at for question in questions] == [7000, 7000, None]


_BROKER = {"bootstrap.servers": "x:1"}


def _answer(monkeypatch: pytest.MonkeyPatch, log: LogRange) -> list[Question]:
    """Answer each query of the broker with this log of topic t. Return the queries."""
    questions: list[Question] = []

    def take_snapshot(_: object, question: Question) -> ClusterSnapshot:
        questions.append(question)
        return ClusterSnapshot({"t": {0: log}})

    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", take_snapshot)
    return questions


# -- verify --------------------------------------------------------------------------------------


def outcomes(
    expected: Mapping[int, Start],
    started: Mapping[int, Start],
    ranges: Mapping[int, tuple[int, int]] | None = None,
    new_at_earliest: bool = True,
    query: QueryStart | None = None,
) -> dict[int, tuple[StartOutcome, int]]:
    checked = verify_query(
        side(expected),
        query or QueryStart(side(started), has_begun_batch=True),
        logs(ranges) if ranges is not None else None,
        new_at_earliest=new_at_earliest,
    )
    is_ok = all(p.outcome is StartOutcome.OK for p in checked.partitions)
    assert checked.verified is (is_ok and not checked.passed_by_log_start)
    return {p.partition: (p.outcome, p.records) for p in checked.partitions}


def test_verify_counts_lost_and_duplicated_records_per_partition() -> None:
    assert outcomes({0: 5, 1: 5, 2: 5, 3: 5}, {0: 5, 1: 9, 2: 0}) == {
        0: (StartOutcome.OK, 0),
        1: (StartOutcome.LOST, 4),
        2: (StartOutcome.REPEATED, 5),
        3: (StartOutcome.MISSING, 0),
    }


def test_verify_accepts_start_below_log_start_if_expected_position_is_earliest() -> None:
    """Retention may have deleted records after the query started."""
    earliest = dict.fromkeys(range(4), Marker.EARLIEST)
    ranges = {0: (6, 9), 1: (6, 9), 2: (6, 9)}
    assert outcomes(earliest, {0: 6, 1: 2, 2: 7, 3: 6}, ranges) == {
        0: (StartOutcome.OK, 0),
        1: (StartOutcome.OK, 0),
        2: (StartOutcome.LOST, 1),
        3: (StartOutcome.GONE, 0),
    }
    assert outcomes({3: Marker.EARLIEST}, {3: 6}) == {3: (StartOutcome.UNKNOWN, 0)}
    assert outcomes({0: Marker.EARLIEST}, {0: 0}) == {0: (StartOutcome.OK, 0)}


@pytest.mark.parametrize("state", [Marker.LATEST, Marker.COMMITTED, Unknown.UNRESOLVED])
def test_verify_reports_unresolved_start_as_unknown(state: Marker | Unknown) -> None:
    assert outcomes({0: state}, {0: 0}, {0: (0, 9)}) == {0: (StartOutcome.UNKNOWN, 0)}


def test_verify_reports_outcome_of_partitions_missing_from_checkpoint() -> None:
    # Partition 1 skips records. Spark starts partition 2 at 0, and fails for 3 (not in the seed).
    ranges = {0: (0, 9), 1: (0, 9), 2: (0, 9), 3: (4, 9)}
    assert outcomes({0: 5}, {0: 5, 1: 9}, ranges) == {
        0: (StartOutcome.OK, 0),
        1: (StartOutcome.LOST, 9),
        2: (StartOutcome.OK, 0),
        3: (StartOutcome.MISSING, 0),
    }
    both = {0: (0, 9), 1: (9, 9)}
    assert outcomes({0: 5}, {0: 5, 1: 9}, both, new_at_earliest=False) == {
        0: (StartOutcome.OK, 0),
        1: (StartOutcome.UNKNOWN, 0),
    }


def test_verify_assumes_start_at_0_for_partition_missing_from_seed() -> None:
    both = {0: (0, 9), 1: (0, 9)}
    assert outcomes({0: 5, 1: 5}, {0: 5}, both)[1] == (StartOutcome.REPEATED, 5)
    assert outcomes({0: 5, 1: 0}, {0: 5}, both)[1] == (StartOutcome.OK, 0)
    assert outcomes({0: 5, 1: 5}, {0: 5}, {**both, 1: (1, 9)})[1] == (StartOutcome.MISSING, 0)


@pytest.mark.parametrize("expected", [5, 0, Marker.EARLIEST])
def test_verify_reports_topic_as_missing_if_query_does_not_read_it(expected: Start) -> None:
    """A log that starts at offset 0 is no evidence that the query reads the topic."""
    assert outcomes({0: expected}, {}, {0: (0, 9), 1: (0, 9)}) == {
        0: (StartOutcome.MISSING, 0),
        1: (StartOutcome.MISSING, 0),
    }


def test_verify_ignores_additional_topics_of_query() -> None:
    query = QueryStart(PositionSet("x", {("t", 0): 5, ("u", 0): 7}))
    checked = verify_query(side({0: 5}), query, None, new_at_earliest=True)
    assert [partition.topic for partition in checked.partitions] == ["t"]


def test_verify_fails_without_partitions() -> None:
    query = QueryStart(side({0: 5}))
    assert not verify_query(side({}), query, None, new_at_earliest=True).verified


def test_verify_requires_start_position_within_log() -> None:
    starts: dict[int, Start] = {
        **dict.fromkeys((0, 1, 2, 3, 6, 7, 8), 5),
        4: 9,
        5: Marker.EARLIEST,
    }
    ranges = {0: (5, 5), 1: (8, 9), 2: (0, 4), 4: (8, 9), 5: (3, 9), 6: (8, 9)}
    ranges |= {7: (5, 9), 8: (0, 5)}
    started = {0: 5, 1: 5, 2: 5, 3: 5, 4: 7, 5: 0, 6: 6, 7: 5, 8: 5}
    not_run = QueryStart(side(started), side(started))
    assert outcomes(starts, {}, ranges, query=not_run) == {
        0: (StartOutcome.OK, 0),
        1: (StartOutcome.EXPIRED, 3),
        2: (StartOutcome.BEYOND_END, 0),
        3: (StartOutcome.GONE, 0),
        4: (StartOutcome.EXPIRED, 1),  # the record to reread was deleted as well
        5: (StartOutcome.EXPIRED, 3),
        6: (StartOutcome.LOST, 1),
        7: (StartOutcome.OK, 0),  # at the log start offset; partition 8 is at the log end offset
        8: (StartOutcome.OK, 0),
    }
    # A query that kept running no longer needs the records at its start.
    has_run = QueryStart(side({1: 5}), side({1: 8}), has_begun_batch=True)
    assert outcomes({1: 5}, {}, {1: (8, 9)}, query=has_run) == {1: (StartOutcome.OK, 0)}


@pytest.mark.parametrize(
    ("log_start", "has_run", "passed"),
    [(5, True, ()), (6, True, (("t", 0),)), (5, False, ())],
)
def test_verify_is_inconclusive_if_log_start_is_now_above_seed(
    log_start: int, has_run: bool, passed: tuple[tuple[str, int], ...]
) -> None:
    """Retention may have deleted records of the seed before the first batch read them."""
    query = QueryStart(side({0: 5}), side({0: 8}), has_begun_batch=has_run)
    checked = verify_query(side({0: 5}), query, logs({0: (log_start, 9)}), new_at_earliest=True)
    assert checked.passed_by_log_start == passed
    assert checked.verified == (not passed)
    assert checked.verified_or_moved_on
    line = summary_line(checked)
    if passed:
        assert line == (
            "the start offsets in the checkpoint location were correct in the one partition; it "
            "cannot be determined whether retention deleted records before the first batch"
        )
        (told,) = outcome_lines(checked)
        assert (
            "the log start offset of 1 partition is now higher than the start offset in the "
            "checkpoint location (the first is t-0)" in told
        )
    else:
        start = "started" if has_run else "will start"
        assert line == f"verified: the one partition {start} where the checkpoint ended"
        assert list(outcome_lines(checked)) == []


@pytest.mark.parametrize("expected", [{0: 5, 1: Marker.EARLIEST}, {0: 5}])
def test_verify_is_inconclusive_if_log_start_is_above_start_of_partition_without_offset(
    expected: Mapping[int, Start],
) -> None:
    """Regression: If the checkpoint had no offset for the partition, the result was "verified"."""
    query = QueryStart(side({0: 5, 1: 100}), side({0: 8, 1: 200}), has_begun_batch=True)
    ranges = logs({0: (5, 300), 1: (150, 300)})
    verification = verify_query(side(expected), query, ranges, new_at_earliest=True)
    assert verification.passed_by_log_start == (("t", 1),)
    assert "cannot be determined" in summary_line(verification)


def test_verify_is_inconclusive_if_query_log_lacks_its_first_batches() -> None:
    """Only the first batches show the start of a query with the continuous trigger.

    This trigger ignores the seed, and its first epochs may be deleted.
    """
    query = QueryStart(side({0: 3}), side({0: 9}), has_begun_batch=True)
    checked = verify_query(side({0: 3}), query, None, new_at_earliest=True)
    seeds = {"0": {("t", 0): 3}}
    whole = verify_log(checked, seeds, [(0, {"0": {("t", 0): 5}}), (1, {"0": {("t", 0): 9}})])
    assert whole.verified and not whole.first_batches_gone
    gone = verify_log(checked, seeds, [(1, {"0": {("t", 0): 9}})])
    assert gone.first_batches_gone
    assert not gone.verified and gone.verified_or_moved_on
    correct = "the start offsets in the checkpoint location were correct in the one partition"
    said = f"{correct}, but the query's start cannot be"
    assert summary_line(gone) == f"not verified: {said} determined"
    assert summary_line(gone, allow_moved_on=True) == f"verified except for this: {said} determined"
    assert any("no longer contains its first batches" in line for line in outcome_lines(gone))


@pytest.mark.parametrize(
    ("verification", "reason"),
    [
        ({"passed_by_log_start": (("t", 0),)}, "(it fails on such a loss)"),
        ({"first_batches_gone": True}, "if the lowest offsets in the sink are the start offsets"),
        ({"moved_on_since": {"back.json": 1}}, "if the group's consumers made these commits"),
        ({}, "if the group's consumers made these commits"),
    ],
)
def test_advice_of_verify_does_not_repeat_option_that_user_passed(
    verification: Mapping[str, Any], reason: str
) -> None:
    """Regression: The advice was to add ``--allow-moved-on`` although it was passed."""
    row = VerifiedPartition("t", 0, 3, 5, StartOutcome.MOVED_ON, 2)
    checked = Verification("group:g", (row,), **verification)
    (told,) = (line for line in outcome_lines(checked) if reason in line)
    assert f"{reason}, add allow_moved_on=True" in told
    (told,) = (line for line in outcome_lines(checked, allow_moved_on=True) if reason in line)
    assert f"{reason}, no action is needed" in told and "allow_moved_on" not in told


def test_verify_is_inconclusive_for_partition_missing_from_seed_and_newest_batch() -> None:
    query = QueryStart(side({0: 3}), side({0: 9}), has_begun_batch=True)
    ranges = logs({0: (0, 9), 1: (0, 9)})
    checked = verify_query(side({0: 3}), query, ranges, new_at_earliest=True)
    seeds = {"0": {("t", 0): 3}}
    first = (0, {"0": {("t", 0): 5}})
    read = verify_log(checked, seeds, [first, (1, {"0": {("t", 0): 9, ("t", 1): 4}})])
    assert read.verified
    unread = verify_log(checked, seeds, [first])
    assert [(row.outcome, row.started) for row in unread.partitions] == [
        (StartOutcome.OK, 3),
        (StartOutcome.UNKNOWN, None),
    ]
    (line,) = outcome_lines(unread)
    assert line.startswith(
        "cannot tell (1): neither in the start offsets in the checkpoint location nor"
    )
    assert verify_log(checked, seeds, []).verified


def test_verify_lists_topics_of_unrelated_query() -> None:
    expected, clicks = side({0: 3}), side({0: 3}, "clicks")
    query = QueryStart(clicks, clicks, has_begun_batch=True)
    checked = verify_query(expected, query, None, new_at_earliest=True)
    gone = verify_log(checked, {"0": {("clicks", 0): 3}}, [(1, {"0": {("clicks", 0): 9}})])
    (line,) = outcome_lines(gone)
    assert line.startswith("the query reads clicks, but none of these topics")
    query = QueryStart(expected, expected, has_begun_batch=True)
    assert not verify_query(expected, query, None, new_at_earliest=True).other_topics


def test_verify_reports_unknown_start_for_continuous_query() -> None:
    query = QueryStart(side({0: 5}), side({0: 5}), has_begun_batch=True, continuous=True)
    assert outcomes({0: 5}, {}, {0: (0, 9)}, query=query) == {0: (StartOutcome.UNKNOWN, 0)}
    (told,) = verify_query(side({0: 5}), query, None, new_at_earliest=True).partitions
    assert told.started is None


def test_verify_reports_recreated_topic() -> None:
    for checked in (
        verify_query(
            side({0: 5}),
            QueryStart(side({0: 5})),
            logs({0: (0, 9)}),
            new_at_earliest=False,
            recreated=["t"],
        ),
        verify_group(
            side({0: 5}),
            group({0: (5, "")}),
            logs({0: (0, 9)}),
            new_at_earliest=False,
            recreated=["t"],
        ),
    ):
        assert [p.outcome for p in checked.partitions] == [StartOutcome.RECREATED]
        assert not checked.verified_or_moved_on


def group(committed: Mapping[int, tuple[int, str] | tuple[int, str, int | None]]) -> GroupView:
    return GroupView(
        "g",
        True,
        "Empty",
        "classic",
        (),
        {("t", partition): Committed(*what) for partition, what in committed.items()},
    )


def test_verify_distinguishes_newer_commits_from_too_high_offsets_written_by_migrate() -> None:
    """A higher offset from a different client is a newer commit.

    A higher offset written by migrate loses records.
    """
    committed = {0: (5, ""), 1: (9, ""), 2: (9, ""), 3: (1, ""), 4: (1, "")}
    checked = verify_group(
        side(dict.fromkeys(range(6), 5)),
        group(committed),
        logs(dict.fromkeys(range(6), (0, 20))),
        new_at_earliest=True,
        written_by_us={("t", 0), ("t", 2), ("t", 4)},
    )
    assert [(p.outcome, p.records) for p in checked.partitions] == [
        (StartOutcome.OK, 0),
        (StartOutcome.MOVED_ON, 4),
        (StartOutcome.LOST, 4),
        (StartOutcome.REPEATED, 4),
        (StartOutcome.REPEATED, 4),
        (StartOutcome.MISSING, 0),
    ]
    assert not checked.verified
    assert checked.counts == {
        StartOutcome.OK: 1,
        StartOutcome.LOST: 1,
        StartOutcome.REPEATED: 2,
        StartOutcome.MISSING: 1,
        StartOutcome.MOVED_ON: 1,
    }


@pytest.mark.parametrize(
    ("committed", "maybe_flink_commits"),
    [(("", None), 2), (("", 0), 0), (("a consumer's own", None), 0)],
)
def test_verify_does_not_report_newer_commits_as_verified(
    committed: tuple[str, int | None], maybe_flink_commits: int
) -> None:
    """Newer commits do not show the offsets at which the consumers started."""
    checked = verify_group(
        side({0: 5, 1: Marker.EARLIEST}),
        group({0: (9, *committed), 1: (3, *committed)}),
        logs({0: (0, 20), 1: (1, 20)}),
        new_at_earliest=True,
    )
    moved_on = [(p.outcome, p.records) for p in checked.partitions]
    assert moved_on == [(StartOutcome.MOVED_ON, 4), (StartOutcome.MOVED_ON, 2)]
    assert (checked.verified, checked.verified_or_moved_on) == (False, True)
    assert checked.maybe_flink_commits == maybe_flink_commits


def test_newer_commits_are_accepted_only_if_all_other_partitions_are_verified() -> None:
    for committed, as_good in (({0: (5, ""), 1: (9, "")}, True), ({0: (4, ""), 1: (9, "")}, False)):
        checked = verify_group(side({0: 5, 1: 5}), group(committed), None, new_at_earliest=True)
        assert checked.verified_or_moved_on is as_good
    assert not verify_group(side({}), group({}), None, new_at_earliest=True).verified_or_moved_on


def test_verify_explains_partition_added_after_commit() -> None:
    checked = verify_group(
        side({0: 5}),
        group({0: (5, "")}),
        logs({0: (0, 20), 1: (0, 20)}),
        new_at_earliest=True,
    )
    assert [p.outcome for p in checked.partitions] == [StartOutcome.OK, StartOutcome.MISSING]
    (line,) = outcome_lines(checked)
    assert line.startswith("missing (1): t-1 is not in the checkpoint, usually because")


def test_verify_explains_group_offset_below_position() -> None:
    """Regression: Unlike ``lost``, a verification of a newer checkpoint had no explanation."""
    checked = verify_group(
        side({0: 5, 1: 7}), group({0: (5, ""), 1: (4, "")}), None, new_at_earliest=True
    )
    (line,) = outcome_lines(checked)
    assert line.startswith("repeated (1): the target starts below the position")
    assert "if CHK is newer than the checkpoint that was moved, pass" in line


def test_verify_explains_partitions_without_group_offset() -> None:
    """Regression: Unlike each other outcome, ``missing`` had no explanation."""
    checked = verify_group(
        side({0: 5, 1: 5, 2: 5, 3: 5}),
        group({0: (5, "")}),
        logs({0: (0, 20), 1: (0, 20), 2: (0, 20)}),
        new_at_earliest=True,
    )
    missing, gone = outcome_lines(checked)
    assert missing.startswith("missing (2): the group has no offset for these partitions")
    assert gone.startswith("gone (1): the broker has no such topic or partition")


def test_verify_reports_topic_recreated_since_commit() -> None:
    """Kafka removes the offsets of a deleted topic. A later commit is of the new topic."""
    checked = verify_group(
        side({0: 5, 1: 5}),
        group({0: (5, "")}),
        logs({0: (0, 20), 1: (0, 20)}),
        new_at_earliest=True,
        recreated_since_commit={"t"},
    )
    assert [p.outcome for p in checked.partitions] == [StartOutcome.OK, StartOutcome.RECREATED]


def test_verify_explains_partitions_without_start_in_query() -> None:
    query = QueryStart(PositionSet("spark:q", {("t", 0): 5}))
    checked = verify_query(
        side({0: 5, 1: 5}), query, logs({0: (0, 9), 1: (4, 9)}), new_at_earliest=True
    )
    line, *_ = outcome_lines(checked)
    assert line.startswith("missing (1): the query has no start offset for these partitions")


# -- the commands --------------------------------------------------------------------------------


def starting_offsets_file(path: Path, offsets: Mapping[str, Mapping[str, int]]) -> str:
    path.write_text(json.dumps(offsets))
    return f"json:{path}"


def test_exit_code_option_of_diff_returns_1_for_different_sides(tmp_path: Path) -> None:
    one = starting_offsets_file(tmp_path / "one.json", {"t": {"0": 5}})
    two = starting_offsets_file(tmp_path / "two.json", {"t": {"0": 6}})
    assert migrate("diff", one, one, "--exit-code").code == 0
    assert migrate("diff", one, two).code == 0
    differing = migrate("diff", one, two, "--exit-code", "--format", "json")
    assert differing.code == 1
    assert json.loads(differing.stdout)["partitions"][0]["difference"] == 1
    assert differing.stderr == ""


def test_diff_and_verify_accept_seed_until_seed_changes(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})
    seed = tmp_path / "seed"
    assert migrate("to-spark", chk, "--checkpoint-dir", seed).code == 0
    assert migrate("diff", chk, f"spark:{seed}", "--exit-code").code == 0
    assert migrate("verify", chk, f"spark:{seed}").code == 0
    (seed / "sources/0/0").write_text('\0v1\n{"t":{"0":3,"1":9}}')
    assert migrate("diff", chk, f"spark:{seed}", "--exit-code").code == 1
    failed = migrate("verify", chk, f"spark:{seed}")
    assert failed.code == 5
    assert "1 ok, 1 lost" in failed.stdout


@pytest.mark.parametrize(
    ("left", "code"),
    [
        ("json:/no/such/file", 3),
        ("csv:/no/such/file", 3),
        ("spark:/no/such/directory", 3),
        ("/no/such/checkpoint", 3),
        ("group:g", 2),
        ("broker:newest", 2),
    ],
)
def test_diff_of_unavailable_side_fails_with_one_line_error(
    tmp_path: Path, left: str, code: int
) -> None:
    right = starting_offsets_file(tmp_path / "offsets.json", {"t": {"0": 5}})
    result = migrate("diff", left, right, "--exit-code")
    assert (result.code, result.stdout) == (code, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("migrate: ")


def test_query_with_contradictory_log_entries_is_refused(tmp_path: Path) -> None:
    lines = batch('{"t":{"0":90}}', '{"t":{"0":91}}')
    directory = spark_directory(tmp_path / "query", {"offsets/0": lines, "commits/0": "v1\n{}"})
    assert migrate("diff", f"spark:{directory}", f"spark:{directory}").code == 4


def test_diff_page_is_ascii(tmp_path: Path) -> None:
    one = starting_offsets_file(tmp_path / "größe.json", {"t\u00e9\u4e2d<": {"0": 5}})
    page = migrate("diff", one, one, "--format", "html").stdout
    assert page.isascii()
    assert "gr&#246;&#223;e.json" in page
    assert "t&#233;&#20013;&lt;" in page


def test_diff_of_dynamic_source_requires_cluster_option() -> None:
    checkpoint = golden("2.2/dynamic")
    both = migrate("diff", checkpoint, checkpoint)
    assert (both.code, both.stdout) == (4, "")
    assert "--cluster" in both.stderr
    east = migrate("diff", checkpoint, checkpoint, "--cluster", "east", "--format", "csv")
    west = migrate("diff", checkpoint, checkpoint, "--cluster", "west", "--format", "csv")
    assert (east.code, west.code) == (0, 0)
    assert east.stdout.splitlines()[0] == west.stdout.splitlines()[0]
    assert east.stdout != west.stdout


def test_inspect_table_shows_cluster_of_position() -> None:
    shown = migrate("inspect", golden("2.2/dynamic")).stdout
    assert {line.split()[0] for line in shown.splitlines() if "next" in line.split()} >= {
        "east",
        "west",
    }


@pytest.mark.parametrize(("log_end", "is_clipped"), [(20, False), (8, True)])
def test_diff_page_has_column_for_records_in_log_only_if_numbers_differ(
    log_end: int, is_clipped: bool
) -> None:
    """Regression: The page had this column even if its numbers matched the previous column's."""
    left, right = (PositionSet(name, {("t", 0): offset}) for name, offset in (("l", 5), ("r", 9)))
    compared = diff(left, right, {"t": {0: LogRange(0, log_end)}})
    assert compared.is_clipped is is_clipped
    page = diff_page(compared, datetime(2026, 1, 2, tzinfo=timezone.utc))
    assert ("of them in the log" in page) is is_clipped


@pytest.mark.parametrize(
    ("written_at", "logs", "told"),
    [
        (1, [LogRange(0, 9, 9), LogRange(0, 9, 9)], ""),  # no record is newer
        (1, [LogRange(0, 9, 0), LogRange(0, 9, 9)], "1 partition .*first is t-0"),
        (1, [LogRange(0, 9, 0), LogRange(0, 9, 0)], "2 partitions .* different cluster is more"),
        (None, [LogRange(0, 9, 0), LogRange(0, 9, 0)], ""),  # not a checkpoint
        (None, [LogRange(0, 9), LogRange(0, 4)], "1 partition .*first is t-1"),
        (None, [LogRange(0, 9)], ""),  # the broker has no such partition
    ],
)
def test_positions_that_do_not_fit_logs_trigger_warning_in_diff(
    written_at: int | None, logs: list[LogRange], told: str
) -> None:
    side = PositionSet("a", {("t", 0): 5, ("t", 1): 5}, written_at=written_at)
    warnings = list(recreated_topic_warnings(side, {"t": dict(enumerate(logs))}))
    assert len(warnings) == bool(told)
    for warning in warnings:
        assert warning.startswith("a: ") and warning.endswith("[maybe-recreated]")
        assert re.search(told, warning)


def test_positions_below_log_start_trigger_warning_in_diff() -> None:
    """Regression: Position 20 in a log from 30 on was "same", without a note."""
    ranges = {"t": {0: LogRange(20, 50), 1: LogRange(30, 50), 2: LogRange(30, 50)}}
    side = PositionSet("a", {("t", 0): 20, ("t", 1): 20, ("t", 2): 29, ("t", 3): 1})
    (warning,) = deleted_record_warnings(side, ranges)
    assert warning.startswith(
        "a: 2 positions are below the log start offset (the first is t-1 at 20, but the log starts "
        "at 30), so the records in between were deleted"
    )
    assert warning.endswith("[below-log-start]")
    at_start = PositionSet("a", {("t", 0): 20, ("t", 1): Marker.EARLIEST})
    assert not list(deleted_record_warnings(at_start, ranges))
    assert not list(deleted_record_warnings(side, {}))
