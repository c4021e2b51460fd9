"""Messages of a cut-over, with spec keys in place of the options of other commands."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from migrate.extensions.cutover.spec import MoveSpec
from migrate.inputs.flink.rest_client import FlinkRestError
from migrate.model.errors import CutOverStopped, Refused
from migrate.model.log import log

_KEYS = {
    "bootstrap-servers": "kafka.bootstrap-servers",
    "kafka-config": "kafka.config",
    "to-kafka-config": "kafka.to-config",
    "flink-rest": "flink.rest",
    "sink": "sink",
    "sink-writer": "sink-writer",
    "spark-source": "spark-source",
    **{str(field.alias): f"move.{field.alias}" for field in MoveSpec.model_fields.values()},
}
_FLAG = re.compile(r"\badd --((?:allow|one)-[a-z-]+)")
# An option, and the space after it if a value or a placeholder follows.
_OPTION = re.compile(
    r"(?<![\w/.-])--([a-z]+(?:-[a-z]+)*)( (?=(?:earliest|latest|skip|min)\b|[A-Z]{2}))?"
)


def with_spec_keys(text: str) -> str:
    """Return a string with the spec key in place of each option that has one."""

    def flag(match: re.Match[str]) -> str:
        key = _KEYS.get(match[1])
        return f"set {key}: true in the spec" if key is not None else match[0]

    def option(match: re.Match[str]) -> str:
        key = _KEYS.get(match[1])
        return f"{key}{': ' if match[2] else ''}" if key is not None else match[0]

    return _OPTION.sub(option, _FLAG.sub(flag, text))


@contextmanager
def refusals_with_spec_keys() -> Iterator[None]:
    """Replace options with spec keys in an error."""
    try:
        yield
    except (FlinkRestError, Refused, CutOverStopped) as error:
        error.args = (with_spec_keys(str(error)),)
        if not isinstance(error, FlinkRestError):
            error.reasons = tuple(map(with_spec_keys, error.reasons))
        raise


@contextmanager
def each_message_once() -> Iterator[None]:
    """Log each message once, because several steps make the same plan with the same warnings.

    Debug messages are always logged. In warnings, spec keys replace options.
    """
    logged: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        if record.levelno == logging.WARNING:
            record.msg, record.args = with_spec_keys(record.getMessage()), None
        text = record.getMessage()
        if record.levelno < logging.INFO or text not in logged:
            logged.add(text)
            return True
        return False

    log.addFilter(is_new)
    try:
        yield
    finally:
        log.removeFilter(is_new)
