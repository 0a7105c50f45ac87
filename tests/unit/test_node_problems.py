"""Problems of the machines under the GPUs: drivers, file systems, kernels, and nodes nobody hears from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.config import Rules
from cockpit.fleet_state import Fleet
from cockpit.formats.kernel_log import KernelEvent
from cockpit.formats.node_state import parse_state
from cockpit.gpu_models import Driver, DriverState, MountReading, StuckProcess
from cockpit.gpu_problems import FleetProblems
from cockpit.models import Fault, FaultKind, Health, Problem
from cockpit.sources.gpu_events import NodeEvents
from cockpit.sources.gpu_history import GpuHistory
from cockpit.sources.gpus import FleetReading, NodeWatch
from tests.unit.gpu_fleet import STEADY_AHEAD_S, WALL_AHEAD_S, WHOLE, Looks, problems, reading, watch
from tests.unit.test_fleet import sample

GPUS = [sample(slot) for slot in range(4)]


def looked(late_s: float = 0.0, events: tuple[KernelEvent, ...] = (), **changes: object) -> dict[str, Problem]:
    told = watch(reading(GPUS, 1000.0, **changes), events=NodeEvents(events))
    return Looks().look([told], 1000.0 + late_s)


def test_file_systems() -> None:
    mounts = (
        MountReading("/fsx", "lustre", "fs-1@tcp:/x", hung_since=900.0),
        MountReading("/", "ext4", "/dev/root", 100, 95, 5),
        MountReading("/scratch", "xfs", "/dev/md0", 100, 50, 50, 1000, 990),
        MountReading("/home", "nfs4", "head:/home", 100, 20, 80, 1000, 10),
    )
    found = problems(GPUS, mounts=mounts)
    assert found["mount:hung:/fsx"].health is Health.CRITICAL
    assert found["mount:hung:/fsx"].since == 900.0 + WALL_AHEAD_S
    assert "95 % full" in found["mount:full:/:p5-1"].title
    assert "out of inodes: 99 % used" in found["mount:full:/scratch:p5-1"].title
    assert len(found) == 3


def test_a_file_system_that_answers_with_an_error() -> None:
    stale = MountReading("/home", "nfs4", "head:/home", error="Stale file handle")
    private = MountReading("/root/x", "xfs", "/dev/sdb", error="Permission denied")
    found = looked(mounts=(stale, private))
    assert set(found) == {"mount:error:/home"}
    assert found["mount:error:/home"].title == "/home answers with an error: Stale file handle"
    assert found["mount:error:/home"].next_step


def test_a_hung_driver_is_dated_and_an_old_one_said_to_be_old() -> None:
    driver = Driver(DriverState.HUNG, since=940.0)
    assert looked(driver=driver)["driver:p5-1"].since == 940.0 + WALL_AHEAD_S
    assert looked(driver=driver)["driver:p5-1"].title == "driver not answering"
    found = looked(130.0, driver=driver, mounts=(MountReading("/fsx", "lustre", hung_since=900.0),))
    assert found["driver:p5-1"].title == "driver not answering (as of 2m ago)"
    assert found["driver:p5-1"].since == 940.0 + WALL_AHEAD_S
    assert found["mount:hung:/fsx"].title == "/fsx does not answer (as of 2m ago)"


def test_processes_stuck_for_minutes() -> None:
    stuck = (StuckProcess(41, "python", "nvidia_ioctl", 400.0), StuckProcess(42, "cp", "rpc_wait", 299.0))
    found = looked(stuck=stuck, stuck_count=2)
    assert set(found) == {"stuck"}
    assert found["stuck"].title == "1 process stuck in the kernel for over 5m"
    assert found["stuck"].evidence == "p5-1: python (41) in nvidia_ioctl"
    assert found["stuck"].since == 600.0 + WALL_AHEAD_S


def unheard(*faults: Fault) -> dict[str, Problem]:
    watches = {f"p5-{place}": NodeWatch(f"p5-{place}", None, None, fault, 1.0) for place, fault in enumerate(faults, 1)}
    fleet = Fleet((), FleetReading(watches, ("p5-9",)), {}, GpuHistory(), Rules(), 10.0, 10.0 + STEADY_AHEAD_S)
    return {problem.key: problem for problem in FleetProblems().of(fleet)}


def test_nodes_that_cannot_be_reached_are_one_problem_a_kind() -> None:
    fault = Fault(FaultKind.AUTH, "logging in", "publickey refused", "check the key")
    found = unheard(fault, fault)
    assert found["probe:auth"].subject == "p5-[1-2]"
    assert found["probe:auth"].next_step == "check the key"
    assert found["probe:auth"].since == 1.0 + STEADY_AHEAD_S
    assert "nodes.max" in found["probe:left_out"].title
    assert "Prometheus" not in found["probe:left_out"].next_step


@pytest.mark.parametrize("kind", [FaultKind.FAILED, FaultKind.MISSING])
def test_what_a_fault_says_is_no_part_of_its_key(kind: FaultKind) -> None:
    one, two = (Fault(kind, "the probe", f"it ended: pid {pid} at 0x{pid:x}") for pid in (17, 4242))
    assert set(unheard(one)) == set(unheard(two)) == {f"probe:{kind.value}", "probe:left_out"}
    both = unheard(one, two)[f"probe:{kind.value}"]
    assert both.title == "no fresh GPU readings: the probe fails"
    assert both.evidence == "p5-1: it ended: pid 17 at 0x11; p5-2: it ended: pid 4242 at 0x1092"


def test_a_node_that_slurm_misses_too_is_one_problem_and_not_two() -> None:
    gone = NodeWatch("p5-1", fault=Fault(FaultKind.UNREACHABLE, "reaching p5-1", "no route"))
    missed = replace(WHOLE, state=parse_state("down+not_responding"))
    looks = Looks()
    assert "probe:unreachable" in looks.look([gone], 1400.0)
    assert "probe:unreachable" not in looks.look([gone], 1400.0, nodes=[missed])
    assert "probe:unreachable" in looks.look([gone], 1400.0, nodes=[missed], stale="nodes_live")
