"""Problems of the machines under the GPUs: drivers, file systems, kernels, and nodes nobody hears from."""

from __future__ import annotations

import pytest

from cockpit.catalog.severity import Severity
from cockpit.config import Rules
from cockpit.fleet_state import Fleet
from cockpit.formats.kernel_lines import KernelLine
from cockpit.formats.kernel_log import KernelEvent, KernelKind, read_lines
from cockpit.gpu_models import Driver, DriverState, MountReading, StuckProcess
from cockpit.gpu_problems import FleetProblems
from cockpit.models import Fault, FaultKind, Health, Problem
from cockpit.sources.gpu_events import NodeEvents
from cockpit.sources.gpu_history import GpuHistory
from cockpit.sources.gpus import FleetReading, NodeWatch
from tests.unit.gpu_fleet import STEADY_AHEAD_S, WALL_AHEAD_S, Looks, problems, reading, watch
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


def event(kind: KernelKind, at: float, name: str = "", boot: str = "") -> KernelEvent:
    severity = Severity.WARN if kind is KernelKind.OOM else Severity.CRITICAL
    return KernelEvent(kind, severity, f"the line about {name}", at, boot, name=name)


def test_kills_and_blocked_tasks_are_told_for_half_an_hour() -> None:
    events = (event(KernelKind.OOM, 900.0, "python"), event(KernelKind.OOM, 950.0, "python"))
    found = looked(events=(*events, event(KernelKind.HUNG_TASK, 960.0, "cp")))
    assert set(found) == {"kernel:oom", "kernel:hung_task"}
    assert found["kernel:oom"].title.endswith(": python ×2")
    assert (found["kernel:oom"].health, found["kernel:oom"].since) == (Health.WARN, 900.0 + WALL_AHEAD_S)
    assert found["kernel:hung_task"].health is Health.CRITICAL
    assert all(problem.next_step and problem.subject == "p5-1" for problem in found.values())
    assert looked(events=(event(KernelKind.OOM, 1000.0 - 1801, "python"),)) == {}


def test_what_an_earlier_boot_suffered_is_over() -> None:
    events = (event(KernelKind.HUNG_TASK, 900.0, "cp", boot="b1"),)
    assert looked(events=events, boot_id="b2") == {}
    assert set(looked(events=events, boot_id="b1")) == {"kernel:hung_task"}


def test_a_fatal_sxid_is_a_problem_of_its_node() -> None:
    text = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 45 sourcetrack timeout error"
    events = read_lines([KernelLine(text, 912.5)]).events
    assert [one.kind for one in events] == [KernelKind.SXID]
    found = looked(events=events)["sxid:p5-1:24007"]
    assert found.health is Health.CRITICAL
    assert found.title.startswith("SXid 24007: ")
    assert "nvidia-nvswitch3" in found.title
    assert found.next_step
    assert found.since == 912.5 + WALL_AHEAD_S


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
