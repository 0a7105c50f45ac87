"""How long ago jobs wrote: asked of the head, and left out rather than waited for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.formats.scontrol_show import JobDetail
from cockpit.hosts.base import Completed
from cockpit.hosts.local import LocalHost
from cockpit.models import Fault, FaultError, FaultKind, Job
from cockpit.output_ages import MOST_JOBS, output_ages
from cockpit.sources.remote_file import STAMPS
from tests.still import StillClock

NOW = 1_000_000.0


class Head:
    """A line for each file that is asked for: its stamp, or a dash where it is not there."""

    def __init__(self, stamps: dict[str, int] | None) -> None:
        self.stamps, self.asked = stamps, list[str]()

    def run(self, argv: Sequence[str], *, deadline_s: float) -> Completed:
        if self.stamps is None:
            raise FaultError(Fault(FaultKind.TIMEOUT, "stat", "no answer"))
        assert list(argv[:2]) == ["sh", "-c"]
        self.asked = list(argv[4:])
        lines = [str(self.stamps.get(path, "-")) for path in self.asked]
        return Completed(0, "\n".join(lines).encode(), b"", 0.01)


def cluster(stamps: dict[str, int] | None) -> Any:
    def detail(job: Job) -> JobDetail:
        if job.job_id == 13:
            raise FaultError(Fault(FaultKind.TIMEOUT, "scontrol", "no answer"))
        pairs = (("JobId", str(job.job_id)), ("JobState", "RUNNING"), ("BatchFlag", "1"))
        return JobDetail(job.job_id, pairs, f"/fsx/{job.job_id} it's.out", f"/fsx/{job.job_id}.err", "/fsx")

    return SimpleNamespace(head=Head(stamps), job_detail=detail, head_now=lambda: NOW, clock=StillClock())


def jobs(*ids: int, state: str = "R") -> list[Job]:
    return [Job(number, state) for number in ids]


def test_the_younger_of_two_files_counts_and_a_clock_ahead_is_no_age_below_zero() -> None:
    at = cluster({"/fsx/1 it's.out": 999_000, "/fsx/1.err": 999_940, "/fsx/2 it's.out": 1_000_005})
    assert output_ages(at, jobs(1, 2, 3)) == {1: 60.0, 2: 0.0}


def test_what_waits_is_not_asked_for_and_what_slurm_does_not_tell_is_left_out() -> None:
    at = cluster({"/fsx/1.err": 999_990})
    assert output_ages(at, [*jobs(1, 13), *jobs(7, state="PD")]) == {1: 10.0}
    assert not [path for path in at.head.asked if path.startswith(("/fsx/13", "/fsx/7"))]


def test_the_script_tells_a_line_for_each_name_whatever_is_in_it(tmp_path: Path) -> None:
    names = ["it's $(touch x) `y`", "two\nlines", "-n"]
    for name in names:
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (5, 5))
    paths = [str(tmp_path / name) for name in (names[0], "not there", *names[1:])]
    done = LocalHost().run(["sh", "-c", STAMPS, "sh", *paths], deadline_s=10)
    assert done.stdout == b"5\n-\n5\n5\n"


@pytest.mark.parametrize("stamps", [None, {}])
def test_a_hung_filesystem_tells_nothing(stamps: dict[str, int] | None) -> None:
    assert output_ages(cluster(stamps), jobs(1)) == {}


def test_of_very_many_jobs_only_some_are_asked_for() -> None:
    at = cluster({})
    output_ages(at, jobs(*range(100, 400)))
    assert len(at.head.asked) == 2 * MOST_JOBS
