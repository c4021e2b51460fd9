"""Test which versions of Spark are supported, and write docs/spark-matrix.md.

    python -m tests.support.spark_matrix [NAME…]      # such as 4.1; default: all versions

tests/integration/test_spark_versions.py runs with each of these versions. A cell is the outcome of
one test. docs/spark-matrix.json stores the outcomes, so that a single version can be tested again.
For a version without golden checkpoint locations, these are also written.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

from tests.golden.spark.generate import has_golden, renew
from tests.support.jars import JarError, read_lock
from tests.support.spark_versions import (
    ROOT,
    VENV_RELEASE,
    SparkVersionError,
    environments,
    minor_version,
)

RESULTS = ROOT / "docs" / "spark-matrix.json"
TABLE = ROOT / "docs" / "spark-matrix.md"
_TESTS = "tests/integration/test_spark_versions.py"

# The cell of a feature that this version of Spark does not have.
DOES_NOT_APPLY = "—"
_MARKS = {"passed": "✓", "failed": "**failed**"}

_KEPT = "test_copied_query_resumes_from_new_positions_with_existing_counts"
# The heading of each row, and its test.
ROW_TESTS: Mapping[str, str] = {
    "startingOffsets, stateless": "test_query_starts_exactly_at_positions[stateless-options]",
    "startingOffsets, stateful": "test_query_starts_exactly_at_positions[stateful-options]",
    "seed, stateless": "test_query_starts_exactly_at_positions[stateless-seed]",
    "seed, stateful": "test_query_starts_exactly_at_positions[stateful-seed]",
    "startingOffsets, off-by-one detected": "test_shifted_start_of_query_is_detected[options]",
    "seed, off-by-one detected": "test_shifted_start_of_query_is_detected[seed]",
    "named seed": "test_named_source_starts_exactly_at_seed",
    "verify --run": "test_verify_run_option_reports_start_positions",
    "copy-query": f"{_KEPT}[right]",
    "copy-query, off-by-one detected": f"{_KEPT}[wrong by one]",
    "copy-query, transformWithState": (
        "test_copied_query_with_stateful_processor_runs_after_old_location_was_deleted"
    ),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcomes with one minor version of Spark.

    Attributes:
        line: the minor version, such as ``4.1``.
        version: the release.
        on: the date.
        with_: the version of Python, and the system.
        cells: the outcome of each test, by name: passed, failed, not run, or DOES_NOT_APPLY.
        not_run: why no test was run; empty if the tests were run.
    """

    line: str
    version: str
    on: str
    with_: str
    cells: Mapping[str, str]
    not_run: str = ""


