"""Apply a function to many items, in this process and in worker processes on this machine.

``multiprocessing`` is not used (docs/decisions/0009). With spawn, each process would rerun the
caller's script. With fork, a child may wait forever for a lock. This happens if a different thread
(from a notebook, Spark, or a storage client) holds the lock during the fork. A worker is a Python
process that imports this module and the function's module, but not the caller's script. Items are
pickled to its stdin, and results are pickled to its stdout.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any, TypeVar

from migrate.extensions.fleet.catalog import WORKERS_ENDED, WORKERS_KILLED
from migrate.model.errors import ServiceError
from migrate.model.option_names import Notation, notation, process_notation

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# The number of attempts for an item. If a worker process ends during an item, possibly because of
# insufficient memory, a new process makes the next attempt.
_ATTEMPTS = 4
_SERVE = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from migrate.extensions.fleet.workers import serve; serve()"
)
# A container's processor limit, as a quota and a period, in one file (cgroup v2) or two (v1).
_CGROUP_V2 = Path("/sys/fs/cgroup/cpu.max")
_CGROUP_V1 = tuple(Path("/sys/fs/cgroup/cpu") / f"cpu.cfs_{of}_us" for of in ("quota", "period"))


class _WorkerTraceback(Exception):
    """The traceback of an error in a worker, used as the cause of the error in this process."""


def cores() -> int:
    """Return the number of processors that this process may use (affinity and container limits)."""
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        available = os.cpu_count() or 1
    try:
        files = (_CGROUP_V2,) if _CGROUP_V2.exists() else _CGROUP_V1
        quota, period = map(int, " ".join(path.read_text() for path in files).split())
    except (OSError, ValueError):  # no container, or "max" for no limit
        return available
    return max(1, min(available, -(-quota // period))) if quota > 0 else available


class WorkerPool:
    """A pool that consists of this process and ``size - 1`` worker processes.

    A worker process starts when it gets its first item. At the end of the ``with`` block, the
    workers are stopped, and their unfinished work is lost.
    """

    def __init__(self, size: int) -> None:
        # sys.executable is empty if Python is embedded in a different program.
        self._workers = [_Worker() for _ in range(size - 1 if sys.executable else 0)]

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()

    def map(
        self,
        function: Callable[[_Item], _Result],
        items: Sequence[_Item],
        done: Callable[[_Item], None] = lambda _: None,
    ) -> list[_Result]:
        """Call the function with each item, and return the results in the order of the items.

        Messages created in a worker show options in the same notation as this process's messages.

        Args:
            function: the function, which is pickled for the workers; each process unpickles it
                once.
            items: any number of items. For the workers, items and results are also pickled.
            done: a function that is called with each completed item, from any thread, one call at a
                time.

        Raises:
            ServiceError: several successive worker processes ended while processing the same item.
            Exception: an error from the function; after the first error, no further item is
                started.
        """
        pickled = pickle.dumps(partial(_call_with_notation, notation(), function))
        results: dict[int, _Result] = {}
        errors: list[BaseException] = []
        remaining = iter(enumerate(items))
        lock = Lock()

        def work(run: Callable[[_Item], _Result]) -> None:
            while True:
                with lock:
                    next_item = next(remaining, None) if not errors else None
                if next_item is None:
                    return
                number, item = next_item
                result = run(item)
                with lock:
                    results[number] = result
                    done(item)

        def work_in_worker(worker: _Worker) -> None:
            try:
                work(lambda item: worker.run(pickled, item))
            except BaseException as error:
                errors.append(error)

        workers = self._workers[: max(0, len(items) - 1)]  # this process handles one item itself
        threads = [Thread(target=work_in_worker, args=(worker,), daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        try:
            work(function)
        except BaseException as error:
            errors.append(error)  # the threads do not start any more items
            raise
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return [results[number] for number in range(len(items))]


def _call_with_notation(
    notation: Notation, function: Callable[[_Item], _Result], item: _Item
) -> _Result:
    with process_notation(notation):
        return function(item)


class _Worker:
    """A worker process, started for its first item and, if it has ended, again for the next one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._function: bytes | None = None  # the function that the process has unpickled
        self._lock = Lock()
        self._closed = False

    def run(self, function: bytes, item: Any) -> Any:
        code: int | None = None
        for _ in range(_ATTEMPTS):
            process = self._start()
            assert process.stdin is not None and process.stdout is not None
            try:
                pickle.dump((None if function is self._function else function, item), process.stdin)
                process.stdin.flush()
                self._function = function
                result, error, traceback = pickle.load(process.stdout)
            except (EOFError, OSError, pickle.UnpicklingError):
                code = self._stop()
                continue
            if error is not None:
                raise error from _WorkerTraceback(f"\n{traceback}")
            return result
        if code is not None and code < 0:
            raise ServiceError(WORKERS_KILLED(attempts=_ATTEMPTS, signal=-code))
        raise ServiceError(WORKERS_ENDED(attempts=_ATTEMPTS))

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise EOFError
            if self._process is None:
                self._function = None
                self._process = subprocess.Popen(
                    _worker_command(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,  # Ctrl-C in a terminal does not reach the worker
                )
            return self._process

    def _stop(self) -> int | None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        with suppress(OSError), process:  # waits until the process has ended; closes its pipes
            pass
        return process.returncode

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._stop()


def _worker_command() -> list[str]:
    if getattr(sys, "frozen", False):  # sys.executable is the program of scripts/frozen/start.py
        return [sys.executable, "--worker"]
    return [sys.executable, "-c", _SERVE, *sys.path]


def serve() -> None:
    """In a worker process, read items from stdin and write results to stdout until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # keep a library's output out of the answers
    logging.getLogger().addHandler(logging.NullHandler())
    function: Callable[[Any], Any] | None = None
    # As in ``migrate.cli``, no garbage is collected until the function's module is imported.
    gc.disable()
    with suppress(EOFError, BrokenPipeError):
        while True:
            pickled, item = pickle.load(sys.stdin.buffer)
            if pickled is not None:
                function = pickle.loads(pickled)
                gc.freeze()
                gc.set_threshold(10_000)
                gc.enable()
            assert function is not None
            answers.write(_answer(function, item))
            answers.flush()
    os._exit(0)  # does not flush ``answers``, because the flush fails if the pipe is broken


def _answer(function: Callable[[Any], Any], item: Any) -> bytes:
    try:
        return pickle.dumps((function(item), None, ""))
    except Exception as error:
        import traceback

        text = traceback.format_exc()
        try:
            answer = pickle.dumps((None, error, text))
            pickle.loads(answer)
        except Exception:  # not every exception can be unpickled
            return pickle.dumps((None, RuntimeError(str(error)), text))
        return answer
