"""Check that a command ends with its result and with a next command to copy."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from migrate.cli import next_step
from migrate.cli.main import load_command
from migrate.cli.next_step import command
from migrate.model.positions import Origin, target_of
from migrate.moves.options import MoveArguments
from migrate.planning import Plan
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.golden import golden
from tests.support.keyed_checkpoint import write_totals


@pytest.fixture
def chk(tmp_path: Path) -> Path:
    return write_source(tmp_path / "a job" / "chk-7", {0: splits("orders", [3, 40])})


def _last(result: Result) -> str:
    assert result.code == 0, result.stderr
    return result.stderr.splitlines()[-1]


def _run(line: str) -> Result:
    """Run the command at the end of a line, split as a shell would split it."""
    return migrate(*shlex.split(line.partition(": migrate ")[2]))


def test_to_spark_suggests_working_verify_command_after_writing_seed(
    chk: Path, tmp_path: Path
) -> None:
    seeded = _last(migrate("to-spark", chk, "--checkpoint-dir", tmp_path / "a query"))
    assert seeded.startswith("next (now, and again soon after the query's first batch): ")
    verified = _run(seeded)
    assert "spark:" in verified.stdout and "2 ok" in verified.stdout
    assert _last(verified) == "verified: all 2 partitions will start where the checkpoint ended"


def test_unchecked_sink_is_reported_once_by_to_spark_query_and_verify(
    chk: Path, tmp_path: Path
) -> None:
    """Regression: With the sink of an earlier query, Spark skipped batches without a word."""
    skips = "if an earlier query wrote to the sink, the sink may skip the first batches of this"
    query = tmp_path / "query.py"
    code = ("--format", "python", "--query-file", query)
    seeded = migrate("to-spark", chk, "--checkpoint-dir", tmp_path / "q", *code)
    (line,) = (line for line in seeded.stderr.splitlines() if "the query's sink" in line)
    assert line == (
        f"note: the query's sink was not checked; {skips} query; to check it, rerun with "
        "--sink DIR instead of --checkpoint-dir"
    )
    assert query.read_text().count("The sink of an earlier query may skip") == 1
    verified = migrate("verify", chk, f"spark:{tmp_path / 'q'}")
    (line,) = (line for line in verified.stderr.splitlines() if "the query's sink" in line)
    assert line == (
        f"not checked: the query's sink; {skips} query; to check it, run `migrate to-spark` with "
        "--sink DIR"
    )
    write_source(tmp_path / "chk-8", {0: splits("orders", [4, 41])})
    assert (
        "query's sink"
        not in migrate("verify", tmp_path / "chk-8", f"spark:{tmp_path / 'q'}").stderr
    )
    checked = migrate("to-spark", chk, "--sink", tmp_path / "s", "--checkpoint-dir", tmp_path / "r")
    assert checked.code == 0 and "not checked;" not in checked.stderr
    stopped = ("to-spark", golden("2.2/stop"), "--partitions", "orders:0")
    assert " new checkpointLocation and a new sink; " in _last(migrate(*stopped))
    checked = migrate(*stopped, "--sink", tmp_path / "s")
    assert " new checkpointLocation; " in _last(checked)


def test_to_spark_suggests_stop_with_savepoint_for_retained_checkpoint(
    chk: Path, tmp_path: Path
) -> None:
    told = "next: stop the job with a savepoint, and rerun the command with the savepoint"
    assert _last(migrate("to-spark", chk)) == told
    # Regression: The message did not say that a cut-over stops the job itself.
    template = ("--format", "python", "--query-file", tmp_path / "query.py")
    assert _last(migrate("to-spark", chk, *template)) == (
        "next: complete the query; then run migrate cut-over, which stops the job itself, or "
        "stop the job with a savepoint, and rerun the command with the savepoint"
    )
    stopped = _last(migrate("to-spark", golden("2.2/stop"), "--partitions", "orders:0"))
    assert stopped.startswith("next: use this output as startingOffsets")


def test_to_spark_suggests_saved_plan_instead_of_verify_for_renamed_topics(
    chk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped = ("--topic-map", "orders=other")
    seeded = migrate("to-spark", chk, *mapped, "--checkpoint-dir", tmp_path / "query")
    assert seeded.code == 0 and "migrate verify" not in seeded.stderr
    # Regression: Nothing said that only a plan could be verified, and ``verify`` then failed.
    assert _last(seeded).startswith("verify can check a move with these options only against its ")
    saved = migrate("to-spark", chk, *mapped, "--plan-out", tmp_path / "plan.json")
    applied = _last(saved)
    assert "review it, and then run: migrate to-spark --plan" in applied
    monkeypatch.chdir(tmp_path)  # the command writes to DIR
    assert applied.endswith(" --checkpoint-dir DIR") and _run(applied).code == 0
    assert "other" in migrate("show", "DIR").stdout
    # A saved plan contains the topic map, so its seed can be verified.
    seeded = migrate(
        *("to-spark", "--plan", tmp_path / "plan.json", "--checkpoint-dir", tmp_path / "other")
    )
    assert "2 ok" in _run(_last(seeded)).stdout


def test_suggested_command_repeats_source_option(tmp_path: Path) -> None:
    two = golden("2.2/two-sources")
    saved = migrate("to-spark", two, "--source", "orders-us", "--checkpoint-dir", tmp_path / "q")
    assert "3 ok" in _run(_last(saved)).stdout


def test_saving_plan_shows_planned_positions(chk: Path, tmp_path: Path) -> None:
    saved = migrate("to-spark", chk, "--plan-out", tmp_path / "plan.json")
    rows = [line.split() for line in saved.stderr.splitlines()]
    assert ["orders", "1", "40", "ok"] in rows


def test_inspect_list_suggests_inspection_of_newest_checkpoint(chk: Path) -> None:
    listed = _last(migrate("inspect", "--list", chk.parent))
    assert listed.startswith("1 complete checkpoint; next: ")
    assert _last(_run(listed)).startswith("1 Kafka source, 2 positions, ")


def test_findings_are_counted_by_severity() -> None:
    assert ", 1 warning, 1 note; next: " in _last(migrate("inspect", golden("2.2/stop")))


def test_state_list_suggests_command_that_prints_entries_of_single_state(tmp_path: Path) -> None:
    listed = _last(migrate("state", write_totals(tmp_path / "a job" / "savepoint-1", 3)))
    assert listed.startswith("1 state of 1 operator; next, to print the entries of one state: ")
    assert len(_run(listed).stdout.splitlines()) == 3


def test_json_and_csv_output_suggest_no_next_step(chk: Path) -> None:
    for format in ("json", "csv"):
        assert migrate("inspect", chk, "--format", format).stderr == ""


def test_quiet_hides_next_step(chk: Path, tmp_path: Path) -> None:
    query = tmp_path / "query"
    seeded = migrate("to-spark", chk, "-q", "--checkpoint-dir", query)
    verified = migrate("verify", "-q", chk, f"spark:{query}")
    for quiet in (seeded, migrate("inspect", "-q", chk), verified):
        assert quiet.code == 0
        assert all(line.startswith("warning: ") for line in quiet.stderr.splitlines())


def test_suggested_verify_command_contains_checkpoint_instead_of_job_directory(
    chk: Path, tmp_path: Path
) -> None:
    """Regression: The command contained the job directory, so it verified a newer checkpoint."""
    job = tmp_path / "of a job"
    read = write_source(job / "chk-7", {0: splits("orders", [3, 40])})
    seeded = migrate("to-spark", job, "--checkpoint-dir", tmp_path / "query")
    assert f"migrate verify '{read}' spark:" in _last(seeded)
    write_source(job / "chk-8", {0: splits("orders", [5, 50])})
    assert _run(_last(seeded)).code == 0


def test_failed_verification_ends_with_summary(chk: Path, tmp_path: Path) -> None:
    query = tmp_path / "query"
    assert migrate("to-spark", chk, "--checkpoint-dir", query).code == 0
    later = write_source(tmp_path / "chk-8", {0: splits("orders", [3, 41])})
    found = migrate("verify", later, f"spark:{query}")
    assert found.code == 5
    assert "1 ok, 1 repeated (up to 1 offset)" in found.stdout
    assert (
        "repeated (1): the target starts below the position, and rereads the records between; if "
        "CHK is newer than the checkpoint that was moved, pass the checkpoint that was moved"
    ) in found.stderr
    assert found.stderr.splitlines()[-1] == "not verified: 1 of 2 partitions failed verification"


def test_suggested_command_repeats_kafka_options_but_hides_properties() -> None:
    told = command(
        "rollback",
        Path("r.json"),
        kafka={
            "bootstrap_servers": "broker:9092",
            "kafka_config": Path("client.properties"),
            "kafka_properties": {"sasl.password": "hush"},
        },
    )
    assert told == "migrate rollback r.json -b broker:9092 --kafka-config client.properties -X …"


_OTHER_CLUSTER: list[MoveArguments] = [
    {},
    {"to_bootstrap_servers": "east:9092"},
    {"to_kafka_config": Path("east.properties")},
    {"to_bootstrap_servers": "east:9092", "to_kafka_config": Path("east.properties")},
]


@pytest.mark.parametrize("group", [None, "new"])
@pytest.mark.parametrize("other", _OTHER_CLUSTER)
def test_suggested_commands_have_only_options_that_exist(
    other: MoveArguments, group: str | None
) -> None:
    """Regression: After a move to another cluster, rollback was suggested with its options."""
    arguments: MoveArguments = {
        "bootstrap_servers": "west:9092",
        "kafka_config": Path("west.properties"),
        "kafka_properties": {"client.id": "x"},
        "flink_rest": "http://jobmanager:8081",
        "topic_map": {"orders": "west.orders"},
        "source": "orders",
        "cluster": "west",
        "allow_external_files": True,
        "one_cluster": True,
        **other,
    }
    origin = Origin("checkpoint", "/job/chk-7", 7)
    plan = Plan(origin, target_of(group), (), queried_flink=True)
    told = [
        next_step.application(plan, "plan.json", arguments),
        next_step.rollback("rollback.json", arguments),
        next_step.comparison("chk-7", "spark:query", arguments),
        next_step.check_of_savepoint("chk-7", "group:g", "new", arguments).partition(": ")[2],
        next_step.verification(None, "plan.json", origin, "group:g", arguments),
        next_step.verification("chk-7", None, origin, "group:g", {**arguments, "topic_map": None}),
    ]
    assert (told[-1] is None) is bool(other)
    for line in filter(None, told):
        _, name, *rest = shlex.split(line)
        load_command(name).make_context(name, rest)  # raises for an unknown or misplaced option


@pytest.mark.parametrize(
    ("other", "options"),
    [
        ({}, "-b west:9092 --kafka-config west.properties -X …"),
        ({"to_bootstrap_servers": "east:9092"}, "-b east:9092"),
        ({"to_kafka_config": Path("east.properties")}, "--kafka-config east.properties"),
        (
            {"to_bootstrap_servers": "east:9092", "to_kafka_config": Path("east.properties")},
            "-b east:9092 --kafka-config east.properties",
        ),
    ],
)
def test_suggested_rollback_connects_to_cluster_of_group(
    other: MoveArguments, options: str
) -> None:
    arguments: MoveArguments = {
        "bootstrap_servers": "west:9092",
        "kafka_config": Path("west.properties"),
        "kafka_properties": {"client.id": "x"},
        **other,
    }
    assert next_step.rollback("r.json", arguments) == f"migrate rollback r.json {options}"


def test_suggested_diff_for_another_cluster_repeats_topic_map() -> None:
    """Regression: Without the option, every renamed topic differed."""
    names: MoveArguments = {"bootstrap_servers": "west:9092", "topic_map": {"orders": "w.orders"}}
    told = next_step.check_of_savepoint("old", "spark:q", "new", names)
    assert told == "to show the changes: migrate diff old new -b west:9092"
    other: MoveArguments = {**names, "to_kafka_config": "e"}
    told = next_step.check_of_savepoint("old", "spark:q", "new", other)
    assert told == (
        "to show the changes: migrate diff old new -b west:9092 --to-kafka-config e "
        "--topic-map orders=w.orders"
    )


@pytest.mark.parametrize(
    ("side", "changed", "expected"),
    [
        ("spark:q", {}, "to check its positions: migrate diff spark:q new -b west:9092"),
        ("group:g", {}, "to check its positions: migrate diff group:g new -b west:9092"),
        # The logs grow, the option changes a position, and the other sources keep their positions.
        ("broker:latest", {}, "to show the changes: migrate diff old new -b west:9092"),
        (
            "spark:q",
            {"on_expired": "earliest"},
            "to show the changes: migrate diff old new -b west:9092",
        ),
        ("spark:q", {"source": "clicks"}, "to show the changes: migrate diff old new -b west:9092"),
    ],
)
def test_suggested_check_of_savepoint_compares_positions_with_their_input(
    side: str, changed: MoveArguments, expected: str
) -> None:
    arguments: MoveArguments = {"bootstrap_servers": "west:9092", **changed}
    assert next_step.check_of_savepoint("old", side, "new", arguments) == expected


@pytest.mark.parametrize(
    ("chk", "changed", "expected"),
    [
        ("spark:q", {}, "migrate diff spark:q group:g -b west:9092"),
        ("json:o.json", {}, "migrate diff json:o.json group:g -b west:9092"),
        ("broker:latest", {}, None),
        ("spark:q", {"on_expired": "earliest"}, None),
        ("spark:q", {"to_bootstrap_servers": "east:9092"}, None),
    ],
)
def test_suggested_check_of_move_without_checkpoint_is_diff(
    chk: str, changed: MoveArguments, expected: str | None
) -> None:
    """Regression: After a move from a query to a group, no check was suggested."""
    origin = Origin("batch" if chk.startswith("spark:") else "positions", chk, 3)
    arguments: MoveArguments = {"bootstrap_servers": "west:9092", **changed}
    assert next_step.verification(chk, None, origin, "group:g", arguments) == expected


def test_check_after_seeding_from_offsets_is_run_before_query_starts(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets.json"
    offsets.write_text('{"orders":{"0":5}}')
    seeded = migrate("to-spark", f"json:{offsets}", "--checkpoint-dir", tmp_path / "query")
    last = seeded.stderr.splitlines()[-1]
    assert last.startswith("next (before the query starts): migrate diff json:"), seeded.stderr
    compared = _run(last)
    assert (compared.code, "1 same" in compared.stdout) == (0, True)
