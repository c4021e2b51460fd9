"""Java's string hash and signed integers, which several formats use.

Source: java.lang.String @ JDK 17.
"""

from __future__ import annotations

from functools import lru_cache
from operator import mul

_MASK = 0xFFFFFFFF


def string_hash(text: str) -> int:
    """Return ``String.hashCode`` as an unsigned 32-bit number."""
    if text.isascii():
        value: int = sum(map(mul, text.encode(), _powers(len(text)))) & _MASK
        return value
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _MASK
    return value


def signed_32(value: int) -> int:
    """Return an unsigned 32-bit number as a Java int."""
    return value - (1 << 32) if value >> 31 else value


@lru_cache(maxsize=256)
def _powers(count: int) -> tuple[int, ...]:
    """Return the powers of 31 from ``count`` - 1 down to 0, modulo 2**32."""
    return tuple(pow(31, exponent, 1 << 32) for exponent in reversed(range(count)))
