"""What parsers are fuzzed with: soups of a module's own words, JSON with its own keys, broken samples."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from cockpit.text import printable

NASTY = (
    "", " ", "\n", "\r", "\t", "\x00", "\x1b[2J", "\x1b]52;c;eA==\x07", "\x9b31m", "\u202e", "\u2066", "[/]", "[red]",
    "|", "\x1f", "\x1e", "=", ":", ",", "[", "]", "[1-", "[9-1]", "[1-99999999]", "(", ")", "{", "}", '"', "'", "%",
    "-1", "0", "1", "00", "9" * 30, "1e999", "nan", "inf", "-inf", "0x", "1.5.2", "N/A", "(null)", "UNLIMITED", "None",
    "2025-02-30T25:61:61", "1970-01-01T00:00:00", "9999-12-31T23:59:59", "365-00:00:00", "汉字",
    "caf\udce9", "a" * 5000,
)  # fmt: skip


@functools.cache
def words_of(module: str) -> tuple[str, ...]:
    """Every text that stands in a module's source: the words its programs print and the keys it looks for."""
    source = inspect.getsource(importlib.import_module(f"cockpit.formats.{module}"))
    found = {
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 60
    }
    return tuple(sorted(found | {word for text in found for word in text.split()}))


@functools.cache
def samples() -> tuple[bytes, ...]:
    """Long texts of the tests beside this file: what programs really print."""
    found = set()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, str | bytes) and 40 < len(value) < 20_000:
                found.add(value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)
    return tuple(sorted(found))


def soup(module: str) -> st.SearchStrategy[str]:
    """Its own words, nasty ones and anything at all, in any order and in lines."""
    own = st.sampled_from((*words_of(module), *NASTY))
    piece = st.one_of(
        own, own, st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.integers(-5, 2**70).map(str)
    )
    glue = st.sampled_from(("", " ", "  ", "\n", "|", "=", ":", ","))
    return st.lists(st.tuples(piece, glue), max_size=30).map(lambda parts: "".join(a + b for a, b in parts))


def broken(known: tuple[bytes, ...] = ()) -> st.SearchStrategy[bytes]:
    """One of the samples (of all there are, unless some are given) with bytes left out, repeated or put in."""
    cuts = st.tuples(st.integers(0, 4000), st.integers(0, 40), st.binary(max_size=12), st.booleans())

    def apply(sample: bytes, changes: list[tuple[int, int, bytes, bool]]) -> bytes:
        for place, length, new, again in changes:
            at = place % (len(sample) + 1)
            piece = sample[at : at + length]
            sample = sample[:at] + (piece + piece if again else new) + sample[at + length :]
        return sample

    return st.builds(apply, st.sampled_from(known or samples()), st.lists(cuts, max_size=5))


def raw(module: str, known: tuple[bytes, ...] = ()) -> st.SearchStrategy[bytes]:
    """Bytes for a parser: a soup, a broken sample, or anything."""
    text = soup(module).map(lambda text: text.encode("utf-8", "surrogateescape"))
    return st.one_of(text, broken(known), st.binary(max_size=200))


def answers(module: str) -> st.SearchStrategy[Any]:
    """JSON values whose keys are the module's own words."""
    leaf = st.one_of(
        st.none(), st.booleans(), st.integers(-(2**66), 2**66), st.floats(), st.sampled_from(NASTY), st.text(max_size=8)
    )
    keys = st.one_of(st.sampled_from(words_of(module)), st.text(max_size=4))
    return st.recursive(
        leaf,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
        max_leaves=25,
    )


def texts_in(value: object) -> Iterator[str]:
    """Every text in what a parser returned, however deep."""
    if isinstance(value, Enum):
        return
    if isinstance(value, str):
        yield value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from texts_in(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts_in(key)
            yield from texts_in(item)
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from texts_in(item)


def harmful(value: object) -> list[str]:
    """The texts that would do something to a terminal."""
    return [text for text in texts_in(value) if printable(text) != text]


def modules() -> list[str]:
    """Every module of cockpit/formats."""
    folder = Path(importlib.import_module("cockpit.formats").__path__[0])
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def public(module: str) -> list[str]:
    """Functions and classes that a module offers."""
    found = importlib.import_module(f"cockpit.formats.{module}")
    return [
        name
        for name, one in vars(found).items()
        if not name.startswith("_")
        and getattr(one, "__module__", "") == found.__name__
        and (inspect.isfunction(one) or (inspect.isclass(one) and callable(getattr(one, "feed", None))))
    ]
