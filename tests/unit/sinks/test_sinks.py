"""Read handmade logs of sinks for states that no available writer produces.

`tests/golden/test_sinks.py` has logs of real writers. `test_spark_sinks.py` shows that writers skip
batches.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from migrate.model.errors import Refused, UsageError
from migrate.moves.sink import check_sink_of_a_job, check_sink_of_a_query
from migrate.sinks import (
    SinkMemory,
    UnreadableSink,
    WriterKind,
    delta,
    directory,
    hudi,
    sink_memory,
)
from migrate.storage.files import Files
from tests.golden.sinks.tables import GOLDEN
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate

QUERY = str(uuid.uuid4())
CONSTANT = str(uuid.uuid4())


def look(sink: Path) -> SinkMemory:
    return sink_memory(str(sink), Files())


def write(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


# -- any sink --------------------------------------------------------------------------------------


def test_empty_or_missing_sink_contains_no_recorded_numbers(tmp_path: Path) -> None:
    nothing = SinkMemory((), (), (), empty=True)
    assert look(tmp_path) == nothing
    assert look(tmp_path / "new") == nothing
    assert check_sink_of_a_query(tmp_path, None) == ()
    assert check_sink_of_a_job(tmp_path) == ()


@pytest.mark.parametrize("name", ["part-0.parquet", "metadata/other.json", "snapshot/LATEST"])
def test_unknown_kind_of_sink_triggers_warning(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, "x")
    assert look(tmp_path) == SinkMemory((), (), (), empty=False)
    for (warning,) in (check_sink_of_a_query(tmp_path, None), check_sink_of_a_job(tmp_path)):
        assert warning == (
            f"{tmp_path} is an unknown kind of sink; it may skip batches whose numbers it has "
            "already recorded; if an earlier query or job wrote to it, find out whether it records "
            "batch numbers, or choose a new sink [sink-unknown]"
        )
    (tmp_path / "spec").mkdir()
    (above,) = check_sink_of_a_query(tmp_path / "spec" / ".." / ".." / tmp_path.name, None)
    assert above == warning


def test_file_as_sink_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "file", "")
    with pytest.raises(UnreadableSink, match="it is a file, not a directory"):
        look(tmp_path / "file")
    with pytest.raises(Refused, match="is a file, not a sink"):
        check_sink_of_a_query(tmp_path / "file", None)


@pytest.mark.parametrize("name", ["_spark_metadata", "_delta_log", ".hoodie"])
def test_sink_is_unreadable_if_its_log_directory_is_a_file(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, "")
    with pytest.raises(UnreadableSink, match=f"{name} is not a directory"):
        look(tmp_path)


def test_named_pipe_in_sink_log_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    os.mkfifo(tmp_path / "_delta_log" / f"{0:020}.json")
    with pytest.raises(OSError, match="No such file"):
        look(tmp_path)


def test_directory_can_be_table_of_several_formats(tmp_path: Path) -> None:
    commit(tmp_path, 0, {"job": 1})
    write(tmp_path / "_spark_metadata/3", "v1\n")
    memory = look(tmp_path)
    assert memory.formats == ("a file sink's directory", "a Delta table")
    assert (memory.last_numbers(WriterKind.FILES), memory.last_numbers(WriterKind.TXN_APP)) == (
        {"": 3},
        {"job": 1},
    )


def test_sink_writer_option_requires_sink_option() -> None:
    with pytest.raises(UsageError, match=r"^sink_writer requires sink$"):
        check_sink_of_a_query(None, "orders")


@pytest.mark.parametrize("options", [(), ("--plan-out", "plan.json")])
def test_to_spark_lists_remembered_writers_and_checks_sink_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    commit(tmp_path / "sink", 0, {"orders": 4})
    chk = write_source(tmp_path / "chk-7", {0: splits("a", [1])})
    asked: tuple[str | Path, ...] = ("to-spark", chk, "--sink", tmp_path / "sink", *options)
    assert "'orders' up to 4" in migrate(*asked).stderr
    (tmp_path / "plan.json").unlink(missing_ok=True)
    refused = migrate(*asked, "--sink-writer", "orders")
    assert (refused.code, refused.stdout) == (4, "")
    assert "would silently skip batches 0 to 4 of a new query" in refused.stderr
    assert migrate(*asked, "--sink-writer", "other").code == 0


def test_long_list_of_writers_is_truncated(tmp_path: Path) -> None:
    commit(tmp_path, 0, {f"job-{number}": number for number in range(25)})
    (warning,) = check_sink_of_a_query(tmp_path, None)
    assert warning.count("' up to ") == 20  # after the name of each writer
    assert " and 5 more" in warning


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "last"),
    [
        ([], None),
        (["0"], 0),
        (["8", "9.compact", "10", ".10.crc", ".11.abc.tmp", "_x"], 10),
        (["9.compact"], 9),
    ],
)
def test_last_batch_of_file_sink_is_read(
    tmp_path: Path, names: list[str], last: int | None
) -> None:
    (tmp_path / "_spark_metadata").mkdir()
    for name in names:
        write(tmp_path / "_spark_metadata" / name, "v1\n")
    assert look(tmp_path).last_numbers(WriterKind.FILES) == ({} if last is None else {"": last})


# -- Delta -----------------------------------------------------------------------------------------


def commit(table: Path, version: int, last_batches: Mapping[str, int], query: str = "") -> None:
    info: dict[str, object] = {"operation": "WRITE", "operationParameters": {"mode": "Append"}}
    if query:
        info = {"operation": "STREAMING UPDATE", "operationParameters": {"queryId": query}}
    actions: list[dict[str, object]] = [{"commitInfo": info}]
    actions += [{"txn": {"appId": name, "version": v}} for name, v in last_batches.items()]
    text = "\n".join(map(json.dumps, actions)) + "\n"
    write(table / "_delta_log" / f"{version:020}.json", text)


def checkpoint(
    table: Path, version: int, rows: list[Mapping[str, object] | None], part: str = ""
) -> None:
    import pyarrow
    import pyarrow.parquet

    kind = pyarrow.struct([("appId", pyarrow.string()), ("version", pyarrow.int64())])
    columns = pyarrow.table({"txn": pyarrow.array(rows, kind), "add": pyarrow.nulls(len(rows))})
    pyarrow.parquet.write_table(
        columns, table / "_delta_log" / f"{version:020}.checkpoint{part}.parquet"
    )


def txn(app: str | None, version: int | None) -> Mapping[str, object]:
    return {"appId": app, "version": version}


def test_delta_log_is_read_from_newest_checkpoint_and_later_commits(tmp_path: Path) -> None:
    commit(tmp_path, 0, {"job": 0, "gone": 9})  # superseded by the checkpoint
    checkpoint(tmp_path, 0, [None, txn("job", 0)])
    checkpoint(tmp_path, 1, [txn("job", 1), None], ".0000000001.0000000002")
    checkpoint(tmp_path, 1, [txn(CONSTANT, 5)], ".0000000002.0000000002")
    commit(tmp_path, 2, {"job": 2})
    assert look(tmp_path).last_numbers(WriterKind.TXN_APP) == {"job": 2, CONSTANT: 5}


def test_incomplete_delta_checkpoint_is_ignored(tmp_path: Path) -> None:
    commit(tmp_path, 1, {"job": 1})
    checkpoint(tmp_path, 1, [None], ".0000000001.0000000002")
    assert look(tmp_path).last_numbers(WriterKind.TXN_APP) == {"job": 1}


def test_delta_txn_with_empty_fields_is_ignored(tmp_path: Path) -> None:
    commit(tmp_path, 0, {})
    checkpoint(tmp_path, 0, [txn(None, None), txn("job", 3), None])
    assert look(tmp_path).last_numbers(WriterKind.TXN_APP) == {"job": 3}


def test_delta_checkpoint_in_json_is_read(tmp_path: Path) -> None:
    """The commits before the checkpoint are missing, because Delta later removes them."""
    for file in (GOLDEN / "delta-json/_delta_log").glob("*.checkpoint.*.json"):
        write(tmp_path / "_delta_log" / file.name, file.read_bytes())
    assert look(tmp_path).last_numbers(WriterKind.TXN_APP) == {"orders-job": 2}


def test_delta_checkpoint_without_txn_remembers_nothing(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    (tmp_path / "_delta_log").mkdir()
    pyarrow.parquet.write_table(
        pyarrow.table({"add": [1]}), tmp_path / "_delta_log" / f"{0:020}.checkpoint.parquet"
    )
    assert look(tmp_path).remembered == ()


def test_query_id_and_constant_uuid_are_distinguished_by_delta_commits(tmp_path: Path) -> None:
    """A commit contains the query ID.

    A Delta checkpoint does not, so the IDs cannot be distinguished without the earlier commits.
    """
    commit(tmp_path, 0, {QUERY: 5}, QUERY)
    commit(tmp_path, 1, {CONSTANT: 7, "None": 1})
    memory = look(tmp_path)
    assert memory.last_numbers(WriterKind.QUERY) == {QUERY: 5}
    assert memory.last_numbers(WriterKind.TXN_APP) == {CONSTANT: 7, "None": 1}

    checkpoint(tmp_path, 1, [txn(QUERY, 5), txn(CONSTANT, 7), txn("None", 1)])
    assert look(tmp_path) == memory
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("damaged, and of no account")
    memory = look(tmp_path)
    assert memory.last_numbers(WriterKind.QUERY) == {}
    assert memory.last_numbers(WriterKind.TXN_APP) == {QUERY: 5, CONSTANT: 7, "None": 1}


def test_delta_table_remembers_checkpoints_of_flink_job(tmp_path: Path) -> None:
    """The source of DeltaCommitter defines the format. No artifact of the sink is available."""
    commit(tmp_path, 0, {f"{'0' * 31}1-0": 8})
    memory = look(tmp_path)
    assert memory.last_numbers(WriterKind.FLINK_JOB) == {f"job {'0' * 31}1, subtask 0": 8}
    (warning,) = check_sink_of_a_job(tmp_path)
    assert f"'job {'0' * 31}1, subtask 0' up to 8" in warning
    assert check_sink_of_a_query(tmp_path, None) == ()


def test_staged_commits_of_catalog_are_reported_as_unread(tmp_path: Path) -> None:
    commit(tmp_path, 0, {})
    (tmp_path / "_delta_log/_staged_commits").mkdir()
    assert look(tmp_path).unread == ()  # Delta 4.0.0 leaves the empty folder in every table
    write(tmp_path / "_delta_log/_staged_commits" / f"{1:020}.{QUERY}.json", "{}")
    assert "_staged_commits" in look(tmp_path).unread[0]
    assert "was not read completely" in check_sink_of_a_query(tmp_path, None)[0]


def test_delta_checkpoint_without_pyarrow_is_reported_as_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tmp_path, 2, {"job": 2})
    checkpoint(tmp_path, 1, [txn("job", 1)])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    memory = look(tmp_path)
    assert memory.last_numbers(WriterKind.TXN_APP) == {"job": 2}
    assert "pyarrow" in memory.unread[0]


def test_commits_before_checkpoint_are_read_until_all_queries_are_identified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "01234567-89ab-cdef-0123-456789abcdef"
    for version in range(4):
        commit(tmp_path, version, {query: version}, query)
    checkpoint(tmp_path, 3, [txn(query, 3)])
    read = directory.Directory.read
    names: list[str] = []

    def noted(self: directory.Directory, name: str, *most: int) -> bytes:
        names.append(name.rpartition("/")[2])
        return read(self, name, *most)

    monkeypatch.setattr(directory.Directory, "read", noted)
    look(tmp_path)
    assert [name for name in names if name.endswith(".json")] == [f"{3:020}.json"]


def test_delta_log_is_read_up_to_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "MOST_FILES", 2)
    for version in range(3):
        commit(tmp_path, version, {f"job-{version}": version})
    memory = look(tmp_path)
    assert memory.last_numbers(WriterKind.TXN_APP) == {"job-1": 1, "job-2": 2}
    assert memory.unread == ("the oldest 1 commits of _delta_log",)


def test_delta_checkpoint_with_too_many_actions_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tmp_path, 0, {})
    checkpoint(tmp_path, 0, [txn("job", 3), None])
    monkeypatch.setattr(delta, "_MOST_ROWS", 1)
    memory = look(tmp_path)
    assert memory.remembered == ()
    assert "because it has more than 1 actions" in memory.unread[0]


def test_delta_commit_above_size_limit_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "_delta_log" / f"{0:020}.json", " " * (1 << 20))
    assert look(tmp_path).remembered == ()
    monkeypatch.setattr(directory.Directory.read, "__defaults__", (1 << 19,))
    with pytest.raises(UnreadableSink, match="larger than 0 MiB"):
        look(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '"x"',
        '{"txn":3}',
        '{"txn":{"appId":"x"}}',
        '{"txn":{"version":1}}',
        '{"txn":{"appId":"x","version":1.5}}',
        '{"txn":{"appId":"x","version":1e999}}',
        '{"txn":{"appId":"x","version":true}}',
        '{"txn":{"appId":"x","version":"-1"}}',
        "[" * 200_000,
        '{"txn":{"appId":"x","version":' + "1" * 5000 + "}}",
    ],
)
def test_damaged_delta_commit_is_unreadable(tmp_path: Path, text: str) -> None:
    write(tmp_path / "_delta_log" / f"{0:020}.json", text)
    with pytest.raises(UnreadableSink, match="is not a Delta commit"):
        look(tmp_path)


def test_damaged_delta_checkpoint_is_unreadable(tmp_path: Path) -> None:
    write(tmp_path / "_delta_log" / f"{3:020}.checkpoint.parquet", b"PAR1 no more")
    with pytest.raises(UnreadableSink, match=r"checkpoint\.parquet is not a Delta checkpoint"):
        look(tmp_path)


# -- Hudi ------------------------------------------------------------------------------------------


def hudi_commit(path: Path, **batches: int) -> None:
    checkpoints = json.dumps({name: str(batch) for name, batch in batches.items()})
    write(path, json.dumps({"extraMetadata": {"_hudi_streaming_sink_checkpoint": checkpoints}}))


def test_newest_hudi_commit_of_each_identifier_is_used(tmp_path: Path) -> None:
    log = tmp_path / ".hoodie"
    hudi_commit(log / "20260102000000000.commit", a=7)
    hudi_commit(log / "20260103000000000.deltacommit", b=1)
    hudi_commit(log / "20260104000000000.replacecommit", a=2)
    hudi_commit(log / "20260105000000000.commit.requested", a=9)
    hudi_commit(log / "20260105000000000.inflight", a=9)
    write(log / "20260106000000000.commit", "")
    write(log / "20260107000000000.commit", '{"extraMetadata": null}')
    assert look(tmp_path).last_numbers(WriterKind.HUDI) == {"a": 2, "b": 1}


def test_hudi_timeline_path_is_read_from_properties(tmp_path: Path) -> None:
    log = tmp_path / ".hoodie"
    hudi_commit(log / "timeline/20260102000000000_20260102000000001.commit", a=7)
    assert look(tmp_path).last_numbers(WriterKind.HUDI) == {"a": 7}
    write(log / "hoodie.properties", "hoodie.table.name=t\nhoodie.timeline.path = other\n")
    assert look(tmp_path).last_numbers(WriterKind.HUDI) == {}
    hudi_commit(log / "other/20260102000000000_20260102000000001.commit", a=8)
    assert look(tmp_path).last_numbers(WriterKind.HUDI) == {"a": 8}
    write(log / "hoodie.properties", "hoodie.timeline.path=../../elsewhere\n")
    assert look(tmp_path).last_numbers(WriterKind.HUDI) == {"a": 7}


def test_hudi_timeline_is_read_up_to_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hudi, "MOST_FILES", 1)
    hudi_commit(tmp_path / ".hoodie/20260102000000000.commit", a=7)
    hudi_commit(tmp_path / ".hoodie/20260103000000000.commit", b=7)
    memory = look(tmp_path)
    assert memory.last_numbers(WriterKind.HUDI) == {"b": 7}
    assert memory.unread == ("the oldest 1 commits of .hoodie",)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"extraMetadata": 3}',
        '{"extraMetadata": {"_hudi_streaming_sink_checkpoint": 3}}',
        '{"extraMetadata": {"_hudi_streaming_sink_checkpoint": "{"}}',
        '{"extraMetadata": {"_hudi_streaming_sink_checkpoint": "[3]"}}',
        '{"extraMetadata": {"_hudi_streaming_sink_checkpoint": "{\\"a\\": \\"x\\"}"}}',
    ],
)
def test_damaged_hudi_commit_is_unreadable(tmp_path: Path, text: str) -> None:
    write(tmp_path / ".hoodie/20260102000000000.commit", text)
    with pytest.raises(UnreadableSink, match="is not a Hudi commit"):
        look(tmp_path)


def avro_commit() -> bytes:
    (newest,) = list((GOLDEN / "hudi-default/.hoodie/timeline").glob("*_*.commit"))[-1:]
    return newest.read_bytes()


def test_truncated_avro_commit_is_unreadable(tmp_path: Path) -> None:
    content = avro_commit()
    path = tmp_path / ".hoodie/timeline/20260102000000000_20260102000000001.commit"
    # Up to the first block, the content is a valid file without records.
    begin = content.index(content[-16:]) + 16
    for size in (*range(4, len(content), 97), *range(begin - 20, begin + 40), len(content) - 1):
        write(path, content[:size])
        if size == begin:
            assert look(tmp_path).last_numbers(WriterKind.HUDI) == {}
            continue
        with pytest.raises(UnreadableSink, match="is not a Hudi commit"):
            look(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 0x80, 0xFF])
def test_sink_log_with_changed_byte_is_read_or_reported_as_unreadable(
    tmp_path: Path, step: int
) -> None:
    """No changed byte causes a different error."""
    files = {
        ".hoodie/timeline/20260102000000000_20260102000000001.commit": avro_commit(),
        f"_delta_log/{0:020}.checkpoint.parquet": next(
            (GOLDEN / "delta-name/_delta_log").glob("*.checkpoint.parquet")
        ).read_bytes(),
        f"_delta_log/{0:020}.json": (GOLDEN / f"delta-name/_delta_log/{0:020}.json").read_bytes(),
    }
    for number, (name, content) in enumerate(files.items()):
        path = tmp_path / str(number) / name
        for at in range(0, len(content), 1 + len(content) // 200):
            changed = bytearray(content)
            changed[at] ^= step
            write(path, bytes(changed))
            with contextlib.suppress(UnreadableSink):
                look(tmp_path / str(number))


def avro(schema: str, records: bytes, codec: bytes | None = None) -> bytes:
    """Return a container file of one block with one record."""

    def text(value: bytes) -> bytes:
        return long(len(value)) + value

    entries = {b"avro.schema": schema.encode()} | ({b"avro.codec": codec} if codec else {})
    metadata = b"".join(text(name) + text(value) for name, value in entries.items())
    marker = bytes(16)
    header = b"Obj\x01" + long(len(entries)) + metadata + long(0) + marker
    return header + long(1) + text(records) + marker


def long(value: int) -> bytes:
    value = value * 2 if value >= 0 else -value * 2 - 1
    encoded = b""
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


EXTRA = '{"name":"extraMetadata","type":["null",{"type":"map","values":"string"}]}'
EXTRA_VALUE = (
    long(1)
    + long(1)
    + long(31)
    + b"_hudi_streaming_sink_checkpoint"
    + long(9)
    + b'{"a":"4"}'
    + b"\0"
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ('{"type":"record","name":"r","fields":[{"name":"x","type":"long"}]}', long(-9)),
        ('{"type":"array","items":"int"}', long(2) + long(1) + long(300) + long(0)),
        ('{"type":"array","items":"int"}', long(-1) + long(1) + long(5) + long(0)),
        ('{"type":"fixed","name":"f","size":3}', b"abc"),
        ('{"type":"enum","name":"e","symbols":["A"]}', long(0)),
        ('["null","double"]', long(1) + bytes(8)),
        ('"boolean"', b"\1"),
        ('{"type":{"type":"bytes"}}', long(2) + b"xx"),
    ],
)
def test_avro_fields_before_and_after_map_are_skipped(
    tmp_path: Path, field: str, value: bytes
) -> None:
    fields = f'{{"name":"before","type":{field}}},{EXTRA},{{"name":"after","type":{field}}}'
    if '"name"' in field:  # a named type is declared once
        name = json.loads(field)["name"]
        fields = f'{{"name":"before","type":{field}}},{EXTRA},{{"name":"after","type":"{name}"}}'
    schema = f'{{"type":"record","name":"c","namespace":"n","fields":[{fields}]}}'
    path = tmp_path / ".hoodie/timeline/20260102000000000_20260102000000001.commit"
    write(path, avro(schema, value + EXTRA_VALUE + value))
    assert look(tmp_path).last_numbers(WriterKind.HUDI) == {"a": 4}
    # The union contains null.
    write(path, avro(schema, value + long(0) + value))
    assert look(tmp_path).last_numbers(WriterKind.HUDI) == {}


@pytest.mark.parametrize(
    ("schema", "records"),
    [
        ("{", b""),
        ('"string"', b""),
        ("{}", b""),
        ('{"type":"record","name":"r"}', b""),
        ('{"type":"record","name":"r","fields":[3]}', b""),
        ('{"type":"record","name":"r","fields":[{"name":"x","type":"nothing"}]}', b""),
        ('{"type":"record","name":"r","fields":[{"name":"x","type":["null"]}]}', long(1)),
        # Endless without limits: a record that contains itself, and empty items.
        ('{"type":"record","name":"r","fields":[{"name":"x","type":"r"}]}', b""),
        (
            '{"type":"record","name":"r","fields":[{"name":"x","type":'
            '{"type":"record","name":"s","fields":[{"name":"y","type":"s"}]}}]}',
            b"",
        ),
        (
            '{"type":"record","name":"r","fields":[{"name":"x","type":'
            '{"type":"array","items":"null"}}]}',
            long(1 << 60),
        ),
        ('{"type":"record","name":"r","fields":[{"name":"x","type":"long"}]}', b"\xff" * 20),
        ('{"type":"record","name":"r","fields":[{"name":"x","type":"bytes"}]}', long(-5)),
        (
            '{"type":"record","name":"r","fields":[{"name":"x","type":'
            '{"type":"fixed","name":"f","size":-1}}]}',
            b"",
        ),
        (
            '{"type":"record","name":"r","fields":[{"name":"extraMetadata","type":"string"}]}',
            long(1) + b"x",
        ),
    ],
)
def test_invalid_avro_schema_is_unreadable(tmp_path: Path, schema: str, records: bytes) -> None:
    path = tmp_path / ".hoodie/timeline/20260102000000000_20260102000000001.commit"
    write(path, avro(schema, records))
    with pytest.raises(UnreadableSink, match="is not a Hudi commit"):
        look(tmp_path)


def test_compressed_avro_commit_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / ".hoodie/timeline/20260102000000000_20260102000000001.commit"
    schema = f'{{"type":"record","name":"c","fields":[{EXTRA}]}}'
    write(path, avro(schema, EXTRA_VALUE, b"null"))
    assert look(tmp_path).last_numbers(WriterKind.HUDI) == {"a": 4}
    write(path, avro(schema, EXTRA_VALUE, b"deflate"))
    with pytest.raises(UnreadableSink, match="compressed"):
        look(tmp_path)


# -- Iceberg ---------------------------------------------------------------------------------------


def flink_snapshot(
    number: int, parent: int | None, job: str, last: int, operator: str | None = "o"
) -> dict[str, object]:
    summary = {"flink.job-id": job, "flink.max-committed-checkpoint-id": str(last)}
    if operator is not None:
        summary["flink.operator-id"] = operator
    return {"snapshot-id": number, "parent-snapshot-id": parent, "summary": summary}


def iceberg(table: Path, name: str, snapshots: Sequence[object], **rest: object) -> None:
    write(table / "metadata" / name, json.dumps({"snapshots": snapshots, **rest}))


def test_newest_iceberg_snapshot_of_job_is_found_among_parents_of_current_snapshot(
    tmp_path: Path,
) -> None:
    snapshots = [
        flink_snapshot(1, None, "a", 9),
        flink_snapshot(2, 1, "a", 3),
        flink_snapshot(3, 2, "b", 5, None),
        {"snapshot-id": 4, "parent-snapshot-id": 3, "summary": {"flink.job-id": "a"}},
        flink_snapshot(5, 1, "a", 50),  # rolled back: not a parent of the current snapshot
    ]
    iceberg(tmp_path, "v2.metadata.json", snapshots, **{"current-snapshot-id": 4})
    iceberg(tmp_path, "v1.metadata.json", [flink_snapshot(1, None, "old", 1)])
    last = {"job a, operator o": 3, "job b, operator any": 5}
    assert look(tmp_path).last_numbers(WriterKind.FLINK_JOB) == last


def test_iceberg_branches_are_read(tmp_path: Path) -> None:
    snapshots = [flink_snapshot(1, None, "a", 1), flink_snapshot(2, 1, "a", 2)]
    refs = {
        "main": {"snapshot-id": 1, "type": "branch"},
        "audit": {"snapshot-id": 2, "type": "branch"},
        "tag": {"snapshot-id": 2, "type": "tag"},
    }
    name = f"00004-{uuid.uuid4()}.metadata.json"
    iceberg(tmp_path, name, snapshots, refs=refs, **{"current-snapshot-id": 1})
    assert look(tmp_path).last_numbers(WriterKind.FLINK_JOB) == {
        "job a, operator o": 1,
        "job a, operator o, branch audit": 2,
    }


def test_iceberg_metadata_files_with_same_number_are_both_read(tmp_path: Path) -> None:
    for last in (1, 2):
        name = f"00004-{uuid.uuid4()}.metadata.json"
        head = {"current-snapshot-id": 1}
        iceberg(tmp_path, name, [flink_snapshot(1, None, "a", last)], **head)
    assert look(tmp_path).last_numbers(WriterKind.FLINK_JOB) == {"job a, operator o": 2}


@pytest.mark.parametrize("name", ["v3.gz.metadata.json", "v3.metadata.json.gz"])
def test_compressed_iceberg_metadata_is_read_up_to_limit(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from migrate.sinks import iceberg as module

    snapshots = [flink_snapshot(1, None, "a", 7)]
    text = json.dumps({"snapshots": snapshots, "current-snapshot-id": 1}) + " " * 5000
    write(tmp_path / "metadata" / name, gzip.compress(text.encode()))
    assert look(tmp_path).last_numbers(WriterKind.FLINK_JOB) == {"job a, operator o": 7}
    monkeypatch.setattr(module, "LARGEST", 4000)
    with pytest.raises(UnreadableSink, match="larger than"):
        look(tmp_path)
    write(tmp_path / "metadata" / name, b"\x1f\x8b and no more")
    with pytest.raises(UnreadableSink, match="metadata/"):
        look(tmp_path)


def test_search_for_iceberg_snapshots_ends_despite_cycle(tmp_path: Path) -> None:
    snapshots = [flink_snapshot(1, 2, "a", 1), flink_snapshot(2, 1, "a", 2)]
    iceberg(tmp_path, "v1.metadata.json", snapshots, **{"current-snapshot-id": 1})
    assert look(tmp_path).last_numbers(WriterKind.FLINK_JOB) == {"job a, operator o": 1}


def test_completed_flink_job_is_remembered_permanently(tmp_path: Path) -> None:
    snapshots = [flink_snapshot(1, None, "a", 2**63 - 1)]
    iceberg(tmp_path, "v1.metadata.json", snapshots, **{"current-snapshot-id": 1})
    (warning,) = check_sink_of_a_job(tmp_path)
    assert f"up to {2**63 - 1} (permanently)" in warning


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"snapshots": [3]}',
        '{"refs": 3}',
        '{"refs": {"main": 3}}',
        '{"current-snapshot-id": 1, "snapshots": [{"snapshot-id": 1, "summary": 3}]}',
        '{"current-snapshot-id": 1, "snapshots": [{"snapshot-id": 1, "summary": '
        '{"flink.job-id": "a", "flink.max-committed-checkpoint-id": "x"}}]}',
        '{"current-snapshot-id": 1, "snapshots": [{"snapshot-id": 1, "summary": '
        '{"spark.sql.streaming.queryId": "a"}}]}',
        '{"snapshots": 3}',
        '{"snapshots": [{"snapshot-id": [1]}]}',
    ],
)
def test_damaged_iceberg_metadata_is_unreadable(tmp_path: Path, text: str) -> None:
    write(tmp_path / "metadata/v1.metadata.json", text)
    with pytest.raises(UnreadableSink, match="is not Iceberg table metadata"):
        look(tmp_path)


# -- Paimon ----------------------------------------------------------------------------------------


def test_newest_paimon_snapshot_of_each_user_is_used(tmp_path: Path) -> None:
    for number, user, identifier in ((9, "a", 1), (10, "a", 2), (11, "b", 2**63 - 1)):
        snapshot = {"commitUser": user, "commitIdentifier": identifier}
        write(tmp_path / f"snapshot/snapshot-{number}", json.dumps(snapshot))
    assert look(tmp_path).last_numbers(WriterKind.COMMIT_USER) == {"a": 2, "b": 2**63 - 1}
    assert check_sink_of_a_job(tmp_path) == ()


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"commitUser": "a"}'])
def test_damaged_paimon_snapshot_is_unreadable(tmp_path: Path, text: str) -> None:
    write(tmp_path / "snapshot/snapshot-1", text)
    with pytest.raises(UnreadableSink, match="is not a Paimon snapshot"):
        look(tmp_path)
