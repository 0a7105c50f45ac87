"""What is asked of a cluster when somebody wants to know it, and never polled; the pool of connections to its nodes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit import joins
from cockpit.clock import Clock
from cockpit.config import ClusterConfig
from cockpit.formats.listpids import JobPid
from cockpit.formats.node_history import NodeOutage
from cockpit.formats.scontrol_show import JobDetail, NodeDetail, Pairs, parse_job_detail, parse_node_detail
from cockpit.hosts.base import Host
from cockpit.kept_checks import KeptChecks
from cockpit.models import Fault, Job, Node
from cockpit.sources.on_demand import OnDemand
from cockpit.sources.quotas import read_quotas
from cockpit.sources.slurm import SlurmClient
from cockpit.storage_models import Quota
from cockpit.view import View

if TYPE_CHECKING:
    from cockpit.hosts.pool import NodePool


class Questions:
    """The part of a Cluster that waits for the head or a node: call none of it on the UI thread."""

    config: ClusterConfig
    clock: Clock
    head: Host
    slurm: SlurmClient
    view: View

    def __init__(self) -> None:
        """`config`, `clock`, `head` and `slurm` must be there already."""
        self.kept_checks = KeptChecks(self.config.name, self.clock)
        self._stopped = threading.Event()
        self._pool: NodePool | None = None
        self._pool_lock = threading.Lock()
        self._on_demand = OnDemand(self.slurm, self._open_nodes)

    def wait_stopped(self, seconds: float) -> bool:
        """Wait so long, or until the cluster is stopped; True when it is."""
        return self._stopped.wait(seconds)

    def _open_nodes(self) -> NodePool:
        """The one pool of connections to nodes, opened when it is first wanted, by whoever wants it."""
        from cockpit.hosts.pool import NodePool

        with self._pool_lock:
            if self._pool is None:
                self._pool = NodePool(self.head, self.config.nodes, ssh_config=self.config.ssh_config)
            if self._stopped.is_set():
                self._pool.close()
            return self._pool

    def job_detail(self, job: Job) -> JobDetail:
        """Everything Slurm tells of one job; waits for the head, so never call it on the UI thread."""
        args = ["-d", "show", "job", joins.job_spec(job)]
        return parse_job_detail(self.slurm.read("scontrol", args, f"reading job {job.label}"), job.job_id)

    def node_host(self, name: str) -> Host:
        """A node as the cockpit reaches it, at the address Slurm has for it; connects to nothing yet."""
        address = next((node.address for node in self.view.nodes or () if node.name == name), "")
        return self._open_nodes().node(name, address)

    def look_closely(self, node: str) -> None:
        """Somebody looks at this node."""
        raise NotImplementedError

    def node_detail(self, name: str) -> NodeDetail:
        """Everything Slurm tells of one node; waits for the head, so never call it on the UI thread."""
        self.look_closely(name)
        args = ["-d", "show", "node", name]
        return parse_node_detail(self.slurm.read("scontrol", args, f"reading node {name}"))

    def partition_detail(self, name: str) -> Pairs:
        """Everything Slurm tells of one queue; waits for the head, so never call it on the UI thread."""
        return self._on_demand.partition(name)

    def node_history(self, name: str) -> tuple[NodeOutage, ...]:
        """When a node was down or drained, by whom and why, if accounting keeps it; waits for the head."""
        return self._on_demand.node_history(name)

    def job_pids(self, node: Node, job: Job) -> tuple[JobPid, ...]:
        """The job's processes on one of its nodes, from Slurm there; waits for that node. Raises FaultError."""
        try:
            return self._on_demand.job_pids(node, job)
        finally:
            self.let_go(node.name)

    def quotas(self, node: str, users: Sequence[str], path: str) -> dict[str, Quota | Fault]:
        """What these users have and may have on a Lustre mount of that node, or why not; waits for the node."""
        try:
            return read_quotas(self.node_host(node), users, path)
        finally:
            self.let_go(node)

    def let_go(self, name: str) -> None:
        """End the connection to a node that is not watched: nobody would see it come back as another machine."""
        watched = self.view.fleet.nodes if self.view.fleet else {}
        if self._pool is not None and name not in watched:
            self._pool.forget(name)
