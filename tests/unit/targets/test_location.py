"""Write seeds to local directories, mounts, and object stores, also with failures.

`tests/integration/test_spark_seed.py` shows Spark's behavior for each state of a directory.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from decoder.storage import join
from migrate.model.errors import Refused, UsageError
from migrate.moves.sink import check_apart
from migrate.storage import files as storage
from migrate.storage import uris
from migrate.targets.location import LocalDirectory, Location, RemoteDirectory, location
from migrate.targets.seed import (
    UNFINISHED,
    check_free,
    is_unfinished,
    remove_seed,
    write_seed,
)
from migrate.targets.source_options import SourceStart
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate

SOURCES = [SourceStart(0, {("a", 0): 1}), SourceStart(2, {("b", 0): 2})]
FILES = {"sources/0/0": b'\0v1\n{"a":{"0":1}}', "sources/2/0": b'\0v1\n{"b":{"0":2}}'}


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory in fsspec's memory, which is used like an object store."""
    monkeypatch.setitem(storage._STORES, "memory", storage._Store("memory", "none"))
    yield f"memory://bucket-{uuid.uuid4().hex}/query/checkpoint"
    MemoryFileSystem.store.clear()


def test_seed_with_files_of_unplanned_batch_is_removed(memory: str, tmp_path: Path) -> None:
    """Spark creates its log directories before it plans a batch. A crash can leave them."""
    for place in (location(str(tmp_path / "local")), location(memory)):
        write_seed(SOURCES, place)
        for name in ("offsets/.0.8a1c.tmp", "commits/.0.8a1c.tmp", "sources/0/.0.crc"):
            place.write(name, b"")
        remove_seed(place)
        assert place.names() == set()
        write_seed(SOURCES, place)
        place.write("offsets/0", b"v1")
        with pytest.raises(Refused, match="a query has already started"):
            remove_seed(place)
        assert place.names("sources") == {"0", "2"}


def test_object_store_directory_is_listed_in_order(memory: str) -> None:
    """s3fs sorts its listings. Other libraries use the order of their store."""
    place = location(memory)
    for name in ("b", "c", "a"):
        place.write(name, b"")
    assert storage.Files().list_directory(memory) == ["a", "b", "c"]


def test_byte_range_of_stored_file_is_read(memory: str) -> None:
    location(memory).write("file", b"abc")
    path = f"{memory}/file"
    found = [storage.Files().read_range(path, start, size) for start in (1, 3) for size in range(4)]
    assert found == [b"", b"b", b"bc", b"bc", b"", b"", b"", b""]


@pytest.fixture(params=["mount", "memory"])
def in_place(request: pytest.FixtureRequest, tmp_path: Path, memory: str) -> Location:
    """A location in which files cannot be renamed."""
    if request.param == "mount":
        return LocalDirectory("mount", tmp_path / "checkpoint", mounted=True)
    return location(memory)


def read(place: Location, path: str) -> bytes:
    root, files = place.to_read
    return files.read(join(root, path))


def content(place: Location) -> dict[str, bytes]:
    """Return the content of the existing files of a seed."""
    found = {}
    for path in ("metadata", *FILES):
        try:
            found[path] = read(place, path)
        except FileNotFoundError:
            continue
    return found


def is_whole(files: dict[str, bytes]) -> bool:
    metadata = json.loads(files.pop("metadata"))
    uuid.UUID(metadata.pop("id"))
    return metadata == {} and files == FILES


def test_seed_written_without_rename_is_complete(in_place: Location) -> None:
    write_seed(SOURCES, in_place)
    assert in_place.names() == {"metadata", "sources"}
    assert is_whole(content(in_place))


def test_each_seed_has_its_own_query_id(tmp_path: Path, memory: str) -> None:
    """A Delta table skips a batch if it has already seen the batch number with the same ID."""
    places = [location(str(tmp_path / "a")), location(str(tmp_path / "b")), location(memory)]
    for place in places:
        write_seed(SOURCES, place)
    assert len({read(place, "metadata") for place in places}) == len(places)


