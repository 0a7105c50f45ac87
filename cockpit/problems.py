"""What is wrong, worst first, each with its evidence and the next step. Pure: a store's state in, problems out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from cockpit.aws_models import AwsReading
from cockpit.formats.hostlist import brief, fold
from cockpit.formats.reasons import Explanation, explain_reason
from cockpit.joins import reason_applies
from cockpit.models import Fault, FaultKind, Freshness, Health, Job, Node, NodesReading, Problem, QueueReading
from cockpit.sources.aws import AWS
from cockpit.sources.slurm import NODES, QUEUE
from cockpit.store import SourceState, Store

_GRAVE = (FaultKind.CONTROLLER_DOWN, FaultKind.CONTROLLER_HUNG, FaultKind.HOST_KEY, FaultKind.AUTH)
_ADVISORY = ("aws", "events", "storage")  # without it everything else still works
_TREMBLES_S = 5.0
_RANK = {health: rank for rank, health in enumerate(Health)}


def of_slurm(store: Store, head_ahead_s: float = 0.0) -> tuple[Problem, ...]:
    """What Slurm's answers tell: nodes, queues and jobs that need somebody; worst first.

    Times are on our own clock; `head_ahead_s` is how much the head's is ahead of it.
    """
    nodes, queue = store.state(NODES).data, store.state(QUEUE).data
    closed = _queue_problems(nodes, queue, store.state(AWS).data)
    return ranked([*_node_problems(nodes, head_ahead_s), *closed, *_job_problems(queue)])


def of_sources(store: Store) -> tuple[Problem, ...]:
    """Sources that fail just now, those with the same cause as one; all the rest rests on them."""
    alike: dict[tuple[FaultKind, str, str], list[SourceState[object]]] = defaultdict(list)
    for state in store.states():
        if state.error is not None:
            alike[state.error.kind, state.error.why, state.error.next_step].append(state)
    return ranked(_source_problem(states, store.clock.steady()) for states in alike.values())


def of_acknowledged(fault: Fault) -> tuple[Problem, ...]:
    """The list of acknowledged problems that cannot be read or written."""
    title = f"{fault.what} fails: {fault.why}"
    return (Problem("acknowledged:file", Health.WARN, "acknowledged problems", title, fault.next_step),)


def ranked(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Worst first; among equals the one that lasts longest."""
    return tuple(sorted(problems, key=lambda p: (-_RANK[p.health], p.since or float("inf"), p.key)))


class Settled:
    """Holds a problem for a while after it is gone, so that one that comes and goes does not flap."""

    def __init__(self, hold_s: float = 20.0) -> None:
        self._hold_s = hold_s
        self._seen: dict[str, tuple[float, Problem]] = {}

    def held(self, problems: Iterable[Problem], steady: float) -> tuple[Problem, ...]:
        """The problems there are, and those that were there until a moment ago, but none that contradicts one."""
        there = {problem.key: problem for problem in problems}
        for gone in [rival for key in there for rival in _rivals(key) if rival not in there]:
            self._seen.pop(gone, None)
        self._seen.update({key: (steady, self._dated(problem)) for key, problem in there.items()})
        self._seen = {key: seen for key, seen in self._seen.items() if steady - seen[0] <= self._hold_s}
        return tuple(problem for _, problem in self._seen.values())

    def _dated(self, problem: Problem) -> Problem:
        """The problem with the time it had before: one of another clock trembles, and the order must not."""
        _, before = self._seen.get(problem.key, (0.0, None))
        if before is None or before.since is None or problem.since is None:
            return problem
        return replace(problem, since=before.since) if abs(problem.since - before.since) < _TREMBLES_S else problem


class Ages:
    """Remembers since when each problem is there, for those that bring no time of their own.

    What is there at the first look began at a time nobody knows: it gets none.
    """

    def __init__(self, first_looks_s: float = 15.0) -> None:
        self._first_looks_s = first_looks_s
        self._began: float | None = None
        self._first_seen: dict[str, float | None] = {}

    def dated(self, problems: Iterable[Problem], now: float) -> tuple[Problem, ...]:
        """The same problems, each with `since` where it is known; problems that are gone are forgotten."""
        self._began = now if self._began is None else self._began
        new = None if now - self._began < self._first_looks_s else now
        problems = tuple(problems)
        self._first_seen = {p.key: self._first_seen.get(p.key, new) for p in problems}
        return tuple(p if p.since else replace(p, since=self._first_seen[p.key]) for p in problems)


# What cannot be true of one thing at the same time.
_RIVALS = (("job:idle:", "job:low:"), ("mount:hung:", "mount:error:"))


