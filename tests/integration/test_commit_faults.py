"""Interrupt commits and rollbacks in the middle of a run.

The faults are dead brokers, lost responses, joining members, and killed runs. Afterwards nothing
has changed, or the rollback file restores the offsets. The next run reports the outcome.
"""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicCollection

from migrate.kafka import client as connection
from migrate.kafka import groups as changing
from migrate.kafka.groups import ConsumerGroups
from migrate.kafka.snapshot import take_snapshot
from migrate.model.cluster_snapshot import BrokerError, Committed, GroupView, Question
from migrate.model.errors import Refused
from migrate.report.plan import outcome_lines
from migrate.targets.group import commit as consumer_group
from migrate.targets.group import rollback as undo
from migrate.targets.group import rollback_file
from migrate.targets.group.commit import Applied, ChangeOutcome, Result
from migrate.targets.group.rollback_file import ChangeProgress
from tests.support.groups import PROTOCOLS, member
from tests.support.kafka import free_ports
from tests.support.proxy import Api, Fault, ProxiedBroker, Trap

pytestmark = pytest.mark.integration

Offsets = dict[tuple[str, int], Committed]

# The time limit for a trap to trigger and for a run to end, in seconds.
_SOON = 60.0
# The request timeout in tests without a response, in seconds.
_SHORT = 3.0
_TOPIC = "t"


