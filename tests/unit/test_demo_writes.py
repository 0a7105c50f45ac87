"""The demo's scontrol and scancel as they change things: texts and exit codes as seen on a real Slurm."""

from __future__ import annotations

import pytest

from cockpit.demo.machines import Power, SimNode
from cockpit.demo.programs.registry import run
from cockpit.demo.programs.table import Answer
from cockpit.demo.sim import Simulation

T0 = 1_795_993_917.0


class Clock:
    now = T0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(name="clock")
def a_clock() -> Clock:
    return Clock()


@pytest.fixture(name="sim")
def a_sim(clock: Clock) -> Simulation:
    return Simulation(clock=clock)


def root(sim: Simulation, *argv: str) -> Answer:
    return run(sim, argv, {}, "demo-head", root=True)


def power(node: SimNode) -> Power:
    return node.power


@pytest.mark.parametrize(
    ("line", "rc", "stderr"),
    [
        (
            "scontrol update nodename=gpu-st-p5-1 state=drain",
            1,
            "You must specify a reason when DOWNING or DRAINING a ",
        ),
        ("scontrol update nodename=nope state=drain reason=x", 1, "slurm_update error: Invalid node name specified\n"),
        ("scontrol update nodename=gpu-st-p5-1 state=resume", 1, "slurm_update error: Invalid node state specified\n"),
        ("scontrol update nodename=gpu-st-p5-1 state=bogus", 1, "Invalid input: state=bogus\nRequest aborted\n"),
        ("scontrol update partitionname=nope state=UP", 1, "slurm_update error: Invalid partition name specified\n"),
        ("scontrol update partitionname=gpu state=BOGUS", 1, "scontrol: error: Invalid input: state=BOGUS\n"),
        ("scontrol delete reservationname=x", 1, "delete_reservation reservationname=x: Requested reservation is inva"),
        ("scontrol cancel_reboot gpu-st-p5-1", 1, "slurm_update error: Invalid node state specified\n"),
        ("scontrol reboot asap nope", 1, "scontrol_reboot_nodes error: Invalid node name specified\n"),
        (
            "scontrol hold 999999",
            1,
            "Invalid job id specified for job 999999\nslurm_suspend error: Invalid job id specified\n",
        ),
        ("scontrol requeue 48229", 1, "Job is pending execution for job 48229\n"),
        ("scontrol update foo=bar", 1, "No valid entity in update command\n"),
        ("scancel 999999", 0, ""),
        ("scancel abc", 1, "scancel: error: Invalid job id abc\n"),
        ("scancel --signal=BOGUS 48219", 1, "Unknown job signal: BOGUS\n"),
    ],
)
def test_what_slurm_refuses_and_says(sim: Simulation, line: str, rc: int, stderr: str) -> None:
    answer = root(sim, *line.split(" "))
    assert (answer.rc, answer.stdout) == (rc, b"")
    assert answer.stderr.decode().startswith(stderr)
    assert bool(stderr) == bool(answer.stderr)


@pytest.mark.parametrize(
    ("line", "rc", "stderr"),
    [
        ("scontrol update nodename=gpu-st-p5-1 state=drain reason=x", 1, "slurm_update error: Invalid user id\n"),
        ("scontrol update partitionname=gpu state=DOWN", 1, "slurm_update error: Invalid user id\n"),
        ("scontrol update SuspendExcNodes+=gpu-dy-p5-1", 1, "slurm_update error: Permission denied\n"),
        ("scontrol reboot gpu-st-p5-1", 1, "scontrol_reboot_nodes error: Permission denied\n"),
        ("scontrol hold 48229", 1, "Invalid user id for job 48229\nslurm_suspend error: Invalid user id\n"),
        ("scontrol requeue 48219", 1, "Access/permission denied for job 48219\n"),
        ("scancel 48219", 210, "scancel: error: Kill job error on job id 48219: Access/permission denied\n"),
    ],
)
def test_a_login_without_root_is_refused(sim: Simulation, line: str, rc: int, stderr: str) -> None:
    answer = run(sim, line.split(" "), {}, "demo-head")
    assert (answer.rc, answer.stdout, answer.stderr.decode()) == (rc, b"", stderr)


def test_a_list_with_a_stranger_changes_the_others(sim: Simulation) -> None:
    answer = root(sim, "scontrol", "update", "nodename=gpu-st-p5-1,nope", "state=drain", "reason=x2")
    assert answer.rc == 1
    assert sim.nodes["gpu-st-p5-1"].reason == "x2"


def test_quotes_at_the_ends_of_a_reason_are_taken_off(sim: Simulation) -> None:
    root(sim, "scontrol", "update", "nodename=gpu-st-p5-1", "state=drain", 'reason="quoted" all "x"')
    assert sim.nodes["gpu-st-p5-1"].reason == 'quoted" all "x'


