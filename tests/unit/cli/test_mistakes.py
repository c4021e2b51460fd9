"""Check the message and the exit code for users' mistakes."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest

from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.storage.json_models import write_file
from migrate.targets.group.rollback_file import rollback_file
from tests.support.command import migrate
from tests.support.golden import GOLDEN

(_CHK,) = (GOLDEN / "1.20" / "retained-files").glob("*/chk-4")
(_SAVEPOINT,) = (GOLDEN / "1.20" / "stop").iterdir()

_SPEC = "version: 1\nflink: {savepoint: s}\ntarget: {group: g}\n"
_REST = "rest: http://127.0.0.1:1, job: j, savepoints: s"
_REFUSED = "kafka: {bootstrap-servers: 127.0.0.1:1}\nrecord: offsets.json\n"
_KAFKA = "kafka: {bootstrap-servers: broker:9092}\n"

# Each command with the exit code and the last message, whose lines are joined. @CHK and @SAVEPOINT
# are checkpoints; the current folder, @FOLDER, has the files and directories of the fixture.
_TEXT = (Path(__file__).parents[1] / "mistakes.txt").read_text()
_MISTAKES = [
    (command, " ".join(message.split()))
    for command, _, message in (
        row.partition("\n") for row in _TEXT.removeprefix("$ ").split("\n$ ")
    )
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("offsets.json", '{"payments":{"0":24}}'),
        ("offsets.csv", "payments,0,24\n"),
        ("header.csv", "topic,partition,offset\npayments,0,24\n"),
        ("semicolon.csv", "payments;0;24\n"),
        ("comma.json", '{"payments":{"0":24},}'),
        ("text.json", '{"payments":{"0":"24"}}'),
        ("newer.json", '{"kind": "flink-offset-migrate rollback", "version": 9}'),
        ("empty.yaml", ""),
        ("wrong.yaml", "job: x\n"),
        ("kafka.yaml", f"{_SPEC}kafka:\n"),
        ("text.yaml", f"{_SPEC}kafka: broker:9092\n"),
        ("port.yaml", _SPEC.replace("savepoint: s", _REST) + _KAFKA),
        ("job.yaml", _SPEC.replace("savepoint: s", "rest: http://h:8081, job: j") + _KAFKA),
        (
            "tilde.yaml",
            f"{_SPEC}{_KAFKA}record: ~/r\n".replace("group: g", "checkpoint-dir: ~/q"),
        ),
        (
            "prefixes.yaml",
            f"{_SPEC}{_KAFKA}sink: spark:out\n".replace("group: g", "checkpoint-dir: spark:q"),
        ),
        ("group.yaml", f"{_SPEC}{_KAFKA}record: spark:r\n".replace(": g}", ": group:g}")),
        ("brokers.yaml", f"{_SPEC}kafka: {{bootstrap-servers: ['a:1', 'b:1']}}\n"),
        ("missing.yaml", _SPEC.replace("group: g", "checkpoint-dir: q") + _KAFKA),
        (
            "above.yaml",
            _SPEC.replace("group: g", "checkpoint-dir: q").replace(": s", ": job") + _KAFKA,
        ),
        (
            "same.yaml",
            f"{_SPEC}{_KAFKA}record: q/../r\n".replace("group: g", "checkpoint-dir: r/query"),
        ),
        ("twice.yaml", f"{_SPEC}{_KAFKA}record: r\nrecord: s\n"),
        ("quoted.yaml", _SPEC.replace("1", '"1"') + _KAFKA),
        ("partitions.yaml", f"{_SPEC}{_KAFKA}move: {{partitions: clicks-0}}\n"),
        ("unset.yaml", f"{_SPEC}{_KAFKA}start:\n"),
        ("folders.yaml", f"{_SPEC.replace(': s', f': {_SAVEPOINT}')}{_REFUSED}"),
        ("other.csv", "clicks,0,24\n"),
        ("record.json", '{"kind": "flink-offset-migrate cut-over"}'),
        ("tab.yaml", "flink:\n\tjob: x\n"),
        ("colon.yaml", "a:\n  job: j\n  rest http://h:8081\nb: c\n"),
        ("header.csv", "topic,partition,offset\npayments,0,24\n"),
        ("indent.yaml", "flink:\n  job: x\n rest: http://h:8081\n"),
        ("empty.properties", ""),
        ("short.json", '{"kind":'),
    ):
        Path(name).write_text(text)
    metadata = (_CHK / "_metadata").read_bytes()
    Path("gzip.gz").write_bytes(gzip.compress(metadata))
    for name, content in (
        ("empty/chk-1", b""),
        ("short/chk-1", metadata[:200]),
        ("job/savepoint-1", metadata),
        ("retained/chk-4", metadata),
        ("two-jobs/5f1d/chk-2", metadata),
    ):
        directory = Path(name)
        directory.mkdir(parents=True)
        (directory / "_metadata").write_bytes(content)
    Path("none").mkdir()
    Path("cluster/checkpoints/job/chk-1").mkdir(parents=True)
    for empty in (
        "ended/shared/state",
        "ended/taskowned",
        "chk-7",
        "chk-8",
        "jobs/a",
        "jobs/b",
        "flink/job/taskowned",
        "retained/shared",
        "two-jobs/c27b/shared",
        "two-jobs/c27b/taskowned",
        "ended-jobs/a/taskowned",
        "ended-jobs/b/taskowned",
    ):
        Path(empty).mkdir(parents=True)
    assert migrate("to-spark", _CHK, "--plan-out", "plan.json").code == 0
    for location in ("seed", "queries/clicks"):
        assert migrate("to-spark", _CHK, "--checkpoint-dir", location).code == 0
    for used in ("ran", "moved"):
        assert migrate("to-spark", "--plan", "plan.json", "--checkpoint-dir", used).code == 0
    Path("ran/offsets").mkdir()  # a query has started, but not planned a batch
    Path("moved/sources/0/0").write_text('\0v1\n{"clicks":{"0":1}}')
    plan = Path("plan.json").read_text()
    Path("edited.json").write_text(plan.replace('"next_offset": 24', '"next_offset": 25'))
    held = GroupView("g", True, "Empty", "consumer", committed={("t", 0): Committed(5, "")})
    after = {("t", 0): Committed(9, "")}
    rollback = rollback_file("commit", None, "127.0.0.1:1", held, after, {})
    write_file(rollback, Path("rollback.json"))
    text = Path("rollback.json").read_text()
    for name, old, new in (
        ("edited-offset.json", '"next_offset": 5', '"next_offset": 6'),
        ("edited-group.json", '"group": "g"', '"group": "h"'),
    ):
        Path(name).write_text(text.replace(old, new))
    return tmp_path


def test_list_of_user_mistakes_has_at_least_sixty_entries() -> None:
    assert len(_MISTAKES) >= 60


@pytest.mark.parametrize(("command", "expected"), _MISTAKES)
def test_user_mistake_is_reported_with_remedy_and_exit_code(
    folder: Path, command: str, expected: str
) -> None:
    for name, path in (("@CHK", _CHK), ("@SAVEPOINT", _SAVEPOINT), ("@FOLDER", folder)):
        command, expected = command.replace(name, str(path)), expected.replace(name, str(path))
    before = sorted(folder.rglob("*"))
    result = migrate(*shlex.split(command))
    code, message = expected.split(" ", 1)
    assert (result.code, _last_message(result.stderr)) == (int(code), message)
    assert result.stdout == ""
    assert sorted(folder.rglob("*")) == before


def _last_message(stderr: str) -> str:
    """Return the last message, also of Typer's box of an error."""
    lines = stderr.replace("\nmigrate: refused; nothing was written", "").splitlines()
    if lines[-1].startswith("╰"):
        return " ".join(line.strip("│ ") for line in lines if line.startswith("│"))
    return lines[-1].removeprefix("migrate: ")
