"""Read positions from a Spark query, before any broker is queried, also from damaged queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from migrate.inputs.spark_log import newest_committed_batch
from migrate.inputs.spark_query import query_positions
from migrate.model.finding import Finding, Severity
from migrate.model.positions import Position, PositionState
from migrate.storage.files import Files
from tests.golden.spark.jobs import GOLDEN
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.spark_files import COMMIT, SEED, batch, spark_directory

ID = "0123abcd-0000-1111-2222-0123456789ab"
QUERY = {"metadata": f'{{"id":"{ID}"}}', "sources/0/0": SEED}
RUN = {**QUERY, "offsets/0": batch('{"t":{"0":90}}'), "commits/0": COMMIT}


def _findings(directory: Path) -> dict[str, Finding]:
    found = query_positions(f"spark:{directory}").findings
    return {finding.code: finding for finding in found}


def commit(target: str | Path, *options: str) -> Result:
    return migrate("commit-group", target, "--group", "g", "-b", "127.0.0.1:1", *options)


def test_query_is_read_as_one_source_with_positions_after_newest_committed_batch() -> None:
    directory = GOLDEN / "4.0" / "failed-batch"
    extraction = query_positions(f"spark:{directory}")
    (source,) = extraction.sources
    assert source.positions == tuple(
        Position("failed-batch-orders", partition, PositionState.NEXT, start)
        for partition, start in enumerate((14, 14, 18))
    )
    assert len(source.operator_id) == 32
    assert extraction.origin.number == 1
    assert [finding.code for finding in extraction.findings] == [
        "output-beyond",
        "uncommitted-batch",
    ]
    # A saved plan can be applied in any working directory.
    assert extraction.origin.pointer == f"spark://{directory}"
    assert query_positions(extraction.origin.pointer) == extraction


def test_positions_belong_to_reported_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running query can commit a new batch while `migrate` reads the location."""
    directory = spark_directory(tmp_path / "query", RUN)

    def then_commit(name: str, files: Files) -> int | None:
        number = newest_committed_batch(name, files)
        spark_directory(directory, {"offsets/1": batch('{"t":{"0":95}}'), "commits/1": COMMIT})
        return number

    monkeypatch.setattr("migrate.inputs.spark_query.newest_committed_batch", then_commit)
    positions = query_positions(f"spark:{directory}")
    (source,) = positions.sources
    assert (positions.origin.number, source.positions[0].start) == (0, 90)


@pytest.mark.parametrize(
    ("files", "code", "message"),
    [
        ({}, 3, "[no-query-at-location]"),
        (QUERY, 4, "[no-batch-committed]"),
        (
            {name: RUN[name] for name in RUN if name != "commits/0"},
            4,
            "[first-batch-uncommitted]",
        ),
        (
            {name: RUN[name] for name in RUN if name != "metadata"},
            3,
            "[no-query-id]",
        ),
        ({**RUN, "metadata": "{}"}, 3, "[query-id-unreadable]"),
        ({**RUN, "metadata": '{"id":'}, 3, "[log-entry-damaged]"),
        ({**RUN, "metadata": ""}, 3, "[log-entry-damaged]"),
        ({**RUN, "offsets/0": batch("17")}, 3, "[no-kafka-source-in-query]"),
        ({**RUN, "offsets/0": batch('{"t":{"0":90')}, 3, "[log-entry-damaged]"),
        ({**RUN, "offsets/0": batch('{"t":{"0":90}}', version="v9")}, 3, "[log-version-unknown]"),
        ({**RUN, "offsets/0": ""}, 3, "[log-entry-empty]"),
        (
            {**RUN, "offsets/0": batch('{"t":{"0":1}}', '{"t":{"0":2}}')},
            4,
            "[streams-at-different-positions]",
        ),
    ],
)
def test_location_without_usable_positions_is_refused(
    tmp_path: Path, files: Mapping[str, str], code: int, message: str
) -> None:
    directory = spark_directory(tmp_path / "query", files)
    directory.mkdir(exist_ok=True)
    result = commit(f"spark:{directory}")
    assert (result.code, result.stdout) == (code, "")
    assert message in result.stderr


