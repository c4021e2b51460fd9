"""Run a command, and print its resource usage as a line of JSON.

    python -I -S launch.py STDOUT COMMAND [ARGUMENT ...]

The command's standard output goes to the file STDOUT. This program runs in a separate small
process, because Linux includes the memory of the parent process in the peak memory of a new
process.
"""

import json
import os
import sys
import time


def main() -> None:
    stdout, *command = sys.argv[1:]
    to_file = (os.POSIX_SPAWN_OPEN, 1, stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    start = time.perf_counter()
    process = os.posix_spawn(command[0], command, os.environ, file_actions=[to_file])
    _, status, usage = os.wait4(process, 0)
    figures = {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        # Linux counts KiB.
        "peak_bytes": usage.ru_maxrss * 1024,
        "exit_code": os.waitstatus_to_exitcode(status),
    }
    print(json.dumps(figures))


main()
