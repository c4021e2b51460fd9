"""Find a JDK, and run the small Java programs of the tests with it.

The oldest suitable JDK is used, because Flink 1.15 and Spark 4.0 support 17, but not the newest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.jars import cache_dir

OLDEST = 17

# Flink and Kafka access these packages by reflection.
_OPENS = tuple(
    argument
    for package in ("util", "lang", "time", "nio")
    for argument in ("--add-opens", f"java.base/java.{package}=ALL-UNNAMED")
)
# Flink 1.10 calls this package; later JDKs do not export it.
_EXPORTS = ("--add-exports", "java.base/sun.net.util=ALL-UNNAMED")
# The programs run for seconds, so a quick start matters more than peak speed. The JVM therefore
# does not verify the bytecode of released jars, and does no full collections while the metaspace
# grows.
QUICK_START = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-XX:MetaspaceSize=256m",
)
# This property makes slf4j-simple log only warnings and errors. Each set of jars with Flink or
# Kafka contains slf4j-simple.
_QUIET = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",)


class JavaError(RuntimeError):
    """No suitable JDK exists, or a Java program has failed."""


@cache
def find_jdk() -> Path:
    """Return the home directory of the oldest installed JDK of version 17 or newer."""
    candidates = list(Path("/usr/lib/jvm").glob("*"))
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(home))
    if javac := shutil.which("javac"):
        candidates.append(Path(javac).resolve().parent.parent)
    installed = sorted(
        (version, home) for home in candidates if (version := _version(home)) >= OLDEST
    )
    if not installed:
        raise JavaError(
            f"no JDK {OLDEST} or newer: install one (Debian: openjdk-17-jdk-headless) "
            "or point JAVA_HOME at one"
        )
    return installed[0][1]


def java_command(
    main: str, classpath: Sequence[Path], args: Iterable[str] = (), heap: str = "512m"
) -> list[str]:
    """Return the command line that runs a main class."""
    return [
        str(find_jdk() / "bin" / "java"),
        f"-Xmx{heap}",
        *QUICK_START,
        *_QUIET,
        *_OPENS,
        *_EXPORTS,
        "-cp",
        os.pathsep.join(map(str, classpath)),
        main,
        *args,
    ]


def run_java(
    main: str,
    classpath: Sequence[Path],
    args: Iterable[str] = (),
    heap: str = "512m",
    timeout: float = 300,
) -> str:
    """Run a main class and return its stdout; an error shows the last lines of its output."""
    command = java_command(main, classpath, args, heap)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as expired:
        stderr = expired.stderr.decode(errors="replace") if expired.stderr else ""
        raise JavaError(f"{main}: not done after {timeout:.0f} s\n{tail(stderr)}") from None
    if done.returncode:
        raise JavaError(f"{main}: exit code {done.returncode}\n{tail(done.stderr)}")
    return done.stdout


def java_lines(
    main: str, classpath: Sequence[Path], args: Iterable[str], heap: str
) -> Iterator[dict[str, Any]]:
    """Run a main class that prints lines of JSON, and yield each object when it is printed."""
    command = java_command(main, classpath, args, heap)
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        try:
            for line in process.stdout:
                yield json.loads(line)
            if process.wait():
                log.seek(0)
                raise JavaError(f"{main}: exit code {process.returncode}\n{tail(log.read())}")
        finally:
            process.kill()
            process.wait()


def compile_java(sources: Iterable[Path], classpath: Sequence[Path]) -> Path:
    """Compile source files unless their classes are cached, and return the class directory."""
    files = sorted(sources)
    target = cache_dir() / "classes" / _compile_key(files, classpath)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=target.parent))
    command = [
        str(find_jdk() / "bin" / "javac"),
        "-proc:none",
        "-nowarn",
        "-encoding",
        "UTF-8",
        "-cp",
        os.pathsep.join(map(str, classpath)),
        "-d",
        str(staging),
        *map(str, files),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(staging)
        raise JavaError(f"javac: exit code {done.returncode}\n{tail(done.stderr)}")
    try:
        staging.rename(target)
    except OSError:  # another process has compiled the same sources at the same time
        shutil.rmtree(staging)
    return target


def tail(text: str, lines: int = 40) -> str:
    """Return the last lines of a program's output."""
    return "\n".join(text.splitlines()[-lines:])


def _compile_key(files: Sequence[Path], classpath: Sequence[Path]) -> str:
    digest = hashlib.sha256(find_jdk().name.encode())
    for file in files:
        digest.update(b"\0" + file.name.encode() + b"\0" + file.read_bytes())
    for entry in classpath:
        digest.update(b"\0" + entry.name.encode())
    return digest.hexdigest()[:32]


def _version(home: Path) -> int:
    """Return the feature version of a JDK; 0 if the directory is not a JDK (no javac)."""
    release = home / "release"
    if not (home / "bin" / "javac").exists() or not release.is_file():
        return 0
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release.read_text(), re.MULTILINE)
    return int(match.group(1)) if match else 0
