"""Checks as actions. Looking is tier 0: it changes nothing, needs no runner and no record. What loads a node is more.

`EFA_CHECK` and `HEALTH_CHECK` say what is asked; `cockpit.checks.runner.CheckRunner` then does it. A pair check and
NVIDIA's diagnostics are plans for the runner: `pair_action` (then `pairs_found`) and `deep_action`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from actions import blast
from actions.draft import Draft
from actions.errors import ActionError, Refusal
from actions.nccl import JobThere
from actions.nodes import NEEDS
from actions.outcome import Result
from actions.spec import COUNTED, READ, UNDONE_EASILY, Action, Options, Plan, Scope, Step, Targets
from actions.targets import known_nodes, nodes_by_name
from cockpit.checks.deep import LEVELS, LIMIT_MIN, TYPICAL, DeepRequest, submit_argv
from cockpit.checks.models import NodeResult, PairResult
from cockpit.checks.pair import Ends, new_port, shown_commands
from cockpit.checks.targets import choose
from cockpit.hosts.ssh_target import check_name
from cockpit.nccl.run import idle_nodes
from cockpit.words import plural, span

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

MOST_PAIRS = 32
PAIR_STEP = "pair"  # Step.via


def _look_action(kind: str, key: str, title: str, told: str) -> Action:
    return Action(
        f"{kind}-check",
        key,
        title,
        told,
        Scope.NODE,
        READ,
        lambda cluster, targets, options: _look_plan(cluster, targets, options, kind, title),
        (),
    )


def _look_plan(cluster: Cluster, targets: Targets, options: Options, kind: str, title: str) -> Plan:
    """What would be asked of whom; without steps, since nothing is changed."""
    chosen = choose(cluster, targets.folded)
    if not chosen.targets:
        told = ", ".join(f"{name} {why}" for name, why in chosen.left_out[:5])
        raise ActionError(Refusal.REFUSED, f"there is no node to ask: {told}")
    return Plan(
        action_id=f"{kind}-check",
        title=f"{title} of {targets.folded}",
        cluster=cluster.config.name,
        production=cluster.config.production,
        targets=targets,
        options=options,
        steps=(),
        tier=READ,
        count=len(chosen.targets),
        effects=(f"asks {plural(len(chosen.targets), 'node')} once, in parallel; changes and loads nothing",),
        left_out=chosen.left_out,
    )


EFA_CHECK = _look_action("efa", "E", "EFA check", "Is it the network? Devices, drivers, versions, counters of nodes.")
HEALTH_CHECK = _look_action("health", "C", "health check", "GPUs, memory, disks, clocks and kernel of nodes.")
CHECK_ACTIONS = (EFA_CHECK, HEALTH_CHECK)


# -- pairs


def pair_action(pairs: Sequence[tuple[str, str]]) -> Action:
    """Whether pairs of nodes reach each other over EFA. `pairs_found` tells what came of it."""
    return Action(
        "efa-pair",
        "",
        "EFA pair check",
        "Send a few messages between two nodes over EFA.",
        Scope.NODE,
        UNDONE_EASILY,
        lambda cluster, targets, options: _pair_plan(cluster, targets, options, tuple(pairs)),
        NEEDS,
    )


def pair_targets(pairs: Sequence[tuple[str, str]]) -> Targets:
    """The nodes of the pairs, each once."""
    return Targets(Scope.NODE, tuple(dict.fromkeys(node for pair in pairs for node in pair)))


def _pair_plan(cluster: Cluster, targets: Targets, options: Options, pairs: tuple[tuple[str, str], ...]) -> Plan:
    if not 1 <= len(pairs) <= MOST_PAIRS or any(one == other for one, other in pairs):
        raise ActionError(Refusal.USAGE, f"a pair is two different nodes; 1 to {MOST_PAIRS} pairs")
    names = known_nodes(cluster, targets.names)
    chosen = choose(cluster, targets.folded)
    if chosen.left_out:
        told = ", ".join(f"{name} {why}" for name, why in chosen.left_out[:5])
        raise ActionError(Refusal.REFUSED, f"not every node has a machine: {told}")
    draft = Draft(cluster, "efa-pair", targets, options)
    draft.steps += [pair_step(_ends(cluster, one, other)) for one, other in pairs]
    busy = blast.touched(cluster, blast.jobs_on(cluster, names), "runs on, beside a few small messages", loses=False)
    return draft.plan(
        f"EFA pair check of {targets.folded}",
        tier=COUNTED if len(pairs) > 1 else UNDONE_EASILY,
        count=len(pairs),
        needs=NEEDS,
        jobs=busy,
        effects=(
            "fi_pingpong listens on the first node of a pair and is called from the second, for some seconds",
            "nothing stays behind, also when it is interrupted",
        ),
        warnings=("jobs run on these nodes: latencies may look worse than they are",) if busy else (),
    )


def _ends(cluster: Cluster, server: str, client: str) -> Ends:
    """With the server's address as Slurm has it, which the client can reach."""
    address = nodes_by_name(cluster)[server].address or server
    check_name(address)
    return Ends(server, client, address, new_port())


