"""The whole story on one machine: a real Kafka, Flink and Spark, and `migrate` between them.

    make demo

Orders keep coming into Kafka all the time. A Flink SQL job takes them; `examples/cut-over there`
moves it to a Spark query, `examples/cut-over back` moves it back. At the end every order is
accounted for, by partition: it must have been taken exactly once, by either.

A second job counts each customer's orders. It stops with a savepoint, and a Spark query goes on
with its counts: at the end each customer's must be what Kafka says.

Then that job goes back to Flink, from where Spark has come to, with the state that it had. What
Spark has counted is not in that state: `migrate to-flink` says how much that is, and refuses
without a flag. At the end every order must have been counted once, by either.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from examples.local import JARS, LocalStack, Order, StackError, Totals
from examples.progress import console, fetch_jars, step, wait_for
from migrate.cli.exit_codes import Exit

# Measured: all of its jars.
MEGABYTES = 260
_TIME = "some minutes"
# A warning is known by its last characters.
_WARNING_ENDS = 80
# How long each of them has the orders to itself.
_SECONDS = 3
_PATIENCE_SECONDS = 120
# It takes a checkpoint every second.
_SETTLED_SECONDS = 4
# Of each partition, once Flink is to have the job back.
_MORE = 50
_NOT_IN_THE_STATE = re.compile(r"up to (\d+) records are not in the state")


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


Count = tuple[int, int]  # orders, cents


@dataclass(frozen=True, slots=True)
class Total:
    """One customer's orders, counted: (orders, cents)."""

    customer: str
    in_kafka: tuple[int, int]
    by_flink: tuple[int, int] | None
    in_the_end: tuple[int, int] | None

    @property
    def verdict(self) -> str:
        if self.in_the_end is None:
            return "missing"
        return "right" if self.in_the_end == self.in_kafka else "wrong"


@dataclass(frozen=True, slots=True)
class Shared:
    """One customer's orders, (orders, cents): by Flink, and by Spark in between."""

    customer: str
    in_kafka: tuple[int, int]
    by_flink: tuple[int, int]
    by_spark: tuple[int, int]

    @property
    def verdict(self) -> str:
        counted = [flink + spark for flink, spark in zip(self.by_flink, self.by_spark, strict=True)]
        return "right" if counted == [*self.in_kafka] else "wrong"


@dataclass(frozen=True, slots=True)
class WayBack:
    """The job that counts, back in Flink; ``not_in_its_state`` is what `migrate` said of it."""

    shared: list[Shared]
    not_in_its_state: int

    @property
    def is_right(self) -> bool:
        in_between = sum(one.by_spark[0] for one in self.shared)
        return in_between == self.not_in_its_state and all(
            one.verdict == "right" for one in self.shared
        )


def main() -> int:
    """Tell the story; 0 where nothing was lost and nothing repeated."""
    console.print(
        f"A real Kafka, Flink, S3 and Spark run on this machine for {_TIME}; nothing of it stays.",
        soft_wrap=True,
    )
    fetch_jars(JARS, MEGABYTES)
    console.rule("Kafka and Flink")
    with tempfile.TemporaryDirectory(prefix="demo-") as directory:
        stack = LocalStack(Path(directory))
        with step("Starting Kafka, an S3 and a Flink cluster"):
            stack.start()
        with closing(stack):
            accounts, totals, back = story(stack)
    console.rule("Every order, accounted for")
    console.print(_table(accounts))
    lost = sum(one.lost for one in accounts)
    repeated = sum(one.repeated for one in accounts)
    console.print(
        f"From Flink to Spark and back, while orders kept coming: lost {lost}, repeated {repeated}."
    )
    console.rule("Every customer's total")
    console.print(_totals_table(totals))
    verdicts = Counter(one.verdict for one in totals)
    told = ", ".join(f"{verdicts[word]} {word}" for word in ("right", "wrong", "missing"))
    console.print(f"The state of Flink's job went on in Spark: {told}.")
    console.rule("Every customer's orders, by who has counted them")
    console.print(_shared_table(back.shared))
    console.print(
        "Flink's job went on from where Spark had come to. Its state lacks "
        f"{back.not_in_its_state} orders, migrate said; Spark has counted them: "
        + ("right." if back.is_right else "wrong."),
        soft_wrap=True,
    )
    moved = lost == repeated == 0 and verdicts["right"] == len(totals)
    return 0 if moved and back.is_right else 1


