"""Replace the file sources in the logs of a primed checkpoint location with Kafka sources."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from migrate.extensions.stateful_query.primed_log import (
    copy_to_read,
    replace_with_kafka,
    source_directory,
    source_names,
    write_watermark,
)
from migrate.inputs.spark_log import committed_positions, kafka_seeds
from migrate.model.errors import InputError, Refused
from migrate.storage.files import Files

_METADATA = {
    "batchWatermarkMs": 0,
    "batchTimestampMs": 1795347301727,
    "conf": {
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.streaming.stateStore.providerClass": "a.Provider",
        "spark.sql.optimizer.anything": "true",
    },
}
_ID = '{"id":"ecf95efa-fe7c-4270-981b-0fdd91f057fb"}'


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The files of Spark 4.0 after batch 0 of a query with two file sources, without the state."""
    files = {
        "metadata": _ID,
        "offsets/0": f'v1\n{json.dumps(_METADATA)}\n{{"logOffset":0}}\n{{"logOffset":0}}',
        "offsets/.0.crc": "stale",
        "commits/0": 'v1\n{"nextBatchWatermarkMs":1700000308000}',
        "commits/.0.crc": "stale",
        "sources/0/0": _log("1"),
        "sources/0/.0.crc": "stale",
        "sources/1/0": _log("0"),
    }
    for name, content in files.items():
        path = tmp_path / "chk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "chk"


def _log(rows: str) -> str:
    paths = (f"file:///data/.chk.rows.x/{rows}/part-{n}.parquet" for n in range(2))
    return "\n".join(["v1", *(json.dumps({"path": path, "batchId": 0}) for path in paths)])


ORDERS, PAYMENTS = {("orders", 0): 5, ("orders", 1): 0}, {("payments", 0): 12}


def test_prime_replaces_file_sources_in_logs_with_kafka_sources(checkpoint: Path) -> None:
    pinned = replace_with_kafka(checkpoint, [ORDERS, PAYMENTS], 1_700_000_000_000)
    assert committed_positions("it", checkpoint).starts == {**ORDERS, **PAYMENTS}
    assert kafka_seeds(str(checkpoint), Files()) == {"0": ORDERS, "1": PAYMENTS}
    version, metadata, *sources = (checkpoint / "offsets/0").read_text().split("\n")
    assert (version, len(sources)) == ("v1", 2)
    # Spark drops late records by the watermark in offsets/0, and closes windows by the watermark in
    # commits/0.
    assert json.loads(metadata) == {**_METADATA, "batchWatermarkMs": 1_700_000_000_000}
    assert (checkpoint / "commits/0").read_text() == 'v1\n{"nextBatchWatermarkMs":1700000000000}'
    assert list(checkpoint.rglob("*.crc")) == []
    assert pinned == {
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.streaming.stateStore.providerClass": "a.Provider",
    }


def test_next_batch_of_primed_query_without_watermark_has_watermark_zero(checkpoint: Path) -> None:
    replace_with_kafka(checkpoint, [ORDERS, PAYMENTS], None)
    assert (checkpoint / "commits/0").read_text() == 'v1\n{"nextBatchWatermarkMs":0}'


def test_row_directory_of_file_source_is_read_from_its_log(checkpoint: Path) -> None:
    """Each file source has a log with the paths of its row files. A damaged log is refused."""
    assert source_names(checkpoint) == ["0", "1"]
    assert [source_directory(checkpoint, source) for source in "012"] == ["1", "0", None]
    (checkpoint / "sources/1/0").write_text("v1\n{}")
    with pytest.raises(InputError) as damaged:
        source_directory(checkpoint, "1")
    (checkpoint / "sources/1/0").write_text(_log("0").replace("v1", "v2"))
    with pytest.raises(InputError) as unknown:
        source_directory(checkpoint, "1")
    assert damaged.value.codes == unknown.value.codes == ["file-source-log-unknown"]


@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_unknown_log_version_is_refused_without_changing_location(
    checkpoint: Path, log: str
) -> None:
    entry = checkpoint / log / "0"
    entry.write_text(entry.read_text().replace("v1", "v9", 1))
    before = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=f"{log}/0 has the unknown version 'v9'"):
        replace_with_kafka(checkpoint, [ORDERS, PAYMENTS], None)
    assert {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()} == before


def test_prime_writes_logs_of_version_2_if_spark_wrote_version_2(checkpoint: Path) -> None:
    """In version 2 (Spark 4.2), the offset log contains source names.

    The commit log contains the IDs of the state files.
    """
    entry = checkpoint / "offsets/0"
    _, metadata, *sources = entry.read_text().split("\n")
    named = [f"{number}:{line}" for number, line in enumerate(sources)]
    entry.write_text("\n".join(["v2", metadata, *named]))
    (checkpoint / "commits/0").write_text('v2\n{"nextBatchWatermarkMs":5,"stateUniqueIds":{}}')
    replace_with_kafka(checkpoint, [ORDERS, PAYMENTS], 70)
    assert committed_positions("it", checkpoint).starts == {**ORDERS, **PAYMENTS}
    assert entry.read_text().split("\n")[2:] == [
        '0:{"orders":{"0":5,"1":0}}',
        '1:{"payments":{"0":12}}',
    ]
    commit = (checkpoint / "commits/0").read_text()
    assert commit == 'v2\n{"nextBatchWatermarkMs":70,"stateUniqueIds":{}}'


