"""What a node's GPUs are doing, from what Slurm's simulation runs on them: the state file of one node."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cockpit.demo.jobs import SimJob
from cockpit.demo.machines import CPUS_PER_GPU, GPUS, SimNode
from cockpit.demo.troubles import ODD_GPU, ODD_HOST, Struck

if TYPE_CHECKING:
    from cockpit.demo.sim import Simulation

GPU_BUSES = ("53", "64", "75", "86", "97", "a8", "b9", "ca")  # as on a p5.48xlarge
IDLE_MIB = 4
_CONTEXT_MIB = 520  # of a GPU's memory that is used, but by no process
_START_S = 8.0  # from a job's start to that of its ranks; whole, since the probe tells whole seconds
_LINE_BYTES_S = 9.2e9  # per EFA device in an all-reduce over nodes
_SERVING = ("eval", "safety", "qwen2", "retriever", "tokenizer", "asr")
_PROGRAMS = {"burst": "ipykernel_launch", "serve": "python", "train": "python3"}

# EFA's counters that move, as a share of the bytes carried. Names as the driver has them.
COUNTERS = {
    "tx_bytes": 1.0,
    "rx_bytes": 0.9995,
    "tx_pkts": 1 / 8400,
    "rx_pkts": 1 / 8404,
    "rdma_write_bytes": 0.985,
    "rdma_write_recv_bytes": 0.9845,
    "rdma_write_wrs": 1 / 262_144,
    "send_bytes": 2e-5,
    "send_wrs": 2e-5 / 64,
    "recv_bytes": 2e-5,
    "recv_wrs": 2e-5 / 64,
}


# By kind of trouble: Xids that NVML tells as events, and what the kernel says of it.
_XIDS: dict[str, tuple[int, ...]] = {"lost": (79,), "remap": (63,), "app": (31,), "hot": ()}
_TEXTS = {
    "lost": (
        "NVRM: GPU at PCI:0000:{bus}:00: {uuid}",
        "NVRM: Xid (PCI:0000:{bus}:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:{bus}:00): 154, pid='<unknown>', name=<unknown>, "
        "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
    ),
    "remap": (
        "NVRM: Xid (PCI:0000:{bus}:00): 63, pid='<unknown>', name=<unknown>, "
        "Row Remapper: New row (0x00000001b4a3f) marked for remapping, reset gpu to activate.",
    ),
    "app": (
        "NVRM: Xid (PCI:0000:{bus}:00): 31, pid=41877, name=python3, Ch 00000008, intr 00000000. MMU Fault: "
        "ENGINE GRAPHICS GPC1 GPCCLIENT_T1_0 faulted @ 0x7f2a_c4000000. Fault is of type FAULT_PDE ACCESS_TYPE_READ",
    ),
    "hot": (),
}


@dataclass(frozen=True, slots=True)
class Rank:
    """One process on one GPU."""

    pid: int
    uid_of: str  # login name
    program: str
    started_at: float
    job_id: int
    gpu: int
    mem_mib: int
    step: str
    node_rank: int
    local: int
    rank: int | None  # None: not started by a launcher that counts ranks
    world: int
    mode: str = ""  # what its GPU does: train, spin, odd, held, ...


def kind_of(job: SimJob) -> str:
    """How a job uses its GPUs: train, serve or burst."""
    if job.ask.partition == "interactive":
        return "burst"
    return "serve" if job.ask.name.startswith(_SERVING) else "train"


def uuid_of(node: str, gpu: int) -> str:
    """A UUID that stays the same for this GPU over every start of the demo."""
    digest = hashlib.sha256(f"{node}/{gpu}".encode()).hexdigest()
    return f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def node_state(sim: Simulation, node: SimNode) -> dict[str, Any]:
    """All that fake_nvml.py needs to know of this node but for the traffic, which has a past."""
    struck = sim.struck.get(node.name, [])
    cards = [_card(sim, node, gpu, struck) for gpu in range(GPUS)]
    lost = {trouble.gpu for trouble in struck if trouble.kind == "lost"}
    return {
        "boot": node.boot_at or sim.now,
        "load": 1.5 + 0.55 * CPUS_PER_GPU * len(node.gpus_used),
        "gpus": cards,
        "clock_card": min(set(range(GPUS)) - lost),
        "xids": [[trouble.at, trouble.gpu, code] for trouble in struck for code in _XIDS[trouble.kind]],
        "counters": COUNTERS,
    }


def _card(sim: Simulation, node: SimNode, gpu: int, struck: list[Struck]) -> dict[str, Any]:
    job = next((sim.jobs[job_id] for job_id, share in node.shares.items() if gpu in share.gpus), None)
    digest = int(uuid_of(node.name, gpu)[4:12], 16)
    card: dict[str, Any] = {
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": uuid_of(node.name, gpu),
        "serial": f"165{digest % 10**10:010d}",
        "pci": f"0000:{GPU_BUSES[gpu]}:00",
        "seed": digest % 997 if job is None else job.job_id,
        "mem_mib": IDLE_MIB,
        "modes": [[0.0, "free"]],
        "processes": [],
    }
    if job is not None and not job.configuring:
        mine = [rank for rank in ranks(node, job) if rank.gpu == gpu]
        card["modes"] = [[0.0, "free"], *modes(sim, job, node.name, gpu)]
        card["mem_mib"] = sum(rank.mem_mib for rank in mine) + _CONTEXT_MIB
        card["processes"] = [[rank.pid, rank.mem_mib] for rank in mine]
    for trouble in struck:
        if trouble.gpu == gpu and trouble.kind in ("lost", "remap"):
            card[f"{trouble.kind}_at"] = trouble.at
        if trouble.gpu == gpu and trouble.kind == "remap":
            card["corrected"] = 37
    return card


def modes(sim: Simulation, job: SimJob, host: str, gpu: int) -> list[list[Any]]:
    """[since, mode] of one of the job's GPUs, oldest first."""
    found: list[list[Any]] = [[job.started_at or sim.now, kind_of(job)]]
    since = sim.booted_at - sim.scenario.lead_since_s
    if job.job_id == sim.lead_id and sim.scenario.lead_does == "hang":
        odd = host == job.hosts[ODD_HOST] and gpu == ODD_GPU
        found.append([since, "odd" if odd else "spin"])
    elif job.job_id == sim.lead_id and sim.scenario.lead_does == "idle":
        found.append([since, "held"])
    for where, trouble in troubles_of(sim, job):
        if trouble.kind == "hot" and (where, trouble.gpu) == (host, gpu):
            found.append([trouble.at, "hot"])
        if trouble.kind == "lost":  # the others wait for it in their next collective operation
            found.append([trouble.at + 1.5, "spin"])
    return found


