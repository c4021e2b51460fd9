"""Read checkpoint locations with non-Kafka sources, with ambiguous sources, or without an ID."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.command import migrate

_FIELD = Path(__file__).parents[1] / "field"
_SEED = '\0v1\n{"logstore":{"0":1}}'


def _copy(tmp_path: Path, name: str) -> Path:
    return Path(shutil.copytree(_FIELD / name / "location", tmp_path / "query"))


def test_non_kafka_source_with_string_offsets_is_omitted(tmp_path: Path) -> None:
    """Regression: The error was "'12345' is not an offset", although a Kafka source comes first."""
    location = _copy(tmp_path, "09-datahub-beside-kafka")
    result = migrate("to-spark", f"spark:{location}")
    assert (result.code, result.stdout) == (0, '{"orders":{"0":12}}\n'), result.stderr


def test_non_kafka_source_with_invalid_topic_names_is_omitted(tmp_path: Path) -> None:
    """Regression: The times of a log service were returned as Kafka offsets, with exit code 0."""
    location = _copy(tmp_path, "10-another-source-of-kafkas-shape")
    result = migrate("to-spark", f"spark:{location}")
    assert (result.code, result.stdout) == (3, "")
    assert "[no-kafka-source-in-query]" in result.stderr


def _with_valid_names(location: Path) -> Path:
    entry = location / "offsets/0"
    entry.write_text(entry.read_text().replace("project#logstore", "logstore"))
    return location


@pytest.mark.parametrize("command", ["to-spark", "diff"])
def test_source_without_seed_triggers_warning_that_kafka_is_assumed(
    tmp_path: Path, command: str
) -> None:
    location = _with_valid_names(_copy(tmp_path, "10-another-source-of-kafkas-shape"))
    side = f"spark:{location}"
    arguments = (command, side) if command == "to-spark" else (command, side, side)
    result = migrate(*arguments)
    assert result.code == 0
    assert "(sources/0/0) is missing; a different connector" in result.stderr
    assert "[kafka-assumed]" in result.stderr
    (location / "sources/0").mkdir(parents=True)
    (location / "sources/0/0").write_text(_SEED)
    assert "kafka-assumed" not in migrate(*arguments).stderr


@pytest.mark.parametrize("seed", ["v1\n{}", "0", '{"shard":1}'])
def test_source_with_initial_offsets_of_different_connector_is_omitted(
    tmp_path: Path, seed: str
) -> None:
    location = _with_valid_names(_copy(tmp_path, "10-another-source-of-kafkas-shape"))
    (location / "sources/0").mkdir(parents=True)
    (location / "sources/0/0").write_text(seed)
    result = migrate("to-spark", f"spark:{location}")
    assert result.code == 3
    assert "[no-kafka-source-in-query]" in result.stderr


def test_diff_warns_if_checkpoint_location_lacks_query_id(tmp_path: Path) -> None:
    """Regression: ``diff`` printed no warning, and the other commands printed no remedy."""
    location = _copy(tmp_path, "09-datahub-beside-kafka")
    side = f"spark:{location}"
    assert "query-id-missing" not in migrate("diff", side, side).stderr
    (location / "metadata").unlink()
    result = migrate("diff", side, side)
    assert result.code == 0
    assert "SPARK-55058" in result.stderr and "[query-id-missing]" in result.stderr
    moved = migrate("to-spark", side)
    assert (moved.code, moved.stdout) == (3, "")
    assert "[no-query-id]" in moved.stderr
