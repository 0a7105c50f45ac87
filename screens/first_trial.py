"""The way to a cluster that is not in the config yet, step by step as it is tested; enter writes it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cockpit.config import ConfigError
from cockpit.doctor.models import Result
from cockpit.setup.find import Candidate
from cockpit.setup.trial import Trial, config_of, try_out
from cockpit.setup.write import draft, write
from screens import first_lines
from screens.content import plain, styled
from screens.lines import Line
from screens.modal import ClosesOnce


class TrialScreen(ClosesOnce[str]):
    """Dismissed with the cluster's name once it is in the config, with None when it was left."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", show=False),
        Binding("enter", "write", show=False),
        Binding("r", "again", show=False),
    ]

    def __init__(self, candidate: Candidate, path: Path) -> None:
        super().__init__()
        self._config, self._path = config_of(candidate), path
        self._lines: list[Line] = []
        self._trial: Trial | None = None
        self._left = threading.Event()

    def compose(self) -> ComposeResult:
        with Vertical(classes="first"):
            yield Static(styled([("Testing the way to ", ""), (self._config.head, "bright")]), classes="first-head")
            with VerticalScroll(can_focus=True):
                yield Static(id="steps")
            yield Static(id="outcome")
            keys = [("enter", "write and open"), ("r", "test again"), ("esc", "back")]
            yield Static(styled(first_lines.keys_line(keys)), classes="first-keys")

    def on_mount(self) -> None:
        """Test at once."""
        self._begin()

    def _begin(self) -> None:
        self._lines, self._trial = [], None
        self.query_one("#steps", Static).update("")
        self.query_one("#outcome", Static).update(styled([("testing …", "dim")]))
        threading.Thread(target=self._test, name="trial", daemon=True).start()

    def _test(self) -> None:
        """Runs on a thread; a screen that was left in the meantime hears nothing more."""
        trial = try_out(self._config, self._tell, stop=self._left)
        if self.is_running:
            self.app.call_from_thread(self._finish, trial)

    def _tell(self, result: Result) -> None:
        if self.is_running:
            self.app.call_from_thread(self._show, result)

    def _show(self, result: Result) -> None:
        self._lines += first_lines.result_lines(result)
        self.query_one("#steps", Static).update(Content("\n").join(styled(line) for line in self._lines))

    def _finish(self, trial: Trial) -> None:
        self._trial = trial
        lines = first_lines.outcome_lines(trial, self._path)
        self.query_one("#outcome", Static).update(Content("\n").join(styled(line) for line in lines))

    def action_write(self) -> None:
        """Write the entry, with what the head told filled in; only once Slurm was reached."""
        if self._trial is None or not self._trial.usable:
            return
        try:
            text, _ = draft(self._trial.config, self._path)
            write(self._path, text)
        except ConfigError as error:
            self.query_one("#outcome", Static).update(plain(str(error)))
            return
        self.dismiss(self._config.name)

    def action_again(self) -> None:
        """Test anew, when the last test has ended."""
        if self._trial is not None:
            self._begin()

    def action_back(self) -> None:
        """Leave it; a test that runs asks nothing more."""
        self._left.set()
        self.dismiss(None)
