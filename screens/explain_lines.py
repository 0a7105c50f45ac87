"""What a thing's state means in plain words, what it means on this cluster, what to do, and how to see it.

Pure functions over a cluster's view; the words are data in cockpit/catalog. Imports no Textual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cockpit.catalog.gpu_codes import throttle_reasons
from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow, gpu_age_s, gpu_freshness
from cockpit.formats.node_state import next_step, state_words, written_by_program
from cockpit.gpu_models import known
from cockpit.joins import reason_applies
from cockpit.kinds.notes import kind_note, node_note
from cockpit.models import Freshness, Health, Node
from cockpit.words import span
from screens.details.commands import commands, gpu_words
from screens.details.gpu import finding_pieces
from screens.details.parts import (
    awaited_lines,
    command,
    find_gpu,
    find_node,
    jobs_listed,
    label,
    listed,
    naming,
    node_link,
    problem_section,
)
from screens.details.problem import all_problem_lines, code_of, find_problem, problem_lines
from screens.details.queue import all_queue_lines, queue_meaning, queue_state, waiting_by_reason
from screens.explain_codes import reason_lines, sxid_lines, throttle_lines, xid_lines
from screens.explain_job import AHEAD_MAX, explain_job, told_lines
from screens.gpu_table import driver_words
from screens.lines import Line, Link, Piece, Subject, facts, section
from themes import state_token

FLAG_WIDTH = 16
_GPU_SHOW = (("node", ("nvidia-smi", "-q", "-i", "{gpu}")),)


def explain_node(cluster: Cluster, name: str) -> list[Line]:
    """Every word of a node's state, its reason, what this kind of cluster does about it, what to do."""
    node = find_node(cluster.view, name)
    if node is None:
        return [[f"{name} is not among Slurm's nodes"]]
    lines: list[Line] = [[(f"{name} is {node.word}", state_token(node.health) or "bright")], []]
    lines += _state(node)
    lines += [[], *_reason(node)] if node.reason else []
    note = node_note(cluster.kind, node.state, cluster.origin(name))
    lines += [*awaited_lines(cluster, node), *facts([("here", note), ("next", next_step(node.state, node.reason))])]
    lines += problem_section(naming(cluster.view.problems, ("node", name)), cluster.clock.now())
    return [*lines, [], section("what shows it"), *_node_commands(cluster, node)]


def _state(node: Node) -> list[Line]:
    return [[(f"  {word:<{FLAG_WIDTH}} ", "dim"), sentence] for word, sentence in state_words(node.state)]


def _reason(node: Node) -> list[Line]:
    if not reason_applies(node):
        return facts([("reason", f"{node.reason} — of an earlier time: Slurm keeps the text when a node comes back")])
    program = written_by_program(node.reason)
    who = f"written by a program: {program.means}" if program else f"written by a person, as {node.reason_by or '?'}"
    return facts([("reason", node.reason), ("", who)])


def _node_commands(cluster: Cluster, node: Node) -> list[Line]:
    lines = [command("head", "scontrol", "show", "node", node.name)]
    if cluster.view.site is not None and cluster.view.site.accounting:
        events = ("sacctmgr", "list", "event", f"nodes={node.name}", "start=now-14days")
        lines.append(command("head", *events, "format=start,end,state,user,reason%60"))
    if node.health in (Health.OK, Health.UNKNOWN) or node.state.has("powered_down"):
        return lines
    return [
        *lines,
        command(node.name, "systemctl", "status", "slurmd"),
        command(node.name, "journalctl", "_TRANSPORT=kernel", "--since", "-2h", "--no-pager"),
    ]


def explain_gpu(cluster: Cluster, key: str) -> list[Line]:
    """What is wrong with it in words, each code with a link to its explanation, and how to see it."""
    row = find_gpu(cluster, key)
    if row is None:
        return [[f"{key} is gone: its node is down or no longer watched"]]
    lines: list[Line] = [[(f"GPU {row.slot} of {row.node}", "bright")]]
    for finding in row.findings:
        problem = find_problem(cluster, f"gpu:{row.node}:{finding.code}")
        lines += [[], [label("wrong"), *finding_pieces(finding)]]
        lines += facts([("evidence", finding.evidence), ("next", finding.next_step)])
        lines += [[label("more"), Link("what it means here", "", Subject("problem", problem.key))]] if problem else []
    lines += [] if row.findings else [[], *_no_finding(cluster, row)]
    mask = known(row.sample.throttle_mask) if row.sample else None
    reasons = throttle_reasons(int(mask)) if mask else ()
    held: list[Piece] = [Link(one.word, "", Subject("throttle", f"{one.bit:x}")) for one in reasons]
    return [*lines, *listed("clocks held", held), [], section("what shows it"), *commands(_GPU_SHOW, gpu_words(row))]


