"""Run the program of `make program` on a machine with glibc and zlib, but without Python."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions, version
from pathlib import Path
from statistics import median

import pytest
import yaml

from tests.support import stores
from tests.support.command import Result, migrate
from tests.support.golden_topics import GOLDEN, create_golden_topics, topic_map
from tests.support.jars import cache_dir
from tests.support.kafka import Broker
from tests.support.local_server import QuietHandler, serving
from tests.support.secured import LOCALHOST, Authority

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        (sys.platform, platform.machine()) != ("linux", "x86_64"),
        reason="the program is built only for Linux x86_64",
    ),
]

ROOT = Path(__file__).parents[2]
VERSION = version("flink-offset-migrate")
NAME = f"migrate-{VERSION}-linux-x86_64"
INSTALLED = Path(sys.executable).with_name("migrate")
# The program is built from these files and the packages of this environment.
BUILT_FROM = ("decoder", "migrate", "scripts", "requirements", "pyproject.toml", "README.md")
# The requirements in docs/reference/commands.md: the loader and libraries of glibc, and zlib.
LOADER = Path("/lib64/ld-linux-x86-64.so.2")
NEEDED = ("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "libz.so.1")
LIBRARIES = Path("/lib/x86_64-linux-gnu" if Path("/lib/x86_64-linux-gnu").is_dir() else "/lib64")
JOB = next((GOLDEN / "1.20/retained-files").iterdir())
SAVEPOINT = next((GOLDEN / "2.2/stop").glob("savepoint-*"))


@pytest.fixture(scope="module")
def archive() -> Path:
    """Build the program, unless the cache contains it for the same files and packages."""
    key = hashlib.sha256(sys.version.encode())
    for package in sorted(f"{found.name} {found.version}" for found in distributions()):
        key.update(package.encode())
    for name in BUILT_FROM:
        for file in sorted((ROOT / name, *(ROOT / name).rglob("*"))):
            if file.is_file() and file.suffix != ".pyc":
                key.update(f"{file.relative_to(ROOT)} {file.stat().st_size} ".encode())
                key.update(file.read_bytes())
    cache = cache_dir() / "program"
    built = cache / key.hexdigest()[:16] / f"{NAME}.tar.gz"
    if not built.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_dir()) as stage:
            command = [str(ROOT / "scripts/program"), sys.prefix, stage]
            subprocess.run(command, check=True, timeout=600)
            shutil.rmtree(cache)
            built.parent.mkdir(parents=True)
            Path(stage, built.name).rename(built)
    return built


@pytest.fixture(scope="module")
def program(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program, unpacked on this machine."""
    folder = tmp_path_factory.mktemp("program")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder / NAME / "migrate"


class Machine:
    """A root directory with glibc and zlib, the unpacked program, and a link to it on the PATH."""

    def __init__(self, root: Path, program: Path) -> None:
        self.root = root
        for folder in ("dev", "tmp", "opt", "usr/local/bin"):
            (root / folder).mkdir(parents=True)
        (root / "dev/null").touch()
        for file in (LOADER, *(LIBRARIES / name for name in NEEDED)):
            target = root / file.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        shutil.copytree(program.parent, root / "opt" / NAME, copy_function=os.link)
        (root / "usr/local/bin/migrate").symlink_to(f"/opt/{NAME}/migrate")

    def put(self, directory: Path) -> str:
        """Copy a directory to the machine, and return its path there."""
        shutil.copytree(directory, self.root / "data" / directory.name, dirs_exist_ok=True)
        return f"/data/{directory.name}"

    def run(
        self, *arguments: str, code: int = 0, environment: Mapping[str, str] | None = None
    ) -> Result:
        """Run the program without any other environment variable."""
        command = ["chroot", str(self.root), "/usr/local/bin/migrate", *arguments]
        return _run(command, code, {"PATH": os.environ["PATH"], **(environment or {})})


