"""What a sink's logs tell, as far as Spark need not run: test_spark_sinks.py makes it skip."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import pytest

from migrate.targets.spark_locations import location
from migrate.targets.spark_sink import DeltaTable, FileSink, UnreadableSink, look_at_sink

QUERY = str(uuid.uuid4())


def look(sink: Path) -> FileSink | DeltaTable | None:
    return look_at_sink(location(str(sink)))


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([], None),
        (["0"], FileSink(0)),
        (["8", "9.compact", "10", ".10.crc", ".11.abc.tmp", "_x"], FileSink(10)),
        (["9.compact"], FileSink(9)),
    ],
)
def test_the_last_batch_of_a_file_sink(
    tmp_path: Path, names: list[str], found: FileSink | None
) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    for name in names:
        (log / name).write_text("v1\n")
    assert look(tmp_path) == found


def test_a_sink_that_is_not_there_or_holds_plain_files_remembers_nothing(tmp_path: Path) -> None:
    assert look(tmp_path / "new") is None
    (tmp_path / "part-0.parquet").write_bytes(b"PAR1")
    assert look(tmp_path) is None


def test_a_file_is_no_sink(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreadableSink, match="no directory"):
        look(tmp_path / "file")


def commit(log: Path, version: int, **last_batches: int) -> None:
    actions: list[dict[str, object]] = [{"commitInfo": {"operation": "STREAMING UPDATE"}}]
    actions += [{"txn": {"appId": name, "version": v}} for name, v in last_batches.items()]
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")


def checkpoint(log: Path, version: int, part: str = "", **last_batches: int) -> None:
    import pyarrow
    import pyarrow.parquet

    rows: list[dict[str, object] | None] = [None]
    rows += [{"appId": name, "version": v} for name, v in last_batches.items()]
    kind = pyarrow.struct([("appId", pyarrow.string()), ("version", pyarrow.int64())])
    table = pyarrow.table({"txn": pyarrow.array(rows, kind), "add": pyarrow.nulls(len(rows))})
    pyarrow.parquet.write_table(table, log / f"{version:020}.checkpoint{part}.parquet")


def test_a_delta_log_is_its_newest_checkpoint_and_what_came_since(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    commit(log, 0, job=0, gone=9)  # superseded by the checkpoint
    checkpoint(log, 0, job=0)
    checkpoint(log, 1, ".0000000001.0000000002", job=1)
    checkpoint(log, 1, ".0000000002.0000000002", **{QUERY: 5})
    commit(log, 2, job=2)
    assert look(tmp_path) == DeltaTable({"job": 2, QUERY: 5})


def test_only_a_name_of_its_own_can_come_again(tmp_path: Path) -> None:
    commit(tmp_path / "_delta_log", 0, **{QUERY: 5, "job": 2})
    table = look(tmp_path)
    assert isinstance(table, DeltaTable)
    assert table.named_writers == {"job": 2}


def test_a_checkpoint_that_cannot_be_read_here_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "_delta_log"
    commit(log, 2, job=2)
    checkpoint(log, 1, job=1)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    table = look(tmp_path)
    assert isinstance(table, DeltaTable)
    assert table.last_batches == {"job": 2}
    assert "pyarrow" in table.unread


@pytest.mark.parametrize("text", ["{", "[]", '{"txn":{"appId":"x"}}', '{"txn":3}', '"x"'])
def test_a_damaged_log_is_told(tmp_path: Path, text: str) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text(text)
    with pytest.raises(UnreadableSink, match="not a commit of Delta's"):
        look(tmp_path)


def test_a_damaged_checkpoint_is_told(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{3:020}.checkpoint.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(UnreadableSink, match=r"checkpoint\.parquet: not a checkpoint of Delta's"):
        look(tmp_path)


@pytest.mark.parametrize("name", ["_spark_metadata", "_delta_log"])
@pytest.mark.parametrize("is_link", [True, False], ids=["a link", "a file"])
def test_a_log_that_cannot_be_looked_into_is_not_taken_for_none(
    tmp_path: Path, name: str, is_link: bool
) -> None:
    if is_link:
        (tmp_path / "log").mkdir()
        (tmp_path / name).symlink_to(tmp_path / "log")
    else:
        (tmp_path / name).write_text("")
    with pytest.raises(UnreadableSink, match=f"{name} in it is no directory"):
        look(tmp_path)


def test_a_delta_table_may_have_the_log_of_a_file_sink_too(tmp_path: Path) -> None:
    commit(tmp_path / "_delta_log", 0)
    (tmp_path / "_spark_metadata").mkdir()
    (tmp_path / "_spark_metadata" / "3").write_text("v1\n")
    assert look(tmp_path) == DeltaTable({}, files_up_to=3)


def test_a_delta_log_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text("[" * 200_000)
    with pytest.raises(UnreadableSink, match="not a commit"):
        look(tmp_path)
