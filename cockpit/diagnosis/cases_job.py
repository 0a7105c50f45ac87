"""Hypotheses from Slurm, nodes, GPUs, logs and the network: what is not told by one rank's process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median

from cockpit.diagnosis import moves
from cockpit.diagnosis.evidence import UNREAD, WAITING, Evidence, LogEvidence, NodeEvidence
from cockpit.diagnosis.gathered import GatheredGpu
from cockpit.diagnosis.hypothesis import (
    CERTAIN,
    ENDED,
    HUNG,
    LIKELY,
    POSSIBLE,
    SLOW,
    Hypothesis,
)
from cockpit.diagnosis.hypothesis import WAITING as NOT_STARTED
from cockpit.diagnosis.log_cause import Cause
from cockpit.diagnosis.naming import ranks_word
from cockpit.formats.hostlist import brief, fold
from cockpit.words import plural

SPIN_UTIL_PCT, SPIN_MEM_UTIL_PCT, SPIN_SHARE = 95.0, 5.0, 0.5
_GPU_IDS = frozenset({"gpu-lost", "ecc", "xid", "nccl-cuda", "pcie", "fabric-manager", "nvls", "efa-command"})
_PENDING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")


def of_job(evidence: Evidence) -> Iterator[Hypothesis]:
    """Every hypothesis of this kind."""
    if not evidence.job.running:
        yield from _not_running(evidence)
        return
    for case in (_suspended, _nodes, _gpus, _mounts, _logs, _master, _all_wait, _slow_gpu):
        yield from case(evidence)


def _not_running(evidence: Evidence) -> Iterator[Hypothesis]:
    job = evidence.job
    if job.state in _PENDING:
        yield Hypothesis(
            "not-started",
            NOT_STARTED,
            "the job has not started",
            f"it has not started: {job.state.lower()}{f', {job.reason}' if job.reason else ''}",
            CERTAIN,
            0,
            next_step="The queue pane's `e` explains the reason.",
        )
        return
    if not job.state:
        return
    cause = next((log.explained.cause for log in evidence.logs if log.explained.cause), None)
    tail = f": {cause.sentence}" if cause else ""
    exit_code = f", exit code {job.exit_code}" if job.exit_code not in ("", "0:0") else ""
    yield Hypothesis(
        "ended",
        ENDED,
        "the job has ended",
        f"it has ended already ({job.state.lower()}{exit_code}){tail}",
        CERTAIN,
        0,
        cause.ranks if cause else (),
        cause.nodes if cause else (),
        (f"line {cause.line}: {cause.text}",) if cause else (),
        (),
        cause.next_step if cause else "Read its output: `cockpit output`, or `cockpit explain` on the file.",
    )


def _suspended(evidence: Evidence) -> Iterator[Hypothesis]:
    if evidence.job.state == "SUSPENDED":
        words = "Slurm has suspended it: all of its processes are stopped on purpose"
        step = "`scontrol resume` lets it go on."
        yield Hypothesis("suspended", NOT_STARTED, "the job is suspended", words, CERTAIN, 0, next_step=step)


def _nodes(evidence: Evidence) -> Iterator[Hypothesis]:
    down = [n for n in evidence.nodes if n.state.startswith(("down", "not responding", "failed", "lost"))]
    if down:
        yield _node_case(evidence, down, LIKELY if len(down) < len(evidence.nodes) else POSSIBLE)
    silent = [node for node in evidence.nodes if node.fault and node not in down]
    # Many do not answer: then it is rather our way to them than the nodes.
    if silent and (len(silent) == 1 < len(evidence.nodes) or len(silent) * 4 <= len(evidence.nodes)):
        yield _node_case(evidence, silent, POSSIBLE)


def _node_case(evidence: Evidence, nodes: list[NodeEvidence], confidence: str) -> Hypothesis:
    names = [node.name for node in nodes]
    ranks = tuple(rank.rank for rank in evidence.ranks if rank.node in names and rank.state == UNREAD)
    told = [
        f"{n.name}: {n.state}{f' ({n.reason})' if n.reason else ''}{f' · {n.fault}' if n.fault else ''}" for n in nodes
    ]
    return Hypothesis(
        "node-lost",
        HUNG,
        "a node does not answer",
        f"{brief(names)} {'does' if len(names) == 1 else 'do'} not answer"
        f"{f', and with it {ranks_word(ranks)}' if ranks else ''}",
        confidence,
        5,
        ranks,
        tuple(names),
        tuple(told[:6]),
        (),
        f"Look at the instance behind {brief(names)}; it may have to be replaced.",
        moves.of_hardware(evidence, names),
    )


def _gpus(evidence: Evidence) -> Iterator[Hypothesis]:
    bad = [gpu for gpu in evidence.gpus if gpu.lost or gpu.trouble]
    if not bad:
        return
    lost = [gpu for gpu in bad if gpu.lost]
    first = (lost or bad)[0]
    ranks = tuple(sorted({rank.rank for rank in evidence.ranks if rank.gpu in bad}))
    words = first.lost or first.trouble[0]
    yield Hypothesis(
        "gpu-lost" if lost else "gpu-fault",
        HUNG,
        "a GPU is lost" if lost else "a GPU has a fault",
        f"GPU {first.slot} on {first.node}{f' ({ranks_word(ranks)})' if ranks else ''}: {words}",
        LIKELY,
        3,
        ranks,
        tuple(dict.fromkeys(gpu.node for gpu in bad)),
        tuple(f"{gpu.node}/{gpu.slot}: {gpu.lost or gpu.trouble[0]}" for gpu in bad[:6]),
        (),
        "Drain the node; what the fault asks for (reset, reboot, replace) stands with the GPU.",
        moves.of_hardware(evidence, [gpu.node for gpu in bad]),
    )


def _mounts(evidence: Evidence) -> Iterator[Hypothesis]:
    hung: dict[str, list[str]] = {}
    full: dict[str, list[str]] = {}
    for node in evidence.nodes:
        for mount in node.sweep.mounts if node.sweep else ():
            if mount.hung_since is not None or "does not answer" in mount.error:
                hung.setdefault(mount.path, []).append(node.name)
            elif mount.total_mib and mount.available_mib == 0 and mount.path != "/dev/shm":  # noqa: S108
                full.setdefault(mount.path, []).append(node.name)
    for path, names in hung.items():
        everywhere = len(names) == len(evidence.nodes)
        ranks = tuple(rank.rank for rank in evidence.ranks if rank.node in names)
        yield Hypothesis(
            "storage-hung",
            HUNG,
            "a file system does not answer",
            f"{path} does not answer on {brief(names)}: whoever reads or writes there hangs",
            LIKELY,
            16,
            () if everywhere else ranks,
            tuple(names),
            (f"statvfs of {path} did not end on {plural(len(names), 'node')}",),
            (),
            "All nodes: look at the file server. One node: look at its network; it needs a reboot as a rule.",
            moves.again(evidence) if everywhere else moves.of_hardware(evidence, names),
        )
    for path, names in full.items():
        words = f"{path} is full on {brief(names)}"
        step = "Make room there; a checkpoint that cannot be written is tried again or ends the job."
        yield Hypothesis(
            "disk-full", HUNG, "a file system is full", words, POSSIBLE, 25, (), tuple(names), (), (), step
        )


def _logs(evidence: Evidence) -> Iterator[Hypothesis]:
    for log in evidence.logs:
        cause = log.explained.cause
        if cause is None or cause.id in ("step-waits", "stepd-error", "task-ended", "cancelled", "child-ended"):
            continue
        yield _of_cause(evidence, log, cause)


def _of_cause(evidence: Evidence, log: LogEvidence, cause: Cause) -> Hypothesis:
    slow = cause.id in ("plugin-unusable", "net-socket")
    kind = {"collective-mismatch": "collective-mismatch", "desync": "collective-mismatch", "efa-error": "efa-peer"}
    memory = cause.class_ == "memory"
    id_ = kind.get(cause.id, "socket-fallback" if slow else "out-of-memory" if memory else f"log-{cause.class_}")
    id_ = "gpu-fault" if cause.id in _GPU_IDS else id_
    nodes = cause.nodes or tuple(dict.fromkeys(r.node for r in evidence.ranks if r.rank in cause.ranks and r.node))
    nodes = tuple(name for name in nodes if name in evidence.job.nodes) or nodes
    hardware = cause.class_ == "hardware" and cause.severity == "critical"
    confidence = LIKELY if cause.severity == "critical" or cause.id == "collective-mismatch" or slow else POSSIBLE
    if log.grown and not slow:
        confidence = POSSIBLE  # it went on after that line
    return Hypothesis(
        id_,
        SLOW if slow else HUNG,
        cause.title,
        cause.sentence,
        confidence,
        18 if not slow else 40,
        cause.ranks,
        nodes,
        (f"{log.path}, line {cause.line} of what was read: {cause.text}",),
        ("its output still grows",) if log.grown else (),
        cause.next_step,
        moves.of_hardware(evidence, nodes)
        if hardware
        else moves.of_program(evidence)
        if cause.class_ == "code"
        else moves.again(evidence),
    )


def _master(evidence: Evidence) -> Iterator[Hypothesis]:
    """The meeting place of the ranks: not the same for all, nobody there, or some never came."""
    addresses = evidence.env.get("MASTER_ADDR", ())
    ports = evidence.env.get("MASTER_PORT", ())
    if len(addresses) > 1 or len(ports) > 1:
        told = f"MASTER_ADDR {', '.join(addresses[:4])} · MASTER_PORT {', '.join(ports[:4])}"
        odd = _of_other_master(evidence, addresses, ports)
        words = f"ranks do not agree on where to meet: {told}"
        step = "MASTER_ADDR and MASTER_PORT must be the same for all ranks; see how the script sets them."
        yield Hypothesis(
            "wrong-master", HUNG, "ranks look for different masters", words, LIKELY, 17, odd, (), (told,), (), step
        )
    kinds = Counter(rank.doing.kind for rank in evidence.ranks if rank.doing)
    start = kinds["rendezvous"] + kinds["setup"]
    if not start or start * 2 < len(evidence.ranks):
        return
    apart = [rank for rank in evidence.ranks if rank.connected is False]
    if any(rank.connected for rank in evidence.ranks) and apart and len(apart) * 2 <= len(evidence.ranks):
        yield _apart(evidence, tuple(rank.rank for rank in apart), tuple(dict.fromkeys(r.node for r in apart)))
    elif evidence.whole and not any(rank.connected for rank in evidence.ranks) and apart:
        words = "all ranks wait for each other and nobody is connected to the master's port"
        step = f"Does anything listen on {addresses[0] if addresses else 'the master'}:{ports[0] if ports else '?'}?"
        yield Hypothesis("rendezvous", HUNG, "nobody meets", words, LIKELY, 17, speaks_for=(words,), next_step=step)


def _of_other_master(evidence: Evidence, addresses: tuple[str, ...], ports: tuple[str, ...]) -> tuple[int, ...]:
    by_place: dict[tuple[str, str], list[int]] = {}
    for rank in evidence.ranks:
        if rank.process is not None:
            env = rank.process.env
            by_place.setdefault((env.get("MASTER_ADDR", ""), env.get("MASTER_PORT", "")), []).append(rank.rank)
    if len(by_place) < 2:
        return ()
    return tuple(sorted(by_place.values(), key=len)[0])


def _apart(evidence: Evidence, ranks: tuple[int, ...], nodes: tuple[str, ...]) -> Hypothesis:
    has = "has" if len(ranks) == 1 else "have"
    return Hypothesis(
        "rendezvous",
        HUNG,
        "ranks never reached the master",
        f"{ranks_word(ranks)} on {brief(nodes)} {has} no connection to the master's port",
        LIKELY,
        17,
        ranks,
        nodes,
        ("the others are connected and wait",),
        (),
        "Can these nodes reach the master's address and port (security group, interface, name)?",
        moves.again(evidence),
    )


def _all_wait(evidence: Evidence) -> Iterator[Hypothesis]:
    """Everybody is in the same operation and nobody is missing: the network, a GPU, or a wait that will end."""
    waiting = evidence.of_state(WAITING)
    if len(waiting) < 2 or len(waiting) < len(evidence.ranks) or any(log.grown for log in evidence.logs):
        return
    kinds = Counter(rank.doing.kind for rank in waiting if rank.doing)
    kind, count = kinds.most_common(1)[0]
    if kind not in ("collective", "network") or count < len(waiting):
        return
    spin = [gpu for gpu in evidence.gpus if spins(gpu)]
    busy = [gpu for gpu in evidence.gpus if works(gpu)]
    if busy and len(busy) * 2 >= len(evidence.gpus):
        return
    stale = all(log.progress.stale(log.age_s) for log in evidence.logs) if evidence.logs else False
    told = [f"all {len(waiting)} ranks: {waiting[0].words}"]
    if spin:
        told.append(f"{len(spin)} of {len(evidence.gpus)} GPUs spin: busy, little power, no memory traffic")
    yield Hypothesis(
        "all-wait",
        HUNG,
        "all ranks wait in the same operation",
        f"all {len(waiting)} ranks wait in the same operation and none is missing: network, a GPU, or a cycle of sends",
        LIKELY if stale and spin else POSSIBLE,
        20,
        (),
        (),
        tuple(told),
        (),
        "Compare EFA counters and Xids of the nodes (`E`); a flight record or --ras tells which rank did not launch.",
        moves.again(evidence),
    )


def spins(gpu: GatheredGpu) -> bool:
    """Busy without moving data and with little power: it waits inside a collective operation."""
    if gpu.util_pct is None or gpu.mem_util_pct is None or gpu.power_w is None:
        return False
    usual = gpu.usual_power_w if gpu.usual_power_w and gpu.usual_power_w > gpu.power_w * 1.3 else gpu.power_limit_w
    low = usual is not None and gpu.power_w < SPIN_SHARE * usual
    return gpu.util_pct >= SPIN_UTIL_PCT and gpu.mem_util_pct <= SPIN_MEM_UTIL_PCT and low


def works(gpu: GatheredGpu) -> bool:
    """Busy and not spinning."""
    return gpu.live and gpu.util_pct is not None and gpu.util_pct >= 50 and not spins(gpu)


def _slow_gpu(evidence: Evidence) -> Iterator[Hypothesis]:
    """One GPU whose clock lags its peers while all of them work."""
    clocks = [gpu for gpu in evidence.gpus if works(gpu) and gpu.sm_clock_mhz]
    if len(clocks) < 4:
        return
    usual = median(gpu.sm_clock_mhz or 0.0 for gpu in clocks)
    slow = [gpu for gpu in clocks if (gpu.sm_clock_mhz or 0.0) < 0.8 * usual]
    if not slow or len(slow) * 4 > len(clocks):
        return
    ranks = tuple(sorted({rank.rank for rank in evidence.ranks if rank.gpu in slow}))
    first = slow[0]
    why = f" ({', '.join(first.throttle)})" if first.throttle else ""
    yield Hypothesis(
        "slow-gpu",
        SLOW,
        "a GPU is slower than its peers",
        f"GPU {first.slot} on {first.node} runs at {first.sm_clock_mhz:.0f} MHz, its peers at {usual:.0f}{why}",
        LIKELY if first.throttle else POSSIBLE,
        35,
        ranks,
        tuple(dict.fromkeys(gpu.node for gpu in slow)),
        tuple(f"{gpu.node}/{gpu.slot}: {gpu.sm_clock_mhz:.0f} MHz, {gpu.temp_c or 0:.0f} C" for gpu in slow[:4]),
        (),
        f"Every step waits for it: look at temperature and power of {fold({gpu.node for gpu in slow})}.",
        moves.of_hardware(evidence, [gpu.node for gpu in slow]),
    )
