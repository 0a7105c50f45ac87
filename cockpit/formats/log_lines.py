"""Lines of a job's output: made fit to be shown, and what those mean that tell of trouble."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from cockpit.catalog.log_patterns import CRITICAL, WARN, LogPattern, log_patterns
from cockpit.catalog.severity import Severity
from cockpit.catalog.xids import xid
from cockpit.text import printable

CODE = "code"  # the class of what is the program's own fault
LONGEST = 16_384  # characters of a line that are shown

# Colours and cursor movements that programs write for a terminal, and a title for its window.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)|[()][0-9A-B])")
# What a hole in a file or a binary looks like; a thousand of the same signs tell no more than their number.
_RUN = re.compile(r"([\x00-\x08\x0b-\x1f\x7f\ufffd])\1{7,}")


@dataclass(frozen=True, slots=True)
class LogSign:
    """What a line means. `effect`: it follows from something else and is not the first error.

    `facts` are what the line itself names, as (name, value): node, rank, peer, port, step, error, seq, op, ...
    """

    id: str
    title: str
    severity: str  # critical, warn or info
    class_: str
    meaning: str
    next_step: str
    effect: bool = False
    facts: tuple[tuple[str, str], ...] = ()

    def fact(self, name: str) -> str:
        """What the line names under that name, "" when it names none."""
        return next((value for key, value in self.facts if key == name), "")

    @property
    def is_error(self) -> bool:
        """True for what may be the first error: harm that does not follow from another line's."""
        return self.severity == CRITICAL and not self.effect


def shown_line(raw: bytes) -> str:
    """One line as it may be shown: what a progress bar wrote last, without colours, tabs as blanks.

    Bytes that are no UTF-8 and control characters become visible signs; a long line is cut and says so.
    """
    text = last_state(raw).decode("utf-8", "replace")
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} … {len(text) - LONGEST:,} more characters in this line"
    if not (text.isascii() and text.isprintable()):
        text = _ESCAPES.sub("", text).expandtabs(8)
        text = _RUN.sub(lambda run: f"{printable(run[1])}×{len(run[0]):,}", text)
    return printable(text)


def last_state(raw: bytes) -> bytes:
    """What is left on a terminal of a line that carriage returns have rewritten."""
    if b"\r" not in raw:
        return raw
    body = raw.rstrip(b"\r")
    return body[body.rfind(b"\r") + 1 :]


def sign_of(text: str) -> LogSign | None:
    """What a shown line tells of trouble; None for an ordinary one."""
    if _telling().search(text) is None:
        return None
    for pattern in log_patterns():
        if any(word in text for word in pattern.find) and (found := pattern.match.search(text)):
            return _sign(pattern, found)
    return None


@cache
def _telling() -> re.Pattern[str]:
    """One look that finds no sign in nearly every line."""
    return re.compile("|".join(re.escape(word) for pattern in log_patterns() for word in pattern.find))


def _sign(pattern: LogPattern, found: re.Match[str]) -> LogSign:
    title, severity, meaning, step = pattern.title, pattern.severity, pattern.meaning, pattern.next_step
    class_, named = pattern.class_, found.groupdict()
    if (code := named.get("code")) is not None and len(code) < 6:
        fact = xid(int(code))
        title, meaning, step = f"Xid {code}: {fact.title}", fact.meaning, fact.next_step
        severity = CRITICAL if fact.severity.rank >= Severity.DRAIN.rank else WARN
        class_ = CODE if fact.app_fault else class_
    # Where a text has two forms, the second one's groups end in 2.
    facts = tuple((name.rstrip("2"), value) for name, value in named.items() if value)
    return LogSign(pattern.id, title, severity, class_, meaning, step, pattern.effect, facts)
