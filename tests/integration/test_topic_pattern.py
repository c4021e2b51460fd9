"""Find topics that match a job's pattern, with a real job, a real broker, and Java."""

from __future__ import annotations

import json
import random
import subprocess
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

from decoder import list_checkpoints
from migrate.model.errors import UsageError
from migrate.model.topic_pattern import topic_pattern
from migrate.planning.plan_file import read_plan
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.jdk import compile_java, java_command
from tests.support.kafka import Broker
from tests.support.running_jobs import running_job

pytestmark = pytest.mark.integration

_SOON = 60.0
_NOTE = "they are not shown here; to check for them, add --topic-pattern REGEX"


@pytest.fixture
def family(broker: Broker) -> str:
    """Create the topics -eu and -us with ten records each, and return the prefix of their names."""
    name = f"f{uuid.uuid4().hex[:8]}"
    for region in ("eu", "us"):
        broker.create_topic(f"{name}-{region}", 1)
        broker.produce(f"{name}-{region}", 0, map(str, range(10)))
    return name


@pytest.fixture
def chk(tmp_path: Path, family: str) -> Path:
    """A checkpoint that contains both topics."""
    readers = [*splits(f"{family}-eu", [3]), *splits(f"{family}-us", [4])]
    return write_source(tmp_path / "job" / "chk-7", {0: readers})


def _to_spark(broker: Broker, chk: Path, *flags: str | Path) -> Result:
    return migrate("to-spark", chk, "-b", broker.bootstrap_servers, *flags)


def test_undiscovered_topic_of_running_job_is_moved_if_topic_pattern_is_passed(
    tmp_path: Path, broker: Broker, family: str
) -> None:
    """The job discovers topics every five minutes, so its checkpoint lacks the new topic."""
    flink, kept = f"flink-{family}", tmp_path / "checkpoints"
    read = {(f"{family}-{region}", 0): 10 for region in ("eu", "us")}
    with running_job(broker.bootstrap_servers, flink, f"{family}-.*", kept) as (_, job_id):
        deadline = time.monotonic() + _SOON
        while broker.committed(flink) != read:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        broker.create_topic(f"{family}-ap", 2)
        broker.produce(f"{family}-ap", 0, map(str, range(5)), [1_700_000_000_000] * 5)
        before = list_checkpoints(kept / job_id)[-1][0]
        while list_checkpoints(kept / job_id)[-1][0] < before + 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    known = {f"{family}-eu": {"0": 10}, f"{family}-us": {"0": 10}}
    left_behind = _to_spark(broker, kept / job_id, "-v")
    assert json.loads(left_behind.stdout) == known
    assert _NOTE in left_behind.stderr
    moved = _to_spark(broker, kept / job_id, "-v", "--topic-pattern", f"{family}-[a-z]+")
    assert json.loads(moved.stdout) == {f"{family}-ap": {"0": 0, "1": 0}, **known}
    found = f"topic {family}-ap matches --topic-pattern and is not in the checkpoint taken at 2"
    assert found in moved.stderr
    assert "(its first record is from 2023-11-14T22:13:20+00:00)" in moved.stderr
    assert _NOTE not in moved.stderr


def test_new_topics_with_similar_names_trigger_warning(
    broker: Broker, family: str, chk: Path
) -> None:
    assert "[young-topic]" not in _to_spark(broker, chk).stderr
    old, young = f"{family}-old", f"{family}-young"
    for name, records in ((old, 1), (young, 0)):
        broker.create_topic(name, 1)
        broker.produce(name, 0, map(str, range(records)), [1_700_000_000_000] * records)
    told = _to_spark(broker, chk)
    assert told.code == 0
    assert young not in told.stdout
    assert "[young-topic]" in told.stderr
    assert f"the first is {young}: it has no records" in told.stderr
    assert f"for example '{family}-.*'" in told.stderr
    assert old not in told.stderr


def test_policy_and_partition_options_apply_to_topics_found_by_pattern(
    broker: Broker, family: str, chk: Path
) -> None:
    new = f"{family}-new"
    broker.create_topic(new, 1)
    broker.produce(new, 0, ["a", "b"])
    flags = ("--topic-pattern", f"{family}-.*")
    latest = json.loads(_to_spark(broker, chk, *flags, "--new-partitions", "latest").stdout)
    assert latest[new] == {"0": 2}
    refused = _to_spark(broker, chk, *flags, "--new-partitions", "fail")
    assert (refused.code, refused.stdout) == (4, "")
    assert f"{new}-0: new partition" in refused.stderr
    chosen = ("--partitions", f"{family}-eu:0", "--partitions", f"{new}:0")
    assert json.loads(_to_spark(broker, chk, *flags, *chosen).stdout) == {
        f"{family}-eu": {"0": 3},
        new: {"0": 0},
    }
    slip = _to_spark(broker, chk, "--topic-pattern", "no-such-.*")
    assert json.loads(slip.stdout) == {f"{family}-eu": {"0": 3}, f"{family}-us": {"0": 4}}
    assert "[pattern-unmatched]" in slip.stderr


