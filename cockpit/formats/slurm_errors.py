"""What went wrong when one of Slurm's programs failed, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cockpit.catalog.reader import load
from cockpit.models import Fault, FaultKind
from cockpit.text import printable

_READ_BYTES = 8192  # errors are short; what follows may be a whole queue
_SHOWN = 160
_DEADLINE = frozenset({124, 137})  # what `timeout` returns: it ended the command, or had to kill it
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


def classify(rc: int, stdout: bytes, stderr: bytes, *, what: str) -> Fault:
    """The fault behind a failed command: by its text, and where that tells nothing by its exit status.

    The texts decide, since statuses differ from program to program (scancel: 8, 140, 210); only a command
    ended by `timeout` is a TIMEOUT whatever it said. A change that was under way then may still happen.
    """
    if rc in _DEADLINE:
        return Fault(FaultKind.TIMEOUT, what, "no answer within the deadline", "it is tried again")
    # What was printed of a queue holds names that a user chose, and is no error text.
    said = _lines(stderr), _lines(b"" if b"\x1f" in stdout else stdout)
    found = _match(said[0]) or _match(said[1])
    if found:
        known, line = found
        return Fault(known.kind, what, known.why.replace("{match}", line), known.next)
    return _by_status(rc, said[0] or said[1], what)


def complaint(rc: int, stdout: bytes, stderr: bytes, *, what: str) -> Fault | None:
    """A fault, or None when the command did what it should.

    Some fail with exit status 0 and a text on stderr: `scontrol write batch_script`, `scontrol show
    hostnames`. Complaints about a column that this Slurm does not know are no fault.
    """
    if rc != 0:
        return classify(rc, stdout, stderr, what=what)
    lines = [line for line in _lines(stderr) if not _harmless(line)]
    if lines and not stdout.strip() and _match(lines):
        return classify(rc, b"", stderr, what=what)
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
