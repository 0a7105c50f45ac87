"""The narrow look at jobs: ids, state, holds in every spelling, and names of other people that do no harm."""

from __future__ import annotations

import pytest

from cockpit.formats.arrays import share_tasks, task_ranges
from cockpit.formats.errors import FormatError
from cockpit.formats.job_now import job_now_args, on_nodes_args, parse_jobs_now

MARK = "abc123"


def raw(*records: str) -> bytes:
    return "".join(record.replace("|", "\x1f") + f"\x1e{MARK}\n" for record in records).encode()


def test_records_are_read_as_22_05_prints_them() -> None:
    jobs = parse_jobs_now(
        raw("1|1|N/A|N/A|R|0|4294901759|0|None", "4|4|1-2,4-6|N/A|PD|1|0|-100|JobHeldUser,JobHeldAdmin"), MARK
    )
    assert [(job.job_id, job.array_job_id, job.array_tasks) for job in jobs] == [(1, None, ""), (4, 4, "1-2,4-6")]
    assert [(job.state, job.restarts, job.priority, job.nice) for job in jobs] == [
        ("R", 0, 4294901759, 0),
        ("PD", 1, 0, -100),
    ]
    assert [job.held for job in jobs] == [False, True]


@pytest.mark.parametrize(
    ("reason", "held"),
    [
        ("JobHeldAdmin", True),
        ("JobHeldUser,JobHeldAdmin", True),
        ("JobHeldUser,JobHeldAdmin,None", False),  # some of the array's tasks are not held
        ("JobArrayTaskLimit,JobHeldUser", False),
        ("launch failed requeued held", True),
        ("job requeued in held state", True),
        ("Resources", False),
        ("None", False),
    ],
)
def test_a_hold_on_some_tasks_is_no_hold_on_all(reason: str, held: bool) -> None:
    (job,) = parse_jobs_now(raw(f"4|4|1-6|N/A|PD|0|0|0|{reason}"), MARK)
    assert job.held is held


def test_a_cut_answer_is_an_error() -> None:
    with pytest.raises(FormatError):
        parse_jobs_now(raw("1|1|N/A|N/A|R|0|1|0|None")[:-3], MARK)


def test_the_questions_are_narrow() -> None:
    args = job_now_args(["1", "5_[1-3]"], MARK, each_task=True)
    assert args[:7] == ["-h", "-a", "-t", "all", "-r", "-j", "1,5_[1-3]"]
    assert on_nodes_args("n[1-2]", MARK)[:4] == ["-h", "-a", "-w", "n[1-2]"]


def test_task_lists() -> None:
    assert [list(each) for each in task_ranges("[1,3-4,10-20:5%2]")] == [[1], [3, 4], [10, 15, 20]]
    assert task_ranges("x,1-,99999999999999") == ()
    assert share_tasks("4-6", "1-5%2")
    assert not share_tasks("4-6", "7-9,10-30:3")
    assert not share_tasks("12", "10-30:5")
