"""Assign Flink sources to the streams of a Spark query with `--spark-source`."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.extensions.cutover.spec_keys import SPEC_KEYS
from migrate.model.cluster_snapshot import ClusterSnapshot, LogRange
from migrate.model.errors import Refused
from migrate.model.option_names import spec_notation
from migrate.model.positions import SPARK
from migrate.moves.load_inputs import read_input
from migrate.moves.options import move_request
from migrate.moves.spark_sources import plan_as_one
from tests.support.checkpoints import SourceState, source_operator, splits, write_checkpoint
from tests.support.command import Result, migrate


@pytest.fixture
def chk(tmp_path: Path) -> Path:
    """Sources with the UIDs `both` (topics a and b), `other` (a at higher offsets), `rest` (c)."""

    def operator(number: int, uid: str, **positions: list[int]) -> SourceState:
        held = [split for topic, starts in positions.items() for split in splits(topic, starts)]
        return SourceState({0: held}, operator_id=bytes([number] * 16), uid=uid)

    return write_checkpoint(
        tmp_path / "chk-7",
        source_operator(operator(1, "both", a=[1, 2], b=[3])),
        source_operator(operator(2, "other", a=[7, 8])),
        source_operator(operator(3, "rest", c=[9])),
        version=6,
    )


def to_spark(chk: Path, *arguments: str | Path) -> Result:
    given: list[str | Path] = []
    for argument in arguments:
        is_source = isinstance(argument, str) and argument[0].isdigit()
        given += ["--spark-source", argument] if is_source else [argument]
    return migrate("to-spark", chk, *given)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        pytest.param(["0=both"], ['{"a":{"0":1,"1":2},"b":{"0":3}}'], id="one"),
        pytest.param(
            ["1=rest", "0=both"],
            ['{"a":{"0":1,"1":2},"b":{"0":3}}', '{"c":{"0":9}}'],
            id="in the order of their numbers",
        ),
        pytest.param(["0=rest", "0=other"], ['{"a":{"0":7,"1":8},"c":{"0":9}}'], id="merged"),
        pytest.param(
            ["0=both", "1=other"],
            ['{"a":{"0":1,"1":2},"b":{"0":3}}', '{"a":{"0":7,"1":8}}'],
            id="one topic from two positions",
        ),
        pytest.param(
            ["--source", "both", "0=topic:b", "3=topic:a"],
            ['{"b":{"0":3}}', '{"a":{"0":1,"1":2}}'],
            id="split by topic",
        ),
        pytest.param(
            ["--source", "both", "0=topic:b", "0=topic:a"],
            ['{"a":{"0":1,"1":2},"b":{"0":3}}'],
            id="two topics of one source",
        ),
        pytest.param(["0=rest", "1=rest"], ['{"c":{"0":9}}'] * 2, id="one source, two streams"),
        pytest.param(
            ["0=01010101010101010101010101010101"],
            ['{"a":{"0":1,"1":2},"b":{"0":3}}'],
            id="by operator id",
        ),
        pytest.param(["0=topic:b", "--partitions", "b:0"], ['{"b":{"0":3}}'], id="a topic omitted"),
    ],
)
def test_to_spark_output_has_line_per_stream(
    chk: Path, arguments: list[str], lines: list[str]
) -> None:
    result = to_spark(chk, *arguments)
    assert (result.code, result.stdout.splitlines()) == (0, lines), result.stderr


def test_seed_has_file_per_stream(chk: Path, tmp_path: Path) -> None:
    seed = tmp_path / "seed"
    result = to_spark(chk, "0=rest", "2=other", "--checkpoint-dir", seed)
    assert result.code == 0, result.stderr
    files = sorted(str(path.relative_to(seed)) for path in seed.rglob("*") if path.is_file())
    assert files == ["metadata", "sources/0/0", "sources/2/0"]
    for number, line in zip((0, 2), result.stdout.splitlines(), strict=True):
        assert (seed / f"sources/{number}/0").read_text() == f"\0v1\n{line}"


def test_topic_read_by_two_streams_requires_option_one_cluster_if_broker_is_queried(
    chk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker belongs to one cluster, and the state does not show the cluster of each source."""
    logs = {topic: {0: LogRange(0, 20), 1: LogRange(0, 20)} for topic in "abc"}
    monkeypatch.setattr(
        "migrate.kafka.snapshot.take_snapshot", lambda *_: ClusterSnapshot(logs, "one")
    )
    arguments = ("0=both", "1=other", "-b", "localhost:1")
    refused = to_spark(chk, *arguments)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"2 sources read topic a (operators {'01' * 16} (both), {'02' * 16} (other))" in (
        refused.stderr
    )
    assert "--source" not in refused.stderr
    assert (
        "if the sources read the same Kafka cluster, add --one-cluster; otherwise, omit "
        "--bootstrap-servers, so that" in refused.stderr
    )
    assert to_spark(chk, *arguments, "--one-cluster").code == 0
    assert to_spark(chk, "0=both", "1=other").code == 0


