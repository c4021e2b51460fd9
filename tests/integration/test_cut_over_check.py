"""Check that the dry run lists all refusals that would follow the stop."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command import migrate
from tests.support.golden_topics import GOLDEN, create_golden_topics
from tests.support.kafka import Broker
from tests.support.recorded_flink import recorded_flink
from tests.support.spark import Spark

pytestmark = pytest.mark.integration

SINKS = Path(__file__).parents[1] / "golden/sinks"


def _fields(broker: Broker, names: dict[str, str]) -> dict[str, Any]:
    """Return the spec of a cut-over from a stopped job to a new query."""
    (savepoint,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
    return {
        "version": 1,
        "flink": {"savepoint": str(savepoint)},
        "kafka": {"bootstrap-servers": broker.bootstrap_servers},
        "move": {"topic-map": names},
        "target": {"checkpoint-dir": "query"},
    }


def test_dry_run_lists_all_obstacles_together(broker: Broker, tmp_path: Path) -> None:
    names = create_golden_topics(broker, "orders")
    (tmp_path / "query").mkdir()
    (tmp_path / "query/theirs").touch()
    spec = tmp_path / "orders.yaml"
    fields = _fields(broker, {**names, "payments": f"gone-{tmp_path.name}"}) | {
        "sink": str(SINKS / "files"),
        "start": "./no-such-program --fast",
    }
    spec.write_text(yaml.safe_dump(fields))
    for mode, written in (
        ((), "nothing was written"),
        (("--execute", "--yes"), f"only the record {tmp_path / 'orders.cut-over'} was written"),
    ):
        refused = migrate("cut-over", spec, *mode)
        assert (refused.code, refused.stdout) == (4, ""), refused.stderr
        assert refused.stderr.endswith(f"\nmigrate: refused; {written}\n")
        for reason in (
            f"refused: {tmp_path / 'query'} is not empty; choose a new directory",
            "is the file sink of a different query, which has already written batches up to",
            "refused: start: the program ./no-such-program does not exist",
        ):
            assert reason in refused.stderr
        (gone,) = [
            line
            for line in refused.stderr.splitlines()
            if line.startswith("refused: ") and f"gone-{tmp_path.name}" in line
        ]
        assert "correct move.topic-map" in gone
    assert [one.name for one in (tmp_path / "query").iterdir()] == ["theirs"]
    record = json.loads((tmp_path / "orders.cut-over/record.json").read_text())
    assert record["runs"][0]["end"] == "refused at check"
    assert record["runs"][0]["codes"][-1] == "program-missing"

    mended = {"move": {"topic-map": names, "gone": "skip"}, "target": {"group": spec.name}}
    fields |= {**mended, "sink": None, "start": "true"}
    spec.write_text(yaml.safe_dump({k: v for k, v in fields.items() if v is not None}))
    dry = migrate("cut-over", spec)
    assert dry.code == 0, dry.stderr
    # Regression: The dry run reported no obstacle for a topic that is newer than the savepoint.
    assert dry.stderr.splitlines()[-1] == (
        "dry run: 2 of 5 partitions are suspect, so migrate cannot determine whether records would "
        "be lost or duplicated; no other obstacle was found; to continue with apply, run "
        f"`migrate cut-over {spec} --execute`"
    )
    assert broker.committed(spec.name) == {}


def test_dry_run_refuses_checkpoint_dir_that_cannot_be_written(
    broker: Broker, tmp_path: Path
) -> None:
    """Regression: The dry run found no obstacle, and ``apply`` failed after the stop."""
    spec, fields = tmp_path / "orders.yaml", _fields(broker, create_golden_topics(broker, "orders"))
    fields["move"]["gone"] = "skip"
    spec.write_text(yaml.safe_dump({**fields, "target": {"checkpoint-dir": "/proc/new/query"}}))
    for mode in ((), ("--execute", "--yes")):
        refused = migrate("cut-over", spec, *mode)
        assert (refused.code, refused.stdout) == (4, ""), refused.stderr
        assert (
            "refused: target.checkpoint-dir /proc/new/query cannot be written, because no "
            "directory can be created in /proc (" in refused.stderr
        )
    spec.write_text(yaml.safe_dump(fields))
    assert migrate("cut-over", spec).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["orders.cut-over", spec.name]


def test_dry_run_refuses_savepoint_without_evidence_of_stop(broker: Broker, tmp_path: Path) -> None:
    """Regression: The dry run found no obstacle, but the run refused the savepoint at "apply"."""
    names = create_golden_topics(broker, "orders", "payments")
    fields, spec = _fields(broker, names), tmp_path / "orders.yaml"
    golden = Path(fields["flink"]["savepoint"])
    savepoint = shutil.copytree(golden, tmp_path / golden.name)
    with recorded_flink() as (flink, url):
        flink.listed = {flink.finished}
        for days, rest, reason in (
            (3, {}, "this savepoint was written 3 days ago"),
            (0, {"rest": url}, "the JobManager does not list job 0523e1"),
        ):
            at = time.time() - 86_400 * days
            os.utime(savepoint / "_metadata", (at, at))
            judged = {**fields, "flink": {"savepoint": str(savepoint), **rest}}
            spec.write_text(yaml.safe_dump(judged))
            for mode in ((), ("--execute", "--yes")):
                refused = migrate("cut-over", spec, *mode)
                assert (refused.code, refused.stdout) == (4, ""), refused.stderr
                assert reason in refused.stderr and "move.allow-ran-on" in refused.stderr
            spec.write_text(
                yaml.safe_dump({**judged, "move": {**judged["move"], "allow-ran-on": True}})
            )
            allowed = migrate("cut-over", spec)
            assert allowed.code == 0, allowed.stderr
    assert not (tmp_path / "query").exists()


def test_dry_run_runs_rehearsal_command(broker: Broker, tmp_path: Path) -> None:
    """The dry run shows the output of the user's command.

    If the command fails, the dry run is refused.
    """
    names = create_golden_topics(broker, "orders", "payments")
    spec, fields = tmp_path / "orders.yaml", _fields(broker, names)
    fields["rehearse"] = "echo 40 matching keys; pwd > ran; exit $(cat code)"
    for code, shown in (("0", "the command succeeded"), ("5", "")):
        (tmp_path / "code").write_text(code)
        spec.write_text(yaml.safe_dump(fields))
        dry = migrate("cut-over", spec)
        assert (dry.code, shown in dry.stdout) == (4 if code == "5" else 0, True), dry.stderr
        assert "rehearse 1: 40 matching keys" in dry.stderr
    assert "the rehearse command failed with exit code 5" in dry.stderr
    assert (tmp_path / "ran").read_text().strip() == str(tmp_path)
    fields["rehearse"] = "./no-such-program"
    spec.write_text(yaml.safe_dump(fields))
    assert (
        "rehearse: the program ./no-such-program does not exist" in migrate("cut-over", spec).stderr
    )


def test_query_without_batches_of_seeded_topic_is_not_verified(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    """The seed is correct, but the query's log shows that one topic was never read."""
    names = create_golden_topics(broker, "orders", "payments")
    spec, fields = tmp_path / "orders.yaml", _fields(broker, names)
    spec.write_text(yaml.safe_dump(fields))
    ready = migrate("cut-over", spec, "--execute", "--yes", "--until", "verify")
    assert ready.code == 0, ready.stderr
    read = spark.stream(
        broker.bootstrap_servers, subscribe=names["orders"], failOnDataLoss="false"
    ).writeStream.format("noop")
    query = read.option("checkpointLocation", str(tmp_path / "query")).trigger(availableNow=True)
    query.start().awaitTermination(60)
    done = migrate("cut-over", spec, "--execute", "--yes")
    assert done.code == 5, done.stderr
    assert "not verified: 3 ok, 2 missing" in done.stderr
    assert "[target-not-verified]" in done.stderr
    # Without a cut-over, the command ``verify`` decides the same.
    moved, target = f"plan:{tmp_path / 'orders.cut-over/plan.json'}", f"spark:{tmp_path / 'query'}"
    judged = migrate("verify", moved, target, "-b", broker.bootstrap_servers)
    assert judged.code == 5, judged.stderr
    assert "3 ok, 2 missing" in judged.stdout
    assert "not in each batch of the query's log" in judged.stderr


