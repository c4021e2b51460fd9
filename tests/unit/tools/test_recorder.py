"""Compare two recordings of command lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import recorder

_TESTS = """
import subprocess, sys, time, uuid
from pathlib import Path
from tests.support.command import migrate

def test_in_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.support.command.main", lambda: writes(tmp_path / "plan"))
    migrate("to-spark", tmp_path)

def writes(path):
    path.write_text(f"{path} {uuid.uuid4()} {time.time()}")
    print("wrote", path)
    sys.exit(2)

def test_in_a_process_of_its_own():
    subprocess.run([sys.executable, "-m", "migrate", "--version"], capture_output=True, check=True)
    subprocess.run(["true"], check=True)
"""


@pytest.mark.slow
def test_recordings_of_commands_differ_only_if_output_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests, before, after = (tmp_path / name for name in ("test_it.py", "a.jsonl", "b.jsonl"))
    tests.write_text(_TESTS)
    for path in (before, after):
        assert recorder.record(path, ["-q", "-p", "no:cacheprovider", str(tests)]) == 0
    version, to_spark = recorder.load(before).values()
    assert version["arguments"] == ["<venv>/bin/python", "-m", "migrate", "--version"]
    assert version["code"] == 0 and version["stdout"] and not version["files"]
    assert (to_spark["arguments"], to_spark["code"]) == (["migrate", "to-spark", "<tmp>"], 2)
    assert to_spark["stdout"] == "wrote <tmp>/plan\n"
    assert to_spark["files"]["<tmp>/plan"]["text"] == "<tmp>/plan <uuid> <time>"
    assert not list(recorder.differences(before, after))

    after.write_text(after.read_text().replace("<tmp>/plan <uuid>", "<tmp>/plan 7"))
    (diff,) = recorder.differences(before, after)
    assert [line for line in diff if line.startswith(("- ", "-<", "+<"))] == [
        "-<tmp>/plan <uuid> <time>",
        "+<tmp>/plan 7 <time>",
    ]
