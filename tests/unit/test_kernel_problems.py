"""What the kernels complain about becomes problems, each for as long as it is true."""

from __future__ import annotations

import pytest

from cockpit.catalog.severity import Severity
from cockpit.formats.kernel_lines import KernelLine
from cockpit.formats.kernel_log import KernelEvent, KernelKind, read_lines
from cockpit.models import Health, Problem
from cockpit.sources.gpu_events import NodeEvents
from tests.unit.gpu_fleet import WALL_AHEAD_S, Looks, reading, watch
from tests.unit.test_node_problems import GPUS, looked


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


def said(*pairs: tuple[float, str], at: float = 1000.0) -> dict[str, Problem]:
    """The problems of a node at 1000 s (or another time), whose kernel has said these lines at these times."""
    events = read_lines(KernelLine(text, when) for when, text in pairs).events
    return Looks().look([watch(reading(GPUS, at), events=NodeEvents(events))], at)


EFA_DEAD = "efa 0000:51:00.0: The device didn't send any completion for admin cmd ALLOC_PD"
EFA_REFUSED = "infiniband rdmap16s27: Failed to process command ALLOC_PD (opcode 18) comp_status 7 err -12"
READ_ONLY = "EXT4-fs (nvme1n1): Remounting filesystem read-only"
DISK = "Buffer I/O error on dev nvme2n1, logical block 1024, lost async page write"
EVICTED = "LustreError: 167-0: fsx-MDT0000-mdc-ffff: This client was evicted by fsx-MDT0000; in progress operations"
LOST = "Lustre: fsx-OST0003-osc-ffff: Connection to fsx-OST0003 (at 10.0.1.9@tcp) was lost; in progress operations"
RESTORED = "Lustre: fsx-OST0003-osc-ffff: Connection restored to fsx-OST0003 (at 10.0.1.9@tcp)"
NFS = "nfs: server fs-1.example not responding, still trying"
NFS_OK = "nfs: server fs-1.example OK"


@pytest.mark.parametrize(
    ("text", "key", "health", "says"),
    [
        (EFA_DEAD, "kernel:efa:p5-1", Health.CRITICAL, "0000:51:00.0"),
        (EFA_REFUSED, "kernel:efa_refused:p5-1", Health.WARN, "rdmap16s27"),
        (READ_ONLY, "kernel:read_only:p5-1", Health.CRITICAL, "nvme1n1"),
        (DISK, "kernel:disk:p5-1", Health.CRITICAL, "nvme2n1"),
        (EVICTED, "kernel:lustre:fsx-MDT0000", Health.WARN, "fsx-MDT0000"),
        (LOST, "kernel:lustre:fsx-OST0003", Health.WARN, "fsx-OST0003"),
        (NFS, "kernel:nfs:fs-1.example", Health.WARN, "fs-1.example"),
    ],
)
def test_each_complaint_is_a_problem_with_its_device_its_time_and_what_to_do(
    text: str, key: str, health: Health, says: str
) -> None:
    found = said((900.0, text), (910.0, text))
    assert set(found) == {key}
    assert (found[key].health, found[key].since, found[key].subject) == (health, 900.0 + WALL_AHEAD_S, "p5-1")
    assert says in found[key].title
    assert found[key].title.endswith(" ×2")
    assert text in found[key].evidence
    assert found[key].next_step


@pytest.mark.parametrize(
    ("text", "lasts_s"),
    [(EFA_DEAD, 7200), (READ_ONLY, 7200), (DISK, 7200), (EFA_REFUSED, 1800), (LOST, 1800), (NFS, 1800)],
)
def test_it_ends_some_time_after_the_last_complaint(text: str, lasts_s: float) -> None:
    pairs = ((1000.0, text), (1500.0, text))
    assert said(*pairs, at=1500.0 + lasts_s)
    assert said(*pairs, at=1501.0 + lasts_s) == {}


@pytest.mark.parametrize(("text", "clear"), [(NFS, NFS_OK), (LOST, RESTORED)])
def test_a_server_that_answers_again_is_told_of_for_two_minutes_more(text: str, clear: str) -> None:
    pairs = ((900.0, text), (1000.0, clear))
    (again,) = said(*pairs, at=1120.0).values()
    assert again.title.endswith("answers again")
    assert said(*pairs, at=1121.0) == {}
    (away,) = said(*pairs, (1200.0, text), at=1300.0).values()
    assert "again" not in away.title
    assert away.since == 1200.0 + WALL_AHEAD_S


def test_another_server_that_answers_clears_nothing() -> None:
    assert said((900.0, NFS), (910.0, "nfs: server other OK"), at=1100.0)


def test_nodes_that_miss_the_same_server_have_one_problem_and_cards_are_each_nodes_own() -> None:
    events = NodeEvents(read_lines(KernelLine(text, 900.0) for text in (NFS, EFA_DEAD)).events)
    watches = [watch(reading(GPUS, 1000.0), name=name, events=events) for name in ("p5-1", "p5-2")]
    found = Looks().look(watches, 1000.0)
    assert set(found) == {"kernel:nfs:fs-1.example", "kernel:efa:p5-1", "kernel:efa:p5-2"}
    assert (found["kernel:nfs:fs-1.example"].subject, found["kernel:nfs:fs-1.example"].count) == ("p5-[1-2]", 2)


def test_what_lustre_says_all_day_is_no_problem() -> None:
    assert said((900.0, "LustreError: 11-0: fsx-OST0001: operation ost_statfs to node failed: rc = -107")) == {}