def test_verify_fails_if_planned_batch_lacks_seeded_topic(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    """Regression: A query with the wrong topic spoiled its location, and was "verified".

    Spark plans batch 0 with the wrong topic, and fails, because the seeded partitions are missing.
    No batch is committed.
    """
    names = create_golden_topics(broker, "orders", "payments")
    query = tmp_path / "query"
    mapped = [f"--topic-map={old}={new}" for old, new in names.items()]
    (savepoint,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
    plan, brokers = tmp_path / "plan.json", ("-b", broker.bootstrap_servers)
    saved = migrate("to-spark", savepoint, *mapped, "--plan-out", plan, *brokers)
    assert saved.code == 0, saved.stderr
    assert migrate("to-spark", "--plan", plan, "--checkpoint-dir", query, *brokers).code == 0
    other = create_golden_topics(broker, "orders")["orders"]
    wrong = spark.stream(broker.bootstrap_servers, subscribe=other)
    started = wrong.writeStream.format("noop").option("checkpointLocation", str(query)).start()
    with pytest.raises(Exception, match="have been deleted"):
        started.awaitTermination(60)
    assert (query / "offsets" / "0").exists() and not (query / "commits" / "0").exists()

    judged = migrate("verify", f"plan:{plan}", f"spark:{query}", *brokers)

    assert judged.code == 5, judged.stdout + judged.stderr
    assert "5 missing" in judged.stdout
    assert "move again to a new checkpoint location" in judged.stderr


def test_cut_over_verifies_each_stream_of_query_against_its_assigned_topic(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    """The key ``spark-source`` assigns each topic to a stream.

    A query with swapped streams fails.
    """
    names = create_golden_topics(broker, "orders", "payments")
    spec, fields = tmp_path / "orders.yaml", _fields(broker, names)
    fields["spark-source"] = {1: "topic:payments"}
    spec.write_text(yaml.safe_dump(fields))
    forgotten = migrate("cut-over", spec)
    assert forgotten.code == 4, forgotten.stderr
    assert "topic orders of operator" in forgotten.stderr
    assert "is not assigned to a Spark source" in forgotten.stderr
    fields["spark-source"] = {0: "topic:orders", 1: "topic:payments"}
    spec.write_text(yaml.safe_dump(fields))
    reviewed = migrate("cut-over", spec, "--execute", "--yes", "--until", "plan")
    assert reviewed.code == 0, reviewed.stderr
    fields["spark-source"] = {0: "topic:payments", 1: "topic:orders"}
    spec.write_text(yaml.safe_dump(fields))
    turned = migrate("cut-over", spec, "--execute", "--yes")
    assert turned.code == 4, turned.stderr
    assert f"stream 0 was {names['orders']}, and is now {names['payments']}" in turned.stderr
    assert migrate("cut-over", spec, "--execute", "--yes", "--until", "plan").code == 0
    for _ in range(2):
        ready = migrate("cut-over", spec, "--execute", "--yes", "--until", "verify")
        assert ready.code == 0, ready.stderr
    record = json.loads((tmp_path / "orders.cut-over/record.json").read_text())
    assert record["plan"]["streams"] == {"0": [names["payments"]], "1": [names["orders"]]}
    fields["spark-source"] = {0: "topic:orders", 1: "topic:payments"}
    spec.write_text(yaml.safe_dump(fields))
    changed = migrate("cut-over", spec)
    assert changed.code == 4 and "refused: spark-source has changed from " in changed.stderr
    fields["spark-source"] = {0: "topic:payments", 1: "topic:orders"}
    spec.write_text(yaml.safe_dump(fields))

    payments, orders = (
        spark.stream(broker.bootstrap_servers, subscribe=names[topic], failOnDataLoss="false")
        for topic in ("payments", "orders")
    )
    for joined, code, told in (
        (payments.union(orders), 0, "lost 0, repeated 0"),
        (orders.union(payments), 5, "not verified: 5 missing"),
    ):
        query = tmp_path / "query"
        if code:
            shutil.rmtree(query)
            fields["record"] = "turned"
            spec.write_text(yaml.safe_dump(fields))
            assert migrate("cut-over", spec, "--execute", "--yes", "--until", "verify").code == 0
        writer = joined.writeStream.format("noop").option("checkpointLocation", str(query))
        writer.trigger(availableNow=True).start().awaitTermination(60)
        done = migrate("cut-over", spec, "--execute", "--yes")
        assert done.code == code, done.stderr
        assert told in done.stderr


def test_new_review_is_required_if_spec_changes_after_plan_review(
    broker: Broker, tmp_path: Path
) -> None:
    """Topics, partitions, or targets other than those in the reviewed plan are refused."""
    names = create_golden_topics(broker, "orders", "payments")
    (savepoint,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
    spec = tmp_path / "orders.yaml"
    fields: dict[str, Any] = {
        "version": 1,
        "flink": {"savepoint": str(savepoint)},
        "kafka": {"bootstrap-servers": broker.bootstrap_servers},
        "move": {"topic-map": names},
        "target": {"checkpoint-dir": "query"},
        "start": "true",
    }
    spec.write_text(yaml.safe_dump(fields))
    planned = migrate("cut-over", spec, "--execute", "--yes", "--until", "plan")
    assert planned.code == 0
    assert planned.stderr.splitlines()[-1] == (
        f"next: review the plan with `migrate show {tmp_path / 'orders.cut-over/plan.json'}`, and "
        f"run `migrate cut-over {spec} --execute`, which continues with apply"
    )
    fields |= {"target": {"group": spec.parent.name}, "start": "true --fast"}
    fields["move"] = {"topic-map": names, "partitions": {"orders": [0, 1]}}
    spec.write_text(yaml.safe_dump(fields))
    # Only the reviewed plan may be applied.
    refusal = f"the reviewed plan: {names['orders']}-2 was 0, and is now not moved, "
    for mode in ((), ("--execute", "--yes"), ("--execute", "--yes", "--until", "verify")):
        differs = migrate("cut-over", spec, *mode)
        assert (differs.code, refusal in differs.stderr) == (4, True), differs.stderr
        assert "to review the new plan, add --until plan" in differs.stderr
    for until in ("plan", "verify"):
        moved = migrate("cut-over", spec, "--execute", "--yes", "--until", until)
        assert moved.code == 0, moved.stderr
    assert not (tmp_path / "query").exists()
    assert set(broker.committed(spec.parent.name)) == {(names["orders"], 0), (names["orders"], 1)}
    fields["start"] = "true"
    spec.write_text(yaml.safe_dump(fields))
    assert migrate("cut-over", spec).code == 0