def _rivals(key: str) -> Iterator[str]:
    """The keys of problems that this one rules out."""
    for pair in _RIVALS:
        for one, other in (pair, pair[::-1]):
            if key.startswith(one):
                yield other + key[len(one) :]


def _source_problem(states: list[SourceState[object]], steady: float) -> Problem:
    error = states[0].error
    if error is None:
        raise ValueError("a source without an error is no problem")
    bad = (Freshness.LOST, Freshness.NEVER)
    grave = error.kind in _GRAVE or any(state.freshness(steady) in bad for state in states)
    grave = grave and any(state.name not in _ADVISORY for state in states)
    names = ", ".join(state.name for state in states)
    return Problem(
        key=f"source:{names}",
        health=Health.CRITICAL if grave else Health.WARN,
        subject=names,
        title=error.why,
        next_step=error.next_step,
        evidence=f"{error.what}; {_age_words(states[0], steady)}",
        since=min((since for state in states if (since := _since(state))), default=None),
        count=len(states),
    )


def _since(state: SourceState[object]) -> float | None:
    """The last good answer is when it was well for the last time, not when its failure was noticed."""
    return state.good.taken_at if state.good else state.failing_since


def _age_words(state: SourceState[object], steady: float) -> str:
    age_s = state.age_s(steady)
    return "nothing was ever read" if age_s is None else f"last good answer {age_s:.0f} s ago"


def _node_problems(reading: NodesReading | None, head_ahead_s: float) -> Iterator[Problem]:
    """Nodes that deviate, those with the same trouble and reason as one problem."""
    alike: dict[tuple[Health, str, str], list[Node]] = defaultdict(list)
    for node in reading.nodes if reading else ():
        if node.health in (Health.WARN, Health.CRITICAL, Health.DRAINED):
            alike[node.health, node.word, node.reason if reason_applies(node) else ""].append(node)
    for (health, word, reason), nodes in alike.items():
        stamps = [node.reason_at - head_ahead_s for node in nodes if reason and node.reason_at]
        yield Problem(
            key=f"node:{word}:{reason}",
            health=health,
            subject=brief([node.name for node in nodes]),
            title=f"{word}: {reason}" if reason else word,
            next_step=f"enter on {nodes[0].name}: why it is in this state and what to do",
            evidence=_evidence(nodes, reason),
            since=min(stamps) if stamps else None,
            count=len(nodes),
            about=tuple(("node", node.name) for node in nodes),
        )


def _evidence(nodes: list[Node], reason: str) -> str:
    by = f", set by {nodes[0].reason_by}" if reason and nodes[0].reason_by else ""
    return f"{fold(node.name for node in nodes)}{by}"


def _queue_problems(
    reading: NodesReading | None, queue: QueueReading | None, aws: AwsReading | None
) -> Iterator[Problem]:
    """Queues that are closed while jobs wait in them; inactive ones of a fleet that was stopped are as wished."""
    fleet = aws.fleet.data if aws is not None else None
    stopped = fleet is not None and fleet.status.startswith("STOP")
    waiting = Counter(name for job in queue.jobs if job.state == "PD" for name in job.partitions) if queue else {}
    for partition in reading.partitions if reading else ():
        if partition.available == "inactive" and stopped:
            continue
        if partition.available != "up" and (jobs := waiting.get(partition.name)):
            yield Problem(
                key=f"queue:{partition.name}:{partition.available}",
                health=Health.WARN,
                subject=f"queue {partition.name}",
                title=f"is {partition.available} while {jobs} {'entry waits' if jobs == 1 else 'entries wait'} in it",
                next_step=f"scontrol show partition {partition.name}; an admin may have closed it on purpose",
                about=(("queue", partition.name),),
            )


def _job_problems(queue: QueueReading | None) -> Iterator[Problem]:
    """Jobs that wait for ever, those with the same reason as one problem."""
    alike: dict[str, list[tuple[Explanation, Job]]] = defaultdict(list)
    for job in queue.jobs if queue else ():
        if job.state == "PD" and job.reason:
            for told in explain_reason(job.reason):
                if told.stuck:
                    alike[told.code].append((told, job))
    for code, jobs in alike.items():
        told, labels = jobs[0][0], [job.label for _, job in jobs]
        more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
        yield Problem(
            key=f"job:{code}",
            health=Health.WARN,
            subject=f"{'jobs' if len(labels) > 1 else 'job'} {', '.join(labels[:3])}{more}",
            title=f"waits for ever: {told.title} ({code})",
            next_step=told.next_step,
            evidence=", ".join(labels[:50]),
            count=len(labels),
            about=tuple(dict.fromkeys(("job", job.key) for _, job in jobs)),
        )
