"""Redaction of passwords and other secrets in texts from libraries and services.

The values of names such as ``password``, and credentials in URLs, are replaced with ``…``:
``password="SECRET"`` becomes ``password=…``.
"""

from __future__ import annotations

import re

from decoder.urls import redact_urls

# Names whose value is a secret after any separator: `password: x`, `'password' = 'x'`.
_SECRET_NAMES = (
    r"passw(?:or)?d|passphrase|pwd|secret|credentials?|(?:api|access|account|private|secret)[._-]?key"
    r"|(?:access|auth|bearer|refresh|security|session)[._-]?token"
)
# Names that are also ordinary words (`unexpected token: x`). The value of such a name is redacted
# only after `=` or, if the name is in quotes, also after `:`, `=>`, and `->`.
_AMBIGUOUS_NAMES = r"sig|signature|token|pass|delegation|key"
# A name after a slash does not count, because the name in a path such as `/key=5` is a partition
# column.
_NAMED_SECRET = re.compile(
    rf"""
    (?<![/\w.-])
    (
        (?:\\{{0,15}}["'])? [\w.-]* (?:{_SECRET_NAMES}) (?:\\*["'])?
            (?: \s*=>? | [ \t]*(?:->|:|\[) ) [ \t]*
      | --? [\w.-]* (?:{_SECRET_NAMES}) (?:["'],)? [ \t]+
      | (?:\\{{0,15}}["']) [\w.-]* (?:{_AMBIGUOUS_NAMES}) (?:\\*["']) [ \t]*(?:=>?|->|:)[ \t]*
      | [\w.-]* (?:{_AMBIGUOUS_NAMES}) =
    )
    (?:
        (?P<quote>\\{{0,15}}["'])
        (?: (?P=quote){{2}} | (?!(?P=quote)) (?:\\.|.) )* (?: (?P=quote) | \Z)
      | [^\s"'] \S*? (?= [&;][\w.%-]+= | [,;:.)}}\]>"'\\]{{0,20}} (?:\s|\Z) )
    )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_OTHER_SECRETS = re.compile(
    r"(\b(?:Bearer|Basic)\s+)[\w.~+/=-]{16,}"
    r"|(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:.*?(?=-----END)|.*)",
    re.IGNORECASE | re.DOTALL,
)
# `<password>x</password>`, and Hadoop's `<name>my.password</name><value>x</value>`.
_SECRET_ELEMENT = re.compile(
    rf"""
    ( <[\w.:-]* (?:{_SECRET_NAMES}) (?:\s[^<>]*)? >\s*
    | (?:{_SECRET_NAMES}) \s*</name>\s*<value>\s* )
    (?: <!\[CDATA\[.*?(?:\]\]>|\Z) | [^<\s][^<]*(?=</|\Z) )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def redact_secrets(text: str) -> str:
    """Return a service's text without passwords, keys, tokens, and URL credentials.

    These secrets are not recognized: the rest of an unquoted password after a space; a password
    without a name before it (``login("me", "x")``); a name of one letter (``-p x``); a name that
    continues after the word (``password.old=x``); a value in an XML attribute other than the one
    that contains its name (``<property name="password" value="x"/>``); and encoded text (base64).
    """
    text = _NAMED_SECRET.sub(r"\1…", redact_urls(text))
    text = _SECRET_ELEMENT.sub(r"\1…", text)
    return _OTHER_SECRETS.sub(r"\1\2…", text)
