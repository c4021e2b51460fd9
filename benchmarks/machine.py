"""Where it is measured, and how much of the machine others use meanwhile."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from pathlib import Path

from benchmarks.checkpoints import CONNECTOR, FLINK
from benchmarks.results import Machine
from tests.support.jdk import find_jdk


class Others:
    """How many cores others kept busy, from its making until asked."""

    def __init__(self) -> None:
        self._uptime, self._busy, self._own = _uptime(), _busy(), _own()

    def cores(self) -> float:
        """On average, this process and those it started and waited for left out."""
        theirs = (_busy() - self._busy) - (_own() - self._own)
        return max(0.0, theirs / (_uptime() - self._uptime))


def machine(others: Others) -> Machine:
    release, _, _ = platform.release().partition("-")
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 1,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {release}, {platform.machine()}",
        "python": platform.python_version(),
        "jdk": _jdk(),
        "flink": FLINK,
        "connector": CONNECTOR,
        "others_cores": others.cores(),
    }


def peak_of_process(number: int | str = "self") -> int:
    """Return the largest resident set of a process since it runs its program, in bytes.

    ``ru_maxrss`` would also count the process that started it: Linux keeps that maximum when the
    new process begins its own program.

    Args:
        number: the process id; by default this process.
    """
    for line in Path(f"/proc/{number}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {number} has no memory of its own any more")


def commit_here() -> str:
    """Return the commit of this repository that is checked out, as git shortens it."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    ).stdout.strip()


def _cpu() -> str:
    for text in Path("/proc/cpuinfo").read_text().splitlines():
        if text.startswith("model name"):
            return text.partition(":")[2].strip()
    return platform.machine()


def _jdk() -> str:
    java = str(find_jdk() / "bin" / "java")
    done = subprocess.run([java, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[1].strip()


def _uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def _busy() -> float:
    """Seconds that all cores together spent on anything but waiting."""
    user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = (
        int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)
