"""Numbers formatted as text, and rows formatted as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from migrate.model.wording import printable

ROWS_AT_ONCE = 1000  # the maximum number of rows in a piece of text


def difference_text(difference: int | None) -> str:
    """Return a number with its sign, or an empty string for None."""
    if difference is None:
        return ""
    return f"{difference:+d}" if difference else "0"


def operator_names(uid: str | None, name: str | None) -> str:
    """Return an operator's uid and name in parentheses; empty if it has neither."""
    names = ", ".join(printable(text) for text in (f"uid {uid}" if uid else None, name) if text)
    return f" ({names})" if names else ""


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a header and rows as CSV."""
    return "".join(csv_pieces(columns, rows))


def csv_pieces(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield the header, then the rows in pieces of up to ``ROWS_AT_ONCE`` rows, as CSV."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    rows = iter(rows)
    while text.tell():
        yield text.getvalue()
        text.seek(0)
        text.truncate()
        writer.writerows(islice(rows, ROWS_AT_ONCE))


def lag_text(known: int | None, unknown: int) -> str:
    """Return the total known lag, followed by ``+?`` if the lag of some partitions is unknown.

    Return an empty string if no lag is known.
    """
    if known is None:
        return ""
    return f"{known}+?" if unknown else str(known)
