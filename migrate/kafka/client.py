"""An authenticated admin client, and its errors."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from functools import cached_property
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from migrate.kafka.config import (
    SECURITY_SETTINGS,
    ConfigError,
    KafkaConfig,
    redact_secrets,
    redact_values,
)
from migrate.kafka.config.java_client import with_java_names
from migrate.kafka.config.key_stores import unreadable_file
from migrate.kafka.group_offsets import GroupOffsets
from migrate.model.catalog import (
    AUTHENTICATION_FAILED,
    BROKER_TIMEOUT,
    BROKER_TIMEOUT_WITH_REASON,
    CONNECTION_CLOSED,
    CREDENTIALS_WITH_QUOTES,
    DESCRIBE_DENIED,
    KAFKA_REQUEST_FAILED,
    NO_BROKER,
    NO_SASL_AT_LISTENER,
    TLS_FAILED,
    TLS_VERIFICATION_FAILED,
)
from migrate.model.cluster_snapshot import BrokerError
from migrate.model.wording import hint

# The time limit for a request in seconds. A healthy cluster answers within milliseconds; during a
# leader election, or over a slow link, an answer takes a few seconds.
REQUEST_TIMEOUT = 15.0

# This logger discards librdkafka's messages, which would repeatedly report a missing broker on
# stderr. BrokerError reports it once.
_QUIET = logging.getLogger("migrate.kafka.librdkafka")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False

_DEFAULTS = {
    # By default, librdkafka 2.16 drops its list of brokers when its last connection ends
    # ("rebootstrap"). A request at that moment and all later requests then hang, and a librdkafka
    # thread spins.
    "metadata.recovery.strategy": "none",
    # A restarting broker is back within seconds, so reconnect at least once a second.
    "reconnect.backoff.max.ms": "1000",
}

# confluent-kafka expects Python objects as the values of these properties. If a value is a string,
# confluent-kafka ignores it, or fails.
_PYTHON_ONLY_SETTINGS = frozenset({"logger", "default.topic.config"})

_NO_SUCH_PROPERTY = re.compile('No such configuration property: "(.+)"')

# The resource to which Kafka denied access, by error code. Reading requires the DESCRIBE permission
# (Kafka's AclOperation). Commits and deletions require other permissions and have their own
# messages.
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

# If no address has had a listener for this number of seconds, an error is raised. A broker restart
# takes longer than this, so a restart also causes the error.
_NO_LISTENER_SECONDS = 1.5
_NO_LISTENER = re.compile("Connection refused|Failed to resolve")

# The number of seconds between polls for connection errors during authentication.
_POLL_INTERVAL = 0.05
# A value that contains an unsubstituted variable (``${PASSWORD}``), or is enclosed in quotes.
_UNREAD = re.compile(r"""\$\{.*\}|^(["']).*\1$""")
# The parts of a librdkafka error message that are removed: the address of the connection, and the
# time until the connection failed.
_CONNECTION = re.compile(r"^\S+://\S+: |\s*\(after (?:[^()]|\([^()]*\))*\)$")


class Connection:
    """An authenticated admin client.

    Attributes:
        settings: ``config`` together with this module's defaults.
        timeout: the number of seconds for each request.

    Raises:
        BrokerError: no broker answered in time, or the authentication failed.
        ConfigError: librdkafka does not accept the properties.
    """

    def __init__(self, config: KafkaConfig) -> None:
        self.config = config
        self.timeout = REQUEST_TIMEOUT
        self._servers = str(config.get("bootstrap.servers", ""))
        # Connection errors; the error_cb callback appends them during poll(). The callback must not
        # refer to this object, because the object and the client would then form a reference cycle.
        # The garbage collector might destroy the cycle in one of librdkafka's own threads, and
        # librdkafka would then abort the process.
        self._failures: list[KafkaError] = []
        for name in sorted(_PYTHON_ONLY_SETTINGS & config.keys()):
            raise ConfigError(f'invalid Kafka configuration: property "{name}" does not exist')
        self.settings: dict[str, Any] = {**_DEFAULTS, **config}
        try:
            settings: dict[str, Any] = {"error_cb": self._failures.append, **self.settings}
            self.admin = AdminClient(settings, logger=_QUIET)
        except (KafkaException, TypeError, ValueError) as error:
            raise _config_error(_reason(error), config) from None
        self._log_in()

    def _log_in(self) -> None:
        """Wait until a broker has authenticated the client.

        librdkafka retries a failed authentication forever. Without this method, a wrong password
        would look like a broker that does not answer.
        """
        # This request requires no permission.
        answer = self.admin.describe_cluster(request_timeout=self.timeout)
        began = time.monotonic()
        while not wait([answer], timeout=_POLL_INTERVAL).done:
            refusal = self._refusal()
            if refusal is None and time.monotonic() - began > _NO_LISTENER_SECONDS:
                refusal = self._no_listener()
            if refusal is not None:
                try:
                    raise refusal
                finally:
                    # Without ``del``, the error, its traceback, and this frame would form a
                    # reference cycle that keeps the client alive (see ``answer_of``).
                    del refusal
        self.wait("the cluster", answer)
        # Connection errors that occurred before authentication do not explain later errors.
        self._failures.clear()

    def _refusal(self) -> BrokerError | None:
        """If all brokers are down, return the last authentication or TLS error, if there is one.

        Otherwise, return None.
        """
        self.admin.poll(0)
        if all(failure.code() != KafkaError._ALL_BROKERS_DOWN for failure in self._failures):
            return None
        for failure in reversed(self._failures):
            text = failure.str()
            reason = self._reason(failure)
            if failure.code() == KafkaError._AUTHENTICATION:
                # A listener without SASL answers with this text.
                if "current SASL state" in text:
                    return BrokerError(NO_SASL_AT_LISTENER(servers=self._servers, reason=reason))
                if unread := self._values_taken_literally():
                    return BrokerError(
                        CREDENTIALS_WITH_QUOTES(
                            servers=self._servers, reason=reason, properties=unread
                        )
                    )
                return BrokerError(AUTHENTICATION_FAILED(servers=self._servers, reason=reason))
            if "certificate verify failed" in text:
                return BrokerError(TLS_VERIFICATION_FAILED(servers=self._servers, reason=reason))
            # A TLS alert from the broker, such as for a missing client certificate, lacks the _SSL
            # code.
            if failure.code() == KafkaError._SSL or "SSL routines:" in text:
                return BrokerError(TLS_FAILED(servers=self._servers, reason=reason))
        return None

    def _values_taken_literally(self) -> list[str]:
        """Return the names of SASL properties whose values are quoted or contain a variable."""
        return [
            name
            for name, value in self.config.items()
            if name.startswith("sasl.") and _UNREAD.search(str(value))
        ]

    def _no_listener(self) -> BrokerError | None:
        """Return an error if all addresses were tried, and none of them can belong to a broker.

        Otherwise, return None.
        """
        failures = [
            failure for failure in self._failures if failure.code() != KafkaError._ALL_BROKERS_DOWN
        ]
        if len(failures) == len(self._failures):
            return None  # librdkafka has not tried all addresses yet
        if not failures:  # librdkafka reports no error if the server closes a connection
            protocol = self.config.get("security.protocol", "PLAINTEXT")
            return BrokerError(CONNECTION_CLOSED(servers=self._servers, protocol=protocol))
        if not all(_NO_LISTENER.search(failure.str()) for failure in failures):
            return None
        return BrokerError(NO_BROKER(servers=self._servers, reason=self._last_failure()))

    def _last_failure(self) -> str:
        """Return the last connection error, or an empty string."""
        for failure in reversed(self._failures):
            if failure.code() != KafkaError._ALL_BROKERS_DOWN:
                return self._reason(failure)
        return ""

    def _reason(self, failure: KafkaError) -> str:
        return redact_secrets(_CONNECTION.sub("", failure.str()), self.config)

    @cached_property
    def offsets(self) -> GroupOffsets:
        """A client for the committed offsets of groups; it connects at its first request."""
        return GroupOffsets(self.settings, self.timeout)

    def topics(self) -> list[str]:
        """Return the topics that this user is allowed to see.

        Raises:
            BrokerError: the request failed.
        """
        try:
            return list(self.admin.list_topics(timeout=self.timeout).topics)
        except KafkaException as error:
            raise self.error("the topics", error) from error

    def partitions(self, topic: str) -> list[int]:
        """Return a topic's partition numbers; empty if the topic does not exist.

        Raises:
            BrokerError: the request failed.
        """
        try:
            topics = self.admin.list_topics(topic, timeout=self.timeout).topics
        except KafkaException as error:
            raise self.error(f"topic {topic}", error) from error
        return sorted(topics[topic].partitions) if topic in topics else []

    def consumer(self, settings: Mapping[str, Any]) -> Consumer:
        """Return a consumer that neither joins a group nor commits.

        At the end of a partition, the consumer returns a message with a ``_PARTITION_EOF`` error.
        """
        own_settings = {
            "group.id": "flink-offset-migrate",  # librdkafka requires a group ID
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
        return Consumer({**self.settings, **own_settings, **settings}, logger=_QUIET)

    def wait(self, what: str, future: Future[Any]) -> Any:
        """Wait for the answer to a request, and return the answer.

        Raises:
            BrokerError: the request failed.
        """
        try:
            return answer_of(future)
        except KafkaException as error:
            raise self.error(what, error) from error

    def error(self, what: str, error: KafkaException) -> BrokerError:
        """Return the BrokerError for a failed request.

        ``what`` is the subject of the request, such as ``the cluster``, ``group NAME``, or
        ``TOPIC-PARTITION``.
        """
        code = kafka_error(error).code()
        if code in _UNREACHABLE:
            return self._refusal() or self._no_answer()
        if denied := _DENIED.get(code):
            # A request about a group can be denied because of a topic. To describe a group that
            # uses the `consumer` protocol, a user also needs DESCRIBE on the topics of the group's
            # members.
            to = what if what.startswith(denied) else f"each {denied} of {what}"
            return BrokerError(DESCRIBE_DENIED(subject=what, resource=to))
        reason = redact_secrets(_reason(error), self.config)
        return BrokerError(KAFKA_REQUEST_FAILED(subject=what, reason=reason))

    def _no_answer(self) -> BrokerError:
        seconds = round(self.timeout)
        if reason := self._last_failure():
            return BrokerError(
                BROKER_TIMEOUT_WITH_REASON(servers=self._servers, seconds=seconds, reason=reason)
            )
        return BrokerError(BROKER_TIMEOUT(servers=self._servers, seconds=seconds))


def answer_of(future: Future[Any]) -> Any:
    """Return the answer to a request.

    ``Future.result`` raises the exception object that the future stores. The traceback of this
    object then refers to the callers' frames and therefore to the future. This reference cycle
    keeps the client and its threads alive until the garbage collector runs, possibly in one of
    librdkafka's own threads (see ``Connection.__init__``). This function raises a different object.

    Raises:
        KafkaException: the request failed.
    """
    error = future.exception()
    if isinstance(error, KafkaException):
        raise KafkaException(*error.args)
    return future.result()


def _config_error(reason: str, config: KafkaConfig) -> ConfigError:
    if "No provider for SASL mechanism GSSAPI" in reason:
        return ConfigError(
            "sasl.mechanism is GSSAPI (Kerberos), which the wheels of confluent-kafka do not "
            "support; use a different listener, or build confluent-kafka with a librdkafka that "
            "includes Cyrus SASL (docs/how-to/secured-kafka.md#kerberos), and set the keytab and "
            "the principal in sasl.jaas.config, or in sasl.kerberos.keytab and "
            "sasl.kerberos.principal"
        )
    if "mac verify failure" in reason:
        store = config["ssl.keystore.location"]
        return ConfigError(f"ssl.keystore.password does not open {store}")
    for name, path in config.items():
        is_file = name.endswith(".location") and f"{name} failed: " in reason
        if is_file and not os.path.exists(str(path)):
            return unreadable_file(name, str(path), "no such file")
    reason = redact_values(reason, config)
    unknown = _NO_SUCH_PROPERTY.search(reason)
    reason = with_java_names(reason) + (hint(unknown[1], SECURITY_SETTINGS) if unknown else "")
    return ConfigError(f"invalid Kafka configuration: {reason}")


def kafka_error(error: KafkaException) -> KafkaError:
    """Return the KafkaError in an exception."""
    own_error: KafkaError = error.args[0]
    return own_error


def _reason(error: KafkaException | TypeError | ValueError) -> str:
    first = error.args[0] if error.args else error
    text = first.str() if isinstance(first, KafkaError) else str(first)
    return " ".join(text.split())
