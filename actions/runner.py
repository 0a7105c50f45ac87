"""The one place that changes a cluster: it refuses, records, sends, watches, and says what is really true.

Screens, keys, palette, command line and undo all end here, so read-only, stale data, confirmation and the record are
looked at here and nowhere else.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from actions import record
from actions.audit import AuditError, AuditLog, new_id
from actions.aws_steps import WAIT, on_wait
from actions.errors import ActionError, Refusal
from actions.executors import EXECUTORS, Executor
from actions.looks import jobs_on
from actions.outcome import HOPELESS, OnProgress, Progress, Result, StepResult
from actions.spec import NAMED, HurtJob, Plan, Scope, Step, stale
from actions.watch import Watch, judged
from cockpit.models import FaultError
from cockpit.sources.base import unexpected

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

Sleep = Callable[[float], bool]  # seconds -> True when the run was cancelled meanwhile


class Running:
    """A run on its own daemon thread; `result` is there once `done` is set."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.cancelled = threading.Event()
        self.result: Result | None = None

    def cancel(self) -> None:
        """Send nothing more, watch no longer; the command that runs just now still ends."""
        self.cancelled.set()

    def wait(self, seconds: float | None = None) -> Result | None:
        """The result, or None when the run goes on."""
        self.done.wait(seconds)
        return self.result


