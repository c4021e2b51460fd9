"""README.md and the pages in docs/ say what is so: their blocks run, what they name exists."""

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
# Nothing in them could be run; properties are read.
READ = ("properties", "text")


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page", [page for page in ALONE if any(b.language in RUN for b in blocks(page))], ids=_name
)
def test_what_a_page_shows_is_what_is_printed(page: Path) -> None:
    with played(scene(page)) as stage:
        for block in blocks(page):
            if block.language in RUN:
                actual = stage.run(block)
                assert agree(block.lines, actual, block.numbers_vary), f"{block}\n" + "\n".join(
                    actual
                )


def test_what_agrees_is_only_what_is_printed() -> None:
    assert agree(["$ x", "…", "c"], ["$ x", "a", "b", "c"])
    assert agree(["$ x", "…"], ["$ x"])
    assert not agree(["$ x", "…", "b"], ["$ x", "a", "b", "c"])
    assert not agree(["$ x", "a"], ["$ x", "a", "b"])
    assert agree(["a  12 chk-3"], ["a 1000 chk-45"], numbers_vary=True)
    assert not agree(["a  12 chk-3"], ["a 12 chk-"], numbers_vary=True)
    assert not agree(["a 12"], ["a 13"])


def _others() -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language not in RUN]


def test_a_block_that_is_not_run_has_its_reason() -> None:
    unrun = {
        (_name(block.page), block.lines[0]) for block in _others() if block.language not in READ
    }
    assert unrun == set(UNRUN)


@pytest.mark.parametrize(
    "block", [block for block in _others() if block.language == "properties"], ids=str
)
def test_properties_are_taken(
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


def test_site_navigation_is_short() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    assert 0 < len(re.findall(r"\.md$", navigation, re.M)) <= 32


def _calls(page: Path) -> list[tuple[str, str]]:
    text = page.read_text().replace("\\\n", " ")
    return [(match["command"], match["rest"]) for match in COMMAND.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_command_on_a_page_has_the_flags_it_is_given(page: Path) -> None:
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
def test_a_test_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    for path, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?", text):
        assert (ROOT / path).is_file(), path
        assert not name or name in _tests(ROOT / path), f"{path}::{name}"
    for name in re.findall(r"\b(test_\w+)`", text):
        assert name in _all_tests() or list((ROOT / "tests").rglob(f"{name}*")), name
