"""Offline decisions of a cut-over, and its messages when the run stops."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from decoder import StopKind
from migrate.extensions.cutover import roll_back
from migrate.extensions.cutover.command import Command
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.facts import Savepoint
from migrate.extensions.cutover.observe_stopped_job import (
    choose_job,
    read_savepoint,
    reported_savepoint,
)
from migrate.extensions.cutover.read_spec import read_spec
from migrate.extensions.cutover.record import Record
from migrate.extensions.cutover.run import cut_over
from migrate.extensions.cutover.steps import STEPS
from migrate.extensions.cutover.target_state import Started, last_query_batch, started_work
from migrate.inputs.flink.rest_api import FlinkJob
from migrate.inputs.flink.rest_client import FlinkRestError
from migrate.inputs.flink.restarted_job import job_started_again
from migrate.model.errors import CutOverStopped, MigrateError, Refused
from migrate.model.message import Message
from migrate.moves.plan import plan
from migrate.moves.to_spark import to_spark
from migrate.planning.verify import StartOutcome, Verification, VerifiedPartition, verify_log
from migrate.report.verification import outcome_lines
from migrate.targets.location import LocalDirectory
from migrate.targets.seed import remove_seed, write_seed
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.cut_over import act, facts_of, open_context, reason_done
from tests.support.plans import edit_and_seal_plan, edit_plan
from tests.unit.inputs.flink.test_rest_api import answering

_PATH = "s3://bucket/savepoints/savepoint-0a1b2c-0123456789ab"


def _job(job_id: str, began: int, ended: int | None, name: str = "orders") -> FlinkJob:
    return FlinkJob(job_id, name, "FINISHED" if ended else "RUNNING", began, ended)


def test_job_name_selects_running_job_or_else_newest_job() -> None:
    old, new, other = _job("a", 1, 2), _job("b", 3, 4), _job("c", 5, None, "payments")
    assert choose_job([old, new, other], "orders") == new
    assert choose_job([new, old, other], "b") == new
    beside = _job("f", 1, 5)
    assert choose_job([new, beside, old, other], "f") == beside
    running = _job("d", 2, None)
    assert choose_job([old, running, new], "orders") == running
    with pytest.raises(Refused) as several:
        choose_job([running, _job("e", 6, None)], "orders")
    assert _code_and_facts(several.value) == (
        "several-running-jobs",
        {"job": "orders", "ids": ["d", "e"]},
    )
    with pytest.raises(Refused) as unknown:
        choose_job([other], "orders")
    assert _code_and_facts(unknown.value) == (
        "job-name-unknown",
        {"job": "orders", "running": ["payments"]},
    )
    with pytest.raises(Refused) as none:
        choose_job([], "orders")
    assert none.value.codes == ["no-job-running"]


def _code_and_facts(error: MigrateError) -> tuple[str, Any]:
    (reason,) = error.reasons
    assert isinstance(reason, Message)
    return reason.code, reason.facts


@pytest.mark.parametrize(("ended", "state"), [(None, "RUNNING"), (40, "FINISHED")])
def test_job_id_is_refused_if_job_was_restarted_with_new_id(ended: int | None, state: str) -> None:
    """Regression: The dry run found no obstacle, but the plan was refused when it was applied."""
    jobs = [_job("a", 10, 20), _job("b", 30, ended), _job("c", 50, None, "payments")]
    with pytest.raises(Refused) as refused:
        choose_job(jobs, "a")
    code, facts = _code_and_facts(refused.value)
    assert (code, facts["new_id"], facts["new_state"]) == ("job-restarted-with-new-id", "b", state)


@pytest.mark.parametrize(
    ("others", "newer"),
    [
        ([], None),
        ([_job("b", 30, None)], "b"),
        ([_job("b", 30, 40)], "b"),
        ([_job("b", 30, 40), _job("c", 50, 60)], "c"),
        ([_job("b", 5, None)], None),  # a different job that ran at the same time
        ([_job("b", 30, None, "payments")], None),
    ],
)
def test_restart_of_job_after_stop_is_detected(others: list[FlinkJob], newer: str | None) -> None:
    stopped = _job("a", 10, 20)
    for jobs in ([stopped, *others], others):  # Flink may no longer list it
        known = [(job, None) for job in jobs]
        again = job_started_again(known, _PATH, 20, stopped_job="a", job_name="orders")
        assert (again.job_id if again else None) == newer


def test_restart_of_job_with_fixed_id_is_detected() -> None:
    def again(job: FlinkJob, ended_ms: int | None) -> FlinkJob | None:
        return job_started_again([(job, None)], _PATH, ended_ms, stopped_job="a", job_name="orders")

    assert again(_job("a", 10, 20), None) is None
    for job in (_job("a", 30, None), _job("a", 30, 40)):
        assert again(job, 20) == job
    # Flink no longer lists the stopped job, so every listed job of that name is newer.
    assert again(_job("b", 1, 2), None) is not None


@pytest.mark.parametrize(
    ("job", "restored_from", "counts"),
    [
        (_job("b", 5, 6, "another"), _PATH, True),  # with any name and time
        (_job("b", 5, 6, "another"), "s3a://bucket/copied/savepoint-0a1b2c-0123456789ab/", True),
        (_job("b", 5, 6, "another"), "s3://bucket/savepoints/savepoint-0a1b2c-ffffffffffff", False),
        (_job("b", 5, 6, "another"), None, False),
        (_job("b", 5, 6), None, False),  # this job wrote the savepoint
        (_job("b", 5, None), None, True),  # this job kept running
        (_job("b", 30, 40), None, True),  # possibly without state
        (_job("b", 30, 40), "s3://bucket/chk-7", True),
    ],
)
def test_restart_of_job_stopped_outside_cut_over_is_detected(
    job: FlinkJob, restored_from: str | None, counts: bool
) -> None:
    known = [(job, restored_from)]
    again = job_started_again(known, _PATH, 20, stopped_job="orders")
    assert again == (job if counts else None)
    # The cut-over stopped the job with the same savepoint.
    if restored_from is not None and counts:
        ours = job_started_again(known, _PATH, 50, stopped_job="a", job_name="orders")
        assert ours == (job if "0a1b2c" in restored_from else None)


def test_restart_from_retained_checkpoint_is_recognized_by_full_path() -> None:
    """Checkpoints of different jobs can have the same name, such as chk-7."""
    for restored_from, counts in (("file:///flink/0a/chk-7", True), ("/flink/0b/chk-7", False)):
        known = [(_job("b", 5, 6), restored_from)]
        again = job_started_again(known, "file:/flink/0a/chk-7", None, stopped_job=None)
        assert (again is not None) == counts


def test_reported_savepoint_must_match_both_number_and_path() -> None:
    """Job `a` was restarted under its fixed ID without state, so its savepoint number is lower."""
    old, new = (
        Savepoint(f"/s/a/savepoint-{name}", number, StopKind.SUSPEND, "0" * 64)
        for name, number in (("old", 25), ("new", 3))
    )
    assert reported_savepoint([old, new], (3, "file:/s/a/savepoint-new/")) == new
    assert reported_savepoint([old, new], (25, "file:/s/a/savepoint-new")) is None
    assert reported_savepoint([old], (3, "file:/s/a/savepoint-new")) is None
    assert reported_savepoint([old], None) is None


def _verified(*places: tuple[str, int]) -> Verification:
    found = tuple(VerifiedPartition(*place, 5, 5, StartOutcome.OK) for place in places)
    return Verification("spark:x", found, has_run=True)


_A, _B = ("a", 0), ("b", 0)


@pytest.mark.parametrize(
    ("batches", "outcomes"),
    [
        ([(0, {"0": {_A: 5}, "1": {_B: 5}}), (1, {"0": {_A: 9}, "1": {_B: 5}})], ["ok", "ok"]),
        ([(0, {"0": {_A: 6}})], ["ok", "missing"]),
        ([(0, {"0": {_A: 6, _B: 7}, "1": {}})], ["ok", "missing"]),  # read by a different source
        ([(0, {"0": {_A: 3}, "1": {_B: 5}})], [2, "ok"]),
        ([(7, {"0": {_A: 9}, "1": {_B: 9}}), (8, {"0": {_A: 9}, "1": {_B: 8}})], ["ok", 1]),
    ],
)
def test_verification_compares_each_batch_with_seed_and_previous_batch(
    batches: Any, outcomes: list[str | int]
) -> None:
    """A partition that the batches omit is missing.

    If a batch ends before the seed or before the previous batch, records are duplicated.
    """
    judged = verify_log(_verified(_A, _B), {"0": {_A: 5}, "1": {_B: 5}}, batches)
    found = [one.records or one.outcome.value for one in judged.partitions]
    assert found == outcomes
    assert judged.verified == (outcomes == ["ok", "ok"])


def test_verification_mentions_skipped_batch_if_batch_end_decreases() -> None:
    """The batches of the query end at 8, 14, and then 8."""
    batches = [(number, {"0": {_A: end}}) for number, end in enumerate((8, 14, 8))]
    judged = verify_log(_verified(_A), {"0": {_A: 5}}, batches)
    assert judged.partitions[0].records == 6
    (told,) = outcome_lines(judged)
    assert told.startswith("repeated (1): a batch of the query's log ends below the previous batch")
    assert "skipped a failed batch" in told
    below = replace(judged.partitions[0], started=3, expected=5)
    (told,) = outcome_lines(replace(judged, partitions=(below,)))
    assert told.startswith("repeated (1): the target starts below the position")


def _spec(folder: Path, **fields: Any) -> Path:
    path = folder / "orders.yaml"
    spec = {
        "version": 1,
        "flink": {"savepoint": "savepoint-1"},
        "kafka": {"bootstrap-servers": "127.0.0.1:1"},
        "move": {"gone": "skip"},
        "target": {"checkpoint-dir": "query"},
        "start": "exit 3",
        "timeouts": {"first-batch": "2m"},
    }
    path.write_text(yaml.safe_dump({**spec, **fields}))
    return path


@pytest.fixture
def seeded(tmp_path: Path) -> Path:
    """Return a spec whose target is written, as after the apply step."""
    spec = _spec(tmp_path)
    file = read_spec(spec)
    file.folder.mkdir()
    record = Record(file, write=True, replace_rolled_back=True)
    savepoint = write_source(tmp_path / "savepoint-1", {0: splits("orders", [5, 6])})
    plan(savepoint).save(record.plan_path)
    to_spark(plan=record.plan_path, checkpoint_dir=tmp_path / "query")
    context = CutOverContext(file, record)
    record.change_flink(
        savepoint=str(savepoint),
        savepoint_sha256=read_savepoint(context, str(savepoint)).sha256,
        finished=True,
    )
    query_id = json.loads((tmp_path / "query/metadata").read_text())["id"]
    record.change(moved_with=file.deciding_values(), query_id=query_id, written="now")
    return spec


def _run(spec: Path, *more: str) -> Result:
    return migrate("cut-over", spec, "--execute", "--yes", *more)


_RESTART = "or start the Flink job from its savepoint"


@pytest.mark.slow
def test_restart_from_savepoint_is_advised_only_before_target_starts(seeded: Path) -> None:
    before = _run(seeded)
    assert before.code == 6, before.stderr  # the verify step needs a broker
    assert before.stderr.splitlines()[-1].startswith(_RESTART)
    query = seeded.parent / "query"
    (query / "offsets").mkdir()
    (query / "offsets/0").write_text("v1\n{}\n{}\n")
    (read_spec(seeded).folder / "query.state").write_text("7")  # failed in the first batch
    failed = _run(seeded)
    assert failed.code == 5, failed.stderr
    assert "failed with exit code 3" in failed.stderr
    assert _RESTART not in failed.stderr
    last = failed.stderr.splitlines()[-1]  # after the command's log
    assert last.startswith("do not start the Flink job from its savepoint, because the query in ")


def _second(seeded: Path, **fields: Any) -> Path:
    """Return a second spec for the job of a first one."""
    second = {**yaml.safe_load(seeded.read_text()), "target": {"checkpoint-dir": "query-2"}}
    path = seeded.with_name("again.yaml")
    path.write_text(yaml.safe_dump({**second, **fields}))
    return path


@pytest.mark.parametrize("mode", [(), ("--execute", "--yes")])
def test_savepoint_that_another_cut_over_has_moved_is_refused(
    seeded: Path, mode: tuple[str, ...]
) -> None:
    """Regression: Every record was processed twice, and the result was "lost 0, repeated 0"."""
    first = read_spec(seeded)
    refused = migrate("cut-over", _second(seeded), *mode)
    assert refused.code == 4, refused.stderr
    assert "[savepoint-already-moved]" in refused.stderr
    assert f"cut-over orders (record {first.folder}) has already moved savepoint" in refused.stderr
    assert f"to spark:{seeded.parent}/query;" in refused.stderr
    assert not (seeded.parent / "query-2").exists()
    # The broker does not answer, so an accepted spec fails later.
    assert migrate("cut-over", _second(seeded), *mode, "--adopt").code == 6
    # A cut-over with the same target is refused because of the target.
    same = _second(seeded, target={"checkpoint-dir": "query"})
    assert "savepoint-already-moved" not in migrate("cut-over", same, *mode).stderr


@pytest.mark.slow
def test_savepoint_of_rolled_back_cut_over_can_be_moved(seeded: Path) -> None:
    assert _run(seeded, "--back").code == 0
    second = migrate("cut-over", _second(seeded))
    assert second.code == 6, second.stderr


@pytest.mark.slow
def test_spec_may_change_after_rollback_has_removed_target(seeded: Path) -> None:
    folder, query = read_spec(seeded).folder, seeded.parent / "query"
    (folder / "query.log").write_text("said")
    (query / "offsets").mkdir()  # Spark does so before it plans a batch
    # In Real-Time Mode, a query writes records before it logs its first batch.
    refused = _run(seeded, "--back")
    assert (refused.code, query.exists()) == (4, True)
    assert "has not logged a batch; in Real-Time Mode" in refused.stderr
    back = _run(seeded, "--back", "--nothing-started")
    assert back.code == 0, back.stderr
    assert not query.exists()
    names = sorted(one.name.partition("-")[0] for one in folder.iterdir())
    assert names == ["lock", "plan", "query", "record.html", "record.json"]
    # After the rollback, the spec may change.
    _spec(seeded.parent, target={"checkpoint-dir": "elsewhere"})
    assert "refused: " not in migrate("cut-over", seeded).stderr


@pytest.mark.parametrize(
    ("state", "how"),
    [
        ("0\n", "the start command succeeded"),
        ("began\n", "its exit code is unknown"),
        # Regression: After `kubectl apply && kubectl wait`, a query started at the log end.
        ("1\n", "failed with exit code 1, but may have submitted the query"),
    ],
)
def test_rollback_requires_override_if_query_may_have_started(
    seeded: Path, state: str, how: str
) -> None:
    """The override is ``--nothing-started``.

    Without its seed, a query would start at its own startingOffsets while the Flink job runs.
    """
    proof, query = read_spec(seeded).folder / "query.state", seeded.parent / "query"
    proof.write_text(state)
    for mode in ((), ("--execute", "--yes")):
        refused = migrate("cut-over", seeded, "--back", *mode)
        assert refused.code == 4, refused.stderr
        assert how in refused.stderr
        assert "if nothing has started, add --nothing-started" in refused.stderr
        assert query.exists()
    assert _run(seeded, "--back", "--nothing-started").code == 0
    assert not query.exists()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"flink": {"savepoint": "/other"}}, "savepoint-1 to /other"),
        (
            {"flink": {"rest": "http://127.0.0.1:1", "job": "orders", "savepoints": "s"}},
            "savepoint-1 to unset",
        ),
        ({"move": {"gone": "fail"}}, "move.gone has changed from skip to fail"),
        (
            {"move": {"on-expired": "earliest"}},
            "move.on-expired has changed from unset to earliest",
        ),
        ({"target": {"group": "g"}}, "target.group has changed from unset to g"),
        ({"sink": "/lake"}, "sink has changed from unset to /lake"),
    ],
)
def test_spec_change_after_target_is_written_is_refused(
    seeded: Path, changed: dict[str, Any], told: str
) -> None:
    _spec(seeded.parent, **changed)
    for mode in ((), ("--execute", "--yes"), ("--back",)):
        refused = migrate("cut-over", seeded, *mode)
        assert (refused.code, refused.stdout) == (4, "")
        assert refused.stderr.count(told) == 1
        assert (
            "or, to start a new cut-over, set the key `record` in the spec to a new folder"
            in refused.stderr
        )


def test_every_dry_run_warns_if_restart_of_job_cannot_be_detected(seeded: Path) -> None:
    """Regression: flink.rest was removed from the spec after the check, and no later run warned."""
    for flink, reason in (
        ({}, "the spec has no flink.rest, so"),
        ({"rest": "http://127.0.0.1:1"}, "cannot determine whether the job was restarted"),
    ):
        _spec(seeded.parent, flink={"savepoint": "savepoint-1", **flink})
        dry = migrate("cut-over", seeded, "--until", "apply")
        assert dry.code == 0, dry.stderr
        assert dry.stderr.count(f"warning: {reason}") == 1
        assert dry.stderr.count("[restart-unseen]") == 1
    # The apply and verify steps change nothing here. The start of the query needs the answer.
    with pytest.raises(FlinkRestError, match="no answer"):
        act(open_context(seeded), "start")


def test_rollback_is_refused_if_query_starts_during_confirmation(primed: Path) -> None:
    """Regression: A query started during the prompt, and its primed location was renamed."""
    _not_written(primed)
    act(open_context(primed), "apply")
    query = primed.parent / "query"

    def begin(_: str) -> None:
        (query / "offsets/1").write_text('v1\n{}\n{"orders":{"0":7,"1":6}}')

    with pytest.raises(Refused) as refused:
        cut_over(primed, execute=True, back=True, confirm=begin)
    code, facts = _code_and_facts(refused.value)
    assert code == "query-started"
    assert facts["evidence"].endswith("has planned batch 1")
    assert query.exists()


def _fail_to_write_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, _: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("migrate.extensions.cutover.record.replace_file", full)


def test_rollback_of_target_is_reported_even_if_record_cannot_be_updated(
    seeded: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: On a full disk, the target was reported as "unchanged, or was partly removed"."""

    query, remove = seeded.parent / "query", remove_seed

    def remove_and_fill_disk(location: LocalDirectory) -> None:
        remove(location)
        _fail_to_write_record(monkeypatch)

    monkeypatch.setattr(roll_back, "remove_seed", remove_and_fill_disk)
    with pytest.raises(OSError, match="No space left"):
        cut_over(seeded, execute=True, back=True, nothing_started=True)
    monkeypatch.undo()
    assert not query.exists()
    (said,) = [line for line in caplog.messages if "[run-stopped]" in line]
    assert "stopped at back: the target was rolled back, but the record was not updated" in said
    # Regression: The rerun was refused, because a reader might have started before the deletion.
    assert _run(seeded, "--back").code == 0


