"""A test or sweep while it runs, and what came of it. It can be left: it goes on, and pane 5 has its result."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from actions.nccl_bench import Bench
from actions.nccl_live import Live, LiveSweep, LiveTest, cut_short
from actions.spec import Plan
from cockpit.models import FaultError
from cockpit.sources.base import unexpected
from cockpit.text import printable
from cockpit.words import span
from screens import outlet
from screens.content import styled
from screens.lines import Line, Piece
from screens.modal import Modal
from screens.nccl_live_lines import live_lines
from screens.run_text import run_lines
from screens.runs import Run
from screens.text_messages import CopyText
from screens.text_view import TextView
from themes.glyphs import signs

TICK_S = 0.25


class Watched:
    """One submission and what follows from it; `live` is None until it is submitted."""

    patience_s = 10.0  # for Slurm to end its job

    def __init__(self, bench: Bench, plan: Plan, ended: Callable[[Watched], None]) -> None:
        self.bench, self.run, self._ended = bench, Run(plan, bench.cluster.clock), ended
        self.live: Live | None = None
        self.fault = ""
        self.stopping = False
        self.left = False  # nobody looks: its end is told
        self.over = threading.Event()

    @property
    def title(self) -> str:
        """`NCCL all_reduce on gpu-st-p5-[1-2]`."""
        return self.run.plan.title

    def follow(self, run: Run) -> None:
        """From the end of the submission on; on a thread."""
        result = run.result
        try:
            if result is not None and result.outcome != "refused":
                live = self._make()
                if live.begin(result):
                    self.live = live
                    if self.stopping:
                        live.stop()
                    live.run()
                else:
                    self.fault = live.fault
        except FaultError as error:
            self.fault = error.fault.line()
        except Exception as error:  # a thread's end must be told, whatever broke
            self.fault = unexpected(f"following {self.bench.name}", error).line()
        finally:
            self.over.set()
            self._ended(self)

    def _make(self) -> Live:
        bench, test = self.bench, self.bench.request_of(self.run.plan)
        if bench.sweep:
            return LiveSweep(bench.cluster, test, bench.sweep_options(test), bench.name)
        return LiveTest(bench.cluster, test)

    def stop(self) -> None:
        """Cancel it: a job that comes of the submission under way is cancelled as soon as it is there."""
        first, self.stopping = not self.stopping, True
        if self.live is not None:
            self.live.stop()
        elif first:
            cut_short(self.bench.cluster, self.bench.name, self.over)

    @property
    def unsent(self) -> int:
        """One thing is left to be done for a test that runs: its job is cancelled."""
        return 1

    def undone(self) -> list[Line]:
        """What becomes of it when the cockpit is left now."""
        end = "its job is cancelled; what was measured so far is not kept"
        return [[(printable(self.title), "bright")], [f"  {self.words()}; {end}"]]

    def wait(self, seconds: float) -> None:
        """Until it is over and its job has ended, or for so long."""
        self.over.wait(seconds)

    def words(self) -> str:
        """For the header."""
        kind, live = ("NCCL sweep" if self.bench.sweep else "NCCL test"), self.live
        if isinstance(live, LiveSweep):
            return f"{kind} {live.look.done} tests done"
        return f"{kind} {len(live.rows)} sizes done" if isinstance(live, LiveTest) else f"{kind} starting"

    def end_words(self) -> str:
        """What came of it, for a notice."""
        live = self.live
        if live is None or live.record is None:
            why = self.fault or (live.fault if live is not None else "")
            return f"{self.title}: {'stopped' if self.stopping else why or 'it did not start; u shows why'}"
        busbw = live.record.busbw_large_gbs
        told = f", {busbw:.1f} GB/s" if busbw is not None else ""
        return f"{self.title}: {live.record.verdict}{told}; 5 shows it"

    @property
    def bad(self) -> tuple[tuple[str, ...], str]:
        """The nodes that a sweep names, with the reason for a drain."""
        found = self.live.look.found if isinstance(self.live, LiveSweep) and self.over.is_set() else None
        if found is None or not found.finished:
            return (), ""
        named = [finding for finding in found.findings if finding.names_a_node]
        return tuple(finding.nodes[0] for finding in named), "; ".join(finding.text for finding in named)


class NcclView(Modal[tuple[str, Watched] | None]):
    """Dismissed with ("drain" or "quarantine" or "new", watched), None when it was left."""

    AUTO_FOCUS = "TextView"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("x,ctrl+c", "stop", show=False),
        Binding("D", "wish('drain')", show=False, priority=True),
        Binding("N", "wish('new')", show=False, priority=True),
        Binding("i", "wish('quarantine')", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    NcclView { align: center middle; }
    NcclView > #nccl-live {
        width: 132;
        max-width: 100%;
        height: 100%;
        max-height: 46;
        border: solid $cockpit-accent;
        background: $background;
        padding: 0 1;
    }
    NcclView.-production > #nccl-live { border: heavy $cockpit-production; }
    NcclView #nccl-keys { height: 1; }
    """

    def __init__(self, watched: Watched) -> None:
        super().__init__()
        self._watched = watched
        self._told: object = None

    def compose(self) -> ComposeResult:
        with Vertical(id="nccl-live"):
            yield TextView(id="nccl-text")
            yield Static(id="nccl-keys")

    def on_mount(self) -> None:
        """Follow it from now on."""
        self.set_class(self._watched.run.plan.production, "-production")
        self._watched.left = self._watched.run.left = False
        self.show_live()
        self.set_interval(TICK_S, self.show_live)

    def show_live(self) -> None:
        """Draw it as it is now."""
        watched, steady = self._watched, self._watched.bench.cluster.clock.steady()
        self.query_one(TextView).show(self._lines(steady), title=self._title(steady))
        keys = self._keys()
        if keys != self._told:
            self._told = keys
            self.query_one("#nccl-keys", Static).update(styled(keys))
        watched.run.left = False

    def _lines(self, steady: float) -> list[Line]:
        watched = self._watched
        if watched.live is not None:
            return live_lines(watched.live, steady, signs(self.app))
        lines = run_lines(watched.run, steady, signs(self.app))
        if watched.fault:
            lines = [[(printable(watched.fault), "critical")], [], *lines]
        return lines

    def _title(self, steady: float) -> list[Piece]:
        watched = self._watched
        pieces: list[Piece] = [(printable(watched.title), "bright"), (f" on {watched.run.plan.cluster}", "dim")]
        if watched.run.plan.production:
            pieces.append((" PRODUCTION", "production"))
        if not watched.over.is_set():
            word = "stopping" if watched.stopping else "running"
            pieces.append((f" · {word} {span(steady - watched.run.began_at)}", "accent"))
        return pieces

    def _keys(self) -> list[Piece]:
        watched = self._watched
        if not watched.over.is_set():
            pieces: list[Piece] = [(" esc ", "accent"), "leave it running"]
            pieces += ["  stopping"] if watched.stopping else [("  x ", "accent"), "stop: cancel its job"]
            return pieces
        pieces = [(" esc ", "accent"), "close"]
        nodes, _ = watched.bad
        if nodes:
            pieces += [("  D ", "accent"), f"drain {', '.join(nodes[:3])}", ("  i ", "accent"), "quarantine instead"]
        return [*pieces, ("  N ", "accent"), "another test"]

    def action_leave(self) -> None:
        """Close; it goes on."""
        self._watched.left = self._watched.run.left = True
        self.dismiss(None)

    def action_stop(self) -> None:
        """Cancel its job."""
        if not self._watched.over.is_set():
            self._watched.stop()
            self.show_live()

    def action_wish(self, verb: str) -> None:
        """Drain or quarantine what was found, or another test; each through its own plan."""
        if self._watched.over.is_set() and (verb == "new" or self._watched.bad[0]):
            self.dismiss((verb, self._watched))

    @on(CopyText)
    def copy_text(self, event: CopyText) -> None:
        """Put it on the clipboard."""
        outlet.copy(self.app, event.text)
