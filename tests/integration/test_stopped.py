"""Run ``commit-group`` for jobs that may still run, including real jobs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import migrate as migrate_library
from decoder import list_checkpoints, read_checkpoint
from migrate.inputs.flink.extract import extract
from migrate.model.errors import Refused
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.golden_topics import GOLDEN, create_golden_topics, topic_map
from tests.support.kafka import Broker
from tests.support.plans import edit_and_seal_plan
from tests.support.recorded_flink import recorded_flink
from tests.support.running_jobs import running_job

pytestmark = pytest.mark.integration

_ROOT = Path(__file__).parents[2]
_SOON = 60.0


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic of one partition with ten records."""
    name = f"s-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    broker.produce(name, 0, map(str, range(10)))
    return name


@pytest.fixture
def commit_group(
    tmp_path: Path, broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Run ``commit-group`` for a group other than Flink's group, in a temporary directory."""
    monkeypatch.chdir(tmp_path)
    return lambda chk, *flags: migrate(
        *("commit-group", chk, "--group", f"new-{topic}", "-b", broker.bootstrap_servers), *flags
    )


def _job(directory: Path, topic: str, apart: float) -> Path:
    """Return the newest of three checkpoints that were written ``apart`` seconds apart."""
    for number in (5, 6, 7):
        chk = write_source(directory / f"chk-{number}", {0: splits(topic, [number])})
        at = time.time() - (7 - number) * apart
        os.utime(chk / "_metadata", (at, at))
    return directory / "chk-7"


def _retained(job: Path) -> bool:
    """Return whether the job has three complete checkpoints, the number that it retains."""
    return job.exists() and len(list_checkpoints(job)) >= 3


def test_running_job_is_refused_and_canceled_job_is_moved(
    tmp_path: Path, broker: Broker, topic: str, commit_group: Callable[..., Result]
) -> None:
    flink, kept = f"flink-{topic}", tmp_path / "checkpoints"
    with running_job(broker.bootstrap_servers, flink, topic, kept) as (_, job_id):
        deadline = time.monotonic() + _SOON
        # The job's first checkpoints may complete before it has discovered a partition.
        while broker.committed(flink) != {(topic, 0): 10} or not _retained(kept / job_id):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        refused = commit_group(kept / job_id, "--source-group", flink, "--execute", "--yes")
    assert (refused.code, refused.stdout) == (4, ""), refused.stderr
    # Either the group has newer commits, or a checkpoint completed during the wait.
    assert "the job kept running" in refused.stderr
    assert broker.committed(f"new-{topic}") == {}
    done = commit_group(kept / job_id, "--source-group", flink, "--execute", "--yes")
    assert done.code == 0, done.stderr
    assert f"group {flink} has no newer commits, and no checkpoint has completed for" in done.stderr
    assert broker.committed(f"new-{topic}") == {(topic, 0): 10}


@pytest.mark.parametrize("retained", [3, 1])
def test_checkpoint_location_and_plan_are_refused_for_running_job(
    tmp_path: Path, broker: Broker, topic: str, retained: int
) -> None:
    """Regression: ``to-spark --checkpoint-dir`` wrote a checkpoint location for a running job.

    By default, Flink retains one checkpoint. A single checkpoint does not show the checkpoint
    interval.
    """
    flink, kept, job_id = f"flink-{topic}", tmp_path / "checkpoints", uuid.uuid4().hex
    job, out = kept / job_id, tmp_path / "out"
    ways: tuple[tuple[str | Path, ...], ...] = (("--checkpoint-dir", out), ("--plan-out", out))
    with running_job(broker.bootstrap_servers, flink, topic, kept, job_id, retained) as (rest, _):
        deadline = time.monotonic() + _SOON
        while broker.committed(flink) != {(topic, 0): 10} or not job.exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        for way in ways:
            for attempt in range(5):  # Flink may delete the checkpoint while it is read
                refused = migrate("to-spark", job, *way)
                if refused.code != 3 or attempt == 4:
                    break
            assert (refused.code, refused.stdout) == (4, ""), refused.stderr
            assert "the job kept running" in refused.stderr
            assert not out.exists()
        # A copied checkpoint does not show progress, so `migrate` queries Flink.
        copy = write_source(tmp_path / job_id / "chk-1", {0: splits(topic, [7])})
        for way in ((), *ways):
            asked = migrate("to-spark", copy, *way, "--flink-rest", rest)
            assert (asked.code, asked.stdout) == (4, ""), asked.stderr
            assert f"Flink lists job {job_id} (the job that moves) as RUNNING" in asked.stderr
        allowed = migrate("to-spark", copy, "--flink-rest", rest, "--allow-ran-on")
        assert allowed.code == 0, allowed.stderr
    done = migrate("to-spark", job, "--checkpoint-dir", out)
    assert done.code == 0, done.stderr
    says = (
        "the job has probably stopped"
        if retained > 1
        else ("cannot determine whether the job is still running")
    )
    assert says in done.stderr


def _has_come(job: Path, number: int) -> bool:
    """Return whether the newest checkpoint has this number and contains the partition."""
    if not job.exists() or not (complete := list_checkpoints(job)) or complete[-1][0] < number:
        return False
    return _knows_its_partition(job)


def _knows_its_partition(checkpoint: Path) -> bool:
    return any(source.positions for source in extract(read_checkpoint(checkpoint)).sources)


def test_checkpoints_of_earlier_run_with_same_job_id_are_reported(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """Flink restarts the job without its state, so the checkpoint numbers restart at 1.

    Two checkpoints of the earlier run, 38 seconds older, are copied next to the new checkpoints.
    """
    flink, kept, job_id = f"flink-{topic}", tmp_path / "checkpoints", uuid.uuid4().hex
    job = kept / job_id

    def run(until: int, retained: int) -> int:
        running = running_job(broker.bootstrap_servers, flink, topic, kept, job_id, retained)
        deadline = time.monotonic() + _SOON
        with running as (_, as_told):
            assert as_told == job_id
            while not _has_come(job, until):
                assert time.monotonic() < deadline
                time.sleep(0.02)
        return list_checkpoints(job)[-1][0]

    run(60, 100)
    earlier = job.rename(tmp_path / "earlier")
    # The first checkpoints may have completed before the job discovered the partition.
    numbers = [number for number, _ in list_checkpoints(earlier)]
    first = next(n for n in numbers if _knows_its_partition(earlier / f"chk-{n}"))
    newest = run(max(3, first), 3)
    for number in (newest + 1, newest + 2):
        chk = shutil.copytree(earlier / f"chk-{number}", job / f"chk-{number}")
        before = time.time() - 38
        os.utime(chk / "_metadata", (before, before))
    asked = ("-b", broker.bootstrap_servers)
    stale = migrate("to-spark", job, *asked)
    assert f"checkpoint {newest + 2}: " in stale.stderr
    assert (
        f"chk-{newest} in the same directory was written after this chk-{newest + 2}"
        in stale.stderr
    )
    right = migrate("to-spark", job / f"chk-{newest}", *asked)
    assert (right.code, right.stdout) == (4, "")
    assert (
        f"chk-{newest + 2} in the same directory was written before this chk-{newest}"
        in right.stderr
    )
    allowed = migrate("to-spark", job / f"chk-{newest}", *asked, "--allow-ran-on")
    assert allowed.code == 0, allowed.stderr


def _while_it_waits(
    act: Callable[[], object], broker: Broker, topic: str, folder: Path, *arguments: str | Path
) -> tuple[int, str]:
    """Call ``act`` while a run waits, and return the exit code and stderr of the run."""
    command = [sys.executable, "-m", "migrate", "commit-group", "--group", f"new-{topic}"]
    with subprocess.Popen(
        [*command, "-b", broker.bootstrap_servers, "--execute", "--yes", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        told = ""
        for line in process.stderr:
            told += line
            if line.startswith("waiting"):
                act()
    assert "for a checkpoint, which a running job would complete" in told
    return process.returncode, told


@pytest.mark.parametrize("sign", ["checkpoint", "group"])
def test_move_is_refused_if_job_progresses_during_wait(
    tmp_path: Path, broker: Broker, topic: str, sign: str
) -> None:
    chk, flink = _job(tmp_path / "job", topic, apart=2), f"flink-{topic}"
    broker.commit(flink, {(topic, 0): 7})

    def go_on() -> None:
        if sign == "group":
            broker.commit(flink, {(topic, 0): 9})
        else:
            write_source(chk.with_name("chk-8"), {0: splits(topic, [9])})

    code, told = _while_it_waits(go_on, broker, topic, tmp_path, chk, "--source-group", flink)
    assert code == 4
    (line,) = [line for line in told.splitlines() if "the job kept running; " in line]
    assert {"checkpoint": "has completed chk-8", "group": "from 7 to 9"}[sign] in line
    assert broker.committed(f"new-{topic}") == {}


def test_option_allow_ran_on_turns_progress_during_wait_into_warning(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    chk = _job(tmp_path / "job", topic, apart=2)

    def go_on() -> None:
        write_source(chk.with_name("chk-8"), {0: splits(topic, [9])})

    code, told = _while_it_waits(go_on, broker, topic, tmp_path, chk, "--allow-ran-on")
    assert code == 0, told
    assert "warning: the job kept running; it has completed chk-8" in told
    assert "has probably stopped" not in told
    assert broker.committed(f"new-{topic}") == {(topic, 0): 7}


@pytest.mark.parametrize("ahead_h", [1, -1])
def test_wait_does_not_depend_on_clock_of_machine_that_saved_plan(
    tmp_path: Path,
    broker: Broker,
    topic: str,
    commit_group: Callable[..., Result],
    ahead_h: int,
) -> None:
    """Regression: If the clocks differed, `migrate` did not wait for a newer checkpoint.

    The message claimed that no checkpoint had completed for 3602 s.
    """
    plan = tmp_path / "plan.json"
    saved = commit_group(_job(tmp_path / "job", topic, apart=1), "--plan-out", plan)
    assert saved.code == 0, saved.stderr
    ahead = datetime.now(timezone.utc) + timedelta(hours=ahead_h)
    edit_and_seal_plan(plan, lambda held: held.update(created_at=ahead.isoformat()))
    began = time.monotonic()
    done = migrate(
        *("commit-group", "--plan", plan, "--group", f"new-{topic}"),
        *("-b", broker.bootstrap_servers, "--execute", "--yes"),
    )
    assert done.code == 0, done.stderr
    assert "waiting 3 s" in done.stderr
    assert time.monotonic() - began < 30
    assert broker.committed(f"new-{topic}") == {(topic, 0): 7}


@pytest.mark.parametrize(
    ("apart", "says"),
    [
        (2.0, "with --execute, `migrate` first waits 4 s for a sign of a running job"),
        (300.0, "a checkpoint about every 300 s, so migrate did not wait"),
    ],
)
def test_dry_run_announces_wait_but_does_not_wait(
    tmp_path: Path, topic: str, commit_group: Callable[..., Result], apart: float, says: str
) -> None:
    """Only a run with --execute waits for a sign that the job is still running."""
    dry = commit_group(_job(tmp_path / "job", topic, apart))
    assert dry.code == 0, dry.stderr
    assert "cannot determine whether the job is still running" in dry.stderr
    assert says in dry.stderr
    assert "waiting" not in dry.stderr


def test_single_checkpoint_does_not_show_checkpoint_interval(
    tmp_path: Path, topic: str, commit_group: Callable[..., Result]
) -> None:
    """The command then does not wait for a newer checkpoint."""
    chk = write_source(tmp_path / "job" / "chk-7", {0: splits(topic, [7])})
    done = commit_group(chk, "--execute", "--yes")
    assert done.code == 0, done.stderr
    assert "the job's files do not show its checkpoint interval" in done.stderr
    assert "waiting" not in done.stderr


def test_stop_with_savepoint_proves_that_job_stopped(
    broker: Broker, commit_group: Callable[..., Result]
) -> None:
    (savepoint,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
    dry = commit_group(savepoint, *topic_map(create_golden_topics(broker, "orders", "payments")))
    assert dry.code == 0, dry.stderr
    assert "the job was stopped with this savepoint; use --flink-rest URL to check" in dry.stderr
    assert "cannot determine whether the job is still running" not in dry.stderr


def test_group_at_savepoint_positions_proves_that_job_was_not_restarted(
    broker: Broker, commit_group: Callable[..., Result]
) -> None:
    """Regression: A group without any commits was reported as "ok" with "no newer commits"."""
    (savepoint,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
    names = create_golden_topics(broker, "orders", "payments")
    flink = f"flink-{uuid.uuid4().hex}"

    def is_ok() -> bool:
        moved = commit_group(savepoint, *topic_map(names), "--source-group", flink)
        assert moved.code == 0, moved.stderr
        return f"ok: the job was stopped with this savepoint, and group {flink}" in moved.stderr

    assert not is_ok()
    positions = {
        (names[split["topic"]], split["partition"]): split["starting_offset"]
        for split in _splits(savepoint.name)
        if split["starting_offset"] >= 0  # otherwise, the start is a marker
    }
    broker.commit(flink, positions)
    assert is_ok()
    broker.commit(flink, {(names["orders"], 0): positions[names["orders"], 0] - 1})
    assert not is_ok()


def test_restarted_job_is_detected_by_querying_flink_before_commit(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """Regression: A job that was started during the confirmation prompt was not detected."""
    chk = write_source(tmp_path / "job" / "chk-7", {0: splits(topic, [7])})
    with recorded_flink() as (flink, url):
        flink.listed = {flink.finished}
        change = migrate_library.commit_group(
            chk,
            group=f"new-{topic}",
            bootstrap_servers=broker.bootstrap_servers,
            flink_rest=url,
            rollback_file=tmp_path / "back.json",
        )
        assert change.refusals == ()
        with pytest.raises(Refused, match=f"Flink lists job {flink.reading}"):
            change.execute(lambda: flink.listed.add(flink.reading))
    assert broker.committed(f"new-{topic}") == {}
    assert not (tmp_path / "back.json").exists()


def _splits(savepoint: str) -> Iterator[dict[str, Any]]:
    """Return the splits of a golden checkpoint that Flink's own classes read."""
    manifest = json.loads((GOLDEN / "manifest.json").read_text())
    (entry,) = (entry for entry in manifest["checkpoints"] if savepoint in entry["path"])
    for operator in entry["expected"]["operators"]:
        yield from operator["reader_splits"] or ()