@pytest.fixture(scope="module")
def proxied() -> Iterator[ProxiedBroker]:
    with ProxiedBroker() as running:
        running.create_topic(_TOPIC, 3)
        running.create_topic("other", 1)
        for topic, partitions in ((_TOPIC, 3), ("other", 1)):
            for partition in range(partitions):
                running.produce(topic, partition, map(str, range(30)))
        yield running


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the timeouts for tests in which no response arrives."""
    monkeypatch.setattr(connection, "REQUEST_TIMEOUT", _SHORT)
    monkeypatch.setattr(consumer_group, "RETRY_SECONDS", 2 * _SHORT)
    monkeypatch.setattr(undo, "RETRY_SECONDS", 2 * _SHORT)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as running:
        yield running


class Case:
    """A group that a run changes through the proxy."""

    def __init__(self, proxied: ProxiedBroker, folder: Path) -> None:
        self.proxied = proxied
        self.folder = folder
        self.group = f"g-{uuid.uuid4().hex[:8]}"
        self.path = folder / "rollback-first.json"
        self.config = {"bootstrap.servers": proxied.proxy.address}
        self.view()  # waits for the coordinator of a new broker
        self.held: Offsets = {(_TOPIC, 0): Committed(1), ("other", 0): Committed(20)}
        proxied.commit(self.group, {place: c.next_offset for place, c in self.held.items()})
        self.seen = self.view()

    def wanted(self, *offsets: int) -> Offsets:
        return {(_TOPIC, n): Committed(offset, "ours") for n, offset in enumerate(offsets)}

    def view(self) -> GroupView:
        """Read the group without using the proxy."""
        return ConsumerGroups({"bootstrap.servers": self.proxied.bootstrap_servers}).view(
            self.group
        )

    def commit(self, wanted: Offsets | None = None, path: Path | None = None) -> ChangeOutcome:
        return consumer_group.commit(
            self.config, self.group, wanted or self.wanted(5, 6, 7), self.seen, path or self.path
        )

    def restore(self, path: Path, to: str) -> ChangeOutcome:
        seen = undo.read_preview(self.config, rollback_file.read(path))
        return undo.restore(self.config, seen, self.folder / to)

    def fate(self) -> ChangeProgress | None:
        """Return the outcome of the last run, as the next run determines it."""
        groups = ConsumerGroups({"bootstrap.servers": self.proxied.bootstrap_servers})
        changes = rollback_file.history([self.folder], groups.cluster_id(), self.group)
        run = rollback_file.newest_of(changes, self.view())
        return run.progress if run is not None else None

    def applied(self) -> Offsets:
        return {**self.held, **self.wanted(5, 6, 7)}

    def is_as_it_was(self) -> None:
        """Check that nothing has changed, or that the rollback file restores the group."""
        if self.view().committed != self.held:
            outcome = self.restore(self.path, "rollback-back.json")
            assert outcome.applied is Applied.ALL, outcome
        assert self.view().committed == self.held


@pytest.fixture
def case(proxied: ProxiedBroker, tmp_path: Path) -> Case:
    return Case(proxied, tmp_path)


def _caught(
    case: Case, pool: ThreadPoolExecutor, fault: Fault
) -> tuple[Trap, Future[ChangeOutcome]]:
    """Return a trap and the run whose commit has triggered the trap."""
    trap = case.proxied.proxy.trap(Api.OFFSET_COMMIT, fault)
    run = pool.submit(case.commit)
    assert trap.triggered.wait(_SOON)
    return trap, run


# -- dead brokers --------------------------------------------------------------------------------


def test_commit_with_dead_broker_fails_and_writes_no_file(tmp_path: Path, impatient: None) -> None:
    with ProxiedBroker() as mortal:
        mortal.create_topic(_TOPIC, 3)
        mortal.create_topic("other", 1)
        case = Case(mortal, tmp_path)
        mortal.kill()
        with pytest.raises(BrokerError, match="that the broker is running"):
            case.commit()
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "fault", [Fault.HOLD, Fault.HOLD_ANSWER], ids=["before it has the commit", "after"]
)
def test_commit_succeeds_after_broker_restart(
    case: Case, pool: ThreadPoolExecutor, fault: Fault
) -> None:
    trap, run = _caught(case, pool, fault)
    case.proxied.kill()
    trap.release()
    case.proxied.start()
    outcome = run.result(_SOON * 2)
    assert outcome.applied is Applied.ALL
    assert case.view().committed == case.applied()
    assert case.fate() is ChangeProgress.APPLIED
    case.is_as_it_was()


@pytest.mark.parametrize(
    ("fault", "expected"),
    [(Fault.HOLD, ChangeProgress.UNCHANGED), (Fault.HOLD_ANSWER, ChangeProgress.APPLIED)],
    ids=["before it has the commit", "after"],
)
def test_commit_is_reported_as_unverified_if_broker_is_killed_and_not_restarted(
    case: Case, pool: ThreadPoolExecutor, impatient: None, fault: Fault, expected: ChangeProgress
) -> None:
    trap, run = _caught(case, pool, fault)
    case.proxied.kill()
    trap.release()
    outcome = run.result(_SOON)
    assert outcome.applied is Applied.UNVERIFIED
    assert {o.result for o in outcome.partitions} == {Result.UNKNOWN}
    assert outcome.rollback_path == case.path
    case.proxied.start()
    assert case.fate() is expected
    case.is_as_it_was()


@contextmanager
def _closed_without_garbage_collector() -> Iterator[None]:
    """Check that connections created in the block are closed as soon as they are unused."""
    gc.disable()
    before = _connections()
    try:
        yield
        assert _connections() <= before
    finally:
        gc.enable()


def _connections() -> set[int]:
    return {id(held) for held in gc.get_objects() if isinstance(held, connection.Connection)}


def test_connection_is_closed_without_garbage_collector(proxied: ProxiedBroker) -> None:
    """Regression: The garbage collector closed a connection in a librdkafka thread.

    The process then aborted.
    """
    with _closed_without_garbage_collector():
        client = connection.Connection({"bootstrap.servers": proxied.bootstrap_servers})
        del client


def test_connection_is_closed_after_failed_requests(proxied: ProxiedBroker) -> None:
    """Regression: Each failed request left a client and its threads open.

    At the limit of 1,024 open files, PySpark's callbacks stopped without an error.
    """
    config = {"bootstrap.servers": proxied.bootstrap_servers}
    with _closed_without_garbage_collector():
        question = Question(frozenset((_TOPIC, "missing")), "missing-group")
        assert take_snapshot(config, question).topics.keys() == {_TOPIC}
        assert not ConsumerGroups(config).view("missing-group").committed
        client = connection.Connection(config)
        missing = client.admin.describe_topics(TopicCollection(["missing"]))["missing"]
        with pytest.raises(BrokerError):
            client.wait("topic missing", missing)
        del client, missing


def test_connection_is_closed_if_no_broker_answers() -> None:
    with _closed_without_garbage_collector(), pytest.raises(BrokerError):
        connection.Connection({"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"})


# -- lost responses ------------------------------------------------------------------------------


def test_lost_commit_request_is_resent(case: Case) -> None:
    trap = case.proxied.proxy.trap(Api.OFFSET_COMMIT, Fault.CUT)
    outcome = case.commit()
    assert trap.triggered.is_set()
    assert outcome.applied is Applied.ALL
    assert case.view().committed == case.applied()


def test_accepted_commit_without_response_is_verified_by_reading(
    case: Case, impatient: None
) -> None:
    """A consumer may have committed newer offsets, so `migrate` does not resend the commit."""
    before = case.proxied.proxy.count(Api.OFFSET_COMMIT)
    trap = case.proxied.proxy.trap(Api.OFFSET_COMMIT, Fault.HOLD_ANSWER)
    outcome = case.commit()
    assert trap.triggered.is_set()
    assert outcome.applied is Applied.ALL
    assert case.proxied.proxy.count(Api.OFFSET_COMMIT) == before + 1
    trap.release()


def test_commit_succeeds_when_connection_closes_before_response(case: Case) -> None:
    trap = case.proxied.proxy.trap(Api.OFFSET_COMMIT, Fault.LOSE_ANSWER)
    assert case.commit().applied is Applied.ALL
    assert trap.triggered.is_set()
    assert case.view().committed == case.applied()


def test_commit_is_reported_as_applied_if_final_check_gets_no_response(
    case: Case, impatient: None
) -> None:
    """``migrate`` read the committed offsets back before the final check."""
    # The group is read three times before the trap: at the start, after the rollback file is
    # written, and after the commit.
    trap = case.proxied.proxy.trap(Api.DESCRIBE_GROUPS, Fault.CUT, times=1000, after=3)
    outcome = case.commit()
    trap.release()
    assert trap.triggered.is_set()
    assert outcome.applied is Applied.ALL
    assert case.view().committed == case.applied()


def test_retry_does_not_overwrite_commit_of_different_client(
    case: Case, pool: ThreadPoolExecutor, impatient: None
) -> None:
    """The first attempt never arrives, and a different client commits before the second attempt."""
    trap, run = _caught(case, pool, Fault.HOLD)
    case.proxied.commit(case.group, {(_TOPIC, 0): 9})
    outcome = run.result(_SOON)
    trap.release()
    assert [o.result for o in outcome.partitions] == [
        Result.DIFFERS,
        Result.COMMITTED,
        Result.COMMITTED,
    ]
    assert outcome.partitions[0].now == Committed(9)
    assert outcome.applied is Applied.PARTLY


def test_commit_is_reported_as_unverified_if_connection_closes_during_second_request(
    case: Case, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "_REQUEST_BYTES", 1)  # one offset per request
    trap = case.proxied.proxy.trap(Api.OFFSET_COMMIT, Fault.CUT, times=1000, after=1)
    outcome = case.commit()
    trap.release()
    assert outcome.applied is Applied.UNVERIFIED
    # The broker may have received the second request. The third was not sent.
    assert [o.result for o in outcome.partitions] == [
        Result.COMMITTED,
        Result.UNKNOWN,
        Result.FAILED,
    ]
    assert case.view().committed == {**case.held, **case.wanted(5)}
    assert case.fate() is ChangeProgress.IN_PART
    case.is_as_it_was()


def test_commit_without_response_is_reported_as_unverified(case: Case, impatient: None) -> None:
    """Regression: The broker executed the request after ``migrate`` had reported no change."""
    trap = case.proxied.proxy.trap(Api.OFFSET_COMMIT, Fault.HOLD, times=99)
    outcome = case.commit()
    assert case.view().committed == case.held
    assert outcome.applied is Applied.UNVERIFIED
    assert {row.result for row in outcome.partitions} == {Result.UNKNOWN}
    lines = "\n".join(outcome_lines(outcome))
    assert "nothing was changed" not in lines
    assert "the broker may still execute the request; its offset is 1" in lines
    trap.release()
    _await(lambda: case.view().committed == case.applied())
    case.is_as_it_was()


# -- other clients -------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_member_joining_between_check_and_commit_prevents_commit(
    case: Case, pool: ThreadPoolExecutor, protocol: str
) -> None:
    case.proxied.commit(case.group, {(_TOPIC, 1): 1, (_TOPIC, 2): 1})
    case.seen = case.view()
    trap, run = _caught(case, pool, Fault.HOLD)
    with member(case.proxied, case.group, _TOPIC, protocol):
        trap.release()
        outcome = run.result(_SOON)
    assert outcome.applied is Applied.NOTHING
    assert {o.failure.code for o in outcome.partitions if o.failure} == {"UNKNOWN_MEMBER_ID"}
    assert case.view().committed == case.seen.committed
    assert case.fate() is ChangeProgress.UNCHANGED


@pytest.mark.parametrize("same", [True, False], ids=["the same offsets", "other offsets"])
def test_concurrent_runs_report_final_offsets_and_save_original_offsets(
    case: Case, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    """Both runs check the group before they commit, so the second run overwrites the first."""
    monkeypatch.setattr(consumer_group, "_SETTLE_SECONDS", 3.0)  # long enough for a busy machine
    trap, last = _caught(case, pool, Fault.HOLD)
    second = case.folder / "rollback-second.json"
    others = case.wanted(5, 6, 7) if same else case.wanted(3, 3, 3)
    first = pool.submit(case.commit, others, second)
    _await(lambda: case.view().committed == {**case.held, **others})
    time.sleep(0.3)  # the first run has read its offsets back
    trap.release()
    told = [outcome.result for outcome in first.result(_SOON).partitions]
    assert told == [Result.COMMITTED if same else Result.DIFFERS] * 3
    assert last.result(_SOON).applied is Applied.ALL
    assert case.view().committed == case.applied()
    # Both runs have saved the original offsets.
    assert rollback_file.read(case.path).before.committed == case.held
    assert rollback_file.read(second).before.committed == case.held
    if not same:
        assert undo.read_preview(case.config, rollback_file.read(second)).unless_forced
    case.is_as_it_was()


def test_commit_is_refused_if_other_client_commits_while_rollback_file_is_written(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = consumer_group.write_rollback_file

    def keep_while_another_commits(*arguments: Any, **options: Any) -> None:
        keep(*arguments, **options)
        case.proxied.commit(case.group, {(_TOPIC, 0): 9})

    monkeypatch.setattr(consumer_group, "write_rollback_file", keep_while_another_commits)
    with pytest.raises(Refused, match="changed after the group was read"):
        case.commit()
    assert case.view().committed == {**case.held, (_TOPIC, 0): Committed(9)}
    assert not case.path.exists()


# -- killed runs ---------------------------------------------------------------------------------

_COMMIT = """
import json, sys
from pathlib import Path
from migrate.kafka.groups import ConsumerGroups
from migrate.kafka.snapshot import take_snapshot
from migrate.model.cluster_snapshot import Committed
from migrate.targets.group.commit import commit
config, group, wanted, path = json.loads(sys.argv[1])
before = ConsumerGroups(config).view(group)
print("ready", flush=True)
commit(config, group, {(t, p): Committed(o, m) for t, p, o, m in wanted}, before, Path(path))
"""
_RESTORE = """
import json, sys
from pathlib import Path
from migrate.targets.group import rollback_file
from migrate.targets.group.rollback import read_preview, restore
config, path, to = json.loads(sys.argv[1])
print("ready", flush=True)
preview = read_preview(config, rollback_file.read(Path(path)))
restore(config, preview, Path(to))
"""


def _process(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a run in a process that the test can kill."""
    command = [sys.executable, "-c", program, json.dumps(arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _commit_process(case: Case) -> subprocess.Popen[str]:
    wanted = [[*place, c.next_offset, c.metadata] for place, c in case.wanted(5, 6, 7).items()]
    return _process(_COMMIT, case.config, case.group, wanted, str(case.path))


def _kill_when_triggered(
    trap: Trap, process: subprocess.Popen[str], with_signal: signal.Signals = signal.SIGKILL
) -> None:
    assert trap.triggered.wait(_SOON)
    process.send_signal(with_signal)
    try:
        process.communicate(timeout=_SOON)
    finally:
        process.kill()
    assert process.returncode != 0


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGINT])
def test_next_run_reports_no_change_if_commit_was_killed_after_writing_rollback_file(
    case: Case, with_signal: signal.Signals
) -> None:
    trap = case.proxied.proxy.trap(Api.OFFSET_COMMIT, Fault.HOLD)
    _kill_when_triggered(trap, _commit_process(case), with_signal)
    assert list(case.folder.iterdir()) == [case.path]
    assert case.fate() is ChangeProgress.UNCHANGED
    # The request may still arrive from the network.
    trap.release()
    _await(lambda: case.view().committed == case.applied())
    assert case.fate() is ChangeProgress.APPLIED
    case.is_as_it_was()


