"""Read the positions of many small checkpoints with the library, as a command.

python -m benchmarks.read_positions FOLDER   (with files <job id>/chk-42/_metadata)

Prints the number of partitions and the sum of their offsets.
"""

from __future__ import annotations

import os
import sys

from decoder import read_checkpoint
from migrate.inputs.flink.extract import extract


def main() -> None:
    partitions = total = 0
    with os.scandir(sys.argv[1]) as jobs:
        for job in jobs:
            if job.is_dir():
                for source in extract(read_checkpoint(f"{job.path}/chk-42")).sources:
                    for position in source.positions:
                        partitions += 1
                        total += position.next_offset or 0
    print(partitions, total)


if __name__ == "__main__":
    main()
