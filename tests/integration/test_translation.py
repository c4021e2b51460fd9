"""Move to a cluster whose topics were copied by a real MirrorMaker 2.

A Flink job reads the old cluster up to a savepoint. Spark, a consumer group, and Flink resume in
the new cluster. Records are counted by their unique values.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Timer

import pytest

from migrate.inputs.offsets_json import starting_offsets
from tests.support.command import Result, migrate
from tests.support.flink import run_count_job
from tests.support.groups import read_from_group
from tests.support.records import TopicPartition, append, read_logs
from tests.support.spark import Spark
from tests.support.two_clusters import (
    FLINK,
    NAMES,
    POSITIONS,
    READ_BY_FLINK,
    TwoClusters,
    lost_and_repeated,
    two_clusters,
    values,
)

pytestmark = pytest.mark.integration

# The names in the new cluster of the topics that the job has read.
THERE = [NAMES[topic] for topic in READ_BY_FLINK]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoClusters]:
    with two_clusters(tmp_path_factory.mktemp("two-clusters")) as running:
        yield running


# -- resuming in the new cluster -------------------------------------------------------------------


def test_spark_resumes_in_new_cluster_without_loss(
    clusters: TwoClusters, spark: Spark, tmp_path: Path
) -> None:
    translated = migrate("to-spark", clusters.job.snapshot, *clusters.options(*READ_BY_FLINK))
    assert translated.code == 0, translated.stderr
    offsets = json.loads(translated.stdout)
    assert sorted(offsets) == sorted(THERE)

    def read(name: str) -> tuple[int, int]:
        records = spark.read_all(
            clusters.new.bootstrap_servers,
            {"subscribe": ",".join(THERE)},
            tmp_path / name,
            starting_offsets=json.dumps(offsets),
        )
        return lost_and_repeated(clusters.unread(), [value for *_, value in records])

    assert read("right") == (0, 0)
    # This proves that the assertion above can fail.
    offsets[NAMES["orders"]]["0"] += 1
    offsets[NAMES["ledger"]]["0"] -= 1
    assert read("wrong") == (1, 1)


def test_consumer_group_resumes_in_new_cluster_without_loss(
    clusters: TwoClusters, tmp_path: Path
) -> None:
    group, plan, way_back = "goes-on", tmp_path / "plan.json", tmp_path / "rollback.json"
    options = ("--group", group, *clusters.options(*READ_BY_FLINK))

    def commit_group(*more: str) -> Result:
        return migrate("commit-group", clusters.job.snapshot, *options, *more)

    def verify() -> Result:
        return migrate("verify", f"plan:{plan}", f"group:{group}", *clusters.options())

    planned = commit_group("--plan-out", str(plan))
    assert planned.code == 0, planned.stderr
    assert clusters.new.committed(group) == {}
    execute = ("--execute", "--yes", "--rollback-file")
    committed = commit_group(*execute, str(way_back))
    assert committed.code == 0, committed.stderr
    assert verify().code == 0, verify().output
    rolled_back = migrate("rollback", way_back, "--execute", "--yes")
    assert rolled_back.code == 0, rolled_back.stderr
    assert clusters.new.committed(group) == {}

    commit_group(*execute, str(tmp_path / "second.json"))
    right = clusters.new.committed(group)
    orders = (NAMES["orders"], 0)
    clusters.new.commit(group, {orders: right[orders] - 1})
    assert verify().code == 5, verify().output
    clusters.new.commit(group, right)
    records = read_from_group(clusters.new, group, THERE, "classic")
    assert lost_and_repeated(clusters.unread(), [value for *_, value in records]) == (0, 0)


def test_flink_job_resumes_in_new_cluster_without_loss(
    clusters: TwoClusters, tmp_path: Path
) -> None:
    """The job restores all state in the savepoint. ``run_count_job`` rejects non-restored state."""
    old, savepoint = clusters.job.snapshot, tmp_path / "translated"
    options = clusters.options(*READ_BY_FLINK)
    written = migrate("to-flink", old, "--from", old, "--out", savepoint, *options)
    assert written.code == 0, written.stderr
    logs = read_logs(clusters.new, THERE)
    starts = positions_in(savepoint)
    left = {
        partition: count
        for partition, log in logs.items()
        if (count := sum(offset >= starts.get(partition, 0) for offset in log))
    }
    job = run_count_job(
        version=FLINK,
        bootstrap_servers=clusters.new.bootstrap_servers,
        topics=THERE,
        until=left,
        workdir=tmp_path / "restored",
        restored=savepoint,
    )
    read = [values(logs[record.topic, record.partition])[record.offset] for record in job.counted]
    assert lost_and_repeated(clusters.unread(), read) == (0, 0)


def positions_in(checkpoint: Path) -> dict[TopicPartition, int]:
    """Return the source's next offsets in a checkpoint, with 0 for a marker."""
    inspected = json.loads(migrate("inspect", checkpoint, "--format", "json").stdout)
    return {
        (position["topic"], position["partition"]): position["next_offset"] or 0
        for source in inspected["sources"]
        for position in source["positions"]
    }


