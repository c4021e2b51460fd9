"""How a URL, and text that may hold passwords, is shown: without secrets.

A user, a password, a key or a signature in a URL would end in messages, plans, tables and shell
histories, so such a URL is never used: it is refused, and shown as this module leaves it. What
others say of URLs (the errors of a library, a service's answer) is shown through it too.

``s3://KEY:SECRET@bucket/x`` is shown as ``s3://…@bucket/x``, ``…/x?sv=1&sig=SECRET`` as
``…/x?sv=…&sig=…``: which parameters are secret is not guessed. ``password="SECRET"`` in what a
service says is shown as ``password=…``: here the names decide.
"""

from __future__ import annotations

import re

CREDENTIALS_REFUSED = (
    "credentials in a URL are refused: they would be shown, and saved; leave them out, and give "
    "them as the store's own library finds them (AWS_PROFILE, AZURE_STORAGE_…, Hadoop's "
    "configuration)"
)

# Where a URL begins; of one inside another (k8s://https://host) the inner one. One letter and a
# colon are a drive. Each repeat that a search may begin anew at every character has a bound, as the
# search would else take time by the square of the text.
_BEGINNING = r"[A-Za-z][A-Za-z0-9+.-]{1,40}"
_URL = re.compile(rf"({_BEGINNING}):(/+)(?!{_BEGINNING}://)")
# Within a text a URL ends at a space, a quote, or where another one begins.
_URL_IN_TEXT = re.compile(
    rf"({_BEGINNING}):(/+)(?!{_BEGINNING}://)((?:(?!{_BEGINNING}://)[^\s\"'`<>])*)"
)
# A name before a colon: a user, or else a host before its port.
_NAME = re.compile(r"[^/@:\[]*:")
_PORT = re.compile(r"\d*(?:[/?#]|$)")
# A `?` alone may be one of a glob.
_QUERY = re.compile(r"\?[\w.%-]+=")
# Not what ends a sentence.
_VALUE = re.compile(r"=[^&;]*?(?=[:.,)\]]{0,20}(?:[&;]|$))")

# Where a host and a port may stand; elsewhere, in a bucket's place say, a colon ends a user's name.
_WITH_PORTS = frozenset({"http", "https", "hdfs", "webhdfs", "spark"})
# Whose path may begin after one slash, or three, and hold a colon and an @.
_PATHS = frozenset({"file", "dbfs"})
# What stands before an @ is Azure's container, or the name of HDFS's user.
_NO_SECRET_BEFORE_AT = frozenset({"abfs", "abfss", "wasb", "wasbs", "hdfs", "webhdfs"})

# Names whose value is a secret, whatever stands between them: `password: x`, `'password' = 'x'`.
_SECRET_NAMES = (
    r"passw(?:or)?d|passphrase|pwd|secret|credentials?|(?:api|access|account|private|secret)[._-]?key"
    r"|(?:access|auth|bearer|refresh|security|session)[._-]?token"
)
# Names that are words of a sentence too, as in `unexpected token: x`: only before a bare `=`.
_AMBIGUOUS_NAMES = r"sig|signature|token|pass|delegation|key"
# In a path, `/key=` is the name of a partition.
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
    """Return what a service says without passwords, keys, tokens and credentials in URLs.

    What is not recognised: the rest of a password without quotes after a space or comma in it; one
    that no name precedes, as the second argument of ``login("me", "x")``; a name of one letter
    (``-p x``), or one that goes on after its word (``password.old=x``); an attribute of XML beside
    the one that names it (``<property name="password" value="x"/>``); an encoded text (base64).
    """
    text = _NAMED_SECRET.sub(r"\1…", redact_urls(text))
    text = _SECRET_ELEMENT.sub(r"\1…", text)
    return _OTHER_SECRETS.sub(r"\1\2…", text)


def redact_url(url: str) -> str:
    """A URL without credentials, itself where it holds none; any other text is as it was."""
    begun = _URL.search(url) if ":/" in url else None
    if begun is None:
        return url
    return redact_urls(url[: begun.end()] + _bare(begun[1].lower(), begun[2], url[begun.end() :]))


def redact_urls(text: str) -> str:
    """The same of every URL in a text. Of one with a space in its password it knows nothing."""
    if ":/" not in text:
        return text
    return _URL_IN_TEXT.sub(
        lambda url: f"{url[1]}:{url[2]}{_bare(url[1].lower(), url[2], url[3])}", text
    )


def _bare(scheme: str, slashes: str, rest: str) -> str:
    """What follows the slashes of a URL, without credentials."""
    if len(slashes) == 2 or scheme not in _PATHS:
        name = _NAME.match(rest)
        port = scheme in _WITH_PORTS and name is not None and _PORT.match(rest, name.end())
        user, at, _ = rest.partition("/")[0].rpartition("@")
        if name is not None and "@" in rest and not port:
            rest = f"…@{rest.rpartition('@')[2]}"  # a password may hold a slash, and an @
        elif at and (":" in user or scheme not in _NO_SECRET_BEFORE_AT):
            rest = f"…@{rest[len(user) + 1 :]}"
    query = _QUERY.search(rest) if scheme != "file" else None
    if query is None:
        return rest
    return rest[: query.start()] + _VALUE.sub("=…", rest[query.start() :])
