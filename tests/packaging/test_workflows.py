"""Check the GitHub workflows with actionlint, and check the permissions of each job."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github/workflows"
FILES = sorted(FOLDER.glob("*.yml"))
# go.mod and go.sum in this directory lock actionlint. Go builds it once and caches it.
ACTIONLINT = ROOT / "tests/support/actionlint"


def _jobs() -> dict[str, dict[str, Any]]:
    """Return every job by its file and name."""
    return {
        f"{file.stem}/{name}": job
        for file in FILES
        for name, job in yaml.safe_load(file.read_text())["jobs"].items()
    }


@pytest.fixture(scope="module")
def go() -> str:
    """Return the path of a Go that can build actionlint."""
    (needed,) = re.findall(r"^go (\d+)\.(\d+)", (ACTIONLINT / "go.mod").read_text(), re.M)
    program = shutil.which("go") or ""
    version = program and subprocess.check_output([program, "env", "GOVERSION"], text=True)
    found = re.match(r"go(\d+)\.(\d+)", version)
    if found is None or tuple(map(int, found.groups())) < tuple(map(int, needed)):
        pytest.skip(f"needs Go {'.'.join(needed)} to build actionlint")
    return program


def _actionlint(go: str, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [go, "-C", str(ACTIONLINT), "tool", "actionlint", "-no-color", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
def test_actionlint_finds_no_problems(go: str) -> None:
    done = _actionlint(go, *FILES)
    # Go lists its downloads on stderr.
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.slow
def test_actionlint_detects_misspelled_input(go: str, tmp_path: Path) -> None:
    file = tmp_path / "release.yml"
    file.write_text((FOLDER / "release.yml").read_text().replace("subject-path", "subject-paths"))
    done = _actionlint(go, file)
    assert done.returncode == 1
    assert 'input "subject-paths" is not defined in action' in done.stdout


def test_ci_job_that_runs_project_code_has_only_read_permission() -> None:
    jobs = _jobs()
    assert jobs.keys() == {
        "checks/checks",
        *(f"release/{name}" for name in ("checks", "build", "program", "release")),
    }
    for name, job in jobs.items():
        rights = job.get("permissions", {"contents": "read"})
        if rights != {"contents": "read"}:
            assert name == "release/release"
            assert rights == {"contents": "write", "id-token": "write", "attestations": "write"}
            assert not any("checkout" in step.get("uses", "") for step in job["steps"])
    for file in FILES:
        assert yaml.safe_load(file.read_text())["permissions"] in ({}, {"contents": "read"})


def test_release_waits_for_ci_checks() -> None:
    jobs = _jobs()
    assert set(jobs["release/release"]["needs"]) == {"checks", "build", "program"}
    assert jobs["release/checks"]["uses"] == "./.github/workflows/checks.yml"
    assert jobs["checks/checks"]["steps"][-1] == {"run": ".ci/run"}


def test_workflows_refer_to_existing_make_targets_and_paths() -> None:
    text = "".join(file.read_text() for file in FILES)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"^ +make ([a-z-]+)", text, re.M)) <= targets
    paths = re.findall(r"\b(?:tests|requirements)/[\w./*-]+", text)
    assert len(paths) >= 5
    for path in paths:
        assert list(ROOT.glob(path)), path