# -- exact positions -------------------------------------------------------------------------------


def translate(
    clusters: TwoClusters, folder: Path, positions: Mapping[TopicPartition, int], *more: str
) -> Result:
    side = folder / f"{uuid.uuid4().hex}.json"
    side.write_text(starting_offsets(dict(positions)))
    topics = {topic for topic, _ in positions}
    return migrate("to-spark", f"json:{side}", *clusters.options(*topics), *more)


@pytest.mark.parametrize("topic", ["marks", "committed"])
def test_every_position_among_transactions_is_translated(
    clusters: TwoClusters, tmp_path: Path, topic: str
) -> None:
    """Control records are not copied. Aborted records are copied only for the topic "marks"."""
    positions = {(topic, n): n for n in POSITIONS}
    result = translate(clusters, tmp_path, positions)
    assert result.code == 0, result.stderr
    starts = json.loads(result.stdout)[NAMES[topic]]
    isolation = "read_committed" if topic == "committed" else "read_uncommitted"
    logs = read_logs(clusters.old, [topic], isolation)
    for partition, copies in clusters.copies(topic).items():
        unread = [v for at, v in values(logs[topic, partition]).items() if at >= partition]
        start = starts[str(partition)]
        assert [v for at, v in values(copies).items() if at >= start] == unread, partition


def test_records_copied_twice_by_killed_mirror_require_on_ambiguous_option(
    clusters: TwoClusters, tmp_path: Path
) -> None:
    """The mirror copies records 0 to 11, then 0 to 11 again, and then 12 to 15."""
    topic, copies = "twice", clusters.copies("twice")
    assert [len(log) for log in copies.values()] == [28] * len(POSITIONS)
    certain = {(topic, n): n for n in POSITIONS if n >= 12}
    chosen = [f"--partitions={topic}:{min(n for _, n in certain)}-{max(n for _, n in certain)}"]
    result = translate(clusters, tmp_path, certain, *chosen)
    assert result.code == 0, result.stderr
    starts = json.loads(result.stdout)[NAMES[topic]]
    assert starts == {str(n): n + 12 for _, n in certain}

    several = {(topic, n): n for n in POSITIONS if n < 12}
    chosen = [f"--partitions={topic}:0-11"]
    refused = translate(clusters, tmp_path, several, *chosen)
    assert (refused.code, refused.stdout) == (4, "")
    assert "mirror went back" in refused.stderr
    allowed = translate(clusters, tmp_path, several, *chosen, "--on-ambiguous=first")
    assert allowed.code == 0, allowed.stderr
    for partition, start in json.loads(allowed.stdout)[NAMES[topic]].items():
        old = values(clusters.logs[topic, int(partition)])
        unread = [value for offset, value in old.items() if offset >= int(partition)]
        read = [v for offset, v in values(copies[int(partition)]).items() if offset >= start]
        assert set(unread) <= set(read)
        assert len(read) - len(unread) == 12
    assert "144 records" in refused.stderr