@pytest.fixture(scope="module")
def machine(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    if os.geteuid() != 0:
        pytest.skip("only root may change the root directory")
    return Machine(tmp_path_factory.mktemp("machine"), program)


def test_program_prints_version_help_and_explanations(machine: Machine) -> None:
    assert machine.run("--version").stdout == f"migrate {VERSION}\n"
    assert machine.run("to-spark", "--help").stdout == migrate("to-spark", "--help").stdout
    explained = machine.run("explain", "not-a-stop").stdout
    assert explained == migrate("explain", "not-a-stop").stdout


def test_program_inspects_checkpoint_like_installed_command(machine: Machine) -> None:
    arguments = ("--format", "json")
    packed = json.loads(machine.run("inspect", machine.put(JOB), *arguments).stdout)
    installed = json.loads(migrate("inspect", JOB, *arguments).stdout)
    for report in (packed, installed):
        report["checkpoint"].pop("pointer")
    assert packed == installed


def test_program_scans_many_checkpoints_in_worker_processes(machine: Machine) -> None:
    """For 100 or more checkpoints, ``scan`` starts worker processes.

    The packed program starts them with --worker, and an installed Python starts them with ``-c
    CODE``.
    """
    for number in range(150):
        shutil.copytree(JOB, machine.root / f"data/many/{number}")
    assert "150 checkpoints read" in machine.run("scan", "/data/many").stderr


def test_program_reads_keyed_state_in_rocksdb_files(machine: Machine) -> None:
    retained = GOLDEN / "state/2.3/rocksdb-few/retained"
    arguments = ("--operator", "fewer", "--state", "map", "--format", "json")
    packed = machine.run("state", f"{machine.put(retained)}/chk-7", *arguments)
    assert packed.stdout == migrate("state", retained / "chk-7", *arguments).stdout
    assert packed.stdout


def test_program_writes_html_page_with_packed_templates(machine: Machine) -> None:
    chk = machine.put(JOB)
    assert "<title>" in machine.run("diff", chk, chk, "--format", "html").stdout


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["verify", "CHK", "spark:/data/query", "--run"], "spark"),
        (["scan", "CHK", "--master", "local[1]"], "spark"),
        (["scan", "CHK", "--output", "/data/tables"], "parquet"),
        (["inspect", "hdfs://namenode/chk-4"], "hdfs"),
    ],
)
def test_error_for_missing_extra_in_program_suggests_wheel(
    machine: Machine, arguments: list[str], extra: str
) -> None:
    """The packed program does not contain Spark, Parquet, or HDFS."""
    chk = machine.put(JOB)
    refused = machine.run(*(chk if word == "CHK" else word for word in arguments), code=2)
    (line,) = refused.stderr.splitlines()
    wheel = f"flink_offset_migrate-{VERSION}-py3-none-any.whl[{extra}]"
    assert f"this program does not have it, so install the wheel: pip install '{wheel}'" in line


@pytest.mark.integration
def test_program_moves_checkpoint_to_query_and_group_and_rolls_back(
    machine: Machine, broker: Broker
) -> None:
    names = create_golden_topics(broker, "payments")
    topic, group = names["payments"], f"program-{uuid.uuid4().hex[:8]}"
    before, planned = {(topic, 0): 20, (topic, 1): 12}, {(topic, 0): 24, (topic, 1): 13}
    broker.commit(group, before)
    chk, kafka = machine.put(JOB), ("-b", broker.bootstrap_servers)
    arguments = (chk, *kafka, *topic_map(names), "--allow-ran-on")
    query = f"/data/query-{topic}"
    moved = machine.run("to-spark", *arguments, "--checkpoint-dir", query)
    assert json.loads(moved.stdout) == {topic: {"0": 24, "1": 13}}
    log = (machine.root / query.lstrip("/") / "sources/0/0").read_text()
    assert json.loads(log.splitlines()[-1]) == {topic: {"0": 24, "1": 13}}

    execute = ("--execute", "--yes")
    back = f"/data/back-{topic}.json"
    machine.run("commit-group", *arguments, "--group", group, "--rollback-file", back, *execute)
    assert broker.committed(group) == planned
    machine.run("rollback", back)
    assert broker.committed(group) == planned
    machine.run("rollback", back, *execute)
    assert broker.committed(group) == before


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["s3", "gs", "abfs"])
def test_program_reads_checkpoint_in_object_store(machine: Machine, kind: str) -> None:
    if kind == "abfs" and stores.azurite() is None:
        pytest.skip("needs npm, to install Azurite")
    before = set(os.environ.items())
    with getattr(stores, kind)() as running:
        store = running.store if isinstance(running, stores.S3) else running
        url = store.put(JOB, JOB.name)
        endpoint = dict(set(os.environ.items()) - before)
        moved = machine.run("to-spark", url, environment={**endpoint, "FSSPEC_GS_TOKEN": "anon"})
    assert moved.stdout == '{"payments":{"0":24,"1":13}}\n'
    assert moved.stderr.startswith("checkpoint 4: ")  # no output of a library


