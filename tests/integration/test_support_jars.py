"""Check that tests use only locked jars, and that the lock contains all roots of jars.toml."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from jgo.util.toml import tomllib

from examples.local import JARS as DEMO
from examples.playground.__main__ import JARS as PLAYGROUND
from tests.support import jars

pytestmark = pytest.mark.integration


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def small_jar() -> jars.Jar:
    return next(j for j in jars.read_lock()["kafka-4.1.1"] if j.artifact == "slf4j-simple")


def test_jar_lock_contains_every_root_dependency() -> None:
    locked = jars.read_lock()
    with jars.ROOTS.open("rb") as file:
        sets = tomllib.load(file)
    assert set(locked) == set(sets)
    for name, spec in sets.items():
        assert {root.rstrip("!") for root in spec["roots"]} <= {j.coordinates for j in locked[name]}


@pytest.mark.parametrize(("target", "needed"), [("demo", DEMO), ("playground", PLAYGROUND)])
def test_make_targets_fetch_jars_of_their_examples(target: str, needed: Sequence[str]) -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    (sets,) = re.findall(rf"^{target}: JAR_SETS := (.*)$", makefile, re.MULTILINE)
    assert sets.split() == list(needed)


def test_damaged_jar_is_redownloaded(cache: Path) -> None:
    jar = small_jar()
    fetched = jars.fetch(jar)
    content = fetched.read_bytes()
    fetched.write_bytes(content[:-1])
    assert jars.fetch(jar).read_bytes() == content
    assert cache in fetched.parents


def test_jar_with_wrong_digest_is_refused(cache: Path) -> None:
    wanted = replace(small_jar(), sha256="0" * 64)
    with pytest.raises(jars.JarError, match=r"slf4j-simple:1\.7\.36: sha256 is .*, locked is 0000"):
        jars.fetch(wanted)
    assert not wanted.path.exists()


def test_unpublished_jar_is_refused(cache: Path) -> None:
    with pytest.raises(jars.JarError, match=r"slf4j-simple:0\.0\.0: cannot be fetched"):
        jars.fetch(replace(small_jar(), version="0.0.0"))
