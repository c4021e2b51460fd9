"""Read checkpoints in any storage: opened files, requests, and refusals.

`tests/integration/test_storage.py` uses real object stores.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from decoder import DecodeError, ErrorKind, KafkaSource, list_checkpoints, read_checkpoint
from decoder.checkpoint import _has_entropy
from decoder.metadata.model import FileState, RelativeFileState
from decoder.state_files import StateFiles
from decoder.storage import LocalFiles, StorageUnavailable, normalise_path
from migrate.inputs.flink import extract as flink_extract
from migrate.storage.files import Files, is_same_place
from tests.support.checkpoints import OPERATOR_ID, write_checkpoint
from tests.support.command import migrate
from tests.support.encoder import (
    READER_STATE,
    FileHandle,
    ListState,
    PartitionableHandle,
    RelativeFileHandle,
    SegmentHandle,
    StreamHandle,
    encode_operator_state_stream,
    encode_reader_element,
    encode_split,
)
from tests.support.golden import GOLDEN
from tests.support.memory_files import MemoryFiles
from tests.support.state_files import (
    SPLIT_DISTRIBUTE,
    source_operator,
    split_stream,
    write_big_checkpoint,
    write_in_files,
    write_with_handle,
)

_JOB = "0123456789abcdef0123456789abcdef"


def _positions(checkpoint: Path | str, source: LocalFiles | None = None) -> dict[int, int]:
    (found,) = read_checkpoint(checkpoint, source).sources.values()
    assert isinstance(found, KafkaSource)
    return {
        held.split.partition: held.split.starting_offset
        for held in sorted(found.reader_splits, key=lambda held: held.split.partition)
    }


# -- requested bytes -------------------------------------------------------------------------------


class _Counted(LocalFiles):
    """Local files that record every read."""

    def __init__(self) -> None:
        self.reads: list[tuple[str, int]] = []

    def read(self, path: str) -> bytes:
        data = super().read(path)
        self.reads.append((Path(path).name, len(data)))
        return data

    def read_range(self, path: str, start: int, size: int) -> bytes:
        data = super().read_range(path, start, size)
        self.reads.append((Path(path).name, len(data)))
        return data


@pytest.mark.parametrize("compressed", [False, True])
def test_read_of_large_file_fetches_only_required_bytes(tmp_path: Path, compressed: bool) -> None:
    chk = write_big_checkpoint(tmp_path / "savepoint", 1_000_000, compressed)
    files = _Counted()
    assert _positions(chk, files) == {0: 100}
    assert [name for name, _ in files.reads] == ["_metadata", "state", "state"]
    assert sum(size for _, size in files.reads[1:]) < 200


def test_other_state_in_file_of_reader_state_is_not_fetched(tmp_path: Path) -> None:
    element = encode_reader_element(encode_split("orders", 0, 100))
    states = [
        ListState(READER_STATE, SPLIT_DISTRIBUTE, (element,)),
        ListState("z", SPLIT_DISTRIBUTE, (bytes(3_000_000),)),
    ]
    stream, offsets = encode_operator_state_stream(6, False, states)
    handle = PartitionableHandle(tuple(offsets), RelativeFileHandle("state", len(stream)))
    chk = write_checkpoint(tmp_path / "savepoint", source_operator(handle))
    (chk / "state").write_bytes(stream)
    files = _Counted()
    assert _positions(chk, files) == {0: 100}
    assert sum(size for _, size in files.reads[1:]) < 2000


def test_error_in_part_of_file_reports_byte_offset_in_whole_file(tmp_path: Path) -> None:
    stream, handle = split_stream(0, [ListState("before", SPLIT_DISTRIBUTE, (bytes(100_000),))])
    (offset,) = handle.states[1].offsets
    place = RelativeFileHandle("state", len(stream))
    chk = write_checkpoint(
        tmp_path / "c", source_operator(PartitionableHandle(handle.states, place))
    )
    damaged = bytearray(stream)
    damaged[offset : offset + 4] = b"\x7f\xff\xff\xff"
    (chk / "state").write_bytes(damaged)
    with pytest.raises(DecodeError) as caught:
        read_checkpoint(chk)
    assert caught.value.byte_offset == offset + 4


def test_error_for_truncated_file_reports_requested_and_found_bytes(tmp_path: Path) -> None:
    chk = write_in_files(tmp_path / "c")
    size = (chk / "state-0").stat().st_size
    with (chk / "state-0").open("r+b") as file:
        file.truncate(size - 1)
    with pytest.raises(DecodeError, match=f"{size} bytes expected from byte 0, {size - 1} found"):
        read_checkpoint(chk)


def test_subtasks_are_read_in_parallel_within_limit(tmp_path: Path) -> None:
    chk = write_in_files(tmp_path / "c", subtasks=50)
    lock, under_way, most = threading.Lock(), 0, 0
    together = threading.Barrier(
        4, timeout=20
    )  # breaks unless four files are read at the same time

    class Slow(LocalFiles):
        def read_range(self, path: str, start: int, size: int) -> bytes:
            nonlocal under_way, most
            with lock:
                under_way += 1
                most = max(most, under_way)
            if Path(path).name in {f"state-{index}" for index in range(4)}:
                together.wait()
            try:
                return super().read_range(path, start, size)
            finally:
                with lock:
                    under_way -= 1

    assert _positions(chk, Slow()) == {index: 100 + index for index in range(50)}
    assert 4 <= most <= 16


def test_error_does_not_wait_for_unfinished_reads(tmp_path: Path) -> None:
    """The missing file of subtask 0 is reported while the read for subtask 1 is still blocked."""
    chk = write_in_files(tmp_path / "c", subtasks=2)
    (chk / "state-0").unlink()
    told, waited = threading.Event(), []

    class Slow(LocalFiles):
        def read_range(self, path: str, start: int, size: int) -> bytes:
            if Path(path).name == "state-1":
                waited.append(told.wait(20))
            return super().read_range(path, start, size)

    with pytest.raises(DecodeError, match="subtask 0"):
        read_checkpoint(chk, Slow())
    assert not waited
    told.set()


def test_missing_file_of_lowest_subtask_is_reported(tmp_path: Path) -> None:
    chk = write_in_files(tmp_path / "c", subtasks=30)
    for index in (3, 4, 20):
        (chk / f"state-{index}").unlink()
    for _ in range(5):
        with pytest.raises(DecodeError) as caught:
            read_checkpoint(chk)
        assert caught.value.kind is ErrorKind.NOT_FOUND
        assert f"operator {OPERATOR_ID.hex()} subtask 3 operator state" in str(caught.value)
        assert repr(str(chk / "state-3")) in str(caught.value)


# -- checkpoints that are deleted during the read --------------------------------------------------


class _Subsuming(LocalFiles):
    """Local files of a running job, which deletes checkpoints when a state file is first read."""

    def __init__(self, *gone: Path) -> None:
        self._gone = list(gone)

    def read_range(self, path: str, start: int, size: int) -> bytes:
        if self._gone:
            shutil.rmtree(self._gone.pop(0))
        return super().read_range(path, start, size)


def test_job_directory_resolves_to_newest_checkpoint_if_older_ones_are_deleted(
    tmp_path: Path,
) -> None:
    job = tmp_path / _JOB
    chks = [write_in_files(job / f"chk-{number}", checkpoint_id=number) for number in (8, 9, 11)]
    (job / "chk-12").mkdir()  # not complete

    class Running(_Subsuming):
        """Lists each checkpoint only after the previous one is deleted, as for a running job."""

        def list_directory(self, path: str) -> list[str] | None:
            names = super().list_directory(path)
            shown = {"chk-8", "chk-12"} if len(self._gone) == 2 else {"chk-9", "chk-12"}
            return [name for name in names or [] if not self._gone or name in shown]

    checkpoint = read_checkpoint(job, Running(*chks[:2]))
    assert checkpoint.checkpoint_id == 11
    assert checkpoint.pointer == str(chks[2])


class _Completing(LocalFiles):
    """Local files of a running job, which completes a new checkpoint during each read."""

    def __init__(self, job: Path, *numbers: int) -> None:
        self._job = job
        self._numbers = list(numbers)

    def modified_at(self, path: str) -> int | None:
        if self._numbers:
            number = self._numbers.pop(0)
            write_in_files(self._job / f"chk-{number}", checkpoint_id=number)
        return super().modified_at(path)


def test_job_directory_resolves_to_checkpoint_completed_during_read(tmp_path: Path) -> None:
    job = tmp_path / _JOB
    named = write_in_files(job / "chk-8", checkpoint_id=8)
    checkpoint = read_checkpoint(job, _Completing(job, 9, 10))
    assert (checkpoint.checkpoint_id, checkpoint.newer_siblings) == (10, ())
    checkpoint = read_checkpoint(named, _Completing(job, 11))
    assert (checkpoint.checkpoint_id, checkpoint.newer_siblings) == (8, (9, 10, 11))


def test_read_ends_even_if_job_completes_checkpoints_faster_than_they_are_read(
    tmp_path: Path,
) -> None:
    """The result lists the newer checkpoints as siblings."""
    job = tmp_path / _JOB
    write_in_files(job / "chk-8", checkpoint_id=8)
    assert read_checkpoint(job, _Completing(job, *range(9, 99))).newer_siblings


def test_damage_is_reported_even_if_newer_checkpoint_completes_during_read(tmp_path: Path) -> None:
    """If Flink deletes the checkpoint, the newer one is read; damage is an error."""
    job = tmp_path / _JOB
    chk = write_in_files(job / "chk-8", checkpoint_id=8)

    class Damaged(LocalFiles):
        def read_range(self, path: str, start: int, size: int) -> bytes:
            data = super().read_range(path, start, size)
            write_in_files(job / "chk-9", checkpoint_id=9)
            return data[:-1]

    with pytest.raises(DecodeError) as told:
        read_checkpoint(job, Damaged())
    assert (told.value.kind, told.value.file) == (ErrorKind.TRUNCATED, str(chk / "_metadata"))


@pytest.mark.parametrize("pointer", ["", "_metadata"])
def test_error_for_subsumed_checkpoint_names_newest_checkpoint(
    tmp_path: Path, pointer: str
) -> None:
    job = tmp_path / _JOB
    old, new = (write_in_files(job / f"chk-{number}", checkpoint_id=number) for number in (8, 9))
    with pytest.raises(DecodeError) as caught:
        read_checkpoint(str(old / pointer) if pointer else old, _Subsuming(old))
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert caught.value.file == str(old)
    assert f"subsumed it; the job's newest complete checkpoint is {new}" in caught.value.problem


def test_deleted_last_checkpoint_is_reported_as_deleted(tmp_path: Path) -> None:
    old = write_in_files(tmp_path / _JOB / "chk-8")
    (old.parent / "chk-9").mkdir()  # not complete
    for pointer in (old, old.parent):
        if not old.exists():
            write_in_files(old)
        with pytest.raises(DecodeError, match=r"it was deleted during the read$"):
            read_checkpoint(pointer, _Subsuming(old))


@pytest.mark.parametrize("beside", [False, True])
def test_savepoint_is_never_reported_as_subsumed(tmp_path: Path, beside: bool) -> None:
    job = tmp_path / _JOB
    savepoint = write_in_files(job / "savepoint-0a1b2c-3d4e5f", checkpoint_id=8)
    if beside:
        write_in_files(job / "chk-9", checkpoint_id=9)
    with pytest.raises(DecodeError, match=r"it was deleted during the read$"):
        read_checkpoint(savepoint, _Subsuming(savepoint))


def test_complete_checkpoints_of_local_directory_are_listed(tmp_path: Path) -> None:
    job = tmp_path / _JOB
    paths = {n: write_in_files(job / f"chk-{n}", checkpoint_id=n) for n in (9, 10, 8)}
    (job / "chk-11").mkdir()  # not complete
    (job / "shared").mkdir()
    assert list_checkpoints(job) == [(n, str(paths[n])) for n in (8, 9, 10)]
    with pytest.raises(DecodeError, match="this is a file; pass a job's checkpoint directory"):
        list_checkpoints(paths[8] / "_metadata")
    with pytest.raises(DecodeError, match="no such directory"):
        list_checkpoints(tmp_path / "missing")


def test_missing_file_of_existing_checkpoint_is_reported(tmp_path: Path) -> None:
    job = tmp_path / _JOB
    old = write_in_files(job / "chk-8", checkpoint_id=8)
    write_in_files(job / "chk-9", checkpoint_id=9)
    (old / "state-0").unlink()
    with pytest.raises(DecodeError, match="is missing; tried"):
        read_checkpoint(old)


# -- opened files ----------------------------------------------------------------------------------


class _Opened(LocalFiles):
    """Local files that record the opened paths, with links resolved."""

    def __init__(self) -> None:
        self.opened: set[str] = set()

    def read(self, path: str) -> bytes:
        data = super().read(path)
        self.opened.add(os.path.realpath(path))
        return data

    def read_range(self, path: str, start: int, size: int) -> bytes:
        data = super().read_range(path, start, size)
        self.opened.add(os.path.realpath(path))
        return data


@pytest.mark.parametrize("form", ["relative", "relative absolute", "uri", "segment", "link"])
@pytest.mark.parametrize("name", ["chk-7", "savepoint-1"])
def test_file_outside_checkpoint_is_opened_only_with_override(
    tmp_path: Path, form: str, name: str
) -> None:
    outside = tmp_path / "outside" / "state"
    chk = tmp_path / _JOB / name
    places: dict[str, Callable[[int], StreamHandle]] = {
        "relative": lambda size: RelativeFileHandle("../../outside/state", size),
        "relative absolute": lambda size: RelativeFileHandle(str(outside), size),
        "uri": lambda size: FileHandle(f"file:{chk}/../../outside/state", size),
        "segment": lambda size: SegmentHandle(outside.as_uri(), 0, size, 0, "logical"),
        "link": lambda size: RelativeFileHandle("link", size),
    }
    write_with_handle(places[form], chk)
    (chk / "link").symlink_to(outside)
    files = _Opened()
    with pytest.raises(DecodeError) as caught:
        read_checkpoint(chk, files)
    assert caught.value.kind is ErrorKind.EXTERNAL
    assert "outside of the checkpoint, and was not opened" in str(caught.value)
    assert files.opened == {str(chk / "_metadata")}
    allowed = _Opened()
    (source,) = read_checkpoint(chk, allowed, allow_external_files=True).sources.values()
    assert isinstance(source, KafkaSource)
    assert str(outside) in allowed.opened


@pytest.mark.parametrize(
    ("root", "name"), [("chk-7", "shared"), ("chk-7", "taskowned"), ("savepoint-1", "savepoint-1")]
)
def test_shared_and_taskowned_files_are_opened(tmp_path: Path, root: str, name: str) -> None:
    stream, handle = split_stream(0)
    job = tmp_path / _JOB
    file = job / name / "below" / "state"
    place = FileHandle(file.as_uri(), len(stream))
    chk = write_checkpoint(job / root, source_operator(PartitionableHandle(handle.states, place)))
    file.parent.mkdir(parents=True)
    file.write_bytes(stream)
    assert _positions(chk) == {0: 100}


def test_local_copy_is_preferred_to_file_outside_checkpoint(tmp_path: Path) -> None:
    """The relative path leads outside, but a file of the same name is next to ``_metadata``."""
    chk = tmp_path / _JOB / "chk-7"
    write_with_handle(lambda size: RelativeFileHandle("../../outside/state", size), chk)
    shutil.copy(tmp_path / "outside" / "state", chk)
    assert _positions(chk) == {0: 100}


@pytest.mark.parametrize("beside", ["secret", "chk-70/state", "shared-not/state", "other/shared"])
def test_file_in_parent_directory_of_checkpoint_is_external(tmp_path: Path, beside: str) -> None:
    """A checkpoint's metadata must not make migrate open other files in a home directory."""
    chk = tmp_path / "home" / "chk-7"
    file = tmp_path / "home" / beside
    write_with_handle(lambda size: FileHandle(file.as_uri(), size), chk)
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(tmp_path / "outside" / "state", file)
    with pytest.raises(DecodeError) as caught:
        read_checkpoint(chk)
    assert caught.value.kind is ErrorKind.EXTERNAL


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "{chk}"),
        ("to-spark", "{chk}"),
        ("diff", "{chk}", "{chk}"),
        ("diff", "json:{json}", "{chk}"),
        ("verify", "{chk}", "spark:{json}"),
        # The unknown property is reported only after the checkpoint is read.
        ("commit-group", "{chk}", "--group", "g", "-b", "127.0.0.1:1", "-X", "no.such=1"),
    ],
)
def test_every_command_refuses_external_files_and_has_override(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    chk = tmp_path / _JOB / "chk-7"
    outside = tmp_path / "outside" / "state"
    write_with_handle(lambda size: FileHandle(outside.as_uri(), size), chk)
    positions = tmp_path / "positions.json"
    positions.write_text('{"orders":{"0":100}}')
    command = [argument.format(chk=chk, json=positions) for argument in arguments]
    refused = migrate(*command)
    assert (refused.code, refused.stdout) == (4, "")
    assert str(outside) in refused.stderr
    assert "--allow-external-files" in refused.stderr
    allowed = migrate(*command, "--allow-external-files")
    assert "--allow-external-files" not in allowed.stderr
    if arguments[0] in ("inspect", "to-spark", "diff"):
        assert allowed.code == 0


class _Asked(Files):
    """Files that record their requests. A store that is down answers no request."""

    down = False
    asked: ClassVar[list[str]] = []

    def list_directory(self, path: str) -> list[str] | None:
        self.asked.append(f"list {path}")
        return super().list_directory(path)

    def is_file(self, path: str) -> bool:
        self.asked.append(f"is file {path}")
        if self.down:
            raise StorageUnavailable(errno.EIO, "no answer", path)
        return super().is_file(path)


@pytest.mark.parametrize("kind", [ErrorKind.UNAVAILABLE, ErrorKind.EXTERNAL])
def test_unavailable_store_is_not_searched_for_suggestions(
    tmp_path: Path, kind: ErrorKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, chk = tmp_path / "outside" / "state", tmp_path / _JOB / "chk-7"
    write_with_handle(lambda size: RelativeFileHandle(str(outside), size), chk)
    monkeypatch.setattr(_Asked, "down", kind is ErrorKind.UNAVAILABLE)
    monkeypatch.setattr(_Asked, "asked", [])
    monkeypatch.setattr(flink_extract, "Files", _Asked)
    asked: list[list[str]] = []
    for read in (lambda: read_checkpoint(chk, _Asked()), lambda: flink_extract.read(str(chk))):
        with pytest.raises(DecodeError) as caught:
            read()
        assert caught.value.kind is kind
        asked.append(_Asked.asked.copy())
        _Asked.asked.clear()
    assert asked[0]
    assert asked[1] == asked[0]


def test_state_file_missing_from_original_location_is_reported_with_its_path(
    tmp_path: Path,
) -> None:
    chk = tmp_path / _JOB / "chk-7"
    write_with_handle(lambda size: FileHandle("file:/gone/long/ago/state", size), chk)
    result = migrate("inspect", chk)
    assert result.code == 3
    assert "'/gone/long/ago/state'" in result.stderr


def test_link_to_checkpoint_directory_is_followed(tmp_path: Path) -> None:
    write_in_files(tmp_path / "other")
    (tmp_path / "chk-7").symlink_to(tmp_path / "other")
    assert _positions(tmp_path / "chk-7") == {0: 100}


def test_named_pipe_in_place_of_state_file_counts_as_missing(tmp_path: Path) -> None:
    chk = write_in_files(tmp_path / "c")
    (chk / "state-0").unlink()
    os.mkfifo(chk / "state-0")
    with pytest.raises(DecodeError, match="is missing; tried"):
        read_checkpoint(chk)


@pytest.mark.parametrize("command", ["inspect", "to-spark"])
def test_device_or_pipe_as_checkpoint_is_refused(tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/null", tmp_path / "pipe"):
        result = migrate(command, path)
        assert (result.code, result.stdout) == (3, "")
        assert result.stderr == (f"migrate: {path}: cannot be read: not a file or a directory\n")


def test_circular_link_in_place_of_state_file_counts_as_missing(tmp_path: Path) -> None:
    chk = write_in_files(tmp_path / "c")
    (chk / "state-0").unlink()
    (chk / "state-0").symlink_to(chk / "state-0")
    with pytest.raises(DecodeError, match="is missing; tried"):
        read_checkpoint(chk)


# -- objects in a bucket ---------------------------------------------------------------------------

_CHK = f"s3://bucket/flink/{_JOB}/chk-7"


class _Bucket(MemoryFiles):
    """Objects by URL, with any of Flink's spellings of the scheme."""

    def from_uri(self, uri: str) -> str | None:
        return Files().from_uri(uri)

    def absolute(self, path: str) -> str:
        return normalise_path(path)


@pytest.mark.parametrize(
    ("uri", "own"),
    [
        (f"{_CHK}/x/state", True),
        (f"s3a://bucket/flink/{_JOB}/chk-7/x/state", True),
        (f"s3://bucket/flink/{_JOB}/shared/x/state", True),
        (f"s3://bucket/gf36/flink/{_JOB}/chk-7/state", True),  # random characters start the path,
        (f"s3p://bucket/flink/gf36ikvg/{_JOB}/shared/x/state", True),  # are a part of it,
        (f"s3://bucket/flinkgf36/{_JOB}/chk-7/state", True),  # or are inside a name
        (f"s3://bucket/gf36/gf36/flink/{_JOB}/chk-7/state", False),
        (f"s3://bucket/flink/{_JOB}/gf36/chk-7/state", False),  # Flink adds none under the job
        (f"s3://bucket/flink/gf36{_JOB}/chk-7/state", False),
        (f"s3://bucket/flink/{_JOB}/chk-70/state", False),
        (f"s3://bucket/flink/{_JOB}/shared2/state", False),
        (f"s3://bucket/flink/{_JOB}/chk-8/state", False),
        (f"s3://bucket/flink/{'f' * 32}/chk-7/state", False),
        (f"s3://other/flink/{_JOB}/chk-7/state", False),
        (f"s3://bucket/flink/{_JOB}/chk-7/../../../state", False),
        (f"gs://bucket/gf36/flink/{_JOB}/chk-7/state", False),
    ],
)
def test_entropy_injection_does_not_allow_objects_in_other_directories(uri: str, own: bool) -> None:
    """With entropy injection, Flink adds random characters to the paths of its objects."""
    place = Files().from_uri(uri)
    assert place is not None
    files = _Bucket({place: b"state"})
    state = FileState(uri, 5)
    if own:
        assert StateFiles(_CHK, files).read(state, "it") == b"state"
        return
    with pytest.raises(DecodeError) as caught:
        StateFiles(_CHK, files).read(state, "it")
    assert caught.value.kind is ErrorKind.EXTERNAL
    assert StateFiles(_CHK, files, allow_external=True).read(state, "it") == b"state"


def test_entropy_injection_does_not_allow_objects_in_neighboring_savepoint() -> None:
    savepoint = "s3://bucket/savepoints/savepoint-1"
    own = "s3://bucket/gf36/savepoints/savepoint-1/state"
    neighbour = "s3://bucket/savepoints/savepoint-12/state"
    files = _Bucket({own: b"state", neighbour: b"state"})
    assert StateFiles(savepoint, files).read(FileState(own, 5), "it") == b"state"
    with pytest.raises(DecodeError) as caught:
        StateFiles(savepoint, files).read(FileState(neighbour, 5), "it")
    assert caught.value.kind is ErrorKind.EXTERNAL


# A savepoint that Flink wrote with entropy injection to the bucket ``checkpoints``.
_ENTROPY = Path(__file__).parents[1] / "field" / "16-entropy" / "tree"
_SAVEPOINT = "save points/savepoint-9d18d9-f439468f2434"


def _entropy_files(moved: str = "") -> _Bucket:
    """Return the savepoint's files. ``moved`` puts the state files next to ``_metadata``."""
    return _Bucket(
        {
            (
                f"s3://checkpoints/{moved}/{file.name}"
                if moved
                else f"s3://checkpoints/{file.relative_to(_ENTROPY)}"
            ): file.read_bytes()
            for file in _ENTROPY.rglob("*")
            if file.is_file()
        }
    )


def test_savepoint_with_entropy_injection_is_not_treated_as_copy() -> None:
    """Regression: The original savepoint was reported as a copy with an unknown age."""
    checkpoint = read_checkpoint(f"s3://checkpoints/{_SAVEPOINT}", _entropy_files())
    assert checkpoint.copied_from is None
    assert sum(len(operator.subtasks) for operator in checkpoint.operators) > 0


def test_copy_of_savepoint_with_entropy_injection_is_detected() -> None:
    moved = "copied/savepoint-9d18d9-f439468f2434"
    checkpoint = read_checkpoint(f"s3://checkpoints/{moved}", _entropy_files(moved))
    assert checkpoint.copied_from is not None
    assert checkpoint.copied_from.startswith("s3://checkpoints/")


@pytest.mark.parametrize(("beside", "is_copy"), [(True, True), (False, False)])
def test_state_file_in_different_folder_indicates_entropy_injection_unless_it_was_copied(
    beside: bool, is_copy: bool
) -> None:
    """If the state file is next to ``_metadata``, the savepoint was copied from ``prod``."""
    written = "s3://checkpoints/prod/savepoint-9d18d9-f439468f2434/state"
    directory = "s3://checkpoints/savepoint-9d18d9-f439468f2434"
    files = _Bucket({f"{directory}/state": b""} if beside else {written: b""})
    assert _has_entropy(directory, [written], files) is not is_copy


@pytest.mark.parametrize("path", ["../../../../etc/state", "/etc/state"])
def test_relative_path_cannot_leave_bucket(path: str) -> None:
    files = _Bucket({"/etc/state": b"state", "s3://etc/state": b"state"})
    with pytest.raises(DecodeError) as caught:
        StateFiles(_CHK, files).read(RelativeFileState(path, 5), "it")
    assert caught.value.kind in (ErrorKind.EXTERNAL, ErrorKind.NOT_FOUND)


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("s3://b/a//c/./../d", "s3://b/a/d"),
        ("s3://b/../../x", "s3://b/x"),
        ("hdfs:///a/b", "hdfs:///a/b"),
        ("s3://b", "s3://b"),
        ("/a/../b//c", "/b/c"),
    ],
)
def test_path_is_normalized(path: str, plain: str) -> None:
    assert normalise_path(path) == plain


# -- fsspec ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("s3a://b/k", "s3://b/k"),
        ("S3://b/k/", "s3://b/k"),
        ("abfss://c@a.dfs.core.windows.net/k", "abfs://c@a.dfs.core.windows.net/k"),
        ("wasbs://c@a.blob.core.windows.net/k", "abfs://c@a.blob.core.windows.net/k"),
        ("hdfs://name:8020/k", "hdfs://name:8020/k"),
        ("webhdfs://user@name:9870/k", "webhdfs://user@name:9870/k"),
        ("webhdfs://user:secret@name:9870/k", None),
        ("s3://key:se/cret@bucket/k", None),
        ("s3://bucket/a:b@c/key=d", "s3://bucket/a:b@c/key=d"),
        ("s3://arn:aws:s3:eu-west-1:1:accesspoint/a", "s3://arn:aws:s3:eu-west-1:1:accesspoint/a"),
        ("hdfs://name:8020/a@b", "hdfs://name:8020/a@b"),
        ("abfs://c@a.dfs.core.windows.net/k?sv=1&sig=secret", None),
        ("http://host/k", None),
        ("memory://k", None),
        ("file:///k", "/k"),
        ("/k", "/k"),
    ],
)
def test_uri_is_mapped_to_canonical_path(uri: str, path: str | None) -> None:
    assert Files().from_uri(uri) == path


