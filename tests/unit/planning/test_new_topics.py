"""Topics missing from the checkpoint: matches of a pattern, and their messages in a plan.

`tests/integration/test_topic_pattern.py` uses a real broker.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from decoder import read_checkpoint
from migrate.inputs.flink.extract import extract
from migrate.model import topic_pattern as topic_pattern_module
from migrate.model.cluster_snapshot import ClusterSnapshot, LogRange
from migrate.model.errors import UsageError
from migrate.model.policies import Policies
from migrate.model.topic_pattern import suggested_pattern, topic_pattern
from migrate.planning import Plan, make_plan
from migrate.planning.new_topics import pattern_to_ask
from tests.support.checkpoints import SourceState, source_operator, splits, write_checkpoint

_HOUR = 3_600_000
_TAKEN = 1_700_000_000_000  # 2023-11-14T22:13:20Z


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("orders-.*", ["orders-eu", "orders-us"]),
        ("orders-eu", ["orders-eu"]),
        ("order", []),  # must match the whole name, as in Java's matches()
        (r"[a-z]+\.v[0-9]", ["audit.v1"]),
        (r"a\[?udit[.]v1", ["audit.v1"]),
        (r"[^o].*|\\00", ["audit.v1"]),
    ],
)
def test_topic_pattern_matches_whole_names(text: str, matching: list[str]) -> None:
    topics = ["orders-us", "audit.v1", "orders-eu", "__consumer_offsets"]
    assert topic_pattern(text).matching(topics) == matching


def test_topic_pattern_excludes_internal_topics() -> None:
    own = ["__consumer_offsets", "__transaction_state", "__share_group_state"]
    assert topic_pattern(".*").matching([*own, "__cluster_metadata", "__mine"]) == ["__mine"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "topic_pattern is empty; a variable may be unset"),
        ("[", "may interpret '[' (character 1) differently, or Java may reject it"),
        ("[]a[b]c]", "'[]a[b]c]' (character 1)"),  # in Java, a set of a, b, c, and ]
        ("x[]a]", "'[]a]' (character 2)"),
        ("[^][a]", "'[^][a]' (character 1)"),
        ("a[b[cd]]", "'[b[cd]]' (character 2)"),
        (r"\\[a\][b]", r"'[a\\][b]' (character 3)"),
        (r"\012", r"'\\012' (character 1)"),
        (r"a\\\012", r"'\\012' (character 4)"),
        (r"(a)\11", r"'\\11' (character 4)"),
        ("[a-z&&[^b]]", "'[a-z&&[^b]]' (character 1)"),
        ("[a-z&&b]", "'[a-z&&b]' (character 1)"),
        ("[a||b]", "is not a valid pattern: Possible set union"),
        ("a{,3}", "'{,3}' (character 2)"),
        ("a++", "'++' (character 2)"),
        ("(?>a)", "'(?>a)' (character 1)"),
        (r"\Qa\E", r"'\\Qa\\E' (character 1)"),
        ("(?P<n>a)", "'(?P<n>a)' (character 1)"),
        ("(?x)a b", "'(?x)a b' (character 1)"),
        ("a(?i)b", "is not a valid pattern: "),
        ("(a", "is not a valid pattern: missing ), unterminated subpattern"),
        ("(" * 5_000 + "a" + ")" * 5_000, "is not a valid pattern: maximum recursion depth"),
        ("a{99999999999}", "is not a valid pattern: the repetition number is too large"),
    ],
)
def test_pattern_with_different_meaning_in_java_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        topic_pattern(text)
    assert problem in str(refused.value)
    assert len(str(refused.value)) < 400


def test_pattern_check_ignores_warnings_about_unrelated_objects() -> None:
    """Regression: A warning about an unclosed object became an error.

    The garbage collector can free such an object during the check.
    """

    class Unclosed:
        def __del__(self) -> None:
            warnings.warn("unclosed", ResourceWarning, stacklevel=1)
            closed.append(True)

    closed: list[bool] = []
    compiled = topic_pattern_module._compiled

    def collected(text: str) -> object:
        Unclosed()
        return compiled(text)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        patch.setattr(topic_pattern_module, "_compiled", collected)
        topic_pattern("orders-.*")
    assert closed == [True]


@pytest.mark.parametrize(
    ("families", "text"),
    [
        ([["orders-eu", "orders-us"]], "orders-.*"),
        ([["eu.orders", "us.orders"]], ".*[.]orders"),
        ([["a.eu.b", "a.us.b"]], "a[.].*[.]b"),
        ([["orders-eu", "orders-us"], ["log_a", "log_b"]], "log_.*|orders-.*"),
        ([["orders-eu"]], None),
        ([["a(-eu", "a(-us"]], None),  # Regression: raised an exception
        ([["a(-eu", "a-eu", "a-us"]], "a-.*"),
        ([["alpha", "alps"]], None),
        ([["orders-eu", "orders-eu"]], None),
        ([], None),
    ],
)
def test_suggested_pattern_is_derived_from_topic_names(
    families: list[list[str]], text: str | None
) -> None:
    found = suggested_pattern(families)
    assert (found.text if found else None) == text


def test_suggested_pattern_matches_at_most_20_topics() -> None:
    pattern = suggested_pattern([["t-a", "t-b"]], frozenset(("t-001",)))
    assert pattern is not None and pattern.suggested
    topics = [f"t-{number:03d}" for number in range(30)]
    assert pattern.matching(topics) == ["t-000", *topics[2:21]]


# -- messages of a plan ---------------------------------------------------------------------------


def _plan(
    tmp_path: Path,
    found: dict[str, int | None],
    policies: Policies,
    empty: tuple[str, ...] = (),
) -> Plan:
    """Plan for a job that reads t-a and t-b. ``found`` has the first times of new topics."""
    held = SourceState({0: [*splits("t-a", [1]), *splits("t-b", [1])]})
    pointer = write_checkpoint(tmp_path / "c", source_operator(held))
    os.utime(pointer / "_metadata" if pointer.is_dir() else pointer, (_TAKEN / 1000, _TAKEN / 1000))
    extraction = extract(read_checkpoint(pointer))
    logs = {0: LogRange(0, 5, first_since=2)}
    topics = {
        name: {0: LogRange(4, 4)} if name in empty else logs for name in ("t-a", "t-b", *found)
    }
    snapshot = ClusterSnapshot(topics, matched_topics=found)
    return make_plan(extraction, extraction.sources, snapshot, policies)


def _said(plan: Plan, *words: str) -> list[str]:
    return [one for one in plan.warnings if any(word in one for word in words)]


def test_new_topics_that_match_topic_pattern_are_moved(tmp_path: Path) -> None:
    policies = Policies(topic_pattern=topic_pattern("t-.*"))
    found = {f"t-new{number}": _TAKEN + number for number in range(7)} | {"t-none": None}
    plan = _plan(tmp_path, found, policies)
    assert not plan.refusals
    assert plan.topic_pattern == "t-.*"
    moved = {one.topic: one.next_offset for one in plan.partitions}
    assert moved == {"t-a": 1, "t-b": 1} | dict.fromkeys(found, 0)
    said = _said(plan, "not discovered")
    taken = "2023-11-14T22:13:20+00:00"
    assert said[0] == (
        f"topic t-new0 matches topic_pattern and is not in the checkpoint taken at {taken} "
        f"(its first record is from {taken}); it will be treated as a new topic that the job had "
        "not discovered [new-topic]"
    )
    assert len(said) == 5
    assert _said(plan, "also be treated") == [
        "3 more topics match topic_pattern and will also be treated as new topics [new-topic]"
    ]


def test_requested_partition_missing_from_new_topic_is_refused(tmp_path: Path) -> None:
    """Without the refusal, migrate would silently move only the existing partitions."""
    named = {"t-new": frozenset({0, 3}), "t-none": frozenset({0})}
    policies = Policies(topic_pattern=topic_pattern("t-.*"), partitions=named)
    plan = _plan(tmp_path, {"t-new": _TAKEN}, policies)
    assert [refusal.what for refusal in plan.refusals] == [
        f"partitions lists {name}, but neither the checkpoint nor the broker has such partitions"
        for name in ("t-new-3", "t-none-0")
    ]


@pytest.mark.parametrize(
    ("empty", "told"), [((), ("its records have no timestamps")), (("t-new",), "it has no records")]
)
def test_warning_about_new_topic_explains_missing_timestamp(
    tmp_path: Path, empty: tuple[str, ...], told: str
) -> None:
    policies = Policies(topic_pattern=topic_pattern("t-.*"))
    (said,) = _said(_plan(tmp_path, {"t-new": None}, policies, empty), "t-new matches")
    assert told in said


def test_pattern_that_matches_no_topic_of_checkpoint_triggers_warning(tmp_path: Path) -> None:
    policies = Policies(topic_pattern=topic_pattern("u-.*"))
    (said,) = _said(_plan(tmp_path, {}, policies), "topic_pattern")
    assert said == (
        "topic_pattern 'u-.*' matches no topic of the checkpoint; check that it is the job's "
        "pattern [pattern-unmatched]"
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"t-old": _TAKEN - 24 * _HOUR}, None),
        (
            {"t-other": None, "u-new": _TAKEN},
            "1 new topic with a name similar to the job's topics is not in the checkpoint",
        ),
        (
            {"t-new": _TAKEN - 24 * _HOUR + 1},
            "1 new topic with a name similar to the job's topics is not in the checkpoint",
        ),
        (
            {"t-new": _TAKEN, "t-newer": _TAKEN + 1},
            "2 new topics with names similar to the job's topics are not in the checkpoint "
            "taken at 2023-11-14T22:13:20+00:00 (the first is t-new: its first record is from",
        ),
        ({"u-new": _TAKEN}, None),
    ],
)
def test_new_topics_with_similar_names_trigger_warning(
    tmp_path: Path, found: dict[str, int | None], said: str | None
) -> None:
    warned = _said(_plan(tmp_path, found, Policies()), "young")
    assert len(warned) == (0 if said is None else 1)
    if said is not None:
        assert warned[0].startswith(said)
        assert "pass the pattern with topic_pattern, for example 't-.*' [young-topic]" in warned[0]


def test_pattern_is_suggested_unless_topic_pattern_or_topic_map_is_set(tmp_path: Path) -> None:
    state = SourceState({0: [*splits("t-a", [1]), *splits("t-b", [1])]})
    found = extract(read_checkpoint(write_checkpoint(tmp_path / "c", source_operator(state))))
    suggested = pattern_to_ask(found, found.sources, Policies())
    assert suggested is not None and suggested.text == "t-.*"
    given = topic_pattern("x")
    assert pattern_to_ask(found, found.sources, Policies(topic_pattern=given)) is given
    assert pattern_to_ask(found, found.sources, Policies(topic_map={"t-a": "u"})) is None
