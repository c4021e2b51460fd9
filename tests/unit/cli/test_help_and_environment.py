"""Check help, completion, verbosity, and environment variables of the command line."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from migrate.cli.help import commands, examples
from migrate.cli.main import load_command
from migrate.cli.terminal import reset
from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.model.errors import add_notes
from migrate.model.warning import WarningText, warn
from migrate.model.warning_catalog import MISSING_PARTITIONS, NOT_CHECKED
from migrate.storage.json_models import write_file
from migrate.targets.group import rollback_file
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.encoder import EARLIEST
from tests.support.golden import golden
from tests.support.spark_files import COMMIT, SEED, batch, spark_directory

ROOT = Path(__file__).parents[3]
# No server listens on this port, because it is reserved.
NOBODY = "127.0.0.1:1"


# -- help ---------------------------------------------------------------------------------------

_ALL_EXAMPLES = [
    pytest.param(name, line.removeprefix("$ "), id=line)
    for name, examples in examples().items()
    for line in examples.splitlines()
    if line.startswith("$ ")
]


def test_every_command_has_examples() -> None:
    assert examples().keys() == commands().keys()


@pytest.mark.parametrize(("name", "example"), _ALL_EXAMPLES)
def test_example_in_help_is_valid_command(name: str, example: str) -> None:
    program, command, *arguments = shlex.split(example)
    assert (program, command) == ("migrate", name)
    # The arguments are parsed, but the command does not run.
    load_command(name).make_context(name, arguments)


@pytest.mark.parametrize("name", commands())
def test_help_ends_with_examples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = migrate(name, "--help")
    assert shown.code == 0
    lines = [line.strip() for line in shown.stdout.splitlines()]
    expected = examples()[name].splitlines()
    assert lines[-len(expected) :] == expected


@pytest.mark.parametrize(
    "example",
    [
        example
        for parameters in _ALL_EXAMPLES
        for example in [str(parameters.values[1])]
        # The examples that require no broker, object store, Spark, or output of another example.
        if not any(
            part in example
            for part in (" -b ", "s3://", "migrate scan", "migrate state", ".json", ".yaml")
        )
    ],
)
def test_example_in_help_runs_successfully(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("checkpoints").mkdir()
    Path("checkpoints/JOB_ID").symlink_to(golden("2.2/retained").parent)
    write_source(tmp_path / "savepoint-1", {0: splits("t", [3])})
    files = {"sources/0/0": SEED, "offsets/0": batch('{"t":{"0":9}}'), "commits/0": COMMIT}
    query = spark_directory(tmp_path / "query", files)
    Path("offsets.csv").write_text("t,0,2\n")
    arguments = shlex.split(example.replace("/data/query", str(query)))[1:]
    result = migrate(*arguments)
    assert result.code == 0, result.stderr
    assert result.stdout


def test_version_option_prints_package_version() -> None:
    assert migrate("--version").stdout == f"migrate {version('flink-offset-migrate')}\n"


# -- verbosity ----------------------------------------------------------------------------------


@pytest.fixture
def chk(tmp_path: Path) -> Path:
    return write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    return write_source(tmp_path / "chk-8", {0: splits("t", [3, EARLIEST])})


def test_quiet_option_does_not_hide_results_and_warnings(chk: Path) -> None:
    """A warning can concern lost records. Quiet scripts must still log warnings."""
    told = migrate("to-spark", chk)
    warnings = [line for line in told.stderr.splitlines() if line.startswith("warning: ")]
    assert 0 < len(warnings) < len(told.stderr.splitlines())
    for quiet in (("-q", "to-spark", chk), ("to-spark", chk, "--quiet")):
        result = migrate(*quiet)
        assert (result.code, result.stdout) == (0, told.stdout)
        assert result.stderr.splitlines() == warnings
    assert migrate("to-spark", chk).stderr == told.stderr  # --quiet does not affect later runs


def test_quiet_option_does_not_hide_refusals_and_errors(refused: Path) -> None:
    result = migrate("to-spark", refused, "-q")
    assert result.code == 4
    lines = result.stderr.splitlines()
    assert [line.partition(":")[0] for line in lines] == [*["warning"] * 2, "refused", "migrate"]
    missing = migrate("to-spark", refused / "nothing", "-q")
    assert (missing.code, missing.stderr.count("\n")) == (3, 1)


@pytest.mark.parametrize("command", ["inspect", "to-spark"])
def test_verbose_reports_files_and_durations(chk: Path, command: str) -> None:
    plain, verbose = migrate(command, chk), migrate(command, "-v", chk)
    assert verbose.stdout == plain.stdout
    more = set(verbose.stderr.splitlines()) - set(plain.stderr.splitlines())
    assert [line.rpartition(":")[0] for line in more] == [f"reading {chk}"]


# -- brokers from the environment -----------------------------------------------------------------

# An invalid property, which ends a command before it queries the broker.
_STOP = ("-X", "no.such.property=1")


def test_brokers_from_environment_are_reported(chk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRATE_BOOTSTRAP_SERVERS", NOBODY)
    result = migrate("to-spark", chk, *_STOP)
    assert result.code == 2
    assert f"brokers from MIGRATE_BOOTSTRAP_SERVERS: {NOBODY}\n" in result.stderr


def test_broker_options_override_environment_variable(
    chk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIGRATE_BOOTSTRAP_SERVERS", "elsewhere:9092")
    config = tmp_path / "client.properties"
    config.write_text(f"bootstrap.servers={NOBODY}\n")
    for named in (
        ("-b", NOBODY),
        ("--kafka-config", config),
        ("-X", f"bootstrap.servers={NOBODY}"),
        ("-X", f"metadata.broker.list={NOBODY}"),  # librdkafka's alias
    ):
        result = migrate("to-spark", chk, *named, *_STOP)
        assert result.code == 2
        assert "MIGRATE_" not in result.stderr


def test_kafka_config_from_environment_is_reported(
    chk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "client.properties"
    config.write_text("no.such.property=1\n")
    monkeypatch.setenv("MIGRATE_KAFKA_CONFIG", str(config))
    monkeypatch.setenv("MIGRATE_BOOTSTRAP_SERVERS", NOBODY)
    result = migrate("to-spark", chk)
    assert result.code == 2
    assert "no.such.property" in result.stderr
    assert f"Kafka properties from MIGRATE_KAFKA_CONFIG: {config}\n" in result.stderr
    assert f"brokers from MIGRATE_BOOTSTRAP_SERVERS: {NOBODY}\n" in result.stderr


def test_broker_is_not_queried_if_environment_sets_only_kafka_config(
    chk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file contains only credentials, so ``migrate`` queries no broker."""
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=PLAINTEXT\n")
    monkeypatch.setenv("MIGRATE_KAFKA_CONFIG", str(config))
    for command in (("to-spark", chk), ("diff", chk, chk)):
        result = migrate(*command)
        assert (result.code, "MIGRATE_" in result.stderr) == (0, False), result.stderr
    asked = migrate("to-spark", chk, "-b", NOBODY, *_STOP)
    assert f"Kafka properties from MIGRATE_KAFKA_CONFIG: {config}\n" in asked.stderr
    config.unlink()
    missing = migrate("to-spark", chk)
    assert missing.code == 2
    assert f"migrate: MIGRATE_KAFKA_CONFIG: {config}: cannot be read" in missing.stderr


