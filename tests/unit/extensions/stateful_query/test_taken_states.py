"""Select keyed states with ``migrate prime --state``.

Each state moves, is omitted by choice, or is unreadable.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import migrate
from decoder import DecodeError
from decoder.keyed_state import KeyedState
from migrate.extensions.keyed_state.read_state import keyed_states
from migrate.extensions.stateful_query.prime_query import take_states_along
from migrate.extensions.stateful_query.taken_states import StateToPrime, take_states
from migrate.model.positions import SPARK
from migrate.moves.load_inputs import read_input
from migrate.moves.options import move_request
from tests.support.command import migrate as command

GOLDEN = Path(__file__).parents[3] / "golden"
(SAVEPOINT,) = (GOLDEN / "stateful").glob("savepoint-*")
(WITH_TTL,) = (GOLDEN / "state/2.2/kinds/canonical").glob("savepoint-*")
(WITH_KRYO,) = (GOLDEN / "state/2.2/kryo/canonical").glob("savepoint-*")


def _asked(*states: str) -> list[str]:
    return [word for state in states for word in ("--state", state)]


def _run(*arguments: str) -> tuple[int, str, list[str]]:
    done = command("prime", SAVEPOINT, *arguments)
    return done.code, done.stdout, done.stderr.splitlines()


def test_selected_states_move_and_remaining_states_are_listed() -> None:
    code, printed, said = _run(*_asked("totals/total", "sessions/window-contents"))
    assert code == 0
    assert said.count("state totals/total moves to Spark") == 1
    assert said.count("state sessions/window-contents moves to Spark") == 1
    (left,) = (line for line in said if "they are not selected" in line)
    assert left.startswith("warning: 5 states are not migrated, because they are not selected: ")
    assert "windows/window-contents" in left and "merging-window-set" not in left
    compile(printed, "query.py", "exec")
    assert printed.count("prime(") == 3  # two calls and one comment
    # Regression: An empty directory was treated as primed, so the query started without its state.
    assert printed.count(', "commits").is_dir():') == 2


def test_warning_about_unmoved_state_omits_moved_states() -> None:
    def left(said: list[str]) -> str:
        (told,) = (line for line in said if "[state-not-moved]" in line)
        return told

    without = command("to-spark", SAVEPOINT, "--format", "python").stderr.splitlines()
    assert "7 operators have 55745 bytes" in left(without)
    assert "6 operators have 51747 bytes" in left(_run(*_asked("totals/total"))[2])
    assert "5 operators have 41947 bytes" in left(
        _run(*_asked("totals/total", "sessions/window-contents"))[2]
    )


def test_prime_prints_code_without_writing_checkpoint_location(tmp_path: Path) -> None:
    """A location that already exists is refused."""
    target = tmp_path / "checkpoint"
    code, printed, _ = _run(*_asked("totals/total"), "--checkpoint-dir", str(target))
    assert code == 0 and not target.exists()
    assert f'checkpoint_location = "{target}"' in printed
    target.mkdir()
    (target / "metadata").touch()
    assert _run(*_asked("totals/total"), "--checkpoint-dir", str(target))[:2] == (4, "")


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (["--state", "total"], 2, "expected OPERATOR/NAME"),
        (
            ["--state", "nobody/total"],
            2,
            "no operator with keyed state has the ID, name, or uid 'nobody'",
        ),
        (["--state", "totals/totl"], 2, "no keyed state 'totl'"),
        (
            ["--state", "windows/_timer_state/event_window-timers"],
            2,
            "pass the state of the windows",
        ),
        (["--state", "sessions/merging-window-set"], 2, "pass the state of the windows"),
    ],
)
def test_invalid_state_selection_is_refused(
    arguments: list[str], exit_code: int, says: str
) -> None:
    code, printed, said = _run(*arguments)
    assert (code, printed) == (exit_code, "")
    assert says in said[-1]


def test_pending_timers_trigger_warning() -> None:
    """Regression: Pending timers were not reported.

    Timers of moved windows are reported on a separate line, because Spark's watermark replaces
    them.
    """
    said = _run(*_asked("windows/window-contents"))[2]
    assert [line for line in said if line.startswith("timers ")] == [
        "timers windows/_timer_state/event_window-timers are replaced by Spark's watermark, "
        "because it closes the windows of the migrated states"
    ]
    (left,) = (line for line in said if "pending timers" in line)
    assert left == (
        "warning: pending timers are not migrated: sessions/_timer_state/event_window-timers, "
        "hops/_timer_state/event_window-timers [state-left-behind]"
    )
    (kinds,) = (GOLDEN / "state/2.2/kinds/canonical").glob("savepoint-*")
    first = next(one for one in migrate.keyed_states(kinds).states if one.kind.value == "value")
    found = take_states(migrate.keyed_states(kinds), [f"{first.operator_id}/{first.name}"])
    assert [one.name for one in found.other_timers] == [
        "_timer_state/processing_user-timers",
        "_timer_state/event_user-timers",
    ]
    assert found.window_timers == ()


def test_unreadable_states_are_reported() -> None:
    states = migrate.keyed_states(WITH_KRYO).states
    known = next(one for one in states if one.readable and one.kind.value != "timers")
    unknown = next(one for one in states if one.name == "secret")
    found = take_states(migrate.keyed_states(WITH_KRYO), [f"{known.operator_id}/{known.name}"])
    reasons = [line for line in found.lines() if "testjobs.Secret" in line]
    assert any("/secret: " in reason for reason in reasons)
    assert all(one.startswith("a state cannot be read, so it is not migrated: ") for one in reasons)
    with pytest.raises(DecodeError, match=r"testjobs\.Secret"):
        take_states(migrate.keyed_states(WITH_KRYO), [f"{unknown.operator_id}/secret"])


def test_sql_types_are_derived_for_key_fields_and_value_of_selected_state() -> None:
    (operator,) = (
        one.operator_id for one in migrate.keyed_states(SAVEPOINT).states if one.name == "accState"
    )
    assert list(
        take_states(migrate.keyed_states(SAVEPOINT), [f"{operator}/accState"]).to_prime()
    ) == [
        StateToPrime(
            operator,
            "accState",
            (("f0", "BIGINT", "key.f0"),),
            "STRUCT<f0: BIGINT, f1: BIGINT>",
            windowed=False,
            merging=False,
        )
    ]
    (sessions,) = take_states(
        migrate.keyed_states(SAVEPOINT), ["sessions/window-contents"]
    ).to_prime()
    assert (sessions.windowed, sessions.merging, sessions.keys) == (
        True,
        True,
        (("key", "BIGINT", "key"),),
    )


def test_states_are_listed_without_reading_entries_if_no_state_is_selected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The dry run of a cut-over lists the states in this way.

    It must not read a job's whole state.
    """

    def read(_: KeyedState) -> None:
        raise AssertionError

    monkeypatch.setattr(KeyedState, "entries", read)
    left, timers = reversed([*take_states(migrate.keyed_states(SAVEPOINT), []).lines()])
    assert timers.startswith("timers are not migrated, and migrate cannot determine whether ")
    assert "windows/_timer_state/event_window-timers" in timers
    assert left.startswith("8 states are not migrated, because they are not selected: ")
    assert any(
        "a state cannot be read" in line
        for line in take_states(migrate.keyed_states(WITH_KRYO), []).lines()
    )


