"""Format the parts of messages: counts, lists, times, and suggestions."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path

# The last millisecond of the year 9999, the last year that datetime supports.
_LAST_INSTANT = 253_402_300_799_999


def package_version() -> str | None:
    """Return this package's version, or None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("flink-offset-migrate")
    except PackageNotFoundError:
        return None


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """Return ``1 record`` or ``2 records``; ``nouns`` is the plural if it is irregular."""
    return f"{count} {noun if count == 1 else nouns or f'{noun}s'}"


def join_some(texts: Iterable[str], most: int, separator: str = ", ") -> str:
    """Join the first ``most`` strings, and append the number of the rest: ``a, b and 3 more``."""
    texts = list(texts)
    more = len(texts) - most
    tail = f"{separator.strip(', ')} and {more} more" if more > 0 else ""
    return separator.join(texts[:most]) + tail


def clipped(text: str, most: int) -> str:
    """Return a text, or its first ``most`` characters and ``…``."""
    return text if len(text) <= most else f"{text[:most]}…"


def iso_time(milliseconds: int) -> str:
    """Return epoch milliseconds as a UTC time in ISO 8601, or as a number if out of range."""
    if not 0 <= milliseconds <= _LAST_INSTANT:
        return str(milliseconds)
    seconds = datetime.fromtimestamp(milliseconds // 1000, timezone.utc)
    return seconds.isoformat()


def printable(text: str) -> str:
    """Escape all non-printable characters, so that text cannot control the terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def similar_names(name: str, known: Iterable[str], cutoff: float = 0.6) -> tuple[str, ...]:
    """Return the known names that are most similar to a mistyped name, best match first."""
    from difflib import get_close_matches  # imported here because only error messages need it

    return tuple(get_close_matches(name, sorted(known), cutoff=cutoff))


def hint(name: str, known: Iterable[str] | Mapping[str, str]) -> str:
    """Suggest similar known names; if ``known`` is a mapping, show the values of similar keys."""
    shown = known if isinstance(known, Mapping) else {}
    return did_you_mean(shown.get(match, match) for match in similar_names(name, known))


def with_known_prefix(name: str, prefixes: Collection[str]) -> str:
    """Return ``PREFIX:REST`` for a name such as ``Spark:DIR``, ``sprak:DIR``, or ``spark=DIR``.

    Return an empty string if the prefix is already correct, or is similar to no known prefix.
    Before ``=`` and in a URL, only the case of the prefix may differ.
    """
    match = re.fullmatch(_PREFIX, name)
    if match is None or name.startswith(tuple(f"{prefix}:" for prefix in prefixes)):
        return ""
    prefix, separator, rest = match[1].lower(), match[2], match[3]
    if prefix not in prefixes and (separator == "=" or rest.startswith("//")):
        return ""
    similar = similar_names(prefix, prefixes)
    return f"{similar[0]}:{rest}" if similar else ""


def did_you_mean(names: Iterable[str]) -> str:
    """Return `` (did you mean 'orders' or 'order'?)``, or an empty string if there are no names."""
    choices = " or ".join(map(repr, names))
    return f" (did you mean {choices}?)" if choices else ""


def install_command(extra: str) -> str:
    """Return the commands that install an extra of this package from a clone or a wheel."""
    if getattr(sys, "frozen", False):  # the program from `make program` cannot be extended
        wheel = f"flink_offset_migrate-{package_version()}-py3-none-any.whl[{extra}]"
        return f"this program does not have it, so install the wheel: pip install '{wheel}'"
    # pip in the user's shell does not change a tool's own environment.
    install = "pip install"
    for command, receipt in _TOOL_INSTALLERS.items():
        if (Path(sys.prefix) / receipt).is_file():
            install = f"{command} install --force"
    return f"{install} '.[{extra}]' in a clone, or {install} 'FILE.whl[{extra}]'"


# The programs that install a tool into its own environment, and the file that each one creates
# there.
_TOOL_INSTALLERS = {"pipx": "pipx_metadata.json", "uv tool": "uv-receipt.toml"}


# ``re`` compiles the patterns when they are first used, because few commands need them.
_PREFIX = r"([A-Za-z-]+)([:=])(.+)"
_DURATION = r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)"
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
# A shell variable, which a shell does not expand in single quotes. A name between two dollar signs
# is not one: Hadoop's S3 clients mark directories with objects such as ``chk-9_$folder$``.
_VARIABLE = r"\$(?:[A-Za-z_]\w*(?![\w$])|\{[^}]*\})"


def why_mistyped(text: str, kind: str) -> str:
    """Return the reason that a name is probably mistyped, or an empty string.

    Args:
        text: the user's name for something new, such as a file or a consumer group.
        kind: the kind of the name for the message, such as "path".
    """
    if text != text.strip():
        return f"the {kind} starts or ends with whitespace; omit the whitespace"
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return f"the {kind} is in quotation marks; omit them"
    if match := re.search(_VARIABLE, text):
        return f"migrate does not expand {match[0]}; write the full {kind}"
    return ""


def parse_duration(text: str) -> float:
    """Return a duration such as ``500ms``, ``5m``, or ``10`` in seconds.

    Raises:
        ValueError: the string is not a duration, or the duration is zero.
    """
    match = re.fullmatch(_DURATION, text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match is not None else 0.0
    if not seconds:
        raise ValueError(f"{text!r} is not a duration such as 500ms, 10s, 5m, 1h, or 7d")
    return seconds
