"""``cut-over --init`` writes a spec that contains every required key as a comment."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from migrate.extensions.cutover.first_spec import first_spec
from migrate.extensions.cutover.read_spec import read_spec
from migrate.extensions.cutover.spec import json_schema
from migrate.model.errors import InputError
from tests.support.command import migrate

# The keys for a cut-over to a query. The alternative target is a group.
_TO_A_QUERY = ("rest", "job", "savepoints", "bootstrap-servers", "checkpoint-dir", "sink", "start")


def _uncommented(spec: str, keys: tuple[str, ...]) -> str:
    for key in keys:
        spec, found = re.subn(rf"^( *)# ({key}: )", r"\1\2", spec, flags=re.MULTILINE)
        assert found == 1, key
    return spec


def test_generated_spec_is_refused_with_missing_keys_until_user_edits_it(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(first_spec())
    with pytest.raises(InputError) as refused:
        read_spec(path)
    for part in (
        "flink: missing: rest, job, savepoints",
        "kafka: missing: bootstrap-servers",
        "target: exactly one of checkpoint-dir and group",
    ):
        assert part in str(refused.value)


def test_generated_spec_is_valid_after_its_example_keys_are_uncommented(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(_uncommented(first_spec(), (*_TO_A_QUERY, "source-group", "config")))
    read = read_spec(path).spec
    assert read.flink.job == "orders" and read.move.source_group == "flink-orders"
    jsonschema.validate(yaml.safe_load(path.read_text()), dict(json_schema()))


def test_cut_over_init_without_file_prints_spec() -> None:
    printed = migrate("cut-over", "--init")
    assert (printed.code, printed.stdout) == (0, first_spec())


def test_cut_over_init_does_not_overwrite_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    assert migrate("cut-over", "--init", path).code == 0
    written = path.read_text()
    again = migrate("cut-over", "--init", path)
    assert again.code == 4 and "already exists" in again.stderr
    assert path.read_text() == written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--init", "--execute", "--yes"),
            "--init only writes SPEC, so it cannot be combined with",
        ),
        (("--init", "--until", "plan"), "--init only writes SPEC, so it cannot be combined with"),
        (("orders.yaml", "--flink-rest", "http://127.0.0.1:1"), "--flink-rest requires --init"),
        ((), "run `migrate cut-over --init SPEC`"),
    ],
)
def test_options_that_contradict_cut_over_init_are_refused(
    arguments: tuple[str, ...], message: str
) -> None:
    refused = migrate("cut-over", *arguments)
    assert refused.code == 2 and message in refused.stderr
