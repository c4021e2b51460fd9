"""Run the blocks of README.md and docs/, and check that all referenced names exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from migrate.kafka.config import kafka_config
from tests.docs.blocks import ROOT, Block, blocks, pages, scene
from tests.docs.playing import RUN, played
from tests.docs.stage import agree
from tests.docs.unrun import UNRUN
from tests.support.command import migrate

PAGES = pages()
ALONE = [page for page in PAGES if not scene(page).needs_a_system]
# Blocks in these languages cannot be run. A different test reads the properties.
READ = ("properties", "text")


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page", [page for page in ALONE if any(b.language in RUN for b in blocks(page))], ids=_name
)
def test_docs_page_shows_actual_output(page: Path) -> None:
    with played(scene(page)) as stage:
        for block in blocks(page):
            if block.language in RUN:
                actual = stage.run(block)
                assert agree(block.lines, actual, block.numbers_vary), f"{block}\n" + "\n".join(
                    actual
                )


def test_page_output_may_differ_only_at_ellipses_and_varying_numbers() -> None:
    assert agree(["$ x", "…", "c"], ["$ x", "a", "b", "c"])
    assert agree(["$ x", "…"], ["$ x"])
    assert not agree(["$ x", "…", "b"], ["$ x", "a", "b", "c"])
    assert not agree(["$ x", "a"], ["$ x", "a", "b"])
    assert agree(["a  12 chk-3"], ["a 1000 chk-45"], numbers_vary=True)
    assert not agree(["a  12 chk-3"], ["a 12 chk-"], numbers_vary=True)
    assert not agree(["a 12"], ["a 13"])


def _others() -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language not in RUN]


def test_untested_code_blocks_are_listed_with_reason() -> None:
    unrun = {
        (_name(block.page), block.lines[0]) for block in _others() if block.language not in READ
    }
    assert unrun == set(UNRUN)


@pytest.mark.parametrize(
    "block", [block for block in _others() if block.language == "properties"], ids=str
)
def test_properties_blocks_on_pages_are_valid_kafka_configs(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    file = tmp_path / "client.properties"
    file.write_text("\n".join(block.lines).replace("/etc/kafka", str(tmp_path)) + "\n")
    assert kafka_config("broker:9092", file, [], aws_region="eu-west-1")


@cache
def _help(command: str) -> str:
    return migrate(command, "--help").stdout


FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-[bXqvh])\b")
COMMAND = re.compile(
    r"(?:^\$? ?|`|\bdo |&& |\( ?)migrate (?P<command>[a-z][a-z-]*)(?P<rest>[^`#|;]*)", re.M
)


def test_site_navigation_has_at_most_32_pages() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    assert 0 < len(re.findall(r"\.md$", navigation, re.M)) <= 32


def _calls(page: Path) -> list[tuple[str, str]]:
    text = page.read_text().replace("\\\n", " ")
    return [(match["command"], match["rest"]) for match in COMMAND.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_on_pages_use_existing_options(page: Path) -> None:
    for command, rest in _calls(page):
        text = _help(command)
        assert "Usage" in text, f"there is no command {command!r}"
        for flag in FLAG.findall(rest.split("\n")[0]):
            assert re.search(rf"(?<![\w-]){flag}\b", text), f"migrate {command} has no {flag}"


@cache
def _tests(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"^def (test_\w+)", path.read_text(), re.M))


@cache
def _all_tests() -> frozenset[str]:
    return frozenset().union(*map(_tests, (ROOT / "tests").rglob("test_*.py")))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "tests/traps.md"], ids=_name)
def test_tests_referenced_by_pages_exist(page: Path) -> None:
    text = page.read_text()
    for path, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?", text):
        assert (ROOT / path).is_file(), path
        assert not name or name in _tests(ROOT / path), f"{path}::{name}"
    for name in re.findall(r"\b(test_\w+)`", text):
        assert name in _all_tests() or list((ROOT / "tests").rglob(f"{name}*")), name
