"""The demo's simulation: nothing overlaps, nothing contradicts itself, and time alone decides."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.demo.jobs import ENDED, Ask
from cockpit.demo.machines import GPUS, Power
from cockpit.demo.programs.registry import run
from cockpit.demo.scenarios import SCENARIOS
from cockpit.demo.sim import BOOT_S, MAX_NODES, SUSPEND_TIME_S, SUSPEND_TIMEOUT_S, Simulation

T0 = 1_795_993_917.0
HOUR = 3600.0


def make(nodes: int = 12, scenario: str = "busy", seed: int = 7) -> Simulation:
    return Simulation(nodes=nodes, scenario=scenario, seed=seed, clock=lambda: T0)


def check(sim: Simulation) -> None:
    """Every invariant of a Slurm controller that the demo promises to keep."""
    check_nodes(sim)
    check_jobs(sim)


def check_nodes(sim: Simulation) -> None:
    for node in sim.nodes.values():
        held = [gpu for share in node.shares.values() for gpu in share.gpus]
        assert len(held) == len(set(held)), f"{node.name}: one GPU given twice"
        assert set(held) <= set(range(GPUS))
        cpus = [cpu for share in node.shares.values() for cpu in share.cpus]
        assert len(cpus) == len(set(cpus)), f"{node.name}: one CPU given twice"
        for job_id, share in node.shares.items():
            job = sim.jobs[job_id]
            assert job.state == "RUNNING"
            assert job.gpus[node.name] == share.gpus
            assert job.ask.partition in node.partitions
        if node.shares:
            assert node.power in (Power.UP, Power.STARTING)
            assert not node.down
            assert not node.drain
        assert node.responding == (node.power is not Power.STARTING and not node.down)
        assert not (node.static and node.power is not Power.UP)


def check_jobs(sim: Simulation) -> None:
    running_tasks: Counter[int] = Counter()
    for job in sim.jobs.values():
        if job.state == "RUNNING":
            assert len(set(job.hosts)) == job.ask.nodes
            assert all(len(sim.nodes[host].shares[job.job_id].gpus) == job.ask.gpus for host in job.hosts)
            starting = any(sim.nodes[host].power is Power.STARTING for host in job.hosts)
            assert job.configuring == starting
            assert job.started_at is not None
            assert job.submitted_at <= job.started_at <= sim.now
            running_tasks[job.array_job_id or 0] += 1
        elif job.state == "PENDING":
            assert not job.hosts
            assert job.reason != "None" or job.evaluated_at is None  # just submitted
        else:
            assert job.state in (*ENDED, "COMPLETING")
            assert not any(job.job_id in node.shares for node in sim.nodes.values())
        if job.array_job_id is not None and job.ask.throttle:
            assert running_tasks[job.array_job_id] <= job.ask.throttle


def text(sim: Simulation) -> bytes:
    """All that can be read of a simulation, as its programs print it."""
    calls = (["squeue", "-t", "all"], ["sinfo", "-N", "-l"], ["scontrol", "-d", "show", "job"])
    answers = [run(sim, call, {"SLURM_TIME_FORMAT": "%s"}, "demo-head") for call in calls]
    # sinfo -l and the clock of the programs show the asking time, which differs by nothing here.
    return b"".join(answer.stdout for answer in answers)


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 12, 48])
def test_invariants_hold_for_hours(scenario: str, nodes: int) -> None:
    sim = make(nodes, scenario)
    check(sim)
    for step in range(1, 121):
        sim.advance(T0 + step * 150.0)
        check(sim)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), nodes=st.integers(1, 40), steps=st.lists(st.floats(0.1, 900.0), max_size=25))
def test_invariants_hold_for_any_seed_and_any_pace(seed: int, nodes: int, steps: list[float]) -> None:
    sim = make(nodes, seed=seed)
    for step in steps:
        sim.advance(sim.now + step)
        check(sim)


def test_one_big_step_is_many_small_ones() -> None:
    big, small = make(), make()
    big.advance(T0 + 4 * HOUR)
    for step in range(1, 4 * 3600 // 7 + 1):
        small.advance(T0 + step * 7.0)
    small.advance(T0 + 4 * HOUR)
    assert text(big) == text(small)


def test_same_seed_same_cluster_and_another_seed_another() -> None:
    assert text(make(seed=3)) == text(make(seed=3))
    assert text(make(seed=3)) != text(make(seed=4))


def test_clock_that_goes_back_changes_nothing() -> None:
    sim = make()
    sim.advance(T0 + HOUR)
    before = text(sim)
    sim.advance(T0 - HOUR)
    assert text(sim) == before


@pytest.mark.parametrize(("nodes", "static"), [(1, 1), (2, 1), (12, 8), (256, 171), (1024, 683)])
def test_two_thirds_are_static(nodes: int, static: int) -> None:
    sim = make(nodes)
    assert len(sim.nodes) == nodes
    assert sum(1 for node in sim.nodes.values() if node.static) == static
    assert len({node.own_address for node in sim.nodes.values()}) == nodes


@pytest.mark.parametrize("nodes", [0, -1, MAX_NODES + 1])
def test_impossible_sizes_are_refused(nodes: int) -> None:
    with pytest.raises(ValueError, match="nodes must be"):
        make(nodes)


@pytest.mark.parametrize("nodes", [12, 256])
def test_busy_shows_every_usual_reason_at_the_start(nodes: int) -> None:
    sim = make(nodes)
    reasons = {job.reason.split(",")[0] for job in sim.jobs.values() if job.state == "PENDING"}
    assert reasons >= {
        "Resources",
        "Priority",
        "ReqNodeNotAvail",
        "JobArrayTaskLimit",
        "BeginTime",
        "Dependency",
        "DependencyNeverSatisfied",
        "JobHeldUser",
        "JobHeldAdmin",
    }
    assert any(job.configuring for job in sim.jobs.values())
    assert any(job.het_size for job in sim.jobs.values())
    assert any(node.drain and node.reason for node in sim.nodes.values())
    assert any(node.down and not node.responding for node in sim.nodes.values())
    assert any(len(job.hosts) > 1 for job in sim.jobs.values() if job.state == "RUNNING")
    assert any("[" in job.ask.name and not job.ask.name.isascii() for job in sim.jobs.values())


def test_calm_has_no_trouble_and_no_queue() -> None:
    sim = make(scenario="calm")
    assert not any(node.drain or node.down for node in sim.nodes.values())
    assert not [job for job in sim.jobs.values() if job.state == "PENDING" and not job.rest]
    assert any(node.free_gpus for node in sim.nodes.values())


def states_over_time(sim: Simulation, name: str, until_s: float) -> list[str]:
    """The different states a node goes through, in order."""
    seen: list[str] = []
    for step in range(int(until_s)):
        sim.advance(T0 + step)
        node = sim.nodes[name]
        state = "+".join([node.base, *sorted(node.flags - {"cloud"})])
        if not seen or seen[-1] != state:
            seen.append(state)
    return seen


def test_dynamic_node_boots_runs_idles_and_powers_down() -> None:
    sim = make(scenario="calm")
    sim.scenario = SCENARIOS["calm"]
    for node in sim.nodes.values():
        node.drain = node.static  # leaves only powered-down dynamic nodes
    job = sim.submit(Ask("once", "wei", 1, GPUS, 120.0, 600.0))
    sim._events = [event for event in sim._events if event[2] == sim._pass]  # nobody else submits
    seen = states_over_time(sim, "gpu-dy-p5-1", BOOT_S[1] + 150 + SUSPEND_TIME_S + SUSPEND_TIMEOUT_S + 60)
    assert seen == [
        "idle+powered_down",
        "allocated+not_responding+powering_up",
        "allocated",
        "idle+completing",
        "idle",
        "idle+powering_down",
        "idle+powered_down",
    ]
    assert job.ended_at is not None
    assert job.started_at is not None
    assert job.ended_at - job.started_at == pytest.approx(120.0)


def test_configuring_job_starts_anew_when_its_nodes_are_up() -> None:
    sim = make()
    job = next(job for job in sim.jobs.values() if job.configuring)
    first = job.started_at
    sim.advance(T0 + BOOT_S[1] + 1)
    assert not job.configuring
    assert first is not None
    assert job.started_at is not None
    assert job.started_at > first


def test_job_over_its_limit_times_out() -> None:
    sim = make(scenario="calm")
    job = sim.submit(Ask("slow", "wei", 1, 1, 900.0, 300.0))
    sim.advance(T0 + 330)
    assert job.state == "TIMEOUT"
    assert job.ended_at is not None
    assert job.run_s(sim.now) == 300.0


def test_dependent_job_starts_after_success_and_never_after_failure() -> None:
    sim = make(scenario="calm")
    good = sim.submit(Ask("good", "wei", 1, 1, 60.0, 300.0))
    bad = sim.submit(Ask("bad", "wei", 1, 1, 60.0, 300.0, ends_as="FAILED"))
    after_good = sim.submit(Ask("next", "wei", 1, 1, 900.0, 1800.0, after=good.job_id))
    after_bad = sim.submit(Ask("never", "wei", 1, 1, 60.0, 300.0, after=bad.job_id))
    sim.advance(T0 + 10)
    assert (after_good.reason, after_bad.reason) == ("Dependency", "Dependency")
    sim.advance(T0 + 120)
    assert after_good.state == "RUNNING"
    assert after_bad.reason == "DependencyNeverSatisfied"
    assert after_bad.dependency == f"afterok:{bad.job_id}(failed)"


def test_array_runs_through_within_its_throttle() -> None:
    sim = make(scenario="calm")
    array = sim.submit(Ask("sweep", "wei", 1, 1, 60.0, 300.0, tasks=tuple(range(1, 10)), throttle=2))
    most = 0
    for step in range(600):
        sim.advance(T0 + step)
        tasks = [job for job in sim.jobs.values() if job.array_job_id == array.job_id]
        most = max(most, sum(1 for job in tasks if job.state == "RUNNING"))
    assert most == 2
    assert array.rest == []
    assert array.task == 9, "the last task keeps the array's own record"
    assert array.state == "COMPLETED"


def test_begin_time_is_kept() -> None:
    sim = make(scenario="calm")
    job = sim.submit(Ask("later", "wei", 1, 1, 60.0, 300.0, begin_in_s=500.0))
    sim.advance(T0 + 499)
    assert job.reason == "BeginTime"
    sim.advance(T0 + 505)
    assert job.state == "RUNNING"


def test_ended_jobs_are_forgotten_after_min_job_age() -> None:
    sim = make()
    ended = {job_id for job_id, job in sim.jobs.items() if job.state in ENDED}
    assert len(ended) == 4
    sim.advance(T0 + 301)
    assert not ended & sim.jobs.keys()


def test_busy_cluster_stays_busy() -> None:
    sim = make()
    sim.advance(T0 + 12 * HOUR)
    used = sum(len(node.gpus_used) for node in sim.nodes.values())
    assert used > GPUS * 12 * 0.5
    assert any(job.state == "PENDING" for job in sim.jobs.values())
