"""The kernel's messages with their times, whichever program printed them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any

_LONGEST = 4096  # characters of a line that are looked at

# journalctl -o short-iso and short-iso-precise
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?\s+\S+\s+([^\s\[:]{1,64})(?:\[\d+\])?:\s?(.*)"
)
# dmesg -T; always in English
_DMESG_T = re.compile(r"\[\w{3}\s+(\w{3})\s+(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})\] ?(.*)")
_DMESG = re.compile(r"\[\s*(\d{1,12})\.(\d{6})\] ?(.*)")
_SYSLOG = re.compile(r"\w{3}\s+\d{1,2} \d\d:\d\d:\d\d \S+ kernel: ?(?:\[\s*\d+\.\d+\] ?)?(.*)")
_KMSG = re.compile(r"\d{1,4},\d+,(\d{1,18}),[^;]{0,64};(.*)")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One message. `at` is None where the log tells no time, `boot` is the boot id or empty.

    `continued`: it goes on with the message before it. The text is as it came, at most 4096 characters.
    """

    text: str
    at: float | None = None
    boot: str = ""
    continued: bool = False


def kernel_lines(raw: bytes, *, tz: tzinfo | None = None, booted_at: float | None = None) -> Iterator[KernelLine]:
    """The messages of `journalctl -o json`, `-o short-iso[-precise]`, `dmesg`, `dmesg -T`, syslog or /dev/kmsg.

    Forms may be mixed, and a line of no form is a message without a time. What other programs than the kernel
    logged is left out, since anybody may log anything. `tz` is the zone of the machine that
    ran `dmesg -T` (default: this one's); with `booted_at` (epoch) seconds since boot become times.
    """
    for line in raw.decode("utf-8", "replace").split("\n"):
        line = line.rstrip("\r")
        if line.startswith("{"):
            yield from _journal(line)
        elif line.strip() and not line.startswith("-- "):
            found = _text_line(line[:_LONGEST], tz, booted_at)
            if found is not None:
                yield found


def _journal(line: str) -> Iterator[KernelLine]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return  # half a line, as a broken connection leaves it
    if not isinstance(record, dict) or record.get("_TRANSPORT", "kernel") != "kernel":
        return
    boot = record.get("_BOOT_ID")
    at = _micros(record.get("__REALTIME_TIMESTAMP"))
    for place, text in enumerate(_message(record.get("MESSAGE")).split("\n")):
        if text.strip():
            yield KernelLine(text[:_LONGEST], at, boot if isinstance(boot, str) else "", continued=place > 0)


def _message(value: Any) -> str:
    """The text of a journal field: a string, or a list of bytes where it is no clean UTF-8."""
    if isinstance(value, list):
        return bytes(byte for byte in value if isinstance(byte, int) and 0 <= byte < 256).decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def _micros(value: Any) -> float | None:
    digits = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 18
    return int(value) / 1e6 if digits else None


def _text_line(line: str, tz: tzinfo | None, booted_at: float | None) -> KernelLine | None:
    if found := _ISO.match(line):
        return KernelLine(found[5], _iso(found[1], found[2], found[3], tz)) if found[4] == "kernel" else None
    if found := _DMESG_T.match(line):
        return KernelLine(found[7], _english(found, tz))
    if found := _DMESG.match(line):
        since = int(found[1]) + int(found[2]) / 1e6
        return KernelLine(found[3], None if booted_at is None else booted_at + since)
    if found := _SYSLOG.match(line):
        return KernelLine(found[1])  # its times have no year
    if found := _KMSG.match(line):
        return KernelLine(found[2], None if booted_at is None else booted_at + int(found[1]) / 1e6)
    return KernelLine(line.strip(), continued=line[:1].isspace())


def _iso(stamp: str, fraction: str | None, zone: str | None, tz: tzinfo | None) -> float | None:
    try:
        moment = datetime.fromisoformat(stamp)
        if zone == "Z":
            tz = timezone.utc
        elif zone:
            minutes = int(zone[1:3]) * 60 + int(zone[-2:])
            tz = timezone(timedelta(minutes=-minutes if zone[0] == "-" else minutes))
        return moment.replace(tzinfo=tz).timestamp() + float(f"0.{fraction or 0}")
    except (ValueError, OverflowError, OSError):
        return None


def _english(found: re.Match[str], tz: tzinfo | None) -> float | None:
    if found[1] not in _MONTHS:
        return None
    day, hour, minute, second, year = (int(found[place]) for place in range(2, 7))
    try:
        return datetime(year, _MONTHS.index(found[1]) + 1, day, hour, minute, second, tzinfo=tz).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
