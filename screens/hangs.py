"""Hung jobs, as a part of CockpitScreen: from a key to a job's diagnosis, and from there to what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen
from textual.widgets import ContentSwitcher

from cockpit.cluster import Cluster
from cockpit.models import Job
from screens import outlet
from screens.commands import Command, Entry
from screens.keymap import Keymap
from screens.lines import Subject
from screens.subjects import jobs_behind

if TYPE_CHECKING:
    from actions.spec import Options
    from cockpit.diagnosis.diagnose import Diagnosis
    from screens.change_targets import Pointed
    from screens.hang_view import HangView
    from screens.trail import Trail

HANG = "diagnosis"  # the view of why a job hangs
_MOST = 60  # jobs of one node or array in a menu


class Hangs(Screen[None]):
    """What looks at a job is imported when that is first asked for."""

    cluster: Cluster
    trail: Trail

    if TYPE_CHECKING:

        @property
        def keymap(self) -> Keymap: ...

        def subject(self) -> Subject | None: ...
        async def go(self, subject: Subject, view: str = "detail") -> None: ...
        async def change(
            self, offer_id: str, pointed: Pointed, reason: str = "", *, options: Options | None = None
        ) -> None: ...

    def hang_view(self) -> HangView | None:
        """The diagnosis of a job, while that is in front."""
        if self.trail.here.view != HANG:
            return None
        from screens.hang_view import HangView

        return self.query_one(HangView)

    async def action_diagnose(self) -> None:
        """Why the job under the cursor hangs; there, once more."""
        here, subject = self.hang_view(), self.subject()
        if here is not None and (subject is None or subject.kind != "job" or subject == self.trail.here.subject):
            here.again()
        else:
            await self.diagnose(subject)

    async def diagnose(self, subject: Subject | None) -> None:
        """Look at the job behind something, or ask which one."""
        jobs, why = jobs_behind(self.cluster.view, subject)
        if not jobs and self.trail.here.subject is not None:
            jobs, why = jobs_behind(self.cluster.view, self.trail.here.subject)
        if not jobs:
            outlet.tell(self.app, why, title="no job to look at", severity="warning")
        elif len(jobs) == 1:
            await self._look_at(jobs[0])
        else:
            await self._ask_which_job(jobs)

    async def _ask_which_job(self, jobs: list[Job]) -> None:
        from screens.choice import ChoiceMenu

        by_label = {job.label: job for job in jobs[:_MOST]}
        told = [
            Entry(Command(label), label, f"{job.name} · {job.user}", str(number) if number < 10 else "")
            for number, (label, job) in enumerate(by_label.items(), 1)
        ]

        async def chosen(label: str | None) -> None:
            if label is not None:
                await self._look_at(by_label[label])

        await self.app.push_screen(ChoiceMenu("why it hangs: which job", told), chosen)

    async def _look_at(self, job: Job) -> None:
        from screens.hang_view import HangView

        switcher = self.query_one("#panes", ContentSwitcher)
        if not switcher.query(HangView):
            await switcher.add_content(HangView(self.cluster, self.keymap, id=HANG))
        self.query_one(HangView).look_at(job.label)
        await self.go(Subject("job", job.label), HANG)

    def leave_diagnosis(self) -> None:
        """Nobody will come back to it along this way: what is being read for it is let go."""
        if self.trail.holds(HANG) or not self.query(f"#{HANG}"):
            return
        from screens.hang_view import HangView

        for view in self.query(HangView):
            view.leave()

    # What to do about it.

    def _diagnosed(self) -> Diagnosis | None:
        """What the diagnosis in front has found so far."""
        view = self.hang_view()
        look = view.seen if view is not None else None
        return look.diagnosis if look is not None else None

    def suggested(self) -> list[list[Subject]]:
        """What the diagnosis in front says to act on: its nodes first of all, then those its verdict names."""
        diagnosis = self._diagnosed()
        if diagnosis is None:
            return []
        from screens.hang_lines import moves_of

        moved = [name for move in moves_of(diagnosis) if move.action == "drain" for name in move.targets]
        nodes = moved or list(diagnosis.verdict.nodes)
        return [[Subject("node", name) for name in nodes]] if nodes else []

    async def suggested_change(self, offer_id: str) -> bool:
        """Where the diagnosis in front says to drain and to requeue, the key for draining makes one plan of both.

        On the name of a node it means that node, as everywhere. False when there is nothing of its own to do.
        """
        view, diagnosis = self.hang_view(), self._diagnosed()
        if offer_id != "drain" or view is None or diagnosis is None:
            return False
        from screens.hang_lines import rescue_of

        found, cursor = rescue_of(diagnosis), view.subject
        if found is None or (cursor is not None and cursor.kind in ("node", "gpu")):
            return False
        nodes, job = found
        if any(each.requeueable is False for each in jobs_behind(self.cluster.view, Subject("job", job))[0]):
            return False
        from actions.spec import Options
        from cockpit.formats.hostlist import fold

        pointed = [[Subject("job", job)]]
        await self.change("drain-requeue", pointed, self.suggested_reason(), options=Options(nodes=fold(nodes)))
        return True

    def suggested_reason(self) -> str:
        """The words for a drain from the diagnosis in front, "" where there is none."""
        diagnosis = self._diagnosed()
        if diagnosis is None or not diagnosis.verdict.nodes:
            return ""
        from cockpit.diagnosis.moves import reason_of

        return reason_of(diagnosis.evidence.job.label, diagnosis.verdict)
