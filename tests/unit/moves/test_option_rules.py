"""Refuse combinations of options, in the notation of the command, the function, or the spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import migrate as library
from migrate.model.errors import MigrateError, Refused, UsageError
from migrate.model.policies import Compare, OnAmbiguous
from migrate.moves.declare_options import check_combinations, options_of
from migrate.moves.options import (
    DiffArguments,
    MoveArguments,
    PlanArguments,
    SinkArguments,
    VerifyArguments,
)
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.golden import GOLDEN

_SAVEPOINT = next((GOLDEN / "2.2/stop").glob("savepoint-*"))
_BROKER = "127.0.0.1:1"
_KINDS = (DiffArguments, MoveArguments, PlanArguments, SinkArguments, VerifyArguments)


def _stopped_cut_over(folder: Path, **fields: Any) -> Refused:
    """Return the refusal of a cut-over with these fields in its spec."""
    spec = folder / "orders.yaml"
    required = {
        "version": 1,
        "flink": {"savepoint": str(_SAVEPOINT)},
        "kafka": {"bootstrap-servers": _BROKER},
        "target": {"checkpoint-dir": "query"},
    }
    spec.write_text(yaml.safe_dump({**required, **fields}))
    with pytest.raises(Refused) as stopped:
        library.cut_over(spec)
    return stopped.value


@pytest.mark.parametrize(
    ("flags", "arguments", "spec", "messages"),
    [
        pytest.param(
            ("--wait", "5s"),
            {"wait": "5s"},
            {"move": {"wait": "5s"}},
            (
                "--wait requires --to-kafka-config or --to-bootstrap-servers",
                "wait requires to_kafka_config or to_bootstrap_servers",
                "move.wait requires kafka.to-config or ",
            ),
            id="requires",
        ),
        pytest.param(
            ("--topic-pattern", "o.*", "--topic-map", "orders=x"),
            {"topic_pattern": "o.*", "topic_map": {"orders": "x"}},
            {"move": {"topic-pattern": "o.*", "topic-map": {"orders": "x"}}},
            (
                "--topic-pattern cannot be combined with --topic-map, because the pattern matches",
                "topic_pattern cannot be combined with topic_map, because the pattern matches",
                "move.topic-pattern cannot be combined with move.topic-map, because the pattern "
                "matches",
            ),
            id="excludes",
        ),
    ],
)
def test_refusal_shows_options_in_notation_of_command_or_function_or_spec(
    flags: tuple[str, ...],
    arguments: dict[str, Any],
    spec: dict[str, Any],
    messages: tuple[str, str, str],
    tmp_path: Path,
) -> None:
    command = migrate("to-spark", _SAVEPOINT, "-b", _BROKER, *flags)
    assert (command.code, command.stdout) == (2, "")
    with pytest.raises(MigrateError) as called:
        library.to_spark(_SAVEPOINT, bootstrap_servers=_BROKER, **arguments)
    stopped = _stopped_cut_over(tmp_path, **spec)
    for text, message in zip(
        (command.stderr, str(called.value), str(stopped)), messages, strict=True
    ):
        assert message in text


@pytest.mark.parametrize("kind", _KINDS)
def test_declared_combinations_refer_only_to_options_of_same_function(kind: type) -> None:
    declared = options_of(kind)
    for name, (_, declaration) in declared.items():
        for others in (declaration.requires, declaration.excludes, declaration.unless):
            assert set(others) <= declared.keys() - {name}
        assert declaration.excludes or not declaration.unless
        assert declaration.excludes or declaration.requires or not declaration.reason


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (MoveArguments, {"wait": "5s", "to_bootstrap_servers": "b:1", "kafka_config": "f"}),
        # An empty string comes from an unset variable.
        (MoveArguments, {"wait": "5s", "to_kafka_config": "", "bootstrap_servers": ""}),
        (MoveArguments, {"compare": "samples", "on_ambiguous": OnAmbiguous.FAIL, "wait": None}),
        (MoveArguments, {"topic_pattern": "o.*", "topic_map": {}}),
        (
            MoveArguments,
            {
                "topic_pattern": "o.*",
                "topic_map": {"o": "x"},
                "to_kafka_config": "f",
                "bootstrap_servers": "b:1",
            },
        ),
        (PlanArguments, {"plan": "f", "unresolved": "fail", "allow_ran_on": False, "gone": "fail"}),
        (
            PlanArguments,
            {"plan": "f", "compare": "all", "to_kafka_config": "f", "kafka_properties": ["a=b"]},
        ),
        (VerifyArguments, {"run": False, "spark_conf": {}}),
        (SinkArguments, {"sink": "s", "sink_writer": "w"}),
        (DiffArguments, {"topic_map": {}}),
    ],
)
def test_default_value_does_not_count_as_passed_option(
    kind: type, arguments: dict[str, Any]
) -> None:
    check_combinations(kind, arguments)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (MoveArguments, {"wait": ""}, "wait requires to_kafka_config or to_bootstrap_servers"),
        (MoveArguments, {"compare": "all"}, "compare requires to_kafka_config or "),
        (MoveArguments, {"compare": Compare.ALL}, "compare requires to_kafka_config or "),
        (MoveArguments, {"on_ambiguous": "first"}, "on_ambiguous requires to_kafka_config or "),
        (DiffArguments, {"topic_map": {"a": "b"}}, "topic_map requires to_kafka_config or "),
        (VerifyArguments, {"spark_conf": {"spark.x": "y"}}, "spark_conf requires run"),
        (VerifyArguments, {"run": False, "spark_conf": {"spark.x": "y"}}, "spark_conf requires"),
        (
            PlanArguments,
            {"plan": "f", "unresolved": "latest"},
            "plan cannot be combined with unresolved, because the plan already specifies the move",
        ),
        (PlanArguments, {"plan": "f", "allow_ran_on": True}, "cannot be combined with allow_ran"),
        (PlanArguments, {"plan": "f", "source": "s"}, "plan cannot be combined with source, "),
    ],
)
def test_conflicting_option_combination_is_usage_error(
    kind: type, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check_combinations(kind, arguments)


@pytest.mark.parametrize("call", [library.to_spark, library.commit_group])
def test_saved_plan_cannot_be_combined_with_move_options(call: Any, tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    plan = library.plan(chk)
    options: dict[str, Any] = {"bootstrap_servers": _BROKER, "gone": "skip"}
    if call is library.commit_group:
        options["group"] = "g"
    with pytest.raises(UsageError, match=r"^plan cannot be combined with gone, because the plan"):
        call(plan=plan, **options)
    with pytest.raises(UsageError, match=r'^plan="FILE" cannot be combined with CHK'):
        call(chk, plan=plan, **{**options, "gone": "fail"})


def test_empty_partitions_are_refused_with_and_without_plan(tmp_path: Path) -> None:
    """Regression: ``partitions={}`` was ignored if a plan was passed, and all partitions moved."""
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    plan = library.plan(chk)
    for arguments in ({"plan": plan}, {"chk": chk}):
        with pytest.raises(UsageError, match=r"^partitions is empty; pass at least one partition$"):
            library.to_spark(**arguments, partitions={})
