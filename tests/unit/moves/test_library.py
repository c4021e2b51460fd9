"""Every command has a library function with the same name, arguments, and result."""

from __future__ import annotations

import inspect as python
import io
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import migrate as library
from migrate.cli.help import commands
from migrate.cli.main import load_command
from migrate.model.message import with_code
from migrate.model.option_names import command_line_notation
from migrate.model.policies import OnExpired
from migrate.moves.declare_options import Option, ReadArguments, options_of
from migrate.moves.options import KafkaArguments, MoveArguments, SideArguments
from migrate.planning.plan_file import read_plan
from migrate.report.diff import diff_json
from migrate.report.inspection import inspection_json
from migrate.report.verification import verification_table
from tests.support.checkpoints import (
    SourceState,
    in_flight_operator,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import migrate
from tests.support.golden import golden
from tests.support.spark_files import SEED, spark_directory

SHARED = (KafkaArguments, ReadArguments, SideArguments, MoveArguments)
# Options that control only the output or the confirmation by a user.
_OF_THE_COMMAND_LINE = {
    "inspect": {"format", "list_", "wide"},
    "state": {"format", "limit", "output"},
    "to-spark": {"format", "plan_out", "query_file", "spark_version", "wide"},
    "commit-group": {"yes", "plan_out", "dry_run", "wide"},
    "rollback": {"yes", "dry_run", "wide"},
    "diff": {"format", "all_", "exit_code", "wide"},
    "verify": {"allow_moved_on", "wide"},
    "scan": {"wide"},
    "show": {"wide"},
    "follow": set(),
    "cut-over": {"yes", "dry_run", "init", "flink_rest"},
}
# Arguments for progress and confirmation, and arguments that the command line has as commands.
_OF_THE_LIBRARY = {
    "scan": {"progress"},
    "cut-over": {"confirm"},
    "to-spark": {"state", "keep_state"},
    "verify": {"state", "expect", "sample", "merge_keys", "ttl_ms", "stopped_at_ms"},
}


def _arguments(call: Callable[..., Any]) -> set[str]:
    """The parameter names of a function, including the names in ``**arguments``."""
    names = set(python.signature(call).parameters)
    if "arguments" not in names:
        return names
    (told,) = [
        shared
        for shared in SHARED
        if call.__annotations__["arguments"] == f"Unpack[{shared.__name__}]"
    ]
    return (names - {"arguments"}) | set(told.__annotations__)


@pytest.mark.parametrize("command", _OF_THE_COMMAND_LINE)
def test_library_function_takes_options_of_its_command(command: str) -> None:
    # The function for `state` has a different name, because ``migrate.state`` is a package.
    call = getattr(library, {"state": "read_state"}.get(command, command.replace("-", "_")))
    options = {
        parameter.name
        for parameter in load_command(command).params
        if parameter.name not in ("help", "short", "verbose", "quiet")
    }
    taken = _arguments(call) - _OF_THE_LIBRARY.get(command, set())
    assert taken == options - _OF_THE_COMMAND_LINE[command]


@pytest.mark.parametrize("arguments", SHARED)
def test_arguments_of_several_library_functions_are_declared_as_options(arguments: type) -> None:
    declared = options_of(arguments)
    assert list(declared) == list(arguments.__annotations__)
    assert all(isinstance(option, Option) and option.help for _, option in declared.values())


def test_every_command_has_a_library_function() -> None:
    # `state` has several functions with other names, and `explain` only prints text.
    calls = {name.replace("-", "_") for name in commands()} - {
        *("state", "explain"),
        *("prime", "copy_query", "verify_state"),  # arguments of to_spark and verify
    }
    assert calls | {"keyed_states", "find_state", "read_state"} <= set(library.__all__)
    for name in library.__all__:
        assert getattr(library, name).__name__ == name
    with pytest.raises(ImportError):
        # The ignore comment is necessary only because a type checker also rejects an unknown name.
        from migrate import no_such_name  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.parametrize("name", ["1.15/retained", "1.20/unaligned", "2.2/two-sources"])
def test_library_inspect_matches_command(name: str) -> None:
    extraction = library.inspect(golden(name))
    printed = migrate("inspect", golden(name), "--format", "json").stdout
    assert json.loads("".join(inspection_json(extraction))) == json.loads(printed)
    assert [one.kind for one in extraction.sources]


def test_to_spark_function_matches_command(tmp_path: Path) -> None:
    chk = golden("2.2/two-sources")
    command = ("to-spark", chk, "--partitions", "orders:0-1", "--source", "orders-us")
    with command_line_notation():
        start = library.to_spark(chk, partitions={"orders": range(2)}, source="orders-us")
    printed = migrate(*command)
    assert printed.code == 0, printed.stderr
    assert start.starting_offsets + "\n" == printed.stdout
    assert start.checkpoint_location is None
    for format in ("options", "python", "scala"):
        assert start.code(format) + "\n" == migrate(*command, "--format", format).stdout
    assert [f"warning: {text}" for text in start.warnings] == [
        line for line in printed.stderr.splitlines() if line.startswith("warning: ")
    ]


def test_library_to_spark_writes_seed(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})
    start = library.to_spark(chk, checkpoint_dir=tmp_path / "seed")
    assert start.checkpoint_location == str(tmp_path / "seed")
    (stream,) = start.streams
    assert (stream.number, stream.next_offsets) == (0, {("t", 0): 3, ("t", 1): 4})
    seed = (tmp_path / "seed/sources/0/0").read_text()
    assert seed == f"\0v1\n{start.starting_offsets}"
    with pytest.raises(library.Refused, match="already the checkpoint location"):
        library.to_spark(chk, checkpoint_dir=tmp_path / "seed")


