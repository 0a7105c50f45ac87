"""Jobs: cancel or signal, hold, release, requeue, first in line, nice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from actions import blast
from actions.draft import Draft
from actions.errors import ActionError, Refusal
from actions.job_wishes import Ended, Held, Niced, OnTop, Released, Requeued
from actions.rights import site_now
from actions.spec import COUNTED, JOB_NEEDS, NAMED, UNDONE_EASILY, Context, Options, Plan, Scope, Targets, Undo
from actions.targets import job_batches, queue_reading, records_of
from cockpit.formats.job_states import STARTED, job_state
from cockpit.formats.scontrol import version_of
from cockpit.models import Job
from cockpit.words import plural

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

NEEDS = JOB_NEEDS
_SIGNAL = re.compile(r"(?:SIG)?[A-Z][A-Z0-9+-]{1,9}|[0-9]{1,2}")
_NICE = 2_147_483_645  # Slurm's own bound
_SHOWN = 5
_ARRAY_SIGNAL_S = 4.0  # 22.05's scancel repeats itself every 5 s: "Job is in transitional state, retrying"


@dataclass(frozen=True, slots=True)
class Picked:
    """The targets that the action is for, with their records, and the others with the reason."""

    go: dict[str, tuple[Job, ...]]
    left: tuple[tuple[str, str], ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.go)

    @property
    def jobs(self) -> tuple[Job, ...]:
        return tuple({job.job_id: job for jobs in self.go.values() for job in jobs}.values())


WhyNot = Callable[[Sequence[Job]], str]
Args = Callable[[Sequence[str]], Sequence[str]]  # labels -> what follows the program's name


def _pick(cluster: Cluster, targets: Targets, why_not: WhyNot) -> Picked:
    """Sort the targets out; raises ActionError when nothing is left to do."""
    go, left = {}, []
    for label, jobs in records_of(targets.names, queue_reading(cluster)).items():
        why = why_not(jobs) if jobs else "is not in the queue (any more)"
        if why:
            left.append((label, why))
        else:
            go[label] = jobs
    if not go:
        shown = "; ".join(f"{label} {why}" for label, why in left[:_SHOWN])
        more = f"; and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        raise ActionError(Refusal.REFUSED, f"nothing to do: {shown}{more}")
    return Picked(go, tuple(left))


def _send(draft: Draft, picked: Picked, title: str, program: str, args: Args) -> None:
    """The steps: one's own jobs as oneself, others' as an operator or root, in chunks."""
    for as_root in (False, True):
        labels = [label for label, jobs in picked.go.items() if _as_root(draft, jobs) is as_root]
        for some in job_batches(labels):
            draft.step(f"{title} {_few(some)}", program, args(some), some, as_root=as_root)


def _as_root(draft: Draft, jobs: Sequence[Job]) -> bool:
    return any(draft.rights.as_root_for_job(job.user) for job in jobs)


def _few(labels: Sequence[str]) -> str:
    shown = ",".join(labels[:_SHOWN])
    return shown if len(labels) <= _SHOWN else f"{shown} and {len(labels) - _SHOWN} more"


def _listed(*words: str) -> Args:
    """scontrol takes a comma list of jobs behind its verb."""
    return lambda labels: [*words, ",".join(labels)]


def _any(_: Sequence[Job]) -> str:
    return ""


def cancel(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """End jobs, or send their processes a signal."""
    if options.signal:
        return _signal(cluster, targets, options)
    draft = Draft(cluster, "cancel", targets, options)
    picked = _pick(cluster, targets, lambda jobs: "is ending already" if all(j.state == "CG" for j in jobs) else "")
    _send(draft, picked, "cancel", "scancel", list)
    every = {job.job_id for job in queue_reading(cluster).jobs}
    all_of_them = len(every) > 1 and every == {job.job_id for job in picked.jobs}
    running = [job for job in picked.jobs if job.state in STARTED]
    return draft.plan(
        f"cancel {_few(picked.labels)}",
        tier=NAMED if all_of_them else COUNTED,
        count=len(picked.labels),
        needs=NEEDS,
        jobs=blast.touched(cluster, picked.jobs, "ended", loses=True),
        effects=("these are all jobs of the cluster",) if all_of_them else (),
        irreversible=("the jobs end for good; what they had not written is lost",)
        if running
        else ("the jobs leave the queue for good",),
        left_out=picked.left,
        wishes=(Ended(picked.labels),),
    )


def _signal(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Slurm delivers signals to running parts only: each is named by its own id."""
    name = options.signal.upper()
    if not _SIGNAL.fullmatch(name):
        raise ActionError(Refusal.USAGE, f"{options.signal!r} is no signal: write USR1, TERM or a number")
    draft = Draft(cluster, "cancel", targets, options)
    picked = _pick(cluster, targets, lambda jobs: "" if any(_runs(job) for job in jobs) else f"is {_words(jobs)}")
    where = ["--batch"] if options.batch else ["--full"] if options.full else []
    running: dict[str, tuple[Job, ...]] = {str(job.job_id): (job,) for job in picked.jobs if _runs(job)}
    parts = Picked(running, picked.left)
    if version_of(site_now(cluster).version) < (23, 2, 0) and any(job.array_job_id is not None for job in parts.jobs):
        draft.patience_s = _ARRAY_SIGNAL_S
        draft.warnings.append(
            "the tasks of an array get the signal, but this Slurm's scancel does not end by itself then: it is ended "
            f"after {_ARRAY_SIGNAL_S:g} s, before it sends it again"
        )
    _send(draft, parts, f"send {name} to", "scancel", lambda ids: [f"--signal={name}", *where, *ids])
    to = "the batch script" if options.batch else "the batch script and all steps" if options.full else "all steps"
    return draft.plan(
        f"send {name} to {_few(picked.labels)}",
        tier=COUNTED,
        count=len(picked.labels),
        needs=NEEDS,
        jobs=blast.touched(cluster, [job for job in picked.jobs if _runs(job)], f"gets {name}", loses=False),
        effects=(f"it goes to {to}; what the job does then is its own affair and cannot be watched from here",),
        left_out=picked.left,
    )


