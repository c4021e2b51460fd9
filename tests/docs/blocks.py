"""The code blocks of README.md and of the pages in docs/, and the scene a page is played in."""

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
        line: the number of its first line within the fence.
        numbers_vary: whether its numbers differ from run to run, as a comment above it says.
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
        """Of a console block: each command behind its prompt, and the lines shown below it."""
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
    """What a page's blocks find when they run, one after another.

    Attributes:
        kafka: topic -> records in each of its partitions; a broker is at ``broker:9092``.
        records: topic -> a directory of the repository with a file for each partition, whose lines
            are the records.
        copies: directory of the repository -> where it lies for the page, in a directory of its own
            or in S3. A page without any runs in the root of the repository.
        spark: whether there is a Spark session, ``spark``.
        playground: whether it starts, and stops, the playground in a directory of its own.
    """

    kafka: dict[str, list[int]]
    records: dict[str, str]
    copies: dict[str, str]
    spark: bool
    playground: bool

    @property
    def needs_a_system(self) -> bool:
        """Whether something must be started first."""
        in_s3 = any(target.startswith("s3://") for target in self.copies.values())
        return bool(self.kafka or self.records) or self.spark or self.playground or in_s3


def pages() -> list[Path]:
    """Every page that is written by hand, README.md first."""
    root = [
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")
    ]
    return root + sorted((ROOT / "docs").rglob("*.md"))


def blocks(page: Path) -> list[Block]:
    """A page's fenced blocks, in their order."""
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
    """What the page asks for in a comment: lines of ``kafka:``, ``records:``, ``copy:``,
    ``spark: yes`` and ``playground: yes``."""
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
