"""Xids, NVLink 5 sub-codes and SXids: what NVIDIA's error codes mean and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any

from cockpit.catalog.reader import load
from cockpit.catalog.severity import Remedy, Severity, expand

NVLINK5 = frozenset(range(144, 151))
RECOVERY_CHANGED = 154


@dataclass(frozen=True, slots=True)
class XidFact:
    """One Xid. `told` is what each public source says, as (source, words); `known` False for a foreign code."""

    code: int
    title: str
    severity: Severity
    remedy: Remedy
    meaning: str
    next_step: str
    app_fault: bool = False  # normally the job's own: never drain for it by itself
    repeats: Severity | None = None  # when one GPU has it under different jobs
    again: Severity | None = None  # when it is back after a reset or reboot
    folds: bool = False  # only comes with another fault
    driver_hangs: bool = False  # stop asking the driver of that node
    told: tuple[tuple[str, str], ...] = ()
    known: bool = True


@dataclass(frozen=True, slots=True)
class SxidFact:
    """One error code of an NVSwitch; `name` is what the line itself calls it, where that is known."""

    code: int
    title: str
    name: str
    severity: Severity
    remedy: Remedy
    meaning: str
    next_step: str
    growing: Severity | None = None  # when the count grows, or no end follows
    again: Severity | None = None
    told: tuple[tuple[str, str], ...] = ()
    known: bool = True


@dataclass(frozen=True, slots=True)
class LinkVerdict:
    """What an Xid 144-150 asks for: reset, wait (for the Xid 154 that follows), watch or ignore."""

    verdict: str
    severity: Severity
    hint: str = ""
    known: bool = True  # False: no rule fits, and the line's own word decided


@lru_cache(maxsize=1024)
def xid(code: int) -> XidFact:
    """The fact about an Xid; unknown codes are a warning that says so."""
    entry = _xids().get(code)
    table = load("xids")
    known = entry is not None
    entry = entry or table["unknown"]
    return XidFact(
        code=code,
        title=entry["title"],
        severity=Severity(entry["severity"]),
        remedy=Remedy(entry["do"]),
        meaning=entry["means"],
        next_step=entry["next"],
        app_fault=entry.get("app", False),
        repeats=_severity(entry, "repeats"),
        again=_severity(entry, "again"),
        folds=entry.get("folds", False),
        driver_hangs=entry.get("hangs", False),
        told=_told(code, entry, table["lists"]) if known else (),
        known=known,
    )


def known_xids() -> tuple[int, ...]:
    """Every code of the catalogue, in order."""
    return tuple(sorted(_xids()))


@lru_cache(maxsize=1024)
def sxid(code: int, fatal: bool | None = None) -> SxidFact:
    """The fact about an SXid, where `fatal` is the word of its line; None when the line has none."""
    table = load("sxids")
    entry = _sxids().get(code)
    known = entry is not None
    entry = entry or table["unknown"]
    by_word = _severity(entry, "fatal") if fatal else None
    told = {source: str(entry[source]) for source in ("nvidia", "gpud") if source in entry}
    if code in table["gpud_warning"]:
        told["gpud"] = "warning"
    return SxidFact(
        code=code,
        title=entry["title"],
        name=table["names"].get(code, ""),
        severity=by_word or Severity(entry["severity"]),
        remedy=Remedy(entry["do"]),
        meaning=entry["means"],
        next_step=entry["next"],
        growing=_severity(entry, "growing"),
        again=_severity(entry, "again"),
        told=tuple(told.items()),
        known=known,
    )


def known_sxids() -> tuple[int, ...]:
    """Every NVSwitch code of the catalogue, in order."""
    return tuple(sorted(_sxids()))


def nvlink5(code: int, unit: str, first: int, status: int, *, fatal: bool) -> LinkVerdict:
    """Judge one line of Xid 144-150 by its two first hex words and by its word Fatal or Nonfatal."""
    table = load("nvlink5")
    if status == table["ignored_status"]:
        return LinkVerdict("ignore", Severity.INFO)
    sub_code = sub_code_of(first)
    for rule in table["rules"]:
        if rule["xid"] != code or not fnmatchcase(unit, rule["unit"]):
            continue
        if status in rule.get("status", [status]) and sub_code in rule.get("sub_codes", [sub_code]):
            return LinkVerdict(rule["verdict"], _VERDICTS[rule["verdict"]], rule.get("hint", ""))
    return LinkVerdict("reset" if fatal else "watch", Severity.DRAIN if fatal else Severity.WARN, known=False)


def sub_code_of(first: int) -> int:
    """The sub-code inside the first hex word of an NVLink 5 line: 0x004505c6 -> 4."""
    return (first >> 20) & 0x3F


_VERDICTS = {
    "reset": Severity.DRAIN,
    "wait": Severity.WARN,
    "watch": Severity.WARN,
    "ignore": Severity.INFO,
}


def _severity(entry: Mapping[str, Any], key: str) -> Severity | None:
    return Severity(entry[key]) if key in entry else None


def _told(code: int, entry: Mapping[str, Any], lists: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    said = {source: str(entry[source]) for source in ("nvidia", "gpud", "adt") if source in entry}
    if "gpud" not in said and code in expand(lists["gpud_fatal_reboot"]):
        said["gpud"] = "fatal: reboot"
    said["eks"] = "fatal" if code in expand(lists["eks_fatal"]) else "not in its list"
    said["nhc"] = "bad" if code in expand(lists["nhc_bad"]) else "not in its list"
    said["gcm"] = "warning" if code in lists["gcm_warning"] else "critical"
    return tuple(said.items())


@cache
def _xids() -> dict[int, dict[str, Any]]:
    return {code: entry for entry in load("xids")["xids"] for code in expand(entry["codes"])}


@cache
def _sxids() -> dict[int, dict[str, Any]]:
    return {code: entry for entry in load("sxids")["classes"] for code in expand(entry["codes"])}