def _runs(job: Job) -> bool:
    return job.state == "R"


def _words(jobs: Iterable[Job]) -> str:
    return ", ".join(dict.fromkeys(job_state(job.state).word for job in jobs))


def _waiting(jobs: Iterable[Job]) -> bool:
    return any(job_state(job.state).kind == "waiting" for job in jobs)


def hold(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Keep waiting jobs from starting."""
    draft = Draft(cluster, "hold", targets, options)
    picked = _pick(cluster, targets, _not_to_hold)
    verb = "uhold" if options.user_hold else "hold"
    _send(draft, picked, "hold", "scontrol", _listed(verb))
    others = [job for job in picked.jobs if job.user != draft.rights.user]
    may = (
        "their owners may release them" if options.user_hold else "only an operator can release them, not their owners"
    )
    return draft.plan(
        f"hold {_few(picked.labels)}",
        tier=UNDONE_EASILY,
        count=len(picked.labels),
        needs=NEEDS,
        jobs=blast.touched(cluster, picked.jobs, "waits until it is released", loses=False),
        effects=(f"{plural(len(others), 'job')} of other users: {may}",) if others else (),
        left_out=picked.left,
        wishes=(Held(picked.labels),),
        undo=(Undo("release", picked.labels),),
    )


def hold_why(ctx: Context) -> str | None:
    """Why none of what is marked can be held."""
    return _none_of(ctx, _not_to_hold)


def release_why(ctx: Context) -> str | None:
    """Why none of what is marked can be released."""
    return _none_of(ctx, _not_to_release)


def _none_of(ctx: Context, why_not: WhyNot) -> str | None:
    queue = ctx.cluster.view.queue
    if ctx.targets is None or ctx.targets.scope is not Scope.JOB or queue is None:
        return None
    whys = [why_not(jobs) for jobs in records_of(ctx.targets.names, queue).values() if jobs]
    return whys[0] if whys and all(whys) else None


def _not_to_hold(jobs: Sequence[Job]) -> str:
    if not _waiting(jobs):
        return f"is {_words(jobs)}: a hold does not stop it"
    held = all(job.reason.startswith("JobHeld") for job in jobs if job_state(job.state).kind == "waiting")
    return "is held already" if held else ""


def release(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Let held jobs start."""
    draft = Draft(cluster, "release", targets, options)
    picked = _pick(cluster, targets, _not_to_release)
    _send(draft, picked, "release", "scontrol", _listed("release"))
    failed = [job.label for job in picked.jobs if "launch failed" in job.reason]
    warning = f"{_few(failed)} failed to launch: look at its node first, or it will be held again"
    return draft.plan(
        f"release {_few(picked.labels)}",
        tier=UNDONE_EASILY,
        count=len(picked.labels),
        needs=NEEDS,
        jobs=blast.touched(cluster, picked.jobs, "may start", loses=False),
        effects=tuple(f"{job.label} was held: {job.reason}" for job in picked.jobs[:_SHOWN] if _held(job)),
        warnings=(warning,) if failed else (),
        left_out=picked.left,
        wishes=(Released(picked.labels),),
        undo=(Undo("hold", picked.labels),),
    )


def _not_to_release(jobs: Sequence[Job]) -> str:
    return "" if any(_held(job) for job in jobs) else f"is {_words(jobs)}, not held"


def _held(job: Job) -> bool:
    return "JobHeld" in job.reason or "held" in job.reason


def requeue(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Stop running jobs and put them back into the queue."""
    return _requeue(Draft(cluster, "requeue", targets, options), held=False)


def requeue_hold(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Stop running jobs and put them back into the queue, held."""
    return _requeue(Draft(cluster, "requeue-hold", targets, options), held=True)


def _requeue(draft: Draft, *, held: bool) -> Plan:
    picked = _pick(draft.cluster, draft.targets, _not_to_requeue)
    _send(draft, picked, "requeue", "scontrol", _listed("requeuehold" if held else "requeue"))
    before = tuple((job.job_id, job.restarts or 0) for job in picked.jobs if job_state(job.state).kind == "active")
    fate = "stopped, waits again, held" if held else "stopped, waits again (for two minutes at least)"
    running = [job for job in picked.jobs if job.state in STARTED or job.state == "CF"]
    return draft.plan(
        f"requeue {_few(picked.labels)}{' and hold' if held else ''}",
        tier=COUNTED,
        count=len(picked.labels),
        needs=NEEDS,
        jobs=blast.touched(draft.cluster, running, fate, loses=True),
        irreversible=(
            "what the jobs did since their last checkpoint; they begin again from their script's first line",
        ),
        left_out=picked.left,
        wishes=(Requeued(picked.labels, before, held),),
        undo=(Undo("release", picked.labels),) if held else (),
    )


def _not_to_requeue(jobs: Sequence[Job]) -> str:
    active = [job for job in jobs if job_state(job.state).kind == "active" and job.state != "CG"]
    if not active:
        return f"is {_words(jobs)}: there is nothing to stop"
    if any(blast.interactive(job) for job in active):
        return "is interactive (srun or salloc): Slurm requeues batch jobs only"
    return "may not be requeued (submitted with --no-requeue)" if any(j.requeueable is False for j in active) else ""


def top(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Put jobs before the others of their owner."""
    draft = Draft(cluster, "top", targets, options)
    picked = _pick(cluster, targets, lambda jobs: "" if _waiting(jobs) else f"is {_words(jobs)}: it waits no longer")
    _send(draft, picked, "put first:", "scontrol", _listed("top"))
    users = tuple(dict.fromkeys(job.user for job in picked.jobs))
    return draft.plan(
        f"put {_few(picked.labels)} first",
        tier=UNDONE_EASILY,
        count=len(picked.labels),
        needs=NEEDS,
        jobs=blast.touched(cluster, picked.jobs, "comes before its owner's other jobs", loses=False),
        effects=("other waiting jobs of the same owner get lower priority in return, other owners' are not touched",),
        left_out=picked.left,
        wishes=(OnTop(picked.labels, users),),
    )


def nice(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Lower jobs' priority by a number, or raise it by a negative one."""
    value = options.count
    if value is None or not -_NICE <= value <= _NICE:
        raise ActionError(Refusal.USAGE, f"say the nice value: a whole number from -{_NICE} to {_NICE}")
    draft = Draft(cluster, "nice", targets, options)
    picked = _pick(cluster, targets, lambda jobs: "" if _waiting(jobs) else f"is {_words(jobs)}: it waits no longer")
    _send(draft, picked, f"nice {value}", "scontrol", lambda ids: ["update", f"jobid={','.join(ids)}", f"nice={value}"])
    rights = ("raising a job's priority needs an operator, also for one's own",) if value < 0 else ()
    return draft.plan(
        f"nice {value} for {_few(picked.labels)}",
        tier=UNDONE_EASILY,
        count=len(picked.labels),
        needs=NEEDS,
        jobs=blast.touched(cluster, picked.jobs, f"gets nice {value}", loses=False),
        effects=("a higher nice value means a lower priority",),
        warnings=rights if not draft.rights.operator else (),
        left_out=picked.left,
        wishes=(Niced(picked.labels, value),),
    )