def story(stack: LocalStack) -> tuple[list[Account], list[Total], WayBack]:
    """From Flink to Spark and back; every partition's orders, every customer's total, and the way
    back of the job that has state."""
    stack.start_orders()
    with step("Orders come into Kafka. Flink's SQL client submits the jobs that read them"):
        stack.submit("orders/tables.sql", "orders/flink.sql", "totals/flink.sql")
    _await("Flink writes its first orders into files", stack.by_flink, stack.flink.log)
    time.sleep(_SECONDS)
    stack.add_partition()
    console.print("The topic has got one more partition. Now the job is to move.")

    console.rule("examples/cut-over there")
    _cut_over(stack, "there")
    by_flink = stack.by_flink()
    _await("Spark writes its first orders", stack.by_spark, stack.spark_log)
    with step("The job that counts is stopped with a savepoint: flink stop"):
        savepoint = stack.flink.stop(stack.flink.running()["totals"])
    counted = stack.totals()

    console.rule("examples/cut-over back")
    _cut_over(stack, "back")
    by_spark = stack.by_spark()
    _await(
        "Flink writes its next orders",
        lambda: stack.by_flink()[len(by_flink) :],
        stack.flink.log,
    )
    stack.stop_orders()
    with step("No more orders come. Flink's checkpoints write out what it has read"):
        again = Counter(_settled(stack.by_flink)) - Counter(by_flink)
    with step("Reading all orders from Kafka, and comparing"):
        truth = stack.in_kafka()
        accounts = account(truth, by_flink, by_spark, list(again.elements()))

    console.rule("examples/totals: a job with state")
    with step("Spark takes over what it counted, and counts on to the last order") as going:
        going.say(stack.totals_on_spark(savepoint))
    by_spark_too = stack.totals()
    totals = compare(truth, counted, by_spark_too)
    return accounts, totals, _way_back(stack, savepoint, counted, by_spark_too)


def _way_back(stack: LocalStack, savepoint: str, at_stop: Totals, at_handover: Totals) -> WayBack:
    """Flink's job goes on from where Spark has come to, with the state of its savepoint.

    Args:
        at_stop: what it had counted then.
        at_handover: what Spark had, counting on from there.
    """
    console.rule("examples/totals: back, with the state that Flink had")
    stack.add_orders(_MORE)
    with step("migrate to-flink: the savepoint again, with Spark's positions") as going:
        code, said = stack.totals_again(savepoint)
        going.say(said)
        if code != Exit.REFUSED:
            raise StackError(f"migrate to-flink: exit code {code}")
        told = sum(map(int, _NOT_IN_THE_STATE.findall(said)))
    with step("Spark's table has these counts. So: --allow-state-mismatch") as going:
        code, said = stack.totals_again(savepoint, "--allow-state-mismatch")
        going.say(said.splitlines()[-1])
        if code:
            raise StackError(f"migrate to-flink: exit code {code}")
    with step("Flink's SQL client submits the job as it was, from that savepoint"):
        stack.submit("orders/tables.sql", "totals/flink_back.sql", "totals/flink.sql")
    truth = _by_customer(stack.in_kafka())
    in_between = {one: _less(at_handover[one], at_stop.get(one, (0, 0))) for one in at_handover}
    wanted = {one: _less(truth[one], in_between.get(one, (0, 0))) for one in truth}
    _await("Flink counts on", lambda: stack.totals() == wanted, stack.flink.log)
    with step("The job is stopped, so that nothing comes any more: flink stop"):
        stack.flink.stop(stack.flink.running()["totals"])
    by_flink = stack.totals()
    shared = [Shared(one, truth[one], by_flink[one], in_between[one]) for one in sorted(truth)]
    return WayBack(shared, told)


