"""Where our time goes: the modules of this project that a reading spends it in."""

from __future__ import annotations

import pstats
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.checkpoints import Made
from benchmarks.processes import run
from benchmarks.readers import Reader
from benchmarks.results import Share

_ROOT = Path(__file__).parent.parent
# A smaller share is left out.
_LEAST = 0.02
# What cProfile calls the file of functions that are written in C.
_C = "~"
# File, line, name.
_Function = tuple[str, int, str]
_Callers = dict[_Function, tuple[int, int, float, float]]
_ELSEWHERE = "Python and its libraries"


def profile(made: Made, reader: Reader) -> list[Share]:
    """The largest shares of the time of one of our readers, the largest first.

    Functions written in C count for the module that calls them. The profiler itself makes many
    small calls look dearer than they are.
    """
    # Without the interpreter where the command names it: the profiler runs in its place.
    command = reader.command(made)
    arguments = command[1:] if command[0] == sys.executable else command
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        found = Path(folder) / "profile"
        profiler = [sys.executable, "-m", "cProfile", "-o", str(found)]
        run([*profiler, *arguments], Path(folder) / "stdout")
        return _shares(pstats.Stats(str(found)))


def _shares(stats: pstats.Stats) -> list[Share]:
    seconds: dict[str, float] = defaultdict(float)
    for (file, _, _), (_, _, own, _, callers) in _table(stats).items():
        if file == _C:
            for (caller, _, _), (_, _, of_caller, _) in callers.items():
                seconds[_module(caller)] += of_caller
        else:
            seconds[_module(file)] += own
    whole = sum(seconds.values())
    shares = {module: spent / whole for module, spent in seconds.items() if spent > _LEAST * whole}
    return [
        {"module": module, "share": share}
        for module, share in sorted(shares.items(), key=lambda item: -item[1])
    ]


def _table(stats: pstats.Stats) -> dict[_Function, tuple[int, int, float, float, _Callers]]:
    """Of each function: calls (twice), its own seconds, those below it too; the same by caller."""
    table: dict[_Function, tuple[int, int, float, float, _Callers]]
    table = stats.stats  # type: ignore[attr-defined]  # pstats has no other way to them
    return table


def _module(file: str) -> str:
    path = Path(file)
    if path.is_relative_to(_ROOT) and path.relative_to(_ROOT).parts[0] in ("decoder", "migrate"):
        return path.relative_to(_ROOT).as_posix()
    return _ELSEWHERE
