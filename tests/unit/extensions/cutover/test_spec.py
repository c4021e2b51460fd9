"""The spec of a cut-over: strict parsing, errors that contain the key, and no secrets in errors."""

from __future__ import annotations

import json
import time
from pathlib import Path
from string import Template
from typing import Any

import jsonschema
import pytest
import yaml

from migrate.extensions.cutover.read_spec import read_spec
from migrate.extensions.cutover.spec import json_schema
from migrate.model.errors import InputError
from tests.docs.blocks import blocks
from tests.support.command import migrate
from tests.support.plans import edit_and_seal_plan

ROOT = Path(__file__).parents[4]
_SPEC: dict[str, Any] = {
    "version": 1,
    "flink": {"rest": "http://127.0.0.1:1", "job": "orders", "savepoints": "savepoints"},
    "kafka": {"bootstrap-servers": "127.0.0.1:1"},
    "target": {"checkpoint-dir": "queries/orders"},
}


def _written(folder: Path, **fields: Any) -> Path:
    path = folder / "orders.yaml"
    path.write_text(yaml.safe_dump({**_SPEC, **fields}))
    return path


@pytest.mark.parametrize("spec", sorted(ROOT.glob("examples/**/cut-over*.yaml")))
def test_example_specs_match_schema(spec: Path, tmp_path: Path) -> None:
    # The playground replaces these addresses.
    addresses = {"flink": "http://127.0.0.1:8081", "kafka": "127.0.0.1:9092"}
    filled_in = tmp_path / spec.name
    filled_in.write_text(Template(spec.read_text()).substitute(addresses, folder=tmp_path))
    found = yaml.safe_load(filled_in.read_text())
    jsonschema.validate(found, dict(json_schema()), jsonschema.Draft202012Validator)
    assert read_spec(filled_in).spec.version == 1


def test_spec_in_how_to_guide_is_valid(tmp_path: Path) -> None:
    found = [one for one in blocks(ROOT / "docs/how-to/cut-over.md") if one.language == "yaml"]
    whole, with_states = ("\n".join(block.lines) for block in found)
    path = tmp_path / "orders.yaml"
    for text in (whole, f"{whole}\n{with_states}"):
        path.write_text(text)
        assert read_spec(path).spec.start == "spark-submit orders.py"
        jsonschema.validate(yaml.safe_load(text), dict(json_schema()))
    assert read_spec(path).spec.states == ["totals/total"]


def test_spec_key_one_cluster_is_passed_to_move_and_recorded(tmp_path: Path) -> None:
    spec = read_spec(_written(tmp_path, move={"one-cluster": True}))
    assert spec.move_arguments()["one_cluster"] is True
    assert spec.deciding_values()["move.one-cluster"] == "true"
    assert "one_cluster" not in read_spec(_written(tmp_path)).move_arguments()


@pytest.mark.parametrize(
    ("name", "alias"),
    [("allow-moved-on", "allow-newer-commits"), ("allow-ran-on", "allow-kept-running")],
)
def test_alias_of_spec_key_has_same_effect(tmp_path: Path, name: str, alias: str) -> None:
    old, new = (read_spec(_written(tmp_path, move={key: True})) for key in (name, alias))
    assert new.spec == old.spec != read_spec(_written(tmp_path)).spec
    assert new.deciding_values() == old.deciding_values()
    assert new.move_arguments() == old.move_arguments()
    with pytest.raises(InputError, match=rf"move\.{alias}: true or false is expected"):
        read_spec(_written(tmp_path, move={alias: "yes"}))


def test_target_may_use_different_kafka_cluster(tmp_path: Path) -> None:
    spec = read_spec(
        _written(
            tmp_path,
            kafka={"bootstrap-servers": "west:9092", "to-config": "east.properties"},
            move={"topic-map": {"orders": "west.orders"}, "wait": "5m", "on-ambiguous": "first"},
        )
    )
    east = str(tmp_path / "east.properties")
    assert spec.target_kafka_arguments() == {"kafka_config": east}
    assert spec.deciding_values()["kafka.to-config"] == east
    arguments = spec.move_arguments()
    assert arguments["bootstrap_servers"] == "west:9092"
    assert arguments["to_kafka_config"] == east
    assert (arguments["wait"], arguments["on_ambiguous"]) == ("5m", "first")
    same = read_spec(_written(tmp_path))
    assert same.target_kafka_arguments() == {
        "bootstrap_servers": "127.0.0.1:1",
        "kafka_config": None,
        "kafka_properties": {},
    }
    assert "kafka.to-config" not in same.deciding_values()


