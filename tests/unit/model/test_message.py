"""Messages: the text of a template with facts, in the notation of the reader."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from migrate.model.errors import MigrateError, Refused
from migrate.model.message import MessageTemplate, with_code
from migrate.model.option_names import command_line_notation
from migrate.model.policies import OnExpired


@pytest.mark.parametrize(
    ("what", "facts", "text"),
    [
        ("batch {batch}", {"batch": 3}, "batch 3"),
        ("{count:partition}", {"count": 1}, "1 partition"),
        ("{count:partition}", {"count": 2}, "2 partitions"),
        ("{count:entry|entries}", {"count": 2}, "2 entries"),
        ("{names}", {"names": ["a", "b"]}, "a, b"),
        ("{names:1}", {"names": ("a", "b")}, "a and 1 more"),
        ("{names!r}", {"names": ["a", "b"]}, "'a', 'b'"),
        ("{name!r}", {"name": "a"}, "'a'"),
        ("{policy}", {"policy": OnExpired.EARLIEST}, "earliest"),
        ("topic{alike:did you mean}", {"alike": ["a", "b"]}, "topic (did you mean 'a' or 'b'?)"),
        ("topic{alike:did you mean}", {"alike": []}, "topic"),
    ],
)
def test_facts_in_message_are_formatted_as_specified(
    what: str, facts: dict[str, Any], text: str
) -> None:
    assert MessageTemplate("a-code", what)(**facts) == text


@pytest.mark.parametrize(
    ("way_out", "call", "flag"),
    [
        ("{option.cluster}", "cluster", "--cluster"),
        ("{option.cluster:ID}", 'cluster="ID"', "--cluster ID"),
        ("{option.allow_ran_on:true}", "allow_ran_on=True", "--allow-ran-on"),
        ("{option.topic_map:{old}=new}", "topic_map={'a': 'new'}", "--topic-map a=new"),
    ],
)
def test_message_shows_option_in_notation_of_caller(way_out: str, call: str, flag: str) -> None:
    template = MessageTemplate("a-code", "{old}", way_out)
    assert template(old="a").way_out == call
    with command_line_notation():
        assert template(old="a").way_out == flag


@pytest.mark.parametrize("facts", [{}, {"batch": 3, "query": "q"}, {"query": "q"}])
def test_message_with_missing_or_extra_fact_is_error(facts: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="the message a-code has other facts: "):
        MessageTemplate("a-code", "batch {batch}")(**facts)


def test_message_has_code_facts_and_optional_subject() -> None:
    message = MessageTemplate("a-code", "batch {batch} is missing", "restore it")(batch=3)
    assert (message.code, message.facts) == ("a-code", {"batch": 3})
    assert message == "batch 3 is missing; restore it"
    of_query = message.about("query q")
    assert of_query == "query q: batch 3 is missing; restore it"
    assert (of_query.code, of_query.what) == ("a-code", "query q: batch 3 is missing")
    assert with_code(of_query) == "query q: batch 3 is missing; restore it [a-code]"
    assert with_code("a text") == "a text"


def test_error_has_codes_of_its_messages() -> None:
    message = MessageTemplate("a-code", "batch {batch} is missing", "restore it")(batch=3)
    assert (MigrateError(message).codes, str(MigrateError(message))) == (["a-code"], str(message))
    refused = Refused([message, "a text"])
    assert (refused.codes, str(refused)) == (["a-code"], f"{message}; a text")


def test_message_and_error_can_be_sent_to_another_process() -> None:
    message = MessageTemplate("a-code", "batch {batch} is missing")(batch=3).about("query q")
    (sent,) = pickle.loads(pickle.dumps(Refused([message]))).reasons
    assert (sent, sent.code, sent.facts, sent.what) == (
        "query q: batch 3 is missing",
        "a-code",
        {"batch": 3},
        "query q: batch 3 is missing",
    )
