"""Run the commands in the documentation pages, and write their current output into the pages.

    python -m tests.docs.rewrite [PAGE...]

Check the changes before you commit them. A block that contains a line ``…`` is not changed. If such
a block does not match the output, the program prints the output, so that you can edit the block.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tests.docs.blocks import Block, blocks, pages, scene
from tests.docs.playing import RUN, played
from tests.docs.stage import ANYTHING, agree

if TYPE_CHECKING:
    from tests.support.spark import Spark


def main(arguments: Sequence[str]) -> None:
    """Run the blocks of the pages, or of all pages if ``arguments`` is empty."""
    with ExitStack() as stack:
        spark: Spark | None = None  # a process can have one session only
        for page in [Path(argument).resolve() for argument in arguments] or pages():
            if not _run(page):
                continue
            if spark is None and scene(page).spark:
                from tests.support.spark import Spark

                spark = stack.enter_context(Spark())
            with played(scene(page), spark=spark) as stage:
                _rewrite(page, [(block, stage.run(block)) for block in _run(page)])


def _run(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language in RUN]


def _rewrite(page: Path, played_blocks: list[tuple[Block, list[str]]]) -> None:
    lines = page.read_text().splitlines()
    for block, actual in reversed(played_blocks):
        if agree(block.lines, actual, block.numbers_vary):
            continue
        if any(line.strip() == ANYTHING for line in block.lines):
            print(f"{block} is to be mended by hand; it prints\n\n" + "\n".join(actual) + "\n")
            continue
        print(f"{block} is written anew")
        first = block.line - 1
        indented = [f"{block.indent}{line}".rstrip() for line in actual]
        lines[first : first + len(block.lines)] = indented
    page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
