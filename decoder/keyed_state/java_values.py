"""Classes for Java values that Python's own types cannot represent exactly.

All classes except ``Pairs`` are immutable.

java.time supports nanoseconds and years up to 999,999,999; Python's datetime supports only
microseconds and the years 1 to 9999. ``str`` of a java.time value returns the same text as Java's
``toString``.

Source: java.time.{Instant, LocalDate, LocalTime, LocalDateTime, Duration, ZoneOffset},
ISO_INSTANT @ JDK 17.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import Self

_SECONDS_PER_DAY = 86_400
_NANOS = 1_000_000_000
# The number of days in a 400-year Gregorian cycle, and from 0000-03-01 to 1970-01-01.
_CYCLE_DAYS = 146_097
_DAYS_TO_EPOCH = 719_468
_DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# The years of a LocalDate are from -MAX_YEAR to MAX_YEAR; the range of an Instant is nearly the
# same.
MAX_YEAR = 999_999_999
_LAST_YEAR_OF_FOUR_DIGITS = 9999
MIN_SECOND, MAX_SECOND = -31_557_014_167_219_200, 31_556_889_864_403_199


class Pairs(list[tuple[Any, Any]]):
    """A map as (key, value) pairs in stored order; not a dict, because keys may be unhashable."""

    __slots__ = ()


class LocalDate(NamedTuple):
    year: int
    month: int
    day: int

    @classmethod
    def of_epoch_day(cls, days: int) -> LocalDate:
        """Return the date that is ``days`` days after 1970-01-01."""
        # Count from March 1 of year 0, so that a leap day is the last day of its year.
        cycle, day = divmod(days + _DAYS_TO_EPOCH, _CYCLE_DAYS)
        year = (day - day // 1460 + day // 36524 - day // 146096) // 365
        day -= 365 * year + year // 4 - year // 100
        month = (5 * day + 2) // 153
        day -= (153 * month + 2) // 5
        year += 400 * cycle
        return cls(year + 1, month - 9, day + 1) if month >= 10 else cls(year, month + 3, day + 1)

    @property
    def epoch_day(self) -> int:
        year, month = (
            (self.year - 1, self.month + 9) if self.month < 3 else (self.year, self.month - 3)
        )
        cycle, year = divmod(year, 400)
        return (
            cycle * _CYCLE_DAYS
            + 365 * year
            + year // 4
            - year // 100
            + (153 * month + 2) // 5
            + self.day
            - 1
            - _DAYS_TO_EPOCH
        )

    @property
    def exists(self) -> bool:
        """True if the calendar has this date and LocalDate allows its year."""
        if not (-MAX_YEAR <= self.year <= MAX_YEAR and 1 <= self.month <= 12 and self.day >= 1):
            return False
        if self.month == 2 and self.day == 29:
            return self.year % 4 == 0 and (self.year % 100 != 0 or self.year % 400 == 0)
        return self.day <= _DAYS_IN_MONTH[self.month - 1]

    def __str__(self) -> str:
        year = self.year
        sign = "-" if year < 0 else "+" if year > _LAST_YEAR_OF_FOUR_DIGITS else ""
        text = f"{sign}{abs(year):04d}"
        return f"{text}-{self.month:02d}-{self.day:02d}"


class LocalTime(NamedTuple):
    hour: int
    minute: int
    second: int
    nano: int

    @classmethod
    def of_nano_of_day(cls, nanos: int) -> LocalTime:
        """Return the time that is ``nanos`` nanoseconds (less than a day) after midnight."""
        seconds, nano = divmod(nanos, _NANOS)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        return cls(hour, minute, second, nano)

    @property
    def nano_of_day(self) -> int:
        return ((self.hour * 60 + self.minute) * 60 + self.second) * _NANOS + self.nano

    @property
    def exists(self) -> bool:
        """True if every field is in its range."""
        return (
            0 <= self.hour < 24
            and 0 <= self.minute < 60
            and 0 <= self.second < 60
            and 0 <= self.nano < _NANOS
        )

    def __str__(self) -> str:
        text = f"{self.hour:02d}:{self.minute:02d}"
        if self.second or self.nano:
            text += f":{self.second:02d}{_fraction(self.nano)}"
        return text


class LocalDateTime(NamedTuple):
    date: LocalDate
    time: LocalTime

    @classmethod
    def of_epoch(cls, seconds: int, nano: int) -> LocalDateTime:
        """Return the UTC date and time ``seconds`` and ``nano`` nanoseconds after the epoch."""
        days, second = divmod(seconds, _SECONDS_PER_DAY)
        return cls(LocalDate.of_epoch_day(days), LocalTime.of_nano_of_day(second * _NANOS + nano))

    def __str__(self) -> str:
        return f"{self.date}T{self.time}"


class Instant(NamedTuple):
    """A point in time: seconds since the epoch, and nanoseconds of the second."""

    seconds: int
    nano: int

    @classmethod
    def of_millis(cls, millis: int, nano_of_millisecond: int = 0) -> Self:
        seconds, rest = divmod(millis, 1000)
        return cls(seconds, rest * 1_000_000 + nano_of_millisecond)

    @property
    def exists(self) -> bool:
        """True if the point in time is in the range of java.time.Instant."""
        return MIN_SECOND <= self.seconds <= MAX_SECOND and 0 <= self.nano < _NANOS

    def __str__(self) -> str:
        days, second = divmod(self.seconds, _SECONDS_PER_DAY)
        minutes, second = divmod(second, 60)
        hour, minute = divmod(minutes, 60)
        date = LocalDate.of_epoch_day(days)
        return f"{date}T{hour:02d}:{minute:02d}:{second:02d}{_fraction(self.nano)}Z"


class SqlDate(Instant):
    """A java.sql.Date: midnight in the JVM's time zone; the time zone is not stored.

    A value that is midnight in UTC is printed as a date, and any other value as a point in time.
    """

    __slots__ = ()

    def __str__(self) -> str:
        days, rest = divmod(self.seconds, _SECONDS_PER_DAY)
        return str(LocalDate.of_epoch_day(days)) if rest == self.nano == 0 else super().__str__()


class SqlTime(Instant):
    """A java.sql.Time on 1970-01-01 in the JVM's time zone; the time zone is not stored.

    A value that is on 1970-01-01 in UTC is printed as a time of day, and any other value as a date
    and a time.
    """

    __slots__ = ()

    def __str__(self) -> str:
        if 0 <= self.seconds < _SECONDS_PER_DAY:
            return str(LocalTime.of_nano_of_day(self.seconds * _NANOS + self.nano))
        return super().__str__()


def duration_text(seconds: int, nano: int) -> str:
    """Return a java.time.Duration of ``seconds`` plus ``nano`` nanoseconds, as printed by Java."""
    total = seconds * _NANOS + nano
    if total == 0:
        return "PT0S"
    sign = "-" if total < 0 else ""
    whole, fraction = divmod(abs(total), _NANOS)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    text = f"{sign}{hours}H" if hours else ""
    if minute:
        text += f"{sign}{minute}M"
    if second or fraction:
        digits = f".{fraction:09d}".rstrip("0") if fraction else ""
        text += f"{sign}{second}{digits}S"
    return f"PT{text}"


def offset_text(seconds: int) -> str:
    """Return a java.time.ZoneOffset of ``seconds`` seconds, as printed by Java."""
    if seconds == 0:
        return "Z"
    minutes, second = divmod(abs(seconds), 60)
    text = f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{second:02d}" if second else text


def _fraction(nano: int) -> str:
    """Return the fraction in 3, 6, or 9 digits, as few as possible; "" for 0."""
    if nano == 0:
        return ""
    digits = f"{nano:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}"