def test_program_signs_authentication_for_amazon_msk(machine: Machine) -> None:
    """Regression: The version metadata of the signer was not bundled, so the signer failed."""
    login = ("-X", "security.protocol=SASL_SSL", "-X", "sasl.mechanism=AWS_MSK_IAM")
    aws = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    refused = machine.run(
        *("to-spark", machine.put(JOB), "-b", "127.0.0.1:9", *login), code=6, environment=aws
    )
    assert "no broker answered at 127.0.0.1:9" in refused.stderr


@pytest.fixture
def trusted_server(machine: Machine, tmp_path: Path) -> Iterator[str]:
    """Run a server with a certificate that only the machine trusts, as on Red Hat systems."""
    authority = Authority()
    identity = authority.identity("localhost", [LOCALHOST])
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_text(identity.chain_pem)
    key.write_text(identity.key_pem())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    bundle = machine.root / "etc/pki/tls/certs/ca-bundle.crt"
    bundle.parent.mkdir(parents=True)
    bundle.write_text(authority.pem)
    with serving(_NotFound, context) as address:
        yield address
    shutil.rmtree(machine.root / "etc")


class _NotFound(QuietHandler):
    """An empty object store."""

    def do_GET(self) -> None:
        self.send_error(404)


def test_program_trusts_system_certificate_authorities(
    machine: Machine, trusted_server: str
) -> None:
    variables = {
        "STORAGE_EMULATOR_HOST": trusted_server,
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        "FSSPEC_GS_TOKEN": "anon",
    }
    refused = machine.run("inspect", "gs://bucket/chk-4", code=3, environment=variables)
    assert "gs://bucket/chk-4: no such file or directory" in refused.stderr


@pytest.mark.integration
def test_start_command_of_cut_over_does_not_inherit_library_path_of_program(
    program: Path, broker: Broker, tmp_path: Path
) -> None:
    """The packed program sets LD_LIBRARY_PATH to its own directory while it runs."""
    names = create_golden_topics(broker, "orders", "payments")
    spec = tmp_path / "orders.yaml"
    content = {
        "version": 1,
        "flink": {"savepoint": str(SAVEPOINT)},
        "kafka": {"bootstrap-servers": broker.bootstrap_servers},
        "move": {"topic-map": names},
        "target": {"group": f"program-{uuid.uuid4().hex[:8]}"},
        "start": "env >variables",
        "timeouts": {"first-batch": "1s"},
    }
    spec.write_text(yaml.safe_dump(content))
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/opt/lib"}
    command = [str(program), "cut-over", str(spec), "--execute", "--yes"]
    stopped = _run(command, 5, environment)
    assert "no member joined" in stopped.stderr
    variables = (tmp_path / "variables").read_text()
    assert "LD_LIBRARY_PATH=/opt/lib\n" in variables
    assert str(program.parent) not in variables


def test_program_starts_about_as_fast_as_installed_command(program: Path) -> None:
    for arguments in (["--help"], ["inspect", str(JOB)]):
        pairs = [
            (_cpu_seconds(str(program), *arguments), _cpu_seconds(str(INSTALLED), *arguments))
            for _ in range(6)
        ]
        assert median(packed / installed for packed, installed in pairs[1:]) <= 1.5, pairs


def test_program_contains_licenses_and_no_pyspark(program: Path) -> None:
    names = {folder.name.rpartition("-")[0] for folder in (program.parent / "licenses").iterdir()}
    assert {"confluent-kafka", "s3fs", "gcsfs", "adlfs", "rocksdict", "python"} <= names
    packed = {path.name.partition("-")[0] for path in (program.parent / "_internal").iterdir()}
    assert not packed & {"pyspark", "numba", "numpy", "pandas", "pyarrow", "pytest"}


def _cpu_seconds(*command: str) -> float:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def _run(command: list[str], code: int, environment: Mapping[str, str]) -> Result:
    done = subprocess.run(
        command,
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return Result(done.returncode, done.stdout, done.stderr)
