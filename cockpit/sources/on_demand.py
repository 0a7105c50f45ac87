"""What is read only when somebody looks at one thing: never polled, never on the UI thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cockpit.formats.listpids import JobPid, listpids_args, parse_listpids, says_none
from cockpit.formats.node_history import NodeOutage, history_args, parse_node_history
from cockpit.formats.scontrol_show import Pairs, parse_partition_pairs
from cockpit.formats.slurm_errors import complaint
from cockpit.hosts.base import Host
from cockpit.models import FaultError, Job, Node
from cockpit.sources.slurm import SlurmClient
from cockpit.sources.slurm_env import SLURM_SET, SLURM_UNSET

PIDS_DEADLINE_S = 10.0
HISTORY_DEADLINE_S = 6.0
HISTORY_DAYS = 14
_NOT_FOUND = 127


class Nodes(Protocol):
    """What reaches nodes by name (hosts.pool.NodePool)."""

    def node(self, name: str, address: str = "") -> Host: ...


class OnDemand:
    """Single reads over the head and over the nodes; each ends within its deadline or raises FaultError."""

    def __init__(self, slurm: SlurmClient, nodes: Callable[[], Nodes]) -> None:
        self._slurm, self._nodes = slurm, nodes

    def job_pids(self, node: Node, job: Job) -> tuple[JobPid, ...]:
        """The job's processes on one of its nodes, as Slurm there tells them; () when it has none there.

        Some versions tell them to root and the job's owner only.
        """
        host = self._nodes().node(node.name, node.address)
        what, args = f"asking {node.name} for the processes of job {job.label}", listpids_args(job.job_id)
        directory = self._slurm.facts().slurm_dir
        # Slurm lies where it does on the head, as a rule; a node may still have it elsewhere.
        for program in dict.fromkeys([f"{directory}/scontrol" if directory else "scontrol", "scontrol"]):
            done = host.run([program, *args], deadline_s=PIDS_DEADLINE_S, env=SLURM_SET, unset=SLURM_UNSET)
            if done.rc != _NOT_FOUND:
                break
        if done.rc and says_none(done.stdout, done.stderr):
            return ()
        if fault := complaint(done.rc, b"", done.stderr, what=what, took_s=done.took_s, deadline_s=PIDS_DEADLINE_S):
            raise FaultError(fault)
        return parse_listpids(done.stdout)

    def node_history(self, name: str) -> tuple[NodeOutage, ...]:
        """When the node was down or drained in the last HISTORY_DAYS, the newest first; needs accounting."""
        what = f"reading the history of {name}"
        done = self._slurm.run("sacctmgr", history_args(name, HISTORY_DAYS), deadline_s=HISTORY_DEADLINE_S)
        if fault := complaint(
            done.rc, done.stdout, done.stderr, what=what, took_s=done.took_s, deadline_s=HISTORY_DEADLINE_S
        ):
            raise FaultError(fault)
        return parse_node_history(done.stdout)

    def partition(self, name: str) -> Pairs:
        """Slurm's record of one queue, every key as it stands there."""
        return parse_partition_pairs(self._slurm.read("scontrol", ["show", "partition", name], f"reading queue {name}"))