def test_power_up_and_down_again(clock: Clock) -> None:
    sim = Simulation(scenario="calm", clock=clock)
    node = sim.nodes["gpu-dy-p5-4"]
    assert power(node) is Power.DOWN
    root(sim, "scontrol", "update", "nodename=gpu-dy-p5-4", "state=power_up")
    assert "powering_up" in node.flags
    clock.now += 250
    with sim.current():
        assert power(node) is Power.UP
    root(sim, "scancel", *map(str, node.shares)) if node.shares else None
    root(sim, "scontrol", "update", "nodename=gpu-dy-p5-4", "state=power_down_asap")
    clock.now += 30
    with sim.current():
        assert power(node) is Power.STOPPING
    clock.now += 130
    with sim.current():
        assert power(node) is Power.DOWN


def test_a_busy_node_powers_down_when_its_jobs_have_ended(sim: Simulation, clock: Clock) -> None:
    node = sim.nodes["gpu-st-p5-5"]
    root(sim, "scontrol", "update", "nodename=gpu-st-p5-5", "state=power_down_asap")
    assert {"drain", "power_down"} <= node.flags
    assert node.base == "allocated"
    root(sim, "scancel", *map(str, node.shares))
    clock.now += 60
    with sim.current():
        pass
    assert node.power is Power.STOPPING
    assert not node.drain


def test_a_job_that_was_cancelled_or_requeued_does_not_end_a_second_time(sim: Simulation, clock: Clock) -> None:
    job = next(job for job in sim.jobs.values() if job.state == "RUNNING" and job.ask.limit_s and not job.rest)
    root(sim, "scontrol", "requeuehold", str(job.job_id))
    clock.now += 60
    with sim.current():
        assert (job.state, job.restarts, job.reason) == ("PENDING", 1, "JobHeldUser")
    clock.now += 24 * 3600  # past the end that was planned for its first run
    with sim.current():
        assert (job.state, job.restarts) == ("PENDING", 1)


def test_a_reservation_keeps_jobs_away_until_it_ends(sim: Simulation) -> None:
    made = root(
        sim,
        *("scontrol", "create", "reservation", "reservationname=cockpit-gpu-st-p5-1", "starttime=now"),
        *("duration=infinite", "nodes=gpu-st-p5-1", "users=root", "flags=maint,ignore_jobs"),
    )
    assert (made.rc, made.stdout) == (0, b"Reservation created: cockpit-gpu-st-p5-1\n")
    assert sim.nodes["gpu-st-p5-1"].free_gpus == 0
    shown = root(sim, "scontrol", "-o", "show", "reservation").stdout.decode()
    assert "ReservationName=cockpit-gpu-st-p5-1 " in shown
    assert " State=ACTIVE " in shown
    again = root(sim, "scontrol", "create", "reservation", "reservationname=cockpit-gpu-st-p5-1", "nodes=gpu-st-p5-1")
    assert again.stderr == b"Error creating the reservation: Duplicate reservation name\n"
    assert root(sim, "scontrol", "delete", "reservationname=cockpit-gpu-st-p5-1").rc == 0
    assert root(sim, "scontrol", "show", "reservation").stdout == b"No reservations in the system\n"


def test_a_queue_that_is_down_starts_nothing_and_says_so(sim: Simulation, clock: Clock) -> None:
    root(sim, "scontrol", "update", "partitionname=gpu", "state=DOWN")
    assert b"gpu|down\n" in root(sim, "sinfo", "-h", "-o", "%R|%a").stdout
    assert b"State=DOWN " in root(sim, "scontrol", "-o", "show", "partition", "gpu").stdout
    clock.now += 5
    with sim.current():
        pass
    reasons = {job.reason for job in sim.jobs.values() if job.state == "PENDING" and job.ask.partition == "gpu"}
    assert reasons - {"JobHeldUser", "JobHeldAdmin"} == {"PartitionDown"}


def test_suspendexcnodes_is_told_by_the_configuration(sim: Simulation) -> None:
    root(sim, "scontrol", "update", "SuspendExcNodes+=gpu-dy-p5-[1-2]")
    assert (
        b"SuspendExcNodes         = gpu-dy-p5-[1-2],gpu-st-p5-[1-8]" in root(sim, "scontrol", "show", "config").stdout
    )
    root(sim, "scontrol", "update", "SuspendExcNodes-=gpu-dy-p5-1")
    assert "gpu-dy-p5-1" not in sim.kept_up


def test_an_idle_dynamic_node_that_is_kept_up_stays(clock: Clock) -> None:
    sim = Simulation(scenario="idle", clock=clock)
    idle = [node for node in sim.nodes.values() if not node.static and node.power is Power.UP][:2]
    root(sim, "scontrol", "update", f"SuspendExcNodes+={idle[0].name}")
    clock.now += 700
    with sim.current():
        pass
    assert idle[0].power is Power.UP or idle[0].shares
    assert idle[1].power is not Power.UP or idle[1].shares
