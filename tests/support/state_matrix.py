"""Test with which versions of Spark keyed state can be continued, and write docs/state-matrix.md.

This works like tests/support/spark_matrix.py, with tests/integration/test_state_versions.py.

    python -m tests.support.state_matrix [NAME…]      # such as 4.1; all without one
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict

from tests.support.spark_matrix import measure, read_results, table
from tests.support.spark_versions import OWN, ROOT, environments, line_of

RESULTS = ROOT / "docs" / "state-matrix.json"
TABLE = ROOT / "docs" / "state-matrix.md"
_TESTS = "tests/integration/test_state_versions.py"
_REFUSED, _SEEN = "test_a_state_that_is_not_flinks_is_refused", "test_what_was_seen_stays_seen"

COLUMNS: Mapping[str, str] = {
    "counts, sums": "test_counts_and_sums_go_on[HDFSBacked]",
    "the same, RocksDB": "test_counts_and_sums_go_on[RocksDB]",
    "the same, newer logs": "test_counts_and_sums_go_on[newer logs]",
    "ids": f"{_SEEN}[HDFSBacked]",
    "ids, RocksDB": f"{_SEEN}[RocksDB]",
    "tumbling windows": "test_windows_go_on[tumbling-HDFSBacked]",
    "hopping windows, RocksDB": "test_windows_go_on[hopping-RocksDB]",
    "sessions, RocksDB": "test_windows_go_on[sessions-RocksDB]",
    "streams with names": "test_streams_with_names_go_on",
    "wrong keys are seen": f"{_REFUSED}[HDFSBacked]",
    "wrong keys are seen, RocksDB": f"{_REFUSED}[RocksDB]",
    "initialState": "test_a_processor_goes_on",
}

TEXT = """\
# With which Sparks keyed state goes on

`make spark-matrix` writes this page: do not edit it. Each cell is a test of
[tests/integration/test_state_versions.py](../tests/integration/test_state_versions.py). It moves
the state of a savepoint that Flink 2.2 wrote, and runs with that Spark and its Kafka connector,
against a real broker.

{rows}

{notes}

- **counts, sums; ids; windows; sessions**: the query is primed, and goes on with the records that
  come after the savepoint. What it writes must be what all records of the topic add up to, as the
  test counts them itself. No id comes twice, and no window is fired again.
- **RocksDB**: with the state store of that name. The other columns use Spark's default store.
- **newer logs**: from Spark 4.1 on the commit log has the ids of state files, and from 4.2 on the
  offset log is of version 2. Spark writes both only where it is told to. Spark 4.0 writes such ids,
  too, but cannot read its own state back then: `prime` refuses it. Spark 3.5 knows neither.
- **streams with names**: from Spark 4.2 on, where it is told so; `prime` gets the names.
- **wrong keys are seen**: one key is wrong, one is missing, and one is too many. Each is counted,
  and nothing stands at the location.
- **initialState**: a processor of one's own (`transformWithStateInPandas`), with RocksDB. Spark 3.5
  has no such processors.

How the proof reads Spark's state: Spark 4 has a data source for it. With Spark 3.5 a query of ours
goes on from a copy of the location over no records, and emits all of its state.

`make test` runs the row of the Spark in `.venv`.
"""


def main(names: list[str]) -> None:
    for name in names or sorted({line_of(OWN), *environments()}):
        cells = measure(name, _TESTS, COLUMNS)
        # Another process may have tested another version meanwhile.
        measured = {**{line.line: line for line in read_results(RESULTS)}, name: cells}
        lines = [measured[line] for line in sorted(measured)]
        text = json.dumps([asdict(line) for line in lines], indent=2)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        TABLE.write_text(table(lines, COLUMNS, TEXT), encoding="utf-8")
    if any("failed" in line.cells.values() for line in read_results(RESULTS)):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