def test_rollback_removes_nothing_if_record_cannot_be_written(
    seeded: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fill_disk(_: str) -> None:
        _fail_to_write_record(monkeypatch)

    with pytest.raises(OSError, match="No space left"):
        cut_over(seeded, execute=True, back=True, nothing_started=True, confirm=fill_disk)
    monkeypatch.undo()
    assert (seeded.parent / "query/metadata").exists()
    (said,) = [line for line in caplog.messages if "[run-stopped]" in line]
    assert "stopped at back: the target is unchanged" in said
    assert _run(seeded, "--back", "--nothing-started").code == 0


def test_rollback_removes_seed_whose_metadata_is_empty(seeded: Path) -> None:
    """Regression: A full disk left an empty file, and the rollback could not be resumed."""
    query = seeded.parent / "query"
    (query / "metadata").write_bytes(b"")
    back = _run(seeded, "--back", "--nothing-started")
    assert (back.code, f"remove the checkpoint location {query}\n" in back.stderr) == (0, True)
    assert not query.exists()


@pytest.mark.parametrize("fails", ["record", "location"])
def test_location_still_belongs_to_first_cut_over_if_adoption_failed(
    seeded: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """Regression: On a full disk, the location got an ID that no record contained."""
    two = seeded.with_name("two.yaml")
    shutil.copy(seeded, two)
    shutil.copytree(read_spec(seeded).folder, read_spec(two).folder)
    nothing = {"moved_with": None, "written": None, "query_id": None}
    open_context(two).record.change(id="f" * 16, **nothing)
    context, metadata = open_context(two, adopt=True), seeded.parent / "query/metadata"
    before = metadata.read_text()
    if fails == "record":
        _fail_to_write_record(monkeypatch)
    else:
        monkeypatch.setattr(LocalDirectory, "write", _full_location)
    with pytest.raises(OSError, match="No space left"):
        act(context, "apply")
    monkeypatch.undo()
    assert metadata.read_text() == before
    assert reason_done(open_context(seeded), "apply") is not None
    assert open_context(two).record.model.moved_with is None
    act(open_context(two, adopt=True), "apply")
    adopted = open_context(two).record.model.query_id
    assert json.loads(metadata.read_text()) == {"id": adopted}


def _only_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run only the apply step, because the other steps need a broker."""
    steps = [step for step in STEPS if step.name == "apply"]
    monkeypatch.setattr("migrate.extensions.cutover.run.STEPS", steps)
    monkeypatch.setattr("migrate.extensions.cutover.run.NAMES", ["apply"])


def test_adopted_location_is_reported_as_written_despite_full_disk(
    seeded: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: The target was reported as "written only partly", and the job as stopped."""
    nothing = {"moved_with": None, "written": None, "query_id": None}
    open_context(seeded).record.change(id="f" * 16, **nothing)
    _only_apply(monkeypatch)
    write = LocalDirectory.write

    def write_last(self: LocalDirectory, path: str, content: bytes) -> None:
        write(self, path, content)
        _fail_to_write_record(monkeypatch)

    monkeypatch.setattr(LocalDirectory, "write", write_last)
    with pytest.raises(OSError, match="No space left"):
        cut_over(seeded, execute=True, adopt=True)
    (said,) = [line for line in caplog.messages if "[run-stopped]" in line]
    state = "this run has not stopped a job, and the target is written"
    assert said == f"stopped at apply: {state} [run-stopped]"


@pytest.mark.parametrize(
    ("fails", "state"),
    [
        ("check", "this run has not written the target"),
        ("record", "this run has not written the target"),
        ("location", "this run has not written the target"),
        ("part of location", "the target may be incomplete"),
        ("record after location", "the target is written"),
    ],
)
def test_message_for_failed_write_of_seed_reports_state_of_target(
    seeded: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fails: str,
    state: str,
) -> None:
    """Regression: Every failure was reported as "the target was written only partly or not at all".

    The messages also reported that the Flink job had stopped, although this run had not stopped it.
    """
    _not_written(seeded)
    shutil.rmtree(seeded.parent / "query")
    _only_apply(monkeypatch)
    of_write = "migrate.extensions.cutover.write_target."

    def write_last(*arguments: Any) -> None:
        write_seed(*arguments)
        _fail_to_write_record(monkeypatch)

    if fails == "record":  # before the write
        change_record = Record.change

        def change(self: Record, **fields: Any) -> None:
            if "moved_with" in fields:
                _fail_to_write_record(monkeypatch)
            change_record(self, **fields)

        monkeypatch.setattr(Record, "change", change)
    elif fails == "check":
        monkeypatch.setattr(f"{of_write}check_plan", _refuse)
    else:
        monkeypatch.setattr(f"{of_write}check_plan", lambda *_: None)
        writes = write_last
        if fails == "location":
            writes = _full_location
        elif fails == "part of location":
            writes = _full_after_first_file
        monkeypatch.setattr(f"{of_write}write_seed", writes)
    with pytest.raises((OSError, MigrateError)):
        cut_over(seeded, execute=True)
    (said,) = [line for line in caplog.messages if "[run-stopped]" in line]
    assert said == f"stopped at apply: this run has not stopped a job, and {state} [run-stopped]"


def _refuse(*_: object) -> None:
    raise Refused("the plan is not valid")


def _full_location(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def _full_after_first_file(_: object, location: LocalDirectory, *__: object) -> None:
    location.write("metadata", b"")
    _full_location()


def test_checkpoint_dir_can_be_changed_after_it_could_not_be_written(
    seeded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: The message advised a different directory, but the next run refused the change.

    ``target.checkpoint-dir`` may not change after the target was written.
    """
    _not_written(seeded)
    shutil.rmtree(seeded.parent / "query")
    _only_apply(monkeypatch)
    monkeypatch.setattr("migrate.extensions.cutover.write_target.check_plan", lambda *_: None)
    with monkeypatch.context() as full, pytest.raises(OSError, match="No space left"):
        full.setattr("migrate.extensions.cutover.write_target.write_seed", _full_location)
        cut_over(seeded, execute=True)
    spec = yaml.safe_load(seeded.read_text())
    seeded.write_text(yaml.safe_dump({**spec, "target": {"checkpoint-dir": "other"}}))
    (applied,) = cut_over(seeded, execute=True).steps
    assert applied.text == f"wrote the checkpoint location {seeded.parent / 'other'}"
    assert (seeded.parent / "other/metadata").exists()


def test_rollback_works_without_readable_plan(seeded: Path) -> None:
    plan_path = read_spec(seeded).folder / "plan.json"
    for damage, code in (
        (lambda: plan_path.write_text("{"), "plan-file-unreadable"),
        (plan_path.unlink, "plan-file-missing"),
    ):
        damage()
        refused = migrate("cut-over", seeded)
        assert refused.code == 4, refused.stderr
        assert f"[{code}]" in refused.stderr
    back = _run(seeded, "--back")
    assert back.code == 0, back.stderr
    assert not (seeded.parent / "query").exists()


def test_edited_plan_is_not_silently_replaced_before_apply(seeded: Path) -> None:
    """Regression: A user's edit of the reviewed plan was overwritten without a message."""
    shutil.rmtree(seeded.parent / "query")
    context = open_context(seeded)
    context.record.change(moved_with=None, query_id=None, written=None)
    path = context.record.plan_path
    edit_plan(path, lambda plan: plan.update(warnings=["edited"]))
    edited = path.read_text()
    with pytest.raises(Refused) as refused:
        act(context, "plan")
    assert refused.value.codes == ["saved-plan-edited"]
    assert path.read_text() == edited


def test_cut_over_record_of_unsupported_version_is_refused(seeded: Path) -> None:
    path = read_spec(seeded).folder / "record.json"
    for content, told in (
        (
            {**json.loads(path.read_text()), "version": 1},
            "[file-of-other-version]",
        ),
        ({"version": 3}, "not a record of version 2"),
        ({}, "not a record of version 2; a cut-over creates this file [file-of-unknown-kind]"),
    ):
        path.write_text(json.dumps(content))
        refused = migrate("cut-over", seeded)
        assert (refused.code, refused.stdout) == (3, ""), refused.stderr
        assert told in refused.stderr


def test_edited_cut_over_record_is_refused(seeded: Path) -> None:
    path = read_spec(seeded).folder / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "query_id": "another"}))
    refused = migrate("cut-over", seeded, "--back")
    assert (refused.code, refused.stdout) == (3, ""), refused.stderr
    assert "[file-edited]" in refused.stderr


@pytest.mark.slow
def test_start_command_and_timeouts_may_change_after_apply(seeded: Path) -> None:
    _spec(seeded.parent, start="exit 4", timeouts={"stop": "1m"})
    assert migrate("cut-over", seeded).code == 6  # the verify step needs a broker


def test_change_of_flink_job_in_spec_is_refused_after_stop_request(tmp_path: Path) -> None:
    flink = {"rest": "http://127.0.0.1:1", "job": "orders", "savepoints": "s"}
    spec = _spec(tmp_path, flink=flink)
    file = read_spec(spec)
    file.folder.mkdir()
    Record(file, write=True, replace_rolled_back=True).change(state="begun")
    _spec(tmp_path, flink={**flink, "job": "payments"})  # no job was stopped yet
    assert migrate("cut-over", spec).code == 6
    _spec(tmp_path, flink=flink)
    Record(file, write=True, replace_rolled_back=True).change_flink(
        job_id="ab" * 16, job_name="orders"
    )
    assert migrate("cut-over", spec).code == 6
    _spec(tmp_path, flink={**flink, "rest": "http://localhost:1"})
    moved = migrate("cut-over", spec)
    assert moved.code == 6
    assert (
        "the host in flink.rest has changed from 127.0.0.1 to localhost, so migrate cannot see a"
        in moved.stderr
    )
    _spec(tmp_path, flink={**flink, "job": "ab" * 16})
    assert migrate("cut-over", spec).code == 6
    _spec(tmp_path, flink={**flink, "job": "payments"})
    refused = migrate("cut-over", spec)
    assert refused.code == 4
    assert f"flink.job has changed from orders ({'ab' * 16}) to payments" in refused.stderr


def test_savepoint_in_spec_cannot_be_replaced_with_running_job(tmp_path: Path) -> None:
    """Regression: A running job counted as stopped because of a different job's savepoint."""
    spec = _spec(tmp_path)
    file = read_spec(spec)
    file.folder.mkdir()
    Record(file, write=True, replace_rolled_back=True).change_flink(savepoint="/s/savepoint-1")
    _spec(tmp_path, flink={"rest": "http://127.0.0.1:1", "job": "orders", "savepoints": "s"})
    refused = migrate("cut-over", spec)
    assert refused.code == 4
    assert "flink.savepoint was removed (it was /s/savepoint-1)" in refused.stderr


@pytest.mark.parametrize("stopped_with", ["/s/savepoint-2", None])
def test_adding_savepoint_to_spec_is_refused_after_stop_request(
    stopped_with: str | None, tmp_path: Path
) -> None:
    """Regression: The target started at an older savepoint and was verified."""
    spec = _spec(tmp_path)
    file = read_spec(spec)
    file.folder.mkdir()
    Record(file, write=True, replace_rolled_back=True).change_flink(
        job_id="ab" * 16, job_name="orders", savepoint=stopped_with
    )
    for mode in ((), ("--execute", "--yes"), ("--back",)):
        refused = migrate("cut-over", spec, *mode)
        assert refused.code == 4, refused.stderr
        assert f"flink.savepoint was added ({tmp_path}/savepoint-1)" in refused.stderr
        assert f"stop orders ({'ab' * 16})" in refused.stderr
        assert "[savepoint-key-added]" in refused.stderr


def test_rollback_is_refused_while_flink_stops_job(tmp_path: Path) -> None:
    """The run that requested the stop has ended, and Flink cannot cancel a stop."""
    job_id = "ab" * 16
    asked = hashlib.sha256(f"cut-over {job_id} 0".encode()).hexdigest()[:32]
    job = {"jid": job_id, "name": "orders", "state": "RUNNING", "start-time": 1, "end-time": -1}
    answers = {
        "/jobs/overview": json.dumps({"jobs": [job]}),
        f"/jobs/{job_id}/savepoints/{asked}": '{"status": {"id": "IN_PROGRESS"}}',
    }
    with answering(200, answers) as (url, _):
        flink = {"rest": url, "job": "orders", "savepoints": "s"}
        spec = _spec(tmp_path, flink=flink)
        file = read_spec(spec)
        file.folder.mkdir()
        Record(file, write=True, replace_rolled_back=True).change_flink(
            job_id=job_id, job_name="orders"
        )
        for mode in ((), ("--execute", "--yes")):
            back = migrate("cut-over", spec, "--back", *mode)
            assert back.code == 4, back.stderr
            assert f"Flink is still stopping job {job_id} (orders)" in back.stderr
            assert "[stop-underway]" in back.stderr
        dry = migrate("cut-over", spec)
        assert dry.code == 0, dry.stderr
        assert "Flink is already stopping the job" in dry.stdout


# -- migration of keyed states -------------------------------------------------------------------

# Writes the files of a primed location that a cut-over checks. The tests in
# tests/integration/test_cut_over.py run the real `migrate.spark.prime`.
_PRIMES = """
mkdir -p $CUT_OVER_CHECKPOINT_DIR/sources/0 && cd $CUT_OVER_CHECKPOINT_DIR
mkdir offsets commits && {state}
grep -q orders "$CUT_OVER_PLAN" && test -d "$CUT_OVER_SAVEPOINT" || exit 9
printf '{{"id":"00000000-0000-0000-0000-000000000000"}}' >metadata
printf '\\0v1\\n{seed}' >sources/0/0
printf 'v1\\n{{}}\\n{end}' >offsets/0
printf 'v1\\n{{}}' >commits/{commit}
"""
_RIGHT = {
    "seed": '{"orders":{"0":5,"1":6}}',
    "end": '{"orders":{"0":5,"1":6}}',
    "state": "mkdir -p state/0/0 && echo 7 >state/0/0/1.delta",
    "commit": "0",
}


@pytest.fixture
def primed(seeded: Path) -> Path:
    """Return a spec whose target will be primed. The plan exists, and nothing is written."""
    shutil.rmtree(seeded.parent / "query")
    primes = {"states": ["counts/n"], "prime": _PRIMES.format(**_RIGHT)}
    return _spec(seeded.parent, **primes)


def _not_written(spec: Path) -> None:
    """Change the record to the state before the target was written."""
    edit_and_seal_plan(
        read_spec(spec).folder / "record.json",
        lambda record: record.update(moved_with=None, primed=None, written=None),
    )


def test_primed_location_is_verified_and_recognized_by_later_run(primed: Path) -> None:
    _not_written(primed)
    context, query = open_context(primed), primed.parent / "query"
    assert reason_done(context, "apply") is None
    told = f"primed {query}; batch 0 contains the state and ends at the planned offsets"
    assert act(context, "apply") == told
    assert context.record.model.primed == 0
    assert _begun(context) is Started.NO and _first_batch(context) is None

    # The run was killed before it recorded the primed batch.
    context.record.change(primed=None, query_id=None)
    again = open_context(primed)
    assert reason_done(again, "apply") is None
    act(again, "apply")
    assert again.record.model.primed == 0
    # The query's own first batch follows the primed batch.
    (query / "offsets/1").write_text('v1\n{}\n{"orders":{"0":7,"1":6}}')
    assert _begun(again) is Started.YES and _first_batch(again) is None
    (query / "commits/1").write_text("v1\n{}")
    assert _first_batch(again) == 1
    assert reason_done(again, "apply") == f"spark:{query} contains the planned offsets"
    back = _run(primed, "--back")
    assert back.code == 4 and "the query has started from " in back.stderr


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"commit": "none"}, "location-not-primed"),
        ({"state": "true"}, "primed-state-missing"),
        ({"state": "mkdir -p state/0/0"}, "primed-state-missing"),
        ({"seed": '{"orders":{"0":5,"1":5}}'}, "primed-seed-differs"),
        ({"end": '{"orders":{"0":5,"1":7}}'}, "primed-batches-differ"),
        ({"end": '{"orders":{"0":5}}'}, "primed-batches-differ"),
    ],
)
def test_incorrectly_primed_location_is_refused(
    primed: Path, wrong: dict[str, str], code: str
) -> None:
    _not_written(primed)
    spec = _spec(primed.parent, states=["counts/n"], prime=_PRIMES.format(**{**_RIGHT, **wrong}))
    with pytest.raises(Refused) as refused:
        act(open_context(spec), "apply")
    assert refused.value.codes == [code]
    with pytest.raises(Refused) as again:
        reason_done(open_context(spec), "apply")
    assert again.value.codes == [code]
    # The record contains the values of the spec, so a change of the states is detected.
    assert open_context(spec).record.model.moved_with == read_spec(spec).deciding_values()
    _not_written(spec)  # as if the location was primed manually
    with pytest.raises(Refused) as by_hand:
        reason_done(open_context(spec), "apply")
    assert by_hand.value.codes == [code]


