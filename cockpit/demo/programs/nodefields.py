"""Every node field that sinfo can print, by its -O name and its -o letter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.demo.machines import (
    CORES_PER_SOCKET,
    CPUS,
    GPU_TYPE,
    GPUS,
    MEM_MIB,
    SLURM_VERSION,
    SOCKETS,
    THREADS_PER_CORE,
    SimNode,
)
from cockpit.demo.programs import nodestate
from cockpit.demo.programs.partitions import PartitionSetup
from cockpit.demo.programs.spelling import gres_used, stamp
from cockpit.demo.programs.table import Field
from cockpit.formats.hostlist import fold


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One line of sinfo: nodes that look alike in every printed field, and their partition."""

    nodes: tuple[SimNode, ...]
    partition: PartitionSetup
    env: Mapping[str, str]
    available: str = "up"  # up, down, drain or inact

    @property
    def one(self) -> SimNode:
        """Any of the nodes; fields that differ between nodes keep them in rows of their own."""
        return self.nodes[0]


def unusable(node: SimNode) -> bool:
    """True for a node whose free CPUs count as `other`."""
    return node.drain or node.down or node.failing or bool(node.reboot)


def cpus_state(row: NodeRow) -> str:
    """CPUs of the row as allocated/idle/other/total."""
    allocated = sum(node.cpus_used for node in row.nodes)
    idle = sum(CPUS - node.cpus_used for node in row.nodes if not unusable(node))
    total = CPUS * len(row.nodes)
    return f"{allocated}/{idle}/{total - allocated - idle}/{total}"


def _counts(row: NodeRow) -> tuple[int, int, int, int]:
    allocated = sum(1 for node in row.nodes if node.shares and not node.down)
    idle = sum(1 for node in row.nodes if not node.shares and not unusable(node))
    return allocated, idle, len(row.nodes) - allocated - idle, len(row.nodes)


def cpu_load(node: SimNode) -> str:
    """A load that follows the allocation; 0.00 where slurmd does not answer."""
    if not node.registered or not node.responding:
        return "0.00"
    return f"{node.cpus_used * 0.32 + 0.1 + node.index % 7 * 0.13:.2f}"


def free_mem(node: SimNode) -> str:
    """Free memory in MiB as slurmd told it last; N/A when it never registered."""
    if not node.registered:
        return "N/A"
    return str(MEM_MIB - 21_000 - node.index * 37 - int(node.mem_used_mib * 0.55))


def version(node: SimNode) -> str:
    return SLURM_VERSION if node.registered else "N/A"


def _starred(row: NodeRow) -> str:
    return row.partition.starred


_NODE: dict[str, Field[NodeRow]] = {
    "NodeList": Field("NODELIST", lambda row: fold(node.name for node in row.nodes)),
    "NodeAddr": Field("NODE_ADDR", lambda row: fold(node.address for node in row.nodes)),
    "NodeHost": Field("HOSTNAMES", lambda row: fold(node.name for node in row.nodes)),
    "Nodes": Field("NODES", lambda row: str(len(row.nodes))),
    "NodeAIOT": Field("NODES(A/I/O/T)", lambda row: "/".join(map(str, _counts(row)))),
    "NodeAI": Field("NODES(A/I)", lambda row: "/".join(map(str, _counts(row)[:2]))),
    "CPUsState": Field("CPUS(A/I/O/T)", cpus_state),
}
SUMMED = frozenset(_NODE)  # fields that a group of nodes shows as one value

