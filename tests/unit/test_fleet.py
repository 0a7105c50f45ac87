"""The fleet's rows: every GPU that Slurm counts has one, with its job, and what is wrong with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.config import Rules
from cockpit.fleet import FleetJoin, GpuRow, gpu_freshness
from cockpit.formats.node_state import judge, parse_state
from cockpit.gpu_models import Driver, DriverState, Gpu, GpuProcess, GpuSample, Lack, Missing, NodeReading
from cockpit.gpu_rules import findings
from cockpit.models import Freshness, Health, Job, Node
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
    late = watch(sample(0), sample(1, taken_at=70.0), sample(2, taken_at=10.0), sample(3, lost=Missing(Lack.LOST)))
    found = rows(late)
    assert [gpu_freshness(row, 1001.0) for row in found] == [
        Freshness.LIVE,
        Freshness.STALE,
        Freshness.LOST,
        Freshness.LIVE,
    ]
    assert gpu_freshness(found[0], 1030.0) is Freshness.STALE


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
        ({"throttle_mask": 0x40}, "throttle:40", Health.CRITICAL),
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
