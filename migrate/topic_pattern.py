"""The pattern by which a job finds its topics, which is not in its checkpoints.

KafkaSource and FlinkKafkaConsumer list all topics but Kafka's internal ones as they start and then
now and again, and read those whose whole name matches: KafkaSubscriberUtils.getTopicMetadata @
apache/flink-connector-kafka 32e80df. One that was created since they last looked is nowhere in
their state.

The pattern is Java's. Python's own expressions are taken for it where both mean the same; what only
Java knows is refused, and so is what the two read differently.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from migrate.errors import UsageError

# Topic.INTERNAL_TOPICS and the metadata topic @ kafka-clients 4.1.1.
_INTERNAL = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)
# Of a pattern that is only suggested: each topic is asked about.
_MOST_SUGGESTED = 20
_SEPARATORS = "._-"
# To Java up to three digits more, to Python up to two.
_OCTAL = re.compile(r"(?<!\\)(?:\\\\)*\\0")


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
        pattern = re.compile(self.text)
        known = _INTERNAL | self.besides
        found = sorted(t for t in topics if t not in known and pattern.fullmatch(t))
        return found[:_MOST_SUGGESTED] if self.suggested else found


def topic_pattern(text: str) -> TopicPattern:
    """What ``--topic-pattern`` means.

    Raises:
        UsageError: it is no pattern that Java and Python read alike.
    """
    try:
        if not text:
            raise UsageError("--topic-pattern: no pattern (an unset variable?)")
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # of what Java means by [a-z&&[^x]]
            re.compile(text)
        if _has_nested_class(text):
            raise re.error("a class within a class")
        if _OCTAL.search(text):
            raise re.error("a character by its octal number")
    except (re.error, FutureWarning, RecursionError, OverflowError) as error:
        raise UsageError(
            f"--topic-pattern {text!r}: not read here as Java reads it ({error}); write it another "
            "way"
        ) from error
    return TopicPattern(text)


def _has_nested_class(text: str) -> bool:
    """``[a[bc]]``: a union to Java, and to Python a class that ends at the first bracket."""
    inside = escaped = False
    for character in text:
        if escaped or character == "\\":
            escaped = not escaped
        elif character == "[":
            if inside:
                return True
            inside = True
        elif character == "]":
            inside = False
    return False


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
    texts = sorted({text for topics in families if (text := _in_common(sorted(set(topics))))})
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
