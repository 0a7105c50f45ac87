"""Many nodes through one head over real sshds: what the head is asked for, what it costs, how long a diagnosis is."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.diagnosis.diagnose import diagnose
from cockpit.gather import Gatherer
from cockpit.hosts.budget import CONNECTIONS_PER_S, SESSIONS_MAX
from cockpit.hosts.transport import Transport
from cockpit.models import FaultError
from tests.bench.sshd_fleet import SshdFleet

START_S = 240.0
_TICKS = os.sysconf("SC_CLK_TCK")
# Nodes of the demo's cluster whose big job then has so many nodes.
_SIZES = {3: 9, 64: 256}


def measure_pool(nodes: int, seconds: float) -> dict[str, Any]:
    """Watch so many nodes, each with a real probe, through one head: until all have told something, and then on."""
    # More than are wanted, since some of the demo's are down.
    with fleet(nodes * 5 // 4 + 4) as made, Edge() as edge:
        chosen = frozenset(node.name for node in made.nodes[:nodes])
        with watched(made, chosen) as cluster:
            began = time.monotonic()
            wait(
                lambda: edge.note_sessions(cluster) and len(_telling(cluster)) >= nodes,
                START_S,
                f"{nodes} nodes to tell of their GPUs",
            )
            took_s = time.monotonic() - began
            found = _costs(made, cluster, edge, seconds)
            told = len(_telling(cluster))
        return {
            "pool_nodes": told,
            "pool_all_s": took_s,
            "pool_per_s": edge.worst_second(),
            "pool_per_s_budget": CONNECTIONS_PER_S,
            "pool_sessions": edge.sessions_most,
            "pool_sessions_budget": SESSIONS_MAX,
            "pool_logins": made.head.log.read_text().count("Accepted publickey"),
            **found,
        }


@contextmanager
def fleet(nodes: int) -> Iterator[SshdFleet]:
    """The sshds in a folder that is gone with them."""
    with tempfile.TemporaryDirectory() as folder, SshdFleet(Path(folder), nodes) as made:
        yield made


@contextmanager
def watched(made: SshdFleet, nodes: frozenset[str]) -> Iterator[Cluster]:
    """A cluster that polls, and watches these nodes."""
    cluster = Cluster(next(iter(load_config(made.config).clusters.values())))
    cluster.only_nodes = nodes
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def _telling(cluster: Cluster) -> list[str]:
    watches = cluster.view.fleet.nodes.values() if cluster.view.fleet else ()
    return [each.node for each in watches if each.reading and each.reading.gpus and not each.fault]


def wait(true: Callable[[], bool], seconds: float, what: str) -> None:
    """Until it is true; raises TimeoutError."""
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            raise TimeoutError(f"no sign of {what} within {seconds:g} s")
        time.sleep(0.1)


def _costs(made: SshdFleet, cluster: Cluster, edge: Edge, seconds: float) -> dict[str, Any]:
    """What watching costs while nothing else happens."""
    bytes_before, own, head, began = edge.received(cluster), time.process_time(), _sshd_cpu_s(made), time.monotonic()
    until = began + seconds
    while time.monotonic() < until:
        edge.note_sessions(cluster)
        time.sleep(0.1)
    took_s = time.monotonic() - began
    return {
        "pool_cpu_pct": 100 * (time.process_time() - own) / took_s,
        "pool_head_cpu_pct": 100 * (_sshd_cpu_s(made) - head) / took_s,
        "pool_bytes_per_s": (edge.received(cluster) - bytes_before) / took_s,
        "pool_threads": threading.active_count(),
        "pool_load": os.getloadavg()[0],
    }


def _sshd_cpu_s(made: SshdFleet) -> float:
    """Processor seconds of the head's sshd processes that serve us."""
    total = 0
    for pid in made.head.sessions():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        if "(sshd" in stat:
            total += sum(int(field) for field in stat.rsplit(")", 1)[1].split()[11:13])
    return total / _TICKS


