"""`Fri 19:00` and the like, as a person writes them, to moments and to EventBridge Scheduler's expressions. Pure."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
EVERY = ("day", "weekday", "week")
_WRITTEN = re.compile(
    r"(?:(?P<date>\d{4}-\d\d-\d\d)[ T]|(?P<day>mon|tue|wed|thu|fri|sat|sun)[a-z]*\s+)?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class When:
    """The first time, in a named zone, and how it comes again: "" (once), day, weekday or week."""

    first: datetime
    every: str = ""
    days_on: int = 0  # by how many days a shift has gone over midnight

    def shifted(self, minutes: int) -> When:
        """The same a little later, on the clock of the wall."""
        later = self.first.replace(tzinfo=None) + timedelta(minutes=minutes)
        days_on = self.days_on + (later.date() - self.first.date()).days
        return When(_real(later.replace(tzinfo=self.first.tzinfo)), self.every, days_on)

    @property
    def zone(self) -> str:
        return str(self.first.tzinfo)

    @property
    def expression(self) -> str:
        """`at(...)` once, `cron(...)` again and again; both are in the schedule's own zone."""
        at = self.first
        if not self.every:
            return f"at({at:%Y-%m-%dT%H:%M:%S})"
        weekdays = f"{DAYS[self.days_on % 7]}-{DAYS[(4 + self.days_on) % 7]}"
        days = {"day": "*", "weekday": weekdays, "week": DAYS[at.weekday()]}[self.every]
        return f"cron({at.minute} {at.hour} ? * {days} *)"

    @property
    def words(self) -> str:
        """`Fri 27 Nov 19:00 Europe/Berlin, then every week`."""
        again = f", then every {self.every}" if self.every else ""
        return f"{self.first:%a %d %b %H:%M} {self.zone}{again}"


def read_when(text: str, now: datetime, every: str = "") -> When:
    """The next such time after `now`, whose zone (a ZoneInfo) counts; raises ValueError with what may be written."""
    match = _WRITTEN.fullmatch(text.strip())
    if match is None or every not in ("", *EVERY):
        raise ValueError(f"{text!r} is no time: write `Fri 19:00`, `19:00` or `2026-12-01 19:00`")
    hour, minute = int(match["hour"]), int(match["minute"])
    if hour > 23 or minute > 59:
        raise ValueError(f"{text!r}: there is no such time of day")
    if match["date"]:
        return _there(_on_date(match["date"], hour, minute, now, every))
    first = _at(now, hour, minute)
    wanted = DAYS.index(match["day"][:3].upper()) if match["day"] else None
    allowed = range(5) if every == "weekday" else range(7)
    if wanted is not None and wanted not in allowed:
        raise ValueError(f"{text!r} is no weekday")
    days = allowed if wanted is None else (wanted,)
    while first <= now or first.weekday() not in days:
        first = _at(first + timedelta(days=1), hour, minute)
    return _there(When(first, every))


def _there(when: When) -> When:
    """The same; raises ValueError for one that the clocks leave out: what EventBridge does then is not told."""
    if not when.every and _real(when.first) != when.first:
        raise ValueError(f"{when.first:%a %d %b} has no {when.first:%H:%M}: the clocks go forward then")
    return when


def _real(moment: datetime) -> datetime:
    """What the clock on the wall shows at that moment: an hour later for a time that summer time leaves out."""
    shown = moment.astimezone(timezone.utc).astimezone(moment.tzinfo)
    return shown.replace(fold=moment.fold) if shown.replace(tzinfo=None) != moment.replace(tzinfo=None) else moment


def _on_date(date: str, hour: int, minute: int, now: datetime, every: str) -> When:
    try:
        first = datetime.fromisoformat(f"{date}T{hour:02d}:{minute:02d}:00").replace(tzinfo=now.tzinfo)
    except ValueError as error:
        raise ValueError(f"{date} is no date: {error}") from None
    if first <= now:
        raise ValueError(f"{date} {hour:02d}:{minute:02d} is over")
    return When(first, every)


def _at(day: datetime, hour: int, minute: int) -> datetime:
    return day.replace(hour=hour, minute=minute, second=0, microsecond=0)


def local_zone(files: tuple[Path, Path] = (Path("/etc/timezone"), Path("/etc/localtime"))) -> ZoneInfo:
    """This machine's zone by its IANA name, which EventBridge wants; UTC when nobody tells the name."""
    names = [os.environ.get("TZ", "").lstrip(":")]
    try:
        names.append(str(files[1].resolve(strict=True)).partition("/zoneinfo/")[2])
        names.append(files[0].read_text(encoding="utf-8").strip())
    except OSError:
        pass
    for name in names:
        try:
            if name:
                return ZoneInfo(name)
        except (ValueError, OSError, KeyError):
            continue
    return ZoneInfo("UTC")
