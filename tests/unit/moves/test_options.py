"""The options of the connection to Kafka."""

from __future__ import annotations

import logging

import pytest

from migrate.model.errors import UsageError
from migrate.model.option_names import command_line_notation
from migrate.moves.options import Kafka


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        ("one.example", ["one.example"]),
        ("a.example:9093, b.example", ["b.example"]),
        ("c.example:9092", []),
        ("SASL_SSL://d.example:9093", []),
        ("[::1], [::2]:9092", ["[::1]"]),
    ],
)
def test_address_without_port_triggers_single_note_about_default_port(
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


@pytest.mark.parametrize(
    ("servers", "address", "port"),
    [
        ("one.example:abc", "one.example:abc", "abc"),
        ("a.example:9092, b.example:9x", "b.example:9x", "9x"),
        ("[::1]:abc", "[::1]:abc", "abc"),
        ("SASL_SSL://d.example:abc", "SASL_SSL://d.example:abc", "abc"),
        ("e.example:99999", "e.example:99999", "99999"),
    ],
)
@pytest.mark.parametrize("name", ["bootstrap_servers", "to_bootstrap_servers"])
def test_invalid_port_is_refused_and_triggers_no_note_about_default_port(
    servers: str, address: str, port: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: A note stated that the address had no port, so port 9092 was used."""
    caplog.set_level(logging.INFO, "migrate")
    with command_line_notation(), pytest.raises(UsageError) as refused:
        Kafka(servers, servers_option=name).config()
    flag = f"--{name.replace('_', '-')}"
    assert str(refused.value) == f"{flag} {address}: '{port}' is not a port; pass HOST:PORT"
    assert caplog.messages == []
