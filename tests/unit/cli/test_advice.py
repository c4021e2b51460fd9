"""Check the advice in messages for common mistakes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from migrate.cli import terminal
from migrate.kafka.config import redact_secrets
from migrate.model.cluster_snapshot import GroupView
from migrate.model.warning import WarningText, warn
from migrate.model.warning_catalog import NOT_CHECKED
from migrate.storage.json_models import write_file
from migrate.targets.group import rollback_file
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.encoder import EARLIEST


@pytest.fixture
def chk(tmp_path: Path) -> Path:
    return write_source(tmp_path / "job" / "chk-7", {0: splits("t", [3, 4])})


def test_error_for_directory_of_jobs_suggests_job_directory(chk: Path, tmp_path: Path) -> None:
    for command in (("inspect",), ("to-spark",), ("diff", str(chk))):
        result = migrate(*command, tmp_path)
        assert (result.code, result.stdout) == (3, "")
        assert f"; did you mean {chk.parent}?\n" in result.stderr
    (tmp_path / "other").mkdir()
    assert "did you mean" not in migrate("inspect", tmp_path / "other").stderr


def test_error_for_directory_of_savepoints_suggests_savepoints(tmp_path: Path) -> None:
    saved = write_source(tmp_path / "savepoint-1", {0: splits("t", [3])})
    assert f"; did you mean {saved}?\n" in migrate("inspect", tmp_path).stderr
    other = write_source(tmp_path / "savepoint-2", {0: splits("t", [3])})
    assert f"under it: {saved}, {other}\n" in migrate("inspect", tmp_path).stderr


def test_error_for_damaged_checkpoint_suggests_newest_complete_checkpoint(chk: Path) -> None:
    whole = write_source(chk.parent / "chk-8", {0: splits("t", [5, 6])})
    for number in (9, 10):
        cut = write_source(chk.parent / f"chk-{number}", {0: splits("t", [7, 8])}) / "_metadata"
        cut.write_bytes(cut.read_bytes()[:-100])
    result = migrate("to-spark", chk.parent)
    assert (result.code, result.stdout) == (3, "")
    assert f"the newest complete checkpoint is {whole}" in result.stderr
    # If the user passes a specific checkpoint, a different one is not suggested.
    assert "newest complete" not in migrate("to-spark", chk.parent / "chk-10").stderr


def test_error_for_checkpoint_location_without_prefix_suggests_spark_prefix(
    chk: Path, tmp_path: Path
) -> None:
    query = tmp_path / "query"
    assert migrate("to-spark", chk, "--checkpoint-dir", query).code == 0
    for command in (
        ["diff", chk, query],
        ["diff", query, chk],
        ["verify", query, f"spark:{query}"],
    ):
        result = migrate(*map(str, command))
        assert result.code == 3
        assert f"pass spark:{query}" in result.stderr
    swapped = migrate("verify", chk, query)
    assert (swapped.code, swapped.stdout) == (2, "")
    assert f"spark:{query}" in swapped.stderr and "after the checkpoint" in swapped.stderr


@pytest.mark.parametrize(
    ("target", "advice", "other"),
    [
        ("plan:plan.json", "pass plan:FILE as the first argument, and the target", "spark:plan"),
        ("topic:orders", "pass spark:DIR or group:NAME", "spark:topic"),
        ("a/query", "pass spark:a/query", "group:"),
        ("query", "pass spark:query", "group:"),
        ("orders-next", "pass group:orders-next", "spark:"),
    ],
)
def test_error_for_verify_target_without_prefix_suggests_plausible_prefix(
    chk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, advice: str, other: str
) -> None:
    """Regression: The message suggested spark: and group: for any target.

    It also suggested spark:plan:plan.json.
    """
    monkeypatch.chdir(tmp_path)
    Path("query").mkdir()
    result = migrate("verify", chk, target)
    assert (result.code, result.stdout) == (2, "")
    assert advice in result.stderr and other not in result.stderr


def test_error_for_missing_path_suggests_only_similar_path(
    chk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: The message suggested "decoder" for "second"."""
    monkeypatch.chdir(chk.parent)
    for name in ("decoder", "checkpoints"):
        Path(name).mkdir()
    assert "did you mean" not in migrate("diff", chk, "second").stderr
    assert "did you mean checkpoints?" in migrate("inspect", "chekpoints").stderr
    for command in (["diff", chk, "second"], ["diff", "second", chk], ["to-spark", "second"]):
        assert migrate(*command).stderr.endswith("; for a consumer group, pass group:second\n")
    for path in ("a/second", "chk-9"):
        assert "group:" not in migrate("diff", chk, path).stderr
    assert "group:" not in migrate("commit-group", "second", "--group", "g", "-b", "b:1").stderr


def test_url_with_missing_slash_gets_suggestion() -> None:
    result = migrate("inspect", "s3:/bucket/chk-1")
    assert result.code == 3
    assert result.stderr.endswith("; did you mean s3://bucket/chk-1?\n")
    assert "did you mean" not in migrate("inspect", "ftp://host/chk-1").stderr


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_web_address_as_broker_is_refused(scheme: str, chk: Path) -> None:
    result = migrate("to-spark", chk, "-b", f"{scheme}://broker:9092")
    assert (result.code, result.stdout) == (2, "")
    assert f"write HOST:PORT without {scheme}://" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("servers", ["127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2"])
