"""Show the whole story on one machine, with a real Kafka, Flink, and Spark, and `migrate`.

    make demo

Orders are written to Kafka all the time. A Flink SQL job copies them into files.
`examples/cut-over there` moves the job to a Spark query, `examples/cut-over back` moves it back.

A second Flink job counts the orders of each customer. It stops with a savepoint, and a Spark query
continues with its counts. The job then moves back to Flink. It starts at the positions at which
Spark stopped, with the state of its savepoint. This state lacks the orders that Spark has counted.
`migrate to-flink` reports their number, and refuses the move without an option.

At the end, two tables account for every order, by partition and by customer. Each order must have
been processed once, by Flink, by Spark, or by Flink after the move back.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from examples.local import JARS, LocalStack, Order, StackError, Totals
from examples.progress import console, fetch_jars, step, wait_for
from migrate.cli.exit_codes import Exit

# The measured size of all jars that the demo needs.
MEGABYTES = 260
# The last characters of a warning. They are the same in each command that prints it.
_WARNING_ENDS = 80
# The time for which Flink and Spark each read before they are stopped.
_SECONDS = 3
_PATIENCE_SECONDS = 300
# Flink takes a checkpoint every second, and less often on a busy machine.
_SETTLED_CHECKPOINTS = 3
# The number of orders that are added to each partition after the job's move back to Flink.
_MORE = 50
_NOT_IN_THE_STATE = re.compile(r"up to (\d+) records are missing from the state")


@dataclass(frozen=True, slots=True)
class Account:
    """The number of orders of one partition, by the system that has processed them."""

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
    """One customer's orders, (orders, cents), after Spark has continued from Flink's counts."""

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
    """One customer's orders, (orders, cents), by the system that has counted them."""

    customer: str
    in_kafka: Count
    by_flink: Count
    by_spark: Count
    by_flink_again: Count

    @property
    def verdict(self) -> str:
        counts = zip(self.by_flink, self.by_spark, self.by_flink_again, strict=True)
        return "right" if tuple(map(sum, counts)) == self.in_kafka else "wrong"


@dataclass(frozen=True, slots=True)
class WayBack:
    """The job that counts, back in Flink.

    Attributes:
        shared: the orders of each customer.
        not_in_its_state: the number of orders that Flink's state lacks, from `migrate to-flink`.
    """

    shared: list[Shared]
    not_in_its_state: int

    @property
    def by_spark(self) -> int:
        return sum(row.by_spark[0] for row in self.shared)

    @property
    def is_right(self) -> bool:
        return self.by_spark == self.not_in_its_state and all(
            row.verdict == "right" for row in self.shared
        )


