"""Interrupt ``migrate commit-group`` and ``migrate rollback`` in the middle of a run.

The faults are Ctrl-C, SIGKILL, a member that joins, and a stdout that accepts no output.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.targets.group import rollback_file
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.groups import member
from tests.support.proxy import Api, Fault, ProxiedBroker

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]

_SOON = 60.0
_TOPIC = "t"
# A run reads the group three times before it writes the rollback file: for the plan, after the
# confirmation, and directly before the file. It reads the group again after it has written the
# file, and finally to check the commit.
_LOOKS = 3
_TO_READ_BACK = _LOOKS + 1
_APPLIED = "an earlier commit by migrate wrote this file and set the group's current offsets"


@pytest.fixture(scope="module")
def proxied() -> Iterator[ProxiedBroker]:
    with ProxiedBroker() as running:
        running.create_topic(_TOPIC, 3)
        for partition in range(3):
            running.produce(_TOPIC, partition, map(str, range(10)))
        running.commit("warm-up", {(_TOPIC, 0): 1})  # waits for the coordinator
        yield running


class Case:
    """A checkpoint, a group with one offset, and a folder for the rollback files."""

    def __init__(self, proxied: ProxiedBroker, home: Path) -> None:
        self.proxied = proxied
        self.proxy = proxied.proxy
        self.group = f"g-{uuid.uuid4().hex[:8]}"
        self.chk = write_source(home / "chk-7", {0: splits(_TOPIC, [3, 4, 5])})
        self.folder = home / "files"
        self.folder.mkdir()
        self.path = self.folder / "rollback.json"
        self.back = self.folder / "rollback-back.json"
        self.held = {(_TOPIC, 0): 1}
        self.applied = {(_TOPIC, 0): 3, (_TOPIC, 1): 4, (_TOPIC, 2): 5}
        proxied.commit(self.group, self.held)

    @property
    def commit(self) -> list[str]:
        return [
            *("commit-group", str(self.chk), "--group", self.group, "-b", self.proxy.address),
            *("--execute", "--yes", "--rollback-file", str(self.path)),
        ]

    @property
    def rollback(self) -> list[str]:
        return [
            *("rollback", str(self.path), "-b", self.proxy.address),
            *("--execute", "--yes", "--rollback-file", str(self.back)),
        ]

    def committed(self) -> dict[tuple[str, int], int]:
        return self.proxied.committed(self.group)

    def files(self) -> list[str]:
        """Return the file names in the folder, and check that each rollback file is complete."""
        for path in self.folder.iterdir():
            rollback_file.read(path)
        return sorted(path.name for path in self.folder.iterdir())

    def next_run_says(self) -> str:
        """Return a dry run's report about the previous run, without using the proxy."""
        result = migrate(
            *("commit-group", self.chk, "--group", self.group),
            *("-b", self.proxied.bootstrap_servers, "--rollback-file", self.folder / "new.json"),
        )
        assert result.code == 0, result.stderr
        return result.stderr


@pytest.fixture
def case(proxied: ProxiedBroker, tmp_path: Path) -> Case:
    return Case(proxied, tmp_path)


def _start(arguments: list[str], stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "migrate", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def _stop(process: subprocess.Popen[str], with_signal: signal.Signals) -> tuple[int, str, str]:
    process.send_signal(with_signal)
    try:
        stdout, stderr = process.communicate(timeout=_SOON)
    finally:
        process.kill()
    return process.returncode, stdout, stderr


# -- Ctrl-C --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "fault", "after", "changed"),
    [
        (Api.OFFSET_COMMIT, Fault.HOLD, 0, False),
        (Api.OFFSET_COMMIT, Fault.HOLD_ANSWER, 0, True),
        (Api.DESCRIBE_GROUPS, Fault.HOLD_ANSWER, _TO_READ_BACK, True),
    ],
    ids=["before Kafka has it", "before the answer", "when it reads back"],
)
def test_interrupt_during_commit_reports_possible_changes_and_rollback_command(
    case: Case, api: Api, fault: Fault, after: int, changed: bool
) -> None:
    trap = case.proxy.trap(api, fault, after=after)
    process = _start(case.commit)
    assert trap.triggered.wait(_SOON)
    code, stdout, stderr = _stop(process, signal.SIGINT)
    assert (code, stdout) == (130, ""), stderr
    last = [line for line in stderr.splitlines() if line][-1]
    assert last.startswith(f"interrupted; offsets of group {case.group} may have been changed")
    assert f"migrate rollback {case.path}" in last
    assert case.files() == ["rollback.json"]
    assert case.committed() == (case.applied if changed else case.held)
    trap.release()