class Runner:
    """Runs plans on one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        audit: AuditLog | None = None,
        executors: Mapping[str, Executor] = EXECUTORS,
        sleep: Sleep | None = None,
    ) -> None:
        self.cluster = cluster
        self.audit = audit or AuditLog(cluster.config.name)
        self._executors, self._sleep = executors, sleep
        self.active: list[Running] = []

    def start(self, plan: Plan, typed: str, on_progress: OnProgress, *, how: str = "") -> Running:
        """Run the plan on a thread of its own; `on_progress` is called there. `typed` is what confirms the plan."""
        running = Running()
        self.active.append(running)

        def work() -> None:
            try:
                running.result = self.run(plan, typed, on_progress, how=how, cancelled=running.cancelled)
            finally:
                self.active.remove(running)
                running.done.set()

        threading.Thread(target=work, name=f"action-{plan.action_id}", daemon=True).start()
        return running

    def run(
        self,
        plan: Plan,
        typed: str,
        on_progress: OnProgress,
        *,
        how: str = "",
        cancelled: threading.Event | None = None,
    ) -> Result:
        """Run the plan to its end on this thread; never raises, whatever happens is in the result."""
        tell = _quiet(on_progress)
        try:
            self._admit(plan, typed)
        except ActionError as error:
            return self._refused(plan, error, tell)
        except FaultError as error:
            return self._refused(plan, ActionError(Refusal.UNREACHED, error.fault.line()), tell)
        except Exception as error:  # nothing was sent: what broke while planning anew is a refusal, too
            return self._refused(plan, ActionError(Refusal.REFUSED, unexpected(plan.title, error).line()), tell)
        audit_id = new_id()
        try:
            self.audit.append(record.begin(self.cluster, plan, audit_id, how or f"typed {typed.strip()!r}"))
        except AuditError as error:
            text = f"no change without its record: {error}"
            return self._refused(plan, ActionError(Refusal.REFUSED, text), tell, recorded=False)
        return self._recorded(plan, audit_id, tell, cancelled or threading.Event())

    def refuse(self, plan: Plan, text: str) -> Result:
        """Record that a plan was not confirmed, and say so."""
        return self._refused(plan, ActionError(Refusal.REFUSED, text), lambda _: None)

    # -- may it run at all?

    def _admit(self, plan: Plan, typed: str) -> None:
        """Raises ActionError (or FaultError while looking again) unless the plan may run now."""
        cluster = self.cluster
        if cluster.read_only:
            raise ActionError(Refusal.REFUSED, cluster.lock.why())
        if plan.cluster != cluster.config.name:
            raise ActionError(Refusal.REFUSED, f"the plan is for {plan.cluster}, this is {cluster.config.name}")
        if not plan.steps:
            raise ActionError(Refusal.REFUSED, "nothing to do")
        if plan.needs_reason and not plan.reason:
            raise ActionError(Refusal.USAGE, f"{plan.title}: say why (a reason)")
        if not plan.confirm.fits(typed):
            raise ActionError(Refusal.REFUSED, f"not confirmed: {plan.confirm.prompt}")
        for source in plan.needs:
            if not cluster.trusts(source):
                raise ActionError(Refusal.REFUSED, stale(cluster, source))
        _still_fits(plan)

    def _refused(self, plan: Plan, error: ActionError, tell: OnProgress, *, recorded: bool = True) -> Result:
        if recorded:
            with contextlib.suppress(AuditError):  # nothing was changed; the refusal itself stands
                self.audit.append(record.refused(self.cluster, plan, new_id(), str(error)))
        result = Result(plan, "refused", str(error), refusal=error.kind)
        tell(Progress("end", result.text))
        return result

    # -- from here on there is a record of the beginning

    def _recorded(self, plan: Plan, audit_id: str, tell: OnProgress, cancelled: threading.Event) -> Result:
        began = self.cluster.clock.steady()
        try:
            result = self._carried_out(plan, tell, cancelled)
        except Exception as error:  # the record must get its end whatever broke
            fault = unexpected(plan.title, error)
            result = Result(plan, "unverified", f"{fault.line()}; look at the cluster yourself")
        took_s = self.cluster.clock.steady() - began
        result = record.signed(result, audit_id, took_s)
        try:
            self.audit.append(record.end(self.cluster, result))
        except AuditError as error:
            result = record.noted(result, f"the record of its end could not be written: {error}")
        tell(Progress("end", result.text))
        with contextlib.suppress(Exception):
            self.cluster.refresh()
        return result

    def _carried_out(self, plan: Plan, tell: OnProgress, cancelled: threading.Event) -> Result:
        since = self.cluster.head_now()
        results, stop = self._steps(plan, tell, cancelled)
        sleep = self._sleep or cancelled.wait
        watch = Watch(self.cluster, plan, results, since, tell)
        findings, watched = watch.run(lambda seconds: sleep(seconds) or cancelled.is_set())
        return judged(plan, results, findings, stop=stop, cut_short=not watched and cancelled.is_set())

    def _steps(self, plan: Plan, tell: OnProgress, cancelled: threading.Event) -> tuple[tuple[StepResult, ...], str]:
        """Every step that was run, and why the others were not ("" when all were)."""
        results: list[StepResult] = []
        for number, step in enumerate(plan.steps):
            if cancelled.is_set():
                return tuple(results), "cancelled"
            if plan.tier >= NAMED and (why := self._moved(plan, step)):
                return tuple(results), why
            tell(Progress("step", step.title, number))
            result = self._carry_out(step, number, tell, cancelled)
            results.append(result)
            text = result.fault.why if result.fault else f"sent in {result.took_s:.1f}s"
            tell(Progress("done", text, number))
            more = number + 1 < len(plan.steps)
            if cancelled.is_set():
                continue  # an error after that is the end of what was cut off, not the reason for it
            if result.fault and more and (plan.tier >= NAMED or plan.in_order or result.fault.kind in HOPELESS):
                return tuple(results), f"stopped after an error: {result.fault.why}"
        return tuple(results), ""

    def _carry_out(self, step: Step, number: int, tell: OnProgress, cancelled: threading.Event) -> StepResult:
        if step.via != WAIT:
            return self._executors[step.via](self.cluster, step)
        sleep = self._sleep or cancelled.wait
        return on_wait(
            self.cluster,
            step,
            lambda text: tell(Progress("watch", text, number)),
            lambda seconds: sleep(seconds) or cancelled.is_set(),
        )

    def _moved(self, plan: Plan, step: Step) -> str:
        """Read again just before a step that cannot be taken back: a job that the plan did not show stops it."""
        if plan.targets.scope is not Scope.NODE or not step.subjects:
            return ""
        try:
            there = jobs_on(self.cluster, step.subjects)
        except FaultError as error:
            return f"stopped: {error.fault.line()}"
        shown = {job.job_id for job in plan.jobs}
        new = [str(job.job_id) for job in there if job.job_id not in shown]
        return f"stopped: job {', '.join(new[:5])} started there after the plan was shown" if new else ""


def _still_fits(plan: Plan) -> None:
    """Plan once more: what was shown and confirmed must not hurt more, or do other things, than it would now."""
    if plan.again is None:
        return
    try:
        fresh = plan.again()
    except ActionError as error:
        raise ActionError(Refusal.REFUSED, f"the cluster changed since the plan was shown: {error}") from error
    if plan.reason and fresh.reason != plan.reason:
        fresh = fresh.with_reason(plan.options.reason)
    shown = {job.job_id for job in plan.losing}
    new = [job.label for job in fresh.losing if job.job_id not in shown and not _of_an_array(job, plan)]
    if new:
        text = f"the cluster changed since the plan was shown: it would now also hit job {', '.join(new[:5])}"
        raise ActionError(Refusal.REFUSED, f"{text}; look at the new plan")
    if plan.strict and fresh.steps != plan.steps:
        raise ActionError(Refusal.REFUSED, "the cluster changed since the plan was shown; look at the new plan")


def _of_an_array(job: HurtJob, plan: Plan) -> bool:
    """One more task of an array that the plan ends as a whole: of a fast one there are new ones at every look."""
    array, is_task, _ = job.label.partition("_")
    return plan.targets.scope is Scope.JOB and bool(is_task) and array in plan.targets.names


def _quiet(on_progress: OnProgress) -> OnProgress:
    """Whoever listens must not be able to break a run half-way."""

    def tell(progress: Progress) -> None:
        with contextlib.suppress(Exception):
            on_progress(progress)

    return tell
