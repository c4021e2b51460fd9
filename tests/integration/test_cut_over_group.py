"""Check that a cut-over reports start offsets of a target only with evidence.

The tests use real brokers and a real query.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition

from tests.support.command import Result, migrate, running
from tests.support.full_disk import run_on_disk_full_after
from tests.support.golden_topics import GOLDEN, create_golden_topics
from tests.support.groups import PROTOCOLS, member, read_from_group
from tests.support.kafka import Broker
from tests.support.plans import edit_and_seal_plan
from tests.support.recorded_flink import recorded_flink
from tests.support.spark import Spark

pytestmark = pytest.mark.integration

_SAVEPOINT = next((GOLDEN / "2.2/stop").glob("savepoint-*"))


class CutOver:
    """The spec of a cut-over from a stopped job, and the topic that the job has read."""

    def __init__(self, broker: Broker, folder: Path, **fields: Any) -> None:
        self.broker, self.folder = broker, folder
        self.names = create_golden_topics(broker, "orders")
        self.topic = self.names["orders"]
        self.group = f"group-{uuid.uuid4().hex[:8]}"
        self.fields = {
            "version": 1,
            "flink": {"savepoint": str(_SAVEPOINT)},
            "kafka": {"bootstrap-servers": broker.bootstrap_servers},
            "move": {"topic-map": {**self.names, "payments": "gone"}, "gone": "skip"},
            "target": {"group": self.group},
            "timeouts": {"first-batch": "60s"},
            **fields,
        }

    def spec(self, name: str = "one", **fields: Any) -> Path:
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump({**self.fields, **fields}))
        return path

    def run(self, *more: str, name: str = "one", **fields: Any) -> Result:
        return migrate("cut-over", self.spec(name, **fields), "--execute", "--yes", *more)

    def record(self, name: str = "one") -> dict[str, Any]:
        record: dict[str, Any] = json.loads(
            (self.folder / f"{name}.cut-over/record.json").read_text()
        )
        return record

    def planned(self, name: str = "one") -> dict[tuple[str, int], int]:
        rows = self.record(name)["partitions"]
        return {
            (row["topic"], row["partition"]): row["planned"]
            for row in rows
            if row["planned"] is not None
        }

    def more_records(self, count: int) -> None:
        for _, partition in self.planned():
            self.broker.produce(self.topic, partition, map(str, range(count)))

    def consume_elsewhere(
        self,
        skip: int | None = None,
        upto: Mapping[tuple[str, int], int] | None = None,
        epoch: int = -1,
    ) -> dict[tuple[str, int], int]:
        """Read with a consumer that assigns its own partitions; return its committed offsets.

        Args:
            skip: The number of records between the planned offset and the first record to read,
                or None to start at the log start offset.
            upto: The offsets to commit. The default is the log end offsets.
            epoch: The leader epoch to commit, or -1 for none.
        """
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "group.id": self.group,
                "enable.auto.commit": False,
            }
        )
        marks = self.broker.watermarks(self.topic)
        begins = {
            place: marks[place[1]][0] if skip is None else offset + skip
            for place, offset in self.planned().items()
        }
        consumer.assign([TopicPartition(*place, offset) for place, offset in begins.items()])
        ends = dict(upto or {place: marks[place[1]][1] for place in begins})
        expected = sum(ends[place] - begins[place] for place in begins)
        assert len(consumer.consume(expected, 30)) == expected or upto is not None
        consumer.commit(
            offsets=[
                TopicPartition(*place, end, leader_epoch=epoch) for place, end in ends.items()
            ],
            asynchronous=False,
        )
        consumer.close()
        return ends


@pytest.fixture
def cut_over(broker: Broker, tmp_path: Path) -> CutOver:
    return CutOver(broker, tmp_path)


def test_start_is_not_verified_if_consumers_started_at_other_offsets(cut_over: CutOver) -> None:
    assert cut_over.run("--until", "verify").code == 0
    cut_over.more_records(20)
    ends = cut_over.consume_elsewhere(skip=10)
    done = cut_over.run()
    assert done.code == 5, done.stderr
    count = len(ends)
    assert (
        f"not verified: {count} cannot tell; the actual start offset of {count} partitions is "
        "unknown" in done.stderr
    )
    assert "before a member was seen with this partition" in done.stderr
    assert "[target-start-unknown]" in done.stderr
    assert "lost 0" not in done.stderr
    (report,) = (one for one in cut_over.record()["verifications"] if one["when"] == "after")
    assert (report["verified"], report["unknown"]) == (False, count)
    firsts = {(row["topic"], row["partition"]): row["first_commit"] for row in _rows(cut_over)}
    assert firsts == ends
    # The Flink job must not resume from the savepoint either.
    assert (
        "do not start the Flink job from its savepoint, because other clients committed"
        in done.stderr
    )
    assert cut_over.broker.committed(cut_over.group) == ends


@pytest.mark.parametrize("epoch", [0, -1], ids=["with an epoch", "without one"])
def test_start_is_not_verified_if_consumers_started_at_earliest_offset(
    cut_over: CutOver, epoch: int
) -> None:
    """The consumers read all records but commit only the planned offsets.

    On an idle topic, consumers commit the same offsets. Without a leader epoch, such a commit looks
    like the commit of the cut-over. The cut-over then reports that no member joined and no offsets
    were committed.
    """
    cut_over.fields["timeouts"] = {"first-batch": "3s"}
    assert cut_over.run("--until", "verify").code == 0
    cut_over.consume_elsewhere(upto=cut_over.planned(), epoch=epoch)
    done = cut_over.run()
    assert done.code == 5, done.stderr
    seen = "records may have been skipped or duplicated" if epoch == 0 else "no member joined"
    assert seen in done.stderr
    assert "verify-again done" not in done.stderr


def test_start_is_not_verified_by_member_that_reads_different_topic(cut_over: CutOver) -> None:
    assert cut_over.run("--until", "verify").code == 0
    other = f"{cut_over.topic}-other"
    cut_over.broker.create_topic(other, 1)
    with running("cut-over", cut_over.spec(), "--execute", "--yes") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("first-batch: wait"):
                break
        with member(cut_over.broker, cut_over.group, other):
            time.sleep(2)
        cut_over.more_records(20)
        cut_over.consume_elsewhere(skip=10)
        output = process.stderr.read()
        assert process.wait() == 5, output
    assert "before a member was seen with this partition" in output
    assert {row["members_seen"] for row in _rows(cut_over)} == {False}


def test_cut_over_back_restores_original_offsets_after_second_commit(
    cut_over: CutOver,
) -> None:
    assert cut_over.run("--until", "plan").code == 0
    planned = cut_over.planned()
    held = {place: max(offset - 2, 0) for place, offset in planned.items()}
    cut_over.broker.commit(cut_over.group, held)
    assert cut_over.run("--until", "apply").code == 0
    # Simulate a partial commit that no run has completed.
    path = cut_over.folder / "one.cut-over/record.json"
    edit_and_seal_plan(path, lambda record: record.update(written=None))
    place = min(planned)
    cut_over.broker.commit(cut_over.group, {place: held[place]})
    again = cut_over.run("--until", "apply")
    assert again.code == 0, again.stderr
    assert len(list(path.parent.glob("rollback-*.json"))) == 2
    assert cut_over.broker.committed(cut_over.group) == planned
    assert cut_over.run("--back", "--nothing-started").code == 0
    assert cut_over.broker.committed(cut_over.group) == held


def test_cut_over_back_after_newer_commits_refers_to_rollback_command(
    cut_over: CutOver,
) -> None:
    """Regression: The refusal suggested ``--force``, but a cut-over does not have this option."""
    assert cut_over.run("--until", "apply").code == 0
    assert cut_over.run("--back", "--nothing-started").code == 0
    place = min(cut_over.planned())
    nothing = migrate("cut-over", cut_over.spec(), "--back", "--nothing-started")
    assert nothing.code == 0 and "restore group" not in nothing.stdout, nothing.stdout
    cut_over.broker.commit(cut_over.group, {place: 1})
    path = min((cut_over.folder / "one.cut-over").glob("rollback-*.json"))
    for mode in ((), ("--execute", "--yes")):
        again = migrate("cut-over", cut_over.spec(), "--back", "--nothing-started", *mode)
        assert again.code == 4, again.stderr
        assert "has newer commits" in again.stderr
        assert f"to use --force, run: migrate rollback {path}" in again.stderr
    assert cut_over.broker.committed(cut_over.group) == {place: 1}


@pytest.mark.parametrize("adopt", [False, True])
@pytest.mark.parametrize(
    ("full_after", "committed", "state"),
    [
        ("saving current offsets to ", False, "this run has not written the target"),
        ("committing for group ", True, "the target is written"),
    ],
    ids=["before the commit", "after the commit"],
)
def test_cut_over_on_full_disk_reports_state_of_group(
    cut_over: CutOver, full_after: str, committed: bool, state: str, adopt: bool
) -> None:
    """Regression: The cut-over reported a stopped Flink job and a partly written target.

    Both statements were false. The run had not stopped a job, and the commit was complete or had
    not started.
    """
    assert cut_over.run("--until", "plan").code == 0
    planned = cut_over.planned()
    if adopt:
        cut_over.broker.commit(cut_over.group, planned)
    options = ("--execute", "--yes", "--until", "apply", *(("--adopt",) if adopt else ()))
    full = run_on_disk_full_after(full_after, "cut-over", cut_over.spec(), *options)
    assert full.code == 6, full.stderr
    assert cut_over.broker.committed(cut_over.group) == (planned if committed or adopt else {})
    stopped = f"stopped at apply: this run has not stopped a job, and {state} [run-stopped]"
    assert f"warning: {stopped}" in full.stderr.splitlines()
    # Each file is reported once.
    folder = cut_over.folder / "one.cut-over"
    unwritten = [line for line in full.stderr.splitlines() if "File too large" in line]
    assert sum(str(folder / "record.json") in line for line in unwritten) == 1
    if not committed:  # Regression: The advice was to choose a file with --rollback-file.
        assert "free space on its disk, or make its directory writable" in full.stderr
        assert list(folder.glob("rollback-*")) == []
    assert "--rollback-file" not in full.stderr
    assert cut_over.run("--until", "apply", *(("--adopt",) if adopt else ())).code == 0
    assert cut_over.broker.committed(cut_over.group) == planned


def test_cut_over_back_on_full_disk_changes_nothing(cut_over: CutOver) -> None:
    """Regression: The error suggested --rollback-file, which is not an option of cut-over."""
    assert cut_over.run("--until", "apply").code == 0
    back = ("cut-over", cut_over.spec(), "--back", "--nothing-started", "--execute", "--yes")
    full = run_on_disk_full_after("saving current offsets to ", *back)
    assert full.code == 6, full.stderr
    assert cut_over.broker.committed(cut_over.group) == cut_over.planned()
    assert "stopped at back: the target is unchanged [run-stopped]" in full.stderr
    assert "free space on its disk, or make its directory writable" in full.stderr
    assert "--rollback-file" not in full.stderr
    assert migrate(*back).code == 0
    assert cut_over.broker.committed(cut_over.group) == {}


def test_commit_of_different_cut_over_does_not_count_as_consumer_commit(cut_over: CutOver) -> None:
    """Regression: The start command never ran, and the cut-over reported every step as "done"."""
    started = cut_over.folder / "started"
    cut_over.fields["start"] = f"touch {started}; exit 3"
    assert cut_over.run("--until", "verify").code == 0
    assert cut_over.run("--until", "verify", "--adopt", name="two").code == 0
    assert cut_over.run().code == 5
    assert cut_over.run("--back", "--nothing-started", name="two").code == 0
    assert not started.exists()
    failed = cut_over.run()
    assert failed.code == 5 and started.exists(), failed.stderr


def test_going_back_from_group_cut_over_requires_rollback_file(cut_over: CutOver) -> None:
    """``cut-over --back`` is refused if the rollback file was deleted."""
    assert cut_over.run("--until", "verify").code == 0
    folder = cut_over.folder / "one.cut-over"
    (folder / "plan.json").unlink()
    for file in folder.glob("rollback-*"):
        file.unlink()
    refused = cut_over.run("--back", "--nothing-started")
    assert refused.code == 4 and "restore the file" in refused.stderr, refused.stderr
    assert cut_over.broker.committed(cut_over.group) == cut_over.planned()


def _rows(cut_over: CutOver) -> list[Mapping[str, Any]]:
    return [row for row in cut_over.record()["partitions"] if row["planned"] is not None]


def test_start_is_not_verified_if_job_may_be_restarted(cut_over: CutOver) -> None:
    """Regression: A rerun of a finished cut-over verified the start and exited with 0.

    The rerun did so even if the job had recovered after the stop or Flink did not answer.
    """
    with recorded_flink() as (flink, url):
        flink.listed = {flink.finished}
        job = {"savepoint": str(_SAVEPOINT), "rest": url, "job": flink.finished}
        cut_over.fields["flink"] = job
        assert cut_over.run("--until", "verify").code == 0
        cut_over.more_records(20)
        with running("cut-over", cut_over.spec(), "--execute", "--yes") as process:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith("first-batch: wait"):
                    break
            read_from_group(cut_over.broker, cut_over.group, [cut_over.topic], "classic")
            told = process.stderr.read()
            assert process.wait() == 0, told
        assert "lost 0, repeated 0" in told and "not checked" not in told
        flink.began_at(seconds_ago=0)
        path = flink.recovered()
        flink.listed.add(flink.reading)
        hidden = cut_over.run()
        assert hidden.code == 5, hidden.stderr
        assert f"(the job that moves) started later, and has recovered from {path}" in hidden.stderr
        assert f"readers have started from group:{cut_over.group}" in hidden.stderr
        assert "verify-again done" not in hidden.stderr
        # The start offsets are stored, although the step has failed.
        after = cut_over.record()["verifications"][-1]
        assert (after["when"], after["verified"]) == ("after", True)
    away = cut_over.run()
    assert away.code == 6, away.stderr
    assert "verify-again done" not in away.stderr
    allowed = cut_over.run(move={**cut_over.fields["move"], "allow-ran-on": True})
    assert allowed.code == 0, allowed.stderr
    restart = "lost 0, repeated 0; it is unknown whether the Flink job was restarted, because"
    assert restart in allowed.stderr


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_start_of_group_is_verified_if_members_were_seen_before_newer_commits(
    cut_over: CutOver, protocol: str
) -> None:
    assert cut_over.run("--until", "verify").code == 0
    cut_over.more_records(20)
    with running("cut-over", cut_over.spec(), "--execute", "--yes") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("first-batch: wait"):
                break
        read = read_from_group(cut_over.broker, cut_over.group, [cut_over.topic], protocol)
        told = process.stderr.read()
        assert process.wait() == 0, told
    assert "lost 0, repeated 0" in told
    assert {row["members_seen"] for row in _rows(cut_over)} == {True}
    assert len(read) >= 20 * len(cut_over.planned())
    # The start stays verified, although other clients have committed in the meantime.
    again = cut_over.run()
    assert again.code == 0, again.stderr
    back = cut_over.run("--back", "--nothing-started")
    assert back.code == 4 and "other clients committed" in back.stderr


def test_group_that_already_has_planned_offsets_requires_option_adopt(cut_over: CutOver) -> None:
    """The job, or a move with files in a different directory, may have committed these offsets."""
    assert cut_over.run("--until", "plan").code == 0
    cut_over.broker.commit(cut_over.group, cut_over.planned())
    refused = cut_over.run("--until", "verify")
    assert refused.code == 4, refused.stderr
    assert "[group-writer-unknown]" in refused.stderr
    ready = cut_over.run("--until", "verify", "--adopt")
    assert ready.code == 0, ready.stderr
    # The rollback file contains the group's offsets and the ID of the cut-over.
    (file,) = (cut_over.folder / "one.cut-over").glob("rollback-*.json")
    saved = json.loads(file.read_text())
    held = {(one["topic"], one["partition"]): one for one in saved["before"]["offsets"]}
    assert {place: one["next_offset"] for place, one in held.items()} == cut_over.planned()
    assert saved["cut_over"] == cut_over.record()["id"]
    cut_over.more_records(20)
    ends = cut_over.consume_elsewhere(skip=0)
    again = cut_over.run()
    assert again.code == 5, again.stderr
    assert "; the actual start offset of " in again.stderr
    assert cut_over.broker.committed(cut_over.group) == ends


def test_cut_over_back_requires_option_if_consumer_may_be_running(
    cut_over: CutOver,
) -> None:
    """The option is ``--nothing-started``.

    A consumer that assigns itself partitions is not visible until its first commit.
    """
    assert cut_over.run("--until", "verify").code == 0
    cut_over.more_records(20)
    # The consumer has read records but has not committed, so it is not visible.
    consumer = Consumer(
        {
            "bootstrap.servers": cut_over.broker.bootstrap_servers,
            "group.id": cut_over.group,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(*place, at) for place, at in cut_over.planned().items()])
    assert len(consumer.consume(20, 30)) == 20
    for mode in ((), ("--execute", "--yes")):
        back = migrate("cut-over", cut_over.spec(), "--back", *mode)
        assert back.code == 4, back.stderr
        assert "is not visible until its first commit" in back.stderr
        assert "add --nothing-started" in back.stderr
    assert cut_over.broker.committed(cut_over.group) == cut_over.planned()
    consumer.close()
    assert cut_over.run("--back", "--nothing-started").code == 0
    assert cut_over.broker.committed(cut_over.group) == {}


def test_start_is_not_verified_if_records_expired_before_first_batch(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    cut_over = CutOver(broker, tmp_path, target={"checkpoint-dir": "query"})
    assert cut_over.run("--until", "verify").code == 0
    cut_over.more_records(50)
    (topic, partition), planned = max(cut_over.planned().items(), key=lambda row: row[1])
    broker.delete_records(topic, partition, planned + 43)
    read = spark.stream(broker.bootstrap_servers, subscribe=topic, failOnDataLoss="false")
    writer = read.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "query"))
    writer.trigger(availableNow=True).start().awaitTermination(60)
    for _ in range(2):
        done = cut_over.run()
        assert done.code == 5, done.stderr
        assert (
            "the actual start offset of 1 partition is unknown: the log start offset of"
            in done.stderr
        )
        assert f"{topic}-{partition} is {planned + 43}, and was " in done.stderr
        assert "lost 0" not in done.stderr


def test_start_stays_verified_if_records_expire_after_first_batch(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    cut_over = CutOver(broker, tmp_path, target={"checkpoint-dir": "query"})
    assert cut_over.run("--until", "verify").code == 0
    cut_over.more_records(50)
    read = spark.stream(broker.bootstrap_servers, subscribe=cut_over.topic)
    writer = read.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "query"))
    writer.trigger(availableNow=True).start().awaitTermination(60)
    for expires in (False, True):
        if expires:
            _expire(broker, cut_over)
        done = cut_over.run()
        assert done.code == 0, done.stderr
        assert "lost 0, repeated 0" in done.stderr


def test_missing_query_location_is_refused_and_not_reseeded(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    """An operator started the query by hand and renamed its checkpoint location."""
    cut_over = CutOver(broker, tmp_path, target={"checkpoint-dir": "query"}, start="touch started")
    assert cut_over.run("--until", "verify").code == 0
    cut_over.more_records(50)
    read = spark.stream(broker.bootstrap_servers, subscribe=cut_over.topic)
    writer = read.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "query"))
    writer.trigger(availableNow=True).start().awaitTermination(60)
    (tmp_path / "query").rename(tmp_path / "renamed")
    for mode in ((), ("--execute", "--yes")):
        refused = migrate("cut-over", cut_over.spec(), *mode)
        assert refused.code == (5 if mode else 4), refused.stderr
        assert "[written-offsets-gone]" in refused.stderr
    assert "do not start the Flink job from its savepoint yet" in refused.stderr
    assert not (tmp_path / "query").exists() and not (tmp_path / "started").exists()
    back = cut_over.run("--back", "--nothing-started")
    assert back.code == 0, back.stderr


def _expire(broker: Broker, cut_over: CutOver) -> None:
    for (topic, partition), planned in cut_over.planned().items():
        broker.delete_records(topic, partition, planned + 43)


@pytest.mark.parametrize("target", ["group", "checkpoint-dir"])
def test_second_spec_for_same_target_requires_adopt_option(
    target: str, broker: Broker, tmp_path: Path
) -> None:
    """A different machine cannot see a local lock, so the target records its owner."""
    cut_over = CutOver(broker, tmp_path, start="touch started")
    if target != "group":
        cut_over.fields["target"] = {"checkpoint-dir": "query"}
    assert cut_over.run("--until", "verify").code == 0
    refused = cut_over.run("--until", "verify", name="two")
    assert refused.code in (4, 5), refused.stderr
    if target == "group":
        assert "[group-of-other-move]" in refused.stderr
        assert f"by cut-over {cut_over.record()['id']}" in refused.stderr
    else:
        assert "is already the checkpoint location of a query" in refused.stderr
    taken = cut_over.run("--until", "verify", "--adopt", name="two")
    assert taken.code == 0, taken.stderr
    # The first cut-over no longer starts the query or the consumers.
    stopped = cut_over.run()
    assert stopped.code == 5, stopped.stderr
    assert "with --adopt" in stopped.stderr
    assert not (tmp_path / "started").exists()
    kept = cut_over.run("--back", "--nothing-started")
    if target != "group":
        assert kept.code == 4 and "this cut-over wrote query" in kept.stderr, kept.stderr
        assert (tmp_path / "query").exists()
    # The suggested option works. The second cut-over is then refused.
    assert cut_over.run("--until", "verify", "--adopt").code == 0
    second = cut_over.run("--until", "verify", name="two")
    assert second.code == 5 and "with --adopt" in second.stderr, second.stderr


def test_savepoint_cannot_be_moved_to_two_targets(cut_over: CutOver) -> None:
    """Regression: Two cut-overs of one job started two readers at the same offsets."""
    other: dict[str, Any] = {"target": {"group": f"{cut_over.group}-2"}}
    assert cut_over.run("--until", "verify").code == 0
    dry = migrate("cut-over", cut_over.spec("two", **other))
    for refused in (dry, cut_over.run(name="two", **other)):
        assert refused.code == 4, refused.stderr
        assert "[savepoint-already-moved]" in refused.stderr
    # Two moves may share the partitions of a job. The first one moved them all.
    some = {"orders": [partition for _, partition in cut_over.planned()][:1]}
    move = {**cut_over.fields["move"], "partitions": some}
    refused = cut_over.run("--until", "verify", name="some", move=move, **other)
    assert refused.code == 4 and "[savepoint-already-moved]" in refused.stderr, refused.stderr
    # The second cut-over takes over the move, and the first one no longer starts its consumers.
    taken = cut_over.run("--until", "verify", "--adopt", name="two", **other)
    assert taken.code == 0, taken.stderr
    stopped = cut_over.run("--until", "start", start="touch started")
    assert stopped.code == 5, stopped.stderr
    assert "cut-over two (record " in stopped.stderr
    assert "do not start the Flink job from its savepoint, because cut-over two" in stopped.stderr
    assert not (cut_over.folder / "started").exists()
    # After a rollback of the second one, the first one may continue.
    assert cut_over.run("--back", "--nothing-started", name="two", **other).code == 0
    assert cut_over.run("--until", "start", start="touch started").code == 0


def test_manually_seeded_query_requires_adopt_option(broker: Broker, tmp_path: Path) -> None:
    cut_over = CutOver(broker, tmp_path, target={"checkpoint-dir": "query"})
    assert cut_over.run("--until", "plan").code == 0
    plan, query = tmp_path / "one.cut-over/plan.json", tmp_path / "query"
    seeded = migrate(
        "to-spark", "--plan", plan, "--checkpoint-dir", query, "-b", broker.bootstrap_servers
    )
    assert seeded.code == 0, seeded.stderr
    refused = cut_over.run("--until", "verify")
    assert refused.code == 4 and "this cut-over did not write this query" in refused.stderr
    assert cut_over.run("--until", "verify", "--adopt").code == 0
    assert cut_over.run("--until", "verify").code == 0
    assert cut_over.record()["query_id"] == json.loads((query / "metadata").read_text())["id"]


def test_cut_over_dry_run_reports_missing_script_and_warnings_of_plan(cut_over: CutOver) -> None:
    spec = cut_over.spec(start="spark-submit --master 'local[2]' missing.py")
    refused = migrate("cut-over", spec)
    assert refused.code == 4, refused.stderr
    assert "refused: start: " in refused.stderr and "[script-missing]" in refused.stderr
    dry = migrate("cut-over", cut_over.spec(start="true"))
    assert dry.code == 0, dry.stderr
    assert f"group {cut_over.group!r} does not exist and will be created" in dry.stderr
    assert "no other obstacle was found" in dry.stderr
    assert "[restart-unseen]" in dry.stderr
    # For a group, the output does not mention a query or a batch.
    words = dry.stdout.replace("first-batch ", "")
    assert "query" not in words and "batch" not in words, dry.stdout
    # The plan's warnings, for example for a skipped topic, are shown before the job is stopped.
    warnings = cut_over.run("--until", "plan", start="true").stderr
    for line in warnings.splitlines():
        if line.startswith("warning: "):
            assert line in dry.stderr
