"""Check that the test broker is real and survives a restart."""

from __future__ import annotations

import pytest

from tests.support.kafka import Broker

pytestmark = pytest.mark.integration


def test_restarted_test_broker_keeps_data_and_address() -> None:
    with Broker() as broker:
        broker.create_topic("orders", 1)
        assert broker.produce("orders", 0, ["a", "b", "c"]) == [0, 1, 2]
        broker.add_partitions("orders", 2)
        broker.delete_records("orders", 0, before=1)
        broker.commit("group", {("orders", 0): 2})
        address = broker.bootstrap_servers
        broker.stop()
        broker.start()
        assert broker.bootstrap_servers == address
        assert broker.watermarks("orders") == {0: (1, 3), 1: (0, 0)}
        assert broker.records("orders") == [("orders", 0, 1, "b"), ("orders", 0, 2, "c")]
        assert broker.committed("group") == {("orders", 0): 2}
        broker.delete_topic("orders")
        assert broker.partitions("orders") == []
