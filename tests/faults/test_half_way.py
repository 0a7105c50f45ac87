"""A cockpit that is told to end half-way through an action: what was done, what was not, and what the record says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actions.audit import UNKNOWN, AuditLog
from tests.faults.conftest import Seen
from tests.faults.seat import Seat, commands, needs_seat
from tests.faults.slow import slow_controller
from tests.rig import Rig
from tests.rig.spec import HEAD

pytestmark = needs_seat
ONE_STEP = b"Created reservation="  # what slurmctld logs for one command of the plan


@pytest.mark.parametrize("hangs", [False, True], ids=["controller answers", "controller hangs"])
def test_sigterm_half_way_through_an_action(rig: Rig, tmp_path: Path, seen: Seen, hangs: bool) -> None:
    """Four nodes go into quarantine, one command after the other, when the cockpit is told to end."""
    seat = Seat(rig, tmp_path).start()
    (controller,) = rig.pids(HEAD, "slurmctld")
    try:
        confirm_quarantine(seat)
        pid = seat.pid()
        with slow_controller(rig, stepwise=ONE_STEP, ends_frozen=hangs):
            seat.keys("Enter")
            seat.tmux.wait(lambda text: "sent in" in text, 60)
            os.kill(pid, signal.SIGTERM)
        seat.tmux.wait(lambda text: "ended 143" in text, 15)
        assert "Traceback" not in seat.tmux.text()
        time.sleep(1.0)
        os.kill(controller, signal.SIGCONT)
        seen(judged(rig, seat, tmp_path, hangs=hangs))
        rig.wait_for(lambda: not left_behind(rig), 30, "everything on the machines to end")
    finally:
        os.kill(controller, signal.SIGCONT)
        seat.close()
        for name in reservations(rig):
            rig.slurm("scontrol", "delete", f"reservationname={name}")


def confirm_quarantine(seat: Seat) -> None:
    """All static nodes marked, the plan open, reason and count typed."""
    seat.keys("/")
    time.sleep(0.5)
    seat.keys("-l", "gpu-st")
    seat.keys("Enter")
    seat.tmux.wait(lambda text: 'filter "gpu-st" 4/6' in text and "/ filter" in text)
    seat.keys("*")
    seat.tmux.wait(lambda text: "4 marked" in text)
    seat.keys(":")
    time.sleep(0.5)
    seat.keys("-l", "quarantine")
    seat.tmux.wait(lambda text: "end quarantine" in text)
    seat.keys("Enter")
    seat.tmux.wait(lambda text: "type 4" in text)
    for words in (["-l", "a look"], ["Tab"], ["-l", "4"]):
        time.sleep(0.7)  # a dialog takes no key in its first moment, and no burst of them
        seat.keys(*words)
    time.sleep(0.7)


def judged(rig: Rig, seat: Seat, state: Path, *, hangs: bool) -> str:
    """The record tells what was sent and what not, and Slurm has exactly that."""
    (entry,) = AuditLog("rig", state / "state" / "cockpit" / "audit").entries()
    wanted = [word.partition("=")[2] for argv in entry.begin["commands"] for word in argv if "reservationname=" in word]
    there = reservations(rig)
    assert len(wanted) == len(rig.static_nodes)
    assert there == wanted[: len(there)], "in the order of the plan, and no more"
    assert 0 < len(there) < len(wanted)
    if entry.end is None:
        assert hangs
        assert entry.outcome == UNKNOWN, entry
    else:
        sent = [result["rc"] for result in entry.end["results"]]
        assert entry.outcome == "cancelled", entry
        # The one that was cut off may have been carried out all the same: it is there as one without an answer.
        done = sent.count(0)
        assert sent == [0] * done + [None] * (len(sent) - done)
        assert len(sent) - done <= (1 if hangs else 0)
        assert done <= len(there) <= len(sent)
    argv = [sys.executable, "-m", "cockpit", "--config", str(seat.config), "audit"]
    env = {**os.environ, "XDG_STATE_HOME": str(state / "state")}
    told = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60, check=True).stdout
    assert entry.outcome in told
    return f"{len(there)} of {len(wanted) + 1} commands sent; the record says {entry.outcome}"


def reservations(rig: Rig) -> list[str]:
    """Ours, in the order in which they were made."""
    text = rig.slurm("scontrol", "-o", "show", "reservation").stdout.decode()
    made = re.findall(r"ReservationName=(cockpit-\S+) StartTime=(\S+)", text)
    return [name for name, _ in sorted(made, key=lambda each: each[1])]


def left_behind(rig: Rig) -> list[str]:
    """What of us runs on the head or a node."""
    lines = [line for name in (HEAD, *rig.static_nodes) for line in commands(rig, name)]
    return [line for line in lines if "timeout" in line or " interval=" in line or "scontrol" in line]
