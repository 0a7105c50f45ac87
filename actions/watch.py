"""Watching the cluster until what was wished for is really there: `the command returned 0` is no success."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from actions.capture import CAPTURE
from actions.outcome import OnProgress, Progress, Result, StepResult
from actions.spec import Finding, Look, Plan, Scope, Wish
from cockpit.models import Fault, FaultError
from cockpit.words import plural

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

FAILED_DEADLINE_S = 3.0  # a command that was refused outright leaves little to wait for
_FIRST_S, _SLOWEST_S, _FACTOR = 0.3, 5.0, 1.6
_SETTLED = (Look.DONE, Look.UNDERWAY, Look.FAILED)
_GOOD = (Look.DONE, Look.UNDERWAY)

Findings = Mapping[str, Finding]


class Watch:
    """Looks again and again at what was changed, more and more slowly."""

    def __init__(
        self, cluster: Cluster, plan: Plan, results: Sequence[StepResult], since: float, tell: OnProgress
    ) -> None:
        self._cluster, self._since, self._tell = cluster, since, tell
        self._sent = {name for result in results for name in result.step.subjects}
        refused = {name for result in results if result.fault and not result.unclear for name in result.failed}
        self._wishes = [(wish, self._deadline_s(wish, refused)) for wish in plan.wishes]
        self._seen: dict[tuple[int, str], Finding] = {}
        self._fault = ""

    def _deadline_s(self, wish: Wish, refused: set[str]) -> float:
        wanted = self._sent.intersection(wish.names)
        return min(FAILED_DEADLINE_S, wish.deadline_s) if wanted and wanted <= refused else wish.deadline_s

    def run(self, nap: Callable[[float], bool]) -> tuple[Findings, bool]:
        """The last finding of each target, and whether nothing is left to wait for.

        `nap` waits so many seconds and is True when the run was cancelled.
        """
        if not self._sent:
            return {}, True
        began, wait_s = self._cluster.clock.steady(), _FIRST_S
        while True:
            left_s = self._look(self._cluster.clock.steady() - began)
            if left_s <= 0:
                return self._worst(), True
            if nap(min(wait_s, left_s)):
                return self._worst(), False
            wait_s = min(_SLOWEST_S, wait_s * _FACTOR)

    def _look(self, spent_s: float) -> float:
        """One look at every wish that is still open; the seconds that are left, 0 when there is no reason to wait."""
        left_s = 0.0
        for number, (wish, deadline_s) in enumerate(self._wishes):
            names = self._sent.intersection(wish.names)
            if not self._open(number, names):
                continue
            try:
                found = wish.look(self._cluster, self._since)
            except FaultError as error:
                found = {}
                self._note(error.fault.line())
            for name in wish.names:
                if name in names and name in found:
                    self._take(number, name, found[name])
            if self._open(number, names):
                left_s = max(left_s, deadline_s - spent_s)
        return left_s

    def _open(self, number: int, names: set[str]) -> bool:
        seen = (self._seen.get((number, name)) for name in names)
        return any(finding is None or finding.look not in _SETTLED for finding in seen)

    def _take(self, number: int, name: str, finding: Finding) -> None:
        if self._seen.get((number, name)) != finding:
            self._seen[number, name] = finding
            self._tell(Progress("watch", finding.text, target=name, look=finding.look))

    def _note(self, text: str) -> None:
        if text != self._fault:
            self._fault = text
            self._tell(Progress("note", f"cannot look: {text}"))

    def _worst(self) -> Findings:
        """For each target the finding that is farthest from what was wished."""
        order = (Look.DONE, Look.UNDERWAY, Look.WAIT, Look.FAILED)
        unseen = Finding(Look.WAIT, f"could not be looked at: {self._fault}" if self._fault else "was not seen")
        worst: dict[str, Finding] = {}
        for number, (wish, _) in enumerate(self._wishes):
            for name in wish.names:
                if name not in self._sent:
                    continue
                finding = self._seen.get((number, name), unseen)
                if name not in worst or order.index(finding.look) > order.index(worst[name].look):
                    worst[name] = finding
        return worst


def judged(plan: Plan, results: Sequence[StepResult], findings: Findings, *, stop: str, cut_short: bool) -> Result:
    """What came of it, by what was seen; the commands' own words only explain."""
    notes = [result.said for result in results if result.step.via == CAPTURE and not result.fault]
    notes += [_told(result, result.fault) for result in results if result.fault]
    not_run = len(plan.steps) - len(results)
    if stop:
        notes.append(f"{stop}; {plural(not_run, 'step')} not run" if not_run else stop)
    outcome = _outcome(results, findings, stop, cut_short=cut_short)
    text = _sentence(plan, results, findings, outcome)
    return Result(plan, outcome, text, steps=tuple(results), findings=findings, notes=tuple(notes))


def _told(result: StepResult, fault: Fault) -> str:
    """The fault with the command that it is about, once."""
    line = fault.line()
    return line if line.startswith(result.step.title) else f"{result.step.title}: {line}"


def _outcome(results: Sequence[StepResult], findings: Findings, stop: str, *, cut_short: bool) -> str:
    if stop == "cancelled":
        return "cancelled"
    faults = [result for result in results if result.fault]
    if any(result.denied for result in results):
        return "failed"  # what is so all the same was so before, or is somebody else's doing
    if stop or any(finding.look is Look.FAILED for finding in findings.values()):
        return "failed"
    if not findings:
        return "ok" if not faults else "unverified" if all(result.unclear for result in faults) else "failed"
    open_ = {name for name, finding in findings.items() if finding.look not in _GOOD}
    if not open_:
        # An error about something else than what was watched still counts.
        watched_all = all(result.failed <= findings.keys() for result in faults)
        return "ok" if watched_all else "failed"
    refused = {name for result in faults if not result.unclear for name in result.failed}
    if open_ & refused:
        return "failed"
    return "cancelled" if cut_short else "unverified"


def _sentence(plan: Plan, results: Sequence[StepResult], findings: Findings, outcome: str) -> str:
    good = [name for name, finding in findings.items() if finding.look in _GOOD]
    bad = [name for name in findings if name not in good]
    later = sum(1 for finding in findings.values() if finding.look is Look.UNDERWAY)
    if not results:
        return f"{plan.title}: nothing was sent"
    if not findings:
        return f"{plan.title}: sent" if outcome == "ok" else f"{plan.title}: {outcome}"
    parts = []
    if good:
        whole = plan.targets.scope is Scope.CLUSTER
        seen = findings[good[0]].text if whole else "done, seen in Slurm"
        by_chance = outcome == "failed" and not bad
        some = "it looks so, but not by this" if by_chance else f"true for {len(good)} of {len(findings)}"
        parts.append(some if bad or outcome != "ok" else seen)
    if later:
        parts.append(f"{later} when its jobs have ended")
    if bad:
        shown = ", ".join(f"{name} ({findings[name].text})" for name in bad[:3])
        more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
        parts.append(f"not true for {shown}{more}")
    return f"{plan.title}: {', '.join(parts)}"