def test_prime_keeps_source_names_in_logs(checkpoint: Path) -> None:
    """With named sources, the logs contain names instead of numbers.

    See tests/golden/spark/4.3/named-sources.
    """
    entry = checkpoint / "offsets/0"
    _, metadata, *_ = entry.read_text().split("\n")
    entry.write_text("\n".join(["v2", metadata, 'paid:{"logOffset":0}', 'bought:{"logOffset":0}']))
    for number, name in enumerate(("bought", "paid")):
        (checkpoint / "sources" / str(number)).rename(checkpoint / "sources" / name)
    assert source_names(checkpoint) == ["paid", "bought"]
    assert [source_directory(checkpoint, name) for name in ("bought", "paid")] == ["1", "0"]
    replace_with_kafka(checkpoint, [PAYMENTS, ORDERS], 70)
    assert kafka_seeds(str(checkpoint), Files()) == {"bought": ORDERS, "paid": PAYMENTS}
    assert entry.read_text().split("\n")[2:] == [
        'paid:{"payments":{"0":12}}',
        'bought:{"orders":{"0":5,"1":0}}',
    ]


def test_copy_for_reading_state_has_single_file_source(checkpoint: Path, tmp_path: Path) -> None:
    """A helper query with one file source reads the state from a copy of the location.

    The log of the copy lists the source's file as already read.
    """
    (checkpoint / "state").mkdir()
    (checkpoint / "state" / "1.delta").write_text("state")
    (tmp_path / "0.json").touch()
    os.utime(tmp_path / "0.json", (7, 7))
    copy_to_read(checkpoint, 0, tmp_path / "copy", source_file=tmp_path / "0.json")
    assert (tmp_path / "copy/state/1.delta").read_text() == "state"
    lines = (tmp_path / "copy/offsets/0").read_text().split("\n")
    assert lines == ["v1", json.dumps(_METADATA), '{"logOffset":0}']
    for name in ("metadata", "commits/0"):
        assert (tmp_path / "copy" / name).read_text() == (checkpoint / name).read_text()
    path = (tmp_path / "0.json").as_uri()
    seen = (tmp_path / "copy/sources/0/0").read_text()
    assert seen == f'v1\n{{"path":"{path}","timestamp":7000,"batchId":0}}'


def test_files_deleted_by_running_query_are_omitted_from_copy(
    checkpoint: Path, tmp_path: Path
) -> None:
    """Spark renames new files and deletes old files during the copy.

    In the copy, a dangling link represents a file deleted after the listing. Spark itself rejects a
    state with a missing file.
    """
    folder = checkpoint / "state" / "0" / "0"
    folder.mkdir(parents=True)
    for name in ("2.delta", ".2.delta.crc", ".3.delta.aa.tmp", "..3.delta.aa.tmp.crc"):
        (folder / name).write_text("state")
    for name in ("1.delta", ".4.delta.bb.tmp"):
        (folder / name).symlink_to("gone")
    (tmp_path / "0.json").touch()
    copy_to_read(checkpoint, 0, tmp_path / "copy", source_file=tmp_path / "0.json")
    copied = {path.name for path in (tmp_path / "copy/state/0/0").iterdir()}
    assert copied == {"2.delta", ".2.delta.crc"}


@pytest.mark.parametrize(
    ("log", "batches", "code"),
    [
        ("offsets", 2, "priming-batches-differ"),
        ("commits", 2, "priming-batches-differ"),
        ("commits", 0, "priming-batches-missing"),
    ],
)
def test_primed_location_with_unexpected_number_of_batches_is_refused(
    checkpoint: Path, log: str, batches: int, code: str
) -> None:
    (checkpoint / log / "0").unlink() if not batches else (checkpoint / log / "1").touch()
    with pytest.raises(Refused) as refused:
        replace_with_kafka(checkpoint, [ORDERS, PAYMENTS], None)
    assert refused.value.codes == [code]
    assert refused.value.facts[0]["log"] == log


def test_prime_replaces_file_sources_of_two_batches_with_kafka_sources(checkpoint: Path) -> None:
    """The first batch is empty, so the second batch has a watermark to detect late records."""
    write_watermark(checkpoint, 0, 50)
    assert (checkpoint / "commits/0").read_text() == 'v1\n{"nextBatchWatermarkMs":50}'
    for log in ("offsets", "commits"):
        (checkpoint / log / "1").write_text((checkpoint / log / "0").read_text())
    replace_with_kafka(checkpoint, [ORDERS, PAYMENTS], 70, batches=2)
    assert committed_positions("it", checkpoint).starts == {**ORDERS, **PAYMENTS}
    for batch in ("0", "1"):
        lines = (checkpoint / "offsets" / batch).read_text().split("\n")
        assert lines[2:] == ['{"orders":{"0":5,"1":0}}', '{"payments":{"0":12}}']
        assert json.loads(lines[1])["batchWatermarkMs"] == 70
    with pytest.raises(Refused) as refused:
        replace_with_kafka(checkpoint, [ORDERS, PAYMENTS], 70)
    facts = {"log": "offsets", "present": [0, 1], "required": [0]}
    assert refused.value.facts[0] == facts


def test_primed_location_is_refused_if_a_source_has_no_positions(checkpoint: Path) -> None:
    with pytest.raises(Refused) as refused:
        replace_with_kafka(checkpoint, [ORDERS], None)
    assert refused.value.codes == ["positions-for-other-sources"]
    assert refused.value.facts[0] == {"sources": 2, "positions": 1}


@pytest.mark.parametrize("metadata", ["{", "[]"])
def test_primed_location_with_damaged_metadata_is_refused(checkpoint: Path, metadata: str) -> None:
    (checkpoint / "commits/0").write_text(f"v1\n{metadata}")
    with pytest.raises(InputError) as damaged:
        replace_with_kafka(checkpoint, [ORDERS, PAYMENTS], None)
    assert damaged.value.codes == ["log-metadata-damaged"]
    assert damaged.value.facts[0]["path"] == f"{checkpoint}/commits/0"
