"""State that Flink's Scala API wrote is refused by name, as a value and as a key."""

from __future__ import annotations

from pathlib import Path

import pytest

import migrate
from decoder import DecodeError
from tests.support.stateful_job import run_case_class_job

pytestmark = pytest.mark.integration

_SAYS = "case classes, options and collections of Scala are not read here"


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_case_class_job(tmp_path_factory.mktemp("case-classes"))


def test_a_case_class_is_refused_as_a_value(savepoint: Path) -> None:
    states = {state.name: state for state in migrate.keyed_states(savepoint).states}
    assert states["number"].readable and not states["pair"].readable
    reason = states["pair"].reason or ""
    assert "typeutils.ScalaCaseClassSerializerSnapshot is of Flink's Scala API" in reason
    with pytest.raises(DecodeError, match=_SAYS):
        next(migrate.read_state(savepoint, operator="value", state="pair"))
    # What stands before it is read.
    numbers = list(migrate.read_state(savepoint, operator="value", state="number"))
    assert sum(batch.num_rows for batch in numbers) == 4


def test_a_case_class_is_refused_as_a_key(savepoint: Path) -> None:
    (unread,) = (
        operator
        for operator in migrate.keyed_states(savepoint).unread
        if operator.operator_id
        not in {state.operator_id for state in migrate.keyed_states(savepoint).states}
    )
    assert _SAYS in str(unread.error)
    with pytest.raises(DecodeError, match=_SAYS):
        next(migrate.read_state(savepoint, operator="key", state="number"))