def test_records_compacted_around_position_require_option_on_ambiguous(
    clusters: TwoClusters, tmp_path: Path
) -> None:
    """Compaction removed the two records at the position, so the exact copy is unknown."""
    topic = "compacted-here"
    position = 4 + sum(record.topic == topic for record in clusters.job.counted)
    here = read_logs(clusters.old, [topic])[topic, 0]
    assert {position - 2, position - 1, position, position + 1} & here.keys() == {
        position - 2,
        position + 1,
    }
    refused = translate(clusters, tmp_path, {(topic, 0): position})
    assert (refused.code, refused.stdout) == (4, "")
    assert "ambiguous" in refused.stderr
    allowed = translate(clusters, tmp_path, {(topic, 0): position}, "--on-ambiguous=first")
    assert allowed.code == 0, allowed.stderr
    start = json.loads(allowed.stdout)[NAMES[topic]]["0"]
    (copies,) = clusters.copies(topic).values()
    assert values(copies)[start] == values(clusters.logs[topic, 0])[position - 1]


def test_move_to_position_among_equal_records_is_refused_or_lossless(
    clusters: TwoClusters, tmp_path: Path
) -> None:
    """The copies of equal records do not show whether the mirror went back.

    The test counts the records, because equal records cannot be distinguished.
    """
    (copies,) = clusters.copies("beats").values()
    for position in (7, 30, 41):
        side = {("beats", 0): position}
        result = translate(clusters, tmp_path, side)
        if result.code != 0:
            assert (result.code, result.stdout) == (4, "")
            assert "ambiguous" in result.stderr
            result = translate(clusters, tmp_path, side, "--on-ambiguous", "first")
        assert result.code == 0, result.stderr
        start = json.loads(result.stdout)[NAMES["beats"]]["0"]
        assert sum(offset >= start for offset in copies) >= 41 - position


def test_lagging_mirror_is_refused_unless_wait_option_is_passed(
    clusters: TwoClusters, tmp_path: Path
) -> None:
    (log,) = clusters.copies("slow").values()
    assert len(log) == 20
    clusters.mirror.pause()
    resume = Timer(2, clusters.mirror.resume)
    try:
        append(clusters.old, "slow", {0: [f"late {n}" for n in range(10)]})
        at_end = {("slow", 0): 30}
        refused = translate(clusters, tmp_path, at_end)
        assert (refused.code, refused.stdout) == (4, "")
        assert "[copy-lagging]" in refused.stderr
        assert "--wait 5m" in refused.stderr
        resume.start()
        waited = translate(clusters, tmp_path, at_end, "--wait", "1m")
    finally:
        resume.cancel()
        clusters.mirror.resume()
    assert waited.code == 0, waited.stderr
    assert json.loads(waited.stdout) == {NAMES["slow"]: {"0": 30}}


# -- refusals --------------------------------------------------------------------------------------


def test_records_expired_in_new_cluster_are_refused(clusters: TwoClusters, tmp_path: Path) -> None:
    """The copies of records 0 to 11 are deleted."""
    refused = translate(clusters, tmp_path, {("gone", 0): 11})
    assert (refused.code, refused.stdout) == (4, "")
    assert "expired there" in refused.stderr
    for position in (12, 13, 20):
        result = translate(clusters, tmp_path, {("gone", 0): position})
        assert result.code == 0, result.stderr
        assert json.loads(result.stdout) == {NAMES["gone"]: {"0": position}}


def test_target_topic_with_different_number_of_partitions_is_refused(
    clusters: TwoClusters, tmp_path: Path
) -> None:
    refused = translate(clusters, tmp_path, {("spread", 0): 5, ("spread", 1): 5})
    assert (refused.code, refused.stdout) == (4, "")
    assert "topic spread has 2 partitions" in refused.stderr


def test_target_topic_without_copies_is_refused(clusters: TwoClusters, tmp_path: Path) -> None:
    side = tmp_path / "side.json"
    side.write_text(starting_offsets({("slow", 0): 10}))
    wrong_topic = ("--topic-map", f"slow={NAMES['gone']}")
    refused = migrate("to-spark", f"json:{side}", *clusters.options(), *wrong_topic)
    assert (refused.code, refused.stdout) == (4, "")
    assert "not found" in refused.stderr
