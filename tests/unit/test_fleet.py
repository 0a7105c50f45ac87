"""The fleet's rows: every GPU that Slurm counts has one, with its job, and what is wrong with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.catalog.severity import Severity
from cockpit.config import Rules
from cockpit.fleet import FleetJoin, GpuRow, gpu_freshness, watch_freshness, worst_first
from cockpit.formats.kernel_log import KernelEvent, KernelKind
from cockpit.formats.node_state import judge, parse_state
from cockpit.gpu_models import (
    Driver,
    DriverState,
    Gpu,
    GpuProcess,
    GpuSample,
    Lack,
    MigInstance,
    Missing,
    NodeReading,
)
from cockpit.gpu_rules import findings
from cockpit.models import Freshness, Health, Job, Node
from cockpit.sources.gpu_events import NodeEvents
from cockpit.sources.gpus import FleetReading, NodeWatch

NODE = Node("p5-1", parse_state("mixed"), *judge(parse_state("mixed")), gpus_total=4, gpus_used=2, gpu_indices=(0, 1))
GOOD = GpuSample(Gpu("GPU-0"), taken_at=100.0, util_pct=97, temp_c=60, power_w=600, mem_used_mib=70_000)


def sample(slot: int, **changes: object) -> GpuSample:
    gpu = Gpu(f"GPU-{slot}", index=slot, minor=slot, uuid=f"GPU-{slot}", pci=f"0000:0{slot}:00", mem_total_mib=81_559)
    return replace(GOOD, gpu=gpu, **changes)  # type: ignore[arg-type]


def watch(*samples: GpuSample, processes: tuple[GpuProcess, ...] = (), seen_at: float = 1000.0) -> NodeWatch:
    reading = NodeReading(100.0, 1, driver=Driver(DriverState.OK), gpus=samples, processes=processes)
    return NodeWatch("p5-1", reading, seen_at)


def rows(watched: NodeWatch | None, *held: Job, node: Node = NODE) -> tuple[GpuRow, ...]:
    fleet = FleetReading({"p5-1": watched} if watched else {})
    return FleetJoin(Rules()).rows(fleet, (node,), {"p5-1": held})


def test_what_slurm_counts_on_keeps_its_row_when_nobody_has_seen_it() -> None:
    assert [row.sample for row in rows(None)] == [None] * 4
    assert {row.health for row in rows(None)} == {Health.UNKNOWN}
    found = rows(watch(sample(0), sample(1), sample(2)))
    assert [row.sample is None for row in found] == [False, False, False, True]
    down = replace(NODE, state=parse_state("idle+cloud+powered_down"))
    assert rows(None, node=down) == ()


def test_allocation_and_job_come_from_slurm_and_from_the_processes() -> None:
    one = Job(7, "R", user="maria", hostlist="p5-1")
    found = rows(watch(*map(sample, range(4))), one)
    assert [row.allocated for row in found] == [True, True, False, False]
    assert [row.job and row.job.job_id for row in found] == [7, 7, None, None]
    other = Job(8, "R", user="kenji", hostlist="p5-1")
    process = GpuProcess("GPU-1", 4242, job_id=8)
    found = rows(watch(*map(sample, range(4)), processes=(process,)), one, other)
    assert [row.job and row.job.job_id for row in found] == [None, 8, None, None]  # two jobs: only what is sure


def test_rows_of_a_node_that_did_not_change_are_the_very_same() -> None:
    join, watched = FleetJoin(Rules()), watch(*map(sample, range(4)))
    fleet = FleetReading({"p5-1": watched})
    first = join.rows(fleet, (NODE,), {})
    assert all(a is b for a, b in zip(first, join.rows(fleet, (NODE,), {}), strict=True))
    changed = join.rows(FleetReading({"p5-1": replace(watched, seen_at=1002.0)}), (NODE,), {})
    assert changed[0] is not first[0]


def test_a_gpu_of_a_hung_driver_is_stale_though_its_node_tells() -> None:
    late = watch(sample(0), sample(1, taken_at=70.0), sample(2, taken_at=10.0), sample(3))
    found = rows(late)
    assert [gpu_freshness(row, 1001.0) for row in found] == [
        Freshness.LIVE,
        Freshness.STALE,
        Freshness.LOST,
        Freshness.LIVE,
    ]
    assert gpu_freshness(found[0], 1030.0) is Freshness.STALE


def test_a_lost_gpu_is_as_old_as_its_last_reading_and_keeps_its_finding() -> None:
    gone = Missing(Lack.LOST, "GPU is lost", 15)
    found = rows(watch(sample(0, lost=gone), sample(1, lost=gone, taken_at=70.0), sample(2, lost=gone, taken_at=10.0)))
    assert [gpu_freshness(row, 1001.0) for row in found[:3]] == [Freshness.LIVE, Freshness.STALE, Freshness.LOST]
    assert {row.health for row in found[:3]} == {Health.CRITICAL}


def test_what_nobody_has_read_is_unknown_and_was_never_seen() -> None:
    unread = rows(watch(sample(0, taken_at=None), sample(1)))
    assert [row.health for row in unread[:3]] == [Health.UNKNOWN, Health.OK, Health.UNKNOWN]
    told = [gpu_freshness(row, 1001.0) for row in unread[:3]]
    assert told == [Freshness.NEVER, Freshness.LIVE, Freshness.NEVER]
    bus_only = rows(watch(sample(0, taken_at=None, lost=Missing(Lack.LOST, "GPU not found", 28))))[0]
    assert (bus_only.health, gpu_freshness(bus_only, 1001.0)) == (Health.CRITICAL, Freshness.NEVER)


@pytest.mark.parametrize(
    ("interval_s", "age_s", "freshness"),
    [
        (2.0, 8.0, Freshness.LIVE),
        (2.0, 9.0, Freshness.STALE),
        (None, 9.0, Freshness.STALE),
        (2.0, 61.0, Freshness.LOST),
        (30.0, 60.0, Freshness.LIVE),
        (30.0, 70.0, Freshness.STALE),
        (30.0, 130.0, Freshness.LOST),
        (1e14, 20_000.0, Freshness.LOST),  # a node's word is not trusted without limit
    ],
)
def test_how_old_is_old_follows_the_interval(interval_s: float | None, age_s: float, freshness: Freshness) -> None:
    watched = watch(sample(0))
    assert watched.reading is not None
    watched = replace(watched, reading=replace(watched.reading, interval_s=interval_s))
    assert watch_freshness(watched, 1000.0 + age_s) is freshness
    assert gpu_freshness(rows(watched)[0], 1000.0 + age_s) is freshness


def test_a_process_of_a_hidden_job_makes_its_gpu_nobody_elses() -> None:
    hidden = GpuProcess("GPU-1", 4242, job_id=999)
    found = rows(watch(*map(sample, range(4)), processes=(hidden,)), Job(7, "R", user="maria", hostlist="p5-1"))
    assert [row.job and row.job.job_id for row in found] == [7, None, None, None]


def test_gpus_cut_into_slices_have_one_row_each_and_no_index_of_slurm() -> None:
    node = replace(NODE, gpus_total=28, gpus_used=2)
    parts = tuple(MigInstance(place, 0) for place in range(7))
    cut = [sample(slot, instances=parts) for slot in range(4)]
    cut = [replace(one, gpu=replace(one.gpu, mig=True)) for one in cut]
    found = rows(watch(*cut), Job(7, "R", user="maria", hostlist="p5-1"), node=node)
    assert [row.key for row in found] == [f"p5-1/{slot}" for slot in range(4)]
    assert [(row.allocated, row.job) for row in found] == [(None, None)] * 4


def test_events_before_the_last_boot_are_no_findings() -> None:
    at_boot = [KernelEvent(KernelKind.XID, Severity.CRITICAL, "x", 1.0, boot, code=79, bus="0000:00:00")
               for boot in ("b-1", "b-2", "")]  # fmt: skip
    told = []
    for event in at_boot:
        watched = watch(sample(0))
        assert watched.reading is not None
        reading = replace(watched.reading, boot_id="b-2")
        found = rows(replace(watched, reading=reading, events=NodeEvents((event,))))
        told.append([finding.code for finding in found[0].findings])
    assert told == [[], ["xid:79"], ["xid:79"]]


@pytest.mark.parametrize(
    ("changes", "code", "health"),
    [
        ({"lost": Missing(Lack.LOST, "GPU is lost", 15)}, "lost", Health.CRITICAL),
        ({"temp_c": 91}, "hot", Health.WARN),
        ({"ecc_uncorrected": 1}, "ecc", Health.CRITICAL),
        ({"remap_pending": 1}, "remap_pending", Health.WARN),
        ({"remap_failed": 1}, "remap_failed", Health.CRITICAL),
        ({"nvlinks_down": 1, "nvlinks": 18}, "nvlink", Health.CRITICAL),
        ({"recovery_action": 2}, "recovery", Health.CRITICAL),
        ({"throttle_mask": 0x40}, "throttle:40", Health.WARN),
        ({"throttle_mask": 0x20}, "throttle:20", Health.WARN),
    ],
)
def test_each_rule(changes: dict[str, object], code: str, health: Health) -> None:
    found = findings(sample(0, **changes), (), Rules())
    assert [(finding.code, finding.health) for finding in found] == [(code, health)]
    assert found[0].next_step


def test_a_well_gpu_and_one_whose_values_are_missing_have_no_findings() -> None:
    assert findings(sample(0, throttle_mask=0x5, remap_pending=0), (), Rules()) == ()
    unknown = Missing(Lack.UNSUPPORTED)
    blank = GpuSample(Gpu("x"), temp_c=unknown, ecc_uncorrected=unknown, throttle_mask=unknown, nvlinks_down=unknown)
    assert findings(blank, (), Rules()) == ()


def test_lines_sorted_by_state_stand_still_while_the_gpus_work() -> None:
    node = replace(NODE, gpu_indices=(0, 1, 2, 3))

    def order(*utils: float) -> list[int]:
        samples = [sample(slot, util_pct=util) for slot, util in enumerate(utils)]
        return [row.slot for row in sorted(rows(watch(*samples), node=node), key=worst_first)]

    assert order(97, 81, 88, 79) == order(78, 99, 84, 96) == [0, 1, 2, 3]
    assert order(97, 30, 88, 0) == [3, 1, 0, 2]  # those that do nothing, or little, come before them
