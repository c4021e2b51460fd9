"""A client of a cluster that has let us in, and what its failures mean."""

from __future__ import annotations

import logging
import re
import time
from concurrent.futures import Future, wait
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from migrate.kafka.config import ConfigError, KafkaConfig, redact_secrets, without_values
from migrate.model.cluster_snapshot import BrokerError

# How long one request may take, in seconds. A healthy cluster answers in milliseconds; a leader
# election or a slow link takes a few seconds.
REQUEST_TIMEOUT = 15.0

# librdkafka tells a broker that is not there on stderr, again and again; the one line that
# matters is told by BrokerError.
QUIET = logging.getLogger("migrate.kafka.librdkafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False

_DEFAULTS = {
    # librdkafka 2.16 forgets the brokers it knows when its last connection ends ("rebootstrap");
    # where a request is made at that moment, no later one is ever answered, and a thread of it
    # runs hot.
    "metadata.recovery.strategy": "none",
    # A broker that restarts is back in seconds: do not wait for longer than that in between.
    "reconnect.backoff.max.ms": "1000",
}

# What confluent-kafka takes among the properties, as Python objects, and drops or fails of as text.
_NO_PROPERTIES = frozenset({"logger", "default.topic.config"})

# What access was denied to. All that is asked for here needs DESCRIBE (Kafka's AclOperation);
# commits and deletions, which need more, name it themselves.
_DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the cluster",
}
_UNREACHABLE = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
    }
)

# How long brokers may take to listen, in seconds: one that restarts takes longer, and is waited for
# by whoever restarts it.
_NOBODY_THERE = 1.5
_NO_LISTENER = re.compile("Connection refused|Failed to resolve")

# How often librdkafka is asked what went wrong while an answer is out, in seconds.
_POLL_INTERVAL = 0.05
# Where librdkafka's errors say which connection they are of, and when it failed.
_CONNECTION = re.compile(r"^\S+://\S+: |\s*\(after (?:[^()]|\([^()]*\))*\)$")


class Connection:
    """A client that a broker has let in.

    Attributes:
        config: librdkafka's properties.
        settings: the same, with what any client here needs beside them.
        admin: the client; each request is to be given ``timeout``, in seconds.

    Raises:
        BrokerError: no broker answered in time, or none let us in.
        ConfigError: librdkafka does not take the properties.
    """

    def __init__(self, config: KafkaConfig) -> None:
        self.config = config
        self.timeout = REQUEST_TIMEOUT
        self._servers = str(config.get("bootstrap.servers", ""))
        # What went wrong with connections, filled by poll().
        self._failures: list[KafkaError] = []
        for name in sorted(_NO_PROPERTIES & config.keys()):
            raise ConfigError(f'not a usable Kafka configuration: no such property: "{name}"')
        self.settings: dict[str, Any] = {**_DEFAULTS, **config}
        try:
            told: dict[str, Any] = {"error_cb": self._failures.append, **self.settings}
            self.admin = AdminClient(told, logger=QUIET)
        except (KafkaException, TypeError, ValueError) as error:
            reason = without_values(_reason(error), config)
            raise ConfigError(f"not a usable Kafka configuration: {reason}") from None
        self._log_in()

    def _log_in(self) -> None:
        """Wait until a broker has let us in.

        librdkafka tries for ever: a wrong password would look like a broker that does not answer.
        """
        # Needs no permission at all.
        answer = self.admin.describe_cluster(request_timeout=self.timeout)
        began = time.monotonic()
        while not wait([answer], timeout=_POLL_INTERVAL).done:
            refusal = self._refusal()
            if refusal is None and time.monotonic() - began > _NOBODY_THERE:
                refusal = self._nobody_there()
            if refusal is not None:
                raise refusal
        self.wait("the cluster", answer)
        # Let in: what failed on the way there explains nothing that fails later.
        self._failures.clear()

    def _refusal(self) -> BrokerError | None:
        """What the last broker said that did not let us in, where all of them are out of reach."""
        self.admin.poll(0)
        if all(failure.code() != KafkaError._ALL_BROKERS_DOWN for failure in self._failures):
            return None
        for failure in reversed(self._failures):
            text = failure.str()
            reason = self._told(failure)
            if failure.code() == KafkaError._AUTHENTICATION:
                return BrokerError(
                    f"access denied at {self._servers}: {reason}; check the user name, the "
                    "password and the mechanism"
                )
            if "certificate verify failed" in text:
                return BrokerError(
                    f"TLS verification failed at {self._servers}: {reason}; check that "
                    "ssl.ca.location holds the authority, and that the certificate is for this host"
                )
            # An alert of the broker's, as for want of a client certificate, is no _SSL error.
            if failure.code() == KafkaError._SSL or "SSL routines:" in text:
                return BrokerError(f"TLS failed at {self._servers}: {reason}")
        return None

    def _nobody_there(self) -> BrokerError | None:
        """That nothing listens at any of the addresses, or that their names are unknown."""
        failures = [one for one in self._failures if one.code() != KafkaError._ALL_BROKERS_DOWN]
        if len(failures) == len(self._failures):
            return None  # not all of them have been tried
        if not all(_NO_LISTENER.search(failure.str()) for failure in failures):
            return None
        return BrokerError(
            f"no broker answered at {self._servers}{self._last_failure()}; check the address, and "
            "that a broker runs there"
        )

    def _last_failure(self) -> str:
        """What a connection last failed of, in brackets; nothing where librdkafka does not say."""
        for failure in reversed(self._failures):
            if failure.code() != KafkaError._ALL_BROKERS_DOWN:
                return f" ({self._told(failure)})"
        return ""

    def _told(self, failure: KafkaError) -> str:
        return redact_secrets(_CONNECTION.sub("", failure.str()), self.config)

    def wait(self, what: str, future: Future[Any]) -> Any:
        """The answer to a request about ``what``. Raises BrokerError."""
        try:
            return future.result()
        except KafkaException as error:
            raise self.error(what, error) from error

    def error(self, what: str, error: KafkaException) -> BrokerError:
        """Why a request about ``what`` failed: ``the cluster``, ``topic NAME``, ``group NAME``."""
        code = kafka_error(error).code()
        if code in _UNREACHABLE:
            return self._refusal() or BrokerError(
                f"no broker answered at {self._servers} within {self.timeout:.0f} s"
                f"{self._last_failure()}; check the address and security.protocol, and that it is "
                "reachable from here"
            )
        if denied := _DENIED.get(code):
            # Describing a group of the `consumer` protocol takes its members' topics as well.
            to = what if what.startswith(denied) else f"each {denied} of {what}"
            return BrokerError(f"{what}: access denied; grant this user DESCRIBE on {to}")
        return BrokerError(f"{what}: {redact_secrets(_reason(error), self.config)}")


def kafka_error(error: KafkaException) -> KafkaError:
    """Kafka's own error, with its code."""
    found: KafkaError = error.args[0]
    return found


def _reason(error: KafkaException | TypeError | ValueError) -> str:
    first = error.args[0] if error.args else error
    text = first.str() if isinstance(first, KafkaError) else str(first)
    return " ".join(text.split())
