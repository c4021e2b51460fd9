"""Java's numbers of any size.

Source: java.math.{BigInteger, BigDecimal} @ JDK 17.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal

from decoder.errors import DecodeError, ErrorKind

# The most bytes of a number that are read: 2,466 digits. To turn one into digits takes the square
# of its length, and Python prints none of more than 4,300.
_MOST_BYTES = 1024
# Nothing is rounded: a decimal is its digits and where the point stands.
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def big_integer(data: bytes) -> int:
    """Big-endian two's complement.

    Raises:
        DecodeError: of no bytes, or of more than are read.
    """
    if len(data) > _MOST_BYTES:
        raise DecodeError(
            ErrorKind.TOO_LARGE, f"a number of {len(data)} bytes: at most {_MOST_BYTES} are read"
        )
    if not data:
        raise DecodeError(ErrorKind.CORRUPT, "a number without digits")
    return int.from_bytes(data, "big", signed=True)


def scaled(unscaled: int, scale: int) -> Decimal:
    """``unscaled`` / 10 ** ``scale``, exactly, with as many digits behind the point."""
    return Decimal(unscaled).scaleb(-scale, _EXACT)
