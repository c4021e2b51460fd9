"""Repeated arguments, combinations of arguments, and spellings of paths."""

from __future__ import annotations

import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest

from migrate.cli.help import commands
from migrate.cli.main import load_command
from migrate.inputs.flink.rest_api import known_jobs
from migrate.inputs.spark_query import query_positions
from migrate.model.errors import UsageError
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.spark_files import COMMIT, SEED, batch, spark_directory

ROOT = Path(__file__).parents[3]


@pytest.fixture
def chk(tmp_path: Path) -> Path:
    return write_source(tmp_path / "chk-7", {0: splits("t", [3])})


# -- repeated arguments -------------------------------------------------------------------------


def _in_one_line(box: str) -> str:
    return " ".join(box.replace("│", " ").split())


@pytest.mark.parametrize("name", commands())
def test_option_with_single_value_is_rejected_if_repeated(name: str) -> None:
    """Regression: The last value silently won, so the first source was not moved."""
    params = load_command(name).params
    for option in params:
        if option.param_type_name != "option" or option.multiple or option.is_flag:
            continue
        kind = option.type_descriptor.annotation
        value = next(iter(kind)).value if issubclass(kind, Enum) else "1"
        first, last = option.opts[0], option.opts[-1]
        needed = [one.opts[0] for one in params if one.param_type_name == "option" and one.required]
        required = [word for flag in needed if flag != first for word in (flag, "g")]
        target = ("2",) if name in ("diff", "verify", "verify-state") else ()
        result = migrate(name, "1", *target, *required, first, value, last, value)
        assert (result.code, result.stdout) == (2, "")
        assert f"{first} takes one value, but was passed 2" in _in_one_line(result.stderr)


@pytest.mark.parametrize(
    "given",
    [
        ("--source", "topic:t", "--source", "topic:u"),
        ("--source", "topic:t", "--source=topic:t"),
        ("--source", "topic:t", "--format", "json", "--source", "topic:t"),
    ],
)
def test_error_for_repeated_source_option_contains_option_name(
    chk: Path, given: tuple[str, ...]
) -> None:
    result = migrate("to-spark", chk, *given)
    assert (result.code, result.stdout) == (2, "")
    assert "--source takes one value, but was passed 2" in _in_one_line(result.stderr)


def test_flags_and_partition_lists_may_be_repeated(chk: Path) -> None:
    flags = ("--allow-ran-on", "--allow-ran-on", "-v", "-v")
    lists = ("--partitions", "t:0", "--partitions", "t:0")
    assert migrate("-v", "to-spark", chk, *flags, *lists).stdout == '{"t":{"0":3}}\n'


def test_help_is_shown_despite_repeated_option(chk: Path) -> None:
    assert migrate("to-spark", chk, "--source", "a", "--source", "b", "--help").code == 0


@pytest.mark.parametrize(
    "arguments", [("-q", "-v", "inspect"), ("-v", "inspect", "-q"), ("inspect", "-v", "-q")]
)
def test_quiet_and_verbose_are_mutually_exclusive(chk: Path, arguments: tuple[str, ...]) -> None:
    result = migrate(*arguments, chk)
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr == "migrate: --quiet cannot be combined with --verbose\n"


# -- combinations of arguments ------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--source", "--cluster"])
def test_source_options_are_rejected_with_saved_plan(
    chk: Path, tmp_path: Path, option: str
) -> None:
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", chk, "--plan-out", plan).code == 0
    query = spark_directory(tmp_path / "query", {"metadata": _ID, "sources/0/0": SEED})
    assert migrate("verify", f"plan:{plan}", f"spark:{query}").code == 0
    result = migrate("verify", f"plan:{plan}", f"spark:{query}", option, "x")
    assert (result.code, result.stdout) == (2, "")
    assert (
        f"{option} requires a checkpoint, and cannot be combined with plan:FILE"
    ) in result.stderr


def test_error_for_malformed_jobmanager_address_contains_no_secret() -> None:
    for address in ("bogus", "ftp://host:8081", "http://user:secret@host:8081"):
        with pytest.raises(UsageError) as wrong:
            known_jobs(address)
        assert "secret" not in str(wrong.value)


# -- files --------------------------------------------------------------------------------------

_ID = '{"id":"00000000-0000-0000-0000-000000000000"}'
_FILE_URIS = ("file:{}", "file://{}", "file://localhost{}")


@pytest.mark.parametrize("uri", _FILE_URIS)
def test_commands_accept_file_uri_for_local_files(chk: Path, tmp_path: Path, uri: str) -> None:
    plan, offsets, rows = (uri.format(tmp_path / name) for name in ("p.json", "o.json", "o.csv"))
    assert migrate("to-spark", chk, "--plan-out", plan).code == 0
    applied = migrate("to-spark", "--plan", plan)
    assert (applied.code, applied.stdout) == (0, '{"t":{"0":3}}\n')
    (tmp_path / "o.json").write_text(applied.stdout)
    (tmp_path / "o.csv").write_text("t,0,3\n")
    for side in (f"json:{offsets}", f"csv:{rows}"):
        result = migrate("diff", chk, side, "--exit-code")
        assert result.code == 0, result.stderr
    files = {"metadata": _ID, "sources/0/0": SEED}
    query = uri.format(spark_directory(tmp_path / "query", files))
    result = migrate("diff", chk, f"spark:{query}", "--exit-code")
    assert result.code == 0, result.stderr
    for moved in (str(chk), f"plan:{plan}"):
        result = migrate("verify", moved, f"spark:{query}")
        assert result.code == 0, result.stderr


