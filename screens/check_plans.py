"""Checks that load nodes, each as a plan of its own: pairs over EFA, NVIDIA's diagnostics. A part of CockpitScreen."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message
from textual.screen import Screen

from cockpit.cluster import Cluster
from cockpit.text import printable
from cockpit.words import plural
from screens import outlet
from screens.commands import Command, Entry
from screens.lines import Line, Piece
from screens.question import Agreed, Question

if TYPE_CHECKING:
    from actions.checks_live import LiveDeep
    from cockpit.checks.models import CheckRun
    from screens.change_targets import Pointed
    from screens.changes import RunEnded
    from screens.lines import Subject
    from screens.runs import Run, Runs

ALL, PAIR, DEEP = "check-all", "efa-pair", "gpu-dcgm"
_LEVELS = (
    ("1", "level 1", "Under a minute: software and a first look at the GPUs."),
    ("2", "level 2", "A few minutes: PCIe and memory, too."),
    ("3", "level 3", "Half an hour and more: with stress, power and memory bandwidth."),
)


class DeepEnded(Message):
    """NVIDIA's diagnostics have ended, or could not be followed."""

    def __init__(self, live: LiveDeep) -> None:
        super().__init__()
        self.live = live


class DeepLeft:
    """Diagnostics that run, when the cockpit is to be left: their job would go on with nobody to read what it says."""

    patience_s = 10.0  # for Slurm to end its job
    unsent = 1  # its job is cancelled

    def __init__(self, live: LiveDeep) -> None:
        self._live = live

    def undone(self) -> list[Line]:
        """What becomes of them when the cockpit is left now."""
        live = self._live
        end = "its job is cancelled; what it found so far is not kept"
        title = f"GPU diagnostics of {plural(len(live.nodes), 'node')}"
        return [[(title, "bright")], [f"  job {live.job_id} is {printable(live.state)}; {end}"]]

    def stop(self) -> None:
        """Cancel the job."""
        self._live.stop()

    def wait(self, seconds: float) -> None:
        """Until it has ended, or for so long."""
        self._live.over.wait(seconds)


