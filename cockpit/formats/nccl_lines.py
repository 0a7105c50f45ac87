"""One raw line of a launcher's output: labels and escape codes off, NCCL's own log lines cut away from rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LINE = 16 * 1024  # characters; no line of nccl-tests or NCCL comes near

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# mpirun --tag-output, srun -l (right-justified), torchrun and PRRTE tags.
_LABELS = (
    re.compile(r"\s*\[(\d{1,7},\d{1,7})\]<std(?:out|err)>:"),
    re.compile(r"\s{0,6}(\d{1,7}):(?: |$)"),
    re.compile(r"\s*\[(?:default|rank)(\d{1,7})\]:"),
)
# host:pid:tid [cudaDev], on WARN and since 2.27 after a time. The host may be glued to a number of a row.
_LOG = re.compile(r"(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] )?([\w.-]{1,255}):\d{1,9}:\d{1,9} \[-?\d{1,3}\] ")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?=[A-Za-z])")


@dataclass(frozen=True, slots=True)
class Line:
    """What a line holds: text of nccl-tests (or of the launcher), and NCCL's log line behind it."""

    task: str
    text: str
    log: str


def take_apart(raw: str | bytes) -> Line:
    """Strip labels, escapes and everything behind 16 Ki characters; split off a log line."""
    raw = raw[:MAX_LINE]
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    text = _ESCAPES.sub("", text) if "\x1b" in text else text
    task, text = _unlabel(text.rstrip("\r\n"))
    found = _LOG.search(text) if " NCCL " in text else None
    if found is None or " NCCL " not in text[found.end() - 1 :][:200]:
        return Line(task, text, "")
    before, log = text[: found.start()], text[found.start() :]
    if before.strip():
        before, log = _unglue(before, log)
    return Line(task, before, log)


def _unlabel(text: str) -> tuple[str, str]:
    """The launcher's label and the rest; labels may stand one behind the other."""
    task = ""
    for _ in range(3):
        for pattern in _LABELS:
            found = pattern.match(text)
            if found is not None:
                task = task or found[1]
                text = text[found.end() :]
                break
        else:
            break
    return task, text


def _unglue(before: str, log: str) -> tuple[str, str]:
    """Give a row back its last number, to which a log line's host name was printed: `0node-1:25:25 [0] NCCL`."""
    if before.endswith("N/") and log.startswith("A"):
        return before + "A", log[1:]
    number = _NUMBER.match(log)
    if number is None:
        # A host that begins with a digit: only a zero can be told from it.
        return (before + "0", log[1:]) if log[:1] == "0" and log[1:2].isdigit() else (before, log)
    return before + number[0], log[number.end() :]
