"""Runs one command and prints what the kernel counted of it, as a line of JSON.

    python -I -S launch.py STDOUT COMMAND [ARGUMENT ...]

A process of its own, and a small one: until a new process runs its own program, it counts the
memory of the one that started it as its peak. Its standard output goes to the file STDOUT.
"""

import json
import os
import sys
import time


def main() -> None:
    stdout, *command = sys.argv[1:]
    to_file = (os.POSIX_SPAWN_OPEN, 1, stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    began = time.perf_counter()
    process = os.posix_spawn(command[0], command, os.environ, file_actions=[to_file])
    _, status, used = os.wait4(process, 0)
    counted = {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        # Linux counts KiB.
        "peak_bytes": used.ru_maxrss * 1024,
        "exit_code": os.waitstatus_to_exitcode(status),
    }
    print(json.dumps(counted))


main()
