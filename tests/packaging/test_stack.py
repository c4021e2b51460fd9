"""Validate docker-compose.yml, and compare its versions with `make demo`.

If a Docker engine answers, compose itself validates the file. `tests/integration/test_examples.py`
runs the demo in local processes.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyOptions

from tests.support.flink_session import JARS
from tests.support.jars import read_lock
from tests.support.kafka import docker

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
SCRIPT = (ROOT / "examples/cut-over").read_text()


@pytest.fixture(scope="module")
def stack() -> dict[str, Any]:
    """Return the Docker Compose file with its anchors resolved."""
    read: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return read


def test_docker_compose_file_conforms_to_specification() -> None:
    stack = PyOptions(apply_merge=True).from_yaml(FILE.read_text())
    stack.validate()
    assert {"kafka", "jobmanager", "taskmanager", "sql-client", "s3", "spark", "migrate"} <= set(
        stack.service_names()
    )


def test_validation_of_docker_compose_file_detects_misspelled_key() -> None:
    text = FILE.read_text().replace("  kafka:\n    image:", "  kafka:\n    imagee:", 1)
    with pytest.raises(ValueError, match="imagee"):
        PyOptions(apply_merge=True).from_yaml(text)


def test_every_image_in_docker_compose_file_has_release_tag(stack: dict[str, Any]) -> None:
    images = {service["image"] for service in stack["services"].values() if "image" in service}
    assert len(images) >= 5
    for image in images:
        assert re.fullmatch(r"[a-z/]+:\d+\.\d+\.\d+[\w.-]*", image), image


def test_docker_compose_file_refers_to_existing_services_and_volumes(stack: dict[str, Any]) -> None:
    services = stack["services"]
    for service in services.values():
        for name, needed in service.get("depends_on", {}).items():
            if needed["condition"] == "service_healthy":
                assert "healthcheck" in services[name]
        sources = {volume.partition(":")[0] for volume in service.get("volumes", [])}
        assert {name for name in sources if not name.startswith("./")} <= set(stack["volumes"])


def test_releases_in_docker_compose_file_match_demo(stack: dict[str, Any]) -> None:
    services = stack["services"]
    locked = {f"{jar.group}:{jar.artifact}:{jar.version}" for jar in read_lock()[JARS]}
    connector = re.findall(r"org\.apache\.[\w.:-]+", services["connector"]["command"][-1])
    jars = {name for name in connector if "maven" not in name}
    assert len(jars) == 3 and jars <= locked
    flink = services["jobmanager"]["image"].removeprefix("flink:").partition("-")[0]
    assert f"org.apache.flink:flink-runtime:{flink}" in locked
    assert f"kafka-{services['kafka']['image'].partition(':')[2]}" in read_lock()
    spark = services["spark"]["image"].partition(":")[2].partition("-")[0]
    assert f"spark-{spark}" in read_lock()
    assert f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}" in services["spark"]["entrypoint"]


def test_docker_compose_file_refers_to_existing_example_files(stack: dict[str, Any]) -> None:
    named = set(re.findall(r"/examples/[\w./-]+", FILE.read_text() + SCRIPT))
    assert len(named) >= 5
    for name in named:
        assert (ROOT / name.removeprefix("/")).exists(), name


def test_addresses_in_docker_compose_file_match_sql_examples(stack: dict[str, Any]) -> None:
    sql = "".join(file.read_text() for file in (ROOT / "examples").rglob("*.sql"))
    servers = set(re.findall(r"bootstrap\.servers' = '(\S+)'", sql))
    assert servers == {"kafka:9092"}
    assert (
        "INSIDE://kafka:9092"
        in stack["services"]["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    )
    (path,) = re.findall(r"'path' = 'file://(/\w+)/\S*'", sql)
    for name in ("jobmanager", "taskmanager", "sql-client", "spark", "migrate"):
        assert f"lake:{path}" in stack["services"][name]["volumes"], name


def test_addresses_in_cut_over_spec_match_docker_compose_services(stack: dict[str, Any]) -> None:
    spec = yaml.safe_load((ROOT / "examples/orders/cut-over.yaml").read_text())
    services = stack["services"]
    assert "8081" in services["jobmanager"]["ports"][0]
    assert spec["flink"]["rest"] == "http://jobmanager:8081"
    assert spec["kafka"]["bootstrap-servers"] == "kafka:9092"
    command = services["spark"]["entrypoint"]
    assert spec["target"]["checkpoint-dir"] == command[command.index("--checkpoint") + 1]
    assert spec["sink"] == command[command.index("--path") + 1]


def test_example_script_calls_existing_docker_compose_services(stack: dict[str, Any]) -> None:
    called = re.findall(r"docker compose (?:exec -T|run --rm -T|up --detach|stop) ([\w-]+)", SCRIPT)
    assert set(called) == {"sql-client", "migrate", "spark"}
    assert set(called) <= set(stack["services"])


@pytest.mark.skipif(not docker("compose", "version", seconds=10), reason="no docker compose")
def test_docker_compose_accepts_its_file() -> None:
    subprocess.run(
        ["docker", "compose", "--profile", "*", "--file", str(FILE), "config", "--quiet"],
        check=True,
        timeout=60,
    )