def _no_finding(cluster: Cluster, row: GpuRow) -> list[Line]:
    """Nothing is known to be wrong with it: because it is well, or because nobody tells."""
    watch, node = row.watch, find_node(cluster.view, row.node)
    if row.sample is not None and row.sample.taken_at is not None:
        old = gpu_freshness(row, cluster.clock.steady()) is not Freshness.LIVE
        age = span(gpu_age_s(row, cluster.clock.steady()))
        told = [["  nothing is wrong with it that a reading tells"]]
        return [[f"  nothing was wrong with it {age} ago; nothing newer is known"]] if old else list(told)
    lines: list[Line] = [["  it was not read, so nothing is known of it: it may be well"]]
    if watch is None:
        lines += facts([("why", "its node is not watched"), ("next", "nodes.max in the config says how many are")])
    elif watch.fault is not None:
        lines += facts([("why", f"{watch.fault.what}: {watch.fault.why}"), ("next", watch.fault.next_step)])
    else:
        lines += facts([("why", driver_words(row) or "its node is being connected to, or has not told it yet")])
    out: list[Piece] = [node_link(row.node, node), f" is {node.word}"] if node and node.health is not Health.OK else []
    return [*lines, *([[label("its node"), *out]] if out else [])]


def explain_queue(cluster: Cluster, name: str) -> list[Line]:
    """Whether it starts jobs, and each reason for which jobs wait in it."""
    if not name:
        return all_queue_lines(cluster)
    state = queue_state(cluster, name)
    lines: list[Line] = [[(f"queue {name} is {state or 'not told'}", "bright")], []]
    lines += facts([("meaning", queue_meaning(state) if state else "")])
    lines += facts([("here", kind_note(cluster.kind, "queue_closed") if state in ("inactive", "down") else "")])
    jobs = [job for job in cluster.view.queue.jobs if name in job.partitions] if cluster.view.queue else []
    for told, held in waiting_by_reason(jobs):
        lines += [[], *told_lines(told), *jobs_listed("who", held, AHEAD_MAX)]
    show = [("head", ("scontrol", "show", "partition", name)), ("head", ("squeue", "-p", name, "--start"))]
    return [*lines, [], section("what shows it"), *commands(show, {})]


def explain_problem(cluster: Cluster, key: str) -> list[Line]:
    """Everything its details say, and the code behind it explained in full."""
    if not key:
        return all_problem_lines(cluster)
    problem = find_problem(cluster, key)
    if problem is None:
        return [["this problem is over"]]
    lines = problem_lines(cluster, problem)
    kind, code = code_of(problem)
    if kind:
        return [*lines, [], *EXPLAIN[kind](cluster, code)]
    node = next((name for about, name in problem.about if about == "node"), "") if key.startswith("node:") else ""
    found = find_node(cluster.view, node) if node else None
    return [*lines, [], section(f"{node}, word for word"), *_state(found)] if found else lines


def _log(cluster: Cluster, key: str) -> list[Line]:
    from screens.details.log import explain_log  # the record is no part of the first paint

    return explain_log(cluster, key)


def _cost(cluster: Cluster, key: str) -> list[Line]:
    from screens.explain_money import explain_cost

    return explain_cost(cluster, key)


def _storage(cluster: Cluster, key: str) -> list[Line]:
    from screens.explain_money import explain_storage

    return explain_storage(cluster, key)


def _pane(cluster: Cluster, name: str) -> list[Line]:
    from screens.explain_pane import explain_pane

    return explain_pane(cluster, name)


def _nccl(cluster: Cluster, key: str) -> list[Line]:
    from screens.details.nccl import explain_nccl  # nor is the history of NCCL tests

    return explain_nccl(cluster, key)


EXPLAIN: Mapping[str, Callable[[Cluster, str], list[Line]]] = {
    "node": explain_node,
    "job": explain_job,
    "gpu": explain_gpu,
    "queue": explain_queue,
    "problem": explain_problem,
    "xid": xid_lines,
    "sxid": sxid_lines,
    "throttle": throttle_lines,
    "reason": reason_lines,
    "log": _log,
    "cost": _cost,
    "storage": _storage,
    "nccl": _nccl,
    "pane": _pane,
}
