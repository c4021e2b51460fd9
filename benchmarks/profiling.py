"""Profile the readers of migrate, by module."""

from __future__ import annotations

import pstats
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.checkpoints import Dataset
from benchmarks.processes import run
from benchmarks.readers import Reader
from benchmarks.results import Share

_ROOT = Path(__file__).parent.parent
# Smaller shares are omitted.
_LEAST_SHARE = 0.02
# The file name that cProfile has for functions that are written in C.
_C = "~"
# The file, line and name of a function.
_Function = tuple[str, int, str]
_Callers = dict[_Function, tuple[int, int, float, float]]
_OTHER = "Python and its libraries"


def profile(dataset: Dataset, reader: Reader) -> list[Share]:
    """Return the modules with the largest shares of a reader's time, the largest first.

    Functions written in C count for the module that calls them. The profiler adds time to each
    call, so the shares of modules with many small calls are too large.
    """
    command = reader.command(dataset)
    # The interpreter of the profiler replaces the command's interpreter.
    arguments = command[1:] if command[0] == sys.executable else command
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = Path(folder) / "profile"
        profiler = [sys.executable, "-m", "cProfile", "-o", str(file)]
        run([*profiler, *arguments], Path(folder) / "stdout")
        return _shares(pstats.Stats(str(file)))


def _shares(stats: pstats.Stats) -> list[Share]:
    seconds: dict[str, float] = defaultdict(float)
    for (file, _, _), (_, _, own, _, callers) in _table(stats).items():
        if file == _C:
            for (caller, _, _), (_, _, own_for_caller, _) in callers.items():
                seconds[_module(caller)] += own_for_caller
        else:
            seconds[_module(file)] += own
    total = sum(seconds.values())
    return [
        {"module": module, "share": spent / total}
        for module, spent in sorted(seconds.items(), key=lambda item: -item[1])
        if spent > _LEAST_SHARE * total
    ]


def _table(stats: pstats.Stats) -> dict[_Function, tuple[int, int, float, float, _Callers]]:
    """Return the figures of each function.

    The figures are the number of primitive calls, the number of all calls, the seconds in the
    function itself, the seconds including the functions that it calls, and the same four figures
    for each caller.
    """
    return stats.stats  # type: ignore[attr-defined, no-any-return]  # it is not public


def _module(file: str) -> str:
    path = Path(file)
    if path.is_relative_to(_ROOT) and path.relative_to(_ROOT).parts[0] in ("decoder", "migrate"):
        return path.relative_to(_ROOT).as_posix()
    return _OTHER
