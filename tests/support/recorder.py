"""Record the command lines that tests run, to compare them before and after a refactoring.

``record OUT.jsonl [pytest arguments…]`` runs the fast tests, or those that the arguments select,
and records each call of ``tests.support.command.migrate``, and each ``subprocess.run`` that names
``migrate``. ``compare A.jsonl B.jsonl`` shows the calls that differ. To record an older tree, copy
this file into that tree.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import fcntl
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.support import command

Call = dict[str, Any]

FAST = ["-q", "-n", "2", "--dist", "loadscope", "-m", "not integration and not slow"]
FAST += ["--ignore", "tests/integration"]
_TEXT_SIZE = 10_000  # for a longer text, the recording has only the hash
# Times this close to now differ between runs. Older times come from golden checkpoints.
_NEAR_SECONDS = 2 * 86_400
_VARYING = {
    "<venv>": re.compile(rf"{re.escape(sys.prefix)}\b"),
    "<root>": re.compile(rf"{re.escape(str(Path(__file__).parents[2]))}\b"),
    "<tmp>": re.compile(r"/tmp/(recording-\d+/|page-|tmp)[a-z0-9_]{8}\b"),
    "<uuid>": re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<=bucket-)[0-9a-f]{32}"),
    # Hashes of paths and times, in file names, ids, and checksums.
    "<hash>": re.compile(
        r"(?<=-)[0-9a-f]{16}(?=\.json|\.tmp)|(?<=\"id\": \")[0-9a-f]{16}(?=\")|\b[0-9a-f]{64}\b"
    ),
    "<port>": re.compile(r"(?<=localhost:)\d{5}\b|(?<=127\.0\.0\.1:)\d{5}\b"),
    "<duration>": re.compile(r"\b\d+(\.\d+)? m?s\b|(?<=\"seconds\": )\d+\.\d+"),
    "<pid>": re.compile(r"(?<=\bprocess )\d+\b|\A\d{3,}\n\Z"),
}
_NUMBER = re.compile(r"\b\d{13}\b|\b\d{10}(\.\d+)?\b")
_DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T ](\d\d):?(\d\d)(:?\d\d(\.\d+)?)?(Z|\+00:?00)?")


def normalise(text: str) -> str:
    """Replace the parts that differ between runs.

    They are paths, ports, UUIDs, times, durations, and process ids.
    """
    for name, pattern in _VARYING.items():
        text = pattern.sub(name, text)
    return _NUMBER.sub(_near_number, _DATE.sub(_near_date, text))


def _near_number(match: re.Match[str]) -> str:
    return "<time>" if _is_near(float(match[0][:10])) else match[0]


def _near_date(match: re.Match[str]) -> str:
    try:
        moment = datetime.strptime("".join(match.groups()[:5]), "%Y%m%d%H%M")
    except ValueError:
        return match[0]
    return "<time>" if _is_near(moment.replace(tzinfo=timezone.utc).timestamp()) else match[0]


def _is_near(seconds: float) -> bool:
    return abs(time.time() - seconds) < _NEAR_SECONDS


class Recorder:
    """A pytest plugin that appends each call of the command to a file."""

    def __init__(self, path: Path, directory: Path) -> None:
        self._path = path
        self._directory = directory
        self._test = ""
        self._index = 0
        self._roots: list[Path] = []
        self._is_inside = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Name temporary files after the test, because binary files and hashes depend on paths."""
        self._test, self._index, self._roots = nodeid, 0, []
        hashes = (hashlib.sha256(f"{nodeid} {n}".encode()) for n in itertools.count())
        tempfile._name_sequence = (item.hexdigest()[:8] for item in hashes)  # type: ignore[attr-defined]

    def make_directory(self, *_: object, **__: object) -> Path:
        """Replace ``TempPathFactory.mktemp``: make a directory with a name of fixed length."""
        self._roots.append(Path(tempfile.mkdtemp(prefix="", dir=self._directory)))
        return self._roots[-1]

    def wrap(self, function: Callable[..., Any], *prefix: str) -> Callable[..., Any]:
        """Return a function that also records its calls if they run ``migrate``."""

        def recorded(*arguments: Any, **options: Any) -> Any:
            # The first argument of subprocess.run is a list of words, or a shell line.
            words = arguments if prefix else arguments[0]
            words = [words] if isinstance(words, str | Path) else [*prefix, *words]
            words = [normalise(str(word)) for word in words]
            if self._is_inside or not any("migrate" in word for word in words):
                return function(*arguments, **options)
            directory = Path(options.get("cwd") or Path.cwd())
            is_temporary = Path(tempfile.gettempdir()) in directory.parents
            roots = {*self._roots, *([directory] if is_temporary else [])}
            before, result, code = _states(roots), None, None
            self._is_inside = True
            try:
                result = function(*arguments, **options)
                code = getattr(result, "code", getattr(result, "returncode", None))
            except BaseException as error:
                code = type(error).__name__
                raise
            finally:
                self._is_inside = False
                self._write(words, code, result, before, _states(roots))
            return result

        return recorded

    def _write(self, words: list[str], code: object, result: Any, before: Any, after: Any) -> None:
        changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        call = {
            "test": self._test,
            "index": self._index,
            "arguments": words,
            "code": code,
            "stdout": _text(getattr(result, "stdout", None)),
            "stderr": _text(getattr(result, "stderr", None)),
            "files": {normalise(str(path)): _content(path) for path in changed},
        }
        self._index += 1
        with self._path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # locked until the file is closed
            file.write(json.dumps(call) + "\n")


