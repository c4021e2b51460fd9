"""Generate thousands of checkpoints of many jobs, with the expected content of each checkpoint.

Flink's own classes have read the content of the golden checkpoints. Each checkpoint here is a copy
of a golden checkpoint. The copy has other topic names of the same length; `_template` lists the
exceptions. Some checkpoints are damaged or half-written. A test deletes some checkpoints during a
scan.

    python -m tests.support.many_jobs DIR --checkpoints 10000
"""

from __future__ import annotations

import argparse
import random
import shutil
import string
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import count, cycle
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.golden import GOLDEN, WRITTEN_BY_FLINK, ExpectedPosition, positions_of

METADATA = "_metadata"
# The bytes of the checkpoint id in the metadata, after the magic and the version.
_NUMBER = slice(8, 16)
_MOST_RETAINED = 3
_JOBS_PER_TEAM = 100
# One job in _DAMAGED_EVERY has a damaged newest checkpoint. The newest checkpoint of one job in
# _VANISHING_EVERY is deleted during a scan.
_DAMAGED_EVERY = 20
_VANISHING_EVERY = 25
_DIGITS = string.digits + string.ascii_lowercase
# Shorter topics keep their names, because there are too few other names of the same length.
_SHORTEST_TOPIC = 4


class Condition(Enum):
    """The state of a checkpoint: whole, damaged in some way, or deleted during a scan."""

    WHOLE = "whole"
    VANISHING = "vanishing"
    TRUNCATED = "truncated"
    NO_MAGIC = "no magic"
    OF_THE_FUTURE = "of the future"
    EMPTY = "empty"
    HALF_WRITTEN = "half-written"
    STATE_MISSING = "state missing"


# The states of checkpoints that cannot be read.
DAMAGES = tuple(
    condition for condition in Condition if condition not in (Condition.WHOLE, Condition.VANISHING)
)


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected content of a generated checkpoint.

    Attributes:
        job: the job id; None for a savepoint, because its path contains no job id.
        number: the checkpoint id in the metadata.
        template: the name of the golden checkpoint that was copied.
        positions: the positions in the checkpoint before any damage.
    """

    job: str | None
    number: int
    template: str
    condition: Condition
    positions: tuple[ExpectedPosition, ...]


@dataclass(frozen=True, slots=True)
class ManyJobs:
    """The root directory of the jobs, and their checkpoints by directory."""

    root: Path
    checkpoints: dict[str, Expected] = field(default_factory=dict)

    def of(self, *conditions: Condition) -> dict[str, Expected]:
        """Return the checkpoints with these conditions."""
        return {
            path: checkpoint
            for path, checkpoint in self.checkpoints.items()
            if checkpoint.condition in conditions
        }

    def newest(self) -> dict[str, str]:
        """Return the directory of each job's newest checkpoint that has `_metadata`, by job id."""
        newest: dict[str, str] = {}
        for path, checkpoint in self.checkpoints.items():
            if checkpoint.job is not None and checkpoint.condition is not Condition.HALF_WRITTEN:
                newest[checkpoint.job] = path  # the checkpoints of a job are in ascending order
        return newest


def delete_as_flink(checkpoint: str) -> None:
    """Delete a checkpoint as Flink does: file by file, and then the directory."""
    shutil.rmtree(checkpoint, ignore_errors=True)


class _Template(NamedTuple):
    """A golden checkpoint.

    Attributes:
        own: the files in its directory, by name.
        beside: the files next to its directory (``shared/…``), by path under the job's directory.
    """

    name: str
    directory: str
    own: Mapping[str, bytes]
    beside: Mapping[str, bytes]
    positions: tuple[ExpectedPosition, ...]
    topics: tuple[str, ...]

    @property
    def is_savepoint(self) -> bool:
        return self.directory.startswith("savepoint-")


def generate(root: Path, checkpoints: int, seed: int = 0) -> ManyJobs:
    """Write jobs with this total number of checkpoints, including the damaged ones."""
    jobs = ManyJobs(root)
    chance = random.Random(seed)
    for job, (template, condition) in enumerate(_jobs()):
        left = checkpoints - len(jobs.checkpoints)
        if left == 0:
            break
        team = root / f"team-{job // _JOBS_PER_TEAM:03}"
        job_id = f"{chance.getrandbits(128):032x}"
        if template.is_savepoint:
            name = f"savepoint-{job_id[:6]}-{job_id[-12:]}"
            _write(jobs, template, team / "savepoints" / name, None, job + 1, condition)
            continue
        retained = 1 if template.beside else min(1 + job % _MOST_RETAINED, left)
        newest = chance.randrange(retained, 10_000)
        for number in range(newest - retained + 1, newest + 1):
            own_condition = condition if number == newest else Condition.WHOLE
            _write(jobs, template, team / job_id / f"chk-{number}", job_id, number, own_condition)
    return jobs


