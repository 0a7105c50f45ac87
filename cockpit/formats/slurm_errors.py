"""What went wrong when one of Slurm's programs failed, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cockpit.catalog.reader import load
from cockpit.models import Fault, FaultKind
from cockpit.text import printable

_READ_BYTES = 8192  # errors are short; what follows may be a whole queue
_SHOWN = 160
_TIMED_OUT = frozenset({124, 137})  # what `timeout` returns: it ended the command, or had to kill it
_SIGKILLED = frozenset({137, -9})  # by `timeout`, or by the kernel when memory ran out
_NEARLY = 0.8  # of the deadline; what was killed before cannot have been `timeout`'s work
_NO_SUCH_PROGRAM = 127
_NOT_EXECUTABLE = 126

# An unknown column only leaves its values empty, and Slurm's programs exit with 0 (seen on 22.05 to 25.11).
_HARMLESS = (
    "invalid job format specification",
    "invalid node format specification",
    "invalid field requested",
)


@dataclass(frozen=True, slots=True)
class _Known:
    any: tuple[str, ...]
    kind: FaultKind
    why: str
    next: str


def classify(
    rc: int,
    stdout: bytes,
    stderr: bytes,
    *,
    what: str,
    took_s: float | None = None,
    deadline_s: float | None = None,
) -> Fault:
    """The fault behind a failed command: by its text, and where that tells nothing by its exit status.

    The texts decide, since statuses differ from program to program (scancel: 8, 140, 210); only a command
    ended by `timeout` is a TIMEOUT whatever it said. A change that was under way then may still happen. Without
    `took_s` and `deadline_s` (seconds) status 137 counts as the work of `timeout`.
    """
    ended = _ended(rc, what, took_s, deadline_s)
    if ended:
        return ended
    # What was printed of a queue holds names that a user chose, and is no error text.
    said = _lines(stderr), _lines(b"" if b"\x1f" in stdout else stdout)
    found = _match(said[0]) or _match(said[1])
    if found:
        known, line = found
        return Fault(known.kind, what, known.why.replace("{match}", line), known.next)
    return _by_status(rc, said[0] or said[1], what)


def complaint(
    rc: int,
    stdout: bytes,
    stderr: bytes,
    *,
    what: str,
    took_s: float | None = None,
    deadline_s: float | None = None,
) -> Fault | None:
    """A fault, or None when the command did what it should.

    Some fail with exit status 0 and a text on stderr: `scontrol write batch_script`, `scontrol show
    hostnames`. Complaints about a column that this Slurm does not know are no fault.
    """
    if rc != 0:
        return classify(rc, stdout, stderr, what=what, took_s=took_s, deadline_s=deadline_s)
    lines = [line for line in _lines(stderr) if not _harmless(line)]
    if lines and not stdout.strip() and _match(lines):
        return classify(rc, b"", stderr, what=what)
    return None


def _ended(rc: int, what: str, took_s: float | None, deadline_s: float | None) -> Fault | None:
    """The fault of a command that `timeout` or a SIGKILL ended, None for all others."""
    if rc in _SIGKILLED and took_s is not None and deadline_s is not None and took_s < _NEARLY * deadline_s:
        return Fault(
            FaultKind.FAILED,
            what,
            "killed (SIGKILL), most likely out of memory on the head",
            "on the head: `free -m`, and `dmesg` for the kernel's out-of-memory killer",
        )
    if rc in _TIMED_OUT or (rc in _SIGKILLED and took_s is not None and deadline_s is not None):
        return Fault(FaultKind.TIMEOUT, what, "no answer within the deadline", "it is tried again")
    return None


def _match(lines: list[str]) -> tuple[_Known, str] | None:
    folded = [line.casefold() for line in lines]
    for known in _catalogue():
        for line, text in zip(lines, folded, strict=True):
            if any(piece in text for piece in known.any):
                return known, line
    return None


def _by_status(rc: int, lines: list[str], what: str) -> Fault:
    said = lines[-1] if lines else "it said nothing"
    if rc == _NO_SUCH_PROGRAM:
        return Fault(FaultKind.MISSING, what, f"the program is not there ({said})", "is this the head node?")
    if rc == _NOT_EXECUTABLE:
        return Fault(FaultKind.DENIED, what, f"the program may not be run ({said})", "look at its permissions")
    if rc < 0:
        return Fault(FaultKind.FAILED, what, f"ended by signal {-rc} ({said})", "look at the host's kernel log")
    return Fault(FaultKind.FAILED, what, f"exit status {rc}: {said}", "")


def _lines(raw: bytes) -> list[str]:
    lines = raw[:_READ_BYTES].decode("utf-8", "replace").split("\n")
    return [printable(line.strip())[:_SHOWN] for line in lines if line.strip()]


def _harmless(line: str) -> bool:
    return any(piece in line.casefold() for piece in _HARMLESS)


@cache
def _catalogue() -> tuple[_Known, ...]:
    return tuple(
        _Known(
            tuple(piece.casefold() for piece in entry["any"]),
            FaultKind(entry["kind"]),
            entry["why"],
            entry["next"],
        )
        for entry in load("slurm_errors")
    )