def _states(roots: set[Path]) -> dict[Path, tuple[int, int, int]]:
    states = {}
    files = (Path(top, name) for root in roots for top, _, names in os.walk(root) for name in names)
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # another process has removed it
            stat = path.lstat()
            states[path] = stat.st_ino, stat.st_mtime_ns, stat.st_size
    return states


def _text(output: str | bytes | None) -> str:
    return normalise(output.decode(errors="replace") if isinstance(output, bytes) else output or "")


def _content(path: Path) -> dict[str, str]:
    """Return the hash of a file's normalized content, and the text if it is short."""
    if not path.is_file():
        return {"sha256": "no file"}
    try:
        text = normalise(path.read_bytes().decode())
    except UnicodeDecodeError:
        content = normalise(path.read_bytes().decode("latin-1")).encode("latin-1")
        return {"sha256": hashlib.sha256(content).hexdigest()}
    entry = {"sha256": hashlib.sha256(text.encode()).hexdigest()}
    return entry | {"text": text} if len(text) <= _TEXT_SIZE else entry


def pytest_configure(config: pytest.Config) -> None:
    """Record the calls of a run that ``record`` has started."""
    recorder = Recorder(Path(os.environ["RECORDING"]), Path(os.environ["RECORDING_DIRECTORY"]))
    config.pluginmanager.register(recorder)
    # Test modules are imported later, and import these functions by name.
    command.migrate = recorder.wrap(command.migrate, "migrate")
    subprocess.run = recorder.wrap(subprocess.run)
    pytest.TempPathFactory.mktemp = recorder.make_directory  # type: ignore[method-assign]


def record(path: Path, arguments: Sequence[str]) -> int:
    """Run pytest and record its calls, sorted by test; return pytest's exit code."""
    # Take the first free name, so that each recording has the same paths.
    names = (Path(f"/tmp/recording-{number}") for number in itertools.count())
    directory = next(name for name in names if not name.exists())
    directory.mkdir()
    path.write_text("")
    settings = {"RECORDING": str(path.absolute()), "RECORDING_DIRECTORY": str(directory)}
    try:
        run = [sys.executable, "-m", "pytest", "-p", "tests.support.recorder", *(arguments or FAST)]
        code = subprocess.run(run, env=os.environ | settings, check=False).returncode
    finally:
        shutil.rmtree(directory)
    calls = sorted(load(path).items())
    path.write_text("".join(json.dumps(call) + "\n" for _, call in calls))
    print(f"{len(calls)} calls in {path}")
    return code


def load(path: Path) -> dict[tuple[str, int], Call]:
    """Return the calls of a recording by test and index."""
    calls = [json.loads(line) for line in path.read_text().splitlines()]
    return {(call["test"], call["index"]): call for call in calls}


def differences(before: Path, after: Path) -> Iterator[list[str]]:
    """Yield a unified diff for each call that differs, is missing or is new."""
    old, new = load(before), load(after)
    for key in sorted({*old, *new}):
        name = f"{key[0]} #{key[1]}"
        sides = _lines(old.get(key)), _lines(new.get(key))
        if diff := list(difflib.unified_diff(*sides, fromfile=name, tofile=name, lineterm="")):
            yield diff


def _lines(call: Call | None) -> list[str]:
    if call is None:
        return []
    lines = [f"$ {' '.join(call['arguments'])}", f"exit code: {call['code']}", "stdout:"]
    lines += [*call["stdout"].split("\n"), "stderr:", *call["stderr"].split("\n")]
    for path, entry in call["files"].items():
        lines += [f"{path}: {entry['sha256']}", *entry.get("text", "").split("\n")]
    return lines


def main() -> int:
    """Record, or compare two recordings; return 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("path", type=Path)
    recording.add_argument("arguments", nargs=argparse.REMAINDER)
    comparing = commands.add_parser("compare")
    comparing.add_argument("paths", nargs=2, type=Path)
    comparing.add_argument("--show", type=int, default=20, metavar="N", help="diffs to print")
    options = parser.parse_args()
    if options.command == "record":
        return record(options.path, options.arguments)
    diffs = list(differences(*options.paths))
    for diff in diffs[: options.show]:
        print("\n".join(diff), end="\n\n")
    counts = " and ".join(str(len(load(path))) for path in options.paths)
    print(f"{counts} calls compared: {len(diffs)} differ")
    return 1 if diffs else 0


if __name__ == "__main__":
    sys.exit(main())
