"""Fetch the jars of the real systems that the tests run.

`jars.toml` names the root artifacts of each set. `jars.lock` lists all jars of each set with their
sha256. Tests use only `jars.lock`: they fetch each jar by its coordinates, without its POM, and
check its sha256.

    python -m tests.support.jars lock [SET…]   # resolve jars.toml into jars.lock again
    python -m tests.support.jars fetch [SET…]  # fetch these sets, or all of them
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jgo.maven import Dependency, MavenContext
from jgo.util.toml import tomllib

HERE = Path(__file__).parent
ROOTS = HERE / "jars.toml"
LOCK = HERE / "jars.lock"

# The number of parallel downloads. It hides the registry's latency; more would put load on it.
_DOWNLOADS = 8
_TIMEOUT_SECONDS = 120


class JarError(RuntimeError):
    """A jar cannot be fetched, or does not match its sha256."""


def cache_dir() -> Path:
    """Return the cache directory for everything that the tests fetch or compile."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "flink-offset-migrate"


@dataclass(frozen=True, slots=True, order=True)
class Jar:
    """One locked artifact, with its Maven coordinates and the sha256 of its bytes."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def coordinates(self) -> str:
        parts = (self.group, self.artifact, self.version, self.classifier)
        return ":".join(part for part in parts if part)

    @property
    def path(self) -> Path:
        """Return the path of the jar in the cache."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        name = f"{self.artifact}-{self.version}{suffix}.jar"
        return cache_dir() / "jars" / self.group.replace(".", "/") / self.artifact / name

    def line(self) -> str:
        return f"{self.coordinates} {self.sha256}"

    @staticmethod
    def parse(line: str) -> Jar:
        coordinates, sha256 = line.split()
        group, artifact, version, *classifier = coordinates.split(":")
        return Jar(group, artifact, version, "".join(classifier), sha256)


@cache
def classpath(set_name: str) -> list[Path]:
    """Return the verified jars of a set, in the order of jars.lock."""
    locked = read_lock()
    if set_name not in locked:
        raise JarError(f"no jar set {set_name!r} in {LOCK.name}; it has {', '.join(locked)}")
    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        return list(pool.map(fetch, locked[set_name]))


def read_lock() -> dict[str, list[Jar]]:
    """Return the jars of each set, by the name of the set."""
    sets: dict[str, list[Jar]] = {}
    for line in LOCK.read_text(encoding="ascii").splitlines():
        if line.startswith("["):
            sets[line.strip("[]")] = jars = []
        elif line and not line.startswith("#"):
            jars.append(Jar.parse(line))
    return sets


def fetch(jar: Jar) -> Path:
    """Return the jar's file in the cache; download it if it is missing or does not match."""
    if jar.path.exists() and _sha256(jar.path) == jar.sha256:
        return jar.path
    jar.path.parent.mkdir(parents=True, exist_ok=True)
    # Download into a different directory and rename, so that another run sees no incomplete jar.
    with tempfile.TemporaryDirectory(dir=jar.path.parent) as staging:
        downloaded = _download(jar.coordinates, Path(staging))
        digest = _sha256(downloaded)
        if digest != jar.sha256:
            raise JarError(f"{jar.coordinates}: sha256 is {digest}, locked is {jar.sha256}")
        downloaded.replace(jar.path)
    return jar.path


def _download(coordinates: str, into: Path) -> Path:
    group, artifact, version, *classifier = coordinates.split(":")
    context = MavenContext(repo_cache=into, timeout=_TIMEOUT_SECONDS)
    component = context.project(group, artifact).at_version(version)
    try:
        return component.artifact("".join(classifier)).resolve()
    except (RuntimeError, OSError) as error:
        raise JarError(f"{coordinates}: cannot be fetched: {error}") from error


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _resolve(roots: Iterable[str], exclude: Iterable[str], context: MavenContext) -> list[Jar]:
    inputs, transitive = context.resolver.resolve([context.create_dependency(r) for r in roots])
    locked: set[Jar] = set()
    for dependency in (*inputs, *transitive):
        name = f"{dependency.groupId}:{dependency.artifactId}"
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude):
            locked.add(_locked(dependency))
    return sorted(locked)


def _locked(dependency: Dependency) -> Jar:
    sha256 = _sha256(dependency.artifact.resolve())
    return Jar(
        dependency.groupId,
        dependency.artifactId,
        dependency.version,
        dependency.classifier or "",
        sha256,
    )


def lock(names: Iterable[str]) -> None:
    """Resolve sets of jars.toml, and write jars.lock; other sets in jars.lock stay unchanged.

    Args:
        names: the names of the sets; none for all sets.
    """
    with ROOTS.open("rb") as file:
        sets: Mapping[str, Mapping[str, list[str]]] = tomllib.load(file)
    selected = set(names) or set(sets)
    locked = read_lock()
    repository = Path(tempfile.mkdtemp(prefix="jars-lock-"))
    try:
        context = MavenContext(repo_cache=repository, timeout=_TIMEOUT_SECONDS)
        lines = ["# Made from jars.toml by `python -m tests.support.jars lock`."]
        for name, spec in sets.items():
            lines += ["", f"[{name}]"]
            jars = locked.get(name)
            if jars is None or name in selected:
                jars = _resolve(spec["roots"], spec.get("exclude", []), context)
            lines += [jar.line() for jar in jars]
    finally:
        shutil.rmtree(repository)
    LOCK.write_text("\n".join(lines) + "\n", encoding="ascii")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.jars", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (
        ("lock", "resolve jars.toml into jars.lock"),
        ("fetch", "fetch jar sets into the cache"),
    ):
        commands.add_parser(name, help=what).add_argument("sets", nargs="*", metavar="SET")
    arguments = parser.parse_args()
    if arguments.command == "lock":
        lock(arguments.sets)
    else:
        for name in arguments.sets or read_lock():
            print(f"{name}: {len(classpath(name))} jars")


if __name__ == "__main__":
    main()
