"""Check that the manifests in deploy/kubernetes are valid and unprivileged, and run their jobs."""

from __future__ import annotations

import json
import re
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.support import stores
from tests.support.command import Result, migrate
from tests.support.golden_topics import GOLDEN, create_golden_topics, topic_map
from tests.support.kafka import Broker

FOLDER = Path(__file__).parents[2] / "deploy/kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
JOBS = ("dry-run", "execute", "cut-over", "cut-over-group")


def _documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text()))


def _container(name: str) -> dict[str, Any]:
    job = _documents(FOLDER / f"{name}.yaml")[-1]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return dict(container)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_kubernetes_manifest_is_valid(file: Path) -> None:
    for document in _documents(file):
        kubernetes_validate.validate(document, "1.31", strict=True)


@pytest.mark.slow
def test_validation_of_kubernetes_manifest_detects_misspelled_field() -> None:
    (job,) = _documents(FOLDER / "execute.yaml")
    job["spec"]["backofLimit"] = 0
    with pytest.raises(kubernetes_validate.ValidationError, match="backofLimit"):
        kubernetes_validate.validate(job, "1.31", strict=True)


@pytest.mark.parametrize("name", JOBS)
def test_kubernetes_job_runs_once_and_without_privileges(name: str) -> None:
    job = _documents(FOLDER / f"{name}.yaml")[-1]
    assert job["spec"]["backoffLimit"] == 0
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never" and pod["securityContext"]["runAsNonRoot"]
    container = _container(name)
    context = container["securityContext"]
    assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


@pytest.mark.integration
def test_kubernetes_job_with_execute_applies_plan_of_dry_run_job(
    broker: Broker, tmp_path: Path
) -> None:
    """The commands are from dry-run.yaml and execute.yaml in deploy/kubernetes."""
    names = create_golden_topics(broker, "payments")
    group = f"k8s-{names['payments']}"
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=PLAINTEXT\n")
    (job,) = (GOLDEN / "1.20/retained-files").iterdir()
    places = {
        "s3://bucket/flink/savepoints/savepoint-0523e1-e100894c09db": str(job / "chk-4"),
        "--group=orders": f"--group={group}",
        "--bootstrap-servers=kafka:9092": f"--bootstrap-servers={broker.bootstrap_servers}",
        "--kafka-config=/etc/kafka/client.properties": f"--kafka-config={config}",
    }

    def run(name: str, *more: str) -> Result:
        words = [re.sub(r"=/plans/", f"={tmp_path}/", word) for word in _container(name)["args"]]
        return migrate(*(places.get(word, word) for word in words), *more)

    dry = run("dry-run", *topic_map(names))
    assert dry.code == 0, dry.stderr
    assert broker.committed(group) == {}
    done = run("execute")
    assert done.code == 0, done.stderr
    topic = names["payments"]
    assert broker.committed(group) == {(topic, 0): 24, (topic, 1): 13}
    assert (tmp_path / "rollback-orders.json").exists()


def _cut_over(name: str, broker: Broker, folder: Path, savepoint: str, **places: str) -> list[str]:
    """Write a Job's spec for this broker and these places, and return the command's arguments."""
    text = _documents(FOLDER / f"{name}.yaml")[0]["data"]["orders.yaml"]
    names = create_golden_topics(broker, "orders", "payments")
    (folder / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    for there, here in {
        "s3://bucket/flink/savepoints/savepoint-0523e1-e100894c09db": savepoint,
        "kafka:9092": broker.bootstrap_servers,
        "/etc/kafka/": f"{folder}/",
        "/plans/": f"{folder}/",
        **places,
    }.items():
        assert there in text, there
        text = text.replace(there, here)
    (folder / "orders.yaml").write_text(text + f"move: {json.dumps({'topic-map': names})}\n")
    return [word.replace("/spec", str(folder)) for word in _container(name)["args"]]


@pytest.mark.integration
def test_kubernetes_cut_over_job_moves_savepoint_to_query_in_object_store(
    broker: Broker, tmp_path: Path
) -> None:
    """The savepoint is also in an object store, as in the manifest."""
    if find_spec("s3fs") is None:
        pytest.skip("needs the extra s3")
    (savepoint,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
    with stores.s3() as s3:
        url = s3.store.put(savepoint, f"flink/savepoints/{savepoint.name}")
        query = f"{s3.store.root}/queries/orders"
        places = {"s3://bucket/queries/orders": query}
        words = _cut_over("cut-over", broker, tmp_path, url, **places)
        dry = migrate(*words[:2])
        assert dry.code == 0, dry.stderr
        assert not s3.store.system.exists(query)
        for _ in range(2):
            done = migrate(*words)
            assert done.code == 0, done.stderr
        verified = migrate("verify", f"plan:{tmp_path / 'orders/plan.json'}", f"spark:{query}")
        assert verified.code == 0, verified.stderr


@pytest.mark.integration
def test_kubernetes_cut_over_job_commits_group_offsets_and_rolls_back(
    broker: Broker, tmp_path: Path
) -> None:
    (savepoint,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
    group = f"k8s-{uuid.uuid4().hex[:8]}"
    places = {"group: orders": f"group: {group}"}
    words = _cut_over("cut-over-group", broker, tmp_path, str(savepoint), **places)
    dry = migrate(*words[:2])
    assert dry.code == 0, dry.stderr
    assert broker.committed(group) == {}
    for _ in range(2):
        done = migrate(*words)
        assert done.code == 0, done.stderr
    assert broker.committed(group)
    plan = tmp_path / "orders-group/plan.json"
    verified = migrate("verify", f"plan:{plan}", f"group:{group}", "-b", broker.bootstrap_servers)
    assert verified.code == 0, verified.stderr
    words.remove("--until=verify")
    back = migrate(*words, "--back", "--nothing-started")
    assert back.code == 0, back.stderr
    assert broker.committed(group) == {}
