"""Slurm's durations and points in time."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

UNLIMITED = "UNLIMITED"

# D-HH[:MM[:SS]] or [HH:]MM:SS, with the fraction that sacct adds.
_WITH_DAYS = re.compile(r"([0-9]{1,18})-([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2}(?:\.[0-9]+)?))?)?")
_WITHOUT_DAYS = re.compile(r"(?:([0-9]{1,18}):)?([0-9]{1,18}):([0-9]{1,2}(?:\.[0-9]+)?)")
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?")
_SECONDS = re.compile(r"([0-9]{1,18})(?: sec)?")
_LONGEST_S = 36_500 * 86_400.0  # sstat prints 213503982334-14:25:51 for a time it does not know
_NOT_SET = 4_294_967_290  # 4294967294 and 4294967295 are Slurm's "not set" and "infinite"


def duration_s(text: str) -> float | None:
    """Seconds of `0:04`, `2:00:00`, `1-12:00:00`; `1:00` is one minute.

    None for every word (UNLIMITED, NOT_SET, Partition_Limit, INVALID, N/A, ...) and for absurd values.
    """
    text = text.strip()
    if found := _WITHOUT_DAYS.fullmatch(text):
        seconds = int(found[1] or 0) * 3600 + int(found[2]) * 60 + float(found[3])
    elif found := _WITH_DAYS.fullmatch(text):
        days, hours, minutes = int(found[1]), int(found[2]), int(found[3] or 0)
        seconds = days * 86_400 + hours * 3600 + minutes * 60 + float(found[4] or 0)
    else:
        return None
    return float(seconds) if seconds < _LONGEST_S else None


def instant(text: str, tz: tzinfo | None = None) -> float | None:
    """Seconds since the epoch of `1795982090` or of `2026-11-29T19:51:20`, which is local to `tz`.

    Without `tz` the local time zone of this machine is meant. None for Unknown, N/A, None, NONE, (null),
    for zero and Slurm's not-set values, and for styles without a full date.
    """
    if text.isdecimal() and text.isascii():
        return float(text) if 0 < len(text) <= 10 and 0 < int(text) < _NOT_SET else None
    if not _ISO.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=tz).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def config_seconds(text: str) -> float | None:
    """A time of `scontrol show config`: `60 sec`; None for INFINITE, NONE and other words."""
    found = _SECONDS.fullmatch(text.strip())
    return float(found[1]) if found and int(found[1]) < _NOT_SET else None