def test_state_with_ttl_triggers_warning() -> None:
    names = ["kinds/lasting-value", "kinds/value"]
    states = take_states(migrate.keyed_states(WITH_TTL), names)
    assert [state.ttl for state in states.to_prime()] == [True, False]
    (told,) = (line for line in states.warnings() if "has a TTL" in line)
    assert told == (
        "state kinds/lasting-value has a TTL; find the TTL in the job's code, and pass it to "
        "`prime` as `ttl_ms` [time-to-live]"
    )
    assert told in [*states.lines()]


def test_states_and_positions_come_from_same_checkpoint(tmp_path: Path) -> None:
    """Regression: The job's directory was resolved twice, before and after a new checkpoint.

    The states were then newer than the positions.
    """
    shutil.copytree(SAVEPOINT, tmp_path / "chk-7")
    request = move_request(SPARK, {})
    checkpoint = read_input(tmp_path, request)
    shutil.copytree(WITH_TTL, tmp_path / "chk-8")
    _, states = take_states_along(checkpoint, ["totals/total"], request)
    assert [state.name for state in states.taken] == ["total"]
    newer = keyed_states(tmp_path).states
    assert "total" not in {state.name for state in newer}


def test_verify_state_refuses_group_as_target_and_state_name_without_operator() -> None:
    result = command("verify-state", SAVEPOINT, "spark:none", "--state", "total")
    assert (result.code, result.stdout) == (2, "")
    assert "expected OPERATOR/NAME" in result.stderr
    result = command("verify-state", SAVEPOINT, "group:g", "--state", "totals/total")
    assert (result.code, result.stdout) == (2, "")
    assert "requires a Spark query, spark:DIR" in result.stderr
