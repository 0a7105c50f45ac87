"""What every dialog and menu is: a screen that closes once."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen

Result = TypeVar("Result")


class ClosesOnce(Screen[Result]):
    """Textual pops whatever is on top: of two keys in quick succession the second would close what lies beneath."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close with a result; does nothing when it is closed already or something else lies over it."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Modal(ClosesOnce[Result], ModalScreen[Result]):
    """One that lies over a pane."""