@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGINT])
def test_next_run_reports_change_if_commit_was_killed_after_its_request(
    case: Case, with_signal: signal.Signals
) -> None:
    trap = case.proxied.proxy.trap(Api.OFFSET_COMMIT, Fault.HOLD_ANSWER)
    _kill_when_triggered(trap, _commit_process(case), with_signal)
    trap.release()
    assert case.fate() is ChangeProgress.APPLIED
    case.seen = case.view()
    again = case.commit(path=case.folder / "rollback-again.json")
    assert again.applied is Applied.NOTHING_TO_DO
    case.is_as_it_was()


def test_next_run_reports_whether_commit_killed_at_any_moment_changed_offsets(case: Case) -> None:
    """The test kills runs at times from the first request until shortly after the end.

    On an idle machine, a run takes about ten milliseconds.
    """
    fates: list[ChangeProgress | None] = []
    wait = 0.0
    while len(fates) < 20 or ChangeProgress.APPLIED not in fates:
        assert wait < _SOON
        process = _commit_process(case)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(wait)
        wait = wait + 0.003 if len(fates) < 20 else wait * 1.5
        process.kill()
        process.communicate(timeout=_SOON)
        fates.append(case.fate())
        assert fates[-1] in (None, ChangeProgress.UNCHANGED, ChangeProgress.APPLIED)
        changed = case.view().committed != case.held
        assert changed is (fates[-1] is ChangeProgress.APPLIED)
        case.is_as_it_was()
        for left in case.folder.iterdir():
            left.unlink()
    assert None in fates


