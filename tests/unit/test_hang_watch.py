"""Jobs that look hung by what their GPUs show, and all those that only look alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.fleet_state import Silence
from cockpit.gpu_models import GpuSample
from cockpit.models import Health, Problem
from tests.unit.gpu_fleet import JOB, STEADY_AHEAD_S, WHOLE, problems
from tests.unit.test_fleet import sample

SPIN = [sample(slot, util_pct=100, mem_util_pct=1, power_w=140, power_limit_w=700) for slot in range(8)]
ODD = sample(7, util_pct=0, mem_util_pct=0, power_w=110, power_limit_w=700)
NODE = replace(WHOLE, gpus_total=8, gpus_used=8, gpu_indices=tuple(range(8)))
HELD = replace(JOB, gpus=8)


def hung(samples: list[GpuSample], minutes: float = 2, gpus: int = 8) -> dict[str, str]:
    found = problems(samples, node=NODE, jobs=(replace(HELD, gpus=gpus),), minutes=minutes)
    return {key: problem.title for key, problem in found.items() if key.startswith("job:")}


def test_all_but_one_spin_and_the_odd_one_is_named_first() -> None:
    samples = [*SPIN[:7], ODD]
    found = problems(samples, node=NODE, jobs=(HELD,), minutes=2)["job:hung:7"]
    assert found.health is Health.CRITICAL
    assert found.title == "looks hung: 7 of its 8 GPUs spin and move no data · maria"
    assert "the odd ones: p5-1/7" in found.evidence
    assert "median power 140 of 700 W" in found.evidence
    gpus = [key for kind, key in found.about if kind == "gpu"]
    assert gpus[0] == "p5-1/7"


def test_it_is_said_instead_of_that_one_of_its_gpus_is_little_used() -> None:
    assert set(hung([*SPIN[:7], ODD], minutes=7)) == {"job:hung:7"}


def test_it_takes_a_minute() -> None:
    assert hung(SPIN, minutes=0.7) == {}
    assert set(hung(SPIN, minutes=1.2)) == {"job:hung:7"}


@pytest.mark.parametrize(
    "works",
    [{"mem_util_pct": 30}, {"power_w": 600}, {"util_pct": 80}],
    ids=["moves data", "takes power", "has pauses"],
)
def test_a_job_that_works_is_not_hung(works: dict[str, float]) -> None:
    looks = {"util_pct": 100, "mem_util_pct": 1, "power_w": 140, "power_limit_w": 700, **works}
    assert not [key for key in hung([sample(slot, **looks) for slot in range(8)]) if "hung" in key]


def test_a_third_that_is_idle_is_another_trouble() -> None:
    assert "job:hung:7" not in hung([*SPIN[:5], *[replace(ODD, gpu=one.gpu) for one in SPIN[5:]]])


def test_nothing_is_said_of_what_was_not_seen() -> None:
    assert "job:hung:7" not in hung(SPIN, gpus=16)
    unread = [sample(slot, util_pct=100, mem_util_pct=None, power_w=140, power_limit_w=700) for slot in range(8)]
    assert "job:hung:7" not in hung(unread)


def test_a_job_of_one_gpu_waits_for_nobody() -> None:
    one = replace(WHOLE, gpus_total=1, gpus_used=1, gpu_indices=(0,))
    found = problems(SPIN[:1], node=one, jobs=(replace(JOB, gpus=1),), minutes=2)
    assert "job:hung:7" not in found


def silent(samples: list[GpuSample], *, minutes: float = 2) -> dict[str, Problem]:
    """The same of a job that has written nothing for 14 minutes."""
    quiet = {7: Silence(840.0, 20.0, 1000.0 + minutes * 60 + STEADY_AHEAD_S)}
    return problems(samples, node=NODE, jobs=(HELD,), minutes=minutes, silences=quiet)


def test_a_job_that_idles_and_is_silent_against_its_rhythm_looks_hung() -> None:
    idle = [sample(slot, util_pct=0, mem_util_pct=0, power_w=90, power_limit_w=700) for slot in range(8)]
    found = silent(idle)["job:hung:7"]
    assert found.title == "looks hung: no output for 14m, usually every 20s; 8 of its 8 GPUs idle · maria"
    assert "job:hung:7" not in hung(idle)


def test_silence_is_evidence_beside_gpus_that_spin() -> None:
    found = silent(SPIN)["job:hung:7"]
    assert found.evidence.endswith("every one of them spins; no output for 14m, usually every 20s")


def test_a_job_that_works_in_silence_is_not_hung() -> None:
    busy = [sample(slot, util_pct=97, mem_util_pct=40, power_w=620, power_limit_w=700) for slot in range(8)]
    assert "job:hung:7" not in silent(busy)