@pytest.mark.slow  # each case starts a process
@pytest.mark.parametrize(
    ("url", "library", "extra"),
    [
        ("s3a://bucket/chk-1", "s3fs", "s3"),
        ("gs://bucket/chk-1", "fsspec", "gs"),
        ("hdfs://name:8020/chk-1", "pyarrow.fs", "hdfs"),
    ],
)
def test_missing_extra_is_reported_with_install_command(url: str, library: str, extra: str) -> None:
    program = (
        f"import sys\nsys.modules[{library!r}] = None\nsys.argv = ['migrate', 'inspect', {url!r}]\n"
        "from migrate.cli import main\nmain()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"pip install '.[{extra}]'" in ended.stderr


def test_url_with_double_colon_does_not_chain_file_systems(tmp_path: Path) -> None:
    pytest.importorskip("s3fs")  # the test uses the file system of this extra
    (tmp_path / "secret").write_bytes(b"secret")
    url = Files().from_uri(f"s3://bucket/x::file://{tmp_path}/secret")
    assert url is not None
    system = Files()._system(url)
    assert "s3" in system.protocol


def test_local_checkpoint_does_not_require_extra(tmp_path: Path) -> None:
    chk = write_in_files(tmp_path / _JOB / "chk-7")
    assert list_checkpoints(chk.parent, Files()) == [(7, str(chk))]
    assert read_checkpoint(chk, Files()).checkpoint_id == 7


def test_storage_libraries_are_imported_only_for_urls(tmp_path: Path) -> None:
    chk = write_in_files(tmp_path / "chk-7")
    program = (
        "import sys\nfrom decoder import read_checkpoint\nfrom migrate.storage.files import Files\n"
        f"read_checkpoint({str(chk)!r}, Files())\n"
        "assert not {'fsspec', 's3fs', 'gcsfs', 'adlfs', 'pyarrow'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("no\nsecond line", "no"),
        ("GET https://a/b?sv=1&sig=abc%3D&x=1 failed", "GET https://a/b?sv=…&sig=…&x=… failed"),
        ("GET http://a/b?delegation=HAAE&op=OPEN", "GET http://a/b?delegation=…&op=…"),
        ("AccountName=a;AccountKey=c2VjcmV0;X=1", "AccountName=a;AccountKey=…;X=1"),
        ("no bucket=x, access_token=abc password='p'", "no bucket=x, access_token=… password=…"),
        ("no file /data/key=5/token=6", "no file /data/key=5/token=6"),
        ("proxy http://me:word@proxy:1 says no", "proxy http://…@proxy:1 says no"),
        ("", "RuntimeError"),
    ],
)
def test_storage_error_is_reported_in_single_line_without_secrets(message: str, shown: str) -> None:
    from migrate.storage.files import _reason

    assert _reason(RuntimeError(message)) == shown