def test_spec_paths_are_resolved_relative_to_spec(tmp_path: Path) -> None:
    moved = {
        "on-expired": "earliest",
        "topic-map": {"orders": "orders.v2"},
        "partitions": {"a": [0]},
    }
    spec = read_spec(_written(tmp_path, move=moved, start="spark-submit query.py"))
    assert spec.spec.target.name == f"spark:{tmp_path / 'queries/orders'}"
    assert spec.folder == tmp_path / "orders.cut-over"
    assert spec.move_arguments()["on_expired"] == "earliest"
    assert spec.move_arguments()["topic_map"] == {"orders": "orders.v2"}
    assert spec.changed_move_keys() == {
        "on-expired": "earliest",
        "topic-map": '{"orders": "orders.v2"}',
        "partitions": '{"a": [0]}',
    }
    streams = {1: "topic:payments", 0: ["both", "topic:orders"]}
    joined = read_spec(_written(tmp_path, **{"spark-source": streams}))
    assert joined.spark_sources() == {0: ["both", "topic:orders"], 1: ["topic:payments"]}
    there = read_spec(_written(tmp_path, target={"checkpoint-dir": "s3://lake/orders"}))
    assert there.spec.target.name == "spark:s3://lake/orders"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"flnk": {}}, "flnk: no such key (did you mean 'flink'?)"),
        ({"move": {"on_expired": "earliest"}}, "move.on_expired: no such key (did you mean"),
        (
            {"move": {"on-expired": "never"}},
            "move.on-expired: must be 'fail' or 'earliest'",
        ),
        ({"move": {"allow-ran-on": "maybe"}}, "move.allow-ran-on: true or false is expected"),
        ({"version": 2}, "version: must be 1"),
        ({"target": {}}, "target: exactly one of checkpoint-dir and group is required"),
        (
            {"target": {"group": "g", "checkpoint-dir": "d"}},
            "exactly one of checkpoint-dir and group",
        ),
        ({"flink": {"rest": "http://h", "job": "j"}}, "flink: missing: savepoints; for a job that"),
        ({"flink": None}, "flink: missing: rest, job, savepoints; for a job that is already"),
        (
            {"flink": {"savepoint": "s", "savepoints": "t"}},
            "flink: savepoint, for a stopped job, cannot be combined",
        ),
        ({"timeouts": {"stop": "soon"}}, "timeouts.stop: 'soon' is not a duration"),
        (
            {"timeouts": {"stop": "10"}},
            "timeouts.stop: '10' has no unit; write 10s or 10m, for example",
        ),
        ({"timeouts": {"stop": 10}}, "timeouts.stop: a duration is expected, such as 10s"),
        (
            {"kafka": {"properties": {"request.timeout.ms": 30000}}},
            "kafka.properties.request.timeout.ms: a string is expected (quote a number, true, "
            "or false)",
        ),
        ({"start": []}, "start: List should have at least 1 item after validation, not 0"),
        (
            {"start": [["a"]]},
            "spec: start.0: one string is expected, not a list; correct these keys",
        ),
        (
            {"start": 5},
            "(quote a number, true, or false); start: a list is expected; correct these keys",
        ),
        ({"kafka": {}}, "kafka: missing: bootstrap-servers, or config (the path"),
        ({"kafka": None}, "kafka: missing: bootstrap-servers, or config (the path"),
        (
            {"kafka": "broker:9092"},
            "kafka: keys with values are expected, such as {bootstrap-servers:",
        ),
        (
            {"target": ["g"]},
            "target: keys with values are expected, such as {checkpoint-dir: PATH};",
        ),
        ({"sink": True}, "sink: a string is expected (quote a number, true, or false);"),
        ({"record": ""}, "record: String should have at least 1 character;"),
        ({"move": {"allow-in-flight": "yes"}}, "allow-in-flight: true or false is expected;"),
        ({"move": {"partitions": {"a": [-1]}}}, "partitions.a.0: must be greater than or"),
        ({"move": {"partitions": {"a": ["x"]}}}, "a.0: must be a valid integer;"),
        (
            {"move": {"topic-map": "a=b"}},
            "move.topic-map: keys with values are expected, such as {",
        ),
        ({"spark-source": {"a": "x"}}, "spark-source.a.[key]: must be a valid integer"),
        ({"states": ["a/n"]}, "states and prime must be set together"),
        ({"prime": "p"}, "states and prime must be set together"),
        (
            {"target": {"group": "g"}, "spark-source": {0: "x"}},
            "states and spark-source require a query",
        ),
        (
            {"states": ["a/n"], "prime": "p", "spark-source": {0: "x"}},
            "states can only be migrated to a query with one stream; remove spark-source",
        ),
        ({"spark-source": {-1: "x"}}, "spark-source.-1"),
        ({"spark-source": {0: []}}, "spark-source.0"),
    ],
)
def test_error_for_invalid_spec_reports_invalid_key(
    tmp_path: Path, fields: dict[str, Any], says: str
) -> None:
    for mode in ((), ("--execute", "--yes")):
        result = migrate("cut-over", _written(tmp_path, **fields), *mode)
        assert (result.code, result.stdout) == (3, "")
        assert says in result.stderr
    assert not (tmp_path / "orders.cut-over").exists()


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (
            "version: 1\nversion: 1\n",
            "yaml-key-repeated",
            "the key version is repeated (lines 1 and 2)",
        ),
        ("a: [1\nb: hush\n", "yaml-not-closed", "(line 2)"),
        ("a: 'hush\n", "yaml-not-closed", "(line 2)"),
        ("a:\n\tb: hush\n", "yaml-tab", "(line 2)"),
        ("a:\n  b: 1\n c: hush\n", "yaml-indentation", "(line 3)"),
        ("a: hush: b\n", "yaml-indentation", "(line 1)"),
        ("", "spec-empty", "spec.yaml"),
        ("# hush\n", "spec-empty", "spec.yaml"),
        ("- hush\n", "spec-not-valid", "the spec: keys with values are expected"),
        ("hush\n", "spec-not-valid", "the spec: keys with values are expected"),
        ("hush: !!python/object:os.system {}\n", "yaml-tag", "(line 1)"),
        ("kafka: {properties: {sasl.password: [hush]}}\n", "spec-not-valid", "sasl.password"),
    ],
)
def test_invalid_yaml_is_refused_without_showing_values(
    tmp_path: Path, text: str, code: str, says: str
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_spec(path)
    assert refused.value.codes == [code]
    assert says in str(refused.value)
    assert "hush" not in str(refused.value).replace("hush: ", "")


_START = "".join(f"{line}\n" for line in yaml.safe_dump(_SPEC).splitlines())


def _bomb() -> str:
    """Return a spec with eight nested aliases that expand to more than 100 million strings."""
    levels = [
        "a0: &a0 [x]",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)),
    ]
    return _START + "\n".join(levels)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "flink: &a {savepoint: *a}\n",
            "aliases are not supported (line 1); replace *a with its value",
        ),
        (_START + "states: &s [*s]\n", "replace *s"),
        (_bomb(), "replace *a0"),
        (_START + "2026-11-20: x\n", "2026-11-20: no such key"),
        (_START + "? [a]\n: 1\n", "a key is a list or a mapping, not a string"),
        (_START + "? {a: 1}\n: 1\n", "a key is a list or a mapping, not a string"),
        (_START + "'': 1\n", "'': no such key"),
        (_START + "start: " + "[" * 5_000 + "]" * 5_000, "nested too deeply"),
        ("{a: " * 3_000 + "1" + "}" * 3_000, "nested too deeply"),
        (_START + 'start: "a\\0b"\n', "NUL characters are not supported"),
        (_START + 'start: [run, "b\\x00"]\n', "NUL characters are not supported"),
        (_START + '"a\\0": 1\n', "NUL characters are not supported"),
        (_START + "start: a\0b\n", "not YAML: special characters are not allowed"),
        (_START + 'start: "\\ud800"\n', "half of a surrogate pair"),
        (
            _START + "start: !!binary aGk=\n",
            "tags are not supported (line 10); remove tag:yaml.org,2002:binary",
        ),
        (_START + "start: !!bool x\n", "; remove tag:yaml.org,2002:bool"),
        ("version: " + "9" * 5_000, "version: must be 1"),
        ("version: 0x" + "f" * 50_000, "version: must be 1"),
        ("version: 1" + ":59" * 3_000, "version: must be 1"),
        ("version: 0x1", "version: must be 1"),
        ("version: 1.0", "version: must be 1"),
        (_START + 'start: "\\U00110000"\n', "is not supported; remove the escape"),
        (_START + '"\\U00110000": 1\n', "an escape sequence or the version in the %YAML line"),
        (_START + 'start: "\\UFFFFFFFF"\n', "an escape sequence or the version in the %YAML line"),
        ("%YAML " + "9" * 5_000 + ".1\n---\n" + _START, "YAML"),
        (_START + "timeouts: {stop: " + "9" * 400 + "h}\n", "timeouts.stop: "),
        (_START + "timeouts: {stop: 9000h}\n", "timeouts.stop: '9000h' is longer than a year"),
        (_START + "".join(f"k{n}: 1\n" for n in range(10_000)), "and 9990 more"),
        (_START + "# " + "x" * 2**18, "larger than 262144 bytes"),
        ("a: 1\n---\nb: 2\n", "not YAML: found another document (line 2)"),
    ],
    ids=lambda text: text[-40:],
)
def test_hostile_yaml_is_refused_quickly_with_reason(tmp_path: Path, text: str, says: str) -> None:
    """Regression: Each text caused a traceback, exhausted the memory, or passed as a spec."""
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    began = time.process_time()
    with pytest.raises(InputError) as refused:
        read_spec(path)
    assert says in str(refused.value)
    assert len(str(refused.value)) < 2_000
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "rest", ["http://[::1", "http://host:99999", "ftp://host:1", "http://me:hush@host:1", "http://"]
)
def test_invalid_flink_address_is_refused_while_reading_spec(tmp_path: Path, rest: str) -> None:
    with pytest.raises(
        InputError, match=r"flink.rest: this is not an address of the form http://host"
    ) as e:
        read_spec(_written(tmp_path, flink={**_SPEC["flink"], "rest": rest}))
    assert "hush" not in str(e.value)


