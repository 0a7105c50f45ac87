"""What is slow, lossy or long: one cockpit that lives through all of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.faults.conftest import Seen
from tests.faults.line import Weather
from tests.faults.seat import Seat, needs_seat
from tests.faults.slow import slow_controller
from tests.rig import Rig
from tests.rig.machines import RigError

pytestmark = needs_seat


def test_a_controller_that_is_slow_is_asked_less_often(rig: Rig, seat: Seat, seen: Seen) -> None:
    """Its answers are live for as long as its pace is now, and nobody calls it dead."""

    def rarely(text: str) -> bool:
        assert "failing" not in text.split("\n")[1], text
        assert "lost" not in text.split("\n")[1], text
        found = re.search(r"● nodes (\d+)s", text)
        return found is not None and int(found[1]) >= 5

    with slow_controller(rig):
        took_s = seat.wait(rarely, "the nodes are asked less often than every five seconds")
    seat.keys("r")
    back_s = seat.wait_live(60)
    seen(f"asked less often after {took_s:.1f} s, never called dead; live {back_s:.1f} s after its end")


def test_a_line_that_loses_packets(rig: Rig, seat: Seat, seen: Seen) -> None:
    seat.wait_live(60)
    try:
        seat.line.weather = Weather(delay_s=0.1, stall_share=0.04, stall_s=1.5)
        seat.hold(8)
        slowest_s = 0.0
        for _ in range(2):
            seat.line.reset()
            dialled_s = seat.wait(lambda _: seat.line.alive > 0, "a new connection", 60)
            slowest_s = max(slowest_s, dialled_s + seat.wait_live(60))
    finally:
        seat.line.weather = Weather()
    back_s = seat.wait_live(60)
    seen(f"live again {slowest_s:.1f} s after a reset, in that weather; all is well {back_s:.1f} s after its end")


def test_the_longest_name_that_slurm_takes(rig: Rig, seat: Seat, tmp_path: Path, seen: Seen) -> None:
    """Found by trying; every cell of the screen and every line of JSON has to bear it."""
    job, length = longest_name(rig)
    seat.keys("4")
    text_of = seat.tmux.text
    seat.wait(lambda text: f" {job} " in text, "the job's line")
    line = next(line for line in text_of().split("\n") if f" {job} " in line)
    assert "nnnnn" in line
    assert max(len(line) for line in text_of().split("\n")) <= 120
    seat.keys("/")
    time.sleep(0.5)
    seat.keys("-l", "name:nnnnn")
    seat.keys("Enter")
    seat.wait(lambda text: 'filter "name:nnnnn" 1/1' in text and "/ filter" in text, "found by its name")
    seat.keys("Enter")
    seat.wait(lambda text: f"› job {job} ─" in text, "its details")
    seat.keys("Escape", "Escape", "2")
    done = subprocess.run(
        [sys.executable, "-m", "cockpit", "--config", str(seat.config), "jobs", "--json"],
        capture_output=True, env={**os.environ, "XDG_STATE_HOME": str(tmp_path)}, timeout=60, check=True,
    )  # fmt: skip
    (told,) = [one for one in json.loads(done.stdout)["jobs"] if one["job_id"] == job]
    assert told["name"] == "n" * min(length, 1000) + ("…" if length > 1000 else "")
    seat.wait_live()
    seen(f"{length:,} characters; shown cut at the end of its column, in JSON after 1,000")


def longest_name(rig: Rig) -> tuple[int, int]:
    """A held job with the longest name that sbatch takes, and how long that is."""
    jobs: dict[int, int] = {}
    short, long = 1, 100_000
    while short < long:
        middle = (short + long + 1) // 2
        try:
            jobs[middle] = rig.submit("sleep 1", hold=True, job_name="n" * middle)
            short = middle
        except RigError:
            long = middle - 1
    rig.slurm("scancel", *(str(job) for length, job in jobs.items() if length != short))
    assert short > 255, "this Slurm takes hardly any name"
    return jobs[short], short
