"""NCCL tests through a real Slurm over real SSH: a run on two nodes, sweeps over six, and nothing left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.demo.nccl_stand_in import Speeds
from cockpit.formats.nccl_tests import NcclReader
from cockpit.hosts.base import Completed
from cockpit.nccl.models import Judgement
from cockpit.nccl.rounds import (
    SWEEP_PREFIX,
    SweepDriver,
    SweepRun,
    allocation_of,
    hold_argv,
    keeper_argv,
    sweep_request,
)
from cockpit.nccl.run import (
    NcclRequest,
    cancel_named_argv,
    follow_argv,
    job_id_of,
    mistakes,
    of_nodes,
    output_path,
    parse_node_line,
    submit_argv,
)
from cockpit.nccl.shape import shape_of
from cockpit.nccl.sweep import Sweep, SweepOptions
from cockpit.nccl.sweep_result import SweepResult, sweep_result
from cockpit.nccl.verdict import judge
from tests.rig import Rig, Spec
from tests.rig.nccl import BINARY, install, set_speeds

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]
GPUS = 2  # enough to be a test, and quick on a machine with two cores


@pytest.fixture(scope="module")
def six() -> Iterator[Rig]:
    with Rig(spec=Spec(static=6, dynamic=0, gpus=GPUS)) as rig:
        install(rig, rig.static_nodes)
        yield rig


@pytest.fixture(autouse=True)
def settled(six: Rig) -> Iterator[None]:
    set_speeds(six, Speeds())
    yield
    six.settle()


@pytest.fixture
def cluster(six: Rig) -> Iterator[Cluster]:
    found = Cluster(next(iter(load_config(six.config("nccl.yaml")).clusters.values())))
    try:
        yield found
    finally:
        found.stop()


def request(rig: Rig, **changes: object) -> NcclRequest:
    values = {"nodes": rig.static_nodes[:2], "gpus_per_node": GPUS, "binary": BINARY, "mpi": "none", **changes}
    found = NcclRequest(output_dir=str(rig.state / "home/root"), **values)  # type: ignore[arg-type]
    assert mistakes(found) == ()
    return found


def on_head(cluster: Cluster, *argv: str) -> Completed:
    return cluster.head.run(argv, deadline_s=30)


def queue(rig: Rig) -> list[str]:
    return rig.slurm("squeue", "-h", "-a", "-o", "%j %T").stdout.decode().split("\n")[:-1]


def nothing_left(rig: Rig) -> bool:
    reservations = rig.slurm("scontrol", "-o", "show", "reservation").stdout.decode()
    return queue(rig) == [] and "cockpit" not in reservations


def test_a_run_on_two_nodes_streams_its_rows_and_is_judged(six: Rig, cluster: Cluster) -> None:
    test = request(six)
    done = on_head(cluster, *submit_argv(test))
    job = job_id_of(done.stdout.decode())
    assert job is not None, done.stderr
    reader, rows, nodes = NcclReader(), 0, []
    stream = cluster.head.stream(follow_argv(output_path(test, job)), open_deadline_s=30)
    try:
        for line in stream:
            if (facts := parse_node_line(line.decode())) is not None:
                nodes.append(facts.node)
            rows += len(reader.feed(line))
            runs = reader.runs()
            if runs and runs[-1].complete:
                break
    finally:
        stream.close()
    (run,) = reader.runs()
    assert (rows, sorted(nodes), run.hosts) == (4, list(test.nodes), test.nodes)
    assert run.evidence.transport == "efa"
    verdict = judge(run, shape_of(run))
    assert verdict.shape.instance_type == "p5.48xlarge"
    assert verdict.word is Judgement.UNJUDGED  # two of eight GPUs: nothing is expected of that
    assert verdict.busbw_large_gbs == pytest.approx(470, rel=0.02)
    six.wait_for(lambda: queue(six) == [])


def test_cancelling_a_run_by_its_name_leaves_no_job(six: Rig, cluster: Cluster) -> None:
    set_speeds(six, Speeds(row_s=30))
    test = request(six)
    assert on_head(cluster, *submit_argv(test)).rc == 0
    six.wait_for(lambda: queue(six) == [f"{test.name} RUNNING"])
    assert on_head(cluster, *cancel_named_argv(test.name)).rc == 0
    six.wait_for(lambda: nothing_left(six))


def hold(cluster: Cluster, test: NcclRequest, name: str) -> int:
    done = on_head(cluster, *hold_argv(test, name, 10))
    job = allocation_of((done.stderr + done.stdout).decode())
    assert done.rc == 0, done.stderr
    assert job is not None
    return job


def sweep_of(rig: Rig, cluster: Cluster, **options: bool) -> SweepResult:
    test = sweep_request(of_nodes(request(rig), rig.static_nodes))
    sweep = Sweep(test.nodes, SweepOptions(**options))  # type: ignore[arg-type]
    job = hold(cluster, test, f"{SWEEP_PREFIX}{time.monotonic_ns()}")
    SweepRun(cluster.head, SweepDriver(sweep, gone=lambda: down(rig)), keeper_argv(test, job)).run()
    result = sweep_result(sweep)
    print(result.summary)
    rig.wait_for(lambda: nothing_left(rig))
    return result


def down(rig: Rig) -> dict[str, str]:
    shown = rig.slurm("sinfo", "-h", "-a", "-N", "-O", "NodeList:0|,StateComplete:0").stdout.decode()
    states = dict(line.split("|", 1) for line in shown.splitlines())
    return {node: state for node, state in states.items() if "down" in state or "not_responding" in state}


def test_a_sweep_over_six_healthy_nodes_finds_nothing(six: Rig, cluster: Cluster) -> None:
    result = sweep_of(six, cluster)
    assert result.findings == ()
    assert (result.jobs, result.rounds) == (6 + 15, 6)
    assert "21 jobs in 6 rounds" in result.summary


def test_one_slow_node_is_named(six: Rig, cluster: Cluster) -> None:
    bad = six.static_nodes[3]
    set_speeds(six, Speeds(network={bad: 0.42}))
    result = sweep_of(six, cluster)
    assert result.bad_nodes == (bad,)
    assert [finding.kind for finding in result.findings] == ["slow_node"]
    assert f"{bad}: 0.4" in result.findings[0].reason


def test_one_slow_pair_is_named_and_no_node(six: Rig, cluster: Cluster) -> None:
    one, other = six.static_nodes[1], six.static_nodes[4]
    set_speeds(six, Speeds(pairs={f"{one},{other}": 0.5}))
    result = sweep_of(six, cluster)
    assert result.bad_nodes == ()
    assert [(finding.kind, set(finding.nodes)) for finding in result.findings] == [("slow_pair", {one, other})]


def test_one_failing_node_is_named(six: Rig, cluster: Cluster) -> None:
    bad = six.static_nodes[2]
    set_speeds(six, Speeds(failing=[bad]))
    result = sweep_of(six, cluster)
    assert result.bad_nodes == (bad,)
    assert "fabricmanager" in result.findings[0].text


def test_a_node_that_dies_in_the_middle_blames_nobody(six: Rig, cluster: Cluster) -> None:
    dead = six.static_nodes[5]
    test = sweep_request(of_nodes(request(six), six.static_nodes))
    sweep = Sweep(test.nodes)
    job = hold(cluster, test, f"{SWEEP_PREFIX}dies")
    killed = threading.Event()

    def kill_it(*_: object) -> None:
        if sweep.rounds == 2 and not killed.is_set():
            killed.set()
            six.kill_node(dead)
            six.slurm("scontrol", "update", f"nodename={dead}", "state=down", "reason=gone")

    driver = SweepDriver(sweep, gone=lambda: down(six), on_row=kill_it)
    SweepRun(cluster.head, driver, keeper_argv(test, job)).run()
    result = sweep_result(sweep)
    print(result.summary)
    assert result.bad_nodes == ()
    assert [(finding.kind, finding.nodes) for finding in result.findings] == [("lost_node", (dead,))]
    assert set(result.scores) >= set(six.static_nodes) - {dead}


def test_cancelling_a_sweep_in_the_middle_leaves_nothing(six: Rig, cluster: Cluster) -> None:
    set_speeds(six, Speeds(row_s=30))
    test = sweep_request(of_nodes(request(six), six.static_nodes))
    sweep = Sweep(test.nodes)
    run = SweepRun(cluster.head, SweepDriver(sweep), keeper_argv(test, hold(cluster, test, f"{SWEEP_PREFIX}x")))
    thread = threading.Thread(target=run.run, daemon=True)
    thread.start()
    six.wait_for(lambda: len(rig_steps(six)) >= 6)
    run.cancel()
    six.wait_for(lambda: nothing_left(six))
    thread.join(20)
    assert not thread.is_alive()
    assert sweep.open_trials == ()
    assert sweep_result(sweep).bad_nodes == ()


def rig_steps(rig: Rig) -> list[str]:
    return rig.slurm("squeue", "-h", "-s", "-o", "%i").stdout.decode().split()


def test_an_allocation_that_is_not_to_be_had_at_once_leaves_nothing(six: Rig, cluster: Cluster) -> None:
    six.submit("sleep 300", nodelist=six.static_nodes[0], exclusive=True)
    six.wait_for(lambda: len(queue(six)) == 1)
    argv = [word.replace("--immediate=15", "--immediate=1") for word in hold_argv(request(six), f"{SWEEP_PREFIX}y", 5)]
    done = on_head(cluster, *argv)
    assert done.rc != 0
    assert len(queue(six)) == 1