def test_different_paths_of_same_directory_are_recognized_as_same_place(tmp_path: Path) -> None:
    """The operating system's ``samefile`` confirms the result."""
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real, target_is_directory=True)
    for other in (tmp_path / "link", real / ".." / "real", Path(os.path.relpath(real))):
        assert other.samefile(real)
        assert is_same_place(str(other), f"{real.as_uri()}/")
    assert not is_same_place(str(real), str(tmp_path))
    assert is_same_place("s3a://bucket/a//b/", "s3://bucket/a/b")
    assert not is_same_place("s3://bucket/a", "s3://other/a")
    assert is_same_place("hdfs://nn:8020/a", "hdfs://nn/a/")
    assert not is_same_place("hdfs://nn:9000/a", "hdfs://nn/a")
    dfs, blob = (f"account.{name}.core.windows.net/a" for name in ("dfs", "blob"))
    assert is_same_place(f"abfss://c@{dfs}", f"wasb://c@{blob}")
    assert not is_same_place(f"abfss://c@{dfs}", f"wasb://d@{blob}")
    assert is_same_place("other:/x/", "other:/x")


def test_checkpoint_written_through_link_is_not_a_copy(tmp_path: Path) -> None:
    (written,) = (GOLDEN / "2.2/retained").glob("*/chk-9")
    original = read_checkpoint(written).copied_from
    assert original is not None
    path = LocalFiles().from_uri(original)
    assert path is not None

    class Linked(LocalFiles):
        """Local files in which Flink's directory is a link to the read directory."""

        def absolute(self, name: str) -> str:
            return super().absolute(str(written) if name == path else name)

    assert read_checkpoint(written, Linked()).copied_from is None
