"""List newer releases of the dependencies: `make current`.

Java: for the artifacts in `jars.toml`, the newest patch release of each minor version in use, and
of each newer minor version. Python: the packages in `pyproject.toml` that `pip list --outdated`
names.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from jgo.maven import MavenContext
from jgo.util.toml import tomllib

from tests.support.jars import ROOTS

_PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
_TIMEOUT_SECONDS = 60
# A release such as 4.0.1, or a connector's such as 4.0.1-2.0. Previews do not match.
_RELEASE = re.compile(r"(\d+(?:\.\d+)+)(-\d+\.\d+)?")
_NAME = re.compile(r"[A-Za-z0-9._-]+")

Release = tuple[int, ...]


def newer(used: Iterable[str], available: Iterable[str]) -> list[str]:
    """Return the releases to update to, ascending, with at most the newest of each line.

    The patch releases of a minor version form a line. A connector has lines for each version of
    Flink. The newest release of a line in use is returned if it is newer than the used releases of
    the line. The newest release of a different line is returned if it is newer than all releases in
    use.
    """
    used_lines = _newest_of_lines(used)
    latest = max(used_lines.values())
    return [
        text
        for line, (release, text) in sorted(_newest_of_lines(available).items())
        if (line in used_lines and release > used_lines[line][0])
        or (line not in used_lines and release > latest[0])
    ]


def _newest_of_lines(versions: Iterable[str]) -> dict[tuple[Release, str], tuple[Release, str]]:
    """Return the newest release of each line, as numbers and as text."""
    newest: dict[tuple[Release, str], tuple[Release, str]] = {}
    for text in versions:
        if match := _RELEASE.fullmatch(text):
            release = tuple(map(int, match[1].split(".")))
            line = release[:2], match[2] or ""
            newest[line] = max(newest.get(line, ((), "")), (release, text))
    return newest


def _artifacts() -> dict[tuple[str, str], set[str]]:
    """Return the versions in ``jars.toml`` by (group, artifact)."""
    with ROOTS.open("rb") as file:
        sets: Mapping[str, Mapping[str, list[str]]] = tomllib.load(file)
    versions = defaultdict[tuple[str, str], set[str]](set)
    for root in chain.from_iterable(of_set["roots"] for of_set in sets.values()):
        group, artifact, version = root.rstrip("!").split(":")[:3]
        versions[group, artifact].add(version)
    return versions


def _java() -> Iterator[str]:
    """Yield a line for each group of artifacts with the same newer releases."""
    groups = defaultdict[tuple[str, str], list[str]](list)
    with tempfile.TemporaryDirectory() as repository:
        context = MavenContext(repo_cache=Path(repository), timeout=_TIMEOUT_SECONDS)
        for (group, artifact), used in sorted(_artifacts().items()):
            project = context.project(group, artifact)
            project.update()  # otherwise only the local repository is searched
            if missing := newer(used, project.metadata.versions):
                groups[group, ", ".join(missing)].append(artifact)
    for (group, missing_releases), artifacts in groups.items():
        yield f"{group}: {missing_releases} of {', '.join(artifacts)}"


def _python() -> Iterator[str]:
    """Yield a line for each package in ``pyproject.toml`` that is outdated."""
    with _PYPROJECT.open("rb") as file:
        named = set(_named(tomllib.load(file)))
    outdated = json.loads(
        subprocess.run(
            [sys.executable, "-m", "pip", "list", "--outdated", "--format", "json"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )
    for package in outdated:
        if package["name"].lower().replace("_", "-") in named:
            name, newest = package["name"], package["latest_version"]
            yield f"{name}: {newest}; {package['version']} is installed"


def _named(pyproject: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    project = pyproject["project"]
    groups = [project["dependencies"]]
    for several in (project["optional-dependencies"], pyproject["dependency-groups"]):
        assert isinstance(several, dict)
        groups += several.values()
    for group in groups:
        assert isinstance(group, list)
        for requirement in group:
            match = _NAME.match(requirement)
            assert match is not None, requirement
            yield match[0].lower()


def main() -> None:
    for line in chain(_java(), _python()):
        print(line)


if __name__ == "__main__":
    main()
