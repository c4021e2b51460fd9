"""Run the commands with checkpoints on real S3, Google, Azure, and HDFS servers on loopback."""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from migrate.storage.files import Files
from tests.support import stores
from tests.support.checkpoints import (
    SourceState,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import migrate, running
from tests.support.encoder import RelativeFileHandle
from tests.support.kafka import Broker
from tests.support.state_files import (
    write_big_checkpoint,
    write_in_files,
    write_savepoint_with_files,
    write_with_handle,
)
from tests.support.stores import S3, Store

pytestmark = pytest.mark.integration

_GOLDEN = Path(__file__).parents[1] / "golden"
# State in files next to _metadata, in shared files, in segments of merged files, and inline.
_JOBS = ["1.20/file-merging", "1.20/rocksdb-incremental", "2.2/retained-files"]
_SAVEPOINT = "2.2/stop"


def _need(what: str, *packages: str) -> None:
    """Skip the test without these packages, but do not import them.

    When gcsfs is imported, it reads the environment, which the test sets later.
    """
    if any(find_spec(package) is None for package in packages):
        pytest.skip(f"needs {what}")


@pytest.fixture(scope="module")
def gs() -> Iterator[Store]:
    _need("the extra gs, and gcp-storage-emulator", "gcsfs", "gcp_storage_emulator")
    with stores.gs() as running:
        yield running


@pytest.fixture(scope="module")
def abfs() -> Iterator[Store]:
    _need("the extra abfs", "adlfs")
    if stores.azurite() is None:
        pytest.skip("needs npm, to install Azurite")
    with stores.abfs() as running:
        yield running


@pytest.fixture(scope="module")
def webhdfs() -> Iterator[Store]:
    _need("the extra hdfs", "fsspec", "requests")
    with stores.webhdfs() as running:
        yield running


@pytest.fixture
def store(request: pytest.FixtureRequest, kind: str) -> Store:
    running = request.getfixturevalue(kind)
    return running.store if isinstance(running, S3) else running


@pytest.fixture(params=["s3", "gs", "abfs", "webhdfs"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def _only(directory: Path, pattern: str) -> Path:
    (found,) = directory.glob(pattern)
    return found


def _told(pointer: str | Path) -> object:
    """Return the report of ``inspect`` on a checkpoint, without the checkpoint's location."""
    result = migrate("inspect", pointer, "--format", "json")
    assert (result.code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    told["checkpoint"].pop("pointer")
    return told


# -- every store -----------------------------------------------------------------------------------


def test_checkpoint_in_object_store_matches_local_checkpoint(store: Store, tmp_path: Path) -> None:
    for name in _JOBS:
        # The URIs in the checkpoint contain a different directory than the copy's directory.
        job = _only(_GOLDEN / name, "?" * 32)
        chk = _only(job, "chk-*")
        url = store.put(job, f"moved/{job.name}")
        assert _told(url) == _told(chk), name
    savepoint = _only(_GOLDEN / _SAVEPOINT, "savepoint-*")
    url = store.put(savepoint, savepoint.name)
    assert _told(f"{url}/_metadata") == _told(savepoint)


def test_every_command_accepts_object_store_url(store: Store, tmp_path: Path) -> None:
    job = _only(_GOLDEN / "1.20/retained-files", "?" * 32)
    chk = _only(job, "chk-*")
    url = f"{store.put(job, 'commands')}/{chk.name}"
    written = migrate("to-spark", url, "--checkpoint-dir", tmp_path / "query")
    assert written.code == 0
    assert written.stdout == migrate("to-spark", chk).stdout
    assert "checkpoint 4: " + url in written.stderr
    compared = migrate("diff", url, chk, "--exit-code")
    assert compared.code == 0
    listed = migrate("inspect", f"{store.root}/commands", "--list", "--format", "json")
    assert json.loads(listed.stdout) == [{"id": 4, "pointer": url}]
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", url, "--plan-out", plan).code == 0
    assert migrate("to-spark", "--plan", plan).stdout == written.stdout


@pytest.mark.parametrize("job", ["1.20/files", "1.20/rocksdb", "1.20/file-merging"])
def test_keyed_state_in_object_store_matches_local_state(store: Store, job: str) -> None:
    """The state is in files next to _metadata, in shared files of RocksDB, or in merged files."""
    here = _GOLDEN / "state" / job / "retained"
    url = store.put(here, f"keyed/{job}")
    (newest,) = (path.parent for path in here.rglob("_metadata"))
    named = f"{url}/{newest.relative_to(here)}" if newest != here else url
    for arguments in ([], ["--state", "lasting-list"]):
        local = migrate("state", newest, "--format", "json", *arguments)
        stored = migrate("state", named, "--format", "json", *arguments)
        assert (stored.code, stored.stdout, stored.stderr) == (0, local.stdout, "")
        assert local.stdout


def test_group_is_moved_and_verified_from_checkpoint_in_object_store(
    s3: S3, broker: Broker, tmp_path: Path
) -> None:
    topic, group = (f"url-{uuid.uuid4().hex[:8]}" for _ in range(2))
    broker.create_topic(topic, 2)
    for partition in range(2):
        broker.produce(topic, partition, map(str, range(10)))
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [3, 4])})
    url = s3.store.put(chk, f"{topic}/chk-7")
    servers = ("-b", broker.bootstrap_servers)
    unmoved = migrate("verify", url, f"group:{group}", *servers)
    assert unmoved.code == 5, unmoved.stderr
    command = ("commit-group", url, "--group", group, *servers, "--execute", "--yes")
    moved = migrate(*command, "--rollback-file", tmp_path / "back.json")
    assert moved.code == 0, moved.stderr
    assert broker.committed(group) == {(topic, 0): 3, (topic, 1): 4}
    verified = migrate("verify", url, f"group:{group}", *servers)
    assert verified.code == 0, verified.stdout


def test_newer_checkpoint_in_object_store_is_found_with_its_write_time(
    store: Store, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    golden = _only(_GOLDEN / "2.2/retained-files", "?" * 32)
    chk = _only(golden, "chk-*")
    shutil.copytree(golden, job)
    shutil.copytree(chk, job / "chk-100")
    (job / "chk-200").mkdir()
    (job / "chk-200" / "part").write_bytes(b"part of an incomplete checkpoint")
    url = store.put(job, "newer")
    result = migrate("to-spark", f"{url}/{chk.name}")
    assert result.code == 4
    assert "chk-100" in result.stderr or "100" in result.stderr
    listed = migrate("inspect", url, "--list")
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()] == [
        chk.name.removeprefix("chk-"),
        "100",
    ]
    from decoder import read_checkpoint
    from migrate.storage.files import Files

    checkpoint = read_checkpoint(url, Files())
    assert checkpoint.pointer == f"{url}/chk-100"
    assert checkpoint.written_at is not None
    # The object was written a moment ago, and the store has the same clock.
    assert abs(checkpoint.written_at / 1000 - (job / "chk-100").stat().st_ctime) < 600


def test_missing_checkpoint_in_object_store_exits_with_3(store: Store) -> None:
    for url in (f"{store.root}/no/such/chk-1", f"{store.root}/no/such/chk-1/_metadata"):
        result = migrate("inspect", url)
        assert (result.code, result.stdout) == (3, "")
        assert "no such file or directory" in result.stderr
    assert migrate("inspect", f"{store.root}/no/such", "--list").code == 3


def test_missing_or_truncated_state_file_exits_with_3(store: Store, tmp_path: Path) -> None:
    chk = write_in_files(tmp_path / "chk-7", subtasks=3)
    (chk / "state-1").unlink()
    (chk / "state-2").write_bytes(b"")
    url = store.put(chk, "damaged/chk-7")
    missing = migrate("inspect", url)
    assert missing.code == 3
    assert f"subtask 1 operator state is missing; tried '{url}/state-1'" in missing.stderr
    store.system.pipe_file(f"{url}/state-1", (chk / "state-0").read_bytes())
    cut = migrate("inspect", url)
    assert cut.code == 3
    assert f"{url}/state-2: damaged: the file of" in cut.stderr and "0 found" in cut.stderr


def test_files_outside_checkpoint_require_option_allow_external_files(
    store: Store, tmp_path: Path
) -> None:
    chk = write_with_handle(
        lambda size: RelativeFileHandle("../../outside/state", size), tmp_path / "job" / "chk-7"
    )
    store.put(tmp_path / "outside", "outside")
    url = store.put(chk, "job/chk-7")
    refused = migrate("inspect", url)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"'{store.root}/outside/state'; it is outside of the checkpoint" in refused.stderr
    assert "--allow-external-files" in refused.stderr
    assert migrate("inspect", url, "--allow-external-files").code == 0


# -- S3 --------------------------------------------------------------------------------------------


def test_inspect_fetches_only_required_bytes(s3: S3, tmp_path: Path) -> None:
    """`inspect` fetches only the reader state from a source operator's large file."""
    chk = write_big_checkpoint(tmp_path / "savepoint", 3_000_000)
    url = s3.store.put(chk, "big")
    s3.clear_log()
    assert migrate("inspect", url).code == 0
    asked = s3.requests()
    gets = [line for line in asked if line["method"] == "GET" and line["path"].endswith("/state")]
    assert [line["status"] for line in gets] == [206, 206]
    assert sum(line["bytes"] for line in gets) < 200
    metadata = (chk / "_metadata").stat().st_size
    assert sum(line["bytes"] for line in asked) < metadata + 10_000
    assert len(asked) <= 12


def test_large_object_store_directory_is_listed_completely(s3: S3, tmp_path: Path) -> None:
    numbers = range(1, 6)
    keys = {f"checkpoints/many/a-{number}": b"" for number in range(1001)}
    for number in numbers:
        chk = write_in_files(tmp_path / f"chk-{number}", checkpoint_id=number)
        for file in chk.iterdir():
            keys[f"checkpoints/many/{chk.name}/{file.name}"] = file.read_bytes()
    s3.store.system.pipe(keys)
    s3.store.system.pipe_file("checkpoints/many/chk-6/state-0", b"part of an incomplete checkpoint")
    listed = migrate("inspect", "s3://checkpoints/many", "--list")
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()] == list(map(str, numbers))
    s3.clear_log()
    shown = migrate("inspect", "s3a://checkpoints/many", "--format", "json")
    assert json.loads(shown.stdout)["checkpoint"]["pointer"] == "s3://checkpoints/many/chk-5"
    # For older checkpoints, only the modification times are requested.
    earlier = [line for line in s3.requests() if re.search("chk-[1-4]/", line["path"])]
    assert {line["method"] for line in earlier} == {"HEAD"}
    assert len(earlier) <= 8


