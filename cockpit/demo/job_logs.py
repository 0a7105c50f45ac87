"""What the demo's jobs write, as (time, text) from their start on; the same at every reading."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from cockpit.demo.gpu_state import kind_of, modes, ranks, troubles_of
from cockpit.demo.jobs import SimJob
from cockpit.demo.sim import Simulation
from cockpit.demo.troubles import ODD_GPU, ODD_HOST

Event = tuple[float, str]

NCCL_TIMEOUT_S = 180  # what the demo's people set; PyTorch's own default is 600
_NICS = 32
_CHECKPOINT_STEPS = 500
_SILENT = ("spin", "odd", "held")  # a rank that waits, or never came, writes nothing


@dataclass(frozen=True, slots=True)
class JobLog:
    """Everything of a job that its output depends on, taken once so that what was written stays true."""

    job_id: int
    name: str
    user: str
    kind: str
    host: str
    world: int
    pid: int
    started_at: float
    silent_at: float = math.inf  # from then on the ranks wait for one of them
    after: tuple[Event, ...] = ()  # what is still written then
    steps: random.Random = field(default_factory=random.Random)


def job_log(sim: Simulation, job: SimJob) -> JobLog:
    """The log of a job that runs or has run."""
    host = job.hosts[0]
    mine = ranks(sim.nodes[host], job) if host in job.gpus else []
    silent_at, after = _trouble(sim, job)
    return JobLog(
        job_id=job.job_id,
        name=job.ask.name,
        user=job.ask.user,
        kind=kind_of(job),
        host=host,
        world=job.ask.nodes * job.ask.gpus,
        pid=mine[0].pid if mine else 4711,
        started_at=job.started_at or sim.now,
        silent_at=silent_at,
        after=after,
        steps=random.Random(job.job_id),  # noqa: S311 - repeatable, nothing secret
    )


def _trouble(sim: Simulation, job: SimJob) -> tuple[float, tuple[Event, ...]]:
    """From when on the job writes no steps, and what it writes instead."""
    if not job.gpus:
        return math.inf, ()
    for host, trouble in troubles_of(sim, job):
        if trouble.kind == "lost":
            pid = next(rank.pid for rank in ranks(sim.nodes[host], job) if rank.gpu == trouble.gpu)
            words = f"{host}:{pid}:{pid + 211} [{trouble.gpu}] NCCL WARN Cuda failure 'unspecified launch failure'"
            return trouble.at, ((trouble.at + 1.5, f"\n[{stamp(trouble.at + 1.5)}] {words}\n"),)
    odd = modes(sim, job, job.hosts[ODD_HOST], ODD_GPU)[-1] if len(job.gpus[job.hosts[ODD_HOST]]) > ODD_GPU else None
    if odd is not None and odd[1] == "odd":
        return odd[0], tuple(_watchdogs(job, odd[0] + NCCL_TIMEOUT_S))
    first = modes(sim, job, job.hosts[0], job.gpus[job.hosts[0]][0])[-1]
    return (first[0] if first[1] in _SILENT else math.inf), ()


def _watchdogs(job: SimJob, at: float) -> Iterator[Event]:
    """What PyTorch writes when a collective operation did not end: all ranks but the one they wait for."""
    work = 1_280_400 + job.job_id
    world = job.ask.nodes * job.ask.gpus
    odd = (len(job.hosts) + ODD_HOST) * job.ask.gpus + ODD_GPU
    others = [rank for rank in range(world) if rank != odd]
    timeout_ms = NCCL_TIMEOUT_S * 1000
    for place, rank in enumerate(others):
        waited = f"Timeout(ms)={timeout_ms}) ran for {timeout_ms + 11 + place} milliseconds before timing out."
        words = f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={work}, OpType=ALLREDUCE, "
        words += f"NumelIn=131072000, NumelOut=131072000, {waited}"
        yield _torch(at + 0.011 * place, rank, 683, f"[Rank {rank}] {words}")
    for place, rank in enumerate(others):
        done = f"last enqueued work: {work + 1}, last completed work: {work - 1}"
        words = f" failure detected by watchdog at work sequence id: {work} PG status: {done}"
        yield _torch(at + 1.0 + 0.011 * place, rank, 2241, _group(rank) + words)
    words = f"Received a dump signal due to a collective timeout from  rank {others[0]} and we will try our best to "
    words += f"dump the debug info. Last enqueued NCCL work: {work - 1}, last completed NCCL work: {work - 1}."
    yield _torch(at + 2.5, odd, 1858, _group(odd) + words)


def _torch(at: float, rank: int, line: int, words: str) -> Event:
    moment = time.strftime("%m%d %H:%M:%S", time.localtime(at)).lstrip("0")
    return at, f"[rank{rank}]:[E{moment}.{int(at % 1 * 1e9):09d} ProcessGroupNCCL.cpp:{line}] {words}\n"


def _group(rank: int) -> str:
    return f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] "


def events(log: JobLog) -> Iterator[Event]:
    """What the job writes, without its end; endless."""
    yield from _begin(log)
    steps = {"train": _train, "serve": _serve, "burst": _notebook}[log.kind]
    for at, text in steps(log):
        if at >= log.silent_at:
            break
        yield at, text
    yield from log.after
    yield math.inf, ""


def _begin(log: JobLog) -> Iterator[Event]:
    at = log.started_at + 8.0
    yield log.started_at, f"[{stamp(log.started_at)}] job {log.job_id} on {log.host}: {log.name}\n"
    if log.kind == "burst":
        return
    told = f"world size {log.world}, NCCL time-out {NCCL_TIMEOUT_S} s"
    yield at, f"[{stamp(at)}] rank 0: init_process_group nccl, {told}\n"
    head = f"{log.host}:{log.pid}:{log.pid} [0] NCCL INFO"
    for place, words in enumerate(
        (
            "NCCL version 2.28.3+cuda12.9",
            "NET/OFI Initializing aws-ofi-nccl 1.17.1",
            "NET/OFI Using transport protocol RDMA",
            f"NET/OFI Selected provider is efa, fabric is efa-direct (found {_NICS} nics)",
            "Using network Libfabric",
        )
    ):
        yield at + 0.2 * (place + 1), f"{head} {words}\n"


def _train(log: JobLog) -> Iterator[Event]:
    rng, every_s = log.steps, 3.2 + log.job_id % 7 * 0.3
    step = log.job_id * 37 % 60_000 // _CHECKPOINT_STEPS * _CHECKPOINT_STEPS
    at = log.started_at + 40.0
    yield at, f"[{stamp(at)}] loaded checkpoint /fsx/{log.user}/ckpt/{log.job_id}/step-{step} in 22.4 s\n"
    while True:
        at += every_s * rng.uniform(0.97, 1.05)
        step += 1
        loss = 1.42 + 9.5 / math.sqrt(step + 40) + rng.gauss(0, 0.012)
        yield (
            at,
            (
                f"[{stamp(at)}] step {step} | loss {loss:.4f} | grad norm {rng.uniform(0.31, 0.52):.3f} | "
                f"lr {2.4e-4 * (1 - step / 900_000):.3e} | tokens/s {log.world * rng.uniform(6350, 6480):,.0f} | "
                f"step time {every_s * rng.uniform(0.97, 1.05):.2f} s\n"
            ),
        )
        if step % _CHECKPOINT_STEPS == 0:
            yield at, f"[{stamp(at)}] saving checkpoint /fsx/{log.user}/ckpt/{log.job_id}/step-{step}\n"
            at += rng.uniform(24.0, 41.0)
            yield at, f"[{stamp(at)}] checkpoint saved\n"


def _serve(log: JobLog) -> Iterator[Event]:
    rng, done, total = log.steps, 0, 14_042
    at = log.started_at + 30.0
    while True:
        at += rng.uniform(5.5, 7.5)
        done = done + rng.randint(20, 34)
        words = f"evaluated {done % total:,}/{total:,} | accuracy {0.668 + rng.gauss(0, 0.004):.3f}"
        yield at, f"[{stamp(at)}] {words} | {rng.uniform(3.1, 4.2):.2f} it/s\n"


def _notebook(log: JobLog) -> Iterator[Event]:
    at = log.started_at + 5.0
    yield at, f"[I {stamp(at)} ServerApp] Jupyter Server is running at http://{log.host}:8888/lab\n"
    while True:
        at += log.steps.uniform(240.0, 1500.0)
        yield at, f"[I {stamp(at)} ServerApp] Saving file at /runs/explore.ipynb\n"


def progress(log: JobLog) -> Iterator[Event]:
    """What goes to standard error where that has a file of its own: a progress bar that rewrites its line."""
    rng, done, total = log.steps, 0, 14_042
    at = log.started_at + 30.0
    yield at, f"{stamp(at)} WARNING tokenizer has no chat template, using the default\n"
    while True:
        at += 2.0
        done = (done + rng.randint(6, 11)) % total
        bar = "#" * (20 * done // total)
        yield at, f"\rrunning: {100 * done // total:3d}%|{bar:<20}| {done}/{total}"


def ending(log: JobLog, outcome: str, at: float) -> str:
    """The last lines of a job that has ended as `outcome`."""
    if outcome == "TIMEOUT":
        return f"slurmstepd: error: *** JOB {log.job_id} ON {log.host} CANCELLED AT {stamp(at)} DUE TO TIME LIMIT ***\n"
    if outcome == "CANCELLED":
        return f"slurmstepd: error: *** JOB {log.job_id} ON {log.host} CANCELLED AT {stamp(at)} ***\n"
    if outcome == "FAILED":
        before = "[rank0]: " if log.world > 1 else ""
        lines = [
            "Traceback (most recent call last):",
            f'  File "/fsx/{log.user}/runs/train.py", line 412, in <module>',
            "    main()",
            f'  File "/fsx/{log.user}/runs/train.py", line 366, in main',
            "    loss = model(batch).loss",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of "
            "79.11 GiB of which 1.04 GiB is free.",
        ]
        text = "".join(f"{before}{line}\n" for line in lines)
        return f"{text}srun: error: {log.host}: task 0: Exited with exit code 1\n"
    return f"[{stamp(at)}] done\n"


def stamp(at: float) -> str:
    """A time as these programs write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at))
