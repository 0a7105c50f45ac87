"""The end of an NCCL test that was started from here: by the runner, with a record, never past read-only."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from actions import nccl_live
from actions.audit import AuditLog
from actions.nccl import job_by_id
from actions.nccl_live import end_jobs, job_ended
from cockpit.demo.programs.asked_jobs import LOGIN
from cockpit.models import FaultError, FaultKind
from tests.still import StillClock
from tests.unit.action_kit import Kit, is_write

NAME = "asr-debug"


class Moving(StillClock):
    """Five seconds pass with every look at it, so that a job that is ending does end."""

    def steady(self) -> float:
        self.time += 5
        return super().steady()


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(nccl_live, "LOOK_S", 0.0)


def own_job(kit: Kit) -> str:
    """The id of the job of that name, which is now one of the login's own, as a test started from here is."""
    (job,) = [job for job in kit.head.sim.jobs.values() if job.ask.name == NAME]
    job.ask = replace(job.ask, user=LOGIN)
    return str(job.job_id)


def test_its_end_has_a_record_and_is_seen(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    kit.clock.__class__ = Moving
    job_id = own_job(kit)
    end_jobs(kit.cluster, NAME)
    (entry,) = AuditLog("still").entries()
    assert (entry.begin["action"], entry.outcome) == ("nccl-end", "ok")
    assert entry.begin["confirmed"] == f"part of {NAME}"
    sent = [list(argv) for argv in kit.head.calls if is_write(argv)]
    assert sent == entry.begin["commands"]
    assert sent[0][-1] == job_id
    end_jobs(kit.cluster, NAME)  # nothing is left to end: nothing is sent, nothing is recorded
    assert len(AuditLog("still").entries()) == 1


def test_it_is_refused_where_nothing_may_change_and_says_what_is_left(tmp_path: Path) -> None:
    kit = Kit(tmp_path, read_only=True)
    job_id = own_job(kit)
    with pytest.raises(FaultError) as told:
        end_jobs(kit.cluster, NAME)
    assert told.value.fault.kind is FaultKind.DENIED
    assert job_id in told.value.fault.next_step
    assert not [argv for argv in kit.head.calls if is_write(argv)]


def test_a_job_that_is_looked_at_every_second_is_asked_for_by_its_id(tmp_path: Path) -> None:
    """By its name the controller would send its whole queue each time."""
    kit = Kit(tmp_path)
    job_id = int(own_job(kit))
    (job,) = job_by_id(kit.cluster, job_id)
    assert job.job_id == job_id
    last = kit.head.calls[-1]
    assert str(job_id) == last[last.index("-j") + 1]
    assert job_by_id(kit.cluster, 999_999) == ()


def test_a_submission_that_still_waits_is_cut_short_by_the_end_of_its_job(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    kit.clock.__class__ = Moving
    job_id = int(own_job(kit))
    over = threading.Event()
    nccl_live.cut_short(kit.cluster, NAME, over)
    until = time.monotonic() + 20
    while not all(job_ended(job.state) for job in job_by_id(kit.cluster, job_id)):
        assert time.monotonic() < until
        time.sleep(0.01)
    over.set()
