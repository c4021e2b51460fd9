"""Move a job that dies between its stop savepoint and the commit (trap A19).

The job and the broker are real, and Kafka really aborts the records.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.command import Result, migrate
from tests.support.flink import run_copy_job
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration

_RECORDS = 30
_MORE = 20
# Timeouts in milliseconds. Kafka soon aborts the transaction with the short timeout.
_SHORT, _LONG = 2_000, 600_000
_SECONDS = 60
# Several partitions, as on production brokers. The transactional ID determines the partition.
_SETTINGS = {
    "transaction.state.log.num.partitions": "5",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


@dataclass(frozen=True, slots=True)
class Story:
    """The savepoints of a job, the output of the commands, and the numbers of visible records.

    ``died`` is the savepoint of a job that died before it committed its transactions.
    ``made_again`` is the output of two ``to-flink`` runs that rewrite this savepoint: the first is
    refused, and the second is allowed. The job was restored from the rewritten savepoint, has read
    more records, and has committed. ``stopped`` is its next savepoint, after a normal stop.
    """

    servers: str
    died: Path
    stopped: Path
    while_open: Result
    once_aborted: Result
    made_again: tuple[Result, Result]
    visible_once_aborted: dict[str, int]
    visible_at_the_end: dict[str, int]


@pytest.fixture(scope="module", params=["1.20", "2.2"])
def story(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    savepoints = tmp_path_factory.mktemp("savepoints")
    with Broker(_SETTINGS) as broker:
        for topic in ("orders", "short", "long"):
            broker.create_topic(topic, 1)
        broker.produce("orders", 0, map(str, range(_RECORDS)))

        def run(until: int, short: int, restored: Path | None = None) -> Path:
            return run_copy_job(
                version=request.param,
                bootstrap_servers=broker.bootstrap_servers,
                topic="orders",
                copies={"short": short, "long": _LONG},
                until=until,
                savepoint_dir=savepoints,
                restored=restored,
                dies=restored is None,
            )

        def visible() -> dict[str, int]:
            return {topic: len(broker.records(topic)) for topic in ("short", "long")}

        def look() -> Result:
            return migrate("to-spark", died, "-b", broker.bootstrap_servers)

        died = run(_RECORDS, _SHORT)
        while_open = look()
        deadline = time.monotonic() + _SECONDS
        while "aborted" not in (once_aborted := look()).stderr:
            assert time.monotonic() < deadline, once_aborted
            time.sleep(0.5)
        visible_once_aborted = visible()
        broker.produce("orders", 0, map(str, range(_MORE)))
        # The job resumes from the rewritten savepoint, which contains the same positions.
        to_flink = (
            *("to-flink", died, "--from", died, "-b", broker.bootstrap_servers),
            *("--out", savepoints / "again"),
        )
        made_again = migrate(*to_flink), migrate(*to_flink, "--allow-in-flight")
        stopped = run(_MORE, _LONG, restored=savepoints / "again")
        yield Story(
            broker.bootstrap_servers,
            died,
            stopped,
            while_open,
            once_aborted,
            made_again,
            visible_once_aborted,
            visible(),
        )


def _lines(result: Result, beginning: str) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith(beginning)]


def _committed(result: Result) -> list[str]:
    said = "is committed according to the brokers' transaction log"
    return [line for line in _lines(result, "transaction ") if said in line]


def test_savepoint_with_open_transaction_is_refused(story: Story) -> None:
    assert (story.while_open.code, story.while_open.stdout) == (4, "")
    (line,) = [line for line in _lines(story.while_open, "refused: ") if "'to-long-" in line]
    assert "is still open on the brokers" in line
    assert "restore the job from this checkpoint once" in line


def test_savepoint_with_aborted_transaction_is_refused(story: Story) -> None:
    """Consumers with read_committed never receive the aborted records."""
    assert story.visible_once_aborted == {"short": 0, "long": 0}
    assert (story.once_aborted.code, story.once_aborted.stdout) == (4, "")
    (line,) = [line for line in _lines(story.once_aborted, "refused: ") if "'to-short-" in line]
    assert "was aborted on the brokers" in line


def test_restored_job_commits_open_transaction_and_migrate_reports_commit(story: Story) -> None:
    assert story.visible_at_the_end == {"short": _MORE, "long": _RECORDS + _MORE}
    flags = ("-b", story.servers)
    result = migrate("to-spark", story.died, *flags)
    assert result.code == 4
    (refused,) = _lines(result, "refused: ")
    assert "'to-short-" in refused
    allowed = migrate("to-spark", story.died, *flags, "--allow-in-flight")
    assert (allowed.code, json.loads(allowed.stdout)) == (0, {"orders": {"0": _RECORDS}})
    (note,) = _committed(allowed)
    assert "'to-long-" in note
    (warning,) = [line for line in _lines(allowed, "warning: ") if "transaction" in line]
    assert "'to-short-" in warning


def test_rewritten_savepoint_with_aborted_transaction_is_refused(story: Story) -> None:
    """The restored job commits a transaction that is still open, but not an aborted one."""
    refused, allowed = story.made_again
    assert (refused.code, refused.stdout) == (4, "")
    (line,) = _lines(refused, "refused: ")
    assert "'to-short-" in line and "was aborted on the brokers" in line
    assert allowed.code == 0, allowed.stderr
    told = [line for line in _lines(allowed, "warning: ") if "transaction" in line]
    assert len(told) == 2
    assert any("the restored job commits this output" in line for line in told)


def test_savepoint_with_committed_transactions_triggers_no_transaction_warning(
    story: Story,
) -> None:
    for command in (("to-spark",), ("commit-group", "--group", "next")):
        result = migrate(*command, story.stopped, "-b", story.servers)
        assert result.code == 0, result.stderr
        assert len(_committed(result)) == 2
        assert not [line for line in _lines(result, "warning: ") if "transaction" in line]


def test_outcome_of_pending_transactions_is_unknown_without_broker(story: Story) -> None:
    moved = migrate("to-spark", story.stopped)
    inspected = migrate("inspect", story.stopped, "--format", "json")
    found = [
        finding
        for finding in json.loads(inspected.stdout)["findings"]
        if finding["code"] == "pending-transactions"
    ]
    assert [finding["severity"] for finding in found] == ["warning", "warning"]
    for told in (*(finding["message"] for finding in found), moved.stderr):
        assert "the savepoint does not show whether the stop committed" in told


def test_transactions_unknown_to_brokers_trigger_warning(story: Story, broker: Broker) -> None:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, map(str, range(_RECORDS + _MORE)))
    flags = ("-b", broker.bootstrap_servers, "--topic-map", f"orders={topic}")
    result = migrate("to-spark", story.stopped, *flags)
    assert result.code == 0, result.stderr
    warned = [
        line for line in _lines(result, "warning: ") if "these brokers have no record of" in line
    ]
    assert len(warned) == 2
