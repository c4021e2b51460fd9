"""Kill, refuse, and abandon a cut-over at every step, and resume by rerunning one command.

The stack is one Flink session cluster, one broker, one object store, and one query. Orders arrive
during the whole test. At the end, each order is in exactly one file of Flink or Spark.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from decoder import DecodeError
from decoder.keyed_state import KeyedState
from examples.demo import account, compare
from examples.local import LocalStack
from migrate.extensions.cutover.run import cut_over
from migrate.extensions.cutover.steps import STEPS
from migrate.extensions.keyed_state.read_state import keyed_states
from migrate.inputs.flink.rest_api import JobManager
from migrate.model.wording import package_version
from migrate.report.schemas import json_schema
from migrate.storage.files import Files
from tests.support.command import Result, migrate, running
from tests.support.groups import read_from_group
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration

_SECONDS = 300
# At least four jobs write their checkpoints to a slow object store.
_FLINK = {"execution.checkpointing.interval": "3 s"}
_SECRET = "hush-hush"
_TITLES = {step.name: step.title for step in STEPS}


class Stacks:
    """Shares one stack among the tests.

    Each test uses up its own job. If a test runs again, it and the tests after it get a new stack.
    """

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._stack: LocalStack | None = None
        self._used: set[str] = set()

    def of(self, test: str) -> LocalStack:
        if self._stack is None or test in self._used:
            self.close()
            self._used.add(test)
            stack = LocalStack(self._new_folder(), _FLINK)
            self._stack = stack.__enter__()
            _submit(stack)
        self._used.add(test)
        return self._stack

    def close(self) -> None:
        if self._stack is not None:
            self._stack.close()
        self._stack = None
        self._used.clear()


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stacks]:
    found = Stacks(lambda: tmp_path_factory.mktemp("cut-over"))
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def stack(stacks: Stacks, request: pytest.FixtureRequest) -> LocalStack:
    return stacks.of(request.node.name)


def _submit(stack: LocalStack) -> None:
    """Submit four jobs with the same SQL.

    The cut-over to Spark is completed only for the job ``orders``.
    """
    stack.start_orders()
    others = (_job(stack, name) for name in ("back", "twice", "dies"))
    stack.flink.submit(
        "".join((stack.sql("orders/tables.sql"), stack.sql("orders/flink.sql"), *others))
    )
    _await(lambda: len(stack.flink.running()) == 4)
    _await(lambda: all(map(stack.flink.completed_checkpoints, stack.flink.running().values())))
    _await(stack.by_flink)


def _job(stack: LocalStack, name: str) -> str:
    """Return the SQL of an additional table and job with this name."""
    tables, job = stack.sql("orders/tables.sql"), stack.sql("orders/flink.sql")
    table = tables[tables.index("CREATE TABLE lake") :].replace("lake (", f"lake_{name} (")
    job = job.replace("'orders'", f"'{name}'").replace("INTO lake", f"INTO lake_{name}")
    return table.replace("/orders/flink", f"/{name}/flink") + job


class Spec:
    """A spec file that can change between runs."""

    def __init__(self, path: Path, **fields: Any) -> None:
        self.path, self.fields = path, fields
        self.write()

    @property
    def folder(self) -> Path:
        return Path(self.fields["record"])

    def write(self, **fields: Any) -> None:
        self.path.write_text(yaml.safe_dump({**self.fields, **fields}))

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "record.json").read_text())
        jsonschema.validate(found, json_schema("cut-over"), jsonschema.Draft202012Validator)
        return found

    def execute(self, *more: str) -> Result:
        return migrate("cut-over", self.path, "--execute", "--yes", *more)

    def running(self) -> AbstractContextManager[subprocess.Popen[str]]:
        return running("cut-over", self.path, "--execute", "--yes")

    def killed(self, at: Callable[[str], bool], after: float = 0.0) -> list[str]:
        """Run the cut-over, kill it some seconds after a line, and return its output."""
        told = []
        with self.running() as process:
            assert process.stderr is not None
            for line in process.stderr:
                told.append(line)
                if at(line):
                    time.sleep(after)
                    process.kill()
                    return told
        raise AssertionError(f"it ended with {process.returncode}\n" + "".join(told))


def _spec(stack: LocalStack, name: str, **fields: Any) -> Spec:
    found = yaml.safe_load(stack.spec().read_text())
    found["record"] = str(stack.lake / f"{name}.record")
    found["flink"]["job"] = name
    found["kafka"]["properties"] = {"sasl.password": _SECRET}
    if name != "orders":
        found["target"] = {"checkpoint-dir": str(stack.lake / "queries" / name)}
        found["sink"] = str(stack.lake / name / "spark")
    return Spec(stack.lake / f"{name}.yaml", **{**found, **fields})


def _begins(name: str) -> Callable[[str], bool]:
    return lambda line: line.startswith(f"{name}: ")


def _done(name: str) -> Callable[[str], bool]:
    """Match the line of a step that was completed in this run or an earlier run."""
    return lambda line: (
        line.startswith(f"{name} done: ")
        or (line.startswith(f"{name}: ") and _TITLES[name] not in line)
    )


def _await(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_generated_spec_for_several_jobs_lists_them_as_choices(
    stack: LocalStack, tmp_path: Path
) -> None:
    jobs = stack.flink.running()
    spec = _first_spec(stack, tmp_path)
    for name, job_id in jobs.items():
        assert f'  # job: "{name}"   # RUNNING, {job_id}\n' in spec
    unset = _dry_run(stack, spec, tmp_path)
    assert unset.code == 3 and "flink: missing: job" in unset.stderr
    dry = _dry_run(stack, spec.replace('# job: "back"', 'job: "back"'), tmp_path)
    assert dry.code == 0, dry.stderr
    assert "no obstacle was found" in dry.stderr


@pytest.mark.timeout(1200)  # 600 s were not enough on a busy machine
def test_cut_over_killed_at_every_step_loses_and_duplicates_no_records(
    stack: LocalStack, caplog: pytest.LogCaptureFixture
) -> None:
    at_random = random.Random(19)
    started = datetime.now(timezone.utc).replace(microsecond=0)
    spec = _spec(stack, "orders")
    ready, go_on = stack.lake / "may-start", stack.lake / "may-read"
    held = f"test -e {ready} || exit 3; until test -e {go_on}; do sleep 0.2; done"
    spec.fields["start"] = f"SECRET={_SECRET}; {held}; {stack.start_command()}"
    spec.write()
    target = Path(spec.fields["target"]["checkpoint-dir"])
    jobs = stack.flink.running()

    # The dry run finds no obstacle and writes nothing.
    dry = migrate("cut-over", spec.path)
    assert dry.code == 0, dry.stderr
    assert dry.stdout.splitlines()[1].split()[:2] == ["check", "ok"]
    assert "no obstacle was found; to continue with stop, run `migrate cut-over " in dry.stderr
    for basis in (
        "the duration of the job's last checkpoint; later steps: unknown",
        "by the records' times",
    ):
        assert basis in dry.stderr
    # Regression: Only a chk-N was shown as CHK, but Flink deletes it after a few seconds.
    (chk,) = re.findall(r"as CHK to other commands: (\S+) \(do not", dry.stderr)
    assert chk.endswith(f"/{jobs['orders']}")
    assert migrate("to-spark", chk, "--allow-external-files").code == 0
    assert not spec.folder.exists() and stack.flink.running() == jobs

    # After Ctrl-C at the confirmation, Flink has received no request.
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_over(spec.path, execute=True, confirm=interrupt)
    stopped = "stopped at stop: this run has not changed anything or stopped a job [run-stopped]"
    assert stopped in caplog.messages
    assert stack.flink.running() == jobs

    # The savepoint fails. The job keeps running, and the next run stops it.
    spec.write(flink={**spec.fields["flink"], "savepoints": "file:///proc/none"})
    failed = spec.execute()
    assert failed.code == 5, failed.stderr
    assert "stopped: the stop failed: " in failed.stderr
    assert "; the job is RUNNING in Flink" in failed.stderr
    assert "[stop-failed]" in failed.stderr
    assert stack.flink.running() == jobs and not target.exists()
    spec.write()

    # The run is killed while Flink stops the job. A second run at the same time is refused.
    spec.killed(lambda line: line.startswith("stopping "))
    with spec.running() as first:
        assert first.stderr is not None
        assert first.stderr.readline()
        first.send_signal(signal.SIGSTOP)  # so that the first run is still active
        second = spec.execute()
        assert second.code == 4
        assert "another run of this cut-over is active (process " in second.stderr
        first.kill()
    for name in ("stop", "clean", "plan"):
        spec.killed(_begins(name), at_random.uniform(0, 0.3))
        spec.killed(_done(name))
    assert jobs["orders"] not in stack.flink.running().values()

    # If the broker is unavailable, the run reports how to restart the job and writes nothing.
    spec.write(kafka={"bootstrap-servers": "127.0.0.1:1"})
    away = spec.execute()
    assert away.code == 6, away.stderr
    assert "stopped at plan: the Flink job has stopped, and this run has not written" in away.stderr
    assert "flink run -s s3://" in away.stderr
    assert not target.exists()
    spec.write()

    for name in ("apply", "verify"):
        spec.killed(_begins(name), at_random.uniform(0, 0.3))
        spec.killed(_done(name))

    # The query fails to start.
    failed = spec.execute()
    assert failed.code == 5, failed.stderr
    assert "the start command failed with exit code 3" in failed.stderr
    ready.touch()
    spec.killed(_begins("start"), 0.02)
    spec.killed(_done("start"))
    with spec.running() as interrupted:
        assert interrupted.stderr is not None
        told = ""
        for line in interrupted.stderr:
            told += line
            if line.startswith("first-batch: wait"):
                interrupted.send_signal(signal.SIGINT)
        assert interrupted.wait() == 130, told
    go_on.touch()
    assert "at first-batch: the target was written, but this run has not seen a batch" in told
    assert "rerun the command to resume from this step" in told
    spec.killed(_done("first-batch"))
    spec.killed(_begins("verify-again"), 0.02)

    done = spec.execute()
    assert done.code == 0, done.stderr
    assert done.stdout.strip() == str(spec.folder / "record.json")
    assert "lost 0, repeated 0" in done.stderr
    last_lines = [line.partition(":")[0] for line in done.stderr.splitlines()[-4:]]
    assert last_lines == ["done", "downtime", "lag", "HTML page"]
    again = spec.execute()
    assert again.code == 0, again.stderr

    # Each order is in exactly one file.
    stack.stop_orders()
    truth = stack.in_kafka()
    _await(lambda: len(stack.by_flink()) + len(stack.by_spark()) >= len(truth))
    time.sleep(3)
    os.kill(int((stack.lake.parent / "spark.pid").read_text()), signal.SIGTERM)
    accounts = account(truth, stack.by_flink(), stack.by_spark(), [])
    assert all((one.lost, one.repeated) == (0, 0) for one in accounts), accounts
    assert sum(one.by_spark for one in accounts) and sum(one.by_flink for one in accounts)

    # There is one record and one page, and neither contains a secret.
    record = spec.record
    metadata = Files().read(f"{record['flink']['savepoint']}/_metadata")
    plan = (spec.folder / "plan.json").read_bytes()
    assert record["flink"]["savepoint_sha256"] == hashlib.sha256(metadata).hexdigest()
    assert record["plan"]["sha256"] == hashlib.sha256(plan).hexdigest()
    assert record["spec_sha256"] == hashlib.sha256(spec.path.read_bytes()).hexdigest()
    assert record["flink"]["version"].startswith("1.20.")
    for run in record["runs"]:
        assert run["user"] and run["host"] and run["python"]
        assert run["migrate"] == package_version()
    began = [datetime.fromisoformat(run["began_at"]) for run in record["runs"]]
    assert began == sorted(began) and began[0] >= started
    assert record["state"] == "done" and record["flink"]["finished"]
    assert [step["name"] for step in record["steps"] if step["state"] != "done"] == []
    assert {step["name"] for step in record["steps"]} == set(_TITLES)
    ends = [run["end"] for run in record["runs"]]
    assert ends.count(None) >= 10 and ends[-2:] == ["done", "done"]
    # The downtime covers the end of the job and Spark's first commit. Its parts add up.
    downtime, committed = record["downtime"], (target / "commits/0").stat().st_mtime
    asked, seen = (datetime.fromisoformat(downtime[name]) for name in ("began_at", "ended_at"))
    assert asked.timestamp() <= record["flink"]["ended_ms"] / 1000 <= committed
    assert committed <= seen.timestamp() + 0.01
    assert sum(part["seconds"] for part in downtime["parts"]) == pytest.approx(downtime["seconds"])
    assert downtime["seconds"] == pytest.approx((seen - asked).total_seconds())
    # The pauses between runs are separate parts.
    assert {"pause", "earlier attempts"} < {part["step"] for part in downtime["parts"]}
    before, after = record["verifications"]
    assert (before["when"], after["when"]) == ("before", "after")
    assert before["lag"] >= 0 and after["lag"] >= 0
    assert len(record["partitions"]) == 5
    # The lag is limited by the log ends, and only grows until the first batch.
    lags = [sample["lag"] for sample in record["lags"] if sample["at"] < downtime["ended_at"]]
    assert len(lags) > 2 and lags == sorted(lags)
    log_ends = sum(end for _, end in stack.broker.watermarks("orders").values())
    assert lags[-1] <= log_ends - sum(one["planned"] for one in record["partitions"])
    for one in record["partitions"]:
        assert one["started"] == one["planned"] and one["reached"] >= one["planned"]
        assert (one["outcome"], one["lost"], one["repeated"]) == ("ok", 0, 0)
    assert len(list(spec.folder.glob("*.html"))) == 1
    for file in spec.folder.iterdir():
        assert _SECRET not in file.read_text(), file

    # Regression: A finished cut-over reported "verify-again done: ..." for a restarted job.
    recover = f"SET 'execution.state-recovery.path' = '{record['flink']['savepoint']}';\n"
    stack.flink.submit(recover + stack.sql("orders/tables.sql") + stack.sql("orders/flink.sql"))
    _await(lambda: "orders" in stack.flink.running())
    job_id = stack.flink.running()["orders"]
    runs = spec.execute()
    stack.flink.cancel(job_id)
    assert runs.code == 5, runs.stderr
    assert (
        f"job orders was restarted as {job_id} (RUNNING) and has written output since"
        in runs.stderr
    )
    assert "verify-again done" not in runs.stderr
    spec.write(flink={**spec.fields["flink"], "rest": "http://127.0.0.1:1"})
    away = spec.execute()
    assert away.code == 6, away.stderr
    assert "verify-again done" not in away.stderr


def test_cut_over_back_succeeds_until_consumers_of_target_have_started(
    stack: LocalStack, broker: Broker
) -> None:
    """``cut-over --back`` undoes the steps. It is refused after the consumers have started."""
    elsewhere = {"kafka": {"bootstrap-servers": broker.bootstrap_servers}}
    spec = _spec(stack, "back")
    query = Path(spec.fields["target"]["checkpoint-dir"])
    nothing = migrate("cut-over", spec.path, "--back")
    assert nothing.code == 4 and "[nothing-to-roll-back]" in nothing.stderr

    # The stop usually exceeds the timeout, but Flink completes it.
    spec.write(timeouts={"stop": "1ms"})
    late = spec.execute("--until", "stop")
    assert (late.code, "[stop-unfinished]" in late.stderr) in (
        (5, True),
        (0, False),
    )
    # The savepoint folder can no longer change after the stop was requested.
    spec.write(flink={**spec.fields["flink"], "savepoints": "s3://lake/elsewhere"})
    for mode in ([], ["--execute", "--yes"]):
        moved = migrate("cut-over", spec.path, *mode)
        assert moved.code == 4, moved.stderr
        assert (
            "flink.savepoints has changed from " in moved.stderr
            and "[spec-key-changed]" in moved.stderr
        )
    spec.write(timeouts={"stop": "1ms"})
    meanwhile = spec.execute("--back")
    assert (meanwhile.code, "[stop-underway]" in meanwhile.stderr) in (
        (4, True),
        (0, False),
    )
    _await(lambda: "back" not in stack.flink.running())
    told = spec.execute("--back")
    assert told.code == 0, told.stderr
    assert "next: start the Flink job from its savepoint: flink run -s s3://" in told.stderr
    spec.write()

    seeded = spec.execute("--until", "verify")
    assert seeded.code == 0, seeded.stderr
    assert query.exists()
    # The plan was made with different brokers.
    spec.write(**elsewhere)
    for found, code in ((migrate("cut-over", spec.path), 4), (spec.execute(), 5)):
        assert found.code == code and ", but the plan is for " in found.stderr, found.stderr
    spec.write()
    dry = migrate("cut-over", spec.path, "--back")
    assert (
        dry.code == 0 and f"remove the checkpoint location {query}" in dry.stdout and query.exists()
    )
    back = spec.execute("--back")
    assert back.code == 0, back.stderr
    assert not query.exists() and not (spec.folder / "plan.json").exists()
    assert "next: start the Flink job from its savepoint: flink run -s s3://" in back.stderr

    # Move the same savepoint to a group. The old record is kept next to the new record.
    group = "cut-over-back"
    spec.fields["target"] = {"group": group}
    del spec.fields["sink"]
    spec.write()
    spec.killed(lambda line: line.startswith("saving current offsets to"))
    for _ in range(2):
        moved = spec.execute("--until", "verify")
        assert moved.code == 0, moved.stderr
    planned = {
        (one["topic"], one["partition"]): one["planned"] for one in spec.record["partitions"]
    }
    assert stack.broker.committed(group) == planned
    assert len(list(spec.folder.glob("record-*.json"))) == 2
    # The keys that were used for the commit can no longer change.
    for changed in ({"move": {"on-expired": "earliest"}}, {"target": {"group": "another"}}):
        spec.write(**changed)
        refused = spec.execute()
        assert refused.code == 4 and " has changed from " in refused.stderr, refused.stderr
    for code, more in ((5, ()), (4, ("--back",))):
        spec.write(**elsewhere)
        found = spec.execute(*more)
        assert found.code == code, found.stderr
        assert "[group-on-other-cluster]" in found.stderr
    assert stack.broker.committed(group) == planned
    spec.write()
    # A consumer that assigns its own partitions would not be visible.
    refused = spec.execute("--back")
    assert refused.code == 4 and "add --nothing-started" in refused.stderr, refused.stderr
    assert stack.broker.committed(group) == planned
    assert spec.execute("--back", "--nothing-started").code == 0
    assert stack.broker.committed(group) == {}

    inside = random.Random(20).uniform(0, 0.2)
    spec.killed(lambda line: line.startswith("saving current offsets to"), inside)
    assert spec.execute("--until", "verify").code == 0
    assert stack.broker.committed(group) == planned
    stack.stop_orders()
    stack.start_orders()
    _await(lambda: len(stack.in_kafka()) >= sum(planned.values()) + 50)
    stack.stop_orders()
    with spec.running() as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("first-batch: wait"):
                break
        read = read_from_group(stack.broker, group, ["orders"], "classic")
        output = process.stderr.read()
        assert process.wait() == 0, output
    assert "lost 0, repeated 0" in output and spec.record["state"] == "done"
    assert len(read) == len(stack.in_kafka()) - sum(planned.values())
    begun = spec.execute("--back")
    assert begun.code == 4
    assert "readers have started from group:" in begun.stderr

    # Another client commits before the planned offsets are verified in the group.
    # Its record is in a different directory, so the finished cut-over is not found.
    record, group = str(stack.lake / "others" / "others.record"), "cut-over-others"
    others = _spec(stack, "back", record=record, target={"group": group}, sink=None)
    assert others.execute("--until", "apply").code == 0
    stack.broker.commit(group, {place: offset + 1 for place, offset in planned.items()})
    moved = others.execute()
    assert moved.code == 5 and "was verified; the offsets at which" in moved.stderr


def test_restarted_job_is_not_moved_from_its_old_savepoint(stack: LocalStack) -> None:
    spec = _spec(stack, "twice")
    query = Path(spec.fields["target"]["checkpoint-dir"])
    planned = spec.execute("--until", "plan")
    assert planned.code == 0, planned.stderr
    spec.write(flink={"savepoint": "s3://lake/savepoint-older"})
    other = spec.execute()
    assert other.code == 4, other.stderr
    assert "flink.savepoint was added (s3://lake/savepoint-older)" in other.stderr
    spec.write()
    seeded = spec.execute("--until", "apply")
    assert seeded.code == 0, seeded.stderr

    _check_recovered_job_is_refused(stack, spec)
    stack.flink.submit(_source(stack) + _job(stack, "twice"))
    _await(lambda: "twice" in stack.flink.running())
    job_id = stack.flink.running()["twice"]
    runs = spec.execute()
    assert runs.code == 5, runs.stderr
    assert f"job twice was restarted as {job_id} (RUNNING)" in runs.stderr
    stack.flink.cancel(job_id)
    flink = JobManager(stack.flink.rest_url)
    _await(lambda: (job := flink.job(job_id)) is not None and job.ended)
    ran = spec.execute()
    assert ran.code == 5, ran.stderr
    assert f"job twice was restarted as {job_id} (CANCELED)" in ran.stderr
    assert not (query / "offsets").exists()

    assert "has resumed from it; move that job" in ran.stderr

    # A spec that contains the savepoint is also refused.
    savepoint = spec.record["flink"]["savepoint"]
    named = Spec(
        stack.lake / "named.yaml",
        **{
            **spec.fields,
            "record": str(stack.lake / "named.record"),
            "target": {"checkpoint-dir": str(stack.lake / "queries" / "named")},
            "sink": str(stack.lake / "named" / "spark"),
        },
    )
    for named_job in ({"job": "twice"}, {"job": job_id}):
        named.write(flink={"rest": stack.flink.rest_url, "savepoint": savepoint, **named_job})
        taken = named.execute("--until", "apply")
        assert "[savepoint-already-moved]" in taken.stderr  # by the first cut-over
        taken = named.execute("--until", "apply", "--adopt")
        assert taken.code == 4, taken.stderr
        assert f"job twice was restarted as {job_id} (CANCELED)" in taken.stderr
    by_id = {**spec.fields["flink"], "job": spec.record["flink"]["job_id"]}
    named.write(flink=by_id, record=str(stack.lake / "by-id.record"))
    taken = migrate("cut-over", named.path)
    assert taken.code == 4, taken.stderr
    assert f"FINISHED; twice was restarted as {job_id} (CANCELED)" in taken.stderr
    # A job with any name counts if it was restored from the savepoint.
    stack.flink.submit(_source(stack) + _recover(savepoint) + _job(stack, "thrice"))
    _await(lambda: "thrice" in stack.flink.running())
    thrice = stack.flink.running()["thrice"]
    # The other commands decide the same. The savepoint alone does not reveal the restart.
    alone = migrate("to-spark", savepoint, "-b", stack.broker.bootstrap_servers)
    assert alone.code == 0, alone.stderr
    assert "use --flink-rest URL to check whether the job was restarted since" in alone.stderr
    assert "ok: the job was stopped" not in alone.stderr
    restarted = migrate(
        *("to-spark", savepoint, "-b", stack.broker.bootstrap_servers),
        *("--flink-rest", stack.flink.rest_url),
    )
    assert (restarted.code, restarted.stdout) == (4, ""), restarted.stderr
    assert f"job {thrice} (thrice), RUNNING, continued the job" in restarted.stderr
    group = migrate(
        *("commit-group", savepoint, "--group", "new", "-b", stack.broker.bootstrap_servers),
        *("--flink-rest", stack.flink.rest_url),
    )
    assert group.code == 4, group.stderr
    assert f"job {thrice} (thrice), RUNNING, continued the job" in group.stderr
    _await(lambda: flink.restored_from(thrice))
    stack.flink.cancel(thrice)
    named.write(flink={"rest": stack.flink.rest_url, "savepoint": savepoint})
    taken = named.execute("--until", "apply", "--adopt")
    assert taken.code == 4, taken.stderr
    assert f"job thrice was restarted as {thrice} (CANCELED)" in taken.stderr

    # A new cut-over refuses the savepoint of the older job, too.
    assert spec.execute("--back").code == 0
    dry = migrate("cut-over", spec.path)
    assert dry.code == 4
    assert "[savepoint-missing-after-end]" in dry.stderr
    assert f"({job_id}) ended as" in dry.stderr


def _recover(savepoint: str) -> str:
    return f"""
        SET 'execution.state-recovery.path' = '{savepoint}';
        SET 'execution.state-recovery.ignore-unclaimed-state' = 'true';
    """


def _check_recovered_job_is_refused(stack: LocalStack, spec: Spec) -> None:
    """Restart the stopped job under a different name, and let it recover from a failure.

    Flink then lists the job's own checkpoint instead of the savepoint. Regression: The cut-over
    started the query with a warning, and the other commands moved the positions.
    """
    savepoint, checkpoints = spec.record["flink"]["savepoint"], stack.lake / "hidden-checkpoints"
    settings = f"""
        SET 'execution.checkpointing.dir' = '{checkpoints.as_uri()}';
        SET 'execution.checkpointing.interval' = '1 s';
        SET 'execution.checkpointing.tolerable-failed-checkpoints' = '0';
        SET 'restart-strategy.type' = 'fixed-delay';
        SET 'restart-strategy.fixed-delay.attempts' = '1000';
    """
    flink = JobManager(stack.flink.rest_url)
    stack.flink.submit(_source(stack) + settings + _recover(savepoint) + _job(stack, "hidden"))
    _await(lambda: "hidden" in stack.flink.running())
    hidden = stack.flink.running()["hidden"]
    _await(lambda: stack.flink.completed_checkpoints(hidden))
    assert flink.restored_from(hidden) == savepoint
    own, aside = checkpoints / hidden, checkpoints / "aside"
    own.rename(aside)
    own.touch()  # with a file in place of its folder, the next checkpoint and the job fail
    _await(lambda: flink.restored_from(hidden) != savepoint)
    own.unlink()
    aside.rename(own)
    recovered = f"job {hidden} (hidden) started later, and has recovered from "
    refused = spec.execute()
    assert refused.code == 5, refused.stderr
    assert recovered in refused.stderr
    assert "otherwise, add move.allow-ran-on: true" in refused.stderr
    assert "[restart-hidden]" in refused.stderr
    verified = spec.execute("--until", "verify")
    assert verified.code == 5, verified.stderr
    assert recovered in verified.stderr and "verify done" not in verified.stderr
    assert not (Path(spec.fields["target"]["checkpoint-dir"]) / "offsets").exists()
    asked = ("-b", stack.broker.bootstrap_servers, "--flink-rest", stack.flink.rest_url)
    out = stack.lake / "hidden-out"
    for command in (
        ("to-spark", savepoint, "--checkpoint-dir", out),
        ("to-spark", savepoint, "--plan-out", out),
        ("commit-group", savepoint, "--group", "hidden", "--execute", "--yes"),
        ("to-flink", savepoint, "--from", savepoint, "--out", out),
    ):
        judged = migrate(*command, *asked)
        assert (judged.code, judged.stdout) == (4, ""), judged.stderr
        assert recovered in judged.stderr or "Flink lists job" in judged.stderr
        assert not out.exists()
    assert stack.broker.committed("hidden") == {}
    allowed = migrate("to-spark", savepoint, "--allow-ran-on", *asked)
    assert allowed.code == 0, allowed.stderr
    assert recovered in allowed.stderr and "[job-may-run]" in allowed.stderr
    stack.flink.cancel(hidden)
    _await(lambda: (job := flink.job(hidden)) is not None and job.ended)


def test_generated_spec_for_single_job_contains_job_and_savepoint_folder(
    stack: LocalStack, tmp_path: Path
) -> None:
    for name, job_id in stack.flink.running().items():
        if name != "dies":
            stack.flink.cancel(job_id)
    _await(lambda: [*stack.flink.running()] == ["dies"])
    spec = _first_spec(stack, tmp_path)
    assert '  job: "dies"\n' in spec
    assert f"  # or its id: {stack.flink.running()['dies']}\n" in spec
    dry = _dry_run(stack, spec, tmp_path)
    assert dry.code == 0, dry.stderr
    assert "no obstacle was found" in dry.stderr


def _first_spec(stack: LocalStack, folder: Path) -> str:
    """Generate a spec for the stack's Flink, and check its savepoint folder."""
    path = folder / "first.yaml"
    made = migrate("cut-over", "--init", path, "--flink-rest", stack.flink.rest_url)
    assert made.code == 0, made.stderr
    spec = path.read_text()
    own = yaml.safe_load(stack.spec().read_text())
    assert yaml.safe_load(spec)["flink"]["savepoints"] == own["flink"]["savepoints"]
    return spec


