"""Make two savepoints of one job, and the records: ``python -m tests.golden.rehearsed.generate``.

``events`` has a file for each partition of the topic, with a record in each line.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

from tests.support.kafka import Broker
from tests.support.stateful_job import order, rehearsed_job

HERE = Path(__file__).parent
VERSION = "2.2"
TOPIC = "events"
# The savepoints contain this path.
_NEUTRAL = Path("/flink/checkpoints")


def main() -> None:
    random_ = random.Random(17)
    _NEUTRAL.mkdir(parents=True, exist_ok=True)
    for old in (*HERE.glob("savepoint-*"), HERE / TOPIC):
        shutil.rmtree(old, ignore_errors=True)
    (HERE / TOPIC).mkdir()
    with Broker() as broker, tempfile.TemporaryDirectory(dir=_NEUTRAL) as work:
        broker.create_topic(TOPIC, 2)
        for partition in (0, 1):
            lines = [order(random_, number) for number in range(400)]
            broker.produce(TOPIC, partition, lines)
            (HERE / TOPIC / str(partition)).write_text("\n".join(lines) + "\n")
        servers = broker.bootstrap_servers
        with rehearsed_job(VERSION, servers, TOPIC, (150, 120), "savepoint", Path(work)) as job:
            for savepoint in (job.earlier, job.later):
                shutil.copytree(savepoint, HERE / savepoint.name)
                print(HERE / savepoint.name)


if __name__ == "__main__":
    main()
