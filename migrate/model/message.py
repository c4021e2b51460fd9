"""Messages as data: a code, facts, and the user's remedy.

A catalog such as ``migrate.model.catalog`` contains one ``MessageTemplate`` for each reason that
stops a move. The code that finds the reason calls the template with the facts::

    raise Refused(NO_COMMITTED_BATCH(query=directory))

Tests and callers use the code and the facts; people read the text.

A template is a Python format string with these format specifications:

- ``{offset}``: a fact; None is written as ``none``.
- ``{count:partition}``: an integer and its noun, such as ``3 partitions``. The specification
  ``{count:entry|entries}`` contains an irregular plural.
- ``{names}``, ``{names:3}``: the items of a collection, separated by commas. Only the first 20 (or
  3) items are shown, followed by the number of remaining items. ``{names!r}`` quotes each item.
- ``{alike:did you mean}``: the similar names in parentheses, such as `` (did you mean 'orders'?)``;
  empty if there are none.
- ``{option.cluster}``, ``{option.cluster:ID}``, ``{option.allow_ran_on:true}``,
  ``{option.topic_map:{topic}=NAME}``: an option, with a value or a placeholder for the value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from functools import cached_property, partial
from string import Formatter
from typing import Any

from migrate.model.option_names import option
from migrate.model.wording import counted, did_you_mean, join_some

# The number of items that a text shows if the format specification contains no number.
_MAX_ITEMS = 20
_OPTION = "option"
_DID_YOU_MEAN = "did you mean"
# For each fact that is a clause, the text that the documentation shows in its place.
_CLAUSES = {
    "cost": "the effect on the group's consumers",
    "evidence": "(the evidence)",
    "how_to_stop": "stop the job with a savepoint",
    "no_source": "no source in the savepoint",
    "if_different": "; if the running job is a different job, omit --flink-rest",
    "way_out": "(the remedy depends on the case)",
}


class Kind(str, Enum):
    """The kinds of messages. The value of each kind is its name in the documentation."""

    REFUSAL = "refusal"  # exit code 4
    INPUT_ERROR = "input error"  # exit code 3
    SERVICE_ERROR = "service error"  # exit code 6
    STOP = "stop of a cut-over"  # exit code 5
    WARNING = "warning"  # the command continues
    FINDING = "finding"  # the finding's code determines the severity


class MessageTemplate:
    """The text of all messages with one code.

    This is a plain class, because each command imports the catalogs, and creating a dataclass takes
    as long as creating hundreds of templates.

    Attributes:
        code: the code, for ``migrate explain``; unique in all catalogs.
        what: the problem and its cause.
        way_out: the user's remedy; empty if the text of ``what`` already shows the remedy.
    """

    def __init__(self, code: str, what: str, way_out: str = "", kind: Kind = Kind.REFUSAL) -> None:
        self.code, self.what, self.way_out, self.kind = str(code), what, way_out, kind

    def __call__(self, **facts: Any) -> Message:
        """Return a message with facts.

        Raises:
            TypeError: a fact of the template is missing, or a passed fact is not in the template.
        """
        if facts.keys() != self.fields:
            different = ", ".join(sorted(facts.keys() ^ self.fields))
            raise TypeError(f"the message {self.code} has other facts: {different}")
        return Message(self, facts)

    @cached_property
    def fields(self) -> frozenset[str]:
        """The names of the facts."""
        return frozenset(_fields(self.what) | _fields(self.way_out))

    def placeholders(self) -> Message:
        """Return a message for the documentation, with each fact's name in capitals as its value.

        If a fact's value is a clause, the placeholder is a description in words, because the fact's
        name would not fit into the sentence.
        """
        return Message(
            self, {name: _Placeholder(_CLAUSES.get(name, name.upper())) for name in self.fields}
        )


# The catalogs call these to create a template, one for each kind of message.
refusal = MessageTemplate
input_error = partial(MessageTemplate, kind=Kind.INPUT_ERROR)
service_error = partial(MessageTemplate, kind=Kind.SERVICE_ERROR)
stop = partial(MessageTemplate, kind=Kind.STOP)
warning = partial(MessageTemplate, kind=Kind.WARNING)
finding = partial(MessageTemplate, kind=Kind.FINDING)


class Message(str):
    """The text of a message, such as a refusal, with its code and facts as data.

    The text shows options as the user would write them: in the notation of the call that found the
    reason (``migrate.model.option_names.notation``).

    Attributes:
        template: the code and the template of the text.
        facts: the values in the text, by their names in the template.
        subject: the start of the text, such as an operator; empty if there is none.
        what: the problem and its cause, with the subject.
        way_out: the user's remedy, or an empty string.
    """

    template: MessageTemplate
    facts: Mapping[str, Any]
    subject: str
    what: str
    way_out: str

    def __new__(
        cls, template: MessageTemplate, facts: Mapping[str, Any], subject: str = ""
    ) -> Message:
        what = _write(template.what, facts)
        if subject:
            what = f"{subject}: {what}"
        way_out = _write(template.way_out, facts)
        message = super().__new__(cls, f"{what}; {way_out}" if way_out else what)
        message.template, message.facts, message.subject = template, facts, subject
        message.what, message.way_out = what, way_out
        return message

    def __reduce__(self) -> Any:
        return Message, (self.template, self.facts, self.subject)

    @property
    def code(self) -> str:
        return self.template.code

    def about(self, subject: str) -> Message:
        """Return the message with a subject, such as an operator, at its start."""
        return Message(self.template, self.facts, subject)


def with_code(reason: str) -> str:
    """Return a reason with its code in brackets, for a terminal."""
    return f"{reason} [{reason.code}]" if isinstance(reason, Message) else reason


def _fields(text: str) -> set[str]:
    names: set[str] = set()
    for _, name, specification, _ in _FORMATTER.parse(text):
        if name is not None and not name.startswith(f"{_OPTION}."):
            names.add(name)
        names |= _fields(specification or "")
    return names


class _Option:
    def __init__(self, name: str) -> None:
        self.name = name

    def __format__(self, value: str) -> str:
        if "=" in value:  # a topic's old and new name
            old, new = value.split("=")
            return option(self.name, {old: new})
        return option(self.name, True if value == "true" else value or None)


class _Options:
    """The options in a template, each with or without a value: ``{option.NAME:VALUE}``."""

    def __getattr__(self, name: str) -> _Option:
        return _Option(name)


class _Placeholder(str):
    """The name of a fact, shown in place of the value of the fact."""

    def __format__(self, specification: str) -> str:
        if specification == _DID_YOU_MEAN:
            return ""
        if specification and not specification.isdigit():
            singular, _, plural = specification.partition("|")
            return f"{self} {plural or f'{singular}s'}"
        return str(self)


class _TextFormatter(Formatter):
    """Format templates as described at the top of this module."""

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion == "r" and _is_collection(value):
            return [repr(item) for item in value]
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, _Placeholder):
            return format(value, format_spec)
        if format_spec == _DID_YOU_MEAN:
            return did_you_mean(value)
        if _is_collection(value):
            return join_some(map(str, value), int(format_spec or _MAX_ITEMS))
        if isinstance(value, int) and not isinstance(value, bool) and format_spec:
            singular, _, plural = format_spec.partition("|")
            return counted(value, singular, plural or None)
        if value is None:
            value = "none"
        if isinstance(value, Enum):
            value = value.value
        return format(value, format_spec)


def _is_collection(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, (str, bytes))


_FORMATTER = _TextFormatter()


def _write(text: str, facts: Mapping[str, Any]) -> str:
    return _FORMATTER.vformat(text, (), {**facts, _OPTION: _Options()})
