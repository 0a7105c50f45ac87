"""Checks of nodes, as a part of CockpitScreen: from E and C to a run, its end, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from textual.message import Message

from cockpit.cluster import Cluster
from cockpit.words import plural
from screens import outlet
from screens.check_plans import CheckPlans
from screens.check_runs import TITLES, CheckSession
from screens.check_targets import OF_NODE, nodes_of
from screens.lines import Line, Piece, Subject

if TYPE_CHECKING:
    from screens.change_targets import Pointed
    from screens.check_pane import CheckPane
    from screens.pane import TablePane
    from screens.text_view import TextView
    from screens.trail import Trail

REASONED = ("drain", "quarantine")  # changes that a failing check is a reason for


class CheckEnded(Message):
    """A run over nodes has ended, and is kept."""

    def __init__(self, session: CheckSession) -> None:
        super().__init__()
        self.session = session


class CheckKeys(CheckPlans):
    """What asks nodes is imported when it is first needed."""

    cluster: Cluster
    trail: Trail
    _checks: CheckSession | None = None

    if TYPE_CHECKING:

        @property
        def pane(self) -> TablePane: ...

        def pointed(self) -> Pointed: ...
        def text_view(self) -> TextView | None: ...
        def refresh_chrome(self) -> None: ...
        async def action_pane(self, name: str) -> None: ...

    def make_checks(self, heard: Callable[[str], None]) -> CheckPane:
        """The pane; `heard` is called on a thread when there is something new."""
        from screens.check_book import check_book
        from screens.check_pane import CheckPane

        check_book(self.cluster).listen(heard)
        return CheckPane(self.cluster, lambda: self._checks)

    def check_pieces(self) -> list[Piece]:
        """For the header: the run that is under way, unless the pane in front says more."""
        session, deep = self._checks, self.deep_pieces()
        if session is None or session.over.is_set() or self.trail.here.view == "pane-checks":
            return deep
        return [*deep, (f"{session.short()}, 6 shows it ", "accent")]

    # From a key to a run.

    async def action_check(self, kind: str) -> None:
        """Check the marked nodes, or what the cursor is on; without any, all that are up, after a question."""
        session = self._checks
        if session is not None and not session.over.is_set():
            outlet.tell(self.app, f"one run at a time: {session.title}, {session.words()}; esc in 6 stops it")
            await self._show_checks(session.kind)
            return
        subjects = next((each for each in self.pointed() if each), [])
        names = self.nodes_behind(subjects)
        if not names:
            await self.check_all(kind)
        elif all(subject.kind in ("node", "gpu", *OF_NODE) for subject in subjects):
            await self._begin_check(kind, names)
        else:
            await self._ask_check(kind, names, f"{plural(len(names), 'node')} behind it: {_shown(names)}")

    async def check_all(self, kind: str) -> None:
        """All nodes that are up, once somebody has said yes: it is load for them and for the head."""
        nodes = self.cluster.view.nodes
        if nodes is not None and not nodes:
            outlet.tell(self.app, "Slurm names no nodes")
            return
        count = "" if nodes is None else f", out of {plural(len(nodes), 'node')}"
        await self._ask_check(kind, (), f"nothing is marked or under the cursor: all nodes that are up{count}")

    async def _ask_check(self, kind: str, names: Sequence[str], what: str) -> None:
        from actions.spec import UNDONE_EASILY, confirm_for
        from screens.ask_dialog import AskDialog

        about: list[Line] = [
            [(what, "bright")],
            ["Each is asked once, over the connections there are; a few small programs run on it for some seconds."],
            [("It reads only, and loads nodes little; a node that hangs delays no other.", "dim")],
        ]
        config = self.cluster.config
        dialog = AskDialog(
            TITLES[kind], about, ["ask them?"], confirm_for(UNDONE_EASILY, 1, config.name),
            production=config.production,
        )  # fmt: skip

        async def answered(typed: str | None) -> None:
            if typed is not None:
                await self._begin_check(kind, names)

        await self.app.push_screen(dialog, answered)

    def nodes_behind(self, subjects: Iterable[Subject]) -> tuple[str, ...]:
        """The nodes that these stand for, those that Slurm names."""
        view, problems = self.cluster.view, self.cluster.problems()
        found: list[str] = []
        for subject in subjects:
            found += nodes_of(view, problems, subject) or self._nodes_of_row(subject)
        known = {node.name for node in view.nodes or ()}
        return tuple(name for name in dict.fromkeys(found) if name in known or view.nodes is None)

    def _nodes_of_row(self, subject: Subject) -> Iterable[str]:
        """Those behind a line of a pane whose lines are none of Slurm's things, such as a test."""
        if self.text_view() is not None:
            return ()
        spec = self.pane.spec
        rows = (row for row in self.pane.visible_rows if spec.key(row) == subject.key)
        return [name for row in rows for name in spec.nodes(row)] if subject.kind == spec.kind else ()

    async def _begin_check(self, kind: str, names: Sequence[str]) -> None:
        def ended(session: CheckSession) -> None:
            self.post_message(CheckEnded(session))

        self._checks = CheckSession(self.cluster, kind, names, ended=ended)
        self._checks.start()
        await self._show_checks(kind)

    async def _show_checks(self, kind: str) -> None:
        from screens.check_pane import CheckPane

        await self.action_pane("checks")
        self.query_one(CheckPane).show_kind(kind)
        self.refresh_chrome()

    def on_check_ended(self, event: CheckEnded) -> None:
        """Tell its end where the pane does not, and whatever went wrong with it in any case."""
        self.refresh_chrome()
        session = event.session
        bad = bool(session.trouble or session.failed or session.silent)
        if session.trouble or self.trail.here.view != "pane-checks":
            more = "" if self.trail.here.view == "pane-checks" else "; 6 shows it"
            outlet.tell(self.app, f"{session.end_words()}{more}", severity="warning" if bad else "information")

    # From a check to a change.

    def proposed_reason(self, offer_id: str, pointed: Pointed) -> str:
        """The failing check as the reason of a drain; "" for other changes, and where no check is pointed at."""
        subjects = next((each for each in pointed if each), [])
        if offer_id in REASONED and len(subjects) == 1 and subjects[0].kind == "problem":
            return self._reason_of(subjects[0].key)
        if offer_id not in REASONED or not all(subject.kind in TITLES for subject in subjects):
            return ""
        from screens.check_table import drain_reason

        return drain_reason(self.cluster, subjects)

    def _reason_of(self, key: str) -> str:
        """Of a problem that is a failing check: what fails."""
        if not key.startswith("check:"):
            return ""
        from cockpit.check_problems import reason

        return reason(self.cluster.kept_checks.of(key, self.cluster.view))


def _shown(names: Sequence[str]) -> str:
    from cockpit.formats.hostlist import brief

    return brief(names, 60)