def pair_step(ends: Ends) -> Step:
    """One pair as a step; its argv is the client's, the title tells the server's."""
    argv = ("fi_pingpong", "-p", "efa", "-e", "rdm", "-P", str(ends.port), ends.address)
    return Step(f"on {ends.client}, with {shown_commands(ends)[0]}", argv, (ends.server, ends.client), via=PAIR_STEP)


def pairs_found(result: Result) -> tuple[PairResult, ...]:
    """What a run of a pair_action measured, pair by pair."""
    return tuple(step.found for step in result.steps if isinstance(step.found, PairResult))


# -- deep


def deep_action(request: DeepRequest) -> Action:
    """NVIDIA's diagnostics on the nodes that are targeted; the request says all but the nodes."""
    return Action(
        "gpu-dcgm",
        "",
        "GPU diagnostics",
        "NVIDIA's own tests (dcgmi diag) on idle nodes.",
        Scope.NODE,
        UNDONE_EASILY,
        lambda cluster, targets, options: _deep_plan(cluster, targets, options, request),
        NEEDS,
    )


def idle_of(cluster: Cluster, targets: Targets, why: str) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The targets that are idle, and the others with the reason; ActionError with `why` where none is."""
    nodes = nodes_by_name(cluster)
    free, left = idle_nodes([nodes[name] for name in known_nodes(cluster, targets.names)])
    if not free:
        told = ", ".join(f"{name} {reason}" for name, reason in left[:5])
        raise ActionError(Refusal.REFUSED, f"{why}: {told}")
    return free, left


def _deep_plan(cluster: Cluster, targets: Targets, options: Options, request: DeepRequest) -> Plan:
    if request.level not in LEVELS:
        raise ActionError(Refusal.USAGE, f"dcgmi's levels are {', '.join(map(str, LEVELS))}")
    free, left = idle_of(cluster, targets, "diagnostics take the GPUs for themselves, so idle nodes only")
    test = DeepRequest(free, request.level, request.partition, request.account, request.output_dir, request.name)
    draft = Draft(cluster, "gpu-dcgm", targets, options)
    draft.step("submit the diagnostics", "sbatch", submit_argv(test)[1:], free, as_root=False)
    return draft.plan(
        f"GPU diagnostics, level {test.level}, on {targets.folded}",
        tier=UNDONE_EASILY,
        count=len(free),
        needs=NEEDS,
        effects=(
            f"takes all GPUs of {plural(len(free), 'node')} for {TYPICAL[test.level]}, "
            f"at most {span(60 * LIMIT_MIN[test.level])}",
            f"its output is written to {test.output} on the head",
        ),
        left_out=left,
        wishes=(JobThere(free, test.name),),
    )


def proposed(node: NodeResult) -> tuple[str, str] | None:
    """(action id, reason) to offer for a node: drain it with its worst failing check; None when none fails."""
    return ("drain", node.drain_reason) if node.drain_reason else None
