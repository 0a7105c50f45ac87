"""From what somebody asks for to an NCCL test that can be planned: which nodes, which program, what it lacks.

One `Bench` serves one dialog or one command line: it keeps the job's name and what was found on a node, so that
planning again is quick and gives the same steps.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from actions.errors import ActionError, Refusal
from actions.nccl import for_nodes, run_action, sweep_action
from actions.spec import Options, Plan, Scope, Targets
from actions.targets import node_targets, nodes_by_name
from cockpit.formats.hostlist import fold
from cockpit.models import FaultError, Node
from cockpit.nccl.discovery import Found, best_binary, best_mpi, discovery_argv, missing, parse_discovery
from cockpit.nccl.rounds import SWEEP_PREFIX, sweep_request
from cockpit.nccl.run import GIB, NAME_PREFIX, NcclRequest, idle_nodes, parse_size
from cockpit.nccl.sweep import MOST_NODES, SweepOptions
from cockpit.words import plural

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

LOOK_S = 20.0
USUAL_MAX_BYTES = 8 * GIB


@dataclass(frozen=True, slots=True)
class NcclOptions(Options):
    """What one may choose; "" and None are the usual. `program` is a binary's full path, or a container."""

    test: str = ""  # the collective
    size: str = ""  # the largest, or smallest:largest
    nodes: str = ""  # a hostlist
    program: str = ""
    queue: str = ""
    ring: bool = False
    mpi: str = ""
    account: str = ""
    reservation: str = ""