def test_to_spark_function_returns_same_result_as_command_for_several_streams(
    tmp_path: Path,
) -> None:
    chk = golden("2.2/two-sources")
    names = {0: ["orders-us"], 1: ["orders-eu"]}
    start = library.to_spark(chk, spark_source=names, partitions={"orders": [0, 1]})
    printed = migrate(
        "to-spark",
        chk,
        *("--spark-source", "0=orders-us"),
        *("--spark-source", "1=orders-eu"),
        "--partitions",
        "orders:0-1",
    )
    assert (printed.code, printed.stdout) == (0, start.starting_offsets + "\n"), printed.stderr
    assert [stream.number for stream in start.streams] == [0, 1]


def _in_flight(tmp_path: Path) -> Path:
    return write_checkpoint(
        tmp_path / "chk-7",
        source_operator(SourceState({0: splits("t", [3, 4])})),
        in_flight_operator(100),
    )


def test_library_move_raises_same_refusals_as_command_but_library_plan_lists_them(
    tmp_path: Path,
) -> None:
    chk = _in_flight(tmp_path)
    command = migrate("to-spark", chk)
    assert command.code == 4
    with command_line_notation(), pytest.raises(library.Refused) as refused:
        library.to_spark(chk)
    told = [line for line in command.stderr.splitlines() if line.startswith("refused: ")]
    assert [f"refused: {with_code(reason)}" for reason in refused.value.reasons] == told
    with pytest.raises(library.Refused, match="add allow_in_flight=True") as refused:
        library.to_spark(chk)
    # A function that only plans does not raise an error.
    move = library.plan(chk)
    assert refused.value.reasons == move.refusals
    with pytest.raises(library.Refused):
        move.save(tmp_path / "plan.json")
    assert not (tmp_path / "plan.json").exists()
    assert library.to_spark(chk, allow_in_flight=True).starting_offsets == '{"t":{"0":3,"1":4}}'


def test_library_plan_matches_saved_plan_of_command(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})
    with command_line_notation():
        move = library.plan(chk, topic_map={"t": "u"})
    assert move.next_offsets == {("u", 0): 3, ("u", 1): 4}
    assert [(one.topic, one.partition, one.verdict.value) for one in move.partitions] == [
        ("u", 0, "ok"),
        ("u", 1, "ok"),
    ]
    move.save(tmp_path / "called.json")
    assert (
        migrate("to-spark", chk, "--topic-map", "t=u", "--plan-out", tmp_path / "run.json").code
        == 0
    )
    called, run = (read_plan(tmp_path / f"{name}.json") for name in ("called", "run"))
    assert called == replace(run, made_at=called.made_at)
    for applied in (move, tmp_path / "run.json"):
        assert library.to_spark(plan=applied).starting_offsets == '{"u":{"0":3,"1":4}}'


@pytest.mark.parametrize(
    "asked",
    [
        {"on_expired": "newest"},
        {"unresolved": "timestamp:yesterday"},
        {"topic_map": {"t": "a,b"}},
        {"source": "no-such-source"},
        {"source_group": "g"},
        {"group": "g"},
        {"group": ""},
        {"kafka_properties": {"Not A Property": "x"}},
    ],
    ids=str,
)
def test_invalid_plan_argument_raises_usage_error(tmp_path: Path, asked: dict[str, Any]) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    with pytest.raises(library.UsageError):
        library.plan(chk, **asked)


@pytest.mark.parametrize(
    "asked",
    [
        {"isolation_level": "read_all"},
        {"spark_source": {-1: ["topic:t"]}},
        {"spark_source": {10_000: ["topic:t"]}},
        {"spark_source": {0: []}},
        {"spark_source": {0: "topic:t"}},
    ],
    ids=str,
)
def test_invalid_spark_argument_raises_usage_error_with_option_name(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    (argument,) = asked
    with pytest.raises(library.UsageError, match=f"{argument} "):
        library.to_spark(chk, **asked)


def test_misspelled_argument_raises_type_error(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="on_expird"):
        library.plan(tmp_path, on_expird="earliest")  # type: ignore[call-arg]  # a misspelling


def test_library_accepts_enum_members(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    assert library.plan(chk, on_expired=OnExpired.EARLIEST).next_offsets == {("t", 0): 3}


def test_library_diff_matches_command(tmp_path: Path) -> None:
    left = _in_flight(tmp_path)
    (tmp_path / "right.json").write_text('{"t":{"0":3,"1":9}}')
    right = f"json:{tmp_path / 'right.json'}"
    found = library.diff(left, right)
    assert found.differs
    assert found.warnings
    assert diff_json(found) + "\n" == migrate("diff", left, right, "--format", "json").stdout


def test_library_verify_matches_command(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    query = f"spark:{spark_directory(tmp_path / 'query', {'sources/0/0': SEED})}"
    found = library.verify(chk, query)
    out = io.StringIO()
    assert verification_table(found, out) == migrate("verify", chk, query).stdout


def test_library_messages_go_to_logger(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    with caplog.at_level(logging.INFO, "migrate"):
        library.to_spark(chk)
    told = {record.levelno: record.getMessage() for record in caplog.records}
    assert "not checked against Kafka" in told[logging.WARNING]
    assert told[logging.INFO].startswith("1 partition of 1 topic")


def test_public_names_have_docstrings_and_type_annotations() -> None:
    for name in library.__all__:
        public = getattr(library, name)
        assert python.getdoc(public), name
        if python.isfunction(public):
            assert set(public.__annotations__) >= {*python.signature(public).parameters, "return"}
