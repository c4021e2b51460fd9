"""Read and write a consumer group's committed offsets exactly, with librdkafka's C API.

``confluent_kafka`` treats the metadata of a committed offset as a C string. It reads past the end
of the metadata, and it writes the terminating NUL as part of the metadata (``c_part_to_py`` and
``py_to_c_parts`` @ confluent-kafka 2.16.1). The C API of the same librdkafka provides the length
(``rd_kafka_topic_partition_t.metadata_size``), and it can remove individual offsets
(``rd_kafka_DeleteConsumerGroupOffsets``). This module calls the C API with ctypes, in a separate
client with the same properties.

The functions and structures are part of librdkafka's public ABI (``rdkafka.h`` @ 2.10 to 2.16).
"""

from __future__ import annotations

import ctypes
import time
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from confluent_kafka import KafkaError, KafkaException, cimpl

from migrate.kafka.config import KafkaConfig, TokenCallback
from migrate.model.cluster_snapshot import Committed
from migrate.model.errors import UsageError
from migrate.model.positions import TopicPartition

# RecordBatch.NO_PARTITION_LEADER_EPOCH @ kafka-clients 4.1.1
_NO_EPOCH = -1
_PRODUCER = 0  # rd_kafka_type_t; confluent_kafka's AdminClient uses the same type
_ERROR_BYTES = 512
# If no broker answers, librdkafka reports an error at the end of the request's timeout. On a busy
# machine, librdkafka's threads may need these additional seconds for the report.
_ANSWER_MARGIN = 30.0

# Kafka sends metadata as UTF-8. A broker that is not Apache Kafka may store other bytes; this error
# handler preserves them.
_ENCODING = ("utf-8", "surrogateescape")


class _Partition(ctypes.Structure):
    """``rd_kafka_topic_partition_t``."""

    _fields_ = (
        ("topic", ctypes.c_char_p),
        ("partition", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("metadata", ctypes.c_void_p),
        ("metadata_size", ctypes.c_size_t),
        ("opaque", ctypes.c_void_p),
        ("err", ctypes.c_int),
        ("private", ctypes.c_void_p),
    )


class _PartitionList(ctypes.Structure):
    """``rd_kafka_topic_partition_list_t``."""

    _fields_ = (
        ("cnt", ctypes.c_int),
        ("size", ctypes.c_int),
        ("elems", ctypes.POINTER(_Partition)),
    )


_Pointer = ctypes.c_void_p
_Text = ctypes.c_char_p
_List = ctypes.POINTER(_PartitionList)
_Element = ctypes.POINTER(_Partition)
_TokenRefresh = ctypes.CFUNCTYPE(None, _Pointer, _Text, _Pointer)
# The arguments of a request: the client, the address of one argument, a count, the options, and a
# queue.
_REQUEST = [_Pointer, ctypes.POINTER(_Pointer), ctypes.c_size_t, _Pointer, _Pointer]
_GROUPS = [_Pointer, ctypes.POINTER(ctypes.c_size_t)]

# The result type and the argument types of each function, without the ``rd_kafka_`` prefix.
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "AdminOptions_destroy": (None, [_Pointer]),
    "AdminOptions_new": (_Pointer, [_Pointer, ctypes.c_int]),
    "AdminOptions_set_request_timeout": (
        ctypes.c_int,
        [_Pointer, ctypes.c_int, _Text, ctypes.c_size_t],
    ),
    "AdminOptions_set_require_stable_offsets": (_Pointer, [_Pointer, ctypes.c_int]),
    "conf_destroy": (None, [_Pointer]),
    "conf_enable_sasl_queue": (None, [_Pointer, ctypes.c_int]),
    "conf_new": (_Pointer, []),
    "conf_set": (ctypes.c_int, [_Pointer, _Text, _Text, _Text, ctypes.c_size_t]),
    "conf_set_log_cb": (None, [_Pointer, _Pointer]),
    "conf_set_oauthbearer_token_refresh_cb": (None, [_Pointer, _TokenRefresh]),
    "destroy": (None, [_Pointer]),
    "error_code": (ctypes.c_int, [_Pointer]),
    "error_destroy": (None, [_Pointer]),
    "error_string": (_Text, [_Pointer]),
    "event_destroy": (None, [_Pointer]),
    "event_error": (ctypes.c_int, [_Pointer]),
    "event_error_string": (_Text, [_Pointer]),
    "group_result_error": (_Pointer, [_Pointer]),
    "group_result_partitions": (_List, [_Pointer]),
    "new": (_Pointer, [ctypes.c_int, _Pointer, _Text, ctypes.c_size_t]),
    "oauthbearer_set_token": (
        ctypes.c_int,
        [_Pointer, _Text, ctypes.c_int64, _Text, _Pointer, ctypes.c_size_t, _Text, ctypes.c_size_t],
    ),
    "oauthbearer_set_token_failure": (ctypes.c_int, [_Pointer, _Text]),
    "queue_destroy": (None, [_Pointer]),
    "queue_new": (_Pointer, [_Pointer]),
    "queue_poll": (_Pointer, [_Pointer, ctypes.c_int]),
    "sasl_background_callbacks_enable": (_Pointer, [_Pointer]),
    "topic_partition_get_leader_epoch": (ctypes.c_int32, [_Element]),
    "topic_partition_list_add": (_Element, [_List, _Text, ctypes.c_int32]),
    "topic_partition_list_destroy": (None, [_List]),
    "topic_partition_list_new": (_List, [ctypes.c_int]),
    "topic_partition_set_leader_epoch": (None, [_Element, ctypes.c_int32]),
    **{
        f"{request}{suffix}": signature
        for request in (
            "ListConsumerGroupOffsets",
            "AlterConsumerGroupOffsets",
            "DeleteConsumerGroupOffsets",
        )
        for suffix, signature in (
            ("", (None, _REQUEST)),
            ("_destroy", (None, [_Pointer])),
            ("_new", (_Pointer, [_Text, _List])),
            ("_result_groups", (ctypes.POINTER(_Pointer), _GROUPS)),
        )
    },
    **{
        f"event_{request}_result": (_Pointer, [_Pointer])
        for request in (
            "ListConsumerGroupOffsets",
            "AlterConsumerGroupOffsets",
            "DeleteConsumerGroupOffsets",
        )
    },
}
# rd_kafka_admin_op_t
_OPERATIONS = {
    "DeleteConsumerGroupOffsets": 8,
    "ListConsumerGroupOffsets": 14,
    "AlterConsumerGroupOffsets": 15,
}