def test_rollback_killed_before_its_commit_changes_nothing(case: Case) -> None:
    assert case.commit().applied is Applied.ALL
    back = case.folder / "rollback-back.json"
    trap = case.proxied.proxy.trap(Api.OFFSET_COMMIT, Fault.HOLD)
    _kill_when_triggered(trap, _process(_RESTORE, case.config, str(case.path), str(back)))
    assert case.view().committed == case.applied()
    assert case.fate() is ChangeProgress.UNCHANGED  # the newest run is the rollback
    assert case.restore(case.path, "rollback-again.json").applied is Applied.ALL
    assert case.view().committed == case.held


@pytest.mark.parametrize("by", ["the first file", "the file of the rollback"])
def test_rollback_killed_before_it_removes_added_offsets_can_be_resumed(
    case: Case, by: str
) -> None:
    """A rollback commits the previous offsets before it removes the added offsets."""
    assert case.commit().applied is Applied.ALL
    # In the meantime, the group has newer commits in a topic that the commit did not change.
    case.proxied.commit(case.group, {("other", 0): 25})
    case.held["other", 0] = Committed(25)
    back = case.folder / "rollback-back.json"
    trap = case.proxied.proxy.trap(Api.OFFSET_DELETE, Fault.HOLD)
    _kill_when_triggered(trap, _process(_RESTORE, case.config, str(case.path), str(back)))
    half = {**case.held, **{key: case.wanted(5, 6, 7)[key] for key in ((_TOPIC, 1), (_TOPIC, 2))}}
    assert case.view().committed == half
    assert case.fate() is ChangeProgress.IN_PART
    if by == "the first file":
        assert case.restore(case.path, "rollback-again.json").applied is Applied.ALL
        assert case.view().committed == case.held
    else:
        assert case.restore(back, "rollback-again.json").applied is Applied.ALL
        assert case.view().committed == {**case.applied(), ("other", 0): Committed(25)}
    assert case.fate() is ChangeProgress.APPLIED


