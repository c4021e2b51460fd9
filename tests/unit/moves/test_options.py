"""The options of the connection to Kafka."""

from __future__ import annotations

import logging

import pytest

from migrate.model.option_names import command_line_notation
from migrate.moves.options import Kafka


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        ("one.example", ["one.example"]),
        ("a.example:9093, b.example", ["b.example"]),
        ("c.example:9092", []),
        ("SASL_SSL://d.example:9093", []),
    ],
)
def test_address_without_port_is_reported_once(
    servers: str, addresses: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: The Kafka client used port 9092 without a message."""
    caplog.set_level(logging.INFO, "migrate")
    with command_line_notation():
        for _ in range(2):
            Kafka(servers).config()
    assert caplog.messages == [
        f"note: --bootstrap-servers {address} has no port, so the Kafka client uses port 9092"
        for address in addresses
    ]
