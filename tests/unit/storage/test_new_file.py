"""Write new files completely or not at all, and never overwrite a file."""

from __future__ import annotations

import errno
import itertools
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from migrate.model.errors import Refused, UsageError
from migrate.model.option_names import spec_notation
from migrate.storage.files import Files
from migrate.storage.new_file import (
    add_path_to_errors,
    check_new_directory,
    check_new_file,
    replace_file,
    write_directory,
    write_new,
)
from tests.support.checkpoints import splits, write_source


def _no_links(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Simulate a file system without hard links."""

    def link(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)


def test_new_file_is_written_without_leftovers(tmp_path: Path) -> None:
    write_new(tmp_path / "f.json", "ünïcode\n")
    assert (tmp_path / "f.json").read_text(encoding="utf-8") == "ünïcode\n"
    assert [path.name for path in tmp_path.iterdir()] == ["f.json"]


def test_file_is_replaced_atomically(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    for text in ("one", "zwölf"):
        replace_file(path, text)
        assert path.read_text(encoding="utf-8") == text
    with pytest.raises(UnicodeEncodeError):
        replace_file(path, "\ud800")
    assert path.read_text(encoding="utf-8") == "zwölf"
    assert [one.name for one in tmp_path.iterdir()] == ["f.json"]


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize(
    "take",
    [
        lambda path: path.write_text("theirs"),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("nowhere"),
    ],
    ids=["file", "folder", "dangling link"],
)
def test_existing_path_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: Callable[[Path], object], links: bool
) -> None:
    if not links:
        _no_links(monkeypatch, errno.EPERM)
    path = tmp_path / "f.json"
    take(path)
    before = path.lstat()
    with pytest.raises(Refused, match="already exists"):
        check_new_file("query_file", path)
    with pytest.raises(FileExistsError):
        write_new(path, "ours")
    assert path.lstat() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS])
def test_new_file_is_written_to_file_system_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    _no_links(monkeypatch, code)
    write_new(tmp_path / "f.json", "ours")
    assert (tmp_path / "f.json").read_text() == "ours"
    assert [path.name for path in tmp_path.iterdir()] == ["f.json"]


def test_unexpected_error_from_creating_hard_link_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _no_links(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write_new(tmp_path / "f.json", "ours")
    assert list(tmp_path.iterdir()) == []


def test_temporary_file_of_different_process_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = itertools.cycle(("same", "other"))
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(names))
    theirs, path = tmp_path / ".migrate-same.tmp", tmp_path / "f.json"
    theirs.write_text("theirs")
    check_new_file("query_file", path)
    write_new(path, "ours")
    replace_file(path, "ours again")
    assert theirs.read_text() == "theirs"
    assert path.read_text() == "ours again"
    assert sorted(tmp_path.iterdir()) == [theirs, path]


def test_leftover_of_killed_run_does_not_prevent_write(tmp_path: Path) -> None:
    """The leftover can have the same process ID, because every container reuses these IDs."""
    left = tmp_path / f".f.json.{os.getpid()}"
    left.write_text("half")
    write_new(tmp_path / "f.json", "ours")
    assert (tmp_path / "f.json").read_text() == "ours"
    assert left.read_text() == "half"


@pytest.mark.parametrize(("where", "name"), [(os, "fsync"), (os, "link"), (Path, "replace")])
def test_interrupted_write_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, name: str
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    if name == "replace":
        _no_links(monkeypatch, errno.EPERM)
    monkeypatch.setattr(where, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_new(tmp_path / "f.json", "ours")
    assert list(tmp_path.iterdir()) == []


def test_file_and_directory_are_synced_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    write_new(tmp_path / "f.json", "ours")
    stage, folder = synced
    assert Path(stage).parent == tmp_path
    assert folder == str(tmp_path)


@pytest.mark.parametrize(
    ("code", "told"), [(errno.EIO, True), (errno.ENOSPC, True), (errno.EINVAL, False)]
)
def test_directory_sync_error_is_raised_unless_sync_is_unsupported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, told: bool
) -> None:
    """EINVAL means that the file system does not support syncing a directory."""
    fsync = os.fsync

    def failing(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(code, os.strerror(code))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    if told:
        with pytest.raises(OSError, match=os.strerror(code)):
            write_new(tmp_path / "f.json", "ours")
    else:
        write_new(tmp_path / "f.json", "ours")
    assert (tmp_path / "f.json").read_text() == "ours"


def test_file_is_written_to_directory_that_is_writable_but_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def denied(path: object, flags: int, *more: int) -> int:
        if path == tmp_path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, flags, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", denied)
    write_new(tmp_path / "f.json", "ours")
    assert (tmp_path / "f.json").read_text() == "ours"


def test_unwritable_path_is_refused_before_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, problem in (
        (tmp_path / "missing/f.json", "missing does not exist; create it"),
        (tmp_path / "file/f.json", "cannot be written"),
        (tmp_path / ("f" * 300), "cannot be written"),
        (Path("/proc/f.json"), "cannot be written"),  # its directory exists
    ):
        with pytest.raises(UsageError, match=problem):
            check_new_file("query_file", path)
    check_new_file("query_file", tmp_path / "f.json")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_path_of_file_is_added_to_error_without_path() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(OSError) as told, add_path_to_errors(Path("/data/f.json")):
        raise full
    assert (told.value.errno, told.value.strerror) == (full.errno, full.strerror)
    assert told.value.filename == "/data/f.json"
    with pytest.raises(OSError) as told, add_path_to_errors(Path("/data/f.json")):
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), "/another")
    assert told.value.filename == "/another"


class _Store(Files):
    """A store that cannot write or remove some files."""

    def __init__(self, stays: str = "", fails: str = "") -> None:
        super().__init__()
        self.there: list[str] = []
        self._stays, self._fails = stays, fails

    def write_pieces(self, path: str, pieces: Iterable[bytes]) -> None:
        if path.endswith(f"/{self._fails}"):
            raise OSError(errno.EIO, "not written", path)
        self.there.append(path)

    def is_file(self, path: str) -> bool:
        return path in self.there

    def remove(self, path: str) -> None:
        if path.endswith(f"/{self._stays}") or path not in self.there:
            raise OSError(errno.EIO, "not removed", path)
        self.there.remove(path)


def _write(store: Files) -> None:
    with write_directory("s3://bucket/new", store) as (_, write):
        for name in ("a", "b", "_metadata"):
            write(name, [b"x"])
        raise OSError(errno.EIO, "read back otherwise", "s3://bucket/new")


def test_failed_removal_of_metadata_keeps_all_files_in_store() -> None:
    """`_metadata` without the other files would be a damaged savepoint, so it is removed first."""
    store = _Store(stays="_metadata")
    with pytest.raises(OSError, match="read back otherwise") as failed:
        _write(store)
    whole = [f"s3://bucket/new/{name}" for name in ("a", "b", "_metadata")]
    assert store.there == whole
    assert f"remove the remaining files: {', '.join(whole)}" in str(failed.value)


@pytest.mark.parametrize("fails", ["", "b", "_metadata"])
def test_failed_write_removes_all_files_from_store(fails: str) -> None:
    store = _Store(stays="nothing", fails=fails or "nothing")
    with pytest.raises(OSError, match="not written" if fails else "read back") as failed:
        _write(store)
    assert store.there == []
    assert "remaining files" not in str(failed.value)


def test_existing_or_unwritable_path_of_file_option_is_refused_with_reason(tmp_path: Path) -> None:
    free, taken, nowhere = tmp_path / "free.json", tmp_path / "taken.json", tmp_path / "no/r.json"
    taken.write_text("theirs")
    check_new_file("rollback_file", free)
    assert not free.exists()
    with pytest.raises(Refused) as refused:
        check_new_file("rollback_file", taken)
    assert str(refused.value) == f"{taken} already exists; choose a new file"
    with pytest.raises(UsageError) as unusable:
        check_new_file("rollback_file", nowhere)
    problem = f"the directory {nowhere.parent} does not exist; create it"
    assert str(unusable.value) == f"rollback_file {nowhere}: {problem}"
    # Regression: The error of a cut-over named this option, which a cut-over does not have.
    with spec_notation({}, ["rollback_file"]), pytest.raises(UsageError) as unusable:
        check_new_file("rollback_file", nowhere)
    assert str(unusable.value) == f"{nowhere}: {problem}"


@pytest.mark.parametrize(
    ("mode", "staged", "directory", "denied"),
    [
        (0o755, True, "open/query", None),
        (0o755, True, "open/new/query", None),
        (0o555, True, "closed/query", "closed"),
        (0o555, True, "closed/new/query", "closed"),
        # An existing empty directory is replaced by rename, which changes its parent.
        (0o555, True, "closed/empty", "closed"),
        (0o555, False, "closed/empty", None),
    ],
)
def test_writability_check_uses_same_directory_as_write(
    tmp_path: Path, mode: int, staged: bool, directory: str, denied: str | None
) -> None:
    parent = tmp_path / directory.partition("/")[0]
    (parent / "empty").mkdir(parents=True)
    parent.chmod(mode)
    program = (
        "import sys; from pathlib import Path\n"
        "from migrate.storage.new_file import check_new_directory\n"
        "try: check_new_directory(Path(sys.argv[1]), staged=sys.argv[2] == 'True')\n"
        "except PermissionError as error: print(error.filename)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / directory), str(staged)]
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if os.geteuid() == 0:
        if subprocess.run([*drop, "true"], capture_output=True).returncode != 0:
            pytest.skip("root cannot drop its capabilities here, and modes do not apply to root")
        command = [*drop, *command]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (str(tmp_path / denied) if denied is not None else "")
    parent.chmod(0o755)
    assert [path.name for path in parent.rglob("*")] == ["empty"]


def test_check_for_writable_directory_detects_virtual_file_system() -> None:
    with pytest.raises(OSError) as denied:
        check_new_directory(Path("/proc/queries/orders"), staged=True)
    assert denied.value.filename == "/proc"


def test_file_beside_savepoint_is_accepted_from_inside_savepoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    savepoint = write_source(tmp_path / "savepoint-1", {0: splits("t", [3])})
    monkeypatch.chdir(savepoint)
    check_new_file("plan_out", Path("../plan.json"))
    with pytest.raises(Refused):
        check_new_file("plan_out", Path("plan.json"))