def test_unassigned_and_doubly_assigned_topics_trigger_warning(chk: Path) -> None:
    result = to_spark(chk, "0=rest", "1=rest")
    assert "Spark sources 0 and 1 read c; " in result.stderr
    assert (
        "operator 02020202020202020202020202020202 (a) is not assigned to a Spark source"
        in result.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        pytest.param(["0=nobody"], 2, "no Kafka source matches 'nobody'", id="unknown"),
        pytest.param(["0=topic:x"], 2, "no Kafka source matches 'topic:x'", id="no such topic"),
        pytest.param(
            ["0=rest", "--source", "both"], 2, "excludes the source's topics", id=("not chosen")
        ),
        pytest.param(["0:rest"], 2, "expected N=SOURCE", id="invalid form"),
        pytest.param(["01=rest"], 2, "expected N=SOURCE", id="a number that Spark would not write"),
        pytest.param(["0=rest", "--plan-out", "p"], 2, "not a saved plan", id="plan"),
        pytest.param(
            ["--source", "both", "0=topic:b"],
            4,
            "topic a of operator 01010101010101010101010101010101 is not assigned to a Spark "
            "source",
            id="a topic not assigned",
        ),
        pytest.param(
            ["0=rest", "1=topic:a"],
            4,
            "Spark source 1: 2 sources of topic a",
            id="different positions",
        ),
        pytest.param(
            ["0=rest", "--partitions", "c:5"],
            4,
            "Spark source 0: no partition in",
            id="no partition",
        ),
    ],
)
def test_ambiguous_or_invalid_spark_source_is_refused(
    chk: Path, tmp_path: Path, arguments: list[str], code: int, told: str
) -> None:
    result = to_spark(chk, *arguments, "--checkpoint-dir", tmp_path / "seed")
    assert (result.code, result.stdout) == (code, "")
    assert told in result.stderr
    assert not (tmp_path / "seed").exists()


def test_skipped_stream_number_triggers_warning(chk: Path) -> None:
    """If the skipped stream is a Kafka source, it silently starts at the log end offset."""
    result = to_spark(chk, "1=rest", "3=topic:b")
    assert (
        "offsets for stream 3 of the query, but not for 2 streams before it (0, 2)" in result.stderr
    )
    assert "unseeded-stream" not in to_spark(chk, "0=rest", "1=topic:b").stderr


@pytest.mark.parametrize(
    ("names", "partitions", "left"),
    [
        ({0: ["both"], 1: ["rest"]}, None, [("a", "02" * 16)]),
        ({0: ["rest"]}, None, [("a", "01" * 16), ("b", "01" * 16), ("a", "02" * 16)]),
        ({0: ["rest"]}, {"c": {0}}, []),
        ({0: ["rest"], 1: ["other"]}, {"c": {0}, "a": {0}}, [("a", "01" * 16)]),
        ({0: ["both"], 1: ["other"], 2: ["rest"]}, None, []),
    ],
)
def test_unassigned_source_of_stopped_job_is_refused(
    chk: Path,
    names: dict[int, list[str]],
    partitions: dict[str, set[int]] | None,
    left: list[tuple[str, str]],
) -> None:
    """Regression: The records of this source were never consumed, and only a note reported this."""
    request = move_request(SPARK, {"partitions": partitions})
    told: list[str] = []
    try:
        with spec_notation(SPEC_KEYS):
            plan_as_one(read_input(chk, request), request, names)
    except Refused as refused:
        told = list(refused.reasons)
    found = [one for one in told if "is not assigned to a Spark source, so" in one]
    assert len(found) == len(left)
    for reason, (topic, operator) in zip(found, left, strict=True):
        assert reason.startswith(f"topic {topic} of operator {operator} is not assigned")
        assert f"add spark-source: {{N: topic:{topic}}}, or" in reason
        assert reason.endswith("move.source or move.partitions")
