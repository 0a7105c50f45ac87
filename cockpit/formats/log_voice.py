"""Who wrote a line of a log and when, as far as the line itself tells."""

from __future__ import annotations

import re

_RANK = re.compile(r"^\[rank(\d{1,6})\]:|\[[^\]]*\bRank (\d{1,6})\]|^\[Rank (\d{1,6})\]|^\s*(\d{1,6}): ")
_NCCL_NODE = re.compile(r"(?:^|\s)([A-Za-z0-9][\w.-]{0,252}):\d+:\d+ \[\d+\]")
_GROUP = re.compile(r"PG GUID (\S+?)\(")
# Three ways to write a moment; glog's has no year: E810 is the tenth of August.
_ISO = re.compile(r"\d{4}-(\d\d)-(\d\d)[T_ ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
_GLOG = re.compile(r"\[?[IWEF](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SYSLOG = re.compile(rf"\b({'|'.join(_MONTHS)}) +(\d{{1,2}}) (\d\d):(\d\d):(\d\d)(?:\.(\d{{1,9}}))?")
_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_LOOK = 400  # characters in which the time stands


def rank_of(text: str) -> int | None:
    """The rank that wrote the line, by PyTorch's marks or by `srun --label`."""
    found = _RANK.search(text[:_LOOK])
    if found is None:
        return None
    return int(next(part for part in found.groups() if part is not None))


def node_of(text: str) -> str:
    """The node that wrote a line of NCCL's own log, "" for other lines."""
    found = _NCCL_NODE.search(text[:_LOOK])
    return found[1] if found else ""


def group_of(text: str) -> str:
    """The process group that a watchdog's line is about, "" where it names none."""
    found = _GROUP.search(text[:_LOOK])
    return found[1] if found else ""


def moment_of(text: str) -> tuple[str, float | None]:
    """The time a line tells, as written, and in seconds since the year began (a leap year's day is not counted)."""
    head = text[:_LOOK]
    for pattern in (_GLOG, _ISO, _SYSLOG):
        found = pattern.search(head)
        if found is not None:
            month, *rest = found.groups()
            number = _MONTHS.index(month) + 1 if month in _MONTHS else int(month)
            at_s = _seconds(number, *rest)
            if at_s is not None:
                return found[0].lstrip("["), at_s
    return "", None


def _seconds(month: int, day: str, hour: str, minute: str, second: str, part: str | None) -> float | None:
    if not 1 <= month <= 12 or not 1 <= int(day) <= 31:
        return None
    days = _BEFORE_MONTH[month - 1] + int(day) - 1
    return days * 86400 + int(hour) * 3600 + int(minute) * 60 + int(second) + float(f"0.{part or 0}")