def _jobs() -> Iterator[tuple[_Template, Condition]]:
    """Yield, without end, a job's template and the state of its newest checkpoint."""
    templates = [_template(entry) for entry in WRITTEN_BY_FLINK]
    templates_in_turn, damages = cycle(templates), cycle(DAMAGES)
    # Checkpoints with the source's state in separate files.
    in_files = cycle(
        [checkpoint for checkpoint in templates if checkpoint.name.endswith("/retained-files")]
    )
    for job in count(1):
        condition = Condition.WHOLE
        if job % _DAMAGED_EVERY == 0:
            condition = next(damages)
        elif job % _VANISHING_EVERY == 0:
            condition = Condition.VANISHING
        yield (
            next(in_files if condition is Condition.STATE_MISSING else templates_in_turn),
            condition,
        )


def _template(entry: Mapping[str, Any]) -> _Template:
    path = Path(entry["path"])
    files = {Path(name): (GOLDEN / name).read_bytes() for name in entry["files"]}
    positions = tuple(positions_of(entry))
    # No topic can be renamed in Snappy frames (checksums), in the state of a FlinkKafkaConsumer
    # (hashes of topics) and in Beam's state (Avro).
    as_it_is = "/compressed" in entry["name"] or {"legacy_sources", "beam_sources"} & entry.keys()
    topics = {position.topic for position in positions if len(position.topic) >= _SHORTEST_TOPIC}
    return _Template(
        entry["name"],
        path.name,
        {name.name: data for name, data in files.items() if name.parent == path},
        {
            str(name.relative_to(path.parent)): data
            for name, data in files.items()
            if name.parent != path
        },
        positions,
        () if as_it_is else tuple(sorted(topics)),
    )


def _write(
    jobs: ManyJobs,
    template: _Template,
    directory: Path,
    job: str | None,
    number: int,
    condition: Condition,
) -> None:
    names = {topic: _new_name(topic, len(jobs.checkpoints)) for topic in template.topics}
    positions = (
        position._replace(topic=names.get(position.topic, position.topic))
        for position in template.positions
    )
    directory.mkdir(parents=True)
    for name, data in template.own.items():
        if name == METADATA:
            data = _renamed(_with_checkpoint_id(data, number), names)
            if condition is not Condition.HALF_WRITTEN:
                (directory / name).write_bytes(_damaged(data, condition))
        elif condition is not Condition.STATE_MISSING:
            (directory / name).write_bytes(_renamed(data, names))
    for name, data in template.beside.items():
        beside = directory.parent / name
        beside.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(_renamed(data, names))
    jobs.checkpoints[str(directory)] = Expected(
        job, number, template.name, condition, tuple(positions)
    )


def _new_name(topic: str, number: int) -> str:
    """Return a name of the same length with the number in base 36 at its end."""
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return topic[0] + digits.rjust(len(topic) - 1, "0")


def _with_checkpoint_id(metadata: bytes, number: int) -> bytes:
    return metadata[: _NUMBER.start] + number.to_bytes(8, "big") + metadata[_NUMBER.stop :]


def _renamed(data: bytes, names: Mapping[str, str]) -> bytes:
    for old, new in names.items():
        data = data.replace(_utf(old), _utf(new))
    return data


def _utf(topic: str) -> bytes:
    """Encode a topic as DataOutput.writeUTF does."""
    return len(topic).to_bytes(2, "big") + topic.encode()


def _damaged(metadata: bytes, condition: Condition) -> bytes:
    match condition:
        case Condition.TRUNCATED:
            return metadata[: len(metadata) // 2]
        case Condition.NO_MAGIC:
            return b"\0" + metadata[1:]
        case Condition.OF_THE_FUTURE:
            return metadata[:4] + (99).to_bytes(4, "big") + metadata[8:]
        case Condition.EMPTY:
            return b""
        case _:
            return metadata


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.many_jobs")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--checkpoints", type=int, default=10_000)
    arguments = parser.parse_args()
    begun = time.monotonic()
    jobs = generate(arguments.directory, arguments.checkpoints)
    positions = sum(len(checkpoint.positions) for checkpoint in jobs.of(Condition.WHOLE).values())
    print(
        f"{len(jobs.checkpoints)} checkpoints of {len(jobs.newest())} jobs, "
        f"{len(jobs.of(*DAMAGES))} damaged, {positions} positions in whole ones, "
        f"in {time.monotonic() - begun:.1f} s"
    )


if __name__ == "__main__":
    main()