class Watched:
    """A location whose nth change fails, before or after it takes effect. Records each state."""

    def __init__(self, place: Location, fails: int, late: bool) -> None:
        self._place, self._left, self._late = place, fails, late
        self.states: list[dict[str, bytes]] = []
        self.name, self.for_spark = place.name, place.for_spark
        self.names, self.to_read = place.names, place.to_read

    def _change(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise OSError("the store is gone")

    def write(self, path: str, content_: bytes) -> None:
        if not self._late:
            self._change()
        self._place.write(path, content_)
        self.states.append(content(self._place))
        if self._late:
            self._change()

    def remove(self, path: str) -> None:
        self._place.remove(path)
        self.states.append(content(self._place))


@pytest.mark.parametrize("late", [False, True], ids=["not made", "made"])
@pytest.mark.parametrize("fails", [0, 1, 2, 3, 4, 5])
def test_spark_can_never_start_from_incomplete_seed(
    in_place: Location, fails: int, late: bool
) -> None:
    watched = Watched(in_place, fails, late)
    target = cast(Location, watched)
    if 1 <= fails <= 4:
        with pytest.raises(OSError, match="the store is gone"):
            write_seed(SOURCES, target)
        left = content(in_place)
        assert left in ({}, {"metadata": UNFINISHED})
    else:
        write_seed(SOURCES, target)
    for state in watched.states:
        assert state == {} or state["metadata"] == UNFINISHED or is_whole(dict(state))


class _Interrupted(Watched):
    """A location whose nth write is interrupted, and is completed later by the client."""

    def write(self, path: str, content_: bytes) -> None:
        try:
            super().write(path, content_)
        except OSError:
            self.late = path, content_
            raise KeyboardInterrupt from None

    def complete(self) -> None:
        self._place.write(*self.late)


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_seed_with_interrupted_write_is_reported_by_next_run(
    in_place: Location, caplog: pytest.LogCaptureFixture, writes: int
) -> None:
    """Regression: A location with an unfinished ``metadata`` was treated as a query.

    fsspec's event loop completes a request whose caller was interrupted.
    """
    interrupted = _Interrupted(in_place, writes, late=False)
    with pytest.raises(KeyboardInterrupt):
        write_seed(SOURCES, cast(Location, interrupted))
    (warning,) = caplog.messages
    assert f"{in_place.name} may be unfinished" in warning
    interrupted.complete()
    if writes == 1:
        assert content(in_place) == {"metadata": UNFINISHED}
        with pytest.raises(Refused) as refused:
            write_seed(SOURCES, in_place)
        assert refused.value.codes == ["location-unfinished"]


@pytest.mark.parametrize("name", ["metadata", "offsets/0", "commits/0", "sources/0/0", "anything"])
def test_location_with_files_is_not_overwritten(in_place: Location, name: str) -> None:
    in_place.write(name, b"theirs")
    with pytest.raises(Refused) as refused:
        write_seed(SOURCES, in_place)
    code = "location-in-use" if name != "anything" else "location-not-empty"
    assert refused.value.codes == [code]
    assert read(in_place, name) == b"theirs"
    assert in_place.names() == {name.split("/")[0]}


def test_seed_with_failed_rename_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Path, target: Path) -> Path:
        raise OSError("the disk is gone")

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="the disk is gone"):
        write_seed(SOURCES, location(str(tmp_path / "seed")))
    assert list(tmp_path.iterdir()) == []


def test_write_of_seed_leaves_directory_unchanged_if_another_client_has_filled_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def late(self: Path, target: Path) -> Path:
        target.mkdir()
        (target / "theirs").write_text("")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    with pytest.raises(Refused) as refused:
        write_seed(SOURCES, location(str(tmp_path / "seed")))
    assert refused.value.codes == ["location-not-empty"]
    assert [path.name for path in tmp_path.iterdir()] == ["seed"]
    assert [path.name for path in (tmp_path / "seed").iterdir()] == ["theirs"]


