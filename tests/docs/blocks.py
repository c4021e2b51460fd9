"""Read the code blocks of a documentation page, and the scene in which the blocks run.

The pages are README.md, CONTRIBUTING.md, SECURITY.md, examples/README.md, and the pages in docs/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>```+) *(?P<language>[\w-]*)")
_NUMBERS_VARY = "<!-- numbers vary -->"
_SCENE = re.compile(r"<!-- scene\n(?P<lines>.*?)-->", re.S)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced code block.

    Attributes:
        line: the line number of the first line inside the fence.
        numbers_vary: True if the block's numbers differ from run to run. A comment above the block
            marks such a block.
    """

    page: Path
    line: int
    language: str
    indent: str
    lines: tuple[str, ...]
    numbers_vary: bool = False

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each command of a console block, and the output that the page shows for it."""
        shown: list[str] = []
        command: str | None = None
        for line in self.lines:
            if line.startswith("$ "):
                if command is not None:
                    yield command, shown
                command, shown = line[2:], []
            elif command is not None and command.endswith("\\") and not shown:
                command += f"\n{line}"
            else:
                shown.append(line)
        if command is not None:
            yield command, shown


@dataclass(frozen=True, slots=True)
class Scene:
    """The environment in which a page's blocks run, one after another.

    Attributes:
        kafka: the number of records in each partition, by topic. The broker is at ``broker:9092``.
        records: by topic, a directory in the repository. The directory contains a file for each
            partition, and each line of the file is a record.
        copies: the target of each copied directory, by its path in the repository. A target is in
            the page's temporary directory or in S3. If a page uses neither copies nor Kafka, its
            blocks run in the root of the repository.
        spark: True if the variable ``spark`` is a Spark session.
        playground: True if the page's commands start and stop the playground. The page then runs in
            a temporary directory.
    """

    kafka: dict[str, list[int]]
    records: dict[str, str]
    copies: dict[str, str]
    spark: bool
    playground: bool

    @property
    def needs_a_system(self) -> bool:
        """Return whether a system must be started before the blocks run."""
        in_s3 = any(target.startswith("s3://") for target in self.copies.values())
        return bool(self.kafka or self.records) or self.spark or self.playground or in_s3


def pages() -> list[Path]:
    """Return the paths of all documentation pages, README.md first."""
    root = [
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")
    ]
    return root + sorted((ROOT / "docs").rglob("*.md"))


def blocks(page: Path) -> list[Block]:
    """Return a page's fenced blocks, in order."""
    found: list[Block] = []
    opened: tuple[re.Match[str], int] | None = None
    lines = page.read_text().splitlines()
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if opened is None:
            opened = fence, number + 1
        elif line.strip() == opened[0]["mark"]:
            start, first = opened
            inside = tuple(line.removeprefix(start["indent"]) for line in lines[first:number])
            varies = first > 1 and lines[first - 2].strip() == _NUMBERS_VARY
            found.append(Block(page, first + 1, start["language"], start["indent"], inside, varies))
            opened = None
    assert opened is None, f"{page}: a fence is not closed"
    return found


def scene(page: Path) -> Scene:
    """Return the scene that a comment in the page specifies.

    Each line of the comment starts with ``kafka:``, ``records:``, or ``copy:``, or is ``spark:
    yes`` or ``playground: yes``.
    """
    match = _SCENE.search(page.read_text())
    kafka: dict[str, list[int]] = {}
    records: dict[str, str] = {}
    copies: dict[str, str] = {}
    systems: set[str] = set()
    for line in match["lines"].splitlines() if match is not None else []:
        key, _, value = line.partition(": ")
        if key == "kafka":
            topic, *counts = value.split()
            kafka[topic] = [int(count) for count in counts]
        elif key == "records":
            topic, _, directory = value.partition(" ")
            records[topic] = directory
        elif key == "copy":
            source, _, target = value.partition(" -> ")
            copies[source] = target
        elif key in ("spark", "playground") and value == "yes":
            systems.add(key)
        else:
            raise ValueError(f"{page}: {line!r} says nothing of a scene")
    return Scene(kafka, records, copies, "spark" in systems, "playground" in systems)
