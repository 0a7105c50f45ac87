"""The operator's words for the record: one harmless line that Slurm keeps as it was written."""

from __future__ import annotations

import re

from actions.errors import ActionError, Refusal
from actions.who import local_user
from cockpit.text import printable

MAX_CHARS = 240
REASON_HERE = "<reason>"  # stands in a step until the operator's words are known
_BLANKS = re.compile(r"\s+")


def _one_line(words: str) -> str:
    return printable(_BLANKS.sub(" ", words).strip())


def clean(words: str) -> str:
    """The words on one line, every control character visible, blanks folded; raises ActionError when too long."""
    line = _one_line(words)
    if len(line) > MAX_CHARS:
        raise ActionError(Refusal.USAGE, f"the reason has {len(line)} characters; {MAX_CHARS} at most")
    if line == REASON_HERE:
        raise ActionError(Refusal.USAGE, f"{REASON_HERE} is no reason: say why")
    return line


def sent(words: str, *, verbatim: bool = False) -> str:
    """The reason as it goes to Slurm: who says it comes first, since Slurm's own stamp often tells root only.

    It also keeps a person's words from reading like one of Slurm's own (`Not responding`). Raises ActionError.
    """
    if verbatim:  # as Slurm had it, however long
        return _one_line(words)
    line, who = clean(words), local_user()
    if not line or line.startswith(f"{who}: "):
        return line
    return f"{who}: {line}"


def for_scontrol(reason: str) -> str:
    """The value behind `reason=`: scontrol takes one double quote off either end (seen on 22.05), so give it those."""
    return f'"{reason}"' if reason.startswith('"') or reason.endswith('"') else reason
