"""Find the names of queue states in Flink's own classes."""

from __future__ import annotations

import zipfile

import pytest

from migrate.inputs.flink.findings.keyed_queues import STATE_NAMES
from tests.support.jars import classpath

pytestmark = pytest.mark.integration

_CLASSES = {
    "_keyed_async_wait_operator_state_": "TableKeyedAsyncWaitOperator",
    "_delta_join_operator_async_wait_state_": "join/deltajoin/StreamingDeltaJoinOperator",
}


def test_state_names_of_waiting_records_occur_in_flinks_operator_classes() -> None:
    """``migrate`` recognizes records that wait in an asynchronous operator by these state names."""
    (jar,) = (path for path in classpath("flink-2.2-table") if "flink-table-runtime" in path.name)
    assert _CLASSES.keys() == STATE_NAMES
    with zipfile.ZipFile(jar) as classes:
        for name, owner in _CLASSES.items():
            path = f"org/apache/flink/table/runtime/operators/{owner}.class"
            assert name.encode() in classes.read(path), name