class Bench:
    """Plans a test, or with `sweep` the job that holds a sweep's nodes; asks a node what it has, so never on the UI."""

    def __init__(self, cluster: Cluster, *, sweep: bool = False, default: tuple[str, ...] = ()) -> None:
        self.cluster, self.sweep, self.default = cluster, sweep, default
        self.name = (SWEEP_PREFIX if sweep else NAME_PREFIX) + secrets.token_hex(4)
        self._found: dict[str, Found] = {}

    def plan(self, options: NcclOptions) -> Plan:
        """The plan; raises ActionError with what is wrong or missing, FaultError when the head does not answer."""
        targets = self._targets(options)
        test, notes = self._request(options, targets)
        action = sweep_action(test, self.sweep_options(test), name=self.name) if self.sweep else run_action(test)
        plan = action.plan(self.cluster, targets, options)
        fixed = replace(options, nodes=targets.folded)  # what is free may be others by the time it runs
        return replace(plan, warnings=(*plan.warnings, *notes), again=lambda: self.plan(fixed))

    def request_of(self, plan: Plan) -> NcclRequest:
        """The test that a plan of this bench submits, on the very nodes that it names."""
        assert isinstance(plan.options, NcclOptions)
        test, _ = self._request(plan.options, plan.targets)
        nodes = plan.steps[0].subjects
        done = for_nodes(self.cluster, Targets(Scope.NODE, nodes), test)
        return sweep_request(done) if self.sweep else done

    def sweep_options(self, test: NcclRequest) -> SweepOptions:
        """A single GPU by itself sends nothing, so there it begins with the pairs."""
        return SweepOptions(alone=test.gpus_per_node > 1)

    # -- which nodes

    def _targets(self, options: NcclOptions) -> Targets:
        if options.nodes:
            return node_targets(self.cluster, options.nodes)
        if self.default:
            return Targets(Scope.NODE, self.default)
        free = self._free(options.queue)
        wanted = options.count if options.count is not None else MOST_NODES
        if wanted < 1:
            raise ActionError(Refusal.USAGE, f"{wanted} nodes are none")
        where = f" of queue {options.queue}" if options.queue else ""
        if not free or (options.count is not None and len(free) < wanted):
            text = f"a test disturbs nobody, so it takes idle nodes only: {len(free)}{where} with GPUs are idle"
            raise ActionError(Refusal.REFUSED, f"{text} of {wanted} asked for" if options.count else text)
        return Targets(Scope.NODE, free[:wanted])

    def _free(self, queue: str) -> tuple[str, ...]:
        """Idle nodes that have GPUs; of the most usual kind where they differ."""
        nodes = nodes_by_name(self.cluster)
        if queue and not any(queue in node.partitions for node in nodes.values()):
            raise ActionError(Refusal.USAGE, f"no queue {queue!r} on {self.cluster.config.name}")
        free = [nodes[name] for name in idle_nodes(nodes.values(), partition=queue)[0] if nodes[name].gpus_total]
        counts = [node.gpus_total or 0 for node in free]
        most = max(set(counts), key=counts.count, default=0)
        return tuple(node.name for node in free if node.gpus_total == most)

    # -- which program

    def _request(self, options: NcclOptions, targets: Targets) -> tuple[NcclRequest, tuple[str, ...]]:
        nodes = nodes_by_name(self.cluster)
        some = [nodes[name] for name in targets.names if name in nodes]
        least, most = _sizes(options.size)
        container = options.program if _is_container(options.program) else ""
        test = NcclRequest(
            collective=options.test or "all_reduce",
            algorithm="ring" if options.ring else "default",
            min_bytes=least,
            max_bytes=most,
            binary="" if container else options.program,
            container=container,
            mpi=options.mpi or "pmix",
            partition=options.queue or self._queue(some),
            account=options.account,
            reservation=options.reservation,
            name=self.name if not self.sweep else f"{NAME_PREFIX}{self.name.removeprefix(SWEEP_PREFIX)}",
        )
        return self._equipped(test, options, some)

    def _queue(self, nodes: list[Node]) -> str:
        """A queue that has all of them: "" for Slurm's own default."""
        common = set.intersection(*(set(node.partitions) for node in nodes)) if nodes else set()
        site = self.cluster.view.site
        default = {config.name for config in site.partitions if config.default} if site is not None else set()
        return "" if not common or common & default else min(common)

    def _equipped(
        self, test: NcclRequest, options: NcclOptions, nodes: list[Node]
    ) -> tuple[NcclRequest, tuple[str, ...]]:
        """With the binary and the way to start that a node has; what it lacks ends it, what is unknown is said."""
        if (options.program and options.mpi) or not nodes:
            return test, ()
        name = min(node.name for node in nodes)
        try:
            found = self._look(name)
        except FaultError as error:
            if options.program:
                return test, (f"not looked at what {name} has: {error.fault.why}",)
            text = f"cannot look on {name} which nccl-tests are there: {error.fault.why}; name the program's full path"
            raise ActionError(Refusal.REFUSED, text) from error
        binary = None if options.program else best_binary(found, test.collective)
        equipped = replace(
            test, binary=binary.path if binary else test.binary, mpi=options.mpi or best_mpi(found) or "pmix"
        )
        lacks = missing(equipped, found)
        if options.mpi:  # whoever names it knows that it is there
            lacks = tuple(lack for lack in lacks if "mpi=" not in lack)
        if lacks:
            raise ActionError(Refusal.REFUSED, f"{name} lacks something for this test: {'; '.join(lacks)}")
        return equipped, ()

    def _look(self, name: str) -> Found:
        """What that node has; asked once."""
        if name not in self._found:
            done = self.cluster.node_host(name).run(discovery_argv(), deadline_s=LOOK_S)
            found = parse_discovery(done.stdout)
            if not found.mpi:  # a login on a node often has no srun in its PATH
                said = self.cluster.slurm.run("srun", ["--mpi=list"])
                lines = b"".join(b"mpi\t" + line + b"\n" for line in (said.stdout + said.stderr).splitlines())
                found = replace(found, mpi=parse_discovery(lines.replace(b"srun: ", b"")).mpi)
            self._found[name] = found
        return self._found[name]


def _is_container(program: str) -> bool:
    return program.endswith(".sqsh") or "#" in program or "://" in program


def _sizes(text: str) -> tuple[int, int]:
    """Smallest and largest of `8G`, or `1M:8G`; raises ActionError."""
    least, _, most = text.rpartition(":")
    try:
        largest = parse_size(most) if most else USUAL_MAX_BYTES
        smallest = parse_size(least) if least else min(GIB, largest)
    except ValueError as error:
        raise ActionError(Refusal.USAGE, str(error)) from error
    return smallest, largest


def idle_words(cluster: Cluster, queue: str = "") -> str:
    """For a form: which nodes would be taken."""
    nodes = cluster.view.nodes or ()
    free, _ = idle_nodes(nodes, partition=queue)
    return f"{plural(len(free), 'idle node')}: {fold(free)}" if free else "no node is idle"