_FIELDS: dict[str, Field[NodeRow]] = {
    **_NODE,
    "PartitionName": Field("PARTITION", lambda row: row.partition.name),
    "Partition": Field("PARTITION", _starred),
    "Available": Field("AVAIL", lambda row: row.available),
    "Time": Field("TIMELIMIT", lambda row: row.partition.max_time_short),
    "DefaultTime": Field("DEFAULTTIME", lambda row: "n/a"),
    "PriorityTier": Field("PRIO_TIER", lambda row: str(row.partition.priority_tier)),
    "PriorityJobFactor": Field("PRIO_JOB_FACTOR", lambda row: "1"),
    "Size": Field("JOB_SIZE", lambda row: "1-infinite"),
    "Root": Field("ROOT", lambda row: "no"),
    "Groups": Field("GROUPS", lambda row: "all"),
    "OverSubscribe": Field("OVERSUBSCRIBE", lambda row: "NO"),
    "PreemptMode": Field("PREEMPT_MODE", lambda row: "OFF"),
    "Cluster": Field("CLUSTER", lambda row: ""),
    "StateLong": Field("STATE", lambda row: nodestate.long_state(row.one)),
    "StateComplete": Field("STATECOMPLETE", lambda row: nodestate.complete(row.one)),
    "StateCompact": Field("STATE", lambda row: nodestate.short_state(row.one)),
    "Gres": Field("GRES", lambda row: f"gpu:{GPU_TYPE}:{GPUS}"),
    "GresUsed": Field("GRES_USED", lambda row: gres_used(row.one)),
    "CPUs": Field("CPUS", lambda row: str(CPUS)),
    "CPUsLoad": Field("CPU_LOAD", lambda row: cpu_load(row.one)),
    "Sockets": Field("SOCKETS", lambda row: str(SOCKETS)),
    "Cores": Field("CORES", lambda row: str(CORES_PER_SOCKET)),
    "Threads": Field("THREADS", lambda row: str(THREADS_PER_CORE)),
    "SocketCoreThread": Field("S:C:T", lambda row: f"{SOCKETS}:{CORES_PER_SOCKET}:{THREADS_PER_CORE}"),
    "Memory": Field("MEMORY", lambda row: str(MEM_MIB)),
    "AllocMem": Field("ALLOCMEM", lambda row: str(row.one.mem_used_mib)),
    "FreeMem": Field("FREE_MEM", lambda row: free_mem(row.one)),
    "Disk": Field("TMP_DISK", lambda row: "0"),
    "Version": Field("VERSION", lambda row: version(row.one)),
    "Port": Field("PORT", lambda row: "6818"),
    "Features": Field("AVAIL_FEATURES", lambda row: row.one.features),
    "features_act": Field("ACTIVE_FEATURES", lambda row: row.one.features),
    "Weight": Field("WEIGHT", lambda row: "1"),
    "Reservation": Field("RESERVATION", lambda row: ",".join(row.one.reservations)),
    "User": Field("USER", lambda row: row.one.reason_by or "Unknown"),
    "UserLong": Field("USER", lambda row: f"{row.one.reason_by}(0)" if row.one.reason_by else "Unknown"),
    "Timestamp": Field("TIMESTAMP", lambda row: stamp(row.one.reason_at, row.env, "Unknown")),
    "Comment": Field("COMMENT", lambda row: "(null)"),
    "Extra": Field("EXTRA", lambda row: "(null)"),
    "Reason": Field("REASON", lambda row: row.one.reason or "none"),
}

LONG = {name.lower(): field for name, field in _FIELDS.items()}
_LETTERS = {
    "a": "Available",
    "A": "NodeAI",
    "b": "features_act",
    "c": "CPUs",
    "C": "CPUsState",
    "d": "Disk",
    "D": "Nodes",
    "e": "FreeMem",
    "E": "Reason",
    "f": "Features",
    "F": "NodeAIOT",
    "G": "Gres",
    "h": "OverSubscribe",
    "H": "Timestamp",
    "l": "Time",
    "m": "Memory",
    "n": "NodeHost",
    "N": "NodeList",
    "o": "NodeAddr",
    "O": "CPUsLoad",
    "P": "Partition",
    "R": "PartitionName",
    "t": "StateCompact",
    "T": "StateLong",
    "u": "User",
    "U": "UserLong",
    "v": "Version",
    "w": "Weight",
    "z": "SocketCoreThread",
}
SHORT = {letter: _FIELDS[name] for letter, name in _LETTERS.items()}
_NAMES = {id(field): name for name, field in _FIELDS.items()}


def name_of(field: Field[NodeRow]) -> str:
    """The -O name of a field."""
    return _NAMES[id(field)]
