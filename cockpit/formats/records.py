"""Output of Slurm's programs cut into records (0x1e and a newline at the end) and fields (0x1f between).

Slurm escapes nothing: names and comments may hold newlines, separators and bytes that are no UTF-8. Fields
that Slurm itself writes come first and free text last, so that what is odd stays inside its own record. A mark
that nobody can guess behind the 0x1e keeps a free text from ending its record and writing others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from cockpit.formats.errors import FormatError

FIELD = "\x1f"
RECORD = "\x1e"

_FIELD = FIELD.encode()


def format_args(fields: Sequence[str], mark: str = "") -> str:
    """The value of `-O` that prints these fields in full: a width of 0, and the separator as the suffix.

    `mark` (hex digits) stands behind the separator that ends a record; Slurm 22.05 to 25.11 print any suffix.
    """
    ends = [FIELD] * (len(fields) - 1) + [RECORD + mark]
    return ",".join(f"{name}:0{end}" for name, end in zip(fields, ends, strict=True))


def split_records(
    raw: bytes,
    *,
    start: re.Pattern[bytes],
    trusted: int,
    what: str,
    mark: str = "",
    known: Collection[bytes] = (),
) -> list[bytes]:
    """The records of `raw`, without their ends; `mark` is the one that was given to `format_args`.

    `known` are records of an earlier answer; they need no second look.

    A piece begins a record only when it matches `start` and has separators after all its `trusted` leading
    fields; otherwise an end mark stood inside free text, and the piece belongs to the record before.
    Raises FormatError when the last record is cut off or there is none in what was printed.
    """
    end = f"{RECORD}{mark}\n".encode()
    pieces = raw.split(end)
    if pieces.pop().strip():
        raise FormatError(what, "the answer ends in the middle of a record", raw[-80:], "it is tried again")
    if pieces and not start.match(pieces[0]):
        pieces[0] = _without_banner(pieces[0], start, what)
    doubtful = [piece for piece in pieces if piece not in known] if known else pieces
    if all(start.match(piece) and piece.count(_FIELD) >= trusted for piece in doubtful):
        return pieces
    return _glued(pieces, start, trusted, end)


def split_fields(text: str, names: int, free: int = 0, anchor: str | None = None) -> list[str]:
    """The fields of one record, exactly `names` of them; from place `free` on they are free text.

    A record with too few fields is filled with empty ones. One with too many has separators inside its free
    text: `anchor`, neighbouring fields there that are nearly always empty, tells where the text before it
    ends; without it the last field takes all that is left.
    """
    fields = text.split(FIELD)
    if len(fields) == names:
        return fields
    if len(fields) < names:
        return fields + [""] * (names - len(fields))
    *trusted, tail = text.split(FIELD, free) if free else [text]
    if anchor and tail.count(anchor) == 1:
        before, _, last = tail.rpartition(anchor)
        middle = anchor.strip(FIELD).split(FIELD)
        return [*trusted, *before.split(FIELD, names - free - len(middle) - 2), *middle, last]
    return text.split(FIELD, names - 1)


def _glued(pieces: list[bytes], start: re.Pattern[bytes], trusted: int, end: bytes) -> list[bytes]:
    records: list[bytes] = []
    for piece in pieces:
        if records and not (start.match(piece) and piece.count(_FIELD) >= trusted):
            records[-1] += end + piece
        else:
            records.append(piece)
    return records


def _without_banner(piece: bytes, start: re.Pattern[bytes], what: str) -> bytes:
    """The first record without the lines that a site's wrapper or a login script printed before it."""
    at = piece.find(_FIELD)
    begin = piece.rfind(b"\n", 0, at) + 1
    if at < 0 or not start.match(piece, begin):
        raise FormatError(what, "the answer is not what was asked for", piece)
    return piece[begin:]
