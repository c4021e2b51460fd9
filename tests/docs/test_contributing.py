"""Check that the packages, paths, and commands in CONTRIBUTING.md exist."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from tests.docs.blocks import ROOT, blocks

PAGE = ROOT / "CONTRIBUTING.md"
(MAP,) = (block.lines for block in blocks(PAGE) if block.language == "text")


def _mapped() -> dict[str, set[str]]:
    """Return the paths that the map lists under each top-level folder."""
    folders: dict[str, set[str]] = {}
    inside: set[str] = set()
    for line in MAP:
        name = line.split()[0]
        if line.startswith(" "):
            inside.add(name)
        else:
            inside = folders.setdefault(name.rstrip("/"), set())
    return folders


def test_every_path_in_map_of_contributing_md_exists() -> None:
    for folder, inside in _mapped().items():
        for name in ("", *inside):
            path = ROOT / folder / name
            assert path.is_dir() if name.endswith("/") or not name else path.is_file(), path


@pytest.mark.parametrize("package", ["decoder", "migrate"])
def test_map_of_contributing_md_lists_every_part_of_package(package: str) -> None:
    """The map lists every subpackage and every module directly in the package."""
    rooms = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in (ROOT / package).iterdir()
        if (path / "__init__.py").is_file() or path.suffix == ".py"
    }
    assert _mapped()[package] == rooms - {"__init__.py"}


def test_contributing_md_refers_only_to_existing_make_targets_modules_and_paths() -> None:
    text = PAGE.read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets
    for module in set(re.findall(r"python -m ([\w.]+)", text)):
        assert find_spec(module) is not None, module
    for path in set(re.findall(r"`((?:tests|decoder|docs|migrate)/[\w./-]+)`", text)):
        assert (ROOT / path).exists(), path


def test_every_module_in_tables_of_contributing_md_exists() -> None:
    """A name without a folder belongs to the folder of the preceding path."""
    rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| .* \| .*`", line)]
    found = 0
    for row in rows:
        folder = None
        for path in re.findall(r"`([\w./-]+\.py|(?:decoder|migrate)/[\w./-]+/)`", row):
            if "/" not in path and folder is not None:
                path = f"{folder}/{path}"
            if "/" in path:
                folder = path.rpartition("/")[0]
                assert (ROOT / path).exists(), row
                found += 1
    assert found > 40, found
