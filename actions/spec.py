"""What an action is, as data: targets, steps, plan. Nothing here runs anything; `actions.runner` alone does.

A plan is made off the UI thread (it may ask the head), shown, confirmed, and then handed to the runner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from actions.errors import ActionError, Refusal
from actions.reasons import REASON_HERE, for_scontrol, sent
from cockpit.formats.hostlist import fold
from cockpit.sources.base import SourceKey
from cockpit.sources.slurm import NODES, QUEUE
from cockpit.words import plural, span

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

NODE_NEEDS: tuple[SourceKey[Any], ...] = (NODES, QUEUE)  # what must be live for changes of nodes and queues
JOB_NEEDS: tuple[SourceKey[Any], ...] = (QUEUE,)
NO_AWS = "the config names no region: AWS cannot be asked"
READ, UNDONE_EASILY, COUNTED, NAMED = range(4)  # the tiers


class Scope(str, Enum):
    """What an action is done to."""

    NODE = "node"
    JOB = "job"
    QUEUE = "queue"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Targets:
    """What an action is done to, frozen by key when the key is pressed: node names, queue names or job labels."""

    scope: Scope
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def folded(self) -> str:
        """The names as a person and Slurm write them: a hostlist, or a comma list."""
        return fold(self.names) if self.scope is Scope.NODE else ",".join(self.names)

    def counted(self, count: int | None = None) -> str:
        """`1 node`, `3 jobs`; of the targets, or of so many."""
        return plural(len(self.names) if count is None else count, self.scope.value)


@dataclass(frozen=True, slots=True)
class Options:
    """What the operator may choose beside the targets; an action reads what its `options` names."""

    reason: str = ""
    now: bool = False  # replace: do not wait for jobs
    keep: bool = False  # scale: pin what is started
    count: int | None = None  # scale: nodes to be up; nice: the value
    state: str = ""  # queue: UP, DOWN, DRAIN or INACTIVE
    signal: str = ""  # cancel: send this signal instead
    batch: bool = False  # signal: to the batch script only
    full: bool = False  # signal: to the batch script and all steps
    user_hold: bool = False  # hold: the owner may release it
    verbatim: bool = False  # the reason as it is, without who; for undo
    after_jobs: bool = False  # stop: once the running jobs have ended
    head: bool = False  # stop: the head node as well
    at: str = ""  # schedule: when to stop, such as `Fri 19:00`
    start_at: str = ""  # schedule: when to start again
    every: str = ""  # schedule: day, weekday or week; "" once
    nodes: str = ""  # drain-requeue: which of the job's nodes to drain, a hostlist
    capture: bool = False  # keep the evidence of the jobs that it hits in a file first
    groups: str = ""  # start: HyperPod's groups and their sizes, NAME=COUNT,NAME=COUNT


@dataclass(frozen=True, slots=True)
class Option:
    """One thing a dialog asks or the command line takes; `name` is a field of Options."""

    name: str
    kind: str  # flag, number, word
    title: str


@dataclass(frozen=True, slots=True)
class Step:
    """One command. `argv` is exactly what runs on the head; `subjects` are the targets that it changes."""

    title: str
    argv: tuple[str, ...]
    subjects: tuple[str, ...] = ()
    writes: bool = True
    via: str = "head"  # which executor of the runner takes it
    patience_s: float | None = None  # instead of the usual deadline, for what is known to take longer, or not to end


@dataclass(frozen=True, slots=True)
class HurtJob:
    """A job that an action touches. `fate` is what becomes of it; `loses`: its work since the start is lost."""

    job_id: int
    label: str
    user: str
    name: str
    state: str
    hostlist: str
    gpus: int | None  # None: Slurm does not tell
    elapsed_s: float | None
    fate: str
    loses: bool
    left_s: float | None = None  # until its time limit, where a plan tells that
    silent_s: float | None = None  # since its output last grew, where a plan tells that

    @property
    def gpu_hours(self) -> float | None:
        """GPUs times hours so far; None where one of them is not known."""
        if self.gpus is None or self.elapsed_s is None:
            return None
        return self.gpus * self.elapsed_s / 3600


class Look(str, Enum):
    """How one target stands, seen from what was wished for."""

    DONE = "done"  # really so, as Slurm tells it
    UNDERWAY = "underway"  # accepted; it comes true when something ends by itself, such as a job
    WAIT = "wait"  # not yet
    FAILED = "failed"  # it will not come true by waiting


@dataclass(frozen=True, slots=True)
class Finding:
    """What was seen of one target, in words."""

    look: Look
    text: str


class Wish(Protocol):
    """A state of the cluster that a plan wants, and how to see whether it is there."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def deadline_s(self) -> float:
        """How long it may take until it is there."""
        ...

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        """One narrow read, `since` (head's clock) being when the steps began; raises FaultError."""
        ...