def test_location_next_to_parquet_metadata_is_accepted(tmp_path: Path) -> None:
    """Parquet also writes files called ``_metadata``."""
    lake, chk = tmp_path / "lake", tmp_path / "chk-7"
    lake.mkdir()
    (lake / "_metadata").write_bytes(b"PAR1 and more")
    with pytest.raises(Refused) as refused:
        check_free(location(str(lake)))
    assert refused.value.codes == ["location-not-empty"]
    check_free(location(str(lake / "_checkpoint")))
    write_source(chk, {0: splits("t", [1])})
    with pytest.raises(Refused) as refused:
        check_free(location(str(chk / "query")))
    assert refused.value.codes == ["location-inside-checkpoint"]


@pytest.mark.parametrize("below", ["query", "state/0/query"])
def test_directory_inside_location_of_query_is_refused(
    tmp_path: Path, memory: str, below: str
) -> None:
    for root in (str(tmp_path / "ck"), memory):
        for name in ("metadata", "offsets/0"):
            location(root).write(name, b"v1")
        with pytest.raises(Refused) as refused:
            check_free(location(f"{root}/{below}"))
        assert refused.value.codes == ["location-inside-query"]


@pytest.mark.parametrize("log", ["_spark_metadata/0", "_delta_log/0.json", ".hoodie/x"])
def test_directory_inside_output_is_refused_unless_its_name_is_hidden(
    tmp_path: Path, memory: str, log: str
) -> None:
    """A VACUUM of a Delta table deletes unknown files, and readers of a directory list them."""
    for root in (str(tmp_path / "out"), memory):
        location(root).write(log, b"v1")
        for below in ("sub", "a/b/sub"):
            with pytest.raises(Refused) as refused:
                check_free(location(f"{root}/{below}"))
            assert refused.value.codes == ["location-inside-table"]
        check_free(location(f"{root}/_checkpoints/query"))


def test_location_below_folders_with_common_names_is_accepted(tmp_path: Path, memory: str) -> None:
    """Only the ``metadata`` file of a query shows that a parent is a checkpoint location."""
    for root in (str(tmp_path / "lake"), memory):
        for name in ("metadata/v1.json", "sources/0"):
            location(root).write(name, b"v1")
        check_free(location(f"{root}/query"))


def test_file_is_refused_as_location(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused) as refused:
        check_free(location(str(tmp_path / "file")))
    assert refused.value.codes == ["location-not-a-directory"]


def test_to_spark_writes_seed_to_object_store(tmp_path: Path, memory: str) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("a", [1])})
    result = migrate("to-spark", chk, "--checkpoint-dir", memory, "--format", "options")
    assert result.code == 0, result.stderr
    assert result.stdout.splitlines()[-1] == f"checkpointLocation={memory}"
    assert read(location(memory), "sources/0/0") == FILES["sources/0/0"]
    assert migrate("to-spark", chk, "--checkpoint-dir", memory).code == 4


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("dbfs:/query/checkpoint", "dbfs/query/checkpoint"),
        ("dbfs:///query/checkpoint", "dbfs/query/checkpoint"),
        ("dbfs:/Volumes/main/default/v/checkpoint", "Volumes/main/default/v/checkpoint"),
        ("/Volumes/main/default/v/checkpoint", "Volumes/main/default/v/checkpoint"),
        ("/dbfs/query/checkpoint", "dbfs/query/checkpoint"),
    ],
)
def test_dbfs_and_volumes_are_written_through_their_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, path: str
) -> None:
    for name in ("dbfs", "Volumes"):
        monkeypatch.setattr(uris, name.upper(), tmp_path / name)
    text = re.sub("/(dbfs|Volumes)/", rf"{tmp_path}/\1/", text)
    with pytest.raises(UsageError, match="on this machine"):
        location(text)
    (tmp_path / "dbfs").mkdir()
    (tmp_path / "Volumes").mkdir()
    place = location(text)
    assert place == LocalDirectory(text, tmp_path / path, mounted=True)
    assert place.for_spark == text


