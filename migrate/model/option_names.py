"""Write an option in a message as the reader of the message would write it.

A message contains ``option("on_expired", "earliest")`` instead of literal text such as
``--on-expired``. The command line shows ``--on-expired earliest``, a Python caller reads
``on_expired="earliest"``, and the author of a spec reads ``move.on-expired: earliest``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any

Value = str | int | bool | Enum | Mapping[str, str] | None
# Writes an option, given the name of its Python argument and its value; without a value, writes
# only the name.
Notation = Callable[[str, Value], str]

# The options whose flag is not derived from the name.
_FLAGS = {
    "all_": "--all",
    "from_side": "--from",
    "kafka_properties": "-X",
    "spec": "SPEC",
    "stopped_at_ms": "--stopped-at",
    "ttl_ms": "--ttl",
}
# The flags of the options that connect to Kafka, by the names of their arguments. A suggested
# command repeats their values, but not the values of ``-X``, which may be secrets.
CONNECTION_FLAGS = {
    "bootstrap_servers": "-b",
    "kafka_config": "--kafka-config",
    "to_bootstrap_servers": "--to-bootstrap-servers",
    "to_kafka_config": "--to-kafka-config",
}
PROPERTIES = " -X …"
# The options that exist only on the command line, not as arguments of Python functions.
_FLAGS_ONLY = ("all_", "limit", "plan_out", "query_file", "spark_version", "wide")


def python_call(name: str, value: Value = None) -> str:
    """Return an option as a keyword argument, such as ``on_expired="earliest"``."""
    if name in _FLAGS_ONLY:
        return command_line(name, value)
    if value is None:
        return name
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        import json  # imported here; few commands need it

        return f"{name}={json.dumps(value, ensure_ascii=False)}"
    return f"{name}={value!r}"


def command_line(name: str, value: Value = None) -> str:
    """Return an option as a flag, such as ``--on-expired earliest``."""
    flag = _FLAGS.get(name) or "--" + name.replace("_", "-")
    if value is None or value is True:
        return flag
    return f"{flag} {_text(value)}"


def spec_keys(keys: Mapping[str, str], otherwise: Notation) -> Notation:
    """Return the notation for options in a spec, such as ``move.on-expired: earliest``.

    Args:
        keys: the key of each option.
        otherwise: the notation of the options without a key.
    """

    def notation(name: str, value: Value) -> str:
        key = keys.get(name)
        if key is None:
            return otherwise(name, value)
        if value is True:
            return f"{key}: true"
        if isinstance(value, Mapping):
            pairs = ", ".join(f"{old}: {new}" for old, new in value.items())
            return f"{key}: {{{pairs}}}"
        return key if value is None else f"{key}: {_text(value)}"

    return notation


def _text(value: Value) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={text}" for key, text in value.items())
    return str(value.value if isinstance(value, Enum) else value)


# The notation of the process. It is not a context variable, because messages are also created in
# threads, which do not inherit context variables.
_of_process: Notation = python_call
_of_call: ContextVar[Notation | None] = ContextVar("notation", default=None)
# The options that the current call sets itself, so the user cannot set them.
_chosen_by_call: ContextVar[Collection[str]] = ContextVar("chosen", default=())


def option(name: str, value: Value = None) -> str:
    """Return an option, with a value if there is one, as the reader of a message would write it.

    Args:
        name: the name of the Python argument.
        value: the value to pass, or a placeholder for it, such as ``"HOST:PORT"``; None to return
            only the option's name.
    """
    return notation()(name, value)


def flag_words(flags: Mapping[str, str], arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the command-line arguments for the options that have a value.

    Args:
        flags: the option's name on the command line, by the name of its argument.
        arguments: the values, by the names of the arguments.
    """
    for name, flag in flags.items():
        if value := arguments.get(name):
            yield flag
            if value is not True:
                yield os.fspath(value)


def can_set(name: str) -> bool:
    """Return whether the user can set an option; the current call sets some options itself."""
    return name not in _chosen_by_call.get()


def notation() -> Notation:
    """Return the current notation of messages."""
    return _of_call.get() or _of_process


@contextmanager
def process_notation(notation: Notation) -> Iterator[None]:
    """While the block runs, use ``notation`` for the options in all messages of this process.

    To use the same notation in worker processes, pass a function that can be pickled, such as
    ``command_line``.
    """
    global _of_process
    before, _of_process = _of_process, notation
    try:
        yield
    finally:
        _of_process = before


def command_line_notation() -> AbstractContextManager[None]:
    """Write the options in all messages of this process as flags while the block runs."""
    return process_notation(command_line)


@contextmanager
def spec_notation(keys: Mapping[str, str], chosen: Collection[str] = ()) -> Iterator[None]:
    """Write the options in this call's messages as keys of a spec, if they have a key.

    ``chosen`` are the options that the user cannot set, because the call chooses them itself.
    """
    token, chosen_token = _of_call.set(spec_keys(keys, notation())), _chosen_by_call.set(chosen)
    try:
        yield
    finally:
        _of_call.reset(token)
        _chosen_by_call.reset(chosen_token)
