"""The parser of ``sasl.jaas.config``, which contains one login module, a control flag, and options.

The grammar follows the Java client, which uses java.io.StreamTokenizer. This parser is stricter in
two ways. It refuses a single slash, because a slash starts a comment in Java. It also refuses a
quote that is not closed on the same line.

Source: org.apache.kafka.common.security.{JaasConfig, JaasContext} @ kafka-clients 4.1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from migrate.kafka.config.properties import ConfigError

_TOKEN = re.compile(
    r"""
    (?P<skip>  [\x00-\x20]+ | //[^\r\n]* | /\*.*?\*/ )
  | (?P<word>  [A-Za-z_$\xa0-\U0010ffff][A-Za-z0-9_$.\-\xa0-\U0010ffff]* )
  | (?P<quote> "(?:[^"\\\r\n]|\\[^\r\n])*" | '(?:[^'\\\r\n]|\\[^\r\n])*' )
  | (?P<mark>  [=;] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_NAMED_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})

_FORM = 'expected: <login module> required <option>="<value>" …;'


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module.

    The name does not include the package, because vendors move the class to their own packages.
    """

    name: str
    options: Mapping[str, str]


def parse_login_module(text: str) -> LoginModule:
    """Parse the login module in a ``sasl.jaas.config``.

    Raises:
        ConfigError: the text is not a single login module with a control flag and options. The
            message does not show the text, because it contains secrets.
    """
    tokens = _tokens(text)
    module = _expect(tokens, "word")
    if _expect(tokens, "word").lower() not in _FLAGS:
        raise _malformed("the control flag after the login module is missing")
    options: dict[str, str] = {}
    while (token := next(tokens, None)) != ("mark", ";"):
        if token is None:
            raise _malformed("the semicolon at the end is missing")
        kind, option = token
        if kind == "mark" or next(tokens, None) != ("mark", "="):
            raise _malformed("an option has no value")
        options[option] = _expect(tokens, "word", "quote")
    if next(tokens, None) is not None:
        raise _malformed("only one login module is supported")
    return LoginModule(module.rpartition(".")[2], options)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _malformed(f"a value lacks its quotes or its closing quote at character {at}")
        at = match.end()
        kind = str(match.lastgroup)
        if kind == "quote":
            yield kind, _ESCAPE.sub(_unescape, match[0][1:-1])
        elif kind != "skip":
            yield kind, match[0]


def _unescape(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _NAMED_ESCAPES.get(code, code)


def _expect(tokens: Iterator[tuple[str, str]], *kinds: str) -> str:
    kind, text = next(tokens, ("", ""))
    if kind not in kinds:
        raise _malformed("a word is missing")
    return text


def _malformed(what: str) -> ConfigError:
    return ConfigError(f"sasl.jaas.config: {what}; {_FORM}")
