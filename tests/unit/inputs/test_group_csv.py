"""Offsets exported by other tools: CSV files with several groups, and Hudi Streamer strings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrate.inputs.hudi_text import hudi_text, read_hudi_text
from migrate.model.errors import InputError, Refused
from tests.support.command import migrate
from tests.support.golden import golden
from tests.support.reasons import message_of

# Real output of kafka-consumer-groups --export (Kafka 4.1.1) for the groups ga and gb.
_TWO_GROUPS = Path(__file__).parents[1] / "field" / "11-two-groups" / "two.csv"


def test_csv_of_two_groups_requires_choice_of_group() -> None:
    """Regression: Partition 0 of a topic that both groups read was refused as a duplicate."""
    result = migrate("diff", f"csv:{_TWO_GROUPS}", f"csv:{_TWO_GROUPS}")
    assert result.code == 4
    assert result.stderr.splitlines()[0] == (
        f"refused: the file {_TWO_GROUPS} contains the offsets of 2 groups; choose one of "
        f"csv:{_TWO_GROUPS}#ga, csv:{_TWO_GROUPS}#gb [several-groups-in-file]"
    )


@pytest.mark.parametrize(
    ("group", "offsets"),
    [
        ("ga", {"payments": {"0": 5, "1": 6}}),
        ("gb", {"payments": {"0": 7, "1": 8}, "short": {"0": 20}}),
    ],
)
def test_group_in_csv_file_is_selected_by_name_that_follows_number_sign(
    group: str, offsets: object
) -> None:
    result = migrate("to-spark", f"csv:{_TWO_GROUPS}#{group}")
    assert result.code == 0, result.stderr
    assert json.loads(result.stdout) == offsets


def test_unknown_group_in_csv_file_is_refused(tmp_path: Path) -> None:
    result = migrate("to-spark", f"csv:{_TWO_GROUPS}#gc")
    assert result.code == 2
    assert "contains no group 'gc'; it contains: 'ga', 'gb'" in result.stderr
    plain = tmp_path / "plain.csv"
    plain.write_text("payments,0,5\n")
    result = migrate("to-spark", f"csv:{plain}#ga")
    assert result.code == 2
    assert "its lines contain no group" in result.stderr


def test_csv_file_name_and_group_name_may_contain_number_sign(tmp_path: Path) -> None:
    file = tmp_path / "a#b.csv"
    file.write_text("g#1,payments,0,5\nh,payments,0,6\n")
    result = migrate("to-spark", f"csv:{file}#g#1")
    assert result.stdout == '{"payments":{"0":5}}\n'
    file.write_text("g#1,payments,0,5\n")
    assert migrate("to-spark", f"csv:{file}").stdout == '{"payments":{"0":5}}\n'


def test_duplicate_partition_in_csv_group_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "twice.csv"
    file.write_text("ga,payments,0,5\ngb,payments,0,6\nga,payments,0,7\n")
    assert (
        f"line 3 of {file} does not contain valid offsets: 'payments' partition 0 is listed twice"
        in migrate("to-spark", f"csv:{file}#ga").stderr
    )


def test_plan_of_selected_csv_group_is_verified(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", f"csv:{_TWO_GROUPS}#gb", "--plan-out", plan).code == 0
    assert migrate("to-spark", "--plan", plan, "--checkpoint-dir", tmp_path / "q").code == 0
    assert migrate("verify", f"plan:{plan}", f"spark:{tmp_path / 'q'}").code == 0


# Strings from KafkaOffsetGen.CheckpointUtils.offsetsToStr and from Hudi's tests.
@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("test,0:0,1:200000", {("test", 0): 0, ("test", 1): 200_000}),
        ("hoodie_test_x,0:250", {("hoodie_test_x", 0): 250}),
        ("a.b-c_d,2:3,10:4", {("a.b-c_d", 2): 3, ("a.b-c_d", 10): 4}),
    ],
)
def test_hudi_streamer_string_is_read_and_written(
    text: str, offsets: dict[tuple[str, int], int]
) -> None:
    assert read_hudi_text("hudi:x", f"{text}\n").starts == offsets
    assert hudi_text(offsets) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("orders", "it contains 0 partitions"),
        ("orders,", "'' is not PARTITION:OFFSET"),
        ("orders,0", "'0' is not PARTITION:OFFSET"),
        ("orders,0:-1", "'-1' is not an offset"),
        ("orders,-1:0", "'-1' is not a partition number"),
        ("orders,0:1:2", "'1:2' is not an offset"),
        ("orders,0:1,0:2", "partition 0 is listed twice"),
        (",0:1", "'' is not a topic name"),
        ("20240101123000", "it contains 0 partitions"),
    ],
)
def test_invalid_hudi_streamer_string_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError) as refused:
        read_hudi_text("hudi:x", text)
    assert refused.value.codes == ["not-offsets"]
    assert message_of(refused.value).facts["problem"] == problem


def test_hudi_export_of_several_topics_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        hudi_text({("a", 0): 1, ("b", 0): 1})
    assert refused.value.codes == ["several-topics-for-hudi"]
    assert message_of(refused.value).facts["topics"] == ["a", "b"]


def test_checkpoint_moves_to_hudi_streamer_and_back(tmp_path: Path) -> None:
    checkpoint = golden("1.20/retained-files")
    text = migrate("to-spark", checkpoint, "--format", "hudi")
    assert text.code == 0, text.stderr
    side = f"hudi:{text.stdout.strip()}"
    same = migrate("diff", checkpoint, side, "--exit-code")
    assert same.code == 0, same.stdout
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", side, "--plan-out", plan).code == 0
    assert migrate("to-spark", "--plan", plan, "--checkpoint-dir", tmp_path / "q").code == 0
    assert migrate("verify", f"plan:{plan}", f"spark:{tmp_path / 'q'}").code == 0


def test_inline_json_is_refused_with_hint_to_use_file() -> None:
    result = migrate("to-spark", 'json:{"payments":{"0":5}}')
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr == (
        "migrate: the prefix json: requires the name of a file, but the argument is JSON text; "
        "save this text to a file, and pass the file name, for example json:offsets.json\n"
    )


def test_error_recognizes_group_description_passed_as_csv_and_query_progress_passed_as_json(
    tmp_path: Path,
) -> None:
    """The files contain output of kafka-consumer-groups --describe and a Spark progress report."""
    described = tmp_path / "describe.txt"
    described.write_text("\nGROUP    TOPIC   PARTITION  CURRENT-OFFSET  LAG\ng  orders  0  5  5\n")
    result = migrate("to-spark", f"csv:{described}")
    assert result.code == 3
    assert "[describe-output]" in result.stderr
    progress = tmp_path / "progress.json"
    progress.write_text('{"id":"x","sources":[{"endOffset":{"orders":{"0":9}}}]}')
    result = migrate("to-spark", f"json:{progress}")
    assert result.code == 3
    assert "[progress-report]" in result.stderr
