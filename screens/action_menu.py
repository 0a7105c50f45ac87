"""`a`: everything that can be done with what the cursor is on, with its key, and why not when it cannot."""

from __future__ import annotations

from collections.abc import Iterable

from screens.commands import Command, Context, Entry, Provider
from screens.menu import MenuScreen
from screens.subject_entries import subject_entries, targets_title

# Actions that change a cluster put their provider behind this one.
PROVIDERS: tuple[Provider, ...] = (subject_entries,)


class ActionMenuScreen(MenuScreen[Command | None]):
    """Dismissed with the command that was chosen, None when it was closed."""

    def __init__(self, context: Context, providers: Iterable[Provider] = PROVIDERS) -> None:
        entries = [entry for provider in providers for entry in provider(context)]
        super().__init__(f"{targets_title(context)}: actions", entries)

    def choose(self, entry: Entry) -> None:
        """Close with its command."""
        self.dismiss(entry.command)