def _begun(context: CutOverContext) -> Started:
    return started_work(facts_of(context, "start"))[0]


def _first_batch(context: CutOverContext) -> int | None:
    return last_query_batch(facts_of(context, "start"))


def _fails(spec: Path) -> Path:
    """Run a script that primes the location and then fails, and return its spec."""
    spec = _spec(spec.parent, states=["counts/n"], prime=_PRIMES.format(**_RIGHT) + "exit 1")
    with pytest.raises(CutOverStopped) as stopped:
        act(open_context(spec), "apply")
    assert stopped.value.codes == ["prime-command-failed"]
    return spec


def test_location_of_failed_prime_command_is_refused_until_it_is_removed(primed: Path) -> None:
    _not_written(primed)
    spec, query = _fails(primed), primed.parent / "query"
    for step in ("plan", "apply"):
        with pytest.raises(Refused) as failed:
            reason_done(open_context(spec), step)
        assert _code_and_facts(failed.value) == (
            "priming-failed",
            {"location": str(query), "exit_code": 1},
        )
    for mode in ((), ("--back",), ("--execute", "--yes")):
        refused = migrate("cut-over", spec, *mode)
        assert refused.code in (4, 5), refused.stderr
        assert "[priming-failed]" in refused.stderr
    (state := read_spec(spec).folder / "prime.state").write_text("began\n")  # power failure
    with pytest.raises(Refused) as unknown:
        reason_done(open_context(spec), "apply")
    assert unknown.value.codes == ["priming-end-unknown"]
    state.write_text("1\n")
    # The states cannot be removed from the spec either.
    changed = migrate("cut-over", _spec(primed.parent))
    assert changed.code == 4 and "states has changed from counts/n to unset" in changed.stderr

    shutil.rmtree(query)
    spec = _spec(primed.parent, states=["counts/n"], prime=_PRIMES.format(**_RIGHT))
    assert reason_done(open_context(spec), "apply") is None
    assert act(open_context(spec), "apply").startswith("primed ")
    assert reason_done(open_context(spec), "apply") == f"spark:{query} contains the planned offsets"


