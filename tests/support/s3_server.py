"""Run moto's S3 server, and log each request and the size of its answer.

    python -m tests.support.s3_server LOG

The program prints its port. A line of the log is a JSON object: method, path, range, status, bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

_Environment = dict[str, Any]
_Application = Callable[[_Environment, Callable[..., Any]], Iterable[bytes]]


class _Logged:
    """A WSGI application that wraps another, and logs each answer."""

    def __init__(self, application: _Application, log: Path) -> None:
        self._application = application
        self._log = log

    def __call__(
        self, environment: _Environment, start_response: Callable[..., Any]
    ) -> Iterator[bytes]:
        statuses: list[str] = []

        def start(status: str, *arguments: Any) -> Any:
            statuses.append(status)
            return start_response(status, *arguments)

        sent = 0
        for part in self._application(environment, start):
            sent += len(part)
            yield part
        line = {
            "method": environment["REQUEST_METHOD"],
            "path": environment["PATH_INFO"],
            "range": environment.get("HTTP_RANGE"),
            "status": int(statuses[-1].split()[0]),
            "bytes": sent,
        }
        with self._log.open("a") as file:
            file.write(json.dumps(line) + "\n")


class _Quiet(WSGIRequestHandler):
    """A handler that does not log the requests a second time."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None: ...


def _dispatcher() -> _Application:
    """Return S3 and moto's own interface, because moto's dispatcher searches all services."""
    control, s3 = create_backend_app("moto_api"), create_backend_app("s3")

    def dispatch(environment: _Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        is_control = environment["PATH_INFO"].startswith("/moto-api/")
        answer: Iterable[bytes] = (control if is_control else s3)(environment, start_response)
        return answer

    return dispatch


def main() -> None:
    application = _Logged(_dispatcher(), Path(sys.argv[1]))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=_Quiet)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
