"""Checks through Slurm: one srun takes idle nodes whole for a look that SSH would bring to each of them alone.

For clusters of more nodes than one head should carry connections to, and where nodes take no logins. It loads nothing,
but it takes nodes from the queue for a moment: a change like any other, with a plan and a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from actions.checks import idle_of
from actions.draft import Draft
from actions.nodes import NEEDS
from actions.outcome import Result, StepResult
from actions.spec import UNDONE_EASILY, Action, Options, Plan, Scope, Targets
from actions.targets import nodes_by_name
from cockpit.checks.by_job import JobLook, srun_args
from cockpit.checks.judge import drift
from cockpit.checks.models import CheckRun, NodeResult
from cockpit.checks.runner import CheckRunner, Target
from cockpit.formats.look import NodeLook
from cockpit.kept_lines import run_id
from cockpit.models import Fault, FaultKind, Node
from cockpit.probe.look import look_argv
from cockpit.words import plural, span

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

LOOK_STEPS = {"efa": "look-efa", "health": "look-health"}  # Step.via
MOST_NODES = 512  # of one srun, whose answers are read as a whole


def job_check(kind: str, queue: str = "") -> Action:
    """The look of `cockpit efa` or `cockpit check` at idle nodes, as a Slurm job. `run_of` tells what came of it."""
    return Action(
        f"{kind}-check-job",
        "",
        f"{'EFA' if kind == 'efa' else 'health'} check through Slurm",
        "The same look as over SSH, at idle nodes, by one job.",
        Scope.NODE,
        UNDONE_EASILY,
        lambda cluster, targets, options: _plan(cluster, targets, options, kind, queue),
        NEEDS,
    )


def looker(cluster: Cluster, kind: str) -> CheckRunner:
    """What is asked and how it is judged; it opens no connection."""
    return CheckRunner(kind, cluster.node_host, settings=cluster.checks, clock=cluster.clock)


def _plan(cluster: Cluster, targets: Targets, options: Options, kind: str, queue: str) -> Plan:
    free, left = idle_of(cluster, targets, "a job would have to wait for nodes that are not idle")
    nodes = nodes_by_name(cluster)
    asking = looker(cluster, kind).asking()
    draft = Draft(cluster, f"{kind}-check-job", targets, options)
    looks = [JobLook(*group, asking.deadline_s) for group in _groups([nodes[name] for name in free], queue)]
    for look in looks:
        draft.patience_s = look.deadline_s
        draft.step(f"look at {plural(len(look.nodes), 'node')}", "srun", srun_args(look, look_argv(asking)), look.nodes,
                   as_root=False)  # fmt: skip
    draft.steps = [replace(step, via=LOOK_STEPS[kind]) for step in draft.steps]
    longest_min = max(look.limit_min for look in looks)
    return draft.plan(
        f"{kind} check of {targets.folded} through Slurm",
        tier=UNDONE_EASILY,
        count=len(free),
        needs=NEEDS,
        effects=(
            f"takes {plural(len(free), 'idle node')} from the queue for the time of a look, "
            f"at most {span(60 * longest_min)}; writes nothing there",
        ),
        left_out=left,
    )


def _groups(nodes: Sequence[Node], queue: str) -> Iterable[tuple[tuple[str, ...], str, int]]:
    """Nodes that one srun can take: of one queue, with equally many GPUs; the largest group first."""
    left = list(nodes)
    while left:
        ways = Counter((name, node.gpus_total or 0) for node in left for name in _queues(node, queue))
        partition, gpus = max(ways, key=lambda way: (ways[way], way))
        names = [node.name for node in left if partition in _queues(node, queue) and (node.gpus_total or 0) == gpus]
        for at in range(0, len(names), MOST_NODES):
            yield tuple(names[at : at + MOST_NODES]), partition, gpus
        left = [node for node in left if node.name not in set(names)]


def _queues(node: Node, queue: str) -> tuple[str, ...]:
    return (queue,) if queue else node.partitions or ("",)


def run_of(cluster: Cluster, kind: str, targets: Iterable[Target], result: Result) -> CheckRun | None:
    """The looks judged, and why some nodes gave none; None when no step was a look that ran."""
    steps = [step for step in result.steps if isinstance(step.found, Mapping)]
    if not steps:
        return None
    runner, now = looker(cluster, kind), cluster.clock.now()
    known = {target.node: target for target in targets}
    nodes = [_node(runner, known[name], step, now) for step in steps for name in step.step.subjects if name in known]
    took_s = sum(step.took_s for step in steps)
    left = tuple(result.plan.left_out)
    return CheckRun(run_id(now), kind, now, took_s, tuple(nodes), drift=drift(nodes, kind), left_out=left)


def _node(runner: CheckRunner, target: Target, step: StepResult, now: float) -> NodeResult:
    look = step.found[target.node] if isinstance(step.found, Mapping) and target.node in step.found else None
    if isinstance(look, NodeLook):
        return runner.judged(target, look, now, step.took_s)
    why = step.fault.why if step.fault is not None else "it did not answer"
    fault = Fault(FaultKind.TIMEOUT, f"node {target.node}", why, "see it over SSH: the same command without --job")
    return NodeResult(target.node, now, step.took_s, fault=fault, queue=target.known.queue)
