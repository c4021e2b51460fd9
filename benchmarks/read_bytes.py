"""Read the same files as ``read_positions``, without decoding them, as a command.

python -m benchmarks.read_bytes FOLDER

Prints the number of bytes.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    size = 0
    with os.scandir(sys.argv[1]) as jobs:
        for job in jobs:
            if job.is_dir():
                # Path.open is slower.
                with open(f"{job.path}/chk-42/_metadata", "rb") as file:  # noqa: PTH123
                    size += len(file.read())
    print(size)


if __name__ == "__main__":
    main()
