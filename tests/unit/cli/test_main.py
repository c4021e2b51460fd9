"""The contract of the command line: streams, exit codes, and errors."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from migrate.report.schemas import json_schema
from tests.support.checkpoints import (
    SourceState,
    in_flight_operator,
    operator_with_states,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import migrate
from tests.support.encoder import EARLIEST, LATEST, KafkaSplit
from tests.support.golden import golden

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "docs/schemas/inspect.schema.json"


# -- inspect ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["1.15/retained", "1.20/unaligned", "2.2/two-sources"])
def test_inspect_json_matches_schema(name: str) -> None:
    result = migrate("inspect", golden(name), "--format", "json")
    assert (result.code, result.stderr) == (0, "")
    report = json.loads(result.stdout)
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report, schema, jsonschema.Draft202012Validator)
    assert report["sources"]


@pytest.mark.parametrize(
    "change",
    [
        lambda report: report["sources"][0]["positions"][0].update(state="next", next_offset=None),
        lambda report: report["sources"][0]["positions"][0].update(state="latest", next_offset=5),
        lambda report: report["sources"][0]["positions"][0].update(topic="no such topic"),
        lambda report: report["sources"][0].update(operator_id="xyz"),
        lambda report: report["checkpoint"].pop("stop"),
    ],
)
def test_schema_rejects_invalid_inspect_report(
    change: Callable[[dict[str, Any]], None],
) -> None:
    report = json.loads(migrate("inspect", golden("2.2/retained"), "--format", "json").stdout)
    change(report)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, json_schema("inspect"), jsonschema.Draft202012Validator)


def test_inspect_csv_has_row_per_position() -> None:
    result = migrate("inspect", golden("2.2/retained"), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["topic"], row["partition"], row["state"]) for row in rows] == [
        ("orders", "0", "next"),
        ("orders", "1", "next"),
        ("orders", "2", "earliest"),
        ("payments", "0", "next"),
        ("payments", "1", "next"),
    ]
    assert rows[2]["next_offset"] == ""


def test_inspect_prints_plain_table_by_default(tmp_path: Path) -> None:
    result = migrate("inspect", golden("1.20/unaligned"))
    assert result.code == 0
    assert "in-flight-records" in result.stdout
    assert "orders" in result.stdout
    assert "\x1b" not in result.stdout  # not a terminal


def test_control_characters_in_checkpoint_names_are_escaped(tmp_path: Path) -> None:
    hostile = "[red]\x1b[2J\x07 [/nothing]"
    operator = source_operator(SourceState({0: splits("t", [1])}, uid=hostile))
    result = migrate("inspect", write_checkpoint(tmp_path / "chk-7", operator, version=6))
    assert result.code == 0
    assert "\x1b" not in result.stdout
    assert "[red]\\x1b[2J\\x07 [/nothing]" in result.stdout


def test_inspect_list_shows_complete_checkpoints_of_job(tmp_path: Path) -> None:
    operator = source_operator(SourceState({0: splits("t", [1])}))
    for number in (9, 10):
        write_checkpoint(tmp_path / f"chk-{number}", operator, checkpoint_id=number)
    (tmp_path / "chk-11").mkdir()
    result = migrate("inspect", tmp_path, "--list", "--format", "json")
    assert [listed["id"] for listed in json.loads(result.stdout)] == [9, 10]


@pytest.mark.parametrize("place", ["chk-9", ".", "empty"])
def test_inspect_list_of_directory_without_checkpoints_exits_3(tmp_path: Path, place: str) -> None:
    write_source(tmp_path / "job" / "chk-9", {0: splits("t", [1])})
    (tmp_path / "job" / "empty").mkdir()
    directory = tmp_path / "job" / place if place != "." else tmp_path
    listed = migrate("inspect", directory, "--list", "--format", "json")
    assert (listed.code, listed.stdout) == (3, "")
    assert listed.stderr.startswith(
        f"migrate: {directory} contains no complete checkpoint (chk-N); "
    )


def test_inspect_list_rejects_file(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-9", {0: splits("t", [1])})
    result = migrate("inspect", chk / "_metadata", "--list")
    assert (result.code, result.stdout) == (3, "")
    assert result.stderr == (
        f"migrate: {chk}/_metadata: this is a file; pass a job's checkpoint directory\n"
    )


# -- to-spark without a broker ------------------------------------------------------------------


def test_stdout_of_to_spark_contains_only_starting_offsets(tmp_path: Path) -> None:
    readers = {0: [KafkaSplit("t", 10, 5), KafkaSplit("t", 9, 4)], 1: splits("a", [1])}
    result = migrate("to-spark", write_source(tmp_path / "chk-7", readers))
    assert (result.code, result.stdout) == (0, '{"a":{"0":1},"t":{"9":4,"10":5}}\n')
    assert "not checked against Kafka" in result.stderr


def test_to_spark_writes_seed_into_new_directory(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})
    seed = tmp_path / "new" / "seed"
    result = migrate("to-spark", chk, "--checkpoint-dir", seed)
    assert result.code == 0
    assert sorted(str(path.relative_to(seed)) for path in seed.rglob("*") if path.is_file()) == [
        "metadata",
        "sources/0/0",
    ]
    written = (seed / "sources/0/0").read_bytes()
    assert written == b"\0v1\n" + result.stdout.strip().encode()
    assert list(json.loads((seed / "metadata").read_text())) == ["id"]
    assert [path.name for path in seed.parent.iterdir()] == ["seed"]


@pytest.mark.parametrize("content", ["metadata", "offsets", "anything"])
def test_seed_is_not_written_to_nonempty_directory(tmp_path: Path, content: str) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / content).write_text("theirs")
    result = migrate("to-spark", chk, "--checkpoint-dir", taken)
    assert (result.code, result.stdout) == (4, "")
    assert [path.name for path in taken.iterdir()] == [content]
    assert (taken / content).read_text() == "theirs"


def test_seed_is_written_to_empty_directory(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    empty = tmp_path / "empty"
    empty.mkdir()
    assert migrate("to-spark", chk, "--checkpoint-dir", empty).code == 0
    assert (empty / "sources/0/0").exists()


def _earliest(directory: Path) -> Path:
    return write_source(directory, {0: splits("t", [EARLIEST])})


def _latest(directory: Path) -> Path:
    return write_source(directory, {0: splits("t", [LATEST])})


def _in_flight(directory: Path) -> Path:
    operator = source_operator(SourceState({0: splits("t", [1])}))
    return write_checkpoint(directory, operator, in_flight_operator(99))


def _twice(directory: Path) -> Path:
    readers = {0: splits("t", [1]), 1: splits("t", [2])}
    return write_checkpoint(directory, source_operator(SourceState(readers, entries=[])))


def _damaged(directory: Path) -> Path:
    """The readers and the enumerator contain a split twice, which is impossible in Flink."""
    return write_source(directory, {0: splits("t", [1]), 1: splits("t", [1])})


def _disagree(directory: Path) -> Path:
    other = SourceState({0: splits("t", [2])}, operator_id=bytes(range(16, 32)))
    mine = SourceState({0: splits("t", [1])})
    return write_checkpoint(directory, source_operator(mine), source_operator(other))


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (_earliest, "add --bootstrap-servers HOST:PORT"),
        (_latest, "--unresolved earliest"),
        (_in_flight, "99 bytes of records"),
        (_twice, "2 times, with starts from 1 to 2"),
        (_damaged, "damaged"),
        (_disagree, "choose one source with --source"),
    ],
)
def test_unsafe_move_is_refused_and_writes_nothing(
    tmp_path: Path, write: Callable[[Path], Path], says: str
) -> None:
    seed = tmp_path / "seed"
    result = migrate("to-spark", write(tmp_path / "chk-7"), "--checkpoint-dir", seed)
    assert (result.code, result.stdout) == (4, "")
    assert says in result.stderr
    assert "nothing was written" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chk-7"]


def test_older_checkpoint_of_running_job_requires_override(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    newer = source_operator(SourceState({0: splits("t", [2])}))
    write_checkpoint(tmp_path / "chk-8", newer, checkpoint_id=8)
    refused = migrate("to-spark", chk)
    assert (refused.code, refused.stdout) == (4, "")
    assert "--allow-ran-on" in refused.stderr
    for override in ("--allow-ran-on", "--allow-kept-running"):
        allowed = migrate("to-spark", chk, override)
        assert (allowed.code, allowed.stdout) == (0, '{"t":{"0":1}}\n')
    newest = migrate("to-spark", tmp_path)
    assert (newest.code, newest.stdout) == (0, '{"t":{"0":2}}\n')


@pytest.mark.parametrize(
    "arguments",
    [
        ("--source", "nothing-like-it"),
        ("--source-group", "needs-a-broker"),
        ("--format", "sql"),
        ("-X", "no-value", "-b", "127.0.0.1:1"),
        ("-X", "no.such.property=1", "-b", "127.0.0.1:1"),
        ("--kafka-config", "/no/such/file"),
    ],
)
def test_usage_error_of_to_spark_causes_exit_code_2(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    result = migrate("to-spark", chk, *arguments)
    assert (result.code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("place", "code", "says"),
    [("missing/p.json", 2, "does not exist; create it"), ("chk-7", 4, "already exists")],
)
def test_unwritable_plan_path_is_reported_and_nothing_is_written(
    tmp_path: Path, place: str, code: int, says: str
) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    result = migrate("to-spark", chk, "--plan-out", tmp_path / place)
    assert (result.code, result.stdout) == (code, "")
    assert says in result.stderr.splitlines()[-2 if code == 4 else -1]
    assert [path.name for path in tmp_path.iterdir()] == ["chk-7"]


@pytest.mark.slow  # the command waits for the broker
def test_to_spark_exits_6_and_writes_no_seed_if_broker_is_unreachable(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    seed = tmp_path / "seed"
    result = migrate("to-spark", chk, "-b", "127.0.0.1:1", "--checkpoint-dir", seed)
    assert (result.code, result.stdout) == (6, "")
    assert result.stderr.splitlines()[-1].startswith("migrate: no broker answered at 127.0.0.1:1")
    assert len(result.stderr.splitlines()) == 1
    assert not seed.exists()


# -- input that cannot be read ------------------------------------------------------------------


def _missing(directory: Path) -> Path:
    return directory / "nothing"


def _no_metadata(directory: Path) -> Path:
    (directory / "chk-3").mkdir()
    return directory / "chk-3"


def _foreign(directory: Path) -> Path:
    (directory / "_metadata").write_bytes(b"PAR1 is not a checkpoint")
    return directory


def _empty(directory: Path) -> Path:
    (directory / "_metadata").write_bytes(b"")
    return directory


def _truncated(directory: Path) -> Path:
    whole = (golden("2.2/retained") / "_metadata").read_bytes()
    (directory / "_metadata").write_bytes(whole[: len(whole) // 2])
    return directory


def _newer(directory: Path) -> Path:
    whole = (golden("2.2/retained") / "_metadata").read_bytes()
    (directory / "_metadata").write_bytes(whole[:4] + (7).to_bytes(4, "big") + whole[8:])
    return directory


def _trailing(directory: Path) -> Path:
    whole = (golden("2.2/retained") / "_metadata").read_bytes()
    (directory / "_metadata").write_bytes(whole + b"\0")
    return directory


def _state_file_gone(directory: Path) -> Path:
    whole = golden("1.20/retained-files") / "_metadata"
    (directory / "_metadata").write_bytes(whole.read_bytes())
    return directory


def _in_no_such_storage(directory: Path) -> str:
    return "ftp://user:secret@host/flink/checkpoints/chk-1"


@pytest.mark.parametrize("command", ["inspect", "to-spark"])
@pytest.mark.parametrize(
    ("write", "says"),
    [
        (_missing, "no such file or directory"),
        (_no_metadata, "not a complete checkpoint"),
        (_foreign, "not a Flink checkpoint"),
        (_empty, "damaged: the file is empty; pass a different checkpoint"),
        (_truncated, "pass a different checkpoint ("),
        (_newer, "metadata version 7"),
        (_trailing, "left over"),
        (_state_file_gone, "is missing; tried"),
        (
            _in_no_such_storage,
            "ftp://…@host/flink/checkpoints/chk-1",
        ),
    ],
)
def test_unreadable_checkpoint_exits_3_with_single_line_message(
    tmp_path: Path, write: Callable[[Path], Path | str], says: str, command: str
) -> None:
    result = migrate(command, write(tmp_path))
    assert (result.code, result.stdout) == (3, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("migrate: ")
    assert says in line


def test_directory_in_place_of_metadata_file_causes_exit_code_3(tmp_path: Path) -> None:
    (tmp_path / "chk-1").mkdir()
    (tmp_path / "chk-1" / "_metadata").mkdir()
    result = migrate("inspect", tmp_path / "chk-1")
    assert (result.code, len(result.stderr.splitlines())) == (3, 1)


# -- paths and special cases --------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["nosuch://bucket/query", "hdfs:/query"])
def test_remote_uri_creates_no_local_directory(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    result = migrate("to-spark", chk, "--checkpoint-dir", uri)
    assert (result.code, result.stdout) == (2, "")
    assert [path.name for path in tmp_path.iterdir()] == ["chk-7"]


def test_file_uri_selects_local_directory(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    assert migrate("to-spark", chk, "--checkpoint-dir", f"file://{tmp_path}/seed").code == 0
    assert (tmp_path / "seed/sources/0/0").exists()
    assert migrate("inspect", f"file://{chk}").code == 0


def test_seed_is_written_to_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert migrate("to-spark", chk, "--checkpoint-dir", ".").code == 0
    assert (tmp_path / "here/sources/0/0").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chk-7", "here"]


def test_seed_is_not_written_to_symbolic_link(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    result = migrate("to-spark", chk, "--checkpoint-dir", tmp_path / "link")
    assert result.code == 4
    assert "symbolic link" in result.stderr


@pytest.mark.parametrize("way", ["latest", "metadata-link", "chk-7/../chk-7"])
def test_newer_checkpoint_is_detected_for_any_spelling_of_path(tmp_path: Path, way: str) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    newer = source_operator(SourceState({0: splits("t", [2])}))
    write_checkpoint(tmp_path / "chk-8", newer, checkpoint_id=8)
    (tmp_path / "latest").symlink_to(chk)
    (tmp_path / "metadata-link").symlink_to(chk / "_metadata")
    result = migrate("to-spark", tmp_path / way)
    assert (result.code, result.stdout) == (4, "")


def test_empty_bootstrap_servers_is_usage_error(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    assert migrate("to-spark", chk, "--bootstrap-servers", "").code == 2


def test_damaged_source_is_refused_unless_healthy_source_is_selected(tmp_path: Path) -> None:
    healthy = source_operator(SourceState({0: splits("t", [1])}))
    twice = SourceState({0: splits("u", [1]), 1: splits("u", [1])}, operator_id=bytes(16))
    chk = write_checkpoint(tmp_path / "chk-7", healthy, source_operator(twice))
    refused = migrate("to-spark", chk)
    assert (refused.code, refused.stdout) == (4, "")
    assert "damaged" in refused.stderr
    assert migrate("to-spark", chk, "--source", "topic:t").stdout == '{"t":{"0":1}}\n'


def test_legacy_consumer_is_refused_unless_kafka_source_is_selected(tmp_path: Path) -> None:
    legacy = operator_with_states(
        {"topic-partition-offset-states": [b"opaque"]}, operator_id=bytes(16)
    )
    alone = migrate("to-spark", write_checkpoint(tmp_path / "alone", legacy))
    assert (alone.code, alone.stdout) == (4, "")
    assert "FlinkKafkaConsumer" in alone.stderr
    beside = source_operator(SourceState({0: splits("t", [1])}))
    chk = write_checkpoint(tmp_path / "chk-7", legacy, beside)
    assert migrate("to-spark", chk).code == 4
    assert migrate("to-spark", chk, "--source", "topic:t").code == 0


@pytest.mark.parametrize(
    "arguments", [["to-spark", "--source", "\udcff"], ["to-spark", "-b", "x:1", "-X", "error_cb=1"]]
)
def test_invalid_unicode_or_property_is_usage_error(tmp_path: Path, arguments: list[str]) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    assert migrate(*arguments, chk).code == 2


@pytest.mark.parametrize("path", ["", "a" * 5000, "/no/such/directory"])
def test_inspect_list_of_missing_path_exits_3(path: str) -> None:
    assert migrate("inspect", "--list", path).code == 3


def test_pending_transactions_trigger_warning_even_after_stop_with_savepoint() -> None:
    for name, way_out in (
        ("2.2/retained", "is restored from this checkpoint"),
        ("2.2/stop", "shows the job as FINISHED, the stop committed that output"),
    ):
        report = json.loads(migrate("inspect", golden(name), "--format", "json").stdout)
        (found,) = [f for f in report["findings"] if f["code"] == "pending-transactions"]
        assert (found["severity"], way_out in found["message"]) == ("warning", True)
        moved = migrate("to-spark", golden(name), "--unresolved", "earliest")
        assert way_out in moved.stderr


def test_sink_without_pending_transactions_has_no_finding(tmp_path: Path) -> None:
    idle = operator_with_states({"writer_raw_states": []})
    chk = write_checkpoint(tmp_path / "chk-7", idle)
    report = json.loads(migrate("inspect", chk, "--format", "json").stdout)
    assert "pending-transactions" not in {finding["code"] for finding in report["findings"]}


def test_to_spark_warns_of_finished_operators() -> None:
    result = migrate("to-spark", golden("2.2/source-finished"))
    assert "warning: 2 operators had finished" in result.stderr


def test_command_line_without_arguments_prints_help() -> None:
    """Regression: `migrate` without arguments exited with 2 but printed nothing."""
    shown = migrate()
    assert (shown.code, shown.stdout) == (2, "")
    assert shown.stderr == migrate("--help").stdout