def _less(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] - other[0], one[1] - other[1]


def _by_customer(orders: Sequence[Order]) -> Totals:
    """How many each customer has made, and for how much."""
    counted: Totals = {}
    for *_, customer, cents in orders:
        count, paid = counted.get(customer, (0, 0))
        counted[customer] = count + 1, paid + cents
    return counted


def _cut_over(stack: LocalStack, way: str) -> None:
    """Run the script. Its steps stand out; what several commands warn of is shown once."""
    warnings: set[str] = set()
    with step(f"cut-over {way}") as going:

        def say(line: str) -> None:
            if line.startswith("warning"):
                # What comes before differs from command to command.
                text = line[-_WARNING_ENDS:]
                if text in warnings:
                    return
                warnings.add(text)
            going.say(line, "bold cyan" if line.startswith("==> ") else None)
            if "files-in-progress" in line or ": a file sink: " in line:
                going.say(
                    "    (Safe here: the files are CSV, which Flink finishes at each checkpoint.)"
                )

        stack.cut_over(way, say)


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


def compare(truth: Sequence[Order], by_flink: Totals, in_the_end: Totals) -> list[Total]:
    """What was counted against what is in Kafka, by customer."""
    in_kafka = _by_customer(truth)
    return [
        Total(one, in_kafka.get(one, (0, 0)), by_flink.get(one), in_the_end.get(one))
        for one in sorted(in_kafka.keys() | in_the_end)
    ]


def _await(what: str, done: Callable[[], object], log: Callable[[], str]) -> None:
    wait_for(what, done, _PATIENCE_SECONDS, log)


def _settled(orders: Callable[[], list[Order]]) -> list[Order]:
    """The orders once several of Flink's checkpoints have brought no more."""
    before: list[Order] = []
    while len(now := orders()) > len(before):
        before = now
        time.sleep(_SETTLED_SECONDS)
    return now


def _table(accounts: Sequence[Account]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, show_footer=True)
    columns: dict[str, Callable[[Account], int]] = {
        "Kafka": lambda one: one.in_kafka,
        "Flink": lambda one: one.by_flink,
        "Spark": lambda one: one.by_spark,
        "Flink again": lambda one: one.by_flink_again,
        "lost": lambda one: one.lost,
        "repeated": lambda one: one.repeated,
    }
    table.add_column("partition", "total", justify="right", no_wrap=True)
    for heading, number in columns.items():
        total = str(sum(map(number, accounts)))
        table.add_column(heading, total, justify="right", no_wrap=True)
    for one in accounts:
        table.add_row(str(one.partition), *(str(number(one)) for number in columns.values()))
    return table


def _totals_table(totals: Sequence[Total]) -> Table:
    """Orders and cents of each customer."""
    return _customers_table(
        ("Kafka", "Flink at its stop", "Spark in the end"),
        ((one, (one.in_kafka, one.by_flink, one.in_the_end)) for one in totals),
    )


def _shared_table(shared: Sequence[Shared]) -> Table:
    """The same, by who has counted them."""
    return _customers_table(
        ("Kafka", "Flink, there and again", "Spark in between"),
        ((one, (one.in_kafka, one.by_flink, one.by_spark)) for one in shared),
    )


def _customers_table(
    headings: Iterable[str], rows: Iterable[tuple[Total | Shared, Iterable[Count | None]]]
) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0)
    table.add_column("customer", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for one, counts in rows:
        table.add_row(one.customer, *map(_count, counts), one.verdict)
    return table


def _count(count: Count | None) -> str:
    return "-" if count is None else f"{count[0]} for {count[1]}"


if __name__ == "__main__":
    sys.exit(main())
