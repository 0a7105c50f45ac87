"""The filter language of every table, as pure functions.

Words are ANDed: each must occur, in any case, in some field of the row. `field:value` looks into one field
(`field:a,b`: any of these), a leading `!` turns a word round, quotes keep blanks, colons and commas as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from cockpit.text import printable

R = TypeVar("R")

# One character of the filter and whether quotes protect it from being read as syntax.
_Marked = tuple[str, bool]


class FilterError(ValueError):
    """A filter that cannot be meant; str() is one printable line for the person who typed it."""


@dataclass(frozen=True, slots=True)
class Term:
    """One condition. `field` is None for a word that may stand anywhere; `values` are alternatives."""

    values: tuple[str, ...]
    field: str | None = None
    negate: bool = False


def compile_filter(text: str, fields: Mapping[str, Callable[[R], str]]) -> Callable[[R], bool]:
    """Return the predicate that `text` stands for; an empty filter keeps every row.

    `fields` maps lower-case field names to functions from a row to its text. Raises FilterError for an
    unknown field. Half-typed terms (`state:`, `!`, an open quote) never hide anything.
    """
    terms = parse_filter(text, fields)
    words = tuple((term.values[0], term.negate) for term in terms if term.field is None)
    tests = tuple((fields[term.field], term.values, term.negate) for term in terms if term.field is not None)
    getters = tuple(fields.values())

    def keep(row: R) -> bool:
        for getter, values, negate in tests:
            value = getter(row).casefold()
            if any(wanted in value for wanted in values) is negate:
                return False
        if not words:
            return True
        # No field holds a newline, so no word can match across two fields.
        everything = "\n".join([getter(row) for getter in getters]).casefold()
        return all((word in everything) is not negate for word, negate in words)

    return keep


def field_filter(field: str, value: str) -> str:
    """The filter for one value of a field, such as `user:maria`, whatever characters are in it."""
    plain = value.replace('"', " ").strip()
    return f"{field}:{plain}" if plain.replace("-", "").replace(".", "").isalnum() else f'{field}:"{plain}"'


def parse_filter(text: str, fields: Mapping[str, object]) -> tuple[Term, ...]:
    """Read `text` into its terms, leaving half-typed ones out. Raises FilterError for an unknown field."""
    terms = (_read_term(marked, fields) for marked in _split(text))
    return tuple(term for term in terms if term is not None)


def _split(text: str) -> list[list[_Marked]]:
    """Cut the text at blanks outside quotes; a quote that is never closed reaches to the end."""
    terms: list[list[_Marked]] = [[]]
    quote = ""
    for char in printable(text):
        if quote:
            if char == quote:
                quote = ""
            else:
                terms[-1].append((char, True))
        elif char == '"' or (char == "'" and _opens(terms[-1])):
            quote = char
        elif char.isspace():
            terms.append([])
        else:
            terms[-1].append((char, False))
    return [term for term in terms if term]


def _opens(term: list[_Marked]) -> bool:
    """True where a single quote opens a quotation; inside a word, as in `user's`, it is an apostrophe."""
    return not term or term[-1] in (("!", False), (":", False), (",", False))


def _read_term(marked: list[_Marked], fields: Mapping[str, object]) -> Term | None:
    negate = marked[0] == ("!", False)
    if negate:
        marked = marked[1:]
    colon = marked.index((":", False)) if (":", False) in marked else -1
    name = "".join(char for char, _ in marked[: max(colon, 0)])
    if not _is_field(name) or any(quoted for _, quoted in marked[:colon]):
        word = _text(marked)
        return Term((word,), None, negate) if word else None
    if name.lower() not in fields:
        known = ", ".join(fields) or "none here"
        raise FilterError(f'no field "{name}"; fields: {known} (quotes search for it as text)')
    values = tuple(filter(None, map(_text, _alternatives(marked[colon + 1 :]))))
    return Term(values, name.lower(), negate) if values else None


def _is_field(name: str) -> bool:
    """True for what looks like a field name: 12:30 and ::1 are words."""
    return name[:1].isalpha() and name.replace("_", "").replace("-", "").isalnum()


def _alternatives(marked: list[_Marked]) -> list[list[_Marked]]:
    parts: list[list[_Marked]] = [[]]
    for item in marked:
        if item == (",", False):
            parts.append([])
        else:
            parts[-1].append(item)
    return parts


def _text(marked: list[_Marked]) -> str:
    return "".join(char for char, _ in marked).casefold()
