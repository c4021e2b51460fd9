"""A function over many items: here, and in processes of this machine beside this one.

``multiprocessing`` is not used. Where it spawns, each process first runs the script of whoever
called us once more; where it forks, threads of a notebook, of Spark or of a store's client may hold
locks that their copies wait for without end. A process here is a Python that imports the function's
module and nothing else: items go in by a pipe, results come out by another.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType
from typing import Any, TypeVar

from migrate.model.errors import ServiceError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Of an item whose process ends: it may have been the system, for want of memory.
_TRIES = 4
_SERVE = "import sys; sys.path[:] = sys.argv[1:]; from migrate.fleet.workers import serve; serve()"
# What a container may use of the machine: cgroup v2, and v1 with its two files.
_LIMIT = Path("/sys/fs/cgroup/cpu.max")
_OLD_LIMIT = tuple(Path("/sys/fs/cgroup/cpu") / f"cpu.cfs_{of}_us" for of in ("quota", "period"))


class ProcessLost(ServiceError):
    """A process ended before its answer, and so did those that were started in its place."""


class _Raised(Exception):
    """What was raised in another process, with its traceback there."""


def cores() -> int:
    """How many processors this process may use, by its affinity and its container's limit."""
    try:
        mine = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS has none
        mine = os.cpu_count() or 1
    try:
        limit = (
            _LIMIT.read_text()
            if _LIMIT.exists()
            else " ".join(path.read_text() for path in _OLD_LIMIT)
        )
        quota, period = map(int, limit.split())
    except (OSError, ValueError):  # no container; or one without a limit: "max", -1
        return mine
    return max(1, min(mine, -(-quota // period))) if quota > 0 else mine


class Processes:
    """This process and ``number - 1`` beside it, which start when there is work for them.

    They end with the block, whatever ends it: with it the work that is under way.
    """

    def __init__(self, number: int) -> None:
        # One that does not know its Python is embedded in another program.
        self._others = [_Process() for _ in range(number - 1 if sys.executable else 0)]

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._others:
            process.close()

    def map(
        self,
        function: Callable[[_Item], _Result],
        items: Sequence[_Item],
        done: Callable[[_Item], None] = lambda _: None,
    ) -> list[_Result]:
        """What the function makes of each item, in their order.

        Args:
            function: picklable, as are items and results; the same object for all items of a
                process.
            done: told of each item, now by this and now by that thread, one at a time.

        Raises:
            ProcessLost: an item ended every process that it was given to.
            Exception: what the function raised, of the first item that is known of; no other is
                begun then.
        """
        pickled = pickle.dumps(function)
        results: dict[int, _Result] = {}
        failures: list[BaseException] = []
        waiting = iter(enumerate(items))
        lock = Lock()

        def work(run: Callable[[_Item], _Result]) -> None:
            while True:
                with lock:
                    following = next(waiting, None) if not failures else None
                if following is None:
                    return
                number, item = following
                result = run(item)
                with lock:
                    results[number] = result
                    done(item)

        def beside(process: _Process) -> None:
            try:
                work(lambda item: process.run(pickled, item))
            except BaseException as error:
                failures.append(error)

        # This process takes one of the items.
        others = self._others[: max(0, len(items) - 1)]
        threads = [Thread(target=beside, args=(process,), daemon=True) for process in others]
        for thread in threads:
            thread.start()
        work(function)
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return [results[number] for number in range(len(items))]


class _Process:
    """One process beside this one; started when it is first asked, and again where it was lost."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None
        self._function: bytes | None = None  # the one that it knows
        self._lock = Lock()
        self._closed = False

    def run(self, function: bytes, item: Any) -> Any:
        code: int | None = None
        for _ in range(_TRIES):
            running = self._started()
            try:
                result, error, traceback = self._ask(running, function, item)
            except (EOFError, OSError, pickle.UnpicklingError):
                code = self._end()
                continue
            if error is not None:
                raise error from _Raised(f"\n{traceback}")
            return result
        how = f"was killed by signal {-code}" if code is not None and code < 0 else "ended"
        raise ProcessLost(
            f"a process that helped {how}, and so did {_TRIES - 1} in its place: does the machine "
            "lack memory?"
        )

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise EOFError
            if self._running is None:
                self._function = None
                self._running = subprocess.Popen(
                    [sys.executable, "-c", _SERVE, *sys.path],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    # Ctrl-C is for us alone: we end it.
                    start_new_session=True,
                )
            return self._running

    def _ask(self, running: subprocess.Popen[bytes], function: bytes, item: Any) -> Any:
        assert running.stdin is not None and running.stdout is not None
        known = function is self._function
        pickle.dump((None if known else function, item), running.stdin)
        running.stdin.flush()
        self._function = function
        return pickle.load(running.stdout)

    def _end(self) -> int | None:
        """How it ended."""
        with self._lock:
            running, self._running = self._running, None
        if running is None:
            return None
        # Killed where it has not ended by itself: an answer that could not be read, say.
        running.kill()
        running.wait()
        for stream in (running.stdin, running.stdout):
            if stream is not None:
                with suppress(OSError):  # what is left in its buffer goes nowhere
                    stream.close()
        return running.returncode

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._end()


def serve() -> None:
    """Answer what comes from stdin on stdout, until there is no more: the other process's side."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    logging.getLogger().addHandler(logging.NullHandler())
    function: Callable[[Any], Any] | None = None
    try:
        while True:
            new, item = pickle.load(sys.stdin.buffer)
            if new is not None:
                function = pickle.loads(new)
            assert function is not None
            answers.write(_answer(function, item))
            answers.flush()
    except (EOFError, BrokenPipeError):  # it has ended
        os._exit(0)  # with what is left in a buffer


def _answer(function: Callable[[Any], Any], item: Any) -> bytes:
    try:
        return pickle.dumps((function(item), None, ""))
    except Exception as error:
        import traceback

        told = traceback.format_exc()
        try:
            answer = pickle.dumps((None, error, told))
            pickle.loads(answer)  # not every exception can be made again
        except Exception:
            return pickle.dumps((None, RuntimeError(str(error)), told))
        return answer