class CheckPlans(Screen[None]):
    """What plans and follows is imported when it is first needed."""

    cluster: Cluster
    _deep: LiveDeep | None = None

    if TYPE_CHECKING:

        @property
        def runs(self) -> Runs: ...

        def nodes_behind(self, subjects: Sequence[Subject]) -> tuple[str, ...]: ...
        def refresh_chrome(self) -> None: ...
        def _ended(self, run: Run) -> None: ...
        async def _ask(self, question: Question) -> None: ...
        async def show_run(self, run: Run) -> None: ...
        async def check_all(self, kind: str) -> None: ...

    def check_entries(self, pointed: Pointed) -> Iterator[Entry]:
        """For palette and menu: all nodes at once, pairs, diagnostics."""
        for kind, title in (("efa", "EFA"), ("health", "health")):
            words = "Ask all nodes that are up, after a question."
            yield Entry(Command(ALL, kind), f"{title} check of all nodes", words)
        why, count = self.cluster.lock.why(), len(self._aimed_nodes(pointed))
        two = "" if count > 1 else "mark two nodes or more (space)"
        words = "Whether marked nodes reach each other over EFA, two by two."
        yield Entry(Command(PAIR), "EFA pair check", words, tier=1, disabled=why or two)
        one = "" if count else "it is for nodes: mark some, or go to one"
        words = "NVIDIA's own tests (dcgmi diag) on idle nodes; takes their GPUs."
        yield Entry(Command(DEEP), "GPU diagnostics", words, tier=1, disabled=why or one)

    def _aimed_nodes(self, pointed: Pointed) -> tuple[str, ...]:
        return self.nodes_behind(next((each for each in pointed if each), ()))

    async def do_check(self, command: Command, pointed: Pointed) -> None:
        """Do what was chosen by its name; the subjects are those of the moment when the list was opened."""
        names = self._aimed_nodes(pointed)
        if command.id == ALL:
            await self.check_all(command.argument)
        elif command.id == PAIR:
            await self.check_pairs(names)
        elif command.id == DEEP and names:
            await self._ask_level(names)

    # Pairs.

    async def check_pairs(self, names: Sequence[str]) -> None:
        """The two of them; of more, every node with one other."""
        from actions.checks import pair_action, pair_targets
        from cockpit.checks.pair import pairs_of

        pairs = [pair for round_ in pairs_of(names) for pair in round_] if len(names) > 1 else []
        if not pairs:
            outlet.tell(self.app, "EFA pair check: mark two nodes or more (space)", severity="warning")
            return
        action, targets = pair_action(pairs), pair_targets(pairs)

        left = [name for name in names if name not in targets.names]
        note = f"{left[0]} has no partner left and sits out" if left else ""
        await self._ask(
            Question(
                f"EFA pair check, {plural(len(pairs), 'pair')}", partial(action.plan, self.cluster, targets), note=note
            )
        )

    def on_run_ended(self, event: RunEnded) -> None:
        """Keep what pairs have measured."""
        run = event.run
        if run.plan.action_id != PAIR or run.result is None:
            return
        from actions.checks import pairs_found
        from cockpit.checks.models import CheckRun
        from cockpit.kept_lines import run_id

        if pairs := pairs_found(run.result):
            at = min(pair.at for pair in pairs)
            self.keep_check(CheckRun(run_id(at), "pair", at, sum(pair.took_s for pair in pairs), pairs=pairs))

    def keep_check(self, run: CheckRun) -> None:
        """Write it down on a thread, since a home directory may hang."""
        from screens.check_book import check_book

        def work() -> None:
            try:
                check_book(self.cluster).keep(run)
            except OSError as error:
                words = f"this run is not kept: {error.strerror or error}"
                self.app.call_from_thread(outlet.tell, self.app, words, severity="warning")

        threading.Thread(target=work, name="check-keep", daemon=True).start()

    # Diagnostics.

    async def _ask_level(self, names: Sequence[str]) -> None:
        if self._deep is not None and not self._deep.over.is_set():
            outlet.tell(self.app, f"one at a time: {self._deep.name} is {self._deep.state}", severity="warning")
            return
        from screens.choice import ChoiceMenu

        told = [Entry(Command(level), title, words, level) for level, title, words in _LEVELS]

        async def chosen(level: str | None) -> None:
            if level is not None:
                await self._ask_deep(names, int(level))

        await self.app.push_screen(ChoiceMenu("GPU diagnostics: how deep", told), chosen)

    async def _ask_deep(self, names: Sequence[str], level: int) -> None:
        from actions.checks import deep_action
        from actions.spec import Scope, Targets
        from cockpit.checks.deep import DeepRequest
        from screens.plan_dialog import PlanDialog

        action, targets = deep_action(DeepRequest(tuple(names), level)), Targets(Scope.NODE, tuple(names))

        config = self.cluster.config
        question = Question(f"GPU diagnostics, level {level}", partial(action.plan, self.cluster, targets))
        dialog = PlanDialog(question, config.name, production=config.production)
        await self.app.push_screen(dialog, self._deep_agreed)

    async def _deep_agreed(self, answer: Agreed | Question | None) -> None:
        from actions.checks_live import LiveDeep

        if not isinstance(answer, Agreed):
            return
        live = self._deep = LiveDeep(self.cluster, answer.plan)

        def submitted(run: Run) -> None:
            self._ended(run)
            if run.result is not None and live.begin(run.result):
                live.run()
                self.post_message(DeepEnded(live))

        run = self.runs.start(answer.plan, answer.typed, lambda run: None, submitted)
        run.question = answer.question
        self.refresh_chrome()
        await self.show_run(run)

    @property
    def unfinished_checks(self) -> list[DeepLeft]:
        """Diagnostics whose job is in Slurm; before that their submission is what runs."""
        live = self._deep
        return [] if live is None or live.job_id is None or live.over.is_set() else [DeepLeft(live)]

    def deep_pieces(self) -> list[Piece]:
        """For the header: diagnostics that run."""
        live = self._deep
        if live is None or live.over.is_set() or live.job_id is None:
            return []
        return [(f"DCGM job {live.job_id} {live.state} ", "accent")]

    def on_deep_ended(self, event: DeepEnded) -> None:
        """Keep and tell what the nodes' dcgmi said."""
        live = event.live
        self.refresh_chrome()
        if live.kept is None:
            why = live.fault or "it was stopped"
            outlet.tell(self.app, f"GPU diagnostics: {why}", severity="warning")
            return
        self.keep_check(live.kept)
        bad = {node: result for node, result in live.found.items() if result.verdict.value != "pass"}
        told = "; ".join(f"{node}: {result.says}" for node, result in list(bad.items())[:4])
        more = "; 6 and m show it"
        words = f"GPU diagnostics of {plural(len(live.found), 'node')}: {told or 'all passed'}{more}"
        outlet.tell(self.app, words, severity="warning" if bad else "information")
