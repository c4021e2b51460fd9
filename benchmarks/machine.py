"""Describe the machine, and its use by other processes during a measurement."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from pathlib import Path

from benchmarks.checkpoints import CONNECTOR, FLINK
from benchmarks.results import Machine
from tests.support.jdk import find_jdk


class OtherProcesses:
    """A counter of the CPU time of other processes, starting at its construction."""

    def __init__(self) -> None:
        self._uptime, self._busy, self._own = _uptime(), _busy_seconds(), _own_cpu_seconds()

    def cores(self) -> float:
        """Return the average number of cores that other processes have kept busy.

        Other processes are all except this process and the children that it has waited for.
        """
        cpu_seconds = (_busy_seconds() - self._busy) - (_own_cpu_seconds() - self._own)
        return max(0.0, cpu_seconds / (_uptime() - self._uptime))


def describe_machine(others: OtherProcesses) -> Machine:
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
    """Return the largest resident set of a process since it executed its program, in bytes.

    ``ru_maxrss`` would include the memory of the parent process, because Linux keeps that maximum
    when the new process executes its own program.

    Args:
        number: the process id; by default this process.

    Raises:
        ProcessLookupError: the process has ended.
    """
    for line in Path(f"/proc/{number}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {number} has no memory of its own any more")


def current_commit() -> str:
    """Return the abbreviated hash of the commit that is checked out."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    ).stdout.strip()


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _jdk() -> str:
    java = str(find_jdk() / "bin" / "java")
    done = subprocess.run([java, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[1].strip()


def _uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def _busy_seconds() -> float:
    """Return the seconds since boot in which cores were not idle, summed over all cores."""
    user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = (
        int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_cpu_seconds() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
