"""What a cause says beyond its kind: the sentence, and what the line itself names."""

from __future__ import annotations

import re
import signal
from typing import Any

from cockpit.diagnosis.naming import ranks_word
from cockpit.diagnosis.positions import Mismatch
from cockpit.formats.hostlist import fold
from cockpit.formats.log_models import Finding, LogDigest

# The EFA provider's own codes and the device's status, from libfabric's and the driver's source.
_EFA = {
    "13": "the peer's device does not answer",
    "15": "the peer cannot be reached at all: a security group blocks it, in either direction",
    "4105": "the node is out of memory for transfers",
    "4110": "the peer's address could not be used",
    "4124": "the peer had answered before and then fell silent: its process or its host died",
    "4125": "the two sides run different versions or settings of libfabric",
    "4126": "the peer's device answers but its process does not: that process is gone, or a security group lets "
    "packets through in one direction only",
    "4127": "the peer ended in the middle of a transfer",
}
_EFA_FIRST = "Look at the peer's log first, then at the security group: it needs a rule that names itself, both ways."
_HOST_IDS = re.compile(r"My host id: (\S+) .*?Peer EFA addr: (\S+) Peer host id: (\S+?)\)")
_SHOWS_TEXT = ("traceback", "exception", "no-space", "quota", "io-error", "lustre", "stepd-error")


def of_mismatch(found: Mismatch) -> dict[str, Any]:
    """A watchdog's time-out of which the numbers tell who stood elsewhere."""
    who, others = ranks_word(found.ranks), ranks_word(found.others)
    if found.kind == "differs":
        sentence = f"{who} called another collective operation than the others: {found.detail}"
        meaning = "All ranks must call the same operations in the same order; the program took another way there."
    else:
        op = f" ({found.op})" if found.op else ""
        sentence = (
            f"{who} never called collective operation {found.seq}{op} that {others} waited for "
            f"(last enqueued {found.enqueued} there, {found.others_enqueued} elsewhere)"
        )
        meaning = "They were alive and elsewhere in the program: order of calls, data or storage, and not the network."
    step = f"Look at what {who} did at that moment: their logs, a branch that only they take, their data or checkpoint."
    return {
        "id": "collective-mismatch",
        "class_": "code",
        "title": "ranks did not call the same operations",
        "sentence": sentence,
        "ranks": found.ranks,
        "meaning": meaning,
        "next_step": step,
    }


def of_finding(found: Finding, digest: LogDigest) -> dict[str, Any]:
    """Changes to the cause that the finding's own line asks for; always its sentence."""
    special = _SPECIAL.get(found.sign.id)
    changes = special(found) if special is not None else {}
    changes.setdefault("sentence", _sentence(found))
    return changes


def _sentence(found: Finding) -> str:
    who = f" on {ranks_word(found.ranks)}" if found.ranks else f" on {fold(found.nodes)}" if found.nodes else ""
    words = f"{found.sign.title}{who}"
    return f"{words}: {_short(found.text)}" if found.sign.id in _SHOWS_TEXT else words


def _desync(found: Finding) -> dict[str, Any]:
    rank, seq, done = (found.sign.fact(name) for name in ("rank", "seq", "finished"))
    words = f"rank {rank} finished collective operation {done} and did not join number {seq}, for which the others wait"
    return {"sentence": words, "class_": "code"}


def _efa(found: Finding) -> dict[str, Any]:
    code = found.sign.fact("error")
    meaning = _EFA.get(code)
    hosts = _HOST_IDS.search(found.text)
    peer = f" The peer is {hosts[3]} at {hosts[2]}." if hosts and hosts[3] != "N/A" else ""
    peer = f" The line does not name the peer's host; its address is {hosts[2]}." if hosts and not peer else peer
    if meaning is None:
        return {"sentence": f"{_sentence(found)}{f' with code {code}' if code else ''}"}
    return {
        "sentence": f"an EFA transfer failed with code {code}: {meaning}",
        "meaning": f"{meaning[0].upper()}{meaning[1:]}.{peer}",
        "next_step": _EFA_FIRST,
    }


def _node_failure(found: Finding) -> dict[str, Any]:
    node, teller = found.sign.fact("node"), found.sign.fact("teller")
    if node:
        aside = f" ({teller} only reported it)" if teller and teller != node else ""
        return {"sentence": f"Slurm lost node {node}{aside}", "nodes": (node,)}
    return {"sentence": f"Slurm lost a node of the job; {teller or 'the line'} reports it and does not name it"}


def _peer(found: Finding) -> dict[str, Any]:
    peer = found.sign.fact("peer")
    if not peer:
        return {}
    return {
        "sentence": f"{found.sign.title}: the process at {peer} is gone, or its port is blocked",
        "next_step": f"Look at {peer} first: the earliest error of the rank there, whether its node is up.",
    }


def _net_ib(found: Finding) -> dict[str, Any]:
    peer = found.sign.fact("peer")
    where = f" with {peer}" if peer else ""
    return {"sentence": f"NCCL's InfiniBand transport failed{where}; on EFA it is never meant to be used"}


def _port(found: Finding) -> dict[str, Any]:
    port = found.sign.fact("port")
    return (
        {"sentence": f"port {port} is in use: a second launcher on the node, or what an old job left"} if port else {}
    )


def _memory(found: Finding) -> dict[str, Any]:
    step = found.sign.fact("step")
    return {"sentence": f"a process of step {step} was killed for the machine's memory"} if step else {}


def _refused(found: Finding) -> dict[str, Any]:
    why = found.sign.fact("why")
    return {"sentence": f"a step was refused: {why}"} if why else {}


def _plugin(found: Finding) -> dict[str, Any]:
    where = fold(found.nodes) or "this node"
    return {"sentence": f"EFA cannot be used on {where}: NCCL goes on over TCP, which is slow, not hung"}


def _task(found: Finding) -> dict[str, Any]:
    node, tasks, how = (found.sign.fact(name) for name in ("node", "tasks", "how"))
    numbers = tuple(int(part) for part in tasks.split(",") if part.isdigit())
    return {"sentence": f"task {tasks} on {node} ended: {how}", "nodes": (node,), "ranks": numbers} if node else {}


def _script(found: Finding) -> dict[str, Any]:
    return {"sentence": "a program of the batch script was killed, for memory as a rule"}


_SPECIAL = {
    "desync": _desync,
    "efa-error": _efa,
    "node-failure": _node_failure,
    "peer-refused": _peer,
    "peer-unreachable": _peer,
    "net-ib": _net_ib,
    "port-in-use": _port,
    "oom-kill": _memory,
    "no-step": _refused,
    "plugin-unusable": _plugin,
    "task-ended": _task,
    "script-killed": _script,
}


def exit_word(code: int | None) -> str:
    """`exit code 1`, `SIGABRT`; torchrun writes signals as negative numbers."""
    if code is None:
        return "no exit code told"
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _short(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]} …"
