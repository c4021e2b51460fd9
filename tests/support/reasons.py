"""The reasons of errors, as data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from migrate.model.errors import MigrateError, Refused
from migrate.model.message import Message


@contextmanager
def refused(*codes: str) -> Iterator[pytest.ExceptionInfo[Refused]]:
    """Assert that the ``with`` block is refused for these reasons, in any order.

    Yield the information about the refusal, which is complete after the block.
    """
    with pytest.raises(Refused) as found:
        yield found
    assert sorted(found.value.codes) == sorted(codes), found.value


def message_of(error: MigrateError) -> Message:
    """Return the only reason of an error, with its code and facts."""
    (message,) = error.reasons
    assert isinstance(message, Message)
    return message