@pytest.mark.parametrize("looks", range(_LOOKS))
def test_interrupt_before_commit_leaves_no_rollback_file(case: Case, looks: int) -> None:
    trap = case.proxy.trap(Api.DESCRIBE_GROUPS, Fault.HOLD, after=looks)
    process = _start(case.commit)
    assert trap.triggered.wait(_SOON)
    code, stdout, stderr = _stop(process, signal.SIGINT)
    assert (code, stdout) == (130, ""), stderr
    assert "Traceback" not in stderr
    assert "may have been changed" not in stderr
    assert case.files() == []
    trap.release()
    assert case.committed() == case.held


def test_interrupted_rollback_reports_newest_rollback_file(case: Case) -> None:
    assert migrate(*case.commit).code == 0
    # The previous offset is committed, but the added offsets have not been removed yet.
    trap = case.proxy.trap(Api.OFFSET_DELETE, Fault.HOLD)
    process = _start(case.rollback)
    assert trap.triggered.wait(_SOON)
    code, stdout, stderr = _stop(process, signal.SIGINT)
    assert (code, stdout) == (130, ""), stderr
    restore = f"migrate rollback {case.back} -b {case.proxy.address}"
    assert f"run `{restore}`; to restore them, add --execute" in stderr
    assert case.held.items() <= case.committed().items()
    assert case.files() == ["rollback-back.json", "rollback.json"]
    restored = migrate(
        "rollback", case.back, "-b", case.proxied.bootstrap_servers, "--execute", "--yes"
    )
    assert restored.code == 0, restored.stderr
    assert case.committed() == case.applied
    trap.release()


# -- SIGKILL -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "fault", "after", "says"),
    [
        (Api.DESCRIBE_GROUPS, Fault.HOLD, _LOOKS - 1, None),
        (
            Api.OFFSET_COMMIT,
            Fault.HOLD,
            0,
            "an earlier commit by migrate wrote this file, but it changed nothing or was rolled "
            "back",
        ),
        (Api.OFFSET_COMMIT, Fault.HOLD_ANSWER, 0, _APPLIED),
        (Api.DESCRIBE_GROUPS, Fault.HOLD, _TO_READ_BACK, _APPLIED),
    ],
    ids=["before the file", "before the commit", "before the answer", "when it reads back"],
)
def test_next_run_reports_outcome_of_killed_commit(
    case: Case, api: Api, fault: Fault, after: int, says: str | None
) -> None:
    trap = case.proxy.trap(api, fault, after=after)
    process = _start(case.commit)
    assert trap.triggered.wait(_SOON)
    _stop(process, signal.SIGKILL)
    told = case.next_run_says()
    if says is None:
        assert case.files() == []
        assert case.committed() == case.held
    else:
        assert f"{case.path}: {says}" in told
        assert case.committed() == (case.applied if says == _APPLIED else case.held)
        back = migrate(*case.rollback[:2], "-b", case.proxied.bootstrap_servers, *case.rollback[4:])
        assert back.code == 0, back.stderr
        assert case.committed() == case.held
    trap.release()


