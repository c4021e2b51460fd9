"""Check the content of the sdist and the wheel, and run the wheel in empty environments."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from tests.support.golden_topics import create_golden_topics, topic_map
from tests.support.kafka import Broker

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
LOCK = ROOT / "requirements/lock.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
MANIFESTS = ROOT / "deploy/kubernetes"
GOLDEN = ROOT / "tests/golden/1.20/retained-files"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build an sdist, and a wheel from it, as `make dist` does."""
    folder = tmp_path_factory.mktemp("dist")
    _uv("build", "--offline", "--no-build-isolation", "--python", sys.executable, "-o", folder)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the bin directory of an environment with only the wheel and its locked packages."""
    return _install(wheel, sys.executable, tmp_path_factory.mktemp("empty"))


def test_wheel_contains_packages_with_type_markers_and_license(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"decoder/py.typed", "migrate/py.typed"} <= names
    scripts, info = sorted({name.split("/")[0] for name in names} - {"decoder", "migrate"})
    assert [name for name in names if name.startswith(f"{scripts}/")] == [
        f"{scripts}/scripts/flink-offset-migrate"
    ]
    assert f"{info}/licenses/LICENSE" in names
    assert {name.split("/")[0] for name in names} == {"decoder", "migrate", info, scripts}


def test_sdist_contains_sources_of_wheel_and_no_tests(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    package = {"decoder", "migrate", "scripts"}
    papers = {"CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml"}
    assert tops == package | papers | {".gitignore", "PKG-INFO"}


def test_wheel_metadata_contains_license_and_extras_and_python_versions(wheel: Path) -> None:
    metadata = _metadata(wheel)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.10"
    classifiers = metadata.get_all("Classifier") or []
    assert "Typing :: Typed" in classifiers
    stores = {"s3", "gs", "abfs", "hdfs"}
    assert stores | {"spark", "parquet", "rocksdb", "fast", "msk", "pkcs12", "all"} == set(
        metadata.get_all("Provides-Extra") or []
    )


def test_changelog_and_manifests_have_current_version(wheel: Path) -> None:
    version = _metadata(wheel)["Version"]
    releases = re.findall(r"^## \[([\d.]+)\] - \d{4}-\d\d-\d\d$", CHANGELOG.read_text(), re.M)
    assert releases[0] == version
    manifests = "".join(file.read_text() for file in MANIFESTS.glob("*.yaml"))
    assert set(re.findall(r"image: flink-offset-migrate:(.*)", manifests)) == {version}


def test_installed_wheel_runs_commands_outside_project_directory(
    installed: Path, wheel: Path
) -> None:
    """The commands are inspect, to-spark, and scan."""
    chk, version = _checkpoint(), _metadata(wheel)["Version"]
    for program in ("migrate", "flink-offset-migrate"):
        assert version in _run(installed / program, "--version").stdout
        assert "to-spark" in _run(installed / program, "--help").stdout
    inspected = json.loads(_run(installed / "migrate", "inspect", chk, "--format", "json").stdout)
    assert inspected["sources"][0]["kind"] == "KafkaSource"
    assert _run(installed / "migrate", "to-spark", chk).stdout == '{"payments":{"0":24,"1":13}}\n'
    assert _run(installed / "migrate", "scan", chk).stdout.splitlines()[1].startswith("yes ")
    imported = _run(
        installed / "python", "-c", "import decoder, migrate; print(decoder.__file__)"
    ).stdout
    assert not imported.startswith(str(ROOT))


@pytest.mark.integration
@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_wheel_moves_checkpoint_on_each_python_version(
    version: str, wheel: Path, broker: Broker, tmp_path: Path
) -> None:
    python = _interpreter(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    migrate = _install(wheel, python, tmp_path / "empty") / "migrate"
    names = create_golden_topics(broker, "payments")
    place: list[str | Path] = [_checkpoint(), "-b", broker.bootstrap_servers, *topic_map(names)]
    query, group = tmp_path / "query", f"wheel-{names['payments']}"
    _run(migrate, "to-spark", *place, "--allow-ran-on", "--checkpoint-dir", query)
    execute: list[str | Path] = ["--rollback-file", tmp_path / "back.json", "--execute", "--yes"]
    _run(migrate, "commit-group", *place, "--allow-ran-on", "--group", group, *execute)
    topic = names["payments"]
    positions = (query / "sources/0/0").read_bytes().splitlines()[-1]
    assert json.loads(positions) == {topic: {"0": 24, "1": 13}}
    assert broker.committed(group) == {(topic, 0): 24, (topic, 1): 13}


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("s3", ["inspect", "s3://bucket/chk-1"]),
        ("gs", ["inspect", "gs://bucket/chk-1"]),
        ("abfs", ["inspect", "abfs://container@account.dfs.core.windows.net/chk-1"]),
        ("hdfs", ["inspect", "hdfs://namenode/chk-1"]),
        ("spark", ["scan", "CHK", "--master", "local[1]"]),
        ("parquet", ["scan", "CHK", "--output", "out"]),
        (
            "msk",
            [
                *("to-spark", "CHK", "-b", "127.0.0.1:9"),
                *("-X", "security.protocol=SASL_SSL", "-X", "sasl.mechanism=AWS_MSK_IAM"),
            ],
        ),
    ],
)
def test_missing_extra_of_wheel_is_reported_with_install_command(
    extra: str, arguments: list[str], installed: Path
) -> None:
    chk = _checkpoint()
    words = [chk if word == "CHK" else word for word in arguments]
    result = _run(installed / "migrate", *words, code=2)
    assert f"pip install '.[{extra}]'" in " ".join(result.stderr.split())


def test_conflicting_package_named_migrate_is_reported_on_one_line(
    wheel: Path, tmp_path: Path
) -> None:
    """Regression: sqlalchemy-migrate overwrote ``migrate/__init__.py`` and caused a traceback."""
    _run(UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    programs = tmp_path / "venv" / "bin"
    _run(UV, "pip", "install", "--quiet", "--no-deps", "--python", programs / "python", wheel)
    (package,) = (tmp_path / "venv").glob("lib/python*/site-packages/migrate")
    (package / "__init__.py").unlink()  # a link to a file in uv's cache
    (package / "__init__.py").write_text("from migrate.versioning import api\n")
    refused = _run(programs / "flink-offset-migrate", "--version", code=1)
    (line,) = refused.stderr.splitlines()
    assert "another package named 'migrate' is installed here" in line
    assert "pipx install" in line


def test_uvx_runs_wheel(wheel: Path) -> None:
    uvx: list[str | Path] = [UV, "tool", "run", "--python", sys.executable, "--constraints", LOCK]
    assert "to-spark" in _run(*uvx, "--from", wheel, "migrate", "--help").stdout


def _interpreter(version: str) -> str | None:
    """Return the path of this Python version, on the PATH or from pyenv, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    of_pyenv = map(str, pyenv.glob(f"versions/{version}.*/bin/python"))
    for candidate in (f"python{version}", *of_pyenv):
        # A pyenv shim can exist although its Python is not installed.
        command = [candidate, "-c", "import sys; print(sys.executable)"]
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).strip()
    return None


def _install(wheel: Path, python: str, home: Path) -> Path:
    """Install the wheel and its locked packages, and return the bin directory."""
    _uv("venv", "--quiet", "--python", python, home)
    _uv("pip", "install", "--quiet", "--python", home, "--constraint", LOCK, wheel)
    return home / "bin"


def _checkpoint() -> Path:
    (job,) = GOLDEN.iterdir()
    return job / "chk-4"


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def _uv(*arguments: str | Path) -> None:
    _run(UV, *arguments, cwd=ROOT)


def _run(
    *command: str | Path, code: int = 0, cwd: Path = Path(os.sep)
) -> subprocess.CompletedProcess[str]:
    """Run a program without access to this directory and this environment."""
    environment: Mapping[str, str] = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done
