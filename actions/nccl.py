"""NCCL tests as plans: one test as a batch job, and the job that holds the nodes of a sweep.

Idle nodes only, so that nobody is hurt; a drained node is tested from inside its quarantine (`request.reservation`).
The dialog or command line makes a request, asks `run_action` or `sweep_action` for the action, and plans it as any
other. What happens afterwards (following the output, driving the rounds) is not a change and needs no runner.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from actions.draft import Draft
from actions.errors import ActionError, Refusal
from actions.job_wishes import Ended
from actions.nodes import NEEDS
from actions.outcome import Result
from actions.spec import COUNTED, UNDONE_EASILY, Action, Finding, Look, Options, Plan, Scope, Targets
from actions.targets import known_nodes, nodes_by_name
from cockpit.cost_report import hour_of, usd
from cockpit.formats.job_now import JobNow, job_now_args, named_args, parse_jobs_now
from cockpit.formats.job_states import STARTED, job_state
from cockpit.models import FaultError, FaultKind
from cockpit.nccl.rounds import HOLD_S, SWEEP_PREFIX, allocation_of, hold_argv, sweep_request
from cockpit.nccl.run import TYPICAL_S, NcclRequest, idle_nodes, job_id_of, mistakes, remarks, submit_argv
from cockpit.nccl.sweep import MOST_NODES, SweepOptions, estimate
from cockpit.words import plural, span

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

START_S = 30.0  # idle nodes: the job begins with the next scheduling


def run_action(request: NcclRequest) -> Action:
    """One test on the nodes that are targeted; the request says all but the nodes."""
    return Action(
        "nccl-run",
        "N",
        "NCCL test",
        "Measure the collective bandwidth of idle nodes.",
        Scope.NODE,
        UNDONE_EASILY,
        lambda cluster, targets, options: _run_plan(cluster, targets, options, request),
        NEEDS,
    )


def sweep_action(request: NcclRequest, options: SweepOptions | None = None, *, name: str = "") -> Action:
    """The job that holds the nodes of a sweep; `name` finds it again (default: a new one)."""
    chosen, held = options or SweepOptions(), name or SWEEP_PREFIX + secrets.token_hex(4)
    return Action(
        "nccl-sweep",
        "",
        "NCCL sweep",
        "Find the node that is slow or fails among idle ones.",
        Scope.NODE,
        COUNTED,
        lambda cluster, targets, _: _sweep_plan(cluster, targets, _, request, chosen, held),
        NEEDS,
    )


def _run_plan(cluster: Cluster, targets: Targets, options: Options, request: NcclRequest) -> Plan:
    test = for_nodes(cluster, targets, request)
    busy = dict(_left_out(cluster, targets, test))
    if busy:
        told = ", ".join(f"{name} {why}" for name, why in list(busy.items())[:5])
        raise ActionError(Refusal.REFUSED, f"a test disturbs nobody, so it takes idle nodes only: {told}")
    _check(test)
    draft = Draft(cluster, "nccl-run", targets, options)
    draft.step("submit the test", "sbatch", submit_argv(test)[1:], test.nodes, as_root=False)
    return draft.plan(
        f"NCCL {test.collective} on {targets.folded}",
        tier=UNDONE_EASILY,
        count=1,  # one job, however many nodes it takes
        needs=NEEDS,
        effects=(_takes(cluster, test, test.limit_min), f"its output is written to {test.output} on the head"),
        warnings=remarks(test),
        wishes=(JobThere(test.nodes, test.name),),
    )


def _sweep_plan(
    cluster: Cluster, targets: Targets, options: Options, request: NcclRequest, sweep: SweepOptions, name: str
) -> Plan:
    whole = for_nodes(cluster, targets, sweep_request(request))
    left = tuple(_left_out(cluster, targets, whole))
    out = {node for node, _ in left}
    test = replace(whole, nodes=tuple(node for node in whole.nodes if node not in out))
    if not 2 <= len(test.nodes) <= MOST_NODES:
        text = f"a sweep takes 2 to {MOST_NODES} idle nodes; of these {len(test.nodes)} are idle"
        raise ActionError(Refusal.REFUSED, text)
    _check(test)
    jobs, rounds = estimate(len(test.nodes), sweep)
    limit_min = sweep_limit_min(rounds)
    draft = Draft(cluster, "nccl-sweep", targets, options)
    draft.patience_s = HOLD_S
    draft.step("hold the nodes", "salloc", hold_argv(test, name, limit_min)[1:], test.nodes, as_root=False)
    return draft.plan(
        f"NCCL sweep over {targets.folded}",
        tier=COUNTED,
        count=len(test.nodes),
        needs=NEEDS,
        effects=(
            f"{plural(jobs, 'test')} in {plural(rounds, 'round')}, some more for suspects",
            _takes(cluster, test, limit_min, usual_s=rounds * TYPICAL_S),
            "the job is cancelled when the sweep ends, is stopped, or the cockpit goes away; killed while it waits for "
            "the nodes' prologs, the cockpit leaves it to its time limit",
        ),
        warnings=remarks(test),
        left_out=left,
        wishes=(JobThere(test.nodes, name),),
    )


def end_plan(cluster: Cluster, name: str, labels: Sequence[str]) -> Plan:
    """End the jobs of a test that was started from here; the queue need not have been read since."""
    draft = Draft(cluster, "nccl-end", Targets(Scope.JOB, tuple(labels)), Options())
    draft.step(f"end {name}", "scancel", labels, labels, as_root=False)
    return draft.plan(f"end {name}", tier=UNDONE_EASILY, count=len(labels), wishes=(Ended(tuple(labels)),))


def sweep_limit_min(rounds: int) -> int:
    """The time limit of the holding job: three times what the rounds usually take, and ten minutes."""
    return 10 + 3 * rounds * TYPICAL_S // 60


def for_nodes(cluster: Cluster, targets: Targets, request: NcclRequest) -> NcclRequest:
    """The request on these nodes, with as many GPUs as each has; raises ActionError where they differ."""
    names = known_nodes(cluster, targets.names)
    nodes = nodes_by_name(cluster)
    counts = {nodes[name].gpus_total or 0 for name in names}
    if len(counts) > 1:
        shown = ", ".join(str(count) for count in sorted(counts))
        raise ActionError(Refusal.USAGE, f"these nodes have different numbers of GPUs ({shown}): test each kind alone")
    gpus = request.gpus_per_node if counts == {0} else min(request.gpus_per_node, *counts)
    return replace(request, nodes=names, node_count=0, gpus_per_node=gpus)


def _left_out(cluster: Cluster, targets: Targets, request: NcclRequest) -> Sequence[tuple[str, str]]:
    """Nodes that are not free. Inside a reservation they are reserved, of course; only jobs count then."""
    nodes = nodes_by_name(cluster)
    chosen = [nodes[name] for name in targets.names]
    if request.reservation:
        return [(node.name, f"is {node.word}") for node in chosen if node.gpus_used]
    return idle_nodes(chosen)[1]


def _check(request: NcclRequest) -> None:
    if wrong := mistakes(request):
        raise ActionError(Refusal.USAGE, f"NCCL test: {'; '.join(wrong)}")


def _takes(cluster: Cluster, request: NcclRequest, limit_min: int, usual_s: int = TYPICAL_S) -> str:
    gpus = f"{plural(request.gpus, 'GPU')} on {plural(request.count, 'node')}"
    usd_h = hour_of(cluster, request.nodes)
    money = "" if usd_h is None else f"; {usd(usd_h)}/h at list price, {usd(usd_h * usual_s / 3600)} for that time"
    return f"takes {gpus} for about {span(usual_s)}, at most {span(60 * limit_min)}{money}"


@dataclass(frozen=True, slots=True)
class JobThere:
    """A job of that name runs, or has run, on these nodes."""

    names: tuple[str, ...]
    job_name: str
    deadline_s: float = START_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        jobs = jobs_named(cluster, self.job_name)
        finding = _seen(jobs[-1]) if jobs else Finding(Look.WAIT, "not in the queue yet")
        return dict.fromkeys(self.names, finding)


def _seen(job: JobNow) -> Finding:
    state = job_state(job.state)
    text = f"job {job.job_id}: {state.word}"
    if job.state in STARTED or state.kind in ("good", "bad"):
        return Finding(Look.DONE, text)
    return Finding(Look.WAIT, f"{text}{f' ({job.reason})' if job.reason else ''}")


def jobs_named(cluster: Cluster, name: str) -> tuple[JobNow, ...]:
    """The jobs of that very name, ended ones too as long as Slurm remembers them; raises FaultError.

    The controller sends its whole queue for this: to look again and again, ask by id.
    """
    mark = secrets.token_hex(6)
    return _jobs_now(cluster, named_args(name, mark), mark)


def job_by_id(cluster: Cluster, job_id: int) -> tuple[JobNow, ...]:
    """That job, ended or not; () when Slurm has forgotten it. Raises FaultError."""
    mark = secrets.token_hex(6)
    return _jobs_now(cluster, job_now_args([str(job_id)], mark, each_task=False), mark)


def _jobs_now(cluster: Cluster, args: Sequence[str], mark: str) -> tuple[JobNow, ...]:
    try:
        raw = cluster.slurm.read("squeue", args, "looking for the test's job")
    except FaultError as error:
        if error.fault.kind is FaultKind.MISSING:
            return ()
        raise
    return parse_jobs_now(raw, mark)


def started_job(result: Result) -> int | None:
    """The job that a plan of this file has started, by what sbatch or salloc said; None when that tells nothing.

    Look with `jobs_named` then: a warning of sbatch's may stand where the id was expected.
    """
    for step in result.steps:
        job_id = job_id_of(step.said) or allocation_of(step.said)
        if job_id is not None:
            return job_id
    return None
