"""Test which releases of Kafka brokers are supported, and write docs/broker-matrix.md.

    python -m tests.support.broker_matrix [RELEASE…]      # such as 4.1.2; default: all releases

tests/integration/test_broker_versions.py runs against each of these releases. A cell is the
outcome of one test. docs/broker-matrix.json stores the outcomes, so that a single release can be
tested again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from tests.support.jars import read_lock
from tests.support.spark_matrix import outcomes, rows
from tests.support.spark_versions import ROOT

RESULTS = ROOT / "docs" / "broker-matrix.json"
TABLE = ROOT / "docs" / "broker-matrix.md"
_TESTS = "tests/integration/test_broker_versions.py"

_CONSUMED = "test_consumers_resume_from_verified_commit"
# The heading of each row, and its test.
ROW_TESTS: Mapping[str, str] = {
    "moved, verified, consumed": f"{_CONSUMED}[classic]",
    "moved, verified, consumed, consumer protocol": f"{_CONSUMED}[consumer]",
    "active group refused": "test_commit_to_active_group_is_refused[classic]",
    "active group refused, consumer protocol": "test_commit_to_active_group_is_refused[consumer]",
    "rolled back": "test_rollback_restores_previous_offset_and_removes_added_offsets",
    "recreated topic detected": "test_saved_plan_is_refused_after_topic_is_recreated",
    "other group types refused": "test_share_group_and_streams_group_are_refused",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcome of each test with one release of Kafka; ``on`` is the date of the test run."""

    release: str
    on: str
    cells: Mapping[str, str]


def releases() -> list[str]:
    """Return the releases of Kafka in jars.lock, ascending."""
    names = (name.removeprefix("kafka-") for name in read_lock() if name.startswith("kafka-"))
    return sorted((name for name in names if name[0].isdigit()), key=_number)


def _number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def measure(release: str) -> Measured:
    """Run the tests with one release of Kafka."""
    with tempfile.TemporaryDirectory(prefix="broker-matrix-") as work:
        report = Path(work, "report.xml")
        arguments = [_TESTS, "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=ROOT,
            env={**os.environ, "KAFKA_RELEASE": release},
            check=False,
        )
        outcome_of = dict(outcomes(report))
    cells = {test: outcome_of.get(test, "not run") for test in ROW_TESTS.values()}
    return Measured(release, datetime.now(timezone.utc).date().isoformat(), cells)


def read_results() -> list[Measured]:
    """Return the last outcomes of each release, ascending."""
    if not RESULTS.exists():
        return []
    entries = json.loads(RESULTS.read_text(encoding="utf-8"))
    return sorted((Measured(**entry) for entry in entries), key=lambda row: _number(row.release))


def table(measured: Iterable[Measured]) -> str:
    """Return the text of docs/broker-matrix.md."""
    lines = list(measured)
    cells = {
        heading: [line.cells.get(test, "not run") for line in lines]
        for heading, test in ROW_TESTS.items()
    }
    cells["measured on"] = [line.on for line in lines]
    return _TEXT.format(rows=rows([line.release for line in lines], cells))


_TEXT = """\
# Kafka broker versions

<!-- `make broker-matrix` writes this page from docs/broker-matrix.json: do not edit it. -->

The tests move consumer groups on each Kafka version. A check mark (✓) indicates a test that passed
against a broker of this version ([source of the
tests](../tests/integration/test_broker_versions.py)). This broker is the only node of its cluster,
in KRaft mode (before version 3.3, with ZooKeeper). A dash (—) means that this version does not have
the feature, or has it only as an early preview.

{rows}

- **moved, verified, consumed**: After `commit-group --execute` and `verify`, a consumer of the
  group reads each record from the new offsets exactly once.
- **consumer protocol**: The group uses the protocol of KIP-848.
- **active group refused**: A consumer is in the group. The command lists the consumer and commits
  nothing.
- **rolled back**: `rollback --execute` restores an offset, and removes two offsets that did not
  exist before.
- **recreated topic detected**: The topic is recreated after a plan is saved. When the plan is
  executed, `migrate` detects the new topic by its ID.
- **other group types refused**: `migrate` refuses share groups and streams groups.
"""


def main(names: list[str]) -> None:
    measured = {row.release: row for row in read_results()}
    for name in names or releases():
        measured[name] = measure(name)
        lines = sorted(measured.values(), key=lambda line: _number(line.release))
        text = json.dumps([asdict(line) for line in lines], indent=2)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        TABLE.write_text(table(lines), encoding="utf-8")
    if any("failed" in row.cells.values() for row in measured.values()):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
