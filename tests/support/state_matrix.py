"""Test which versions of Spark can continue keyed state, and write docs/state-matrix.md.

    python -m tests.support.state_matrix [NAME…]      # such as 4.1; default: all versions

See tests/support/spark_matrix.py; the tests are tests/integration/test_state_versions.py.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict

from tests.support.spark_matrix import measure, read_results, table
from tests.support.spark_versions import ROOT, VENV_RELEASE, environments, minor_version

RESULTS = ROOT / "docs" / "state-matrix.json"
TABLE = ROOT / "docs" / "state-matrix.md"
_TESTS = "tests/integration/test_state_versions.py"
_REFUSED, _SEEN = "test_a_state_that_is_not_flinks_is_refused", "test_what_was_seen_stays_seen"

ROW_TESTS: Mapping[str, str] = {
    "counts, sums": "test_counts_and_sums_go_on[HDFSBacked]",
    "counts, sums, RocksDB": "test_counts_and_sums_go_on[RocksDB]",
    "counts, sums, newer logs": "test_counts_and_sums_go_on[newer logs]",
    "ids": f"{_SEEN}[HDFSBacked]",
    "ids, RocksDB": f"{_SEEN}[RocksDB]",
    "tumbling windows": "test_windows_go_on[tumbling-HDFSBacked]",
    "hopping windows, RocksDB": "test_windows_go_on[hopping-RocksDB]",
    "sessions, RocksDB": "test_windows_go_on[sessions-RocksDB]",
    "named streams": "test_streams_with_names_go_on",
    "wrong keys are seen": f"{_REFUSED}[HDFSBacked]",
    "wrong keys are seen, RocksDB": f"{_REFUSED}[RocksDB]",
    "initialState": "test_a_processor_goes_on",
    "rehearsals": "test_a_query_is_rehearsed[HDFSBacked]",
    "rehearsals, RocksDB": "test_a_query_is_rehearsed[RocksDB]",
}

TEXT = """\
# With which Sparks keyed state goes on

<!-- `make spark-matrix` writes this page from docs/state-matrix.json: do not edit it. -->

A mark is a test that passed with that Spark and its Kafka connector, against a real broker, with
the state of a savepoint that Flink 2.2 wrote
([tests/integration/test_state_versions.py](../tests/integration/test_state_versions.py)). `—`: this
Spark does not have it.

{rows}

{notes}

- **counts, sums; ids; windows; sessions**: the query is primed, and goes on with the records after
  the savepoint. What it writes is what all records of the topic add up to. No id comes twice, and
  no window is fired again.
- **RocksDB**: with this state store. The other rows use Spark's default store.
- **newer logs**: state files with ids (Spark 4.1 and later) and an offset log of version 2 (4.2 and
  later), which Spark writes only if it is told to. Spark 4.0 cannot read such ids back: `prime`
  refuses it.
- **named streams**: Spark 4.2 and later, if it is told so; `prime` gets the names.
- **wrong keys are seen**: one key is wrong, one is missing, one is too many. Each is counted, and
  nothing is written.
- **initialState**: a processor (`transformWithStateInPandas`) with RocksDB.
- **rehearsals**: queries that count, deduplicate and fill windows are rehearsed on the records
  between two savepoints of one job. A filter that a query lacks is found, with the records.

The proof reads Spark's state with the data source of Spark 4. With Spark 3.5, a query goes on from
a copy of the location over no records, and emits all of its state.
"""


def main(names: list[str]) -> None:
    for name in names or sorted({minor_version(VENV_RELEASE), *environments()}):
        cells = measure(name, _TESTS, ROW_TESTS)
        # Another process may have tested another version meanwhile.
        measured = {**{line.line: line for line in read_results(RESULTS)}, name: cells}
        lines = [measured[line] for line in sorted(measured)]
        text = json.dumps([asdict(line) for line in lines], indent=2)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        TABLE.write_text(table(lines, ROW_TESTS, TEXT), encoding="utf-8")
    if any("failed" in line.cells.values() for line in read_results(RESULTS)):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