class Edge:
    """Counts what goes out to the head, where paramiko is asked for it."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.sessions_most = 0
        real, times = Transport.open_channel, self.times

        def counted(transport: Transport, kind: str, *args: Any, **options: Any) -> Any:
            if kind == "direct-tcpip":
                times.append(time.monotonic())
            return real(transport, kind, *args, **options)

        self._patch = mock.patch.object(Transport, "open_channel", counted)

    def __enter__(self) -> Edge:
        self._patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.stop()

    def worst_second(self) -> int:
        """The most connections through the head that began within one second."""
        times = sorted(self.times)
        return max((sum(1 for at in times if first <= at < first + 1.0) for first in times), default=0)

    def note_sessions(self, cluster: Cluster) -> bool:
        """Look how many sessions of the head are in use; False before there is a connection."""
        if (login := _login(cluster)) is None:
            return False
        self.sessions_most = max(self.sessions_most, SESSIONS_MAX - login._sessions._value)
        return True

    def received(self, cluster: Cluster) -> int:
        """Bytes that the head has sent so far."""
        return int(_login(cluster).wire.received)


def _login(cluster: Cluster) -> Any:
    """The connection to the head, None before there is one."""
    head: Any = cluster.head
    return head._host._dialer._current if head._host is not None else None


def measure_diagnosis(nodes: int) -> dict[str, Any]:
    """From the key to the verdict on a hung job of so many nodes: with nodes to connect to first, and watched ones."""
    with fleet(_SIZES[nodes]) as made:
        assert made.sim.lead_id is not None
        job = made.sim.jobs[made.sim.lead_id]
        if len(job.hosts) != nodes:
            raise ValueError(f"the hung job has {len(job.hosts)} nodes instead of {nodes}")
        made.lay_out(job.hosts, record=nodes > 8)
        made.nvml.values(util=100, mem_util=1, power_w=140)  # they wait in a collective operation
        found: dict[str, Any] = {}
        cluster = Cluster(next(iter(load_config(made.config).clusters.values())), watch_gpus=False)
        try:
            cluster.read_once()
            _diagnose(cluster, job.job_id, nodes, "diagnosis_cold", found)
        except ValueError as error:  # on a busy machine; the other one has no logins to wait for
            found["diagnosis_cold_failed"] = str(error)
        finally:
            cluster.stop()
        with watched(made, frozenset(job.hosts)) as cluster:
            wait(lambda: len(_telling(cluster)) >= nodes, START_S, f"{nodes} nodes to tell of their GPUs")
            _diagnose(cluster, job.job_id, nodes, "diagnosis", found)
        return {**found, "pool_load": os.getloadavg()[0]}


def _diagnose(cluster: Cluster, job: int, nodes: int, figure: str, found: dict[str, Any]) -> None:
    """Note the seconds until all nodes were asked, and until the verdict; raises ValueError when that is not right."""
    began = time.monotonic()
    try:
        gathered = Gatherer(cluster, str(job)).run()
    except FaultError as error:
        raise ValueError(error.fault.line()) from error
    told = diagnose(gathered)
    took_s = time.monotonic() - began
    asked = [node.asked_at for node in gathered.nodes if node.asked_at is not None]
    if len(asked) == nodes:
        found[f"{figure}_asked_s"] = max(asked) - gathered.taken_at
    if told.verdict.state != "hung" or len(told.verdict.ranks) != 1:
        raise ValueError(f"after {took_s:.1f} s over {nodes} nodes no verdict: {told.verdict.sentence}")
    found[f"{figure}_s"] = took_s


def main() -> None:
    """`python -m tests.bench.pool N`: one size, printed."""
    import json
    import sys

    nodes = int(sys.argv[1])
    if sys.argv[2:] == ["diagnosis"]:
        print(json.dumps(measure_diagnosis(nodes), indent=1))
    else:
        print(json.dumps(measure_pool(nodes, 20.0), indent=1))


if __name__ == "__main__":
    main()
