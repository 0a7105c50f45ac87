"""A menu of a few things of which one is meant."""

from __future__ import annotations

from screens.commands import Entry
from screens.menu import MenuScreen


class ChoiceMenu(MenuScreen[str | None]):
    """Dismissed with the id of the command that was chosen, None when it was closed."""

    def choose(self, entry: Entry) -> None:
        """Close with it."""
        self.dismiss(entry.command.id)
