"""Jobs that are silent against their own rhythm: cheap to see, and nothing is said when unsure."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.fleet_state import Silence
from cockpit.formats.scontrol_show import JobDetail
from cockpit.hosts.local import LocalHost
from cockpit.models import Fault, FaultError, FaultKind, Job
from cockpit.silences import MOST_JOBS, NEW_A_LOOK, SilenceWatch
from cockpit.sources.remote_file import STAMPS


class Counting(LocalHost):
    """This machine as the head; counts what is run."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[str] = []
        self.fault: FaultError | None = None

    def run(self, argv: Any, **options: Any) -> Any:
        if self.fault is not None:
            raise self.fault
        self.ran.append("stat" if STAMPS in argv else argv[0])
        return super().run(argv, **options)


class Site:
    """As much of a Cluster as the watch uses; jobs write to files of the test's own."""

    def __init__(self, folder: Path, *jobs: Job) -> None:
        self.folder, self.asked = folder, list[int]()
        self.head = Counting()
        self.view = SimpleNamespace(queue=SimpleNamespace(jobs=jobs))
        self.clock = SimpleNamespace(steady=lambda: 500.0)
        self.silences: Any = {}

    def head_now(self) -> float:
        return time.time()

    def job_detail(self, job: Job) -> JobDetail:
        self.asked.append(job.job_id)
        pairs = (("JobId", str(job.job_id)), ("JobState", "RUNNING"), ("BatchFlag", "1"))
        out = str(self.folder / f"{job.job_id}.out")
        return JobDetail(job.job_id, pairs, std_out=out, std_err=out, work_dir=str(self.folder))


def job(number: int, *, gpus: int = 8, state: str = "R", ran_s: float = 7200.0) -> Job:
    return Job(number, state, gpus=gpus, started_at=time.time() - ran_s)


def write(folder: Path, number: int, *, age_s: float, every_s: float = 20.0, last: str = "", steps: int = 30) -> Path:
    """A log that told a step every so often and was written last `age_s` ago."""
    end = time.time() - age_s
    lines = [
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(end - (steps - at) * every_s)) + f" step {at} loss 1.0"
        for at in range(steps)
    ]
    path = folder / f"{number}.out"
    path.write_text("\n".join([*lines, last]) + "\n")
    os.utime(path, (end, end))
    return path


def watch(site: Site) -> SilenceWatch:
    return SilenceWatch(site)  # type: ignore[arg-type]


def test_a_job_that_wrote_every_20_s_and_has_not_for_14_minutes(tmp_path: Path) -> None:
    write(tmp_path, 7, age_s=840)
    found = watch(Site(tmp_path, job(7))).look()
    assert list(found) == [7]
    assert (round(found[7].age_s / 60), found[7].rhythm_s, found[7].at) == (14, 20.0, 500.0)


@pytest.mark.parametrize(
    "about",
    [
        {"age_s": 200},
        {"age_s": 840, "every_s": 300.0},
        {"age_s": 840, "steps": 0},
        {"age_s": 840, "last": "saving checkpoint to /fsx/ckpt/step-30"},
        {"age_s": 840, "last": "running evaluation: evaluating on 4096 samples"},
    ],
    ids=["not for long", "a slow rhythm", "no rhythm", "a checkpoint", "an evaluation"],
)
def test_nothing_is_said_when_unsure(tmp_path: Path, about: dict[str, Any]) -> None:
    write(tmp_path, 7, **about)
    assert watch(Site(tmp_path, job(7))).look() == {}


def test_a_job_that_writes_again_is_silent_no_longer(tmp_path: Path) -> None:
    write(tmp_path, 7, age_s=840)
    looks = watch(Site(tmp_path, job(7)))
    assert looks.look()
    write(tmp_path, 7, age_s=1)
    assert looks.look() == {}


def test_a_silence_that_becomes_too_long_for_a_slow_rhythm_is_seen_then(tmp_path: Path) -> None:
    write(tmp_path, 7, age_s=400, every_s=100.0)
    site: Any = Site(tmp_path, job(7))
    looks = watch(site)
    assert looks.look() == {}
    site.head_now = lambda: time.time() + 600
    assert looks.look()[7].rhythm_s == 100.0
    assert site.head.ran.count("sh") == 1  # and the log was read once


def test_it_is_cheap(tmp_path: Path) -> None:
    """Slurm is asked once for a job, a log is read once a silence; a look at jobs that write is one stat."""
    write(tmp_path, 7, age_s=840)
    write(tmp_path, 8, age_s=3)
    site = Site(tmp_path, job(7), job(8))
    looks = watch(site)
    looks.look()
    assert sorted(site.asked) == [7, 8]
    first = list(site.head.ran)
    assert looks.look()
    assert sorted(site.asked) == [7, 8]
    assert site.head.ran[len(first) :] == ["stat"]


def test_only_the_biggest_running_jobs_are_looked_at_and_new_ones_a_few_at_a_time(tmp_path: Path) -> None:
    jobs = [job(number, gpus=number) for number in range(2, 40)]
    site = Site(tmp_path, *jobs, job(50, gpus=900, state="PD"), job(51, gpus=900, ran_s=10.0), job(52, gpus=1))
    looks = watch(site)
    for _ in range(10):
        looks.look()
    assert len(site.asked) == MOST_JOBS
    assert min(site.asked) == 40 - MOST_JOBS
    assert site.asked[:NEW_A_LOOK] == [39, 38, 37, 36]


def test_a_head_that_does_not_answer_makes_nobody_silent(tmp_path: Path) -> None:
    write(tmp_path, 7, age_s=840)
    site = Site(tmp_path, job(7))
    looks = watch(site)
    assert looks.look()
    site.head.fault = FaultError(Fault(FaultKind.TIMEOUT, "stat", "no answer"))
    assert looks.look() == {}


def test_the_thread_ends_with_the_cluster_and_lives_through_nonsense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site: Any = Site(tmp_path, job(7))
    site.silences = {7: Silence(900.0, 20.0, 1.0)}
    site.pace = SimpleNamespace(paused=False)
    waits = iter([False, False, True])
    site.wait_stopped = lambda _: next(waits)
    monkeypatch.setattr(SilenceWatch, "look", lambda self: 1 / 0)
    before = set(threading.enumerate())
    watch(site).start()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert site.silences == {}
    assert next(waits, None) is None
