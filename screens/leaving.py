"""Leaving the cockpit while an action runs: what will stay undone is told first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from textual import on
from textual.message import Message
from textual.widgets import Static

from actions.spec import UNDONE_EASILY, confirm_for
from screens.ask_dialog import AskDialog
from screens.confirm import Answered
from screens.content import plain
from screens.lines import Line
from screens.runs import LAST_WORDS_S


class Unfinished(Protocol):
    """What runs, and would be cut short: an action, or an NCCL test with its job."""

    patience_s: float  # how long its end may take

    @property
    def unsent(self) -> int: ...
    def undone(self) -> list[Line]: ...
    def stop(self) -> None: ...
    def wait(self, seconds: float) -> None: ...


def then(active: Sequence[Unfinished], leave: Callable[[], object]) -> None:
    """Leave without asking: what runs is stopped first, and has a moment to write down how it ended."""
    for one in active:
        one.stop()

    def wait() -> None:
        until = time.monotonic() + LAST_WORDS_S
        for one in active:
            one.wait(max(0.0, until - time.monotonic()))
        leave()

    threading.Thread(target=wait, name="leaving", daemon=True).start()


class Over(Message):
    """What ran has ended, or took too long to."""


class LeaveDialog(AskDialog):
    """Yes stops what runs, waits a moment for its end, and leaves; a second yes does not wait."""

    def __init__(self, active: Sequence[Unfinished]) -> None:
        about = [line for one in active for line in one.undone()]
        about.append([("`cockpit audit` tells later what was done; its outcome is then not verified.", "dim")])
        question = "stop it and leave the cockpit?" if any(one.unsent for one in active) else "leave the cockpit?"
        super().__init__("something still runs", about, [question], confirm_for(UNDONE_EASILY, 1, ""))
        self._active = active
        self._stopping = False

    @on(Answered)
    def answered(self, event: Answered) -> None:
        """No stays; yes stops, and closes when everything has its end or the moment is over."""
        event.prevent_default()
        if not self._confirm.fits(event.typed):
            self.dismiss(None)
        elif self._stopping:
            self.dismiss("y")
        else:
            self._stopping = True
            self.query_one("#ask-note", Static).update(plain("stopping it …"))
            for one in self._active:
                one.stop()
            threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        began = time.monotonic()
        for one in self._active:
            one.wait(max(0.0, began + one.patience_s - time.monotonic()))
        self.post_message(Over())

    @on(Over)
    def over(self) -> None:
        """Everything has its end, or had its time."""
        if self.is_attached:
            self.dismiss("y")