def test_closed_port_is_reported_within_seconds(servers: str, chk: Path) -> None:
    """Regression: The command printed nothing for 15 s."""
    began = time.monotonic()
    result = migrate("to-spark", chk, "-b", servers)
    assert time.monotonic() - began < 4  # 2 s, and a busy machine
    assert (result.code, result.stdout) == (6, "")
    assert f"no broker answered at {servers}" in result.stderr
    assert "Connection refused)" in result.stderr


def test_missing_partition_is_reported_with_existing_partitions(chk: Path) -> None:
    result = migrate("to-spark", chk, "--partitions", "t:9")
    assert (result.code, result.stdout) == (4, "")
    assert "the checkpoint contains t-0, t-1" in result.stderr


def test_error_for_execute_option_states_that_command_does_not_have_it(chk: Path) -> None:
    """The message for a misspelled --execute is the same."""
    result = migrate("to-spark", chk, "--execute")
    assert result.code == 2
    assert "this command has no --execute" in " ".join(result.stderr.split())
    assert "--cluster" not in result.stderr
    result = migrate("to-spark", chk, "--exceute")
    assert result.code == 2
    assert "--exceute; this command has no --execute" in " ".join(result.stderr.split())


def test_error_for_unknown_option_lists_commands_that_have_this_option(chk: Path) -> None:
    result = migrate("to-spark", chk, "--group", "orders")
    assert result.code == 2
    text = " ".join(result.stderr.replace("│", " ").split())
    assert "--group; commands with this option: scan, commit-group, follow" in text
    assert "--gone" not in text


def test_plan_and_rollback_file_are_refused_as_checkpoint(chk: Path, tmp_path: Path) -> None:
    plan, back = tmp_path / "plan.json", tmp_path / "r.json"
    assert migrate("to-spark", chk, "--plan-out", plan).code == 0
    group = GroupView("g", False, "Dead", "unknown")
    write_file(rollback_file.rollback_file("commit", None, "broker:9092", group, {}, {}), back)
    for file, advice in (
        (plan, f"to apply it, pass --plan {plan} (to verify, plan:{plan})"),
        (back, f"to roll back, run `migrate rollback {back}`"),
    ):
        named = migrate("to-spark", file)
        assert named.code == 3
        assert advice in named.stderr
    swapped = migrate("rollback", plan)
    assert (swapped.code, swapped.stderr) == (
        3,
        f"migrate: the file {plan} is a plan, not a rollback file of version 1 or 2; pass a file "
        "that commit-group with --execute wrote, or a copy of it; to show this plan, run "
        f"`migrate show {plan}` [file-of-other-kind]\n",
    )
    other = migrate("to-spark", "--plan", back)
    assert other.code == 3
    assert "is a rollback, not a plan of version 2; create a plan with --plan-out " in other.stderr


def test_unwritable_checkpoint_location_is_reported_by_name(chk: Path) -> None:
    """Regression: The message named a temporary directory instead of the checkpoint location."""
    result = migrate("to-spark", chk, "--checkpoint-dir", "/proc/query")
    assert (result.code, result.stdout) == (6, "")
    assert result.stderr.splitlines()[-1].startswith("migrate: /proc/query: ")


def test_partitions_refused_for_same_reason_are_reported_in_one_line(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [EARLIEST] * 30)})
    result = migrate("to-spark", chk)
    (refused,) = [line for line in result.stderr.splitlines() if line.startswith("refused: ")]
    assert refused.startswith("refused: t-0, t-1, t-2, ")
    assert "t-19 and 10 more: unresolved: the job has not read any records" in refused


def test_single_letter_password_is_redacted_only_as_whole_word() -> None:
    """Regression: The password ``b`` turned "broker's" into ``…roker's``."""
    config = {"sasl.password": "b"}
    assert redact_secrets("the broker's answer to b: 'b'", config) == (
        "the broker's answer to …: '…'"
    )
    assert redact_secrets("xhushx", {"sasl.password": "hush"}) == "x…x"


@pytest.mark.parametrize(
    "arguments",
    [
        ("to-spark", "missing/chk-1", "--plan-out", "s3://bucket/plan.json"),
        ("rollback", "missing.json", "--rollback-file", "s3://bucket/rollback.json"),
    ],
)
def test_url_in_place_of_output_file_is_refused_before_input_is_read(
    arguments: tuple[str, ...],
) -> None:
    """Regression: The URL was refused only after the broker was queried and the plan was shown."""
    refused = migrate(*arguments)
    assert (refused.code, refused.stdout) == (2, "")
    assert "s3://bucket/" in refused.stderr


def test_warning_is_shown_once_per_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: Each step of a cut-over and each plan of a scan printed the same warnings."""
    for _ in range(2):
        terminal.reset()
        for _ in range(3):
            warn(NOT_CHECKED())
        assert capsys.readouterr().err == f"warning: {WarningText(NOT_CHECKED())}\n"