def test_follow_accepts_query_whose_metadata_file_has_temporary_name(tmp_path: Path) -> None:
    """Spark first writes `metadata` under a temporary name and then renames the file."""
    query = spark_directory(tmp_path / "query", {".metadata.1.tmp": ""})
    followed = migrate("follow", f"spark:{query}", "--group", "g", "-b", "127.0.0.1:1", "--once")
    assert followed.code == 6  # no broker answers


@pytest.mark.parametrize("uri", ["file:{}", "file://{}"])
def test_rollback_accepts_file_uri(tmp_path: Path, uri: str) -> None:
    missing = migrate("rollback", uri.format(tmp_path / "none.json"))
    assert missing.code == 3
    assert missing.stderr.startswith(f"migrate: the file {tmp_path}/none.json does not exist")


@pytest.mark.parametrize("uri", _FILE_URIS)
def test_positions_of_query_are_read_from_file_uri(tmp_path: Path, uri: str) -> None:
    files = {"metadata": _ID, "offsets/0": batch('{"t":{"0":9}}'), "commits/0": COMMIT}
    query = spark_directory(tmp_path / "query", files)
    found = query_positions(f"spark:{uri.format(query)}")
    assert found.origin.pointer == f"spark://{query}"
    # The format of the pointer in a saved plan.
    assert query_positions(found.origin.pointer).origin == found.origin


@pytest.mark.parametrize("uri", ["s3://bucket/p.json", "nosuch://x/p.json"])
def test_uri_with_other_scheme_is_rejected_where_local_file_is_expected(
    chk: Path, uri: str
) -> None:
    says = f"{uri} is not a local file; pass a path or a file: URI"
    for arguments in (
        ("to-spark", "--plan", uri),
        ("to-spark", chk, "--plan-out", uri),
        ("diff", chk, f"json:{uri}"),
        ("diff", chk, f"csv:{uri}"),
    ):
        result = migrate(*arguments)
        assert (result.code, result.stdout) == (2, "")
        assert says in _in_one_line(result.stderr)


def test_diff_and_verify_reject_query_uri_of_unknown_scheme(chk: Path) -> None:
    for command in (("diff", chk), ("verify", chk)):
        result = migrate(*command, "spark:nosuch://x/query")
        assert (result.code, result.stdout) == (3, "")
        assert "URIs of this kind are not supported" in result.stderr


def _without_root(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run ``migrate`` so that file modes apply, even if the tests run as root."""
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    command = [sys.executable, "-m", "migrate", *map(str, arguments)]
    if subprocess.run([*drop, "true"], capture_output=True).returncode == 0:
        command = [*drop, *command]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.slow  # each run starts a process
def test_unreadable_file_exits_3_with_permission_denied(chk: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked.json"
    locked.write_text("{}")
    for path in (locked, chk / "_metadata"):
        path.chmod(0)
    for arguments in (
        ("inspect", chk),
        ("to-spark", "--plan", locked),
        ("rollback", locked),
        ("diff", f"json:{locked}", f"csv:{locked}"),
    ):
        done = _without_root(*arguments)
        assert (done.returncode, done.stdout) == (3, "")
        assert "Permission denied" in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow  # each run starts a process
def test_denied_read_exits_3_and_denied_write_exits_6(chk: Path, tmp_path: Path) -> None:
    """Regression: The exit code was 2, 3, or 6, depending on the kind of file."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    properties = tmp_path / "client.properties"
    properties.touch(mode=0)
    for arguments, code in (
        (("to-spark", chk, "--kafka-config", properties, "-b", "127.0.0.1:1"), 3),
        (("to-spark", chk, "--plan-out", closed / "plan.json"), 6),
        (("to-spark", chk, "--checkpoint-dir", closed / "query"), 6),
        (("scan", chk, "--output", closed / "tables", "--format", "csv"), 6),
    ):
        done = _without_root(*arguments)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert "Permission denied" in done.stderr
        if "--checkpoint-dir" in arguments:
            assert f"--checkpoint-dir {closed / 'query'}: cannot be written: " in done.stderr


def test_error_for_missing_input_states_expected_input(chk: Path, tmp_path: Path) -> None:
    for arguments, says in (
        (("verify", tmp_path / "none", f"spark:{tmp_path}"), "pass a chk-<n>"),
        (("verify", chk, f"spark:{tmp_path / 'none'}"), "pass the checkpointLocation of a query"),
        (
            ("verify", f"plan:{tmp_path}/none", "spark:x"),
            "create a plan with --plan-out",
        ),
        (("to-spark", "--plan", tmp_path / "none"), "create a plan with --plan-out"),
        (("rollback", tmp_path / "none"), "pass a file that commit-group with --execute wrote"),
    ):
        result = migrate(*arguments)
        assert (result.code, result.stdout) == (3, "")
        assert says in result.stderr