def measure(name: str, tests: str = _TESTS, row_tests: Mapping[str, str] = ROW_TESTS) -> Measured:
    """Run the tests with one minor version of Spark."""
    in_venv = name == minor_version(VENV_RELEASE)
    version = VENV_RELEASE if in_venv else environments()[name].version
    on = datetime.now(timezone.utc).date().isoformat()
    with_ = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    with tempfile.TemporaryDirectory(prefix="spark-matrix-") as work:
        report = Path(work, "report.xml")
        arguments = [tests, "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        if in_venv:
            command = [sys.executable, "-m", "pytest", *arguments]
            subprocess.run(command, cwd=ROOT, check=False)
        else:
            try:
                environments()[name].make()
            except (SparkVersionError, JarError) as error:
                return Measured(name, version, on, with_, {}, str(error).splitlines()[0])
            environments()[name].run("pytest", *arguments)
        outcome_of = dict(outcomes(report))
    cells = {test: outcome_of.get(test, "not run") for test in row_tests.values()}
    return Measured(name, version, on, with_, cells)


def outcomes(report: Path) -> Iterable[tuple[str, str]]:
    """Yield the name and the outcome of each test in a JUnit report."""
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        failed = kinds & {"failure", "error"}
        skipped = "skipped" in kinds
        yield case.get("name", ""), "failed" if failed else DOES_NOT_APPLY if skipped else "passed"


def read_results(results: Path = RESULTS) -> list[Measured]:
    """Return the last outcomes of each minor version of Spark."""
    if not results.exists():
        return []
    return [Measured(**entry) for entry in json.loads(results.read_text(encoding="utf-8"))]


def rows(versions: Sequence[str], cells: Mapping[str, Sequence[str]]) -> str:
    """Return a table with a column for each version, and a row for each entry of ``cells``."""
    lines = [["", *versions], ["---"] + [":-:"] * len(versions)]
    lines += [
        [heading, *(_MARKS.get(cell, cell) for cell in row)] for heading, row in cells.items()
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def table(
    measured: Iterable[Measured], row_tests: Mapping[str, str] = ROW_TESTS, text: str | None = None
) -> str:
    """Return the text of docs/spark-matrix.md, or of a page with other rows and text."""
    lines = list(measured)
    cells = {
        heading: [line.cells.get(test, "not run") for line in lines]
        for heading, test in row_tests.items()
    }
    cells["Kafka connector"] = [_connector(line.version) for line in lines]
    cells["measured on"] = [line.on for line in lines]
    notes = [f"Spark {line.version} was not run: {line.not_run}." for line in lines if line.not_run]
    notes.append(f"Measured with {'; '.join(sorted({line.with_ for line in lines}))}.")
    return (text or _TEXT).format(
        rows=rows([line.version for line in lines], cells), notes="\n\n".join(notes)
    )


def _connector(version: str) -> str:
    """Return the version of the Kafka connector that runs with this version of Spark."""
    jars = read_lock().get(f"spark-{version}", [])
    (connector,) = {jar.version for jar in jars if "sql-kafka" in jar.artifact} or {version}
    return connector


_TEXT = """\
# Spark versions

<!-- `make spark-matrix` writes this page from docs/spark-matrix.json: do not edit it. -->

The tests check whether queries of each Spark version start at exact positions. A check mark (✓)
indicates a test that passed with the listed Spark version and its Kafka connector, against a real
broker ([source of the tests](../tests/integration/test_spark_versions.py)). A dash (—) means that
this Spark version does not have the feature.

{rows}

{notes}

- **startingOffsets** and **seed** are the two ways in which `to-spark` starts a query. The tests
  start queries in the middle of a log, at its start, at its end, and in a log that does not start
  at 0. The sink then contains each expected record exactly once.
- **off-by-one detected**: The same query starts one record too late in one partition, and one
  record too early in a second partition. The test detects both errors.
- **named seed**: Spark 4.2 and later can assign names to sources. The seed is stored under these
  names.
- **verify --run**: Spark plans its first batch, and this batch starts at the offsets of the seed.
- **copy-query**: A query that counts records resumes from a copy of its checkpoint location, at
  different positions and with its old counts (`migrate copy-query`). With `transformWithState`,
  the test removes the old location first.

If a query is restarted after a failure, it reruns the failed batch. Spark 4.1.1 then fails again
when it computes the metrics of this batch (`KafkaMicroBatchStream.metrics`), with or without a
seed. Spark 4.2.0 fixes this problem.

`diff`, `verify`, and `commit-group spark:DIR` read checkpoint locations from each of these Spark
versions (`tests/golden/spark`). They support:

- offset logs of version 1, from all of these versions
- offset logs of version 2 from Spark 4.2 and 4.3, with numbers or names of sources
- commit logs of versions 1, 2, and 3
- batches that repartition a query's state, and their [skipped
  batches](explanation/traps-spark.md#d14-skipped-batches-are-committed)

A query keeps the log version with which it started. Spark 4.3 introduced version 3 of the commit
log, which also contains the sink. `migrate` refuses control batches. Spark 4.2 can read control
batches but does not write them.
"""


def main(names: list[str]) -> None:
    measured = {line.line: line for line in read_results()}
    for name in names or sorted({minor_version(VENV_RELEASE), *environments()}):
        measured[name] = measure(name)
        lines = [measured[line] for line in sorted(measured)]
        text = json.dumps([asdict(line) for line in lines], indent=2)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        TABLE.write_text(table(lines), encoding="utf-8")
        if not measured[name].not_run and not has_golden(minor_version(name)):
            renew(name)
    if any("failed" in line.cells.values() for line in measured.values()):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
