"""Problems of the fleet: what jobs do with their GPUs, over time, and what lies under them."""

from __future__ import annotations

from dataclasses import replace

from cockpit.config import Rules
from cockpit.fleet import FleetJoin
from cockpit.gpu_models import Driver, DriverState, GpuProcess, GpuSample, MountReading, NodeReading
from cockpit.gpu_problems import Fleet, of_fleet
from cockpit.models import Fault, FaultKind, Health, Job, Problem
from cockpit.problems import Settled
from cockpit.sources.gpu_history import GpuHistory
from cockpit.sources.gpus import FleetReading, NodeWatch
from tests.unit.test_fleet import NODE, sample

JOB = Job(7, "R", user="maria", hostlist="p5-1", gpus=4)
WHOLE = replace(NODE, gpus_used=4, gpu_indices=(0, 1, 2, 3))


def reading(samples: list[GpuSample], at: float, **changes: object) -> NodeReading:
    told = [replace(one, taken_at=at) for one in samples]
    return NodeReading(at, 1, driver=Driver(DriverState.OK), gpus=tuple(told), **changes)  # type: ignore[arg-type]


def problems(
    samples: list[GpuSample],
    *,
    minutes: float = 6,
    held: tuple[Job, ...] = (JOB,),
    node: object = WHOLE,
    **changes: object,
) -> dict[str, Problem]:
    """The problems after these readings have lasted for some minutes."""
    history, last = GpuHistory(), reading(samples, 0.0, **changes)
    for second in range(0, int(minutes * 60) + 1, 2):
        last = reading(samples, 1000.0 + second, **changes)
        history.add("p5-1", last)
    fleet = FleetReading({"p5-1": NodeWatch("p5-1", last, 500.0)})
    rows = FleetJoin(Rules()).rows(fleet, (node,), {"p5-1": held})  # type: ignore[arg-type]
    found = of_fleet(Fleet(rows, fleet, {"p5-1": node}, history, Rules(), 501.0))  # type: ignore[dict-item]
    return {problem.key: problem for problem in found}


def test_a_busy_job_has_no_problem() -> None:
    assert problems([sample(slot) for slot in range(4)]) == {}


def test_a_job_that_uses_none_of_its_gpus_is_named_after_five_minutes_and_not_before() -> None:
    idle = [sample(slot, util_pct=0, power_w=72) for slot in range(4)]
    assert problems(idle, minutes=4) == {}
    found = problems(idle)
    assert set(found) == {"job:idle:7"}
    assert "holds 4 GPUs and uses none for 5 min · maria" in found["job:idle:7"].title


def test_gpus_that_are_little_used_and_one_that_lags() -> None:
    mixed = [sample(0), sample(1), sample(2), sample(3, util_pct=30, power_w=180)]
    found = problems(mixed)
    assert "1 of its 4 GPUs" in found["job:low:7"].title
    assert found["job:lag:7:util_pct"].subject == "job 7 p5-1/3"
    assert found["job:lag:7:power_w"].evidence == "p5-1/3 180 W"


def test_small_differences_in_a_waiting_job_are_no_stragglers() -> None:
    close = [sample(slot, power_w=140 - slot) for slot in range(4)]
    assert not [key for key in problems(close) if key.startswith("job:lag")]


def test_work_and_memory_without_a_job() -> None:
    free = replace(NODE, gpus_used=0, gpu_indices=())
    process = GpuProcess("GPU-0", 99, user="lucas", command="python")
    found = problems(
        [sample(0), sample(1, util_pct=0), sample(2, util_pct=0, mem_used_mib=4)],
        held=(),
        node=free,
        processes=(process,),
    )
    assert found["gpu:p5-1:no_job"].evidence == "lucas python"
    assert found["gpu:p5-1:no_job"].subject == "p5-1 GPU 0"
    assert found["gpu:p5-1:leftover"].subject == "p5-1 GPU 1"


def test_fewer_gpus_than_slurm_was_promised() -> None:
    found = problems([sample(0), sample(1), sample(2)])
    assert found["gpu:p5-1:count"].title == "3 GPUs, Slurm counts on 4"


def test_file_systems() -> None:
    mounts = (
        MountReading("/fsx", "lustre", "fs-1@tcp:/x", hung_since=900.0),
        MountReading("/", "ext4", "/dev/root", 100, 95, 5),
        MountReading("/scratch", "xfs", "/dev/md0", 100, 50, 50, 1000, 990),
        MountReading("/home", "nfs4", "head:/home", 100, 20, 80, 1000, 10),
    )
    found = problems([sample(slot) for slot in range(4)], mounts=mounts)
    assert found["mount:hung:/fsx"].health is Health.CRITICAL
    assert "95 % full" in found["mount:full:/:p5-1"].title
    assert "out of inodes: 99 % used" in found["mount:full:/scratch:p5-1"].title
    assert len(found) == 3


def test_nodes_that_cannot_be_reached_are_one_problem_a_kind() -> None:
    fault = Fault(FaultKind.AUTH, "logging in", "publickey refused", "check the key")
    fleet = FleetReading({name: NodeWatch(name, None, None, fault, 1.0) for name in ("p5-1", "p5-2")}, ("p5-3",))
    found = {p.key: p for p in of_fleet(Fleet((), fleet, {}, GpuHistory(), Rules(), 10.0))}
    assert found["probe:the login is refused"].subject == "p5-[1-2]"
    assert found["probe:the login is refused"].next_step == "check the key"
    assert "nodes.max" in found["probe:left_out"].title


def test_a_problem_that_comes_and_goes_does_not_flap() -> None:
    settled, hot = Settled(hold_s=20), Problem("gpu:hot", Health.WARN, "p5-1 GPU 3", "86 °C", "")
    assert settled.held([hot], 0.0) == (hot,)
    assert settled.held([], 10.0) == (hot,)
    assert settled.held([hot], 25.0) == (hot,)
    assert settled.held([], 46.0) == ()


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