def test_yaml_keys_and_words_stay_strings(tmp_path: Path) -> None:
    """Regression: YAML's own types turned the topic ``on`` into ``true``, and 010 into 8."""
    path = tmp_path / "spec.yaml"
    topics = "on: a, 010: b, 2026-11-20: c, ~: d, <<: e"
    path.write_text(_START + "move: {topic-map: {" + topics + '}}\nstart: "\\ud83d\\ude00"\n')
    spec = read_spec(path)
    names = {"on": "a", "010": "b", "2026-11-20": "c", "~": "d", "<<": "e"}
    assert spec.move_arguments()["topic_map"] == names
    assert spec.spec.start == "\N{GRINNING FACE}"
    # Regression: The loader parsed these words as numbers and failed.
    words = ["0b_", "-0x_", "1" + ":0" * 200 + ".0", "1_000", "010", "1.5", "9" * 20]
    path.write_text(f"{_START}start: [{', '.join(words)}]\n")
    assert read_spec(path).spec.start == words
    path.write_text(_START + "spark-source: {0x1: a}\n")
    with pytest.raises(InputError, match=r"spark-source\.0x1"):
        read_spec(path)


def test_refusal_of_credentials_in_spec_url_hides_secret(tmp_path: Path) -> None:
    for field in ("sink", "record"):
        result = migrate("cut-over", _written(tmp_path, **{field: "s3://AKIA:hush@bucket/x"}))
        assert result.code == 3 and "hush" not in result.stderr
    rest = {**_SPEC["flink"], "rest": "http://me:hush@host:8081"}
    result = migrate("cut-over", _written(tmp_path, flink=rest))
    assert result.code == 3 and "hush" not in result.stderr