@dataclass(frozen=True, slots=True)
class Undo:
    """What would take a change back: another action on some of the targets."""

    action_id: str
    names: tuple[str, ...]
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class Offer:
    """Another action that may serve better, and why."""

    action_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The exact steps and whom they touch. What is shown, what --dry-run prints and what runs is this object."""

    action_id: str
    title: str
    cluster: str
    targets: Targets
    options: Options
    steps: tuple[Step, ...]
    tier: int
    production: bool = False
    count: int = 0  # what has to be typed at tier 2: how many targets it changes
    jobs: tuple[HurtJob, ...] = ()
    effects: tuple[str, ...] = ()
    ahead: tuple[str, ...] = ()  # what AWS would refuse of a launch: `fail`, `warn`, ... in front, worst first
    irreversible: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()  # (target, why it is not touched)
    for_good: tuple[str, ...] = ()  # the edit that would make it last, which the cockpit does not make
    offers: tuple[Offer, ...] = ()
    needs_reason: bool = False
    reason: str = ""
    wishes: tuple[Wish, ...] = ()
    undo: tuple[Undo, ...] = ()
    needs: tuple[SourceKey[Any], ...] = ()  # sources that must be live
    in_order: bool = False  # each step rests on the one before: the first error ends it
    strict: bool = False  # may only run while planning again gives the very same steps
    again: Callable[[], Plan] | None = field(default=None, compare=False, repr=False)  # plan anew, as things are then

    @property
    def losing(self) -> tuple[HurtJob, ...]:
        """The jobs whose work is lost."""
        return tuple(job for job in self.jobs if job.loses)

    @property
    def gpu_hours_lost(self) -> float | None:
        """The GPU-hours of `losing` that are known; None when they lose some and nothing is known."""
        known = [job.gpu_hours for job in self.losing if job.gpu_hours is not None]
        return sum(known) if known or not self.losing else None

    @property
    def confirm(self) -> Confirm:
        """What has to be typed before it runs."""
        return confirm_for(self.tier, self.count, self.cluster)

    def with_reason(self, reason: str) -> Plan:
        """The same plan with the operator's words in its steps; raises ActionError for words that cannot be sent."""
        told = sent(reason, verbatim=self.options.verbatim)
        steps = tuple(replace(step, argv=_filled(step.argv, told)) for step in self.steps)
        options = replace(self.options, reason=reason)
        return replace(self, steps=steps, reason=told, options=options)


def _filled(argv: Sequence[str], reason: str) -> tuple[str, ...]:
    marks = {f"reason={REASON_HERE}": f"reason={for_scontrol(reason)}"}
    return tuple(marks.get(word, word) for word in argv)


@dataclass(frozen=True, slots=True)
class Confirm:
    """How a plan is confirmed: `kind` is none, yes, count or cluster; `word` is what must be typed."""

    kind: str
    word: str
    prompt: str

    def fits(self, typed: str) -> bool:
        """True when what was typed confirms; case counts only for a cluster's name."""
        typed = typed.strip()
        if self.kind == "none":
            return True
        return typed.casefold() in ("y", "yes") if self.kind == "yes" else typed == self.word


def confirm_for(tier: int, count: int, cluster: str) -> Confirm:
    """What a tier asks for."""
    if tier >= NAMED:
        return Confirm("cluster", cluster, f"type the cluster's name, {cluster}, to go on")
    if tier == COUNTED:
        return Confirm("count", str(count), f"type how many it changes, {count}, to go on")
    if tier == UNDONE_EASILY:
        return Confirm("yes", "y", "y to go on, anything else leaves it")
    return Confirm("none", "", "")


@dataclass(frozen=True, slots=True)
class Context:
    """What a screen knows when it asks whether an action is possible: never waits, never reads."""

    cluster: Cluster
    targets: Targets | None = None


def _always(_: Context) -> str | None:
    return None


Build = Callable[["Cluster", Targets, Options], Plan]


@dataclass(frozen=True, slots=True)
class Action:
    """One line of the table of actions; footer, help, palette, command line and docs/KEYS.md derive from it.

    `key` is "" for what only the palette and the command line offer. `tier` is the least; a plan's may be higher.
    """

    id: str
    key: str
    title: str
    help: str
    scope: Scope
    tier: int
    build: Build
    needs: tuple[SourceKey[Any], ...]
    needs_reason: bool = False
    options: tuple[Option, ...] = ()
    why_not: Callable[[Context], str | None] = _always

    def disabled_reason(self, ctx: Context) -> str | None:
        """Why it cannot be used just now, in a few words; None when it can. Quick enough for every repaint."""
        cluster = ctx.cluster
        if cluster.read_only and self.tier > READ:
            return cluster.lock.why()
        for source in self.needs:
            if not cluster.trusts(source):
                return stale(cluster, source)
        if ctx.targets is not None and ctx.targets.scope is not self.scope:
            return f"it is for a {self.scope.value}"
        return self.why_not(ctx)

    def plan(self, cluster: Cluster, targets: Targets, options: Options | None = None) -> Plan:
        """The plan for these targets; waits for the head, so never call it on the UI thread.

        Raises ActionError (unknown targets, nothing to do) and FaultError (the head or Slurm does not answer).
        """
        if not targets.names:
            raise ActionError(Refusal.USAGE, f"{self.title}: name at least one {self.scope.value}")
        chosen = options or Options()
        plan = self.build(cluster, targets, chosen)
        if chosen.capture:
            from actions.capture import with_capture

            plan = with_capture(plan)
        if chosen.reason:
            plan = plan.with_reason(chosen.reason)
        return replace(plan, again=lambda: self.plan(cluster, targets, chosen))


def stale(cluster: Cluster, source: SourceKey[Any]) -> str:
    """Why an action that rests on this source is refused."""
    age_s = cluster.store.state(source).age_s(cluster.clock.steady())
    if source.name == "aws":
        if not cluster.aws.wanted:
            return NO_AWS
        return "AWS could not be read so far" if age_s is None else f"AWS was last read {span(age_s)} ago: too old"
    if age_s is None:
        return f"the {source.name} could not be read so far"
    return f"the {source.name} were last read {span(age_s)} ago: too old to act on"
