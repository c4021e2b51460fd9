"""The pages that need a broker, a store or Spark: their commands, in order, on real ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks, pages, scene
from tests.docs.playing import RUN, played
from tests.docs.stage import agree
from tests.support.kafka import Broker
from tests.support.spark import Spark

pytestmark = pytest.mark.integration

PAGES = [page for page in pages() if scene(page).needs_a_system]


def test_there_are_such_pages() -> None:
    assert len(PAGES) >= 5


@pytest.fixture(scope="module")
def docs_broker() -> Iterator[Broker]:
    """A broker of their own: the pages' topics have names that other tests use as well."""
    with Broker() as running:
        yield running


def _play(page: Path, broker: Broker, spark: Spark | None) -> None:
    with played(scene(page), broker, spark) as stage:
        for block in blocks(page):
            if block.language in RUN:
                actual = stage.run(block)
                assert agree(block.lines, actual), f"{block}\n" + "\n".join(actual)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if not scene(page).spark],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_what_a_page_shows_is_what_happens(page: Path, docs_broker: Broker) -> None:
    _play(page, docs_broker, None)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if scene(page).spark],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_what_a_page_shows_is_what_spark_does(
    page: Path, docs_broker: Broker, spark: Spark
) -> None:
    _play(page, docs_broker, spark)
