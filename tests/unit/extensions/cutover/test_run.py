"""The run through the steps of a cut-over with fake steps: output, prompts, and records."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from decoder import DecodeError, ErrorKind
from migrate.extensions.cutover import catalog, run
from migrate.extensions.cutover.cli import wrapped_steps
from migrate.extensions.cutover.context import STOP_FAILED, STOP_REQUESTED, CutOverContext
from migrate.extensions.cutover.decide import Action, Decision, Done
from migrate.extensions.cutover.facts import Facts
from migrate.extensions.cutover.roll_back import RestartAdvice
from migrate.extensions.cutover.run import CutOver, StepResult, cut_over
from migrate.extensions.cutover.steps import Step
from migrate.model.errors import CutOverStopped, Refused, UsageError, take_notes
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.storage.new_file import replace_file
from tests.support.command import migrate
from tests.support.golden_topics import GOLDEN

_SAVEPOINT = next((GOLDEN / "2.2/stop").glob("savepoint-*"))


_ACTIONS = {
    "look": Action.CHECK,
    "write": Action.WRITE,
    "check": Action.VERIFY,
    "begin": Action.START,
}


class World:
    """Fake steps, with the reasons to skip them, their failures, and the executed steps."""

    def __init__(self, spec: Path) -> None:
        self.spec = spec
        self.is_done: dict[str, str] = {}
        self.fails: dict[str, BaseException] = {}
        self.halts: dict[str, Callable[[], Exception]] = {}
        self.ran: list[str] = []

    def step(self, name: str) -> Step:
        def decide(_: Facts) -> Decision:
            if name in self.halts:
                raise self.halts[name]()
            done = self.is_done.get(name)
            return Done(done) if done is not None else _ACTIONS[name]

        return Step(
            name,
            f"title of {name}",
            (),
            decide,
            f"left {name}",
            f"group title of {name}",
        )

    def action(self, name: str) -> Callable[[object, object], str]:
        def act(_: object, __: object) -> str:
            self.ran.append(name)
            if name in self.fails:
                raise self.fails[name]
            return f"did {name}"

        return act

    @property
    def record_path(self) -> Path:
        return self.spec.parent / "orders.cut-over/record.json"

    def run(self, **asked: Any) -> CutOver:
        self.ran.clear()
        return cut_over(self.spec, **asked)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    spec = tmp_path / "orders.yaml"
    fields = {
        "version": 1,
        "flink": {"savepoint": str(_SAVEPOINT)},
        "kafka": {"bootstrap-servers": "127.0.0.1:1"},
        "target": {"checkpoint-dir": "query"},
    }
    spec.write_text(yaml.safe_dump(fields))
    world = World(spec)
    monkeypatch.setattr(run, "STEPS", tuple(map(world.step, _ACTIONS)))
    monkeypatch.setattr(run, "NAMES", tuple(_ACTIONS))
    actions = {action: world.action(name) for name, action in _ACTIONS.items()}
    monkeypatch.setattr(run, "ACTIONS", actions)
    return world


def _told(found: CutOver) -> dict[str, tuple[str, str]]:
    return {step.name: (step.state, step.text) for step in found.steps}


def _kept(found: CutOver) -> list[tuple[str, str, str]]:
    return [(one.name, one.state, one.told) for one in found.record.steps]


def _fill_disk_after(world: World, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        if step in world.ran:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        replace_file(path, text)

    monkeypatch.setattr("migrate.extensions.cutover.record.replace_file", full)


def test_failed_step_is_logged_even_if_record_cannot_be_written(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: Writing the failure to the record failed, and only this error was reported."""
    _fill_disk_after(world, "write", monkeypatch)
    world.fails = {"write": DecodeError(ErrorKind.NOT_FOUND, "gone")}
    with pytest.raises(DecodeError, match="gone") as stopped:
        world.run(execute=True)
    assert "stopped at write: left write [run-stopped]" in caplog.messages
    notes = take_notes(stopped.value)
    assert "rerun the command to resume from this step" in notes
    # Regression: This note was printed twice.
    unwritten = f"{world.record_path} was not written: No space left on device"
    assert [note for note in notes if "record.json" in note] == [unwritten]


