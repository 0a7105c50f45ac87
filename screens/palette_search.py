"""From what somebody types to what can be done: best matches first. Pure; built once for each opened palette."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cockpit.text import printable
from screens import palette_words
from screens.commands import Command, Context, Entry, Name, Names, Provider, Verb
from screens.palette_entries import PROVIDERS, VERBS

MOST = 50  # names; commands are all shown
_LONGEST = 200  # nothing that is called longer is ever typed

T = TypeVar("T")
_Test = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Found:
    """What matches, best first, and a word to the person: what is left out, or what is possible at all."""

    entries: tuple[Entry, ...]
    note: str = ""


class _Searched:
    """The names of a verb, made ready to be searched in."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._texts = [text.casefold() for text in names.texts]
        self._more = [text.casefold() for text in names.more]

    def __len__(self) -> int:
        return len(self._texts)

    def first(self, most: int) -> list[Name]:
        """The first of all."""
        return [self._names.tell(index) for index in range(min(most, len(self)))]

    def matching(self, text: str, *, fuzzy: bool) -> Iterator[Name]:
        """The names that fit, best first: the beginning, then any part, then the letters in their order."""
        tests: list[tuple[list[str], _Test]] = [
            (self._texts, lambda s: s == text),
            (self._texts, lambda s: s.startswith(text)),
            (self._texts, lambda s: text in s),
            (self._more, lambda s: text in s),
        ]
        if fuzzy:
            tests.append((self._texts, scattered(text)))
        seen: set[int] = set()
        for texts, test in tests:
            for index, candidate in enumerate(texts):
                if index not in seen and test(candidate):
                    seen.add(index)
                    yield self._names.tell(index)


class Catalog:
    """Everything that can be done in one context; names are collected when they are first asked for."""

    def __init__(
        self, context: Context, providers: Iterable[Provider] = PROVIDERS, verbs: Sequence[Verb] = VERBS
    ) -> None:
        self._context = context
        self._entries = tuple(entry for provider in providers for entry in provider(context))
        self._verbs = {verb.id: verb for verb in verbs}
        self._names: dict[str, _Searched] = {}

    def find(self, text: str) -> Found:
        """The best of what matches; with nothing typed, everything but the names."""
        written = printable(text[:_LONGEST]).strip(" ").removeprefix(":").lstrip(" ")
        typed = written.casefold()
        word, blank, rest = typed.partition(" ")
        ended = bool(blank) or text.endswith(" ")
        if ended and word in self._verbs:
            return self._of_verb(self._verbs[word], rest.strip(" "))
        commands, names = self._ranked(written), self._by_name(typed)
        if not commands and not names:
            return Found((), f"nothing here is called “{printable(text.strip())}”; try {self._possible()}")
        return Found((*commands, *names[:MOST]), _left_out(len(names)))

    def _of_verb(self, verb: Verb, rest: str) -> Found:
        names = self._names_of(verb)
        if not len(names):
            return Found((), verb.lacking)
        found = _first(names.matching(rest, fuzzy=True), MOST + 1) if rest else names.first(MOST + 1)
        if (verb.as_typed or not found) and (exact := verb.resolve(self._context, rest)) is not None:
            found = [exact, *(name for name in found if name.value != exact.value)]
        if not found:
            return Found((), f"no {verb.id} matches “{rest}” among {len(names):,}")
        more = f"the first {MOST} of {len(names):,}; type more of the name" if len(found) > MOST else ""
        return Found(tuple(verb.entry(name) for name in found[:MOST]), more)

    def _ranked(self, written: str) -> list[Entry]:
        """Entries and verbs; those that can be done now come before those that cannot."""
        verbs = [Entry(Command(verb.id), verb.example, verb.help, unfinished=True) for verb in self._verbs.values()]
        ranks = [(_rank(entry, written), entry) for entry in (*self._entries, *verbs)]
        fitting = [(rank, bool(entry.disabled), entry) for rank, entry in ranks if rank is not None]
        return [entry for *_, entry in sorted(fitting, key=lambda item: item[:2])]

    def _by_name(self, typed: str) -> list[Entry]:
        found: list[Entry] = []
        for verb in self._verbs.values():
            if _is_quick(verb, typed) and len(found) < MOST:
                names = self._names_of(verb).matching(typed, fuzzy=False)
                found += [verb.entry(name) for name in _first(names, MOST + 1 - len(found))]
        return found or [
            verb.entry(name)
            for verb in self._verbs.values()
            if _is_quick(verb, typed) and (name := verb.resolve(self._context, typed)) is not None
        ]

    def _names_of(self, verb: Verb) -> _Searched:
        if verb.id not in self._names:
            self._names[verb.id] = _Searched(verb.names(self._context))
        return self._names[verb.id]

    def _possible(self) -> str:
        return ", ".join(f"`{verb.example}`" for verb in self._verbs.values()) + ", or a word of the help"


def _is_quick(verb: Verb, typed: str) -> bool:
    return verb.quick and len(typed) >= verb.quick_from


def _rank(entry: Entry, written: str) -> int | None:
    """How well it fits, 0 best; None when it does not. A key is meant as it is written: `D` is not `d`."""
    text, typed = entry.text.casefold(), written.casefold()
    if not written or written in entry.key.split(" "):
        return 0
    if text.startswith(typed):
        return 1 if text == typed else 2
    if any(word.startswith(typed) for word in text.split(" ")):
        return 3
    if typed in text:
        return 4
    return _rank_by_words(entry, text, typed)


def _rank_by_words(entry: Entry, text: str, typed: str) -> int | None:
    """The same for what is not called so: by what others call it, by its help, by letters, by all of that."""
    told, sought = f"{text} {entry.help.casefold()}", palette_words.sought(typed)
    also = palette_words.also(entry.command.id, entry.command.argument) if len(typed) > 2 else ""
    if also and _begin_words_of(sought, f"{text} {also}"):
        return 5  # `kill job`
    if typed in entry.help.casefold():
        return 6
    if all(word in told for word in typed.split()):
        return 7  # what one asks, in whatever order: `efa used`
    if len(typed) > 1 and scattered(typed)(text):
        return 8
    return 9 if also and _begin_words_of(sought, f"{told} {also}") else None


def _begin_words_of(sought: Iterable[str], text: str) -> bool:
    words = text.split()
    return all(any(word.startswith(one) for word in words) for one in sought)


def scattered(text: str) -> _Test:
    """A test for texts that hold these letters in this order, whatever stands between them."""
    return re.compile(".*?".join(map(re.escape, text.replace(" ", "")))).search


def _first(items: Iterable[T], most: int) -> list[T]:
    return [item for item, _ in zip(items, range(most), strict=False)]


def _left_out(count: int) -> str:
    return f"the first {MOST}; type more" if count > MOST else ""
