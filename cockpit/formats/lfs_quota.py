"""`lfs quota -u|-g|-p WHO PATH`: used, limits and grace of one user, group or project on one Lustre file system."""

from __future__ import annotations

import re

from cockpit.formats.errors import FormatError
from cockpit.formats.words import digits
from cockpit.storage_models import Quota
from cockpit.text import printable

_WHAT = "reading lfs quota's answer"
_HEADER = re.compile(r"\s*Filesystem\s+kbytes\s+")
_NUMBER = re.compile(r"\[?(\d+)\]?\*?")
_FIELDS = 8


def parse_lfs_quota(raw: bytes) -> Quota:
    """The line behind the header; a long path stands on a line of its own. Raises FormatError for anything else.

    A star marks what is over a limit; brackets mean that a target did not answer and the number is too low.
    """
    lines = raw.decode("utf-8", "replace").splitlines()
    at = next((number for number, line in enumerate(lines) if _HEADER.match(line)), None)
    if at is None:
        raise FormatError(_WHAT, "it holds no table", raw.strip())
    words = " ".join(lines[at + 1 : at + 3]).split()
    if len(words) < _FIELDS + 1:
        raise FormatError(_WHAT, "its line is cut off", raw.strip())
    path, fields = words[0], words[1 : _FIELDS + 1]
    used, soft, hard, grace, files, soft_files, hard_files, files_grace = fields
    used_kib = _number(used)
    if used_kib is None:
        raise FormatError(_WHAT, "its first number is none", raw.strip())
    return Quota(
        path=printable(path),
        used_kib=used_kib,
        soft_kib=_limit(soft),
        hard_kib=_limit(hard),
        grace=_grace(grace),
        files=_number(files),
        soft_files=_limit(soft_files),
        hard_files=_limit(hard_files),
        files_grace=_grace(files_grace),
        over="*" in used or "*" in files,
        uncertain="[" in used or "[" in files,
    )


def _number(word: str) -> int | None:
    match = _NUMBER.fullmatch(word)
    return digits(match[1]) if match else None


def _limit(word: str) -> int | None:
    """0 means that there is no limit."""
    return _number(word) or None


def _grace(word: str) -> str:
    return "" if word == "-" else printable(word)
