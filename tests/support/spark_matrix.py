"""Test which versions of Spark are supported, and write docs/spark-matrix.md.

    python -m tests.support.spark_matrix [NAME…]      # such as 4.1; all without one

tests/integration/test_spark_versions.py runs with each version of Spark. A cell is the outcome of
one test. The outcomes are kept in docs/spark-matrix.json, so that a single version can be tested
again. The golden checkpoint locations of a new version are also written.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

from tests.golden.spark.generate import has_golden, renew
from tests.support.jars import JarError, read_lock
from tests.support.spark_versions import OWN, ROOT, SparkVersionError, environments, line_of

RESULTS = ROOT / "docs" / "spark-matrix.json"
TABLE = ROOT / "docs" / "spark-matrix.md"
_TESTS = "tests/integration/test_spark_versions.py"

# The cell of a feature that this version of Spark does not have.
DOES_NOT_APPLY = "—"

_KEPT = "test_a_copy_goes_on_from_other_positions_with_the_counts_it_has"
# The heading of each column, and the test whose outcomes the column shows.
COLUMNS: Mapping[str, str] = {
    "startingOffsets, stateless": "test_starts_exactly[stateless-options]",
    "startingOffsets, stateful": "test_starts_exactly[stateful-options]",
    "seed, stateless": "test_starts_exactly[stateless-seed]",
    "seed, stateful": "test_starts_exactly[stateful-seed]",
    "wrong by one is seen, startingOffsets": "test_a_start_wrong_by_one_is_seen[options]",
    "wrong by one is seen, seed": "test_a_start_wrong_by_one_is_seen[seed]",
    "seed by the source's name": "test_a_seed_by_name_starts_exactly",
    "verify --run": "test_verify_run_sees_where_it_starts",
    "keep-state": f"{_KEPT}[right]",
    "wrong by one is seen, keep-state": f"{_KEPT}[wrong by one]",
    "keep-state, transformWithState": (
        "test_a_copy_with_a_processors_state_needs_the_old_location_no_more"
    ),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcomes with one minor version of Spark.

    Attributes:
        cells: the outcome of each test, by name: passed, failed, not run, or DOES_NOT_APPLY.
        not_run: why no test was run; empty if the tests were run.
    """

    line: str
    version: str
    on: str
    with_: str
    cells: Mapping[str, str]
    not_run: str = ""


def measure(name: str, tests: str = _TESTS, columns: Mapping[str, str] = COLUMNS) -> Measured:
    """Run the tests with one minor version of Spark."""
    own = name == line_of(OWN)
    version = OWN if own else environments()[name].version
    on = datetime.now(timezone.utc).date().isoformat()
    with_ = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    with tempfile.TemporaryDirectory(prefix="spark-matrix-") as work:
        report = Path(work, "report.xml")
        arguments = [tests, "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        if own:
            command = [sys.executable, "-m", "pytest", *arguments]
            subprocess.run(command, cwd=ROOT, check=False)
        else:
            try:
                environments()[name].make()
            except (SparkVersionError, JarError) as error:
                return Measured(name, version, on, with_, {}, str(error).splitlines()[0])
            environments()[name].run("pytest", *arguments)
        outcome_of = dict(outcomes(report))
    cells = {test: outcome_of.get(test, "not run") for test in columns.values()}
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


def table(
    measured: Iterable[Measured], columns: Mapping[str, str] = COLUMNS, text: str | None = None
) -> str:
    """Return the text of docs/spark-matrix.md, or of a page with other columns and another text."""
    rows = [
        "| Spark | " + " | ".join(columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    notes = []
    for line in measured:
        cells = [line.cells.get(test, "not run") for test in columns.values()]
        rows.append(f"| {line.version} | " + " | ".join(cells) + " |")
        how = line.not_run or f"measured on {line.on} with {line.with_}{_connector(line.version)}"
        notes.append(f"- Spark {line.version}: {how}.")
    return (text or _TEXT).format(rows="\n".join(rows), notes="\n".join(notes))


def _connector(version: str) -> str:
    """Return a text that names the Kafka connector if its version is not that of Spark."""
    jars = read_lock().get(f"spark-{version}", [])
    (connector,) = {jar.version for jar in jars if "sql-kafka" in jar.artifact} or {version}
    return f" and the Kafka connector of {connector}" if connector != version else ""


_TEXT = """\
# Which Sparks start where Flink ended

`make spark-matrix` writes this page: do not edit it. Each cell is a test of
[tests/integration/test_spark_versions.py](../tests/integration/test_spark_versions.py). It runs
with that Spark and its Kafka connector, against a real broker.

{rows}

{notes}

- **startingOffsets, seed**: the two ways in which `to-spark` starts a query. The test starts one in
  the middle of a log, at its start, at its end, and in a log that does not start at 0. The sink
  must have each record that the query should read, once, and no other.
- **stateless, stateful**: stateful queries keep each record's identity in a state store.
- **wrong by one is seen**: the same query starts one record too late in one partition and one too
  early in another. The same accounting must find both errors.
- **seed by the source's name**: when told to, Spark 4.2 gives sources names. The seed is then
  stored under the name.
- **verify --run**: Spark's own plan of its first batch names the offsets of the seed.
- **keep-state**: a query that counts goes on from other positions in a copy of its location, with
  the counts that it has (`to-spark --keep-state`). From positions that are wrong by one, one count
  is too low by one, and another too high.
- **keep-state, transformWithState**: the same of a processor's state, after the old location was
  removed. Spark 3.5 has no such processors.

Not every registry has the connector of each release: then the nearest before it is taken. The token
provider beside it may be older, too. It is only used for delegation tokens.

After a failure, Spark runs the batch again. Spark 4.1.1 fails when it reports on such a batch, with
or without a seed (`KafkaMicroBatchStream.metrics`). Spark 4.2.0 fixes this.

`diff`, `verify` and `commit-group spark:DIR` read Spark's checkpoint files. This is tested on
directories that each of these Sparks wrote (`tests/golden/spark`). Offset logs are read in version
1, which all of them write. They are also read in version 2, which Spark 4.2 and 4.3 can write, by
the sources' numbers or by their names. A query keeps the version of its offset log: told to write
version 2, Spark 4.3.0 went on with version 1. Commit logs are read in versions 1, 2 and 3; the last
one names the sink, and Spark 4.3 wrote it. So are the batches that repartition a query's state, and
those that were skipped for it
([trap D14](explanation/traps-spark.md#d14-a-skipped-batch-is-committed)). Spark 4.2 knows control
batches in its offset log, and writes none yet: they are refused.

`make test` runs the row of the Spark in `.venv`. One command makes and runs another Spark, as in
`python -m tests.support.spark_versions 4.1 pytest tests/integration/test_spark_seed.py`.
"""


def main(names: list[str]) -> None:
    measured = {line.line: line for line in read_results()}
    for name in names or sorted({line_of(OWN), *environments()}):
        measured[name] = measure(name)
        lines = [measured[line] for line in sorted(measured)]
        text = json.dumps([asdict(line) for line in lines], indent=2)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        TABLE.write_text(table(lines), encoding="utf-8")
        if not measured[name].not_run and not has_golden(line_of(name)):
            renew(name)
    if any("failed" in line.cells.values() for line in measured.values()):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
