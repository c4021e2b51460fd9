"""Requests to a Flink JobManager's REST API, with limits on time and size."""

from __future__ import annotations

import http
import http.client
import json
import re
import threading
import urllib.error
import urllib.request
from concurrent.futures import Future, wait
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from migrate.model.catalog import (
    FLINK_ERROR,
    FLINK_TIMEOUT,
    FLINK_UNREACHABLE,
    NOT_A_JOB_MANAGER,
)
from migrate.model.errors import ServiceError, UsageError
from migrate.model.option_names import option
from migrate.model.secrets import redact_secrets
from migrate.model.wording import clipped, printable

# The time limit for connecting and for each read, in seconds. This is ample, because a JobManager
# answers from memory, and its answers are small.
TIMEOUT = 10.0
# The time limit for a whole request with its redirects, in seconds.
DEADLINE = 30.0
# The maximum size of an answer in bytes; a service that is not Flink may send any amount of data.
# The job overview has about 500 bytes per job, and a job's details have about 2 KB per vertex.
# Parsed JSON may take twenty times as much memory.
_LARGEST_ANSWER = 16 * 2**20
# The maximum length, in characters, of a string from Flink that a message quotes.
_LONGEST_TEXT = 2_000
# OpenSSL's reasons for an answer that is not TLS; newer versions report the second one.
_ANSWERS_WITHOUT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")

_Answer = TypeVar("_Answer", bound=BaseModel)
# An address without a scheme must have a port, because a bare word could be anything.
# Paths that a user copies together with the address from a browser or from Flink's documentation.
_COPIED_PATH = re.compile(r"/(?:jobs/overview|overview|config)?/*$")
_HOST_AND_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+):[0-9]+/?")


class FlinkRestError(ServiceError):
    """The JobManager did not answer or refused the request, or a different service answered."""


class UnknownToFlink(FlinkRestError):
    """The JobManager answered that the path does not exist (404)."""


def check_address(url: str, variable: str | None = None) -> None:
    """Raise UsageError unless the URL is an http or https address of a host, without a username.

    ``variable`` is the environment variable that contains the URL; None if the option contains it.
    """
    if _is_address(url):
        return
    name = variable or option("flink_rest")
    with_scheme = f"http://{url}"
    # If an address without a scheme is only a host and a port, it contains no password.
    if _HOST_AND_PORT.fullmatch(url) and _is_address(with_scheme):
        raise UsageError(
            f"{name}: {url} is not an address of the form http://host:port; did you mean "
            f"{with_scheme}?"
        )
    # The message does not show the address, because it may contain a password.
    raise UsageError(f"{name}: this is not an address of the form http://host:port")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises ValueError if the port is not a number
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None


def get(url: str, answer_type: type[_Answer], path: str) -> _Answer:
    """Return the answer to ``GET <url><path>``.

    Raises:
        FlinkRestError: the answer does not have the type ``answer_type``, or ``request`` raises it.
        UsageError: as in ``request``.
    """
    try:
        return answer_type.model_validate_json(request(url, path))
    except ValidationError as error:
        raise _not_a_job_manager(url) from error


def request(url: str, path: str, body: object = None) -> bytes:
    """Return the answer to ``GET <url><path>``, or to ``POST`` with a body.

    The body is sent as JSON.

    Raises:
        UsageError: as in ``check_address``.
        UnknownToFlink: the path does not exist on the JobManager.
        FlinkRestError: the JobManager did not answer in time or refused the request; or the answer
            is too large.
    """
    check_address(url)
    parts, address = urlsplit(url), _display_address(url)
    http_request = urllib.request.Request(
        f"{parts.scheme}://{parts.netloc}{_COPIED_PATH.sub('', parts.path)}{path}",
        data=json.dumps(body).encode() if body is not None else None,
        headers={"Content-Type": "application/json"},
    )
    answer: Future[bytes] = Future()
    # TIMEOUT limits each read but not the whole answer, so an answer that arrives byte by byte
    # could take forever. Therefore, a separate thread sends the request, and is abandoned at the
    # deadline.
    threading.Thread(target=_send, args=(http_request, answer), daemon=True).start()
    if not wait([answer], DEADLINE).done:
        raise FlinkRestError(FLINK_TIMEOUT(address=address, seconds=round(DEADLINE)))
    try:
        content = answer.result()
    except urllib.error.HTTPError as error:
        error_type = UnknownToFlink if error.code == http.HTTPStatus.NOT_FOUND else FlinkRestError
        reason = printable_text(str(error.reason))
        raise error_type(FLINK_ERROR(address=address, status=error.code, reason=reason)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = getattr(error, "reason", None) or error
        reason = printable_text(str(getattr(cause, "strerror", None) or cause))
        if getattr(cause, "reason", None) in _ANSWERS_WITHOUT_TLS:
            reason = "the port does not use TLS; use http:// instead of https://"
        raise FlinkRestError(FLINK_UNREACHABLE(address=address, reason=reason)) from error
    if len(content) > _LARGEST_ANSWER:
        raise _not_a_job_manager(url)
    return content


def printable_text(text: str) -> str:
    """Return a string from Flink without secrets or control characters, truncated if long."""
    # The slice may end inside a secret; redact_secrets also hides the start of a secret.
    return clipped(printable(redact_secrets(text[: 10 * _LONGEST_TEXT])), _LONGEST_TEXT)


def _send(http_request: urllib.request.Request, answer: Future[bytes]) -> None:
    """Send a request, and set ``answer`` to the body of the response or to the error."""
    try:
        # Ignore the proxies in the environment, because they are for the internet.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(http_request, timeout=TIMEOUT) as response:
            answer.set_result(response.read(_LARGEST_ANSWER + 1))
    except Exception as error:  # raised again in the calling thread
        answer.set_exception(error)


def _not_a_job_manager(url: str) -> FlinkRestError:
    return FlinkRestError(NOT_A_JOB_MANAGER(address=_display_address(url)))


def _display_address(url: str) -> str:
    """Return the address without its path, which may contain a password."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}"