def test_unreachable_flink_leaves_everything_unchanged(tmp_path: Path) -> None:
    spec = _written(tmp_path)
    assert migrate("cut-over", spec).code == 6
    assert not (tmp_path / "orders.cut-over").exists()
    assert migrate("cut-over", spec, "--execute").code == 2  # no terminal for the question
    done = migrate("cut-over", spec, "--execute", "--yes")
    assert done.code == 6
    assert "stopped at check: this run has not changed anything or stopped a job" in done.stderr
    record = json.loads((tmp_path / "orders.cut-over" / "record.json").read_text())
    assert record["runs"][0]["end"].startswith("failed at check: flink.rest: http://127.0.0.1:")


def test_stop_requested_by_earlier_run_is_reported_if_flink_is_unreachable(tmp_path: Path) -> None:
    """Regression: Flink did not answer the next run, and the run reported no changes."""
    spec = _written(tmp_path)
    migrate("cut-over", spec, "--execute", "--yes")
    path = tmp_path / "orders.cut-over" / "record.json"
    job = {
        "job_id": "a" * 32,
        "job_name": "orders",
        "savepoints": f"file://{tmp_path}/savepoints",
    }
    edit_and_seal_plan(path, lambda record: record["flink"].update(job))
    done = migrate("cut-over", spec, "--execute", "--yes")
    assert done.code == 6
    assert (
        "stopped at check: a stop of the Flink job was requested, and Flink may still stop the job"
        in done.stderr
    )


def test_unknown_step_is_usage_error_with_suggestion(tmp_path: Path) -> None:
    result = migrate("cut-over", _written(tmp_path), "--until", "aply")
    assert result.code == 2
    assert "no such step (did you mean 'apply'?)" in result.stderr


def test_key_without_colon_does_not_leak_value(tmp_path: Path) -> None:
    path = _written(tmp_path)
    text = path.read_text().replace("kafka:", "kafka:\n  properties: {sasl.password hunter2}")
    path.write_text(text)
    with pytest.raises(InputError, match=r"sasl\.password has no value") as refused:
        read_spec(path)
    assert "hunter2" not in str(refused.value)
