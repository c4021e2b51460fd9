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
_REFUSED, _SEEN = (
    "test_state_that_differs_from_flink_is_refused_on_every_spark_version",
    "test_ids_seen_by_flink_are_not_emitted_by_any_spark_version",
)

_REHEARSED = "test_rehearsal_confirms_correct_query_and_detects_missing_filter"
ROW_TESTS: Mapping[str, str] = {
    "counts, sums": "test_counts_and_sums_continue_with_every_state_store[HDFSBacked]",
    "counts, sums, RocksDB": "test_counts_and_sums_continue_with_every_state_store[RocksDB]",
    "counts, sums, newer logs": "test_counts_and_sums_continue_with_every_state_store[newer logs]",
    "ids": f"{_SEEN}[HDFSBacked]",
    "ids, RocksDB": f"{_SEEN}[RocksDB]",
    "tumbling windows": "test_windows_continue_on_every_spark_version[tumbling-HDFSBacked]",
    "hopping windows, RocksDB": "test_windows_continue_on_every_spark_version[hopping-RocksDB]",
    "sessions, RocksDB": "test_windows_continue_on_every_spark_version[sessions-RocksDB]",
    "named streams": "test_named_streams_continue_after_move",
    "wrong keys detected": f"{_REFUSED}[HDFSBacked]",
    "wrong keys detected, RocksDB": f"{_REFUSED}[RocksDB]",
    "initialState": "test_stateful_processor_continues_on_every_spark_version",
    "rehearsals": f"{_REHEARSED}[HDFSBacked]",
    "rehearsals, RocksDB": f"{_REHEARSED}[RocksDB]",
}

TEXT = """\
# Keyed state by Spark version

<!-- `make spark-matrix` writes this page from docs/state-matrix.json: do not edit it. -->

The tests migrate keyed state of a Flink 2.2 savepoint to each Spark version. A check mark (✓)
indicates a test that passed with the listed Spark version and its Kafka connector, against a real
broker ([source of the tests](../tests/integration/test_state_versions.py)). A dash (—) means that
this Spark version does not have the feature.

{rows}

{notes}

- **counts, sums**, **ids**, **windows**, and **sessions**: The query is primed, and continues with
  the records after the savepoint. Its results equal the results over all records of the topic. No
  ID is duplicated, and no window fires twice.
- **RocksDB**: The test uses this state store. The other rows use Spark's default store.
- **newer logs**: The query uses optional newer formats: state files with IDs (Spark 4.1 and later)
  and version 2 of the offset log (Spark 4.2 and later). Spark 4.0 can write state files with IDs
  but cannot read them back, so `prime` refuses them with Spark 4.0.
- **named streams**: In Spark 4.2 and later, streams can have names. `prime` assigns the names.
- **wrong keys detected**: One key is wrong, one is missing, and one is unexpected. `prime` counts
  each of them and writes nothing.
- **initialState**: The test uses a processor (`transformWithStateInPandas`) with RocksDB.
- **rehearsals**: Queries that count, deduplicate, and fill windows are rehearsed on the records
  between two savepoints of one job. If a query lacks a filter, the rehearsal detects this and shows
  the records.

The proof reads Spark's state with the data source of Spark 4. Spark 3.5 has no such data source.
There, a query resumes from a copy of the checkpoint location, reads no records, and emits all of
its state.
"""


def main(names: list[str]) -> None:
    for name in names or sorted({minor_version(VENV_RELEASE), *environments()}):
        cells = measure(name, _TESTS, ROW_TESTS)
        # Another process may have tested a different version in the meantime.
        measured = {**{line.line: line for line in read_results(RESULTS)}, name: cells}
        lines = [measured[line] for line in sorted(measured)]
        text = json.dumps([asdict(line) for line in lines], indent=2)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        TABLE.write_text(table(lines, ROW_TESTS, TEXT), encoding="utf-8")
    if any("failed" in line.cells.values() for line in read_results(RESULTS)):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
