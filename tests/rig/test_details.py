"""From a running job to the pid of any of its ranks on a real Slurm: by the probes, or else by Slurm itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.models import FaultError
from screens.detail_registry import details, read_more
from screens.lines import Line, Subject, links
from tests.rig import Rig
from tests.rig.files import USERS
from tests.rig.nvml import missing

pytestmark = [
    pytest.mark.rig,
    pytest.mark.xdist_group("rig"),
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


@pytest.fixture(scope="module")
def cluster(rig: Rig) -> Iterator[Cluster]:
    config = load_config(rig.config("details.yaml", refresh={"slurm": 1}))
    found = Cluster(next(iter(config.clusters.values())))
    found.start()
    eventually(lambda: len([row for row in found.view.gpu_rows if row.sample]) == 8 * len(rig.static_nodes))
    yield found
    found.stop()


def eventually(true: Callable[[], object], timeout_s: float = 30.0) -> None:
    until = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < until, "did not come true in time"
        time.sleep(0.05)


def text(lines: list[Line]) -> str:
    return "\n".join("".join(piece if isinstance(piece, str) else piece[0] for piece in line) for line in lines)


def ranks(rig: Rig, job: int, nodes: tuple[str, ...]) -> dict[int, tuple[str, int, int]]:
    """Rank -> node, local rank, pid, as `scontrol listpids` on each node tells them."""
    found: dict[int, tuple[str, int, int]] = {}
    for node in nodes:
        for line in rig.ssh(node, ["scontrol", "listpids", str(job)]).stdout.decode().splitlines()[1:]:
            pid, _, step, local, rank = line.split()
            if step == "0" and rank.isdigit():
                found[int(rank)] = (node, int(local), int(pid))
    return found


def test_from_a_job_to_the_pid_of_rank_3_by_slurm_and_by_the_probes(rig: Rig, cluster: Cluster) -> None:
    nodes = rig.static_nodes[:2]
    job = rig.submit(
        "srun -n 8 sleep 300",
        nodes=2,
        ntasks=8,
        ntasks_per_node=4,
        gpus_per_node="h100:4",
        nodelist=",".join(nodes),
        uid=USERS["bob"],
    )
    told: dict[int, tuple[str, int, int]] = {}

    def all_there() -> bool:
        told.update(ranks(rig, job, nodes))
        return len(told) == 8

    rig.wait_for(all_there, 30, "eight ranks")
    subject = Subject("job", str(job))
    eventually(lambda: f"where: 2 nodes\n  nodes        {'gpu-st-p5-[1-2]'}" in text(details(cluster, subject)))

    # Nothing of it is on a GPU yet, so only Slurm can tell.
    asked = text(read_more(cluster, subject))
    assert "processes by Slurm on its nodes" in asked
    for rank, (node, _, pid) in told.items():
        assert f"rank {rank}  pid {pid}" in asked.partition(f"  {node}")[2]
    assert "output       /" in asked

    for node, local, pid in told.values():
        rig.nvml(node).process(local, pid, 2**30)
    eventually(lambda: "ranks        0-7" in text(details(cluster, subject)))
    lines = details(cluster, subject)
    for rank, (node, local, pid) in told.items():
        [line] = [line for line in lines if f"rank {rank}  pid {pid}  bob" in text([line]) and "GPU" in text([line])]
        assert links(line) == [Subject("gpu", f"{node}/{local}")]
    assert "0-7, 4 on each of 2 nodes" in text(lines)
    assert "processes by Slurm" not in text(read_more(cluster, subject))


def test_a_job_that_has_ended_and_a_node_that_is_silent_are_faults_in_words(rig: Rig, cluster: Cluster) -> None:
    node = rig.static_nodes[3]
    job = rig.submit("srun -n 1 sleep 300", nodes=1, ntasks=1, gpus_per_node="h100:1", nodelist=node)
    rig.wait_for(lambda: ranks(rig, job, (node,)), 30, "one rank")
    subject = Subject("job", str(job))
    eventually(lambda: "where: 1 node" in text(details(cluster, subject)))
    rig.freeze(node)
    try:
        told = text(read_more(cluster, subject))
        assert f"not told     {node}: " in told
        assert f"JobId={job}" in told
    finally:
        rig.thaw(node)
    rig.slurm("scancel", str(job))
    eventually(lambda: "has left the queue" in text(details(cluster, subject)))
    assert read_more(cluster, subject) == []


def test_records_of_nodes_and_queues(rig: Rig, cluster: Cluster) -> None:
    node = rig.static_nodes[0]
    told = text(read_more(cluster, Subject("node", node)))
    assert f"NodeName={node}" in told
    assert "no accounting database" in told
    assert "PartitionName=gpu" in text(read_more(cluster, Subject("queue", "gpu")))
    with pytest.raises(FaultError):
        read_more(cluster, Subject("node", "nope"))