def _dry_run(stack: LocalStack, spec: str, folder: Path) -> Result:
    """Set the keys that a generated spec leaves to the user, and start a dry run."""
    servers, location = stack.broker.bootstrap_servers, folder / "query"
    for example, value in (
        ("# bootstrap-servers: broker:9092", f"bootstrap-servers: {servers}"),
        ("# checkpoint-dir: /lake/queries/", f"checkpoint-dir: {location} # "),
    ):
        assert example in spec
        spec = spec.replace(example, value)
    (folder / "first.yaml").write_text(spec)
    return migrate("cut-over", folder / "first.yaml")


@pytest.mark.timeout(1200)  # 300 s on a busy machine
def test_cut_over_migrates_keyed_state(stack: LocalStack) -> None:
    stack.stop_orders()
    stack.start_orders()
    stack.submit("orders/tables.sql", "totals/flink.sql")
    flink = JobManager(stack.flink.rest_url)
    _await(lambda: "totals" in stack.flink.running())
    job_id = stack.flink.running()["totals"]
    _await(lambda: stack.broker.watermarks("totals")[0][1] and flink.details(job_id).checkpoint)
    checkpoint = flink.details(job_id).checkpoint
    assert checkpoint is not None
    spec = _spec(stack, "totals")
    del spec.fields["sink"]

    # If the spec selects no state, the dry run lists the state that is not migrated.
    spec.write()
    dry = migrate("cut-over", spec.path)
    assert dry.code == 0, dry.stderr
    assert "1 keyed state would not be migrated" in dry.stdout
    assert "1 state is not migrated, because it is not selected: " in dry.stderr
    states = _states(checkpoint.rpartition("/")[0])
    (state,) = (one for one in states if one.name == "accState")
    ready, go_on = stack.lake / "may-prime", stack.lake / "may-go-on"
    held = f"test -e {ready} || exit 3; until test -e {go_on}; do sleep 0.2; done"
    spec.fields |= {
        "states": [f"{state.operator_id}/no-such"],
        "prime": f"{held}; {stack.totals_command('--prime')}",
        "start": stack.totals_command("--available-now"),
    }
    spec.write()
    misnamed = migrate("cut-over", spec.path)
    assert misnamed.code == 4 and "no-such" in misnamed.stderr, misnamed.stderr
    spec.fields["states"] = [f"{state.operator_id}/{state.name}"]
    spec.write()
    dry = migrate("cut-over", spec.path)
    assert dry.code == 0, dry.stderr
    assert "1 keyed state would be passed to the prime command" in dry.stdout
    handed = f"state {state.operator_id}/accState is passed to the prime command"
    assert handed in dry.stderr

    # The prime command fails first. Later, the cut-over is killed while the command is running. The
    # command continues, and the next run waits for it.
    failed = spec.execute()
    assert failed.code == 5, failed.stderr
    assert "the prime command" in failed.stderr and "exit code 3" in failed.stderr
    unwritten = "the Flink job has stopped, and this run has not written the target"
    assert f"stopped at apply: {unwritten} [run-stopped]" in failed.stderr
    query = Path(spec.fields["target"]["checkpoint-dir"])
    assert not query.exists()
    ready.touch()
    spec.killed(lambda line: line.startswith("priming "))
    spec.killed(lambda line: "of an earlier run is still running" in line)
    go_on.touch()
    told = spec.killed(_begins("verify"))
    assert not any(": process " in line for line in told)
    assert (spec.folder / "prime.log").read_text().count("Spark's state against Flink's") == 1
    stack.stop_orders()
    # Another record takes over the query. The first record can no longer start the query.
    folder = str(stack.lake / "other.record")
    other = Spec(stack.lake / "other.yaml", **{**spec.fields, "record": folder})
    taken = other.execute("--until", "verify", "--adopt")
    assert taken.code == 0, taken.stderr
    refused = spec.execute()
    assert refused.code == 5 and "over the query with --adopt" in refused.stderr, refused.stderr
    spec = other
    done = spec.execute()
    assert done.code == 0, done.stderr
    assert "batch 1 is committed" in done.stderr
    assert "lost 0, repeated 0" in done.stderr
    _await(lambda: (spec.folder / "query.state").read_text().strip() == "0")
    assert {one.verdict for one in compare(stack.in_kafka(), {}, stack.totals())} == {"right"}
    record = spec.record
    assert record["primed"] == 0
    assert record["plan"]["states"] == [handed]
    assert {one["outcome"] for one in record["partitions"]} == {"ok"}
    assert sum(one["reached"] for one in record["partitions"]) == len(stack.in_kafka())


