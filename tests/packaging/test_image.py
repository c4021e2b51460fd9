"""Lint the Dockerfile, check its pinned release, and run its steps without a Docker engine."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dockerfile_parse import DockerfileParser

ROOT = Path(__file__).parents[2]
HADOLINT = shutil.which("hadolint", path=Path(sys.executable).parent)


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    """The instructions of the Dockerfile, in order."""
    parser = DockerfileParser(path=str(ROOT / "Dockerfile"))
    found: list[dict[str, Any]] = parser.structure
    return found


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is available only for Linux on x86-64")
def test_linter_finds_no_problems_in_dockerfile() -> None:
    assert HADOLINT is not None
    subprocess.run([HADOLINT, "--no-color", ROOT / "Dockerfile"], check=True, timeout=60)


def test_image_uses_pinned_release_and_unprivileged_user(steps: list[dict[str, Any]]) -> None:
    bases = [step["value"].split()[0] for step in steps if step["instruction"] == "FROM"]
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", bases[0])
    (user,) = (step["value"] for step in steps if step["instruction"] == "USER")
    assert user.partition(":")[0].isdigit() and not user.startswith("0")
    assert [step["value"] for step in steps if step["instruction"] == "ENTRYPOINT"] == [
        '["migrate"]'
    ]


def test_files_copied_into_image_are_not_excluded_by_dockerignore(
    steps: list[dict[str, Any]],
) -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = [line.removeprefix("!") for line in lines if line.startswith("!")]
    assert "*" in lines
    for source, _ in _copies(steps):
        assert any(fnmatch.fnmatch(source.split("/")[0], name) for name in let_in), source


@pytest.mark.slow
def test_environment_built_by_dockerfile_steps_reads_checkpoint(
    steps: list[dict[str, Any]], tmp_path: Path
) -> None:
    """The steps run on a copy of the project, with all paths in a temporary directory."""
    places = {path: tmp_path / path.removeprefix("/") for path in ("/tools", "/venv", "/dist")}
    build = tmp_path / "build"
    build.mkdir()
    _, second = (n for n, step in enumerate(steps) if step["instruction"] == "FROM")
    for step in steps[:second]:
        if step["instruction"] == "COPY":
            for source, target in _copies([step]):
                _copy(ROOT / source, build / target / Path(source).name)
        elif step["instruction"] == "RUN":
            # The cache already contains the packages of this environment, which saves a minute.
            line = step["value"].replace(" --no-cache-dir", "")
            for path, place in places.items():
                line = re.sub(rf"(?<![\w.]){path}(?=[/ ]|$)", str(place), line)
            line = re.sub(r"(^|(?<= ))python(?= -m venv)", sys.executable, line)
            # Compiling the packages takes longer than installing them.
            environment = {**os.environ, "PIP_NO_COMPILE": "1"}
            subprocess.run(
                ["bash", "-euc", line], cwd=build, env=environment, check=True, timeout=500
            )
    migrate = places["/venv"] / "bin/migrate"
    (job,) = (ROOT / "tests/golden/1.20/retained-files").iterdir()
    done = subprocess.run(
        [migrate, "to-spark", job / "chk-4"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == '{"payments":{"0":24,"1":13}}\n', done.stderr


def _copies(steps: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (source, target folder) of each copy from the build context."""
    found = []
    for step in steps:
        if step["instruction"] == "COPY" and not step["value"].startswith("--from"):
            *sources, target = step["value"].split()
            into_folder = target.endswith("/")
            found += [(one, target if into_folder else str(Path(target).parent)) for one in sources]
    return found


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)
