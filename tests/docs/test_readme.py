"""The README's console blocks are what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.command import migrate

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n\$ migrate (?P<arguments>.*)\n(?P<output>(?:.*\n)*?)```$", re.M)
BLOCKS = [
    pytest.param(match["arguments"], match["output"], id=match["arguments"].split(" tests")[0])
    for match in BLOCK.finditer((ROOT / "README.md").read_text())
]


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize(("arguments", "output"), BLOCKS)
def test_a_console_block_is_what_the_command_prints(
    arguments: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    result = migrate(*shlex.split(arguments))
    shown = [line.rstrip() for line in (result.stderr + result.stdout).splitlines()]
    assert shown == output.splitlines()
