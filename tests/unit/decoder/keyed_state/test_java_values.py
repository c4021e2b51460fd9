"""Java's dates and times, printed as in Java.

The expected strings are from java.time's documentation or follow from its rules.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta

import pytest

from decoder.keyed_state.java_values import (
    MAX_SECOND,
    MIN_SECOND,
    Instant,
    LocalDate,
    LocalDateTime,
    LocalTime,
    SqlDate,
    SqlTime,
)


@pytest.mark.parametrize("day", [*range(-719_162, 2_932_896, 9973), 0, 59, 60, 11_016, 11_017])
def test_epoch_days_match_calendar(day: int) -> None:
    expected = date(1970, 1, 1) + timedelta(days=day)
    found = LocalDate.of_epoch_day(day)
    assert (found, found.epoch_day) == ((expected.year, expected.month, expected.day), day)
    assert found.exists
    assert str(found) == str(expected)


def test_epoch_days_beyond_python_range_are_printed() -> None:
    assert str(LocalDate.of_epoch_day(365_241_780_471)) == "+999999999-12-31"  # LocalDate.MAX
    assert str(LocalDate.of_epoch_day(-365_243_219_162)) == "-999999999-01-01"  # LocalDate.MIN


@pytest.mark.parametrize("year", [2023, 2024])
@pytest.mark.parametrize("month", range(1, 13))
def test_month_has_correct_number_of_days(year: int, month: int) -> None:
    _, last = monthrange(year, month)
    assert [LocalDate(year, month, day).exists for day in (1, last, last + 1)] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("day", "exists"),
    [
        (LocalDate(2023, 2, 29), False),
        (LocalDate(2024, 2, 29), True),
        (LocalDate(1900, 2, 29), False),
        (LocalDate(2000, 2, 29), True),
        (LocalDate(2024, 4, 31), False),
        (LocalDate(2024, 13, 1), False),
        (LocalDate(2024, 0, 1), False),
        (LocalDate(2024, 1, 0), False),
        (LocalDate(1_000_000_000, 1, 1), False),
        (LocalTime(24, 0, 0, 0), False),
        (LocalTime(23, 60, 0, 0), False),
        (LocalTime(23, 59, 60, 0), False),
        (LocalTime(23, 59, 59, 1_000_000_000), False),
        (LocalTime(23, 59, 59, 999_999_999), True),
        (Instant(0, -1), False),
        (Instant(MAX_SECOND + 1, 0), False),
        (Instant(MIN_SECOND, 0), True),
    ],
)
def test_impossible_dates_and_times_are_reported_as_nonexistent(
    day: LocalDate | LocalTime | Instant, exists: bool
) -> None:
    assert day.exists is exists


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (LocalTime(0, 0, 0, 0), "00:00"),
        (LocalTime(10, 15, 30, 0), "10:15:30"),
        (LocalTime(0, 0, 0, 1_000_000), "00:00:00.001"),
        (LocalTime(0, 0, 0, 1_000), "00:00:00.000001"),
        (LocalTime(0, 0, 0, 10), "00:00:00.000000010"),
        (LocalDate(12345, 1, 2), "+12345-01-02"),
        (LocalDate(-5, 1, 2), "-0005-01-02"),
        (LocalDateTime.of_epoch(-1, 5_000_000), "1969-12-31T23:59:59.005"),
        (Instant(0, 0), "1970-01-01T00:00:00Z"),
        (Instant.of_millis(-1), "1969-12-31T23:59:59.999Z"),
        (Instant(MAX_SECOND, 999_999_999), "+1000000000-12-31T23:59:59.999999999Z"),
        (SqlDate.of_millis(86_400_000), "1970-01-02"),
        (SqlDate.of_millis(82_800_000), "1970-01-01T23:00:00Z"),
        (SqlTime.of_millis(3_600_000), "01:00"),
        (SqlTime.of_millis(-3_600_000), "1969-12-31T23:00:00Z"),
    ],
)
def test_java_values_are_printed_as_in_java(value: object, text: str) -> None:
    assert str(value) == text
