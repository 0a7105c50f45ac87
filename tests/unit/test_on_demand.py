"""What is read only when details are open: processes on nodes, a node's history, a queue's record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cockpit.demo.programs.registry import run
from cockpit.demo.programs.table import Answer
from cockpit.demo.sim import Simulation
from cockpit.formats.listpids import JobPid, parse_listpids, says_none
from cockpit.hosts.base import Completed
from cockpit.models import FaultError, FaultKind, Health, Job, Node, NodeState
from cockpit.sources.on_demand import OnDemand
from tests.still import NOON, StillHost, still_cluster

NODE = Node("gpu-1", NodeState("mixed"), "mixed", Health.OK, address="10.0.0.1")
JOB = Job(7, "R", hostlist="gpu-1")
HEADER = b"PID      JOBID    STEPID   LOCALID GLOBALID\n"
TABLE = HEADER + b"63       7        0        0       3       \n"


class Pool:
    """Answers for every node alike; `asked` is what was run where."""

    name = "gpu-1"

    def __init__(self, *answers: Completed) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def node(self, name: str, address: str = "") -> Any:
        self.asked.append((f"{name}@{address}", ()))
        return self

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        self.asked.append(("run", tuple(argv)))
        return self.answers.pop(0)

    def programs(self) -> list[str]:
        return [argv[0] for what, argv in self.asked if what == "run"]


def on_demand(pool: Pool) -> OnDemand:
    cluster, _, _ = still_cluster()
    return OnDemand(cluster.slurm, lambda: pool)


def test_processes_come_from_slurm_on_the_node_itself_by_the_real_job_id() -> None:
    pool = Pool(Completed(0, TABLE, b"", 0.1))
    assert on_demand(pool).job_pids(NODE, JOB) == (JobPid(63, 7, "0", 0, 3),)
    assert ("gpu-1@10.0.0.1", ()) in pool.asked
    assert pool.asked[-1] == ("run", ("/opt/slurm/bin/scontrol", "listpids", "7"))


def test_where_slurm_lies_elsewhere_on_the_node_it_is_found_by_name() -> None:
    pool = Pool(Completed(127, b"", b"not found", 0.1), Completed(0, TABLE, b"", 0.1))
    assert len(on_demand(pool).job_pids(NODE, JOB)) == 1
    assert pool.programs() == ["/opt/slurm/bin/scontrol", "scontrol"]


def test_a_job_without_a_process_there_is_no_failure_and_a_refusal_is_one() -> None:
    none = Completed(1, HEADER, b"JobId=7 does not exist on node (null).\n", 0.1)
    assert on_demand(Pool(none)).job_pids(NODE, JOB) == ()
    with pytest.raises(FaultError) as refused:
        on_demand(Pool(Completed(1, HEADER, b"slurm error: Access/permission denied\n", 0.1))).job_pids(NODE, JOB)
    assert refused.value.fault.kind is FaultKind.DENIED
    with pytest.raises(FaultError) as late:
        on_demand(Pool(Completed(124, b"", b"", 10.0))).job_pids(NODE, JOB)
    assert late.value.fault.kind is FaultKind.TIMEOUT


def history(head: StillHost, answer: Completed) -> None:
    head.answers["sacctmgr"] = lambda argv: answer


def test_a_nodes_history_says_when_it_cannot_be_read() -> None:
    cluster, head, _ = still_cluster()
    history(head, Completed(0, b"1796004448|Unknown|DOWN*|root(0)|dead\n", b"", 0.1))
    [outage] = cluster.node_history("gpu-1")
    assert outage.reason == "dead"
    refused = b"sacctmgr: error: Sending PersistInit msg: Connection refused\n"
    history(head, Completed(1, b"", refused, 0.1))
    with pytest.raises(FaultError) as gone:
        cluster.node_history("gpu-1")
    assert "slurmdbd" in gone.value.fault.why
    off = (
        b"You are not running a supported accounting_storage plugin\nOnly 'accounting_storage/slurmdbd' is supported.\n"
    )
    history(head, Completed(1, b"", off, 0.1))
    with pytest.raises(FaultError) as missing:
        cluster.node_history("gpu-1")
    assert missing.value.fault.kind is FaultKind.MISSING


def test_a_queues_record_is_read_whole() -> None:
    cluster, _, _ = still_cluster()
    record = dict(cluster.partition_detail("gpu"))
    assert record["PartitionName"] == "gpu"
    assert "MaxTime" in record
    with pytest.raises(FaultError):
        cluster.partition_detail("nowhere")


def test_the_demo_answers_as_slurm_does() -> None:
    sim = Simulation(clock=lambda: NOON)
    job = next(one for one in sim.jobs.values() if one.job_id == sim.lead_id)

    def ask(host: str, job_id: int) -> Answer:
        return run(sim, ["/opt/slurm/bin/scontrol", "listpids", str(job_id)], {}, host)

    told = parse_listpids(ask(job.hosts[1], job.job_id).stdout)
    assert [one.rank for one in told] == list(range(8, 16))
    elsewhere = ask(job.hosts[1], 1)
    assert (elsewhere.rc, says_none(elsewhere.stdout, elsewhere.stderr)) == (1, True)
    assert ask("demo-head", job.job_id).rc == 1
