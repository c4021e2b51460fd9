"""The whole story on one machine: a real Kafka, a real Flink job, `migrate`, a real Spark query.

    make demo

A Flink job reads some of the records in Kafka and is stopped with a savepoint; Kafka goes on
growing; Spark queries read on from what `migrate to-spark` says. At the end every record is
accounted for, by partition. The mission test (tests/integration/test_mission.py) asserts the same.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tests.support.kafka import Broker
from tests.support.spark import Spark
from tests.support.story import MODES, Account, Handover, Mode, go_on, hand_over, migrate

FLINK_VERSION = "2.2"

console = Console(highlight=False)


def say(line: str) -> None:
    """One line of the story; commands stand out."""
    style = "bold cyan" if line.startswith("$ ") else None
    console.print(line, style=style, markup=False, soft_wrap=True)


def main() -> int:
    """Tell the story; 0 where nothing was lost and nothing repeated."""
    with tempfile.TemporaryDirectory(prefix="demo-") as directory:
        workdir = Path(directory)
        console.rule("Kafka and Flink")
        say("Starting them (the first time their jars are fetched, which takes a minute) ...")
        with Broker() as broker:
            handover = hand_over(FLINK_VERSION, broker, workdir, say)

            console.rule("What the savepoint holds")
            migrate("inspect", str(handover.savepoint), say=say)

            console.rule("Spark reads on")
            with Spark() as spark:
                queries = [_query(handover, spark, mode, workdir) for mode in MODES]
    console.rule("Every record, accounted for")
    console.print(_table(handover, queries))
    lost = sum(_lost(accounts) for accounts in queries)
    repeated = sum(_repeated(accounts) for accounts in queries)
    say(f"{len(queries)} Spark queries after one Flink job: lost {lost}, repeated {repeated}")
    return 0 if lost == repeated == 0 else 1


def _query(handover: Handover, spark: Spark, mode: Mode, workdir: Path) -> list[Account]:
    """One Spark query and what came of it; our command is shown once for each way to start."""
    accounts = go_on(handover, spark, mode, workdir, _silent if mode.stateful else say)
    read = sum(one.by_spark for one in accounts)
    say(f"{mode}: {read} records; lost {_lost(accounts)}, repeated {_repeated(accounts)}")
    return accounts


def _silent(line: str) -> None:
    """Say nothing."""


def _lost(accounts: Iterable[Account]) -> int:
    return sum(one.lost for one in accounts)


def _repeated(accounts: Iterable[Account]) -> int:
    return sum(one.repeated for one in accounts)


def _table(handover: Handover, queries: Sequence[Sequence[Account]]) -> Table:
    """A row per partition: who processed what, and what went wrong in all the queries together."""
    table = Table(box=SIMPLE_HEAD, padding=0)
    table.add_column("partition", no_wrap=True)
    table.add_column("at savepoint", no_wrap=True)
    for heading in ("log start", "Flink", "Spark", "Kafka", "lost", "repeated"):
        table.add_column(heading, justify="right", no_wrap=True)
    for of_all_queries in zip(*queries, strict=True):
        one = of_all_queries[0]
        progress, log_start = handover.progress((one.topic, one.partition))
        table.add_row(
            f"{one.topic}-{one.partition}",
            progress.value,
            str(log_start),
            _by_flink(handover, one),
            "/".join(dict.fromkeys(str(account.by_spark) for account in of_all_queries)),
            str(one.in_kafka),
            str(_lost(of_all_queries)),
            str(_repeated(of_all_queries)),
        )
    return table


def _by_flink(handover: Handover, one: Account) -> str:
    """The first and last offset that Flink processed in a partition, and how many."""
    offsets = [
        offset
        for topic, partition, offset, _ in handover.processed
        if (topic, partition) == (one.topic, one.partition)
    ]
    return f"{min(offsets)}..{max(offsets)} = {one.by_flink}" if offsets else "0"


if __name__ == "__main__":
    sys.exit(main())
