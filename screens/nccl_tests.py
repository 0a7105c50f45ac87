"""NCCL tests, as a part of CockpitScreen: their pane, and the way from a key to a test that runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.message import Message
from textual.screen import Screen

from cockpit.cluster import Cluster
from screens import outlet
from screens.lines import Piece, Subject

if TYPE_CHECKING:
    from screens.change_targets import Pointed
    from screens.check_plans import DeepLeft
    from screens.leaving import Unfinished
    from screens.nccl_view import Watched
    from screens.pane import TablePane
    from screens.pane_spec import PaneSpec
    from screens.question import Agreed, Question
    from screens.runs import Run, Runs
    from screens.text_view import TextView


class NcclEnded(Message):
    """A test or sweep is over, and its result is kept."""

    def __init__(self, watched: Watched) -> None:
        super().__init__()
        self.watched = watched


class NcclTests(Screen[None]):
    """What runs a test, and the dialogs for it, are imported when they are first needed."""

    cluster: Cluster
    _watched: Watched | None = None

    if TYPE_CHECKING:

        @property
        def pane(self) -> TablePane: ...

        @property
        def runs(self) -> Runs: ...
        @property
        def active_runs(self) -> list[Run]: ...
        @property
        def unfinished_checks(self) -> list[DeepLeft]: ...

        def subject(self) -> Subject | None: ...
        def text_view(self) -> TextView | None: ...
        def refresh_chrome(self) -> None: ...
        def _ended(self, run: Run) -> None: ...
        async def change(self, offer_id: str, pointed: Pointed, reason: str = "") -> None: ...

    def nccl_spec(self, heard: Callable[[str], None]) -> PaneSpec:
        """The tests of this cluster; `heard` is called on a thread when there is something new of them."""
        from screens.nccl_book import nccl_book
        from screens.nccl_table import nccl_spec

        nccl_book(self.cluster).listen(heard)
        return nccl_spec(self.cluster)

    def make_nccl(self, heard: Callable[[str], None]) -> TablePane:
        """The pane of the tests."""
        from screens.pane import TablePane

        pane = TablePane(self.nccl_spec(heard))
        pane.scopes = ("grid", "nccl")
        return pane

    def nccl_pieces(self) -> list[Piece]:
        """For the header: the test that runs."""
        watched = self.watched_test
        return [(f"{watched.words()}, N shows it ", "accent")] if watched is not None else []

    @property
    def watched_test(self) -> Watched | None:
        """The test that runs."""
        return None if self._watched is None or self._watched.over.is_set() else self._watched

    @property
    def unfinished(self) -> list[Unfinished]:
        """What leaving the cockpit would cut short; a test counts once, not its submission too."""
        test = self.watched_test
        runs = [run for run in self.active_runs if test is None or run is not test.run]
        return [*runs, *([test] if test is not None else []), *self.unfinished_checks]

    # From the key to the plan.

    async def action_nccl_test(self) -> None:
        """The test that runs, else the form of a new one."""
        if (test := self.watched_test) is not None:
            await self._show_watched(test)
        else:
            await self.nccl_form()

    async def nccl_form(self, *, sweep: bool = False) -> None:
        """A few fields over the plan that they give; without marks the idle nodes of the queue are meant."""
        lock = self.cluster.lock
        if lock.on:
            outlet.tell(self.app, f"NCCL test: {lock.why()}", severity="warning")
            return
        if self.watched_test is not None:
            outlet.tell(self.app, "one test at a time from here: N shows the one that runs", severity="warning")
            return
        from actions.nccl_bench import Bench
        from screens.nccl_form import nccl_question
        from screens.plan_dialog import PlanDialog

        bench = Bench(self.cluster, sweep=sweep, default=self._marked_nodes())
        question = nccl_question(bench, self._queue_here())
        config = self.cluster.config
        dialog = PlanDialog(question, config.name, production=config.production)
        await self.app.push_screen(dialog, partial(self._nccl_agreed, bench))

    def _marked_nodes(self) -> tuple[str, ...]:
        """The nodes behind the marked rows, whatever table they are in."""
        if self.text_view() is not None:
            return ()
        marked, spec = set(self.pane.marked_keys), self.pane.spec
        rows = [row for row in self.pane.visible_rows if spec.key(row) in marked]
        return tuple(dict.fromkeys(name for row in rows for name in spec.nodes(row)))

    def _queue_here(self) -> str:
        """The queue that the cursor is on, or a node's; "" for all."""
        subject = self.subject()
        if subject is None or subject.kind not in ("queue", "node"):
            return ""
        if subject.kind == "queue":
            return subject.key
        node = next((node for node in self.cluster.view.nodes or () if node.name == subject.key), None)
        return min(node.partitions, default="") if node is not None else ""

    # From the plan to the result.

    async def _nccl_agreed(self, bench: Any, answer: Agreed | Question | None) -> None:
        from screens.nccl_view import Watched
        from screens.question import Agreed

        if not isinstance(answer, Agreed):
            return
        watched = Watched(bench, answer.plan, self._nccl_over)
        self._watched = watched

        def submitted(run: Run) -> None:
            self._ended(run)
            watched.follow(run)

        watched.run = self.runs.start(answer.plan, answer.typed, lambda run: None, submitted)
        watched.run.question = answer.question
        self.refresh_chrome()
        await self._show_watched(watched)

    def _nccl_over(self, watched: Watched) -> None:
        self.post_message(NcclEnded(watched))

    async def _show_watched(self, watched: Watched) -> None:
        from screens.nccl_view import NcclView

        await self.app.push_screen(NcclView(watched), self._after_nccl)

    async def _after_nccl(self, wish: tuple[str, Watched] | None) -> None:
        self.refresh_chrome()
        if wish is None:
            return
        verb, watched = wish
        nodes, reason = watched.bad
        if verb == "new":
            await self.nccl_form()
        elif nodes:
            pointed = [[Subject("node", node) for node in nodes]]
            await self.change(verb, pointed, reason=f"NCCL sweep: {reason}")

    def on_nccl_ended(self, event: NcclEnded) -> None:
        """The pane has one more; where nobody looks its end is told."""
        from screens.nccl_book import nccl_book

        nccl_book(self.cluster).read()
        self.refresh_chrome()
        watched = event.watched
        if watched.left:
            kept = watched.live.record if watched.live is not None else None
            fine = kept is not None and kept.verdict in ("pass", "unjudged")
            outlet.tell(self.app, watched.end_words(), severity="information" if fine else "warning")
