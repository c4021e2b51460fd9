"""Redaction of URLs.

Credentials in a URL would leak into messages, plans, tables, and shell histories. Therefore, such a
URL is refused, and the message shows the redacted URL.

``s3://KEY:SECRET@bucket/x`` is shown as ``s3://…@bucket/x``, and ``…/x?sv=1&sig=SECRET`` as
``…/x?sv=…&sig=…``. The values of all parameters are redacted, because any of them may be secret.
"""

from __future__ import annotations

import re

CREDENTIALS_REFUSED = (
    "migrate refuses credentials in a URL, because it would print and save them; remove the "
    "credentials from the URL, and set them where the object store's library reads them "
    "(AWS_PROFILE, AZURE_STORAGE_…, Hadoop's configuration)"
)

# A scheme of at least two characters, because a single letter before a colon is a Windows drive.
# With an unbounded repetition, the search time would grow with the square of the string's length.
_BEGINNING = r"[A-Za-z][A-Za-z0-9+.-]{1,40}"
# The scheme and the slashes of a URL. If a URL contains another URL (k8s://https://host), only the
# inner URL matches.
_URL = re.compile(rf"({_BEGINNING}):(/+)(?!{_BEGINNING}://)")
# Within a string, a URL ends at a space, a quote, ``<`` or ``>``, or at the start of another URL.
_URL_IN_TEXT = re.compile(
    rf"({_BEGINNING}):(/+)(?!{_BEGINNING}://)((?:(?!{_BEGINNING}://)[^\s\"'`<>])*)"
)
# A name before a colon, such as a user before a password, or a host before a port.
_NAME = re.compile(r"[^/@:\[]*:")
_PORT = re.compile(r"\d*(?:[/?#]|$)")
# A query needs a name and `=`, because a `?` alone may be part of a glob.
_QUERY = re.compile(r"\?[\w.%-]+=")
# A value without the punctuation that ends a sentence.
_VALUE = re.compile(r"=[^&;]*?(?=[:.,)\]]{0,20}(?:[&;]|$))")

# Schemes whose URLs may have a port; in URLs with other schemes, a colon ends a user name.
_SCHEMES_WITH_PORTS = frozenset({"http", "https", "hdfs", "webhdfs", "spark"})
# Schemes whose path may start after one or three slashes, and may contain a colon and an @.
_LOCAL_PATH_SCHEMES = frozenset({"file", "dbfs"})
# Schemes with an Azure container or an HDFS user name (neither is secret) before the @.
_NO_SECRET_BEFORE_AT = frozenset({"abfs", "abfss", "wasb", "wasbs", "hdfs", "webhdfs"})


def redact_url(url: str) -> str:
    """Return a URL without its credentials; a string without a URL is returned unchanged."""
    match = _URL.search(url) if ":/" in url else None
    if match is None:
        return url
    bare = _without_credentials(match[1].lower(), match[2], url[match.end() :])
    return redact_urls(url[: match.end()] + bare)


def redact_urls(text: str) -> str:
    """Redact every URL in a string; a URL ends at a space, even at a space in a password."""
    if ":/" not in text:
        return text
    return _URL_IN_TEXT.sub(
        lambda url: f"{url[1]}:{url[2]}{_without_credentials(url[1].lower(), url[2], url[3])}", text
    )


def _without_credentials(scheme: str, slashes: str, rest: str) -> str:
    """Return the part of a URL after ``scheme://``, without credentials."""
    if len(slashes) == 2 or scheme not in _LOCAL_PATH_SCHEMES:
        name = _NAME.match(rest)
        port = scheme in _SCHEMES_WITH_PORTS and name is not None and _PORT.match(rest, name.end())
        user, at, _ = rest.partition("/")[0].rpartition("@")
        if name is not None and "@" in rest and not port:
            rest = f"…@{rest.rpartition('@')[2]}"  # a password may contain a slash and an @
        elif at and (":" in user or scheme not in _NO_SECRET_BEFORE_AT):
            rest = f"…@{rest[len(user) + 1 :]}"
    query = _QUERY.search(rest) if scheme != "file" else None
    if query is None:
        return rest
    return rest[: query.start()] + _VALUE.sub("=…", rest[query.start() :])
