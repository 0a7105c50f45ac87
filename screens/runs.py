"""Actions that run or have run since the start, as screens follow them: told on the runner's thread, drawn elsewhere.

Imports no Textual.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from actions.outcome import Progress, Result
from actions.runner import Runner, Running
from actions.spec import Finding, Look, Plan
from cockpit.clock import Clock
from cockpit.text import printable
from cockpit.words import plural
from screens.lines import Line
from screens.question import Question

SETTLED = (Look.DONE, Look.UNDERWAY, Look.FAILED)
LAST_WORDS_S = 1.5  # for the runner to write down how it ended


@dataclass
class Run:
    """One action. Whatever the runner tells is kept here whether somebody looks or not."""

    plan: Plan
    clock: Clock
    began_at: float = 0.0  # steady clock
    watch_at: float | None = None
    step: int = -1
    said: dict[int, str] = field(default_factory=dict)  # step -> how it ended
    seen: dict[str, Finding] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    running: Running | None = None
    question: Question | None = None  # what it was planned from
    left: bool = False  # nobody looks: its end is told
    patience_s: float = LAST_WORDS_S  # how long its end may take when the cockpit is left

    @property
    def result(self) -> Result | None:
        """What came of it; None while it runs."""
        return self.running.result if self.running is not None and self.running.done.is_set() else None

    @property
    def active(self) -> bool:
        """True until it has ended and its end is on the disk."""
        return self.running is not None and not self.running.done.is_set()

    @property
    def stopping(self) -> bool:
        """Somebody has asked for nothing more to be sent."""
        return self.running is not None and self.running.cancelled.is_set()

    @property
    def unsent(self) -> int:
        """How many commands were not answered yet."""
        return len(self.plan.steps) - len(self.said)

    @property
    def settled(self) -> int:
        """How many targets are as wished, or never will be."""
        return sum(1 for finding in tuple(self.seen.values()) if finding.look in SETTLED)

    @property
    def deadline_s(self) -> float | None:
        """How long it is looked for what was wished for; None when nothing is watched."""
        return max((wish.deadline_s for wish in self.plan.wishes), default=None)

    def words(self) -> str:
        """For the header: `drain running 2/5`, or that it has not come so far."""
        name = self.plan.action_id
        if self.stopping:
            return f"{name} stopping"
        return f"{name} running {self.settled}/{max(self.plan.count, len(self.seen))}"

    def stop(self) -> None:
        """Send nothing more and watch no longer."""
        if self.running is not None:
            self.running.cancel()

    def wait(self, seconds: float) -> None:
        """Until its end is on the disk, or for so long."""
        if self.running is not None:
            self.running.done.wait(seconds)

    def undone(self) -> list[Line]:
        """What will not be done, or not be known, when the cockpit is left now."""
        lines: list[Line] = [[(printable(self.plan.title), "bright")]]
        if self.unsent:
            every = plural(len(self.plan.steps), "command")
            lines.append([f"  {len(self.said)} of {every} sent; the others will not be sent"])
        every_target = max(self.plan.count, len(self.seen))
        if every_target > self.settled:
            left = every_target - self.settled
            lines.append([f"  {left} of {every_target} not seen to be as wished yet; nobody will look any more"])
        return lines

    def told(self, progress: Progress) -> None:
        """One thing that the runner tells, on its thread; each is one assignment, so no lock is needed."""
        if progress.kind == "step" and progress.step is not None:
            self.step = progress.step
        elif progress.kind == "done" and progress.step is not None:
            self.said[progress.step] = progress.text
            if progress.step + 1 == len(self.plan.steps):
                self.watch_at = self.clock.steady()
        elif progress.kind == "watch" and progress.look is not None:
            self.watch_at = self.watch_at or self.clock.steady()
            self.seen[progress.target] = Finding(progress.look, progress.text)
        elif progress.kind == "note":
            self.notes.append(progress.text)


class Runs:
    """The actions of one cluster, and the one runner that they all go through."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.all: list[Run] = []

    @property
    def active(self) -> list[Run]:
        """Those that have not ended, the latest last."""
        return [run for run in self.all if run.active]

    def start(self, plan: Plan, typed: str, heard: Callable[[Run], None], ended: Callable[[Run], None]) -> Run:
        """Hand a confirmed plan to the runner. `heard` and `ended` are called on its threads."""
        clock = self.runner.cluster.clock
        run = Run(plan, clock, began_at=clock.steady())

        def tell(progress: Progress) -> None:
            run.told(progress)
            heard(run)

        self.all.append(run)
        run.running = self.runner.start(plan, typed, tell, how=f"typed {typed!r} in the cockpit")
        threading.Thread(target=self._wait, args=(run, ended), name="action-end", daemon=True).start()
        return run

    @staticmethod
    def _wait(run: Run, ended: Callable[[Run], None]) -> None:
        assert run.running is not None
        run.running.wait()
        ended(run)