def test_diff_verify_and_show_agree_on_query_in_its_first_batch(tmp_path: Path) -> None:
    """Regression: ``diff`` reported "before batch 0", and ``verify`` reported STARTED-AT.

    ``diff`` also warned about special modes (output-beyond), although any query may have written
    records of its first batch.
    """
    begun = {name: text for name, text in RUN.items() if name != "commits/0"}
    query = f"spark:{spark_directory(tmp_path / 'query', begun)}"
    seed = f"spark:{spark_directory(tmp_path / 'seed', QUERY)}"
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    compared = migrate("diff", query, chk)
    assert f"left  {query} (in batch 0, which is not committed)\n" in compared.stdout
    (warning,) = (line for line in compared.stderr.splitlines() if "batch" in line)
    assert warning == (
        f"warning: {query}: the query has started batch 0 but not committed it; any output that "
        "the batch has already written will be duplicated; to commit the batch before you move, "
        "run the query once with trigger(availableNow=True); if the batch cannot succeed, its "
        "output may be duplicated [uncommitted-batch]"
    )
    assert "STARTED-AT" in migrate("verify", chk, query).stdout.replace("WILL-START-AT", "")
    shown = migrate("show", query).stdout
    assert "a query has run from it, and is in batch 0, which is not committed\n" in shown
    # Before the first batch, all commands report the start in the future.
    compared = migrate("diff", seed, chk)
    assert f"left  {seed} (before batch 0)\n" in compared.stdout
    assert "batch]" not in compared.stderr and "output-beyond" not in compared.stderr
    assert "WILL-START-AT" in migrate("verify", chk, seed).stdout
    # After the first commit, only special modes can have output beyond the positions.
    done = f"spark:{spark_directory(tmp_path / 'done', RUN)}"
    compared = migrate("diff", done, chk)
    assert "[output-beyond]" in compared.stderr and "uncommitted" not in compared.stderr


def test_diff_warns_about_later_output_only_for_query_on_the_left(tmp_path: Path) -> None:
    """Regression: A check of the query's progress warned that records will be duplicated.

    Only a move from the query duplicates records, and the left side is the source of a move.
    """
    begun = {name: text for name, text in RUN.items() if name != "commits/0"}
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    for name, files, code in (
        ("begun", begun, "uncommitted-batch"),
        ("done", RUN, "output-beyond"),
    ):
        query = f"spark:{spark_directory(tmp_path / name, files)}"
        assert f"[{code}]" in migrate("diff", query, chk).stderr
        progress = migrate("diff", chk, query).stderr
        assert "duplicated" not in progress and f"[{code}]" not in progress


def test_refusal_of_uncommitted_first_batch_has_remedy_for_batch_that_cannot_succeed(
    tmp_path: Path,
) -> None:
    """Regression: The message advised only to rerun a batch that failed each time."""
    begun = {name: text for name, text in RUN.items() if name != "commits/0"}
    result = commit(f"spark:{spark_directory(tmp_path / 'query', begun)}")
    assert (
        "; start the query once with trigger(availableNow=True) to commit the batch; if the "
        in (result.stderr)
    )
    assert "batch cannot succeed, discard this location, and pass the checkpoint" in result.stderr


@pytest.mark.parametrize(
    "options", [("--source", "x"), ("--cluster", "x"), ("--source-group", "x")]
)
def test_flink_options_are_usage_errors_for_query(tmp_path: Path, options: tuple[str, ...]) -> None:
    directory = spark_directory(tmp_path / "query", RUN)
    assert commit(f"spark:{directory}", *options).code == 2


def test_uncommitted_batch_triggers_warning(tmp_path: Path) -> None:
    begun = {**RUN, "offsets/1": batch('{"t":{"0":95}}')}
    finding = _findings(spark_directory(tmp_path / "begun", begun))["uncommitted-batch"]
    assert finding.severity is Severity.WARNING
    assert "batch 1 " in finding.message
    done = {**begun, "commits/1": COMMIT}
    assert "uncommitted-batch" not in _findings(spark_directory(tmp_path / "done", done))


@pytest.mark.parametrize("version", ["3.5", "4.0", "4.1", "4.2"])
def test_asynchronous_progress_is_detected_by_missing_batches(version: str) -> None:
    """One of these real queries uses the option, but no log contains the name of the option."""
    for query in (GOLDEN / version).iterdir():
        finding = _findings(query)["output-beyond"]
        assert finding.severity is Severity.WARNING
        assert ("the query has logged batch" in finding.message) == (query.name == "async-progress")
        (_, *entries) = (file for file in sorted((query / "offsets").iterdir()))
        assert not any("asyncProgress" in file.read_text("latin-1") for file in entries)


def test_stateful_query_triggers_warning_about_state(tmp_path: Path) -> None:
    state = {"state/0/0/1.delta": "", "state/1/0/1.delta": ""}
    findings = _findings(spark_directory(tmp_path / "query", {**RUN, **state}))
    assert findings.keys() == {"query-state", "output-beyond"}
    assert findings["query-state"].severity is Severity.WARNING
    assert "2 operators" in findings["query-state"].message


