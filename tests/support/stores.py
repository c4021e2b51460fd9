"""Run object stores and file systems for checkpoints, as real servers on 127.0.0.1.

`s3`, `gs`, `abfs` and `webhdfs` run a server and yield a ``Store``, or an ``S3`` that has one.
Environment variables and fsspec's settings configure the clients, as on a user's machine.
"""

from __future__ import annotations

import base64
import getpass
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.jars import cache_dir, classpath
from tests.support.jdk import compile_java, java_command
from tests.support.kafka import free_ports

_START_SECONDS = 60
# The newest Azurite that runs on Node 20.
_AZURITE = Path(__file__).parent / "azurite"
# gcsfs queries the kind of a bucket over gRPC, but the emulator does not support this.
_WITHOUT_GRPC = {"GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}


@dataclass(frozen=True, slots=True)
class Store:
    """A running store, with the URL of an empty root directory, and a file system for writes."""

    root: str
    system: Any

    def put(self, directory: Path, name: str) -> str:
        """Copy a directory to a path under the root, and return the URL of the copy."""
        url = f"{self.root}/{name}"
        for file in sorted(path for path in directory.rglob("*") if path.is_file()):
            target = f"{url}/{file.relative_to(directory)}"
            self.system.makedirs(target.rpartition("/")[0], exist_ok=True)
            self.system.pipe_file(target, file.read_bytes())
        return url


@dataclass(frozen=True, slots=True)
class S3:
    """moto's S3 server, with a log of its requests."""

    store: Store
    endpoint: str
    log: Path

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests since the log was last cleared."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def clear_log(self) -> None:
        self.log.write_text("")

    def deny_everybody(self) -> None:
        """Refuse all requests from now on, with an authentication error."""
        self._reset_auth("0")

    def admit_everybody(self) -> None:
        self._reset_auth("inf")

    def _reset_auth(self, requests: str) -> None:
        url = f"{self.endpoint}/moto-api/reset-auth"
        headers = {"Content-Type": "text/plain"}
        request = urllib.request.Request(url, requests.encode(), headers, method="POST")
        urllib.request.urlopen(request, timeout=10).close()


@contextmanager
def with_settings(settings: MutableMapping[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Change settings inside a ``with`` block, and restore them at its end."""
    before = dict(settings)
    settings.update(values)
    try:
        yield
    finally:
        for name in values:
            if name in before:
                settings[name] = before[name]
            else:
                del settings[name]


@contextmanager
def s3() -> Iterator[S3]:
    """Run an S3 server with one bucket."""
    from s3fs import S3FileSystem

    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log"
        log.touch()
        command = [sys.executable, "-m", "tests.support.s3_server", str(log)]
        with _process(command, Path(directory)) as port:
            endpoint = f"http://127.0.0.1:{port}"
            environment = {
                "AWS_ENDPOINT_URL": endpoint,
                "AWS_ACCESS_KEY_ID": "testing",
                "AWS_SECRET_ACCESS_KEY": "testing",
                "AWS_DEFAULT_REGION": "us-east-1",
            }
            with with_settings(os.environ, environment):
                system = S3FileSystem(use_listings_cache=False, skip_instance_cache=True)
                system.mkdir("checkpoints")
                yield S3(Store("s3://checkpoints", system), endpoint, log)


@contextmanager
def gs() -> Iterator[Store]:
    """Run gcp-storage-emulator with one bucket."""
    import fsspec.config

    (port,) = free_ports(1)
    program = Path(sys.executable).with_name("gcp-storage-emulator")
    command = [str(program), "start", "--host=127.0.0.1", f"--port={port}", "--in-memory"]
    endpoint = f"http://127.0.0.1:{port}"
    with (
        tempfile.TemporaryDirectory() as directory,
        _process([*command, "--default-bucket=checkpoints"], Path(directory), endpoint),
        with_settings(os.environ, {"STORAGE_EMULATOR_HOST": endpoint, **_WITHOUT_GRPC}),
        with_settings(fsspec.config.conf, {"gs": {"token": "anon"}}),
    ):
        from gcsfs import GCSFileSystem

        system = GCSFileSystem(token="anon", use_listings_cache=False, skip_instance_cache=True)
        yield Store("gs://checkpoints", system)


@cache
def azurite() -> Path | None:
    """Return the path of Azurite, Microsoft's emulator, or None without npm.

    npm installs it into the cache once for each package-lock.json, with its hashes.
    """
    npm = shutil.which("npm")
    if npm is None:
        return None
    lock = (_AZURITE / "package-lock.json").read_bytes()
    home = cache_dir() / "azurite" / hashlib.sha256(lock).hexdigest()[:16]
    if not home.is_dir():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as staging:
            stage = shutil.copytree(_AZURITE, Path(staging, "stage"))
            command = [npm, "ci", "--no-audit", "--no-fund"]
            installed = subprocess.run(command, cwd=stage, capture_output=True, text=True)
            if installed.returncode != 0:
                raise RuntimeError(f"Azurite cannot be installed\n{installed.stderr}")
            stage.rename(home)
    return home / "node_modules/.bin/azurite-blob"


@contextmanager
def abfs() -> Iterator[Store]:
    """Run Azurite with one container."""
    from adlfs import AzureBlobFileSystem

    program = azurite()
    assert program is not None
    (port,) = free_ports(1)
    account, key = "testing", base64.b64encode(secrets.token_bytes(32)).decode()
    endpoint = f"http://127.0.0.1:{port}"
    connection = (
        f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={key};"
        f"BlobEndpoint={endpoint}/{account};"
    )
    command = [str(program), "--blobHost=127.0.0.1", f"--blobPort={port}"]
    command += ["--skipApiVersionCheck", "--disableTelemetry"]
    with (
        tempfile.TemporaryDirectory() as directory,
        _process(
            [*command, f"--location={directory}"],
            Path(directory),
            endpoint,
            {"AZURITE_ACCOUNTS": f"{account}:{key}"},
        ),
        with_settings(os.environ, {"AZURE_STORAGE_CONNECTION_STRING": connection}),
    ):
        system = AzureBlobFileSystem(
            connection_string=connection, use_listings_cache=False, skip_instance_cache=True
        )
        system.mkdir("checkpoints")
        yield Store("abfs://checkpoints", system)


@contextmanager
def webhdfs() -> Iterator[Store]:
    """Run a name node and a data node."""
    from fsspec.implementations.webhdfs import WebHDFS

    jars = classpath("hadoop-3.4.1")
    classes = compile_java([Path(__file__).parent / "java" / "MiniHdfs.java"], jars)
    with tempfile.TemporaryDirectory() as directory:
        command = java_command("MiniHdfs", [classes, *jars], [directory], heap="256m")
        with _process(command, Path(directory)) as port:
            user = getpass.getuser()  # the user who started HDFS has all permissions
            system = WebHDFS("127.0.0.1", port, user=user, skip_instance_cache=True)
            yield Store(f"webhdfs://{user}@127.0.0.1:{port}/flink", system)


@contextmanager
def _process(
    command: list[str],
    directory: Path,
    endpoint: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """Run a server, and yield the port that it prints.

    With an ``endpoint``, wait until the server answers at it, and yield 0.
    """
    errors = directory / "stderr"
    with errors.open("w") as stderr:
        server = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if endpoint is None else stderr,
            stderr=stderr,
            text=True,
            env={**os.environ, **(environment or {})},
        )
    try:
        port = 0
        if endpoint is None:
            assert server.stdout is not None
            line = server.stdout.readline().strip()
            if not line.isdecimal():
                raise RuntimeError(f"{command[0]} did not start\n{errors.read_text()}")
            port = int(line)
        else:
            _wait_for(endpoint, server, errors)
        yield port
    finally:
        server.terminate()
        server.wait(30)
        for pipe in (server.stdin, server.stdout):
            if pipe is not None:
                pipe.close()


def _wait_for(endpoint: str, server: subprocess.Popen[str], errors: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(endpoint, timeout=5).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"{endpoint} does not answer\n{errors.read_text()}")