@pytest.mark.slow
def test_spec_may_change_after_rollback_of_failed_prime_command(primed: Path) -> None:
    _not_written(primed)
    spec = _fails(primed)
    shutil.rmtree(primed.parent / "query")
    back = _run(spec, "--back")
    assert back.code == 0, back.stderr
    changed = migrate("cut-over", _spec(primed.parent))
    assert "refused: " not in changed.stderr, changed.stderr


def test_spec_values_are_recorded_when_primed_location_is_adopted(primed: Path) -> None:
    _not_written(primed)
    act(open_context(primed), "apply")
    _not_written(primed)
    (read_spec(primed).folder / "prime.state").unlink()
    with pytest.raises(Refused, match=r"take over the query with adopt=True$") as refused:
        reason_done(open_context(primed), "apply")
    assert refused.value.codes == ["location-of-other-writer"]
    act(open_context(primed, adopt=True), "apply")
    assert reason_done(open_context(primed), "apply") is not None
    assert open_context(primed).record.model.moved_with == read_spec(primed).deciding_values()


def test_primed_location_is_refused_if_spec_no_longer_has_states(primed: Path) -> None:
    """Regression: Without `states`, a primed batch counted as the query's own batch.

    Therefore the start command was not run.
    """
    _not_written(primed)
    act(open_context(primed), "apply")
    _not_written(primed)
    spec = _spec(primed.parent)
    for mode in ((), ("--execute", "--yes")):
        refused = migrate("cut-over", spec, *mode)
        assert refused.code in (4, 5), refused.stderr
        assert "[location-has-batches]" in refused.stderr


