"""The whole story on one machine: a real Kafka, Flink and Spark, and `migrate` between them.

    make demo

Orders keep coming into Kafka all the time. A Flink SQL job takes them; `examples/cut-over there`
moves it to a Spark query, `examples/cut-over back` moves it back. At the end every order is
accounted for, by partition: it must have been taken exactly once, by either.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from examples.local import LocalStack, Order

# How long each of them has the orders to itself.
_SECONDS = 3
_PATIENCE_SECONDS = 120
# It takes a checkpoint every second.
_SETTLED_SECONDS = 4

console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Account:
    """One partition's orders, counted."""

    partition: int
    in_kafka: int
    by_flink: int
    by_spark: int
    by_flink_again: int
    lost: int
    repeated: int


def main() -> int:
    """Tell the story; 0 where nothing was lost and nothing repeated."""
    with tempfile.TemporaryDirectory(prefix="demo-") as directory:
        console.rule("Kafka and Flink")
        say("Starting them (the first time their jars are fetched, which takes a minute) ...")
        with LocalStack(Path(directory)) as stack:
            accounts = story(stack, say)
    console.rule("Every order, accounted for")
    console.print(_table(accounts))
    lost = sum(one.lost for one in accounts)
    repeated = sum(one.repeated for one in accounts)
    say(f"from Flink to Spark and back, while orders kept coming: lost {lost}, repeated {repeated}")
    return 0 if lost == repeated == 0 else 1


def story(stack: LocalStack, say: Callable[[str], None]) -> list[Account]:
    """From Flink to Spark and back; every partition's orders."""
    stack.start_orders()
    stack.submit("orders/tables.sql", "orders/flink.sql")
    _await(stack.by_flink, "Flink's first orders", stack.flink.log)
    say("A Flink job writes orders from Kafka into files; more keep coming.")
    time.sleep(_SECONDS)
    stack.add_partition()
    say("The topic has got one more partition, and the job is to move.")

    console.rule("examples/cut-over there")
    stack.cut_over("there", say)
    by_flink = stack.by_flink()
    _await(stack.by_spark, "Spark's first orders", stack.spark_log)
    time.sleep(_SECONDS)

    console.rule("examples/cut-over back")
    stack.cut_over("back", say)
    by_spark = stack.by_spark()
    _await(lambda: stack.by_flink()[len(by_flink) :], "Flink's next orders", stack.flink.log)
    stack.stop_orders()
    again = Counter(_settled(stack.by_flink)) - Counter(by_flink)
    return account(stack.in_kafka(), by_flink, by_spark, list(again.elements()))


def account(
    truth: Sequence[Order],
    by_flink: Sequence[Order],
    by_spark: Sequence[Order],
    by_flink_again: Sequence[Order],
) -> list[Account]:
    """What was taken against what is in Kafka, by partition.

    An order counts with all of its fields: one that no Kafka consumer finds there is as wrong as
    one that was taken twice.
    """
    there = Counter(truth)
    taken = Counter([*by_flink, *by_spark, *by_flink_again])
    counts = [
        Counter(order[0] for order in orders)
        for orders in (
            truth,
            by_flink,
            by_spark,
            by_flink_again,
            (there - taken).elements(),
            (taken - there).elements(),
        )
    ]
    partitions = sorted(set().union(*counts))
    return [Account(partition, *(of[partition] for of in counts)) for partition in partitions]


def say(line: str) -> None:
    """One line of the story; the script's steps stand out."""
    style = "bold cyan" if line.startswith("==> ") else None
    console.print(line, style=style, markup=False, soft_wrap=True)


def _await(done: Callable[[], object], what: str, log: Callable[[], str]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not after {_PATIENCE_SECONDS} s\n{log()}")
        time.sleep(0.2)


def _settled(orders: Callable[[], list[Order]]) -> list[Order]:
    """The orders once several of Flink's checkpoints have brought no more."""
    before: list[Order] = []
    while len(now := orders()) > len(before):
        before = now
        time.sleep(_SETTLED_SECONDS)
    return now


def _table(accounts: Sequence[Account]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0)
    for heading in ("partition", "Kafka", "Flink", "Spark", "Flink again", "lost", "repeated"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in accounts:
        numbers = (
            one.partition,
            one.in_kafka,
            one.by_flink,
            one.by_spark,
            one.by_flink_again,
            one.lost,
            one.repeated,
        )
        table.add_row(*map(str, numbers))
    return table


if __name__ == "__main__":
    sys.exit(main())