def test_newest_run_is_found_by_modification_times_in_object_store(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older run wrote checkpoints 8 and 9, and the newer run wrote 3 and 4."""
    monkeypatch.setattr("decoder.checkpoint_order.MIN_GAP_MS", 500)
    for number in (8, 9, 3, 4):
        source = source_operator(SourceState({0: splits("t", [number])}))
        chk = write_checkpoint(tmp_path / f"chk-{number}", source, checkpoint_id=number)
        s3.store.put(chk, f"renumbered/chk-{number}")
        time.sleep(1.1)  # S3 reports whole seconds
    s3.clear_log()
    refused = migrate("to-spark", "s3://checkpoints/renumbered")
    assert refused.code == 4
    assert "chk-4 in the same directory was written after this chk-9" in refused.stderr
    moved = migrate("to-spark", "s3://checkpoints/renumbered/chk-4")
    assert (moved.code, moved.stdout) == (0, '{"t":{"0":4}}\n')


def test_missing_bucket_exits_with_3(s3: S3) -> None:
    assert migrate("inspect", "s3://no-such-bucket/chk-1").code == 3


def test_denied_access_exits_with_6_and_prints_no_secret(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    savepoint = _only(_GOLDEN / "2.2/native-savepoint", "savepoint-*")
    url = s3.store.put(savepoint, "denied")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    s3.deny_everybody()
    try:
        for arguments in (("inspect", url), ("inspect", url, "--list"), ("to-spark", url)):
            result = migrate(*arguments)
            assert (result.code, result.stdout) == (6, "")
            assert "access denied" in result.stderr and url in result.stderr
            assert "wJalrXUtnFEMI" not in result.stderr
    finally:
        s3.admit_everybody()
    assert migrate("inspect", url).code == 0


def test_missing_credentials_and_unreachable_store_exit_with_6(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    unreachable = migrate("inspect", "s3://checkpoints/chk-1")
    assert unreachable.code == 6
    assert "127.0.0.1:9" in unreachable.stderr
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    nobody = migrate("inspect", "s3://checkpoints/chk-1")
    assert nobody.code == 6
    assert "credentials" in nobody.stderr


# -- HDFS ------------------------------------------------------------------------------------------


def test_access_denied_by_hdfs_exits_with_6(webhdfs: Store) -> None:
    savepoint = _only(_GOLDEN / "2.2/native-savepoint", "savepoint-*")
    url = webhdfs.put(savepoint, "private")
    path = urlsplit(url).path
    webhdfs.system.chmod(path, "700")
    host = urlsplit(url).netloc.rpartition("@")[2]
    denied = migrate("inspect", f"webhdfs://bob@{host}{path}")
    assert (denied.code, denied.stdout) == (6, "")
    assert "access denied" in denied.stderr


def test_unreachable_name_node_exits_with_6() -> None:
    _need("the extra hdfs", "fsspec", "requests")
    result = migrate("inspect", "webhdfs://127.0.0.1:9/flink/chk-1")
    assert (result.code, result.stdout) == (6, "")


# -- seeds for Spark -------------------------------------------------------------------------------


def test_seed_is_written_to_object_store(s3: S3, tmp_path: Path) -> None:
    store = s3.store
    chk = write_source(tmp_path / "chk-7", {0: splits("orders", [3, 4])})
    assert migrate("to-spark", chk, "--checkpoint-dir", tmp_path / "seed").code == 0
    seed = f"{store.root}/query/checkpoint"
    result = migrate("to-spark", chk, "--checkpoint-dir", seed)
    assert result.code == 0, result.stderr
    metadata = store.system.cat_file(f"{seed}/metadata")
    assert list(json.loads(metadata)) == ["id"]
    offsets = store.system.cat_file(f"{seed}/sources/0/0")
    assert offsets == (tmp_path / "seed/sources/0/0").read_bytes()

    again = migrate("to-spark", chk, "--checkpoint-dir", seed)
    assert (again.code, again.stdout) == (4, "")
    assert "already the checkpoint location of a query" in again.stderr
    store.system.invalidate_cache()
    assert store.system.cat_file(f"{seed}/metadata") == metadata


def test_directory_marker_object_is_not_listed_as_file(s3: S3, tmp_path: Path) -> None:
    """Consoles and Hadoop create a directory as an empty object with a trailing slash."""
    store = s3.store
    chk = write_source(tmp_path / "chk-7", {0: splits("orders", [3, 4])})
    for directory in ("marked/query", "marked/job"):
        store.system.pipe_file(f"checkpoints/{directory}/", b"")
    written = migrate("to-spark", chk, "--checkpoint-dir", f"{store.root}/marked/query")
    assert written.code == 0, written.stderr
    nothing = migrate("inspect", f"{store.root}/marked/job", "--list")
    assert (nothing.code, nothing.stdout) == (3, "")
    store.put(chk, "marked/job/chk-7")
    listed = migrate("inspect", f"{store.root}/marked/job", "--list")
    assert listed.stdout == f"7\t{store.root}/marked/job/chk-7\n"


def test_directory_marker_is_not_reported_as_damaged_checkpoint(s3: S3, tmp_path: Path) -> None:
    """Tools mark a directory with an empty object, with or without a trailing slash."""
    name = f"job-{uuid.uuid4().hex[:8]}"
    (tmp_path / "chk-7").write_bytes(b"")
    url = s3.store.put(tmp_path, name)
    for marker in ("chk-8/", "chk-9_$folder$"):
        s3.store.system.pipe_file(f"{url}/{marker}", b"")
    for pointer in (f"{url}/chk-7", f"{url}/chk-9_$folder$"):
        result = migrate("inspect", pointer)
        assert result.code == 3
        assert (
            "the file or object is empty (some tools create such objects for directories)"
        ) in result.stderr
    for pointer in (f"{url}/chk-8", f"{url}/chk-8/", url):
        result = migrate("inspect", pointer)
        assert result.code == 3
        assert "not a complete checkpoint; neither" in result.stderr, result.stderr


def test_object_above_size_limit_is_refused(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{s3.store.root}/large/object"
    s3.store.system.pipe_file(url, b"12345")
    s3.store.system.pipe_file(f"{url}-empty", b"")
    monkeypatch.setattr("migrate.storage.files.MAX_FILE_BYTES", 5)
    assert Files().read(url) == b"12345"
    assert Files().read(f"{url}-empty") == b""
    monkeypatch.setattr("migrate.storage.files.MAX_FILE_BYTES", 4)
    with pytest.raises(OSError, match="larger than 4 bytes"):
        Files().read(url)


def test_sink_in_object_store_is_checked(s3: S3, tmp_path: Path) -> None:
    """Spark would silently skip the batches that the sink already contains."""
    chk = write_source(tmp_path / "chk-7", {0: splits("orders", [3, 4])})
    sink = tmp_path / "sink/_spark_metadata"
    sink.mkdir(parents=True)
    (sink / "3").write_text("v1\n")
    url = s3.store.put(sink.parent, "sink")
    result = migrate("to-spark", chk, "--sink", url)
    assert (result.code, result.stdout) == (4, "")
    assert "would silently skip batches 0 to 3" in result.stderr


def test_missing_bucket_is_not_created_for_seed(s3: S3, tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("orders", [3, 4])})
    result = migrate("to-spark", chk, "--checkpoint-dir", "s3a://no-such-bucket/checkpoint")
    assert (result.code, result.stdout) == (6, "")
    assert "bucket does not exist" in result.stderr
    assert "no-such-bucket" not in s3.store.system.ls("")


# -- savepoints for Flink --------------------------------------------------------------------------


def _files(store: Store, url: str) -> dict[str, bytes]:
    """Return the contents of the files under a URL by name."""
    names = Files().list_directory(url) or []
    return {name: store.system.cat_file(f"{url}/{name}") for name in names}


def test_savepoint_is_written_to_object_store(store: Store, tmp_path: Path) -> None:
    """The stored savepoint has the same files as a local one. The original is unchanged."""
    old = store.put(write_in_files(tmp_path / "chk-7", subtasks=2), "to-flink/chk-7")
    side = tmp_path / "side.json"
    side.write_text('{"orders":{"0":90,"1":105}}')
    before = _files(store, old)
    here, there = tmp_path / "new", f"{store.root}/to-flink/new"
    for out in (here, there):
        written = migrate("to-flink", old, "--from", f"json:{side}", "--out", out)
        assert (written.code, written.stdout) == (0, f"{out}\n"), written.stderr
    assert _files(store, there) == {file.name: file.read_bytes() for file in here.iterdir()}
    assert _files(store, old) == before
    told = json.loads(migrate("inspect", there, "--format", "json").stdout)
    assert [one["next_offset"] for one in told["sources"][0]["positions"]] == [90, 105]

    again = migrate("to-flink", old, "--from", f"json:{side}", "--out", there)
    assert (again.code, again.stdout) == (4, "")
    assert f"{there} is not empty; choose a new directory" in again.stderr
    inside = migrate("to-flink", old, "--from", f"json:{side}", "--out", f"{old}/new")
    assert (inside.code, inside.stdout) == (4, "")
    assert "is inside the original savepoint" in inside.stderr
    assert _files(store, old) == before


def test_failed_write_of_savepoint_leaves_no_objects_in_store(store: Store, tmp_path: Path) -> None:
    chk = write_savepoint_with_files(tmp_path / "chk-7", {"first": 1000, "second": 1000})
    (chk / "second").write_bytes(b"less")
    side, out = tmp_path / "side.json", f"{store.root}/ends-early/new"
    side.write_text('{"t":{"0":4}}')
    command = ("to-flink", chk, "--from", f"json:{side}", "--out", out)
    result = migrate(*command, "--allow-state-mismatch")
    assert (result.code, result.stdout) == (3, "")
    assert "1000 bytes were expected from byte 0, but only 4 exist" in result.stderr
    assert not Files().list_directory(out)


@pytest.mark.parametrize("large", [False, True], ids=["small files", "a large file"])
def test_killed_process_leaves_no_valid_savepoint_in_object_store(
    s3: S3, tmp_path: Path, large: bool
) -> None:
    """`migrate` writes ``_metadata`` last. Without this file, the savepoint is incomplete."""
    sizes = {"state": 8 << 30} if large else {f"state-{n}": 1000 for n in range(5000)}
    chk = write_savepoint_with_files(tmp_path / "chk-7", sizes)
    side, out = tmp_path / "side.json", f"{s3.store.root}/killed-{large}/new"
    side.write_text('{"t":{"0":4}}')
    s3.clear_log()
    command = ("to-flink", chk, "--from", f"json:{side}", "--out", out)
    with running(*command, "--allow-state-mismatch") as process:
        deadline = time.monotonic() + 60
        while not any(line["method"] in ("POST", "PUT") for line in s3.requests()):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    assert "_metadata" not in (Files().list_directory(out) or [])
    assert migrate("inspect", out).code == 3


def test_missing_bucket_is_not_created_for_savepoint(s3: S3, tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("orders", [3, 4])})
    side = tmp_path / "side.json"
    side.write_text('{"orders":{"0":3,"1":4}}')
    out = "s3a://no-such-bucket/new"
    result = migrate("to-flink", chk, "--from", f"json:{side}", "--out", out)
    assert (result.code, result.stdout) == (6, "")
    assert "bucket does not exist" in result.stderr
    assert "no-such-bucket" not in s3.store.system.ls("")
