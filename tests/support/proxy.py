"""Run a Kafka broker behind a proxy that can delay or lose requests and answers.

The proxy interprets only the start of each frame in Kafka's protocol. A frame starts with its
length (`i32`). In a request, the api key (`i16`), the api version (`i16`), and the correlation id
(`i32`) follow. In an answer, the correlation id follows.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from pathlib import Path

from tests.support.kafka import Broker, _ProcessNode

_LISTENER = "PROXY"
_CONNECT_SECONDS = 5


class Api(IntEnum):
    """Kinds of requests by api key (org.apache.kafka.common.protocol.ApiKeys)."""

    OFFSET_COMMIT = 8
    DESCRIBE_GROUPS = 15
    DELETE_GROUPS = 42
    OFFSET_DELETE = 47


class Fault(Enum):
    """The fault of a request that a trap catches."""

    CUT = "the connection ends before the broker has the request"
    HOLD = "the request waits until the trap is released, and is then sent to the broker"
    LOSE_ANSWER = "the broker executes the request, and the connection ends before the answer"
    HOLD_ANSWER = "the broker executes the request; the answer waits for the trap's release"


class Trap:
    """A trap for requests of one kind.

    The first `after` requests pass, and the next `times` requests are caught.
    """

    def __init__(self, api: Api, fault: Fault, times: int, after: int) -> None:
        self.api = api
        self.fault = fault
        self.triggered = threading.Event()
        self._passing = after
        self._left = times
        self._released = threading.Event()
        self._lock = threading.Lock()

    def catches(self, api_key: int) -> bool:
        with self._lock:
            if api_key != self.api or self._left == 0:
                return False
            if self._passing:
                self._passing -= 1
                return False
            self._left -= 1
            return True

    def trigger(self) -> None:
        self.triggered.set()

    def hold(self) -> None:
        self.triggered.set()
        self._released.wait()

    def release(self) -> None:
        """Release the delayed requests and answers, and catch no more requests."""
        with self._lock:
            self._left = 0
        self._released.set()


class _Cut(Exception):
    """The connection must be closed."""


class Proxy:
    """The proxy, with its own port, that forwards every connection to the broker."""

    def __init__(self, broker_address: str) -> None:
        host, port = broker_address.split(":")
        self._broker = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._traps: list[Trap] = []
        self._counts: dict[int, int] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def trap(self, api: Api, fault: Fault, times: int = 1, after: int = 0) -> Trap:
        trap = Trap(api, fault, times, after)
        self._traps.append(trap)
        return trap

    def count(self, api: Api) -> int:
        """Return the number of requests of this kind that have reached the proxy."""
        return self._counts.get(api, 0)

    def close(self) -> None:
        """Release every trap, and accept no more connections."""
        for trap in self._traps:
            trap.release()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            try:
                broker = socket.create_connection(self._broker, timeout=_CONNECT_SECONDS)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            _Connection(self, client, broker).start()

    def caught(self, api_key: int) -> Trap | None:
        with self._lock:
            self._counts[api_key] = self._counts.get(api_key, 0) + 1
        return next((trap for trap in self._traps if trap.catches(api_key)), None)


class _Connection:
    def __init__(self, proxy: Proxy, client: socket.socket, broker: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._broker = broker
        # Correlation id -> the trap for the answer.
        self._answers: dict[int, Trap] = {}

    def start(self) -> None:
        for source, to, inspect in (
            (self._client, self._broker, self._request),
            (self._broker, self._client, self._answer),
        ):
            threading.Thread(target=self._pass_on, args=(source, to, inspect), daemon=True).start()

    def _request(self, frame: bytes) -> None:
        api_key, _, correlation_id = struct.unpack_from(">hhi", frame)
        trap = self._proxy.caught(api_key)
        if trap is None:
            return
        match trap.fault:
            case Fault.CUT:
                trap.trigger()
                raise _Cut
            case Fault.HOLD:
                trap.hold()
            case Fault.LOSE_ANSWER | Fault.HOLD_ANSWER:
                self._answers[correlation_id] = trap

    def _answer(self, frame: bytes) -> None:
        (correlation_id,) = struct.unpack_from(">i", frame)
        trap = self._answers.pop(correlation_id, None)
        if trap is None:
            return
        if trap.fault is Fault.LOSE_ANSWER:
            trap.trigger()
            raise _Cut
        trap.hold()

    def _pass_on(
        self, source: socket.socket, to: socket.socket, inspect: Callable[[bytes], None]
    ) -> None:
        try:
            while True:
                size = _receive(source, 4)
                frame = _receive(source, struct.unpack(">i", size)[0])
                inspect(frame)
                to.sendall(size + frame)
        except (_Cut, OSError):
            pass
        finally:
            for end in (source, to):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()


def _receive(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = source.recv(count - len(data))
        if not more:
            raise _Cut
        data += more
    return data


class ProxiedBroker(Broker):
    """A broker as a local process, with a second address behind a proxy.

    Tests use the first address for their own requests. The proxy keeps running when the broker is
    stopped or killed.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(settings, {_LISTENER: "PLAINTEXT"})
        assert isinstance(self._node, _ProcessNode)
        self.proxy = Proxy(self.address(_LISTENER))
        properties: Path = self._node._properties
        advertised = f"PLAINTEXT://{self.bootstrap_servers},{_LISTENER}://{self.proxy.address}"
        # This line replaces an earlier one, so that clients of the proxy keep using the proxy.
        with properties.open("a") as file:
            file.write(f"advertised.listeners={advertised}\n")

    def kill(self) -> None:
        """Kill the broker with SIGKILL, without an orderly shutdown."""
        assert isinstance(self._node, _ProcessNode)
        process = self._node._process
        assert process is not None
        process.kill()
        process.wait()

    def close(self) -> None:
        self.proxy.close()
        super().close()