@cache
def _library() -> Any:
    """Return the librdkafka that confluent_kafka uses, with the types of its functions.

    Raises:
        UsageError: the functions cannot be called in this build of confluent_kafka.
    """
    try:
        # The module ``cimpl`` depends on librdkafka. On Linux and macOS, the search for a function
        # in a library also includes the library's dependencies.
        library = ctypes.CDLL(cimpl.__file__)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, f"rd_kafka_{name}")
            function.restype, function.argtypes = result, arguments
    except (AttributeError, OSError) as error:
        raise UsageError(
            "this build of confluent-kafka does not export librdkafka's C API; migrate requires "
            "this API to read and write the exact offsets of consumer groups; install "
            "confluent-kafka 2.10 or newer from PyPI, on Linux or macOS"
        ) from error
    return library


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """One partition's result in the answer to a request about a group's offsets.

    Attributes:
        committed: the committed offset; None if the partition has none, or if the request changed
            offsets.
        error: the partition's error, or None.
    """

    committed: Committed | None
    error: KafkaError | None


class GroupOffsets:
    """A client for the committed offsets of consumer groups.

    Each request is sent once. A failed request raises KafkaException.

    Args:
        settings: the librdkafka properties, which an AdminClient must have accepted. ``oauth_cb``
            is the only callback that is used.
        timeout: the number of seconds for each request.

    Raises:
        UsageError: as in ``_library``.
    """

    def __init__(self, settings: KafkaConfig, timeout: float) -> None:
        self._library = library = _library()
        self._timeout = timeout
        message = ctypes.create_string_buffer(_ERROR_BYTES)
        configuration = library.rd_kafka_conf_new()
        library.rd_kafka_conf_set_log_cb(configuration, None)
        for name, value in settings.items():
            if isinstance(value, str) and library.rd_kafka_conf_set(
                configuration, name.encode(), value.encode(), message, _ERROR_BYTES
            ):
                library.rd_kafka_conf_destroy(configuration)
                raise _exception(KafkaError._INVALID_ARG, message.value)
        # The background thread of librdkafka refreshes tokens, including OIDC tokens.
        library.rd_kafka_conf_enable_sasl_queue(configuration, 1)
        token = settings.get("oauth_cb")
        # This reference keeps the callback alive as long as the client.
        self._token_refresh = None
        if token is not None and not isinstance(token, str):
            self._token_refresh = _token_refresh(library, token)
            library.rd_kafka_conf_set_oauthbearer_token_refresh_cb(
                configuration, self._token_refresh
            )
        client = library.rd_kafka_new(_PRODUCER, configuration, message, _ERROR_BYTES)
        if not client:
            library.rd_kafka_conf_destroy(configuration)
            raise _exception(KafkaError._FAIL, message.value)
        self._client = client
        weakref.finalize(self, _destroy, library, client, self._token_refresh)
        code = self._take_error(library.rd_kafka_sasl_background_callbacks_enable(client))
        if code not in (KafkaError.NO_ERROR, KafkaError._NOT_CONFIGURED):  # no token-based SASL
            raise _exception(code, b"no thread for the tokens of SASL")

    def read(self, group: str, *, stable: bool) -> dict[TopicPartition, GroupOffset]:
        """Return the committed offsets of a group (OffsetFetch).

        Args:
            group: the consumer group.
            stable: True to report an error for a partition that has an offset in an open
                transaction.
        """
        return self._request("ListConsumerGroupOffsets", group, None, stable=stable)

    def commit(
        self, group: str, offsets: Mapping[TopicPartition, Committed]
    ) -> dict[TopicPartition, GroupOffset]:
        """Commit offsets with their metadata and leader epochs (OffsetCommit)."""
        return self._request("AlterConsumerGroupOffsets", group, offsets)

    def remove(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, GroupOffset]:
        """Remove the committed offsets of partitions (OffsetDelete, Kafka 2.4 and newer)."""
        return self._request("DeleteConsumerGroupOffsets", group, dict.fromkeys(partitions))

    def _request(
        self,
        operation: str,
        group: str,
        offsets: Mapping[TopicPartition, Committed | None] | None,
        *,
        stable: bool = False,
    ) -> dict[TopicPartition, GroupOffset]:
        library = self._library
        options = library.rd_kafka_AdminOptions_new(self._client, _OPERATIONS[operation])
        # A separate queue ensures that no request gets the late answer to an earlier request.
        queue = library.rd_kafka_queue_new(self._client)
        argument = None
        try:
            milliseconds = round(self._timeout * 1000)
            library.rd_kafka_AdminOptions_set_request_timeout(options, milliseconds, None, 0)
            if stable and (
                code := self._take_error(
                    library.rd_kafka_AdminOptions_set_require_stable_offsets(options, 1)
                )
            ):
                raise _exception(code, b"stable offsets cannot be requested")
            argument = _Pointer(self._argument(operation, group, offsets))
            getattr(library, f"rd_kafka_{operation}")(
                self._client, ctypes.byref(argument), 1, options, queue
            )
            event = self._await_event(queue)
        finally:
            library.rd_kafka_queue_destroy(queue)
            library.rd_kafka_AdminOptions_destroy(options)
            if argument is not None:
                getattr(library, f"rd_kafka_{operation}_destroy")(argument)
        try:
            return self._answer(operation, event)
        finally:
            library.rd_kafka_event_destroy(event)

    def _take_error(self, error: int | None) -> int:
        """Destroy an ``rd_kafka_error_t``, and return its code; return 0 if there is no error."""
        if not error:
            return 0
        code = int(self._library.rd_kafka_error_code(error))
        self._library.rd_kafka_error_destroy(error)
        return code

    def _argument(
        self,
        operation: str,
        group: str,
        offsets: Mapping[TopicPartition, Committed | None] | None,
    ) -> int:
        """Return a new request argument; librdkafka copies the partitions into it."""
        library = self._library
        new = getattr(library, f"rd_kafka_{operation}_new")
        if offsets is None:
            return int(new(group.encode(), None))
        partitions = library.rd_kafka_topic_partition_list_new(len(offsets))
        buffers = []
        try:
            for (topic, number), committed in offsets.items():
                element = library.rd_kafka_topic_partition_list_add(
                    partitions, topic.encode(), number
                )
                if committed is None:
                    continue
                metadata = committed.metadata.encode(*_ENCODING)
                buffer = ctypes.create_string_buffer(metadata, len(metadata) + 1)
                buffers.append(buffer)
                element.contents.offset = committed.next_offset
                element.contents.metadata = ctypes.addressof(buffer)
                element.contents.metadata_size = len(metadata)
                epoch = _NO_EPOCH if committed.leader_epoch is None else committed.leader_epoch
                library.rd_kafka_topic_partition_set_leader_epoch(element, epoch)
            return int(new(group.encode(), partitions))
        finally:
            for index in range(partitions.contents.cnt):
                # Python owns the buffers, so librdkafka must not free them.
                partitions.contents.elems[index].metadata = None
                partitions.contents.elems[index].metadata_size = 0
            library.rd_kafka_topic_partition_list_destroy(partitions)

    def _await_event(self, queue: int) -> int:
        deadline = time.monotonic() + self._timeout + _ANSWER_MARGIN
        while (left := deadline - time.monotonic()) > 0:
            # Wait only briefly each time, so that Ctrl-C takes effect soon.
            event = self._library.rd_kafka_queue_poll(queue, round(min(left, 0.2) * 1000))
            if event:
                return int(event)
        raise _exception(KafkaError._TIMED_OUT, b"librdkafka has not answered")

    def _answer(self, operation: str, event: int) -> dict[TopicPartition, GroupOffset]:
        library = self._library
        if code := library.rd_kafka_event_error(event):
            raise _exception(code, library.rd_kafka_event_error_string(event))
        count = ctypes.c_size_t()
        result = getattr(library, f"rd_kafka_event_{operation}_result")(event)
        groups = getattr(library, f"rd_kafka_{operation}_result_groups")(
            result, ctypes.byref(count)
        )
        if error := library.rd_kafka_group_result_error(groups[0]):
            raise _exception(
                library.rd_kafka_error_code(error), library.rd_kafka_error_string(error)
            )
        partitions = library.rd_kafka_group_result_partitions(groups[0])
        if not partitions:
            return {}
        return dict(
            self._entry(partitions.contents.elems[index])
            for index in range(partitions.contents.cnt)
        )

    def _entry(self, element: _Partition) -> tuple[TopicPartition, GroupOffset]:
        committed = None
        if element.offset >= 0:
            epoch = self._library.rd_kafka_topic_partition_get_leader_epoch(ctypes.byref(element))
            metadata = b""
            if element.metadata:
                metadata = ctypes.string_at(element.metadata, element.metadata_size)
            committed = Committed(
                element.offset, metadata.decode(*_ENCODING), epoch if epoch >= 0 else None
            )
        error = KafkaError(element.err) if element.err else None
        return (element.topic.decode(), element.partition), GroupOffset(committed, error)


def _exception(code: int, reason: bytes | None) -> KafkaException:
    return KafkaException(KafkaError(code, (reason or b"").decode(errors="replace")))


def _token_refresh(library: Any, token: TokenCallback) -> Any:
    """Return the C callback that sets a new token; librdkafka calls it in its own thread."""

    def refresh(client: int, config: bytes | None, _: int) -> None:
        message = ctypes.create_string_buffer(_ERROR_BYTES)
        try:
            value, expires_at = token((config or b"").decode())
        except Exception as error:  # an exception cannot pass through C
            reason = str(error) or type(error).__name__
            library.rd_kafka_oauthbearer_set_token_failure(client, reason.encode())
            return
        if library.rd_kafka_oauthbearer_set_token(
            client, value.encode(), round(expires_at * 1000), b"", None, 0, message, _ERROR_BYTES
        ):
            library.rd_kafka_oauthbearer_set_token_failure(client, message.value)

    return _TokenRefresh(refresh)


def _destroy(library: Any, client: int, _token_refresh: Any) -> None:
    """End a client and its threads; the last argument keeps the token callback alive until then."""
    library.rd_kafka_destroy(client)
