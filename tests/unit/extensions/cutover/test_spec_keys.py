"""Messages of a cut-over replace each option that has a key in the spec with this key."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from migrate.extensions.cutover.spec import Spec
from migrate.extensions.cutover.spec_keys import SPEC_KEYS
from migrate.model.option_names import (
    Notation,
    command_line,
    option,
    process_notation,
    python_call,
    spec_notation,
)
from migrate.model.policies import Gone


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (lambda: f"add {option('allow_moved_on', True)}", "add move.allow-moved-on: true"),
        (lambda: f"add {option('allow_ran_on', True)}", "add move.allow-ran-on: true"),
        (lambda: f"add {option('allow_kept_running', True)}", "add move.allow-kept-running: true"),
        (lambda: f"omit it with {option('gone', Gone.SKIP)}", "omit it with move.gone: skip"),
        (
            lambda: f"choose a start offset with {option('unresolved', 'earliest|latest')}",
            "choose a start offset with move.unresolved: earliest|latest",
        ),
        (lambda: option("source_group", "GROUP"), "move.source-group: GROUP"),
        (lambda: f"{option('partitions')} omits 2", "move.partitions omits 2"),
        (lambda: option("topic_map", {"old": "new"}), "move.topic-map: {old: new}"),
        (lambda: option("bootstrap_servers", "HOST:PORT"), "kafka.bootstrap-servers: HOST:PORT"),
        (lambda: option("kafka_properties"), "kafka.properties"),
        (lambda: option("to_kafka_config", "FILE"), "kafka.to-config: FILE"),
        (lambda: f"{option('flink_rest')}: not an address", "flink.rest: not an address"),
        (lambda: option("sink_writer", "delta"), "sink-writer: delta"),
        (lambda: f"{option('state')} 'total': expected", "states 'total': expected"),
        (lambda: option("group", "group:g"), "target.group: group:g"),
        (lambda: option("checkpoint_dir", "/q"), "target.checkpoint-dir: /q"),
    ],
)
@pytest.mark.parametrize("caller", [command_line, python_call])
def test_message_about_spec_contains_spec_key_instead_of_option(
    text: Callable[[], str], expected: str, caller: Notation
) -> None:
    with process_notation(caller), spec_notation(SPEC_KEYS):
        assert text() == expected


@pytest.mark.parametrize(
    ("caller", "expected"),
    [
        (command_line, ["--adopt", "--until plan", "--back and --nothing-started"]),
        (python_call, ["adopt=True", 'until="plan"', "back=True and nothing_started=True"]),
    ],
)
def test_option_without_spec_key_is_written_in_notation_of_caller(
    caller: Notation, expected: list[str]
) -> None:
    """The notation is ``--adopt`` on the command line, and ``adopt=True`` in Python."""
    with process_notation(caller), spec_notation(SPEC_KEYS):
        assert expected == [
            option("adopt", True),
            option("until", "plan"),
            f"{option('back', True)} and {option('nothing_started', True)}",
        ]


def test_each_spec_key_used_in_messages_exists() -> None:
    schema = Spec.model_json_schema()
    missing = []
    for key in SPEC_KEYS.values():
        fields: Mapping[str, Mapping[str, object]] = schema["properties"]
        *part, last = key.split(".")
        if part:
            fields = schema["$defs"][f"{part[0].title()}Spec"]["properties"]
        if last not in fields:
            missing.append(key)
    assert not missing
