"""`scontrol listpids` as Slurm 22.05 prints it, and what is no such table."""

from __future__ import annotations

import pytest

from cockpit.formats.errors import FormatError
from cockpit.formats.listpids import JobPid, listpids_args, parse_listpids, says_none

TABLE = b"""\
PID      JOBID    STEPID   LOCALID GLOBALID
44       1        batch    0       0       \n\
50       1        batch    -       -       \n\
63       1        0        0       0       \n\
64       1        0        1       1       \n\
71       1        0        -       -       \n"""


def test_ranks_are_those_of_tasks_and_the_script_has_none() -> None:
    assert parse_listpids(TABLE) == (
        JobPid(44, 1, "batch"),
        JobPid(50, 1, "batch"),
        JobPid(63, 1, "0", 0, 0),
        JobPid(64, 1, "0", 1, 1),
        JobPid(71, 1, "0"),
    )
    assert listpids_args(7) == ["listpids", "7"]


def test_a_header_alone_is_no_process_and_nothing_is_no_table() -> None:
    assert parse_listpids(b"PID      JOBID    STEPID   LOCALID GLOBALID\n") == ()
    for raw in (b"", b"\xff\x00", b"slurmd: error\n", b"PID JOBID\n1 2\n"):
        with pytest.raises(FormatError):
            parse_listpids(raw)


def test_lines_that_are_cut_or_hold_no_numbers_are_left_out() -> None:
    raw = b"PID JOBID STEPID LOCALID GLOBALID\n12 7\nx 7 0 0 0\n9999999999999999999999 7 0 0 0\n13 7 \x1b[31m0 0 0\n"
    [told] = parse_listpids(raw)
    assert (told.pid, told.rank) == (13, None)
    assert "\x1b" not in told.step


def test_words_for_no_process_are_no_failure() -> None:
    assert says_none(b"", b"JobId=1 does not exist on node (null).\n")
    assert says_none(b"There are no steps for job 999999 on node (null).\n", b"")
    assert not says_none(b"", b"slurm_load_jobs error: Access/permission denied\n")
