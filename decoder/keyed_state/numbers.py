"""Java numbers of arbitrary size.

Source: java.math.{BigInteger, BigDecimal} @ JDK 17.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal

from decoder.errors import DecodeError, ErrorKind

# The size in bytes of the largest number to read (2,466 digits). Python prints at most 4,300
# digits.
_MAX_BYTES = 1024
# A context that does not round.
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def big_integer(data: bytes) -> int:
    """Return the integer whose big-endian two's complement is ``data``.

    Raises:
        DecodeError: ``data`` has no bytes, or too many.
    """
    if len(data) > _MAX_BYTES:
        raise DecodeError(
            ErrorKind.TOO_LARGE, f"a number of {len(data)} bytes; the limit is {_MAX_BYTES} bytes"
        )
    if not data:
        raise DecodeError(ErrorKind.CORRUPT, "a number without digits")
    return int.from_bytes(data, "big", signed=True)


def scaled(unscaled: int, scale: int) -> Decimal:
    """Return the exact value of ``unscaled`` / 10 ** ``scale`` as a Decimal with this scale."""
    return Decimal(unscaled).scaleb(-scale, _EXACT)
