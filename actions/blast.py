"""Whom an action touches: the jobs on some nodes, or the jobs that are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from actions.spec import HurtJob
from cockpit.formats.job_states import STARTED, job_state
from cockpit.joins import nodes_of
from cockpit.models import Job
from cockpit.words import plural, span

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

RUNS_ON = "runs on"


def jobs_on(cluster: Cluster, names: Iterable[str]) -> tuple[Job, ...]:
    """The jobs that hold any of these nodes, each once."""
    held = cluster.view.jobs_of_node
    return tuple({job.job_id: job for name in names for job in held.get(name, ())}.values())


def touched(cluster: Cluster, jobs: Iterable[Job], fate: str, *, loses: bool) -> tuple[HurtJob, ...]:
    """The jobs as a plan shows them, all with the same fate."""
    return tuple(one(cluster, job, fate, loses=loses) for job in jobs)


def one(cluster: Cluster, job: Job, fate: str, *, loses: bool) -> HurtJob:
    """One job as a plan shows it; only what has really begun can lose work."""
    began = job.started_at if job.state in STARTED else None
    elapsed_s = max(0.0, cluster.head_now() - began) if began is not None else None
    word = job_state(job.state).word
    lost = loses and job.state in STARTED
    return HurtJob(job.job_id, job.label, job.user, job.name, word, job.hostlist, job.gpus, elapsed_s, fate, lost)


def killed(cluster: Cluster, jobs: Iterable[Job]) -> tuple[HurtJob, ...]:
    """The jobs of nodes that are taken away: batch jobs go back to the queue, all others end."""
    return tuple(one(cluster, job, _fate(job), loses=True) for job in jobs)


def _fate(job: Job) -> str:
    if interactive(job):
        return "killed for good (interactive: Slurm requeues batch jobs only)"
    return "killed and requeued" if job.requeueable else "killed"


def interactive(job: Job) -> bool:
    """Whether it is an allocation of srun or salloc, which Slurm calls requeueable and never requeues.

    As the node of its script squeue then names the machine where that command was typed, no node of the job (`%B`).
    """
    own = nodes_of(job.hostlist) if job.het_job_id in (None, job.job_id) else ()
    return bool(job.batch_host) and bool(own) and job.batch_host not in own


def summary(jobs: Sequence[HurtJob]) -> str:
    """`3 jobs of 2 users: 128 GPUs, 31h so far; 4,096 GPU-hours are lost`; "" for none."""
    if not jobs:
        return ""
    users = {job.user for job in jobs if job.user}
    gpus = [job.gpus for job in jobs if job.gpus is not None]
    counted = f", {plural(sum(gpus), 'GPU')}" if gpus else ""
    more = " or more" if gpus and len(gpus) < len(jobs) else ""
    return f"{plural(len(jobs), 'job')} of {plural(len(users), 'user')}{counted}{more}{_lost(jobs)}"


def _lost(jobs: Sequence[HurtJob]) -> str:
    losing = [job for job in jobs if job.loses]
    if not losing:
        return ""
    known = [job.gpu_hours for job in losing if job.gpu_hours is not None]
    if not known:
        return f"; the work of {plural(len(losing), 'job')} is lost (Slurm does not tell their GPUs)"
    least = "at least " if len(known) < len(losing) else ""
    return f"; {least}{gpu_time(sum(known))} of work are lost, but for what was checkpointed"


def gpu_time(hours: float) -> str:
    """GPU-hours in words; less than one in GPU-minutes."""
    return f"{hours:,.1f} GPU-hours" if hours >= 1 else f"{hours * 60:.0f} GPU-minutes"


def job_line(job: HurtJob) -> str:
    """One job on one line: who, what, for how long, what was last heard of it where told, GPUs, what becomes of it."""
    gpus = plural(job.gpus, "GPU") if job.gpus is not None else "GPUs not told"
    left = f", {span(job.left_s)} left on {job.hostlist}" if job.left_s is not None else ""
    wrote = f", last output {span(job.silent_s)} ago" if job.silent_s is not None else ""
    lasted = f" {span(job.elapsed_s)}" if job.elapsed_s is not None else ""
    return f"{job.label}  {job.user}  {job.name}  {job.state}{lasted}{left}{wrote}  {gpus}  {job.fate}"
