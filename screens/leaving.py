"""Leaving the cockpit while an action runs: what will stay undone is told first."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from textual import on

from actions.spec import UNDONE_EASILY, confirm_for
from screens.ask_dialog import AskDialog
from screens.confirm import Answered
from screens.lines import Line
from screens.run_text import undone_lines
from screens.runs import Run

LAST_WORDS_S = 1.5  # for the runner to write down how it ended


class LeaveDialog(AskDialog):
    """Yes stops what runs, waits a moment for its record, and leaves."""

    def __init__(self, active: Sequence[Run]) -> None:
        about: list[Line] = [line for run in active for line in undone_lines(run)]
        about.append([("`cockpit audit` tells later what was done; its outcome is then not verified.", "dim")])
        question = "stop it and leave the cockpit?" if any(run.unsent for run in active) else "leave the cockpit?"
        super().__init__("an action still runs", about, [question], confirm_for(UNDONE_EASILY, 1, ""))
        self._active = active

    @on(Answered)
    def answered(self, event: Answered) -> None:
        """No stays; yes stops, and closes when the record has its end or the moment is over."""
        event.prevent_default()
        if not self._confirm.fits(event.typed):
            self.dismiss(None)
            return
        for run in self._active:
            if run.running is not None:
                run.running.cancel()
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        until = time.monotonic() + LAST_WORDS_S
        for run in self._active:
            if run.running is not None:
                run.running.done.wait(max(0.0, until - time.monotonic()))
        self.app.call_from_thread(self.dismiss, "y")
