"""What an action does just now, and what came of it. It can be left: the action goes on, and the header says so."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from cockpit.text import printable
from cockpit.words import span
from screens import outlet
from screens.content import styled
from screens.lines import Piece
from screens.modal import Modal
from screens.run_text import run_lines
from screens.runs import Run, Runs
from screens.text_messages import CopyText
from screens.text_view import TextView
from themes.glyphs import signs

TICK_S = 0.25


class RunView(Modal[tuple[str, Run] | None]):
    """Dismissed with ("undo", run) or ("again", run) for a new plan, None when it was left."""

    AUTO_FOCUS = "TextView"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("x,ctrl+c", "stop", show=False),
        Binding("u", "undo", show=False),
        Binding("r", "again", show=False),
        Binding("tab", "next_run", show=False),
    ]
    DEFAULT_CSS = """
    RunView { align: center middle; }
    RunView > #run {
        width: 116;
        max-width: 100%;
        height: 100%;
        max-height: 40;
        border: solid $cockpit-accent;
        background: $background;
        padding: 0 1;
    }
    RunView.-production > #run { border: heavy $cockpit-production; }
    RunView #run-keys { height: 1; }
    """

    def __init__(self, runs: Runs, run: Run) -> None:
        super().__init__()
        self._runs, self._run = runs, run
        self._told: object = None

    def compose(self) -> ComposeResult:
        with Vertical(id="run"):
            yield TextView(id="run-text")
            yield Static(id="run-keys")

    def on_mount(self) -> None:
        """Follow it from now on."""
        self.set_class(self._run.plan.production, "-production")
        self._look_at(self._run)
        self.set_interval(TICK_S, self.show_run)

    def _look_at(self, run: Run) -> None:
        self._run.left = True
        self._run = run
        run.left = False
        self.show_run()

    @property
    def run(self) -> Run:
        """What is looked at."""
        return self._run

    def show_run(self) -> None:
        """Draw it as it is now."""
        run, steady = self._run, self._run.clock.steady()
        text = self.query_one(TextView)
        text.show(run_lines(run, steady, signs(self.app)), title=self._title(steady))
        keys = self._keys()
        if keys != self._told:
            self._told = keys
            self.query_one("#run-keys", Static).update(styled(keys))

    def _title(self, steady: float) -> list[Piece]:
        run = self._run
        pieces: list[Piece] = [(printable(run.plan.title), "bright"), (f" on {run.plan.cluster}", "dim")]
        if run.plan.production:
            pieces.append((" PRODUCTION", "production"))
        if run.result is not None:
            pieces.append((f" · ended after {span(run.result.took_s)}", "dim"))
        else:
            word = "stopping" if run.stopping else "running"
            pieces.append((f" · {word} {span(steady - run.began_at)}", "accent"))
        return pieces

    def _keys(self) -> list[Piece]:
        run, result = self._run, self._run.result
        if result is None:
            words = "leave it running" if not run.stopping else "leave"
            pieces: list[Piece] = [(" esc ", "accent"), words]
            if not run.stopping:
                pieces += [("  x ", "accent"), "stop: send nothing more, look no longer"]
            else:
                pieces += ["  stopping: what was sent still ends"]
        else:
            pieces = [(" esc ", "accent"), "close"]
            if result.can_undo:
                pieces += [("  u ", "accent"), "take it back (shows its plan first)"]
            if result.outcome == "refused":
                pieces += [("  r ", "accent"), "plan it again"]
        if len(self._runs.all) > 1:
            pieces += [("  tab ", "accent"), f"the other runs ({len(self._runs.all)})"]
        return pieces

    def action_leave(self) -> None:
        """Close; it goes on."""
        self._run.left = True
        self.dismiss(None)

    def action_stop(self) -> None:
        """Send nothing more, and look no longer."""
        running = self._run.running
        if running is not None and self._run.active:
            running.cancel()
            self.show_run()

    def action_undo(self) -> None:
        """Take it back, through a plan of its own."""
        result = self._run.result
        if result is not None and result.can_undo:
            self.dismiss(("undo", self._run))

    def action_again(self) -> None:
        """Plan it anew after it was refused."""
        result = self._run.result
        if result is not None and result.outcome == "refused":
            self.dismiss(("again", self._run))

    def action_next_run(self) -> None:
        """The next action of this session."""
        every = self._runs.all
        self._look_at(every[(every.index(self._run) + 1) % len(every)])

    @on(CopyText)
    def copy_text(self, event: CopyText) -> None:
        """Put it on the clipboard."""
        outlet.copy(self.app, event.text)