def _states(checkpoints: str) -> Sequence[KeyedState]:
    """Return the states of the newest checkpoint, which the running job may delete at any time."""
    found: list[Sequence[KeyedState]] = []

    def read() -> bool:
        with suppress(DecodeError):
            found.append(keyed_states(checkpoints).states)
        return bool(found)

    _await(read)
    return found[0]


def _source(stack: LocalStack) -> str:
    """Return the SQL of the settings and tables that a job needs, without the lake table."""
    tables = stack.sql("orders/tables.sql")
    return tables[: tables.index("CREATE TABLE lake")]


def test_flink_crash_during_stop_leaves_target_unwritten(stack: LocalStack) -> None:
    spec = _spec(stack, "dies")
    with spec.running() as process:
        assert process.stderr is not None
        told = ""
        for line in process.stderr:
            told += line
            if line.startswith("stopping "):
                stack.flink.kill_jobmanager()
        assert process.wait() == 6, told
    assert "warning: stopped at stop: a stop of the Flink job was requested" in told
    assert spec.execute().code == 6
    stack.flink.close()
    stack.flink.start()
    forgotten = spec.execute()
    assert forgotten.code == 5, forgotten.stderr
    assert (
        "set the key `record` in the spec to a new folder, and rerun the command"
        in forgotten.stderr
    )
    assert not Path(spec.fields["target"]["checkpoint-dir"]).exists()