def troubles_of(sim: Simulation, job: SimJob) -> Iterator[tuple[str, Struck]]:
    """What has struck or will strike the job's own GPUs, with the host."""
    for host in job.hosts:
        for trouble in sim.struck.get(host, []):
            if trouble.gpu in job.gpus.get(host, ()):
                yield host, trouble


def ranks(node: SimNode, job: SimJob) -> list[Rank]:
    """The job's processes on this node, one a GPU; ranks count through the job's nodes in their order."""
    kind, place = kind_of(job), job.hosts.index(node.name)
    world = job.ask.nodes * job.ask.gpus
    started_at = max(job.started_at or 0.0, (node.boot_at or 0.0) + 60.0) // 1 + _START_S
    found = []
    for local, gpu in enumerate(job.gpus[node.name]):
        seed = job.job_id * 7919 + place * 131 + gpu * 17
        if kind == "burst":
            mem_mib = 11_300
        else:
            mem_mib = 61_600 + job.job_id * 613 % 14_000 + seed % 380 if kind == "train" else 38_000 + seed % 900
        pid = 10_000 + job.job_id % 4000 * 16 + node.index * 7 % 900 + local
        step = "interactive" if kind == "burst" else "0"
        rank = None if kind == "burst" or world == 1 else place * job.ask.gpus + local
        program = _PROGRAMS[kind]
        found.append(
            Rank(pid, job.ask.user, program, started_at, job.job_id, gpu, mem_mib, step, place, local, rank, world)
        )
    return found


def node_ranks(sim: Simulation, node: SimNode) -> list[Rank]:
    """Every process on this node's GPUs, and what each does now."""
    jobs = [sim.jobs[job_id] for job_id in node.shares]
    return [_at_work(sim, node, job, rank) for job in jobs if not job.configuring for rank in ranks(node, job)]


def _at_work(sim: Simulation, node: SimNode, job: SimJob, rank: Rank) -> Rank:
    past = [mode for since, mode in modes(sim, job, node.name, rank.gpu) if since <= sim.now]
    return replace(rank, mode=past[-1] if past else "")


def line_rate(sim: Simulation, node: SimNode) -> float:
    """Bytes a second through each EFA device now: only ranks that train over several nodes send any."""
    for job_id in node.shares:
        job = sim.jobs[job_id]
        if job.ask.nodes > 1 and not job.configuring:
            past = [mode for since, mode in modes(sim, job, node.name, job.gpus[node.name][0]) if since <= sim.now]
            if past and past[-1] in ("train", "hot"):
                return _LINE_BYTES_S
    return 0.0


def messages(sim: Simulation, node: SimNode) -> list[tuple[float, str]]:
    """Kernel messages of this node, oldest first; also those of troubles that are yet to come."""
    found = []
    for trouble in sim.struck.get(node.name, []):
        for number, text in enumerate(_TEXTS[trouble.kind]):
            bus, uuid = GPU_BUSES[trouble.gpu], uuid_of(node.name, trouble.gpu)
            found.append((trouble.at + 0.02 * number, text.format(bus=bus, uuid=uuid)))
    return sorted(found)
