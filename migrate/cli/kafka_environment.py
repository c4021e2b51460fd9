"""Environment variables for the brokers, the Kafka properties file, and Flink's address."""

from __future__ import annotations

import os
from typing import TypeVar

from migrate.model.log import log
from migrate.moves.options import KafkaArguments, MoveArguments, kafka
from migrate.storage.uris import local_path

# Command-line options take precedence over these variables, and a Kafka properties file that
# specifies brokers takes precedence over MIGRATE_BOOTSTRAP_SERVERS. A log message names each
# variable that is used, because the user may not expect that a broker is queried.
_SERVERS_VARIABLE, _CONFIG_VARIABLE = "MIGRATE_BOOTSTRAP_SERVERS", "MIGRATE_KAFKA_CONFIG"
_FLINK_VARIABLE = "MIGRATE_FLINK_REST"

_Arguments = TypeVar("_Arguments", bound=KafkaArguments)


def with_environment(arguments: _Arguments) -> _Arguments:
    """Use the values of environment variables for options that are not set.

    Raises:
        UsageError: the Kafka properties file cannot be read, or the brokers are not valid.
    """
    kafka_options = kafka(arguments, MoveArguments)
    servers = None if kafka_options.names_brokers else os.environ.get(_SERVERS_VARIABLE)
    file = os.environ.get(_CONFIG_VARIABLE) if kafka_options.kafka_config is None else None
    if servers and not _names_brokers(file):
        from migrate.kafka.config import check_servers

        check_servers(_SERVERS_VARIABLE, servers)
        log.info(f"using the brokers from {_SERVERS_VARIABLE}: {servers}")
        arguments["bootstrap_servers"] = servers
    # A command with a Kafka properties file queries a broker, and fails if no brokers are
    # specified. Therefore, use the file from the environment only if brokers are specified: in the
    # file itself, in MIGRATE_BOOTSTRAP_SERVERS, or by an option.
    has_brokers = arguments.get("bootstrap_servers") is not None or kafka_options.names_brokers
    if file and (has_brokers or _names_brokers(file)):
        log.info(f"using the Kafka properties from {_CONFIG_VARIABLE}: {file}")
        arguments["kafka_config"] = local_path(file)
    return arguments


def with_move_environment(arguments: MoveArguments) -> MoveArguments:
    """Add the values of environment variables, including the one for the Flink JobManager.

    Raises:
        UsageError: as in ``with_environment`` and ``with_flink_environment``.
    """
    address = with_flink_environment(arguments.get("flink_rest"))
    if address is not None:
        arguments["flink_rest"] = address
    return with_environment(arguments)


def with_flink_environment(flink_rest: str | None) -> str | None:
    """Return the JobManager's address, from the environment variable if no address is passed.

    Raises:
        UsageError: the value of the environment variable is not an address.
    """
    address = os.environ.get(_FLINK_VARIABLE)
    if not address or flink_rest is not None:
        return flink_rest
    from migrate.inputs.flink.rest_client import check_address

    check_address(address, _FLINK_VARIABLE)
    log.info(f"using the address of Flink's JobManager from {_FLINK_VARIABLE}")
    return address


def _names_brokers(file: str | None) -> bool:
    from migrate.kafka.config import ConfigError, names_brokers

    if not file:
        return False
    try:
        return names_brokers(local_path(file), ())
    except ConfigError as error:
        raise ConfigError(f"{_CONFIG_VARIABLE}: {error}") from error