def test_full_disk_after_step_is_not_reported_as_failure_of_step(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: The message for a complete target was "written only partly or not at all"."""
    _fill_disk_after(world, "write", monkeypatch)
    with pytest.raises(OSError, match="No space left") as stopped:
        world.run(execute=True)
    monkeypatch.undo()
    assert stopped.value.filename == str(world.record_path)
    assert "stopped after write: left check [run-stopped]" in caplog.messages
    notes = take_notes(stopped.value)
    assert "rerun the command to resume" in notes
    assert not [note for note in notes if "record.json" in note]  # the error already reports it


def test_refused_cut_over_does_not_report_record_that_it_could_not_write(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: The message was "only the record was written", but the record's disk was full."""
    _fill_disk_after(world, "look", monkeypatch)
    world.fails = {"look": Refused(["no"])}
    refused = migrate("cut-over", world.spec, "--execute", "--yes")
    assert (refused.code, "nothing was written" in refused.stderr) == (4, True), refused.stderr
    assert refused.stderr.count("record.json was not written: No space left on device") == 1


@pytest.mark.parametrize(
    ("until", "result"),
    [
        ((), "the cut-over is complete"),
        (("--until", "begin"), "the cut-over is complete"),
        (("--until", "write"), "every step up to write is done"),
    ],
)
def test_result_of_cut_over_is_reported_if_page_cannot_be_written(
    world: World, until: tuple[str, ...], result: str
) -> None:
    """Regression: The only message was "Is a directory", with the name of a temporary file."""
    page = world.record_path.with_suffix(".html")
    (page / "full").mkdir(parents=True)
    done = migrate("cut-over", world.spec, "--execute", "--yes", *until)
    assert done.code == 6, done.stderr
    assert done.stderr.splitlines()[-2:] == [
        f"migrate: {page}: Is a directory",
        f"{result}; rerun the command to write this file",
    ]
    assert "[run-stopped]" not in done.stderr
    (page / "full").rmdir()
    page.rmdir()
    assert world.run().record.state == ("begun" if "write" in until else "done")
    assert migrate("cut-over", world.spec, "--execute", "--yes", *until).code == 0
    assert page.is_file()


@contextmanager
def _disk(folder: Path, *, full: bool) -> Iterator[None]:
    """Make a folder read-only, or fill its disk.

    Root ignores permissions, so root mounts a disk.
    """
    folder.mkdir(exist_ok=True)
    if os.geteuid() != 0:
        if full:
            pytest.skip("only root may mount a small disk")
        folder.chmod(0o500)
        try:
            yield
        finally:
            folder.chmod(0o700)
        return
    mount = ["mount", "-t", "tmpfs", "-o", f"size=16k{'' if full else ',ro'}", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this container may not mount a small disk")
    try:
        if full:
            with suppress(OSError), (folder / "large").open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("mode", [(), ("--adopt",)])
@pytest.mark.parametrize("full", [False, True])
def test_cut_over_dry_run_fails_if_record_cannot_be_written(
    world: World, tmp_path: Path, full: bool, mode: tuple[str, ...]
) -> None:
    """Regression: The dry run found no obstacle, but --execute could not write the record."""
    folder = tmp_path / "disk"
    world.spec.write_text(f"{world.spec.read_text()}record: {folder}/orders\n")
    with _disk(folder, full=full):
        dry = migrate("cut-over", world.spec, *mode)
        assert (dry.code, dry.stdout) == (6, ""), dry.stderr
        assert f"{folder}/orders: " in dry.stderr
        real = migrate("cut-over", world.spec, *mode, "--execute", "--yes")
        assert real.code == 6, real.stderr
        # The message contains the operating system's reason.
        message = "No space left on device" if full else dry.stderr.splitlines()[-1]
        assert message in dry.stderr and message in real.stderr
        # If all steps are done, a dry run needs no record and shows the progress.
        world.is_done = dict.fromkeys(_ACTIONS, "it is there")
        done = migrate("cut-over", world.spec, *mode)
        assert (done.code, "every step is done" in done.stderr) == (0, True), done.stderr
    world.is_done = {}
    assert migrate("cut-over", world.spec, *mode).code == 0


def test_dry_run_before_apply_is_refused_if_checkpoint_dir_is_not_writable(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: After ``apply`` failed, another dry run still found no obstacle.

    By then, the ``check`` step is done, so the dry run does not check the location again.
    """
    monkeypatch.setitem(_ACTIONS, "apply", Action.WRITE)
    monkeypatch.setattr(run, "STEPS", (world.step("look"), world.step("apply")))
    monkeypatch.setattr(run, "NAMES", ("look", "apply"))
    world.is_done = {"look": "a plan was already made"}
    assert migrate("cut-over", world.spec).code == 0
    world.spec.write_text(
        world.spec.read_text().replace("checkpoint-dir: query", "checkpoint-dir: /proc/queries/q")
    )
    dry = migrate("cut-over", world.spec)
    assert (dry.code, dry.stdout) == (4, ""), dry.stderr
    assert "/proc/queries/q cannot be written" in dry.stderr
    # The location is written already, so the run no longer needs a writable directory.
    world.is_done |= {"apply": "the location contains the planned offsets"}
    assert migrate("cut-over", world.spec).code == 0


@pytest.mark.parametrize(
    ("is_done", "told", "ran"),
    [
        (
            {},
            {
                "look": ("ok", "did look"),
                "write": ("to do", "title of write"),
                "check": ("to do", "title of check"),
                "begin": ("to do", "title of begin"),
            },
            ["look"],
        ),
        (
            {"look": "seen", "write": "it is there"},
            {
                "look": ("done", "seen"),
                "write": ("done", "it is there"),
                "check": ("ok", "did check"),
                "begin": ("to do", "title of begin"),
            },
            ["check"],
        ),
    ],
)
def test_cut_over_dry_run_stops_before_first_change(
    is_done: dict[str, str],
    told: Mapping[str, tuple[str, str]],
    ran: list[str],
    world: World,
    tmp_path: Path,
) -> None:
    world.is_done = is_done
    found = world.run()
    assert _told(found) == told
    assert world.ran == ran
    assert (found.record_path, found.page_path) == (None, None)
    assert not (tmp_path / "orders.cut-over").exists()
    cut = world.run(until="write")
    assert list(_told(cut)) == ["look", "write"]


def test_rerun_of_cut_over_executes_only_missing_steps(world: World, tmp_path: Path) -> None:
    asked: list[str] = []
    found = world.run(execute=True, confirm=asked.append)
    assert world.ran == ["look", "write", "check", "begin"]
    assert asked == ["continue with write (title of write), up to begin?"]
    assert set(_told(found).values()) == {("done", f"did {name}") for name in world.ran}
    assert _kept(found) == [(name, "done", f"did {name}") for name in world.ran]
    assert (found.record.state, found.record.runs[0].asked) == ("done", "execute")
    assert found.record.runs[0].end == "done"
    assert found.record_path == tmp_path / "orders.cut-over" / "record.json"
    assert found.page_path is not None and found.page_path.exists()

    world.is_done = {"look": "seen", "write": "it is there", "begin": "it runs"}
    again = world.run(execute=True, confirm=asked.append)
    assert world.ran == ["check"]
    assert len(asked) == 1
    assert _told(again)["write"] == ("done", "it is there")
    assert _kept(again)[1] == ("write", "done", "did write")  # as the first run reported it
    assert [one.number for one in again.record.runs] == [1, 2]


@pytest.mark.parametrize(
    ("until", "ran", "state"),
    [
        ("look", ["look"], "begun"),
        ("check", ["look", "write", "check"], "begun"),
        ("begin", ["look", "write", "check", "begin"], "done"),
    ],
)
def test_until_option_limits_executed_steps_of_cut_over(
    until: str, ran: list[str], state: str, world: World
) -> None:
    asked: list[str] = []
    found = world.run(execute=True, until=until, confirm=asked.append)
    assert world.ran == ran
    assert (found.record.state, found.record.runs[0].asked) == (state, f"until {until}")
    told = [f"continue with write (title of write), up to {until}?"]
    assert asked == (told if "write" in ran else [])


def test_command_suggested_by_dry_run_contains_until_option(world: World) -> None:
    """Regression: The command for the next run omitted ``--until``, so it ran every step."""
    dry = migrate("cut-over", world.spec, "--until", "write")
    command = f"migrate cut-over {world.spec} --until write --execute"
    assert dry.stderr.splitlines()[-1].endswith(f"run `{command}`")


def test_dry_run_without_start_command_tells_user_to_start_query(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: The text was "start the query", but the cut-over does not start it."""
    monkeypatch.setattr(run, "STEPS", (world.step("write"), world.step("start")))
    _, start = world.run().steps
    assert (start.state, start.text) == (
        "to do",
        "start the query yourself, because the spec has no start",
    )


def test_run_with_until_option_prints_next_command(world: World) -> None:
    """Regression: The output of ``--until plan`` contained no next command."""
    for until, following in (("look", "write"), ("check", "begin")):
        done = migrate("cut-over", world.spec, "--execute", "--yes", "--until", until)
        assert done.stderr.splitlines()[-1] == (
            f"next: run `migrate cut-over {world.spec} --execute`, which continues with {following}"
        )
    done = migrate("cut-over", world.spec, "--execute", "--yes")
    assert "next: " not in done.stderr
    assert f"done: orders has moved to spark:{world.spec.parent / 'query'}" in done.stderr
    assert "downtime: unknown, because this cut-over has not stopped the job" in done.stderr


def test_table_of_cut_over_dry_run_fits_narrow_terminal() -> None:
    """Regression: The line below the headings was longer than the terminal is wide."""
    steps = [
        StepResult("check", "ok", "orders runs on Flink 1.20.3, checkpoint 25: 5 of 5 would move"),
        StepResult("verify-again", "to do", "check the start offsets"),
    ]
    assert [(row.name, row.state, row.text) for row in wrapped_steps(steps, 60)] == [
        ("check", "ok", "orders runs on Flink 1.20.3, checkpoint"),
        ("", "", "25: 5 of 5 would move"),
        ("verify-again", "to do", "check the start offsets"),
    ]
    assert wrapped_steps(steps, None) == steps


def test_cut_over_record_contains_times_of_confirmation_prompt(world: World) -> None:
    found = world.run(execute=True, confirm=lambda _: time.sleep(0.05))
    (question,) = [one.question for one in found.record.runs]
    assert question is not None
    asked, answered = map(datetime.fromisoformat, (question.asked_at, question.answered_at))
    assert 0.05 <= (answered - asked).total_seconds() < 5
    world.is_done = dict.fromkeys(_ACTIONS, "it is there")
    found = world.run(execute=True, confirm=_refuse)
    assert found.record.runs[1].question is None


def test_refused_cut_over_reports_written_record(world: World) -> None:
    """Regression: The run reported "nothing was written", but had written a record."""
    world.fails = {"look": Refused(["no"])}
    for mode, written in (((), "nothing"), (("--execute", "--yes"), "only the record {}")):
        folder = world.spec.parent / "orders.cut-over"
        refused = migrate("cut-over", world.spec, *mode)
        last = f"refused; {written.format(folder)} was written"
        assert refused.stderr == f"refused: no\nmigrate: {last}\n" or mode
        assert (refused.code, refused.stderr.splitlines()[-1]) == (4, f"migrate: {last}")
        assert folder.exists() == bool(mode)


def test_invalid_option_combinations_are_usage_errors(world: World) -> None:
    with pytest.raises(UsageError, match=r'^until="wirte": no such step'):
        world.run(until="wirte")
    with pytest.raises(UsageError, match=r"^back cannot be combined with until or adopt$"):
        world.run(back=True, until="write")
    with pytest.raises(UsageError, match=r"^nothing_started requires back$"):
        world.run(nothing_started=True)


def _refuse(_: str) -> None:
    raise Refused(["the change was not confirmed"])


def _interrupt(_: str) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("fails", "confirm", "raised", "end", "step"),
    [
        ({"look": Refused(["no"])}, None, Refused, "refused at look", ("look", "failed", "no")),
        ({}, _refuse, Refused, "refused at write", ("look", "done", "did look")),
        (
            {"write": Refused(["not there"])},
            None,
            CutOverStopped,
            "refused at write",
            ("write", "failed", "not there"),
        ),
        (
            {"check": Refused(["not there"])},
            None,
            CutOverStopped,
            "refused at check",
            ("check", "failed", "not there"),
        ),
        (
            {"check": OSError("full")},
            None,
            OSError,
            "failed at check: full",
            ("check", "failed", "full"),
        ),
        (
            {"check": DecodeError(ErrorKind.NOT_FOUND, "gone")},
            None,
            DecodeError,
            "failed at check: gone",
            ("check", "failed", "gone"),
        ),
        (
            {"check": KeyError("x")},
            None,
            KeyError,
            "interrupted at check (KeyError)",
            ("check", "failed", "'x'"),
        ),
        (
            {},
            _interrupt,
            KeyboardInterrupt,
            "interrupted at write (KeyboardInterrupt)",
            ("look", "done", "did look"),
        ),
    ],
)
def test_interrupted_cut_over_records_failed_step_and_prints_remedy(
    fails: dict[str, BaseException],
    confirm: Callable[[str], None] | None,
    raised: type[BaseException],
    end: str,
    step: tuple[str, str, str],
    world: World,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    world.fails = fails
    with pytest.raises(raised) as stopped:
        world.run(execute=True, confirm=confirm)
    assert type(stopped.value) is raised
    world.fails = {}
    # A refusal before the first change needs no further message.
    place = end.split()[2].rstrip(":")
    changed = raised is not Refused
    assert any(one.startswith(f"stopped at {place}: ") for one in caplog.messages) == changed
    if changed:
        refused = end.startswith("refused")
        way_on = "fix the cause of the refusal, and rerun the command to resume"
        lines = [*caplog.messages, *take_notes(stopped.value)]
        assert (way_on if refused else "rerun the command to resume from this step") in lines
        unless = "unless the job was already restarted (the spec has no flink.rest)"
        restart = f"start the Flink job from its savepoint, {unless}: flink run -s {_SAVEPOINT} …"
        assert lines[-1] == f"or {restart}"
    found = world.run()
    assert (found.record.state, found.record.runs[0].end) == ("begun", end)
    assert _kept(found)[-1] == step


@pytest.mark.parametrize(
    ("reason", "helps"),
    [
        (catalog.RESTARTED_JOB(job="a", job_id="b", state="RUNNING"), False),
        (catalog.TARGET_START_DIFFERS(target="t", result="1 lost", page="p"), False),
        (catalog.NO_BATCH_IN_TIME(limit="1s"), True),
    ],
)
def test_rerun_is_suggested_only_if_it_can_help(reason: Message, helps: bool, world: World) -> None:
    """Regression: "rerun the command" followed the message that a restarted job must be moved."""
    world.fails = {"check": CutOverStopped(reason)}
    with pytest.raises(CutOverStopped) as stopped:
        world.run(execute=True)
    notes = take_notes(stopped.value)
    assert any(note.startswith("rerun the command") for note in notes) == helps
    assert notes[-1].removeprefix("or ").startswith("start the Flink job from its savepoint")
    assert notes[-1].startswith("or ") == helps


@pytest.mark.parametrize(
    ("state", "last"),
    [
        (
            STOP_REQUESTED,
            "do not start the Flink job, because Flink may still stop it; a rerun records its "
            "savepoint",
        ),
        (STOP_FAILED, "rerun the command to resume from this step"),  # the job is running
    ],
)
def test_last_line_of_interrupted_stop_states_whether_job_may_be_started(
    state: str,
    last: str,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Regression: After Ctrl-C during the stop, the last line said only "rerun the command"."""

    def stop(context: CutOverContext, _: Facts) -> str:
        context.stop_state = state
        raise KeyboardInterrupt

    spec = yaml.safe_load(world.spec.read_text())
    spec["flink"] = {"rest": "http://127.0.0.1:1", "job": "orders", "savepoints": "savepoints"}
    world.spec.write_text(yaml.safe_dump(spec))
    actions: dict[Action, Any] = {Action.CHECK: world.action("look"), Action.WRITE: stop}
    monkeypatch.setattr(run, "ACTIONS", actions)
    caplog.set_level(logging.INFO)
    with pytest.raises(KeyboardInterrupt):
        world.run(execute=True)
    assert caplog.messages[-1] == last


def test_refused_cut_over_records_codes_of_its_reasons(world: World) -> None:
    reasons = [catalog.NO_COMPLETED_CHECKPOINT(), catalog.CHECKPOINT_FAILED(failure="too late")]
    world.fails = {"check": Refused(reasons)}
    with pytest.raises(CutOverStopped) as stopped:
        world.run(execute=True)
    codes = ["no-completed-checkpoint", "checkpoint-failed"]
    assert stopped.value.codes == codes
    world.fails = {}
    world.run(execute=True)
    first, second = world.run().record.runs
    assert (first.codes, second.codes) == (codes, [])


def test_control_characters_in_savepoint_name_are_escaped_in_advice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    advice = RestartAdvice("start savepoint-\x1b[2J", may_start=True)
    monkeypatch.setattr(run, "restart_advice", lambda _: advice)
    world.fails = {"check": CutOverStopped("no")}
    stopped = migrate("cut-over", world.spec, "--execute", "--yes")
    assert stopped.stderr.endswith("\nor start savepoint-\\x1b[2J\n")


def test_repeated_warning_is_logged_once(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from migrate.model.log import log

    def warn(_: object, __: object) -> str:
        log.warning(f"a warning of {option('source')}")
        log.debug("a detail")
        return "well"

    monkeypatch.setattr(run, "ACTIONS", dict.fromkeys(_ACTIONS.values(), warn))
    caplog.set_level(logging.DEBUG)
    world.run(execute=True)
    assert caplog.messages.count("a warning of move.source") == 1
    assert caplog.messages.count("a detail") == 4
    caplog.clear()
    world.run()
    assert caplog.messages.count("a warning of move.source") == 1


_OF_A_KEY = "two clusters; if not, add move.one-cluster: true"


@pytest.mark.parametrize("kind", [Refused, CutOverStopped])
def test_refused_or_stopped_step_is_stored_in_cut_over_record(
    kind: type[Exception], world: World
) -> None:
    def halt() -> Exception:
        told = (f"two clusters; if not, add {option('one_cluster', True)}", "move it")
        return Refused(told) if kind is Refused else CutOverStopped(*told)

    world.halts["look"] = halt
    for asked in ({}, {"execute": True}):
        with pytest.raises(kind) as halted:
            world.run(**asked)
        assert halted.value.reasons == (_OF_A_KEY, "move it")  # type: ignore[attr-defined]
    world.halts.clear()
    assert _kept(world.run()) == [("look", "failed", f"{_OF_A_KEY}; move it")]
