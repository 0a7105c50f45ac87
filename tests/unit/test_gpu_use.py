"""What jobs do with their GPUs: only what was seen, for long enough and of all of them, is held against them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.fleet import GpuRow
from cockpit.gpu_means import Means, mean
from cockpit.gpu_models import GpuSample
from cockpit.gpu_use import GPUS_A_LOOK
from cockpit.models import Job, Problem
from tests.unit.gpu_fleet import JOB, WHOLE, Looks, problems, reading, watch
from tests.unit.test_fleet import sample

BUSY = [sample(slot) for slot in range(4)]
IDLE = [sample(slot, util_pct=0, power_w=72) for slot in range(4)]
OTHER = replace(WHOLE, name="p5-2")


def test_a_busy_job_has_no_problem() -> None:
    assert problems(BUSY) == {}


def test_a_job_that_uses_none_of_its_gpus_is_named_after_five_minutes_and_not_before() -> None:
    assert problems(IDLE, minutes=4) == {}
    found = problems(IDLE)
    assert set(found) == {"job:idle:7"}
    assert "holds 4 GPUs and uses none for 5m · maria" in found["job:idle:7"].title
    assert "built" not in found["job:idle:7"].next_step


def test_a_job_is_not_idle_for_what_was_before_it() -> None:
    assert problems(IDLE, jobs=(replace(JOB, started_at=1350.0),)) == {}
    assert set(problems(IDLE, jobs=(replace(JOB, started_at=1050.0),))) == {"job:idle:7"}


def test_what_nobody_has_seen_for_a_while_is_not_idle() -> None:
    looks = Looks()
    looks.feed("p5-1", IDLE, begin=1000.0, end=1200.0)
    looks.feed("p5-1", IDLE, begin=1240.0, end=1400.0)
    assert looks.look([watch(reading(IDLE, 1400.0))], 1400.0, jobs={"p5-1": (JOB,)}) == {}
    full = Looks()
    full.feed("p5-1", IDLE, begin=1000.0, end=1400.0)
    assert set(full.look([watch(reading(IDLE, 1400.0))], 1400.0, jobs={"p5-1": (JOB,)})) == {"job:idle:7"}


def test_a_mean_is_of_the_time_up_to_now_and_needs_all_of_it() -> None:
    every_4_s = [(float(at), 50.0) for at in range(0, 401, 4)]
    assert mean(every_4_s, 400, 300, None, 15) == 50
    assert mean(every_4_s, 420, 300, None, 15) is None  # nothing of the last 20 s
    assert mean(every_4_s[::100], 400, 300, None, 15) is None  # first and last only
    assert mean([(at, None if 200 <= at < 240 else value) for at, value in every_4_s], 400, 300, None, 15) is None
    assert mean([(float(at), 50.0) for at in range(0, 401, 30)], 400, 300, None, 75) == 50  # a slow probe


def two_nodes(first: list[GpuSample], second: list[GpuSample], job: Job, stale_s: float) -> dict[str, Problem]:
    """A job on two nodes, of which the second is heard no more for some seconds."""
    looks, end = Looks(), 1400.0
    looks.feed("p5-1", first, begin=1000.0, end=end)
    looks.feed("p5-2", second, begin=1000.0, end=end - stale_s)
    watches = [watch(reading(first, end)), watch(reading(second, end - stale_s), name="p5-2")]
    return looks.look(watches, end, nodes=[WHOLE, OTHER], jobs={"p5-1": (job,), "p5-2": (job,)})


def test_a_job_is_idle_only_when_all_its_gpus_are_seen_so() -> None:
    job = replace(JOB, hostlist="p5-[1-2]", gpus=8)
    assert set(two_nodes(IDLE, IDLE, job, 0.0)) == {"job:idle:7"}
    assert not [key for key in two_nodes(IDLE, IDLE, job, 40.0) if key.startswith("job:")]
    assert not [key for key in two_nodes(IDLE, IDLE, replace(job, gpus=16), 0.0) if key.startswith("job:")]
    unknown = replace(job, gpus=None, hostlist="p5-[1-3]")
    assert not [key for key in two_nodes(IDLE, IDLE, unknown, 0.0) if key.startswith("job:")]


def test_gpus_that_are_little_used_and_one_that_lags() -> None:
    found = problems([*BUSY[:3], sample(3, util_pct=30, power_w=180)])
    assert "1 of its 4 GPUs is used under 60 % for 5m" in found["job:low:7"].title
    assert found["job:lag:7:util_pct"].subject == "job 7 p5-1/3"
    assert found["job:lag:7:power_w"].evidence == "p5-1/3 180 W"


def test_the_only_gpu_of_a_job_is_not_counted_out_of_one() -> None:
    node, job = replace(WHOLE, gpus_total=1, gpus_used=1, gpu_indices=(0,)), replace(JOB, gpus=1)
    found = problems([sample(0, util_pct=30)], node=node, jobs=(job,))
    assert found["job:low:7"].title == "its GPU is used under 60 % for 5m · maria"


def test_small_differences_in_a_waiting_job_are_no_stragglers() -> None:
    close = [sample(slot, power_w=140 - slot) for slot in range(4)]
    assert not [key for key in problems(close) if key.startswith("job:lag")]


@pytest.mark.parametrize(("slower", "lags"), [(70, True), (80, False)])
def test_of_two_gpus_the_slower_may_lag(slower: float, lags: bool) -> None:
    node, job = replace(WHOLE, gpus_total=2, gpus_used=2, gpu_indices=(0, 1)), replace(JOB, gpus=2)
    found = problems([sample(0), sample(1, util_pct=slower)], node=node, jobs=(job,))
    assert ("job:lag:7:util_pct" in found) is lags
    if lags:
        assert found["job:lag:7:util_pct"].title == "1 of 2 GPUs lag in utilisation: the other has 97 %"


def test_the_same_is_told_for_some_seconds_without_a_new_look() -> None:
    looks, jobs = Looks(), {"p5-1": (JOB,)}
    looks.feed("p5-1", IDLE, begin=1000.0, end=1400.0)
    told = watch(reading(IDLE, 1400.0))
    assert set(looks.look([told], 1400.0, jobs=jobs)) == {"job:idle:7"}
    looks.history.forget("p5-1")
    assert set(looks.look([watch(reading(IDLE, 1404.0))], 1404.0, jobs=jobs)) == {"job:idle:7"}
    assert looks.look([watch(reading(IDLE, 1411.0))], 1411.0, jobs=jobs) == {}


def test_means_are_worked_out_once_for_the_same_reading_of_a_node() -> None:
    looks, means = Looks(), Means()
    looks.feed("p5-1", IDLE, begin=1000.0, end=1400.0)
    told = reading(IDLE, 1400.0)
    row = GpuRow("p5-1", 0, watch(told), told.gpus[0])
    assert means.of(looks.history, row, "power_w", 300) == 72
    looks.history.forget("p5-1")
    assert means.of(looks.history, row, "power_w", 300) == 72
    later = reading(IDLE, 1402.0)
    assert means.of(looks.history, replace(row, watch=watch(later)), "power_w", 300) is None


def test_every_job_of_a_big_fleet_has_its_turn() -> None:
    looks, count = Looks(), 2 * GPUS_A_LOOK // 4 + 1
    nodes = [replace(WHOLE, name=f"p5-{place}") for place in range(count)]
    jobs = {node.name: (replace(JOB, job_id=place, hostlist=node.name),) for place, node in enumerate(nodes)}
    for node in nodes:
        looks.feed(node.name, IDLE, begin=1080.0, end=1400.0)
    told = [watch(reading(IDLE, 1400.0), name=node.name) for node in nodes]
    found = [len(looks.look(told, 1400.0 + second, nodes=nodes, jobs=jobs)) for second in range(3)]
    assert found == [GPUS_A_LOOK // 4, 2 * GPUS_A_LOOK // 4, count]
