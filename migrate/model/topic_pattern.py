"""The pattern by which a job finds its topics; checkpoints do not contain it.

When they start and at regular intervals, KafkaSource and FlinkKafkaConsumer list all topics except
Kafka's internal topics. They read the topics whose entire name matches the pattern:
KafkaSubscriberUtils.getTopicMetadata @ apache/flink-connector-kafka 32e80df. A checkpoint lacks
topics that were created after the last discovery.

The pattern is a Java regular expression; only tokens with the same meaning in Python are accepted.
"""

from __future__ import annotations

import os.path
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from decoder.kafka.split import is_legal_topic
from migrate.model.errors import UsageError
from migrate.model.option_names import option

# Topic.INTERNAL_TOPICS and the metadata topic @ kafka-clients 4.1.1.
_INTERNAL = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)
# The maximum number of matches of a suggested pattern. The broker is queried about each match.
_MOST_SUGGESTED = 20
_SEPARATORS = "._-"
_MOST_SHOWN = 100
_TOKEN_SHOWN = 12
# These are not accepted: a class within a class, and && in a class (set operations in Java); a ] at
# the start of a class; octal numbers; \Q, \p and \v; named groups; atomic groups and possessive
# quantifiers (some Python versions match these incorrectly).
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
    """A pattern for topics to find in addition to the known topics.

    Attributes:
        text: the pattern in Java syntax.
        suggested: True if the pattern was derived from the names of known topics.
        excluded: the topics that are excluded even if their names match.
    """

    text: str
    suggested: bool = False
    excluded: frozenset[str] = frozenset()

    def matching(self, topics: Iterable[str]) -> list[str]:
        """Return the matching topics, sorted; at most 20 for a suggested pattern."""
        pattern = _compiled(self.text)
        excluded = _INTERNAL | self.excluded
        matches = sorted(
            topic for topic in topics if topic not in excluded and pattern.fullmatch(topic)
        )
        return matches[:_MOST_SUGGESTED] if self.suggested else matches


def topic_pattern(text: str) -> TopicPattern:
    """Parse the value of ``--topic-pattern``.

    Raises:
        UsageError: the pattern is empty or invalid, or its meaning may differ in Java and Python.
    """
    if not text:
        raise UsageError(f"{option('topic_pattern')} is empty; a variable may be unset")
    shown = repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}…"
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            beginning = repr(text[at : at + _TOKEN_SHOWN])
            raise UsageError(
                f"{option('topic_pattern')} {shown}: Python and Java may interpret {beginning} "
                f"(character {at + 1}) differently, or Java may reject it; write this part in a "
                "different way"
            )
        at = token.end()
    try:
        with warnings.catch_warnings():
            # Treat Python's warnings about a pattern as errors: about sets such as [a--b] and, in
            # Python 3.10, about flags that are not at the start. Do not treat other categories as
            # errors, because the garbage collector may cause such warnings at any time.
            for category in (FutureWarning, DeprecationWarning):
                warnings.simplefilter("error", category)
            _compiled(text)
    except (re.error, Warning, RecursionError, OverflowError) as error:
        raise UsageError(
            f"{option('topic_pattern')} {shown} is not a valid pattern: {error}"
        ) from error
    return TopicPattern(text)


def _compiled(text: str) -> re.Pattern[str]:
    """Compile a pattern with re.ASCII, so the ``i`` flag covers only ASCII letters, as in Java."""
    return re.compile(text, re.ASCII)


def suggested_pattern(
    topics_by_source: Iterable[Iterable[str]], excluded: frozenset[str] = frozenset()
) -> TopicPattern | None:
    """Derive a pattern from each source's topics; return None if no names have a common part.

    The pattern consists of the common prefix and the common suffix of a source's topics, each
    truncated at a separator. For example, ``orders-eu`` and ``orders-us`` suggest ``orders-.*``.
    The patterns of several sources are joined with ``|``.

    Args:
        topics_by_source: the topics of each source.
        excluded: the topics that are excluded even if their names match.
    """
    valid = (set(filter(is_legal_topic, topics)) for topics in topics_by_source)
    texts = sorted({text for topics in valid if (text := _common_pattern(sorted(topics)))})
    return TopicPattern("|".join(texts), True, excluded) if texts else None


def _common_pattern(topics: list[str]) -> str:
    if len(topics) < 2:
        return ""
    prefix = _common_prefix(topics)
    suffix = _common_prefix([topic[len(prefix) :][::-1] for topic in topics])[::-1]
    if not (prefix or suffix):
        return ""
    return f"{prefix.replace('.', '[.]')}.*{suffix.replace('.', '[.]')}"


def _common_prefix(names: Sequence[str]) -> str:
    """Return the common prefix of names, truncated after its last separator."""
    common = os.path.commonprefix(names)  # noqa: RUF071 - compares characters, as intended
    return common[: max(common.rfind(separator) for separator in _SEPARATORS) + 1]
