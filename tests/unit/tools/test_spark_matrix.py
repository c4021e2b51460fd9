"""Compare the matrices in the docs with the results for the locked Spark versions and brokers."""

from __future__ import annotations

from tests.support import broker_matrix, state_matrix
from tests.support.spark_matrix import ROW_TESTS, TABLE, read_results, table
from tests.support.spark_versions import VENV_RELEASE, environments, minor_version


def test_spark_matrix_page_matches_results() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(read_results())


def test_results_of_each_spark_version_are_from_its_locked_release() -> None:
    measured = {line.line: line for line in read_results()}
    assert measured.keys() == {minor_version(VENV_RELEASE), *environments()}
    for name, environment in environments().items():
        assert measured[name].version == environment.version
    for line in measured.values():
        assert line.cells.keys() == set(ROW_TESTS.values()) or line.not_run


def test_state_matrix_page_matches_results() -> None:
    measured = read_results(state_matrix.RESULTS)
    page = table(measured, state_matrix.ROW_TESTS, state_matrix.TEXT)
    assert state_matrix.TABLE.read_text(encoding="utf-8") == page
    assert {line.line for line in measured} >= {"3.5", "4.0", "4.1", "4.2", "4.3"}
    for line in measured:
        assert line.cells.keys() == set(state_matrix.ROW_TESTS.values()) or line.not_run


def test_broker_matrix_page_matches_results() -> None:
    measured = broker_matrix.read_results()
    assert broker_matrix.TABLE.read_text(encoding="utf-8") == broker_matrix.table(measured)
    assert [row.release for row in measured] == broker_matrix.releases()
    for row in measured:
        assert row.cells.keys() == set(broker_matrix.ROW_TESTS.values())