@pytest.mark.slow
def test_rollback_uses_brokers_of_rollback_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is ignored because it can refer to a different cluster."""
    path = tmp_path / "back.json"
    group = GroupView("g", True, "Empty", "classic", (), {("t", 0): Committed(1)})
    after = {("t", 0): Committed(2)}
    write_file(
        rollback_file.rollback_file("commit", "cluster", NOBODY, group, after, {}),
        path,
    )
    monkeypatch.setenv("MIGRATE_BOOTSTRAP_SERVERS", "elsewhere:9092")
    result = migrate("rollback", path, *_STOP)
    assert result.code == 2
    assert "MIGRATE_" not in result.stderr
    # The brokers in the properties file of MIGRATE_KAFKA_CONFIG are also ignored.
    properties = tmp_path / "client.properties"
    properties.write_text("bootstrap.servers=127.0.0.1:2\nclient.id=of-the-environment\n")
    monkeypatch.setenv("MIGRATE_KAFKA_CONFIG", str(properties))
    asked = migrate("rollback", path)
    assert asked.code == 6
    assert f"no broker answered at {NOBODY} " in asked.stderr


def test_empty_environment_variables_are_ignored(
    chk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIGRATE_BOOTSTRAP_SERVERS", "")
    monkeypatch.setenv("MIGRATE_KAFKA_CONFIG", "")
    result = migrate("to-spark", chk)
    assert result.code == 0
    assert "not checked against Kafka" in result.stderr


# -- misspelled names -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--source", "topic:ordres"), "(did you mean 'topic:orders'?)"),
        (("--source", "orders"), "'topic:orders'"),
        (("--partitions", "paymnets:0"), "(did you mean 'payments'?)"),
        (("--topic-map", "order=new"), "(did you mean 'orders'?)"),
        # No similar name, so no suggestion.
        (("--source", "zzz"), "'zzz'; this checkpoint contains: "),
    ],
)
def test_misspelled_name_gets_suggestion(arguments: tuple[str, ...], hint: str) -> None:
    result = migrate("to-spark", golden("2.2/retained"), *arguments)
    assert (result.code, result.stdout) == (2, "")
    assert hint in result.stderr


# -- completion -----------------------------------------------------------------------------------


def _completions(words: str) -> list[str]:
    """Return the completions that bash would offer for the last word."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.argv = ['migrate']\nfrom migrate.cli import main\nmain()",
        ],
        env={
            **os.environ,
            "_MIGRATE_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        },
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("migrate com", {"commit-group"}),
        ("migrate to-spark --on-b", {"--on-beyond-end"}),
        ("migrate to-spark --new-partitions ", {"as-flink", "fail", "earliest", "latest"}),
        ("migrate diff --format js", {"json"}),
        ("migrate verify --verb", {"--verbose"}),
        # No completions, so the shell offers files.
        ("migrate to-spark check", set()),
        ("migrate rollback roll", set()),
    ],
)
def test_completion_offers_commands_options_and_values(words: str, offered: set[str]) -> None:
    assert set(_completions(words)) == offered


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_printed_for_each_shell(shell: str) -> None:
    for program in ("migrate", "flink-offset-migrate"):
        variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
        done = subprocess.run(
            [Path(sys.executable).with_name(program)],
            env={**os.environ, variable: f"source_{shell}"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert program in done.stdout
        assert f"complete_{shell}" in done.stdout


def test_warning_marked_as_repeated_is_shown_for_each_occurrence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Regression: When a topic was deleted a second time, ``follow`` did not warn again.

    Other warnings are shown only once.
    """
    reset()
    once, each = NOT_CHECKED(), MISSING_PARTITIONS(partitions=["t-0"])
    for _ in range(2):
        warn(once)
        warn(each, repeated=True)
    lines = [f"warning: {WarningText(message)}" for message in (once, each, each)]
    assert capsys.readouterr().err.splitlines() == lines


def test_notes_of_internal_error_are_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Since Python 3.11, a traceback also contains the notes."""

    def broken(*_: object, **__: object) -> None:
        error = RuntimeError("broken")
        add_notes(error, "the same command goes on")
        raise error

    monkeypatch.setattr("migrate.moves.inspect.inspect", broken)
    result = migrate("inspect", "chk-7")
    assert result.code == 70
    assert result.stderr.count("the same command goes on") == 1
    assert result.stderr.endswith("the same command goes on\n")
