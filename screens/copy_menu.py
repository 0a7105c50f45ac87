"""`Y`: copy what is marked, or what the cursor is on, in the form that is needed; the preview shows what it will be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from cockpit.words import plural
from screens import outlet
from screens.commands import Command, Entry
from screens.copy_offers import MOST, Offer
from screens.lines import Line
from screens.menu import MenuScreen

PREVIEW_LINES = 6
PREVIEW_WIDTH = 200
TOO_MUCH = f"more than the {MOST:,} characters that a clipboard takes; x writes files"


class CopyMenuScreen(MenuScreen[None]):
    """Copies by itself and closes; `about` says of what, such as `4 nodes`."""

    NOTE_LINES: ClassVar[int] = PREVIEW_LINES + 1
    DEFAULT_CSS = "CopyMenuScreen #menu-note { text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, about: str, offers: Sequence[Offer]) -> None:
        entries = [Entry(Command(offer.letter), offer.title, "", offer.letter) for offer in offers]
        super().__init__(f"{about}: ways to copy", entries)
        self._offers = {offer.letter: offer for offer in offers}
        self._texts: dict[str, str | None] = {}

    def choose(self, entry: Entry) -> None:
        """Copy it and close, unless it is too much."""
        text = self._text(entry)
        if text is None:
            self.point_at(entry)
            return
        self.dismiss(None)
        outlet.copy(self.app, text)

    def note_lines(self) -> int:
        """The preview's: it is cut, and made only of what the cursor is on."""
        return self.NOTE_LINES

    def note_of(self, entry: Entry | None) -> list[Line]:
        """The first lines of what would be copied, and how much it is."""
        if entry is None:
            return []
        text = self._text(entry)
        if text is None:
            return [[(TOO_MUCH, "warning")]]
        lines = text.split("\n")
        size = f"{plural(len(lines), 'line')}, {len(text):,} characters"
        shown: list[Line] = [[line[:PREVIEW_WIDTH].replace("\t", "  ")] for line in lines[:PREVIEW_LINES]]
        more = " …" if len(lines) > PREVIEW_LINES else ""
        return [[(size + more, "dim")], *shown]

    def _text(self, entry: Entry) -> str | None:
        letter = entry.command.id
        if letter not in self._texts:
            self._texts[letter] = self._offers[letter].text()
        return self._texts[letter]