def test_rerun_finishes_killed_rollback(case: Case) -> None:
    assert migrate(*case.commit).code == 0
    trap = case.proxy.trap(Api.OFFSET_DELETE, Fault.HOLD)
    process = _start(case.rollback)
    assert trap.triggered.wait(_SOON)
    _stop(process, signal.SIGKILL)
    assert len(case.committed()) == 3
    result = migrate(
        "rollback", case.path, "-b", case.proxied.bootstrap_servers, "--execute", "--yes"
    )
    assert result.code == 0, result.stderr
    assert case.committed() == case.held
    trap.release()


# -- other faults --------------------------------------------------------------------------------


def test_commit_exits_with_4_if_member_joins_after_check(case: Case) -> None:
    trap = case.proxy.trap(Api.OFFSET_COMMIT, Fault.HOLD)
    before = {(_TOPIC, n): 1 for n in range(3)}
    case.proxied.commit(case.group, before)
    process = _start(case.commit)
    assert trap.triggered.wait(_SOON)
    with member(case.proxied, case.group, _TOPIC):
        trap.release()
        stdout, stderr = process.communicate(timeout=_SOON)
    assert (process.returncode, stdout) == (4, f"{case.path}\n"), stderr
    assert "UNKNOWN_MEMBER_ID, the group is active; stop its consumers" in stderr
    assert case.committed() == before


def test_rollback_exits_with_5_if_member_joins_before_offsets_are_removed(case: Case) -> None:
    assert migrate(*case.commit).code == 0
    trap = case.proxy.trap(Api.OFFSET_DELETE, Fault.HOLD)
    process = _start(case.rollback)
    assert trap.triggered.wait(_SOON)
    with member(case.proxied, case.group, _TOPIC):
        trap.release()
        _, stderr = process.communicate(timeout=_SOON)
    assert process.returncode == 5, stderr
    assert "GROUP_SUBSCRIBED_TO_TOPIC, the group is active; stop its consumers" in stderr
    assert case.committed() == {**case.applied, **case.held}


def test_rollback_file_is_reported_if_stdout_is_on_full_disk(case: Case) -> None:
    with Path("/dev/full").open("w") as full:
        process = _start(case.commit, stdout=full.fileno())
        _, stderr = process.communicate(timeout=_SOON)
    assert process.returncode == 5, stderr
    assert "applied; 3 offsets written and read back" in stderr
    assert stderr.splitlines()[-1] == (
        f"stdout: No space left on device; the rollback file is {case.path}"
    )
    assert case.committed() == case.applied


def test_closed_stdout_is_refused_before_commit(case: Case) -> None:
    command = [sys.executable, "-m", "migrate", *case.commit]
    done = subprocess.run(
        ["bash", "-c", '"$@" >&-', "-", *command], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 2, done.stderr
    assert "stdout is closed" in done.stderr
    assert case.files() == []
    assert case.committed() == case.held


@pytest.mark.parametrize("command", ["commit", "rollback"])
@pytest.mark.parametrize(
    ("place", "code", "says"),
    [
        ("missing/r.json", 2, "does not exist; create it"),
        ("chk-7/_metadata/r.json", 2, "cannot be written: Not a directory"),
        ("chk-7/_metadata", 4, "already exists"),
    ],
)
def test_unwritable_rollback_file_is_refused_before_confirmation(
    case: Case, tmp_path: Path, command: str, place: str, code: int, says: str
) -> None:
    arguments = case.commit
    if command == "rollback":
        assert migrate(*case.commit).code == 0
        arguments = case.rollback
    before, files = case.committed(), case.files()
    result = migrate(*arguments[:-1], tmp_path / place)
    assert (result.code, result.stdout) == (code, ""), result.stderr
    assert says in result.stderr
    assert result.stderr.endswith(
        "nothing was committed\n" if code == 2 else "nothing was written\n"
    )
    assert "saving current offsets to" not in result.stderr
    assert (case.committed(), case.files()) == (before, files)
