"""What squeue and sinfo share: -o and -O format strings, cutting and padding, and option errors."""

from __future__ import annotations

import getopt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program leaves behind: exit status and raw output."""

    rc: int = 0
    stdout: bytes = b""
    stderr: bytes = b""


class WrongUse(Exception):  # noqa: N818 - it carries an answer, it is no fault of ours
    """The command line cannot be used; `answer` is what the real program would say."""

    def __init__(self, stderr: str, *, stdout: str = "", rc: int = 1) -> None:
        super().__init__(stderr or stdout)
        self.answer = Answer(rc, encode(stdout), encode(stderr))


@dataclass(frozen=True, slots=True)
class Field(Generic[RowT]):
    """One thing a row can show; times are padded but never cut (`365-00:00:00` in nine columns)."""

    header: str
    text: Callable[[RowT], str]
    cut: bool = True


@dataclass(frozen=True, slots=True)
class Column(Generic[RowT]):
    """A field in a format string. Width 0 is full length; `after` follows the field, `before` leads it."""

    field: Field[RowT] | None  # None: a name that this version does not know, or only literal text
    width: int = 0
    right: bool = False
    after: str = ""
    before: str = ""

    def cell(self, text: str) -> bytes:
        """Text cut and padded by bytes, as Slurm does, so that a character may be split."""
        raw = encode(text)
        if self.width:
            raw = raw[: self.width] if self.field is None or self.field.cut else raw
            raw = raw.rjust(self.width) if self.right else raw.ljust(self.width)
        return encode(self.before) + raw + encode(self.after)


def encode(text: str) -> bytes:
    """Text to the bytes it came from."""
    return text.encode("utf-8", "surrogateescape")


def parse_long(program: str, spec: str, fields: Mapping[str, Field[RowT]]) -> tuple[list[Column[RowT]], str]:
    """Columns of `-O NAME[:[.]WIDTH[SUFFIX]],...` and what goes to stderr about unknown names.

    An unknown name keeps its place with an empty value, so that the columns stay aligned.
    """
    columns: list[Column[RowT]] = []
    complaints = ""
    for word in spec.split(","):
        name, colon, rest = word.partition(":")
        right = rest.startswith(".")
        rest = rest[right:]
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        width = int(digits or 0) if colon else 20
        field = fields.get(name.strip().lower())
        if field is None:
            complaints += f"{program}: error: Invalid job format specification: {name}\n"
            width = 0
        columns.append(Column(field, width, right, rest[len(digits) :]))
    return columns, complaints


def parse_short(program: str, spec: str, letters: Mapping[str, Field[RowT]]) -> tuple[list[Column[RowT]], str]:
    """Columns of `-o "%.18i %P"`: literal text stays, `%[.][N]X` is a field."""
    columns: list[Column[RowT]] = []
    complaints, literal, position = "", "", 0
    while position < len(spec):
        if spec[position] != "%":
            literal += spec[position]
            position += 1
            continue
        end = position + 1
        while end < len(spec) and spec[end] in ".#0123456789":
            end += 1
        code, letter = spec[position + 1 : end], spec[end : end + 1]
        if letter in letters:
            width = int(code.lstrip(".#") or 0)
            columns.append(Column(letters[letter], width, "." in code, "", literal))
            literal = ""
        else:
            complaints += f"{program}: error: Invalid job format specification: {letter}\n"
            literal += spec[position : end + 1]
        position = end + 1
    columns.append(Column(None, before=literal))
    return columns, complaints


def render(columns: Sequence[Column[RowT]], rows: Sequence[RowT], header: bool) -> bytes:
    """The table, one line for each row."""
    lines = []
    if header:
        lines.append(b"".join(column.cell(column.field.header if column.field else "") for column in columns))
    lines += [
        b"".join(column.cell(column.field.text(row) if column.field else "") for column in columns) for row in rows
    ]
    return b"".join(line + b"\n" for line in lines)


def options(program: str, argv: Sequence[str], shorts: str, longs: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Options and operands, GNU style. Raises WrongUse with glibc's texts."""
    try:
        return getopt.gnu_getopt(list(argv), shorts, longs.split())
    except getopt.GetoptError as error:
        dashed = f"'--{error.opt}'" if len(error.opt) > 1 else f"-- '{error.opt}'"
        if "requires" in error.msg:
            text = f"option {'' if len(error.opt) > 1 else 'requires an argument '}{dashed}"
            text += " requires an argument" if len(error.opt) > 1 else ""
        else:
            text = f"{'unrecognized' if len(error.opt) > 1 else 'invalid'} option {dashed}"
        raise WrongUse(f'{program}: {text}\nTry "{program} --help" for more information\n') from None
