"""How to reach Kafka: options of all commands that ask it, and the environment's part in it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate.cli.telling import tell
from migrate.storage import local_path

if TYPE_CHECKING:
    from migrate.api.arguments import KafkaArguments

kafka_option = partial(typer.Option, rich_help_panel="Kafka", show_default=False)
# An option wins over the environment, and the environment is told: it must not pass unnoticed that
# a command asks a broker nobody named just now.
_SERVERS_VARIABLE, _CONFIG_VARIABLE = "MIGRATE_BOOTSTRAP_SERVERS", "MIGRATE_KAFKA_CONFIG"


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """How to reach Kafka; what the API takes, ``arguments`` makes of it."""

    bootstrap_servers: Annotated[
        str | None,
        kafka_option(
            "--bootstrap-servers",
            "-b",
            metavar="HOST:PORT,…",
            help="The Kafka cluster the job reads: resolves what the state leaves open, finds "
            "partitions the checkpoint does not know, and checks that the offsets are there. "
            f"[env: {_SERVERS_VARIABLE}, where no property names any]",
        ),
    ] = None
    kafka_config: Annotated[
        Path | None,
        kafka_option(
            "--kafka-config",
            metavar="FILE",
            parser=local_path,
            help="Properties of librdkafka, or of a Java client, in Java's syntax: a backslash is "
            f"written twice. [env: {_CONFIG_VARIABLE}]",
        ),
    ] = None
    kafka_property: Annotated[
        list[str] | None, kafka_option("-X", metavar="KEY=VALUE", help="One such property.")
    ] = None

    def arguments(self) -> KafkaArguments:
        """By the options, else by the environment, which is told then.

        Raises:
            ConfigError: a property is not of its form, or a file of them cannot be read.
        """
        servers, file, properties = self.bootstrap_servers, self.kafka_config, self.kafka_property
        given: dict[str, str] = {}
        if properties:
            from migrate.kafka_config.read import read_arguments

            given = read_arguments(properties)
        its_servers = os.environ.get(_SERVERS_VARIABLE) if servers is None else None
        its_file = os.environ.get(_CONFIG_VARIABLE) if file is None else None
        if its_servers and not _names_brokers(file, properties, its_file):
            tell(f"{_SERVERS_VARIABLE} names the brokers: {its_servers}")
            servers = its_servers
        # How to log in is no reason to ask a broker: it takes one that is named.
        if its_file and (servers is not None or _names_brokers(None, properties, its_file)):
            tell(f"{_CONFIG_VARIABLE} names the file of Kafka properties: {its_file}")
            file = Path(its_file)
        return {"bootstrap_servers": servers, "kafka_config": file, "kafka_properties": given}


def _names_brokers(
    file: Path | None, properties: Iterable[str] | None, file_of_the_environment: str | None
) -> bool:
    from migrate.kafka_config import ConfigError, names_brokers

    if names_brokers(file, properties or ()):
        return True
    if not file_of_the_environment:
        return False
    try:
        return names_brokers(Path(file_of_the_environment), ())
    except ConfigError as error:
        raise ConfigError(f"{_CONFIG_VARIABLE}: {error}") from error
