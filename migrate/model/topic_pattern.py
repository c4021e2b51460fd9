"""The pattern by which a job finds its topics, which is not in its checkpoints.

KafkaSource and FlinkKafkaConsumer list all topics but Kafka's internal ones as they start and then
now and again, and read those whose whole name matches: KafkaSubscriberUtils.getTopicMetadata @
apache/flink-connector-kafka 32e80df. One that was created since they last looked is nowhere in
their state.

The pattern is Java's. It is taken where Python's expressions mean the same: only tokens that both
read alike, as a test shows over patterns that are made of them at random. All else is refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from migrate.model.errors import UsageError

# Topic.INTERNAL_TOPICS and the metadata topic @ kafka-clients 4.1.1.
_INTERNAL = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)
# Of a pattern that is only suggested: each topic is asked about.
_MOST_SUGGESTED = 20
_SEPARATORS = "._-"
# A checkpoint may hold any name.
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_MOST_SHOWN = 100
_TOKEN_SHOWN = 12
# What has one meaning in Java and Python. Not here, among others: a class within a class, and its
# && (sets to Java); a ] that begins a class; octal numbers; \Q, \p and \v; groups by name;
# atomic groups and possessive quantifiers, which the Python of some versions matches wrongly.
_ESCAPE = r"\\[^0-9A-Za-z] | \\[dDwWsSnrtf] | \\x[0-9A-Fa-f]{2} | \\u[0-9A-Fa-f]{4}"
_TOKEN = re.compile(
    rf"""
      {_ESCAPE}
    | \\[AZbB]
    | \\[1-9] (?![0-9])
    | \[ (?: \^ | (?!\^) ) (?: {_ESCAPE} | [^\\\[\]&] | &(?!&) )+ \]
    | \( (?: \?(?: [:=!] | <[=!] | [ims]*-[ims]+: | [ims]+[:)] ) | (?!\?) )
    | (?: [*+?] | \{{[0-9]+(?:,[0-9]*)?\}} ) \?? (?!\+)
    | [^\\\[({{*+?]
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Which topics are looked for beside those that are known.

    Attributes:
        text: the pattern, as Java takes it.
        suggested: whether nobody has named it, and the names of known topics suggest it.
        besides: topics that are known elsewhere.
    """

    text: str
    suggested: bool = False
    besides: frozenset[str] = frozenset()

    def matching(self, topics: Iterable[str]) -> list[str]:
        """Those of the topics that match, sorted."""
        pattern = _compiled(self.text)
        known = _INTERNAL | self.besides
        found = sorted(t for t in topics if t not in known and pattern.fullmatch(t))
        return found[:_MOST_SUGGESTED] if self.suggested else found


def topic_pattern(text: str) -> TopicPattern:
    """Return what ``--topic-pattern`` means.

    Raises:
        UsageError: it is not a pattern that Java and Python read alike.
    """
    if not text:
        raise UsageError("--topic-pattern: no pattern (an unset variable?)")
    shown = repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}…"
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            beginning = repr(text[at : at + _TOKEN_SHOWN])
            raise UsageError(
                f"--topic-pattern {shown}: Python and Java may read {beginning} (character "
                f"{at + 1}) in two ways, or Java not at all; write it another way"
            )
        at = token.end()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of sets like [a--b], and of flags that come late
            _compiled(text)
    except (re.error, Warning, RecursionError, OverflowError) as error:
        raise UsageError(f"--topic-pattern {shown}: not a pattern: {error}") from error
    return TopicPattern(text)


def _compiled(text: str) -> re.Pattern[str]:
    """Return the pattern; the case of ASCII letters alone may be ignored, as Java does."""
    return re.compile(text, re.ASCII)


def suggested_pattern(
    families: Iterable[Iterable[str]], besides: frozenset[str] = frozenset()
) -> TopicPattern | None:
    """The pattern that the names of each source's topics suggest; None where they suggest none.

    ``orders-eu`` and ``orders-us`` suggest ``orders-.*``: what they have in common up to a
    separator, at either end.

    Args:
        families: the topics of each source.
        besides: as for ``TopicPattern``.
    """
    named = ({topic for topic in topics if _TOPIC.fullmatch(topic)} for topics in families)
    texts = sorted({text for topics in named if (text := _in_common(sorted(topics)))})
    return TopicPattern("|".join(texts), True, besides) if texts else None


def _in_common(topics: list[str]) -> str:
    if len(topics) < 2:
        return ""
    prefix = _common_prefix(topics)
    suffix = _common_prefix([topic[len(prefix) :][::-1] for topic in topics])[::-1]
    if not (prefix or suffix):
        return ""
    return f"{prefix.replace('.', '[.]')}.*{suffix.replace('.', '[.]')}"


def _common_prefix(names: Sequence[str]) -> str:
    """What the names begin with alike, up to a separator."""
    first, last = min(names), max(names)
    alike = 0
    while alike < min(len(first), len(last)) and first[alike] == last[alike]:
        alike += 1
    return first[: max(first.rfind(one, 0, alike) for one in _SEPARATORS) + 1]