def test_plan_with_topic_pattern_is_refused_if_newer_topic_matches(
    tmp_path: Path, broker: Broker, family: str, chk: Path
) -> None:
    group, plan = f"g-{family}", tmp_path / "plan.json"
    base = ("commit-group", "--group", group, "-b", broker.bootstrap_servers)
    broker.create_topic(f"{family}-new", 1)
    saved = migrate(*base, chk, "--topic-pattern", f"{family}-.*", "--plan-out", plan)
    assert saved.code == 0, saved.stderr
    assert read_plan(plan).topics == {f"{family}-{name}" for name in ("eu", "us", "new")}
    assert migrate(*base, "--plan", plan).code == 0
    broker.create_topic(f"{family}-newer", 1)
    moved = migrate(*base, "--plan", plan, "--execute", "--yes")
    assert (moved.code, moved.stdout) == (4, "")
    assert f"partitions are new since the plan was created: {family}-newer-0" in moved.stderr
    assert broker.committed(group) == {}


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--topic-pattern", "["), "differently, or Java may reject it"),
        (("--topic-pattern", "[]a[b]c]"), "may interpret '[]a[b]c]' (character 1) differently"),
        (("--topic-pattern", ""), "--topic-pattern is empty"),
        (("--topic-pattern", "x", "--topic-map", "a=b"), "cannot be combined with --topic-map"),
        (
            ("--topic-pattern", "x", "--spark-source", "0=topic:a", "--spark-source", "1=topic:b"),
            "cannot be used with several streams",
        ),
    ],
)
def test_unusable_topic_pattern_is_refused(
    broker: Broker, chk: Path, flags: tuple[str, ...], says: str
) -> None:
    result = _to_spark(broker, chk, *flags)
    assert (result.code, result.stdout) == (2, "")
    assert says in result.stderr


_PATTERNS = (
    *("orders", "orders-.*", "orders-(eu|us)", r"orders-\w+", r"orders\.v\d", "[a-z]+[.-][^x]+"),
    *("(?i)ORDERS-EU", "orders-eu$", "^orders", "or", ".*", "orders-(?!eu).*", "[a-z.-]{3,9}"),
    *(r"(o)rders-\w+\1?", "orders-e?u", "orders.*?eu", "[[a-z]&&[^e]]+", "[a-z&&[^e]]+"),
    *("[a-c[n-z]]+", r"\Qorders-eu\E", r"\p{Lower}+", r"orders\x2deu", r"orders\0055eu"),
    *("(?<a>orders)-eu", "orders-[e-u]*+", "(?>orders)-eu", "[]a]+", "[^]a]+", "a{,3}", "x||y"),
    *(
        "[]a[b]c]",
        "[^]a[b]c]",
        "[a||b]+",
        "[a-z--e]+",
        r"[\w&&\D]+",
        r"\d+",
        "(orders-eu",
        r"orders\Z",
        "",
        "a**",
    ),
)
_TOPICS = ("orders", "orders-eu", "orders-us", "orders.v2", "Orders-EU", "eu-orders", "xaz", "a]")


# The parts of random patterns. Java and Python share some of them, and others are in only one.
_PIECES = (
    *("a", "b", "A", "9", "-", "_", ".", "^", "$", "|", "(", ")", "(?:", "(?i)", "(?i:", "(?-i:"),
    *("(?=", "(?!", "(?<=", "(?<!", "(?x)", "(?>", "[", "]", "[^", "&", "&&", "{", "}", "{2}"),
    *("{1,}", "{0,2}", "{,2}", "*", "+", "?", "*?", "+?", "*+", r"\d", r"\w", r"\W", r"\b", r"\B"),
    *(r"\A", r"\Z", r"\z", r"\1", r"\11", r"\0", r"\x61", r"\-", r"\]", r"\[", r"\Q", r"\E"),
    *("[a-c]", "[^a-c]", "[]a]", "[]a[b]c]", "[a]b]", "[a-]", "[-a]", "[a^b]", "[a-b-c]", "[+--]"),
    *(r"[\w-]", "[{]", "[}]", "[Z-a]", "(a)", "(b|a)", "(?<n>a)", "#", " ", "~~", "||", "--"),
    *("\N{KELVIN SIGN}", "\N{LATIN SMALL LETTER LONG S}"),
)
_SHORT = ("a", "b", "ab", "aa", "A", "-", "_", "a-b", "a.b", "aab", "aAbB", "9", "ba9", "k", "s")


def test_topic_pattern_matches_same_topics_as_java_or_is_refused() -> None:
    """Regression: Python and Java read ``[]a[b]c]`` differently.

    For Java, it is a set of a, b, c, and ].
    """
    read = _read_as_java_does(_PATTERNS, _TOPICS)
    assert read >= set(_PATTERNS[:16])
    assert read.isdisjoint({"[a-z&&[^e]]+", "[a-c[n-z]]+", r"orders\0055eu", "[]a[b]c]"})
    pieces = random.Random(7)
    made = {"".join(pieces.choices(_PIECES, k=pieces.randint(1, 6))) for _ in range(20_000)}
    assert len(_read_as_java_does(sorted(made), _SHORT)) > 2_000


def _read_as_java_does(patterns: Sequence[str], topics: Sequence[str]) -> set[str]:
    """Assert that Java matches the same topics, and return the patterns that are not refused."""
    taken = {}
    for pattern in patterns:
        with suppress(UsageError):
            taken[pattern] = topic_pattern(pattern)
    pairs = list(product(taken, topics))
    classes = compile_java([Path(__file__).parents[1] / "support/java/TopicPatterns.java"], [])
    answered = subprocess.run(
        java_command("TopicPatterns", [classes], []),
        input="".join(f"{pattern}\t{topic}\n" for pattern, topic in pairs),
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout.splitlines()
    for (pattern, topic), java in zip(pairs, answered, strict=True):
        ours = bool(taken[pattern].matching([topic]))
        assert java == str(ours).lower(), (pattern, topic)
    return set(taken)