def test_rerun_of_prime_command_removes_primed_batch_from_record(primed: Path) -> None:
    _not_written(primed)
    open_context(primed).record.change(primed=3)  # of a location that was removed
    assert _begun(open_context(_fails(primed))) is Started.NO
    assert open_context(primed).record.model.primed is None


def test_apply_step_suggests_verify_command_for_each_state(
    primed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _not_written(primed)
    spec = _spec(primed.parent, states=["a/x", "a/y"], prime=_PRIMES.format(**_RIGHT))
    with caplog.at_level("INFO", "migrate"):
        act(open_context(spec), "apply")
    savepoint, query = open_context(spec).savepoint, primed.parent / "query"
    lines = [one.getMessage() for one in caplog.records]
    for state in ("a/x", "a/y"):
        assert f"next: migrate verify-state {savepoint} spark:{query} --state {state}" in lines


@pytest.mark.parametrize(
    ("content", "ended"),
    [
        (b"0\n", 0),
        (b"137\n", 137),
        (b"began\n", "unknown"),
        (b"began 71\n", "unknown"),
        (b"", "unknown"),
        (b"\xff\xfe", "unknown"),
        ("²".encode(), "unknown"),
        (b"9" * 5000, "unknown"),
    ],
)
def test_command_status_is_read_from_state_file(
    content: bytes, ended: int | str, tmp_path: Path
) -> None:
    (tmp_path / "query.state").write_bytes(content)
    assert Command(tmp_path, "query").status() == ended


@pytest.mark.parametrize(
    ("content", "process"), [(b"began 71\n", 71), (b"began\n", None), (b"7\n", None)]
)
def test_command_process_id_is_read_from_state_file(
    content: bytes, process: int | None, tmp_path: Path
) -> None:
    assert Command(tmp_path, "query").process_id() is None
    (tmp_path / "query.state").write_bytes(content)
    assert Command(tmp_path, "query").process_id() == process


def test_shared_lock_does_not_count_as_running_command(tmp_path: Path) -> None:
    """A dry run in a second terminal takes a shared lock at the same time."""
    with (tmp_path / "query.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert Command(tmp_path, "query").status() is None
        fcntl.flock(lock, fcntl.LOCK_EX)  # like the command itself
        assert Command(tmp_path, "query").status() == "running"


def test_failed_prime_command_is_rerun_and_running_command_is_awaited(primed: Path) -> None:
    _not_written(primed)
    states = {"states": ["counts/n"]}
    spec = _spec(primed.parent, **states, prime="echo no Spark here; exit 7")
    with pytest.raises(CutOverStopped) as failed:
        act(open_context(spec), "apply")
    assert _code_and_facts(failed.value)[1]["exit_code"] == 7
    assert failed.value.details[1:] == ("  no Spark here",)

    waits = "while ! test -e go; do sleep 0.05; done\n" + _PRIMES.format(**_RIGHT)
    spec = _spec(primed.parent, **states, prime=waits, timeouts={"prime": "100ms"})
    with pytest.raises(CutOverStopped) as late:
        act(open_context(spec), "apply")
    assert _code_and_facts(late.value) == ("prime-command-unfinished", {"limit": "100ms"})
    assert reason_done(open_context(spec), "apply") is None
    assert reason_done(open_context(spec), "plan") == "the prime command is running with the plan"
    back = _run(spec, "--back")
    process = open_context(spec).prime_command.process_id()
    assert process is not None and os.getpgid(process) == process
    assert back.code == 4
    assert f"the prime command is still running (process {process})" in back.stderr
    assert f"kill -- -{process};" in back.stderr and "[command-running]" in back.stderr
    (spec.parent / "go").touch()
    spec = _spec(primed.parent, **states, prime="exit 8")  # not run while the first one runs
    # On a busy machine, the command may have ended before it is checked.
    ends = ("ends at the planned offsets", "contains the planned offsets")
    assert act(open_context(spec), "apply").endswith(ends)
    changed = migrate("cut-over", _spec(primed.parent))
    assert changed.code == 4 and "states has changed from counts/n to unset" in changed.stderr


def test_rollback_renames_primed_location_if_no_query_started(primed: Path) -> None:
    _not_written(primed)
    query = primed.parent / "query"
    act(open_context(primed), "apply")
    dry = migrate("cut-over", primed, "--back")
    assert f"rename the primed location {query}" in dry.stdout
    # In Real-Time Mode, a query writes records before it logs its first batch.
    (state := read_spec(primed).folder / "query.state").write_text("0\n")
    assert "may have started" in migrate("cut-over", primed, "--back").output
    state.unlink()
    # Without a start command, a manual start cannot be ruled out.
    primes = {"states": ["counts/n"], "prime": _PRIMES.format(**_RIGHT)}
    by_hand = _spec(primed.parent, **primes, start=None)
    assert "does not show whether a query was" in migrate("cut-over", by_hand, "--back").output
    _spec(primed.parent, **primes)
    assert _run(primed, "--back").code == 0
    assert not query.exists()
    (aside,) = primed.parent.glob("query-*")
    assert (aside / "commits/0").exists()
