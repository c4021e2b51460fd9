"""Run the commands of each page that needs a broker, an object store, or Spark."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.docs.blocks import ROOT, Block, blocks, pages, scene
from tests.docs.playing import RUN, played
from tests.docs.stage import Stage, agree
from tests.support.kafka import Broker
from tests.support.spark import Spark

pytestmark = pytest.mark.integration

PAGES = [page for page in pages() if scene(page).needs_a_system and not scene(page).playground]
TUTORIAL = ROOT / "docs/tutorial.md"
_START = "$ make playground"
_STOP = "$ make playground-stop"


def test_pages_that_need_broker_object_store_or_spark_are_found() -> None:
    assert len(PAGES) >= 4


@pytest.fixture(scope="module")
def docs_broker() -> Iterator[Broker]:
    """Start a separate broker, because other tests use topics with the same names."""
    with Broker() as running:
        yield running


def _play(page: Path, broker: Broker, spark: Spark | None) -> None:
    with played(scene(page), broker, spark) as stage:
        for block in blocks(page):
            if block.language in RUN:
                _check(block, stage)


def _check(block: Block, stage: Stage) -> None:
    actual = stage.run(block)
    assert agree(block.lines, actual, block.numbers_vary), f"{block}\n" + "\n".join(actual)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if not scene(page).spark],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_how_to_page_without_spark_shows_actual_output(page: Path, docs_broker: Broker) -> None:
    _play(page, docs_broker, None)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if scene(page).spark],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_spark_how_to_page_shows_actual_output(
    page: Path, docs_broker: Broker, spark: Spark
) -> None:
    _play(page, docs_broker, spark)


def test_tutorial_leaves_no_playground_processes_or_files() -> None:
    assert scene(TUTORIAL).playground
    with played(scene(TUTORIAL)) as stage:
        home = stage.directory / "playground"
        processes: list[int] = []
        ports: list[int] = []
        for block in blocks(TUTORIAL):
            if block.language not in RUN:
                continue
            if _STOP in block.lines:
                processes, ports = _processes(home), _ports(home)
                runs = json.loads((home / "clicks/record/record.json").read_text())["runs"]
                # The first run of the cut-over was killed, and the second run has ended.
                assert [run["ended_at"] is None for run in runs] == [True, False]
            _check(block, stage)
            if _START in block.lines:
                second = stage.run(Block(TUTORIAL, 0, "console", "", (_START,)))
                refusal = "playground: it is running already; to stop it: make playground-stop"
                assert second == [_START, refusal]
        # Only Kafka and Flink are left, because the page has stopped the query's processes.
        assert len(processes) == 2 and len(ports) == 2
        assert not _processes(home) and not home.exists()
        for port in ports:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=5).close()


def _processes(home: Path) -> list[int]:
    """Return the PIDs of processes that work in the folder or have it in their arguments."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, folder = (process / "cmdline").read_bytes(), (process / "cwd").readlink()
        except OSError:  # the process has ended
            continue
        if bytes(home) in command or folder.is_relative_to(home):
            found.append(int(process.name))
    return found


def _ports(home: Path) -> list[int]:
    """Return the open ports of Flink and Kafka from the spec of the playground."""
    spec = yaml.safe_load((home / "clicks/cut-over.yaml").read_text())
    addresses = (spec["flink"]["rest"], spec["kafka"]["bootstrap-servers"])
    ports = [int(address.rpartition(":")[2]) for address in addresses]
    for port in ports:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    return ports