def test_file_uri_is_treated_as_local_directory(tmp_path: Path) -> None:
    place = location(f"file://{tmp_path}/checkpoint")
    assert isinstance(place, LocalDirectory)
    assert (place.path, place.mounted) == (tmp_path / "checkpoint", False)


@pytest.mark.parametrize("option", ["--checkpoint-dir", "--sink"])
@pytest.mark.parametrize("text", ["", "a\nfailOnDataLoss=false", "\x1b[2J"])
def test_empty_or_unprintable_location_is_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, text: str
) -> None:
    """An empty name, from an unset variable, would be the current directory."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    chk = write_source(tmp_path / "chk-7", {0: splits("a", [1])})
    result = migrate("to-spark", chk, option, text)
    assert (result.code, result.stdout) == (2, "")
    assert option in result.stderr
    assert "\x1b" not in result.stderr
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("text", ["nosuch://bucket/path", "file://elsewhere/path", "hdfs:/query"])
def test_unsupported_location_is_usage_error(tmp_path: Path, text: str) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("a", [1])})
    result = migrate("to-spark", chk, "--checkpoint-dir", text)
    assert (result.code, result.stdout) == (2, "")
    assert text in result.stderr


def test_s3a_url_is_read_as_s3_and_kept_for_spark() -> None:
    place = location("s3a://bucket/query/checkpoint")
    assert isinstance(place, RemoteDirectory)
    assert place.url == "s3://bucket/query/checkpoint"
    assert place.for_spark == "s3a://bucket/query/checkpoint"


def test_unfinished_seed_is_recognized_and_removed(in_place: Location) -> None:
    assert not is_unfinished(in_place)
    in_place.write("metadata", UNFINISHED)
    assert is_unfinished(in_place)
    in_place.write("sources/0/0", FILES["sources/0/0"])
    assert is_unfinished(in_place)
    remove_seed(in_place)
    assert in_place.names() == set()
    write_seed(SOURCES, in_place)
    assert not is_unfinished(in_place)


@pytest.mark.parametrize("name", ["offsets/0", "commits/0", "state/0/0/1.delta", "theirs"])
def test_seed_used_by_query_is_not_removed(in_place: Location, name: str) -> None:
    write_seed(SOURCES, in_place)
    in_place.write(name, b"theirs")
    with pytest.raises(Refused, match="contains more than start offsets"):
        remove_seed(in_place)
    assert is_whole(content(in_place)) and read(in_place, name) == b"theirs"
    assert not is_unfinished(in_place)


def test_listing_of_object_store_distinguishes_files_and_directories(memory: str) -> None:
    files = storage.Files()
    files.write(f"{memory}/a", b"abc")
    files.write(f"{memory}/b/c", b"")
    listed = files.entries(memory)
    assert listed is not None
    assert sorted(listed, key=lambda one: one.name) == [
        storage.DirectoryEntry("a", False, 3),
        storage.DirectoryEntry("b", True, 0),
    ]


def test_location_is_refused_if_link_leads_into_sink(tmp_path: Path) -> None:
    """Regression: ``_link/query`` was treated like the directory ``SINK/_checkpoints``."""
    sink = tmp_path / "sink"
    sink.mkdir()
    (tmp_path / "_link").symlink_to(sink, target_is_directory=True)
    with pytest.raises(Refused, match="are the same directory, or one contains the other"):
        check_apart(location(str(tmp_path / "_link" / "query")), sink)
    check_apart(location(str(tmp_path / "_link" / "_checkpoints" / "query")), sink)
