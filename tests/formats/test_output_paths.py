"""Where a job's output goes, by what scontrol tells; the expected file names are those that Slurm 22.05.8 made."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.formats.output_paths import OutputFile, expand_pattern, job_outputs
from cockpit.formats.scontrol_show import JobDetail, parse_job_detail

RECORD = """\
JobId={job} {array}JobName={name}
   UserId=maria(1001) GroupId=research(2000) MCS_label=N/A
   JobState={state} Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag={batch} Reboot=0 ExitCode=0:0
   NodeList=gpu-st-p5-[1-2]
   BatchHost=gpu-st-p5-1.cluster.local
   WorkDir=/fsx/runs
   StdErr={err}
   StdIn=/dev/null
   StdOut={out}
   Power=
"""


def detail(out: str, err: str | None = None, **changes: Any) -> JobDetail:
    values = {"job": 11, "name": "train", "array": "", "batch": 1, "state": "RUNNING", **changes}
    return parse_job_detail(RECORD.format(out=out, err=out if err is None else err, **values).encode())


def path(shown: str, **changes: Any) -> str:
    return job_outputs(detail(f"/fsx/runs/{shown}", **changes)).files[0].path.removeprefix("/fsx/runs/")


@pytest.mark.parametrize(
    ("shown", "made"),
    [
        ("slurm-11.out", "slurm-11.out"),
        ("%4j.out", "0011.out"),
        ("%12j.out", "0000000011.out"),
        ("%N.out", "gpu-st-p5-1.out"),
        ("%n.out", "0.out"),
        ("%t.out", "0.out"),
        ("%4t.out", "0000.out"),
        ("%s.out", "batch.out"),
        ("%J.out", "11.out"),
        ("%%p.out", "%p.out"),
        ("%q.out", "%q.out"),
        ("%b.out", "%b.out"),
        ("%3x-%5u.out", "train-maria.out"),
        ("%99999999999999j.out", "0000000011.out"),
        ("100%", "100%"),
        ("%", "%"),
    ],
)
def test_what_scontrol_leaves_of_a_pattern_is_filled_in_as_slurmstepd_does(shown: str, made: str) -> None:
    assert path(shown) == made


def test_array_task() -> None:
    array = "ArrayJobId=7 ArrayTaskId=23 "
    assert path("%4A_%3a-%b.out", array=array) == "0007_023-3.out"
    found = job_outputs(detail("/fsx/runs/x%b", array=array)).files[0]
    assert found.others == ("/fsx/runs/x%b",)  # older versions leave it as it is


def test_the_path_as_shown_is_tried_as_well_since_a_name_may_hold_a_percent_sign() -> None:
    found = job_outputs(detail("/fsx/runs/50%t.out", name="50%t")).files[0]
    assert (found.path, found.others) == ("/fsx/runs/500.out", ("/fsx/runs/50%t.out",))


def test_both_streams() -> None:
    one = job_outputs(detail("/fsx/a.out"))
    assert one.files == (OutputFile("output", "/fsx/a.out"),)
    assert job_outputs(detail("/fsx/a.out", "")).files == one.files  # Slurm 25.11 where no error file was asked for
    two = job_outputs(detail("/fsx/a.out", "/fsx/a.err"))
    assert [(file.stream, file.path) for file in two.files] == [("stdout", "/fsx/a.out"), ("stderr", "/fsx/a.err")]
    quiet = job_outputs(detail("/dev/null", "/fsx/a.err"))
    assert [file.stream for file in quiet.files] == ["stderr"]
    assert two.batch_host == "gpu-st-p5-1.cluster.local"


def test_a_relative_path_is_below_the_working_directory() -> None:
    assert job_outputs(detail("logs/a.out")).files[0].path == "/fsx/runs/logs/a.out"


def test_why_there_is_no_file() -> None:
    assert "/dev/null" in job_outputs(detail("/dev/null")).why
    assert "no batch script" in job_outputs(detail("", batch=0)).why
    rest = detail("/fsx/slurm-7_4294967294.out", array="ArrayJobId=7 ArrayTaskId=4-23%4 ", state="PENDING")
    assert "have not started" in job_outputs(rest).why
    assert job_outputs(rest).files == ()
    assert job_outputs(rest).pending


def test_a_job_that_is_no_array_may_well_have_the_number_for_none_in_its_name() -> None:
    assert path("3_4294967294.out") == "3_4294967294.out"


@pytest.mark.parametrize("text", ["", "%", "%%", "%4", "%é", "\n%j\n", "%0j", "%00000j", "汉%j"])
def test_odd_patterns(text: str) -> None:
    assert isinstance(expand_pattern(text, {"j": "7"}), str)
