"""Make the savepoint: ``python -m tests.golden.stateful.generate``."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

from tests.support.kafka import Broker
from tests.support.stateful_job import event, run_stateful_job

HERE = Path(__file__).parent
VERSION = "2.2"
# The savepoint contains this path.
_NEUTRAL = Path("/flink/checkpoints")


def main() -> None:
    random_ = random.Random(17)
    _NEUTRAL.mkdir(parents=True, exist_ok=True)
    with Broker() as broker, tempfile.TemporaryDirectory(dir=_NEUTRAL) as work:
        broker.create_topic("events", 2)
        for partition in (0, 1):
            broker.produce("events", partition, [event(random_, n) for n in range(500)])
        savepoint, _ = run_stateful_job(
            VERSION, broker.bootstrap_servers, "events", 350, Path(work)
        )
        for old in HERE.glob("savepoint-*"):
            shutil.rmtree(old)
        shutil.copytree(savepoint, HERE / savepoint.name)
        print(HERE / savepoint.name)


if __name__ == "__main__":
    main()