def test_rollback_does_not_delete_group_that_had_offsets_before_commit(case: Case) -> None:
    assert case.commit().applied is Applied.ALL
    before = case.proxied.proxy.count(Api.DELETE_GROUPS)
    assert case.restore(case.path, "rollback-back.json").applied is Applied.ALL
    assert case.proxied.proxy.count(Api.DELETE_GROUPS) == before
    assert case.view().committed == case.held


def test_rollback_reports_member_that_joins_before_added_offsets_are_removed(
    case: Case, pool: ThreadPoolExecutor
) -> None:
    """Kafka does not remove the offsets of a topic that a member of the group reads."""
    assert case.commit().applied is Applied.ALL
    trap = case.proxied.proxy.trap(Api.OFFSET_DELETE, Fault.HOLD)
    run: Future[ChangeOutcome] = pool.submit(case.restore, case.path, "rollback-back.json")
    assert trap.triggered.wait(_SOON)
    with member(case.proxied, case.group, _TOPIC):
        trap.release()
        outcome = run.result(_SOON)
    assert outcome.applied is Applied.PARTLY
    stayed = [o for o in outcome.partitions if o.target is None]
    assert [(o.partition, o.result, o.now) for o in stayed] == [
        (1, Result.FAILED, Committed(6, "ours")),
        (2, Result.FAILED, Committed(7, "ours")),
    ]
    assert {o.failure.reason for o in stayed if o.failure} == {
        "the group is active; stop its consumers"
    }
    assert case.fate() is ChangeProgress.IN_PART
    assert case.restore(case.path, "rollback-again.json").applied is Applied.ALL
    assert case.view().committed == case.held


