"""Numbers as a tired person reads them: ages, spans, moments, sizes; and what a mistyped name may have meant."""

from __future__ import annotations

import time
from collections.abc import Iterable

MISSING = "–"
_NEXT_UNIT = 1023.5  # rounded from here on it would read 1024 of the smaller one
_WHOLE = 9.95  # from here on it is told without a decimal: 9.96 is 10, not 10.0
_utc = False


def show_utc(on: bool) -> None:
    """Show times of day in UTC from now on, in the whole process, or in the zone of this machine again."""
    global _utc
    _utc = on


def shows_utc() -> bool:
    """Whether times of day are shown in UTC."""
    return _utc


def on_the_wall(epoch: float) -> time.struct_time:
    """A moment as the clock on the wall shows it, in the zone that is shown."""
    return time.gmtime(epoch) if _utc else time.localtime(epoch)


def zone_word(epoch: float) -> str:
    """The zone that is shown: UTC, CET."""
    return "UTC" if _utc else time.strftime("%Z", time.localtime(epoch))


def span(seconds: float | None) -> str:
    """A duration in at most two units, at most six characters: 34s, 5m, 2h10m, 3d04h; `–` when not known."""
    if seconds is None:
        return MISSING
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 60:
        return f"{minutes}m"
    if hours < 24:
        return f"{hours}h{minutes % 60:02d}m"
    return f"{days}d{hours % 24:02d}h" if days < 100 else f"{days}d"


def slow_span(seconds: float) -> str:
    """The same without seconds, for lines that would otherwise be painted anew every second: <1m, 5m, 2h10m."""
    return span(seconds) if seconds >= 60 else "<1m"


def moment(epoch: float | None, now: float) -> str:
    """A time of day, with the date when it is not today: 14:02, 29 Nov 14:02."""
    if epoch is None:
        return MISSING
    then, today = on_the_wall(epoch), on_the_wall(now)
    same_day = (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M" if same_day else "%d %b %H:%M", then)


def clock_time(epoch: float) -> str:
    """The wall clock with its zone, as the header shows it once: 14:02:11 UTC."""
    return f"{time.strftime('%H:%M:%S', on_the_wall(epoch))} {zone_word(epoch)}"


def stamp(epoch: float) -> str:
    """A moment in full: 29 Nov 2026 14:02:11 UTC."""
    return f"{time.strftime('%d %b %Y %H:%M:%S', on_the_wall(epoch))} {zone_word(epoch)}"


def mib(size_mib: float | None) -> str:
    """A memory size in binary units, at most four digits: 512M, 2.0T, 98G; `–` when not known."""
    if size_mib is None:
        return MISSING
    value = float(size_mib)
    for unit in "MGTP":
        if value < _NEXT_UNIT or unit == "P":
            return f"{value:.0f}{unit}" if value >= _WHOLE or unit == "M" else f"{value:.1f}{unit}"
        value /= 1024
    raise AssertionError("unreachable")


def size(size_bytes: float | None) -> str:
    """A size of data in binary units: 812B, 12K, 3.1M, 5.0G; `–` when not known."""
    if size_bytes is None:
        return MISSING
    if size_bytes < 1024:
        return f"{size_bytes:.0f}B"
    if size_bytes / 1024 < _NEXT_UNIT:
        return f"{size_bytes / 1024:.0f}K"
    in_mib = size_bytes / 1024**2
    return f"{in_mib:.1f}M" if in_mib < _WHOLE else mib(in_mib)


def byte_rate(bytes_s: float) -> str:
    """A rate in decimal units, as networks are sold and nccl-tests tell: 9.2 GB/s, 120 MB/s, 0 B/s."""
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes_s >= one:
            return f"{bytes_s / one:.{0 if bytes_s >= 100 * one else 1}f} {unit}/s"
    return f"{bytes_s:.0f} B/s"


def count(number: int | None) -> str:
    """A count, or `–` when it is not known."""
    return MISSING if number is None else str(number)


def plural(number: int, noun: str) -> str:
    """`1 node`, `3 nodes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def binary_size(size_bytes: int) -> str:
    """A message size in binary units, exact where it is one: 16 GiB, 512 MiB, 8 B, about 127 MiB."""
    value, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    exact = value == int(value)
    return f"{int(value)} {unit}" if exact else f"about {value:.3g} {unit}"


def nearest(word: str, known: Iterable[str], *, listed: bool = True) -> str:
    """Behind the words that a name is unknown: `; did you mean `x`?`, else all names where they are to be `listed`."""
    import difflib  # for mistakes only

    names = list(known)
    if close := difflib.get_close_matches(word, names, n=1, cutoff=0.5):
        return f"; did you mean `{close[0]}`?"
    return f"; known: {', '.join(names)}" if listed else ""
