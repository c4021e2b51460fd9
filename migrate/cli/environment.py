"""Kafka by the environment, where no option names it."""

from __future__ import annotations

import os
from typing import TypeVar

from migrate.cli.telling import tell
from migrate.commands.arguments import Kafka, KafkaArguments
from migrate.options import accept
from migrate.storage.files import local_path

# An option wins over the environment, and the environment is told: it must not pass unnoticed that
# a command asks a broker nobody named just now.
_SERVERS_VARIABLE, _CONFIG_VARIABLE = "MIGRATE_BOOTSTRAP_SERVERS", "MIGRATE_KAFKA_CONFIG"

_Arguments = TypeVar("_Arguments", bound=KafkaArguments)


def with_environment(arguments: _Arguments) -> _Arguments:
    """How to reach Kafka by the options, else by the environment, which is told then.

    Raises:
        ConfigError: a file of properties cannot be read.
    """
    from migrate.kafka_config import check_servers

    given = Kafka(**accept(Kafka, arguments))
    its_servers = os.environ.get(_SERVERS_VARIABLE) if given.bootstrap_servers is None else None
    its_file = os.environ.get(_CONFIG_VARIABLE) if given.kafka_config is None else None
    if its_servers and not (given.names_brokers or _names_brokers(its_file)):
        check_servers(_SERVERS_VARIABLE, its_servers)
        tell(f"{_SERVERS_VARIABLE} names the brokers: {its_servers}")
        arguments["bootstrap_servers"] = its_servers
    # How to log in is no reason to ask a broker: it takes one that is named.
    named = arguments.get("bootstrap_servers") is not None or given.names_brokers
    if its_file and (named or _names_brokers(its_file)):
        tell(f"{_CONFIG_VARIABLE} names the file of Kafka properties: {its_file}")
        arguments["kafka_config"] = local_path(its_file)
    return arguments


def _names_brokers(its_file: str | None) -> bool:
    from migrate.kafka_config import ConfigError, names_brokers

    if not its_file:
        return False
    try:
        return names_brokers(local_path(its_file), ())
    except ConfigError as error:
        raise ConfigError(f"{_CONFIG_VARIABLE}: {error}") from error