def test_topic_of_two_sources_triggers_warning(tmp_path: Path) -> None:
    both = {**RUN, "offsets/0": batch('{"t":{"0":90},"u":{"0":1}}', '{"t":{"0":90},"v":{"0":1}}')}
    finding = _findings(spark_directory(tmp_path / "q", both))["shared-topic"]
    assert finding.severity is Severity.WARNING
    assert finding.message.startswith("several sources of the query read t, and the query's log")
    assert "shared-topic" not in _findings(spark_directory(tmp_path / "one", RUN))


def test_new_query_is_seeded_from_existing_query(tmp_path: Path) -> None:
    query = f"spark:{spark_directory(tmp_path / 'query', RUN)}"
    seed = tmp_path / "new"
    result = migrate("to-spark", query, "--checkpoint-dir", seed)
    assert (result.code, result.stdout) == (0, '{"t":{"0":90}}\n')
    assert (seed / "sources/0/0").read_bytes() == b'\0v1\n{"t":{"0":90}}'


# -- a plan for a query that kept running --------------------------------------------------------

_NEXT = {"offsets/1": batch('{"t":{"0":95}}'), "commits/1": COMMIT}


def _saved_plan(tmp_path: Path, *options: str) -> tuple[Path, Path]:
    """A query, and the file of a plan with its positions."""
    directory, plan = spark_directory(tmp_path / "query", RUN), tmp_path / "plan.json"
    saved = migrate("to-spark", f"spark:{directory}", *options, "--plan-out", plan)
    assert saved.code == 0, saved.stderr
    return directory, plan


def test_plan_is_refused_if_query_has_started_newer_batch(tmp_path: Path) -> None:
    """Regression: Without a broker, the plan was applied, so the new query duplicated the batch."""
    directory, plan = _saved_plan(tmp_path)
    assert migrate("to-spark", "--plan", plan).code == 0
    for files, sign in (
        ({"offsets/1": _NEXT["offsets/1"]}, "it has started batch 1"),
        (_NEXT, "it has committed batch 1"),
    ):
        spark_directory(directory, files)
        refused = migrate("to-spark", "--plan", plan, "--checkpoint-dir", tmp_path / "new")
        assert (refused.code, refused.stdout) == (4, "")
        assert f"the query kept running; {sign}, but the move is from batch 0" in refused.stderr
        assert not (tmp_path / "new").exists()


def test_plan_is_applied_if_query_started_uncommitted_batch_before_planning(tmp_path: Path) -> None:
    """The query had started the batch before the plan was made.

    The batch is therefore no evidence of later progress.
    """
    directory = spark_directory(tmp_path / "query", RUN | {"offsets/1": _NEXT["offsets/1"]})
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", f"spark:{directory}", "--plan-out", plan).code == 0
    assert migrate("to-spark", "--plan", plan).code == 0


def test_plan_with_override_is_applied_even_if_query_has_committed_newer_batch(
    tmp_path: Path,
) -> None:
    directory, plan = _saved_plan(tmp_path, "--allow-ran-on")
    spark_directory(directory, _NEXT)
    applied = migrate("to-spark", "--plan", plan)
    assert (applied.code, applied.stdout) == (0, '{"t":{"0":90}}\n')
    assert "warning: the query kept running; it has committed batch 1" in applied.stderr


def test_plan_of_missing_query_is_refused(tmp_path: Path) -> None:
    directory, plan = _saved_plan(tmp_path)
    directory.rename(tmp_path / "elsewhere")
    refused = migrate("to-spark", "--plan", plan)
    assert (refused.code, refused.stdout) == (4, "")
    assert "[query-progress-unknown]" in refused.stderr


def test_plan_is_refused_if_commits_of_query_were_deleted(tmp_path: Path) -> None:
    directory, plan = _saved_plan(tmp_path)
    (directory / "commits/0").unlink()
    refused = migrate("to-spark", "--plan", plan)
    assert (refused.code, refused.stdout) == (4, "")
    assert "it has committed no batch, but the move is from batch 0" in refused.stderr


def test_plan_of_replaced_query_is_refused(tmp_path: Path) -> None:
    directory, plan = _saved_plan(tmp_path)
    (directory / "metadata").write_text(RUN["metadata"].replace("abcd", "dcba"))
    refused = migrate("to-spark", "--plan", plan)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"{directory} now belongs to a different query" in refused.stderr
    assert "[query-progress-unknown]" in refused.stderr