def main() -> int:
    """Run the demo; return 0 if no order was lost or duplicated."""
    console.print(
        "The demo runs a real Kafka, Flink, S3, and Spark on this machine, for three to five "
        "minutes. Then it stops and removes them.",
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
    console.rule("The job orders: who has copied each order, by partition")
    console.print(_table(accounts))
    lost = sum(row.lost for row in accounts)
    repeated = sum(row.repeated for row in accounts)
    console.print(
        "The job moved from Flink to Spark and back while orders were written: "
        f"lost {lost}, duplicated {repeated}."
    )
    console.rule("The job totals: who has counted each order, by customer")
    console.print(_customers_table(back.shared))
    verdicts = Counter(total.verdict for total in totals)
    words = ", ".join(f"{verdicts[word]} {word}" for word in ("right", "wrong", "missing"))
    console.print(f"Spark continued with Flink's counts of each customer: {words}.")
    console.print(
        "Then Flink resumed from Spark's positions, with its old state. migrate reported that the "
        f"state lacks {back.not_in_its_state} orders, and Spark has counted {back.by_spark}: "
        f"{'right' if back.is_right else 'wrong'}.",
        soft_wrap=True,
    )
    moved = lost == repeated == 0 and verdicts["right"] == len(totals)
    return 0 if moved and back.is_right else 1


def story(stack: LocalStack) -> tuple[list[Account], list[Total], WayBack]:
    """Move both jobs from Flink to Spark and back.

    Returns:
        The orders of each partition; the counts of each customer after Spark has continued from
        Flink's counts; and the job that counts, back in Flink.
    """
    stack.start_orders()
    with step("Orders are written to Kafka. Flink's SQL client submits the jobs that read them"):
        stack.submit("orders/tables.sql", "orders/flink.sql", "totals/flink.sql")
    _await("Flink writes its first orders into files", stack.by_flink, stack.flink.log)
    time.sleep(_SECONDS)
    stack.add_partition()
    console.print("The topic has one more partition now. Next, the job orders moves.")

    console.rule("examples/cut-over there")
    _cut_over(stack, "there")
    by_flink = stack.by_flink()
    _await("Spark writes its first orders", stack.by_spark, stack.spark_log)
    with step("Stopping the job totals with flink stop"):
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
    console.print("No more orders are written for now.")

    console.rule("examples/totals: a job with state goes to Spark")
    with step("Spark takes over Flink's counts, and counts up to the last order") as going:
        going.say(stack.totals_on_spark(savepoint))
    counted_on = stack.totals()
    totals = compare(stack.in_kafka(), counted, counted_on)
    back = _way_back(stack, savepoint, counted, counted_on)
    with step("Flink's checkpoints finish the last files of the job orders"):
        again = Counter(_settled(stack)) - Counter(by_flink)
    with step("Reading all orders from Kafka, and comparing"):
        accounts = account(stack.in_kafka(), by_flink, by_spark, list(again.elements()))
    return accounts, totals, back


def _way_back(stack: LocalStack, savepoint: str, at_stop: Totals, at_handover: Totals) -> WayBack:
    """Resume Flink's job from the positions at which Spark stopped, with its savepoint's state.

    Args:
        at_stop: Flink's counts at the savepoint.
        at_handover: Spark's counts when it stopped.
    """
    console.rule("examples/totals: back to Flink, with the state of its savepoint")
    console.print(f"{_MORE} more orders are written to each partition.")
    stack.add_orders(_MORE)
    with step("migrate to-flink: a copy of the savepoint, with Spark's positions") as going:
        code, output = stack.totals_again(savepoint)
        going.say(output)
        if code != Exit.REFUSED:
            raise StackError(f"migrate to-flink: exit code {code}")
        not_in_state = sum(map(int, _NOT_IN_THE_STATE.findall(output)))
    with step("Spark has counted these records, so: --allow-state-mismatch") as going:
        code, output = stack.totals_again(savepoint, "--allow-state-mismatch")
        going.say(output.splitlines()[-1])
        if code:
            raise StackError(f"migrate to-flink: exit code {code}")
    with step("Flink's SQL client submits the same job, from that savepoint"):
        stack.submit("orders/tables.sql", "totals/flink_back.sql", "totals/flink.sql")
    truth = _by_customer(stack.in_kafka())
    by_spark = {
        customer: _less(at_handover[customer], at_stop.get(customer, (0, 0)))
        for customer in at_handover
    }
    expected = {
        customer: _less(truth[customer], by_spark.get(customer, (0, 0))) for customer in truth
    }
    _await("Flink continues to count", lambda: stack.totals() == expected, stack.flink.log)
    with step("Running flink stop, so that the counts of the job totals are final"):
        stack.flink.stop(stack.flink.running()["totals"])
    by_flink = stack.totals()
    shared = [
        Shared(
            customer,
            truth[customer],
            at_stop[customer],
            by_spark[customer],
            _less(by_flink[customer], at_stop[customer]),
        )
        for customer in sorted(truth)
    ]
    return WayBack(shared, not_in_state)


def _less(count: Count, other: Count) -> Count:
    return count[0] - other[0], count[1] - other[1]


def _by_customer(orders: Sequence[Order]) -> Totals:
    """Return the number of orders of each customer, and their cents."""
    counted: Totals = {}
    for *_, customer, cents in orders:
        count, paid = counted.get(customer, (0, 0))
        counted[customer] = count + 1, paid + cents
    return counted


def _cut_over(stack: LocalStack, way: str) -> None:
    """Run the script, and show a warning only once even if several of its commands print it."""
    warnings: set[str] = set()
    with step("Running the script") as going:

        def say(line: str) -> None:
            if line.startswith("warning"):
                text = line[-_WARNING_ENDS:]
                if text in warnings:
                    return
                warnings.add(text)
            going.say(line, "bold cyan" if line.startswith("==> ") else None)
            if "files-in-progress" in line:
                going.say(
                    "    (This is safe here, because Flink finishes CSV files at each checkpoint.)"
                )

        stack.cut_over(way, say)


def account(
    truth: Sequence[Order],
    by_flink: Sequence[Order],
    by_spark: Sequence[Order],
    by_flink_again: Sequence[Order],
) -> list[Account]:
    """Compare the processed orders with the orders in Kafka, by partition.

    Orders are compared with all of their fields. An order that is not in Kafka counts as duplicate.
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
    """Compare the counts with the orders in Kafka, by customer."""
    in_kafka = _by_customer(truth)
    return [
        Total(
            customer,
            in_kafka.get(customer, (0, 0)),
            by_flink.get(customer),
            in_the_end.get(customer),
        )
        for customer in sorted(in_kafka.keys() | in_the_end)
    ]


def _await(what: str, done: Callable[[], object], log: Callable[[], str]) -> None:
    wait_for(what, done, _PATIENCE_SECONDS, log)


def _settled(stack: LocalStack) -> list[Order]:
    """Return Flink's orders once several checkpoints of the job have added none."""
    job, before = stack.flink.running()["orders"], list[Order]()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while len(now := stack.by_flink()) > len(before):
        before, enough = now, stack.flink.completed_checkpoints(job) + _SETTLED_CHECKPOINTS
        while stack.flink.completed_checkpoints(job) < enough:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no checkpoint was completed\n{stack.flink.log()}")
            time.sleep(0.2)
    return now


def _table(accounts: Sequence[Account]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, show_footer=True)
    columns: dict[str, Callable[[Account], int]] = {
        "Kafka": lambda row: row.in_kafka,
        "Flink": lambda row: row.by_flink,
        "Spark": lambda row: row.by_spark,
        "Flink again": lambda row: row.by_flink_again,
        "lost": lambda row: row.lost,
        "repeated": lambda row: row.repeated,
    }
    table.add_column("partition", "total", justify="right", no_wrap=True)
    for heading, number in columns.items():
        total = str(sum(map(number, accounts)))
        table.add_column(heading, total, justify="right", no_wrap=True)
    for row in accounts:
        table.add_row(str(row.partition), *(str(number(row)) for number in columns.values()))
    return table


def _customers_table(shared: Sequence[Shared]) -> Table:
    """Return the table of orders by customer, with a verdict that also covers their cents."""
    table = Table(box=SIMPLE_HEAD, padding=0, show_footer=True)
    columns: dict[str, Callable[[Shared], Count]] = {
        "Kafka": lambda row: row.in_kafka,
        "Flink": lambda row: row.by_flink,
        "Spark": lambda row: row.by_spark,
        "Flink again": lambda row: row.by_flink_again,
    }
    table.add_column("customer", "total", no_wrap=True)
    for heading, count in columns.items():
        total = str(sum(count(row)[0] for row in shared))
        table.add_column(heading, total, justify="right", no_wrap=True)
    table.add_column("orders and cents", no_wrap=True)
    for row in shared:
        orders = (str(count(row)[0]) for count in columns.values())
        table.add_row(row.customer, *orders, row.verdict)
    return table


if __name__ == "__main__":
    sys.exit(main())
