"""Problems of single GPUs: when a finding becomes one, when it is over, and what Slurm knows better."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.catalog.severity import Severity
from cockpit.formats.kernel_log import KernelEvent, KernelKind
from cockpit.formats.probe_slots import HIDDEN
from cockpit.gpu_models import Driver, DriverState, GpuProcess, GpuSample, Lack, MigInstance, Missing
from cockpit.models import Health, Job, Problem
from cockpit.problems import Settled
from cockpit.sources.gpu_events import NodeEvents
from cockpit.sources.gpu_history import GpuHistory
from tests.unit.gpu_fleet import FREE, JOB, WALL_AHEAD_S, WHOLE, Looks, problems, reading, watch
from tests.unit.test_fleet import sample

GPUS = [sample(slot) for slot in range(4)]
BUSY_AND_HELD = [sample(0), sample(1, util_pct=0), sample(2, util_pct=0, mem_used_mib=4)]
PROCESS = GpuProcess("GPU-0", 99, user="lucas", command="python")


def test_work_and_memory_without_a_job() -> None:
    found = problems(BUSY_AND_HELD, jobs=(), node=FREE, processes=(PROCESS,), processes_at=1359.0)
    assert found["gpu:p5-1:no_job"].evidence == "lucas python"
    assert found["gpu:p5-1:no_job"].subject == "p5-1 GPU 0"
    assert found["gpu:p5-1:leftover"].subject == "p5-1 GPU 1"


def test_they_must_last_because_slurm_and_the_probes_are_out_of_step() -> None:
    looks = Looks()
    for second, there in ((0, False), (29, False), (31, True)):
        told = watch(reading(BUSY_AND_HELD, 1000.0 + second, processes_at=1000.0))
        found = looks.look([told], 1000.0 + second, nodes=[FREE])
        assert ("gpu:p5-1:no_job" in found, "gpu:p5-1:leftover" in found) == (there, there)
    # A job in between, and the time begins anew.
    looks.look([watch(reading(BUSY_AND_HELD, 1033.0, processes_at=1000.0))], 1033.0, jobs={"p5-1": (JOB,)})
    told = watch(reading(BUSY_AND_HELD, 1035.0, processes_at=1000.0))
    assert "gpu:p5-1:no_job" not in looks.look([told], 1035.0, nodes=[FREE])


@pytest.mark.parametrize("source", ["nodes_live", "queue_live"])
def test_old_answers_of_slurm_are_not_held_against_a_gpu(source: str) -> None:
    looks = Looks()
    for at in (1000.0, 1040.0):
        told = watch(reading(BUSY_AND_HELD, at, processes_at=at))
        found = looks.look([told], at, nodes=[FREE], stale=source)
    assert not {"gpu:p5-1:no_job", "gpu:p5-1:leftover"} & set(found)


@pytest.mark.parametrize("asked_at", [None, 1000.0])
def test_memory_is_nobodys_only_where_processes_were_asked_for_lately(asked_at: float | None) -> None:
    assert "gpu:p5-1:leftover" not in problems(BUSY_AND_HELD, jobs=(), node=FREE, processes_at=asked_at)


def test_a_process_that_is_gone_holds_nothing() -> None:
    ghost = GpuProcess("GPU-1", 4242, exists=False)
    found = problems(BUSY_AND_HELD, jobs=(), node=FREE, processes=(PROCESS, ghost), processes_at=1359.0)
    assert found["gpu:p5-1:leftover"].evidence == "70000 MiB; the driver names pid 4242, which is gone"


def test_a_job_on_a_gpu_it_was_not_given() -> None:
    node = replace(WHOLE, gpus_used=2, gpu_indices=(0, 1))
    thief = GpuProcess("GPU-3", 77, user="maria", command="python", job_id=7)
    found = problems([*GPUS[:2], sample(2, util_pct=0, mem_used_mib=4), sample(3)], node=node, processes=(thief,))
    assert set(found) == {"gpu:p5-1:not_given"}
    assert found["gpu:p5-1:not_given"].subject == "p5-1 GPU 3"
    assert "used by job 7" in found["gpu:p5-1:not_given"].title


def held(**pids: str) -> tuple[GpuProcess, ...]:
    """Processes `job7="0,1"`: of these jobs on these GPUs."""
    return tuple(
        GpuProcess(f"GPU-{gpu}", 70 + int(gpu), user="maria", command="python", job_id=int(job.removeprefix("job")))
        for job, gpus in pids.items()
        for gpu in gpus.split(",")
    )


FREE_GPU = {"util_pct": 0, "mem_used_mib": 4}
TWO_GIVEN = replace(WHOLE, gpus_used=2, gpu_indices=(0, 1))
PAIR = replace(JOB, gpus=2)


def in_use(*slots: int) -> list[GpuSample]:
    return [sample(slot, **({} if slot in slots else FREE_GPU)) for slot in range(4)]


def test_a_job_on_its_own_gpus_is_no_thief_where_gres_conf_has_another_order() -> None:
    assert problems(in_use(2, 3), node=TWO_GIVEN, jobs=(PAIR,), processes=held(job7="2,3")) == {}
    two = (replace(PAIR, gpus=1), replace(JOB, job_id=8, gpus=1))
    assert problems(in_use(1, 2), node=TWO_GIVEN, jobs=two, processes=held(job7="2", job8="1")) == {}


@pytest.mark.parametrize(
    ("used", "processes", "jobs"),
    [
        ((0, 1, 3), held(job7="0,1,3"), (PAIR,)),  # more than it has
        ((0, 3), held(job7="0", job9="3"), (PAIR,)),  # a job that is not here any more
        ((0, 1, 3), held(job7="3"), (PAIR,)),  # more are in use than were given
    ],
)
def test_it_is_one_where_the_order_does_not_explain_it(
    used: tuple[int, ...], processes: tuple[GpuProcess, ...], jobs: tuple[Job, ...]
) -> None:
    found = problems(in_use(*used), node=TWO_GIVEN, jobs=jobs, processes=processes)
    assert found["gpu:p5-1:not_given"].subject == "p5-1 GPU 3"


def test_two_jobs_on_one_gpu_are_not_explained_by_the_order() -> None:
    jobs = (replace(PAIR, gpus=1), replace(JOB, job_id=8, gpus=1))
    found = problems(in_use(3), node=TWO_GIVEN, jobs=jobs, processes=held(job7="3", job8="3"))
    assert "gpu:p5-1:not_given" in found


def test_gpus_that_the_probe_may_not_see_are_neither_lost_nor_missing() -> None:
    hidden = [GpuSample(sample(slot).gpu, lost=HIDDEN) for slot in (2, 3)]
    found = problems([*in_use(0, 1)[:2], *hidden], node=TWO_GIVEN, jobs=(PAIR,), hidden_gpus=(2, 3))
    assert [(one.health, one.title) for one in found.values()] == [(Health.UNKNOWN, "not visible to this login")]
    assert problems(GPUS[:2], hidden_gpus=(2, 3)) == {}  # also where the bus cannot be read


@pytest.mark.parametrize("state", [DriverState.OK, DriverState.SMI])
def test_fewer_gpus_than_slurm_was_promised(state: DriverState) -> None:
    found = problems(GPUS[:3], driver=Driver(state))
    assert found["gpu:p5-1:count"].title == "3 GPUs, Slurm counts on 4"


def cut_up(slot: int, pieces: int) -> GpuSample:
    one = sample(slot)
    instances = tuple(MigInstance(place, 0) for place in range(pieces))
    return replace(one, gpu=replace(one.gpu, mig=True), instances=instances)


def test_instances_count_where_gpus_are_cut_up() -> None:
    node = replace(WHOLE, gpus_total=28, gpus_used=0, gpu_indices=None)
    assert "gpu:p5-1:count" not in problems([cut_up(slot, 7) for slot in range(4)], jobs=(), node=node)
    found = problems([cut_up(slot, 7) for slot in range(3)], jobs=(), node=node)
    assert found["gpu:p5-1:count"].title == "21 MIG instances, Slurm counts on 28"
    unknown = [cut_up(slot, 0) for slot in range(4)]  # nvidia-smi tells the mode and not the instances
    assert "gpu:p5-1:count" not in problems(unknown, jobs=(), node=node, driver=Driver(DriverState.SMI))


def test_a_lost_gpu_is_told_once() -> None:
    lost = replace(sample(3), lost=Missing(Lack.LOST, "fell off the bus", 15))
    found = problems([*GPUS[:3], lost])
    assert "gpu:p5-1:count" not in found
    assert "gpu:p5-1:lost" in found


def test_what_a_node_told_long_ago_is_said_to_be_old() -> None:
    hot = [*GPUS[:3], sample(3, temp_c=91)]
    found = Looks().look([watch(reading(hot, 1000.0))], 1300.0, jobs={"p5-1": (JOB,)})
    assert "(as of 5m ago) · job 7" in found["gpu:p5-1:hot"].title
    found = Looks().look([watch(reading(GPUS[:3], 1000.0))], 1300.0)
    assert found["gpu:p5-1:count"].title.endswith("(as of 5m ago)")
    assert "as of" not in Looks().look([watch(reading(hot, 1000.0))], 1001.0)["gpu:p5-1:hot"].title


def test_an_xid_dates_its_problem_on_our_clock() -> None:
    events = [
        KernelEvent(KernelKind.XID, Severity.CRITICAL, "Xid 48", at, code=48, bus="0000:03:00") for at in (900.0, 950.0)
    ]
    told = watch(reading(GPUS, 1000.0), events=NodeEvents(tuple(events)))
    assert Looks().look([told], 1001.0)["gpu:p5-1:xid:48"].since == 900.0 + WALL_AHEAD_S


def test_a_hot_gpu_is_over_only_when_it_is_some_degrees_cooler() -> None:
    looks = Looks()

    def at(second: float, temp_c: float) -> bool:
        told = reading([*GPUS[:3], sample(3, temp_c=temp_c)], 1000.0 + second)
        return "gpu:p5-1:hot" in looks.look([watch(told)], 1000.0 + second)

    assert [at(0, 84), at(2, 85), at(4, 83), at(6, 82), at(8, 81.9), at(10, 83)] == [
        False,
        True,
        True,
        True,
        False,
        False,
    ]


def test_what_must_last_is_a_warning_first_and_old_readings_do_not_make_it_last() -> None:
    looks, slowed = Looks(), [*GPUS[:3], sample(3, throttle_mask=0x40)]

    def at(taken_at: float, looked_at: float, samples: list[GpuSample] = slowed) -> Health | None:
        found = looks.look([watch(reading(samples, taken_at))], looked_at)
        return found["gpu:p5-1:throttle:40"].health if "gpu:p5-1:throttle:40" in found else None

    assert [at(1000, 1000), at(1059, 1059), at(1059, 1300)] == [Health.WARN] * 3
    assert at(1060, 1301) is Health.CRITICAL
    assert at(1302, 1302, GPUS) is None
    assert at(1304, 1304) is Health.WARN  # the time begins anew


def test_a_problem_that_comes_and_goes_does_not_flap() -> None:
    settled, hot = Settled(hold_s=20), Problem("gpu:hot", Health.WARN, "p5-1 GPU 3", "86 °C", "")
    assert settled.held([hot], 0.0) == (hot,)
    assert settled.held([], 10.0) == (hot,)
    assert settled.held([hot], 25.0) == (hot,)
    assert settled.held([], 46.0) == ()


def test_times_that_tremble_keep_the_order() -> None:
    settled, one = Settled(hold_s=20), Problem("gpu:p5-1:xid:48", Health.WARN, "", "", "", since=900.0)
    assert settled.held([one], 0.0) == (one,)
    assert settled.held([replace(one, title="×2", since=900.4)], 1.0) == (replace(one, title="×2"),)
    later = replace(one, since=990.0)
    assert settled.held([later], 2.0) == (later,)


def test_problems_that_contradict_each_other_are_never_there_together() -> None:
    settled = Settled(hold_s=20)
    idle, low, other = (Problem(key, Health.WARN, "", "", "") for key in ("job:idle:7", "job:low:7", "job:low:8"))
    assert settled.held([idle], 0.0) == (idle,)
    assert settled.held([other], 1.0) == (idle, other)
    assert set(settled.held([low], 2.0)) == {other, low}
    assert set(settled.held([idle], 3.0)) == {other, idle}


def test_the_history_keeps_ten_minutes_and_tells_gaps() -> None:
    history = GpuHistory()
    for second in range(0, 1200, 2):
        value = {} if second < 1100 else {"util_pct": sample(0).hbm_temp_c}
        history.add("p5-1", reading([sample(0, **value)], float(second)))
    series = history.series("p5-1", "GPU-0", "util_pct")
    assert series[-1][0] - series[0][0] <= 600
    assert series[0][1] == 97
    assert series[-1][1] is None
    history.forget("p5-1")
    assert history.series("p5-1", "GPU-0", "util_pct") == ()
