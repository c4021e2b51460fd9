"""Scan ten thousand checkpoints with local processes and with a cluster.

During the scan, checkpoints vanish and a process or an executor is killed. Every position must
match Flink's own classes exactly once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow.parquet as parquet
import pytest

from migrate.extensions.fleet.workers import cores
from tests.support.golden import ExpectedPosition
from tests.support.many_jobs import (
    DAMAGES,
    Condition,
    Expected,
    ManyJobs,
    delete_as_flink,
    generate,
)
from tests.support.spark import process_environment

pytestmark = pytest.mark.integration

CHECKPOINTS = 10_000
_MASTER = "local-cluster[2,1,1024]"
_SECONDS = 600
_KINDS = {
    Condition.TRUNCATED: "truncated",
    Condition.NO_MAGIC: "corrupt",
    Condition.OF_THE_FUTURE: "unsupported",
    Condition.EMPTY: "truncated",
    Condition.HALF_WRITTEN: "not found",
    Condition.STATE_MISSING: "not found",
}


@pytest.fixture(scope="module", params=[None, _MASTER], ids=["here", "cluster"])
def master(request: pytest.FixtureRequest) -> str | None:
    """The Spark master to scan with, or None."""
    given: str | None = request.param
    return given


@pytest.fixture(scope="module")
def estate(master: str | None, tmp_path_factory: pytest.TempPathFactory) -> ManyJobs:
    """Generate new checkpoints for each scan, because some of them are deleted."""
    return generate(tmp_path_factory.mktemp("estate"), CHECKPOINTS)


@pytest.fixture(scope="module")
def scanned(master: str | None, estate: ManyJobs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scan the checkpoints, kill a process or an executor, and return the output directory."""
    output = tmp_path_factory.mktemp("scanned") / "out"
    command = [sys.executable, "-m", "migrate", "scan", str(estate.root)]
    command += ["--master", master] if master is not None else []
    process = subprocess.Popen(
        [*command, "--output", str(output), "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=output.parent,
        env=process_environment(tmp_path_factory.mktemp("conf")),
    )
    to_vanish = list(estate.of(Condition.VANISHING))
    with _vanishing(to_vanish[::2]):
        at_work = _executors_at_work(process) if master is not None else _helpers_at_work(process)
        # By now, the scan has listed all checkpoints and has read almost none of them.
        for path in to_vanish[1::2]:
            delete_as_flink(path)
        time.sleep(2 if master is not None else 0.3)
        os.kill(at_work[0], signal.SIGKILL)
        assert process.poll() is None
        stdout, stderr = process.communicate(timeout=_SECONDS)
    assert process.returncode == 0, stderr
    assert stdout.count("\n") > 1
    # Spark leaves no files in the working directory.
    assert list(output.parent.iterdir()) == [output]
    return output


@contextmanager
def _vanishing(paths: Iterable[str]) -> Iterator[None]:
    """Delete checkpoints during the scan, some of them before the scan reads them."""
    done = Event()

    def delete() -> None:
        for path in paths:
            if done.wait(0.2):
                return
            delete_as_flink(path)

    thread = Thread(target=delete)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _executors_at_work(process: subprocess.Popen[str]) -> list[int]:
    """Wait until the first tasks read checkpoints, and return the PIDs of the two executors."""
    deadline = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        below = list(_below(process.pid))
        if sum("pyspark.daemon" in command for _, command in below) >= 2:
            executors = [p for p, command in below if "CoarseGrainedExecutorBackend" in command]
            assert len(executors) == 2
            return executors
        time.sleep(0.1)
    pytest.fail("no executor was seen at work")


def _helpers_at_work(process: subprocess.Popen[str]) -> list[int]:
    """Return the PIDs of the worker processes.

    The workers start after the scan has listed all checkpoints.
    """
    if cores() < 2:
        pytest.skip("of one core no other process is made use of")
    deadline = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        helpers = [
            p for p, command in _below(process.pid) if "migrate.extensions.fleet.workers" in command
        ]
        if helpers:
            return helpers
        time.sleep(0.02)
    pytest.fail("no process was seen at work")


def _below(process: int) -> Iterator[tuple[int, str]]:
    """Yield the PID and the command line of each descendant of a process."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # the process has ended
                continue
            children.setdefault(parent, []).append(int(entry.name))
    todo = list(children.get(process, ()))
    while todo:
        child = todo.pop()
        todo += children.get(child, ())
        try:
            yield child, (Path("/proc") / str(child) / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue


def _rows(output: Path, view: str, *columns: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(
        output / view, columns=["pointer", "error_kind", "error", *columns]
    ).to_pylist()
    return rows


def test_every_position_matches_position_read_by_flinks_own_classes(
    estate: ManyJobs, scanned: Path
) -> None:
    found: dict[str, Counter[ExpectedPosition]] = {}
    failed: dict[str, str] = {}
    for row in _rows(scanned, "positions", *ExpectedPosition._fields):
        if row["error_kind"] is not None:
            assert row["pointer"] not in failed
            failed[row["pointer"]] = row["error_kind"]
            continue
        held = ExpectedPosition(*(row[name] for name in ExpectedPosition._fields))
        found.setdefault(row["pointer"], Counter())[held] += 1
    for path, expected in estate.checkpoints.items():
        match expected.condition:
            case Condition.WHOLE:
                assert path not in failed
                assert found.get(path, Counter()) == Counter(expected.positions), path
            case Condition.VANISHING:
                # The checkpoint was read completely, was reported as deleted, or was deleted before
                # the listing.
                if path in found:
                    assert path not in failed
                    assert found[path] == Counter(expected.positions), path
                assert failed.get(path, "not found") == "not found"
            case damage:
                assert path not in found
                assert failed[path] == _KINDS[damage], path
    # Some checkpoints were deleted after they were listed and before they were read.
    assert any(failed.get(path) == "not found" for path in estate.of(Condition.VANISHING))
    assert found.keys() | failed.keys() <= estate.checkpoints.keys()
    assert sum(map(Counter.total, found.values())) > 5 * CHECKPOINTS


def test_each_scanned_checkpoint_has_single_row_in_each_table(
    estate: ManyJobs, scanned: Path
) -> None:
    rows = _rows(scanned, "checkpoints", "job_id", "checkpoint_id", "positions", "movable")
    by_pointer = {row["pointer"]: row for row in rows}
    assert len(by_pointer) == len(rows)
    lost = estate.checkpoints.keys() - by_pointer.keys()
    assert lost <= estate.of(Condition.VANISHING).keys()
    for path, expected in estate.of(Condition.WHOLE).items():
        row = by_pointer[path]
        assert (row["job_id"], row["checkpoint_id"]) == (expected.job, expected.number)
        assert row["positions"] == len(expected.positions)
        assert row["movable"] is not None
    told = {row["pointer"]: row["error"] for row in rows if row["error_kind"] is not None}
    for view in ("findings", "operators"):
        errors = {
            row["pointer"]: row["error"]
            for row in _rows(scanned, view)
            if row["error_kind"] is not None
        }
        assert errors == told  # each checkpoint is read once, so all tables contain the same error
    assert told.keys() >= estate.of(*DAMAGES).keys()


def _other_positions(expected: Expected) -> tuple[ExpectedPosition, ...]:
    first, *rest = expected.positions
    return (first._replace(next_offset=(first.next_offset or 0) + 1), *rest)


def test_comparison_with_flinks_classes_fails_for_single_wrong_position(
    estate: ManyJobs, scanned: Path
) -> None:
    """Change one expected position, to prove that the comparison can fail."""
    path, expected = next(
        (path, one) for path, one in reversed(estate.of(Condition.WHOLE).items()) if one.positions
    )
    wrong = ManyJobs(
        estate.root,
        {
            **estate.checkpoints,
            path: Expected(
                *(expected.job, expected.number, expected.template, expected.condition),
                _other_positions(expected),
            ),
        },
    )
    with pytest.raises(AssertionError):
        test_every_position_matches_position_read_by_flinks_own_classes(wrong, scanned)
