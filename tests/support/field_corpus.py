"""Read every checkpoint under a folder, and count the results: read, refused, and so on.

    python -m tests.support.field_corpus FOLDER...        # prints a table in Markdown
    python -m tests.support.field_corpus --fetch FOLDER   # first gets the test jars of Flink

``--fetch`` extracts the resources of Flink's published test jars (``TEST_JARS``, Apache-2.0) into
the folder. They are data only, and are not committed. A file is a checkpoint if it starts with the
first bytes of a ``_metadata``, whatever its name. The results are:

- *refused*: an error of the kind ``unsupported``, or a state that is listed with a reason
- *damaged*: a file that ends early, or that contains a value that Flink never writes
- *incomplete*: a checkpoint whose state files are not in the folder
- *failed*: any other exception, which is a defect
"""

from __future__ import annotations

import argparse
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from decoder import DecodeError, ErrorKind, UnknownSource, read_checkpoint
from decoder.keyed_state import KeyedState, read_keyed_states

_MAGIC = bytes.fromhex("4960672d")
# Artifacts of org.apache.flink whose test jars contain checkpoints or savepoints.
TEST_JARS = (
    "flink-tests:1.15.4",
    "flink-table-planner_2.12:1.20.3",
    "flink-table-planner_2.12:2.3.0",
)
_REFUSED, _INCOMPLETE = "refused by name", "incomplete"
_KINDS = {
    ErrorKind.UNSUPPORTED: _REFUSED,
    ErrorKind.TOO_LARGE: _REFUSED,
    ErrorKind.NOT_FOUND: _INCOMPLETE,
    ErrorKind.EXTERNAL: _INCOMPLETE,
    ErrorKind.CORRUPT: "damaged",
    ErrorKind.TRUNCATED: "damaged",
}


def checkpoints(folder: Path) -> Iterator[Path]:
    """Yield the files under a folder that start with the bytes of a ``_metadata``, sorted."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            with file.open("rb") as opened:
                if opened.read(4) == _MAGIC:
                    yield file


def fetch(folder: Path) -> None:
    """Extract the resources of each of ``TEST_JARS`` into a folder named after the jar."""
    from jgo.maven import MavenContext

    with tempfile.TemporaryDirectory() as repository:
        context = MavenContext(repo_cache=Path(repository), timeout=300)
        for coordinates in TEST_JARS:
            artifact, version = coordinates.split(":")
            component = context.project("org.apache.flink", artifact).at_version(version)
            with zipfile.ZipFile(component.artifact("tests").resolve()) as jar:
                for name in jar.namelist():
                    if not name.endswith((".class", "/")) and not name.startswith("META-INF/"):
                        jar.extract(name, folder / f"{artifact}-{version}")


class Counts:
    """The results for the checkpoints and for their keyed states.

    Attributes:
        checkpoints, states: the number for each result.
        reasons: the number of refused states and unlisted parts for each reason.
        failures: the other exceptions, with their files.
    """

    def __init__(self) -> None:
        self.checkpoints: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.states: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.failures: list[str] = []

    def add(self, file: Path) -> None:
        try:
            checkpoint = read_checkpoint(file, allow_external_files=True)
            self.checkpoints["read"] += 1
            for source in checkpoint.sources.values():
                known = not isinstance(source, UnknownSource)
                self.sources["Kafka positions" if known else "another source"] += 1
        except DecodeError as error:
            self.checkpoints[_KINDS.get(error.kind, "failed")] += 1
        except Exception as error:
            self._fail(file, error)
            self.checkpoints["failed"] += 1
        try:
            keyed = read_keyed_states(file, allow_external_files=True)
        except DecodeError as error:
            self.states[f"not listed: {_KINDS.get(error.kind, 'failed')}"] += 1
            return
        except Exception as error:
            self._fail(file, error)
            return
        for unread in keyed.unread:
            self._count(unread.error)
        for state in keyed.states:
            self._add_state(file, state)

    def _add_state(self, file: Path, state: KeyedState) -> None:
        if state.reason is not None:
            self.states[_REFUSED] += 1
            self.reasons[_class_of(state.reason)] += 1
            return
        try:
            for _ in state.entries():
                pass
            self.states["read"] += 1
        except DecodeError as error:
            self._count(error)
        except Exception as error:
            self._fail(file, error)

    def _count(self, error: DecodeError) -> None:
        kind = _KINDS.get(error.kind, "failed")
        self.states[kind] += 1
        if kind != _INCOMPLETE:
            self.reasons[_class_of(error.problem)] += 1

    def _fail(self, file: Path, error: Exception) -> None:
        self.failures.append(f"{file}: {type(error).__name__}: {error}")


def _class_of(reason: str) -> str:
    """Return the class that a reason names, or its first words."""
    match = re.search(r"[\w.]*\b(?:[A-Z]\w*)(?:\$\w+)*(?:Serializer|Snapshot)\w*", reason)
    name = match[0] if match else reason.partition(":")[0]
    return name.rpartition(".")[2][:80]


def table(counts: Counts) -> str:
    """Return the counts as tables in Markdown."""
    parts = [
        _rows("Checkpoints", counts.checkpoints.items()),
        _rows("Sources", counts.sources.items()),
        _rows("Keyed states", counts.states.items()),
        _rows("Reasons", counts.reasons.most_common()),
    ]
    return "\n\n".join([*parts, *(f"FAILED {failure}" for failure in counts.failures)])


def _rows(title: str, rows: Iterable[tuple[str, int]]) -> str:
    lines = [f"| {name} | {number} |" for name, number in rows]
    return "\n".join([f"| {title} | |", "| --- | --: |", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--fetch", action="store_true")
    arguments = parser.parse_args()
    if arguments.fetch:
        fetch(arguments.folders[0])
    counts = Counts()
    for folder in arguments.folders:
        for file in checkpoints(folder):
            counts.add(file)
    print(table(counts))


if __name__ == "__main__":
    main()