def test_rollback_reads_offsets_back_if_request_to_remove_them_gets_no_response(case: Case) -> None:
    assert case.commit().applied is Applied.ALL
    trap = case.proxied.proxy.trap(Api.OFFSET_DELETE, Fault.LOSE_ANSWER)
    assert case.restore(case.path, "rollback-back.json").applied is Applied.ALL
    assert trap.triggered.is_set()
    assert case.view().committed == case.held


def test_rollback_removes_added_offsets_even_if_response_to_its_commit_is_lost(case: Case) -> None:
    """Regression: The rollback restored one offset and failed with "timed out" for the rest."""
    assert case.commit().applied is Applied.ALL
    trap = case.proxied.proxy.trap(Api.OFFSET_COMMIT, Fault.LOSE_ANSWER)
    assert case.restore(case.path, "rollback-back.json").applied is Applied.ALL
    assert trap.triggered.is_set()
    assert case.view().committed == case.held


def test_rollback_keeps_newer_commit_of_different_client(
    case: Case, pool: ThreadPoolExecutor
) -> None:
    """Regression: The rollback removed the other client's offset and reported "applied"."""
    assert case.commit().applied is Applied.ALL
    trap = case.proxied.proxy.trap(Api.OFFSET_COMMIT, Fault.HOLD)
    run: Future[ChangeOutcome] = pool.submit(case.restore, case.path, "rollback-back.json")
    assert trap.triggered.wait(_SOON)
    case.proxied.commit(case.group, {(_TOPIC, 1): 25})
    trap.release()
    outcome = run.result(_SOON)
    assert outcome.applied is Applied.PARTLY
    assert case.view().committed == {**case.held, (_TOPIC, 1): Committed(25)}
