"""From the command line to the first paint and the first data, each beside its measure in the same run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from screens.start_screen import STARTING
from tests.bench.blank import READY
from tests.bench.stats import median, minus, ratio
from tests.bench.targets import Target
from tests.bench.terminal import Terminal

COCKPIT = Path(sys.executable).with_name("cockpit")
PAINT_S, DATA_S, QUIT_S = 10.0, 30.0, 10.0


def measure_starts(target: Target, runs: int, *, warm_up: bool = False) -> dict[str, Any]:
    """Medians over `runs` rounds of: raw commands, an empty app, the cockpit. `warm_up` is one more, left out."""
    has_data = target.has_data()
    rounds = [one_round(target, has_data) for _ in range(runs + warm_up)][warm_up:]

    def middle(name: str) -> float | None:
        return median([value for found in rounds if (value := found[name]) is not None])

    paint, data = middle("paint_s"), middle("data_s")
    return {
        "first_paint_s": paint,
        "blank_paint_s": middle("blank_s"),
        "panes_s": middle("panes_s"),
        "first_paint_ratio": ratio(paint, middle("blank_s")),
        "first_data_s": data,
        "raw_s": middle("raw_s"),
        "raw_together_s": middle("raw_together_s"),
        "first_data_ratio": ratio(data, middle("raw_s")),
        "first_data_over_raw_s": minus(data, middle("raw_s")),
        # What the budget leaves: 1.2 times the raw commands and 0.3 s.
        "first_data_budget_s": 1.2 * raw + 0.3 if (raw := middle("raw_s")) is not None else None,
        "quit_after_start_s": middle("quit_s"),
        "rounds": rounds,
    }


def one_round(target: Target, has_data: Callable[[str], bool]) -> dict[str, float | None]:
    """One start of everything, in an order that gives nobody the warm caches alone."""
    found: dict[str, float | None] = {"raw_s": _one_by_one(target), "raw_together_s": _together(target)}
    with Terminal([sys.executable, "-m", "tests.bench.blank"]) as blank:
        found["blank_s"] = _since(blank, blank.wait(lambda text: READY in text, PAINT_S))
        blank.press(b"q")
        blank.wait_end(QUIT_S)
    with Terminal([str(COCKPIT), "--config", str(target.config)], env=target.env) as cockpit:
        found["paint_s"] = _since(cockpit, cockpit.wait(lambda text: STARTING in text, PAINT_S))
        shown = cockpit.wait(lambda text: "reading from" in text or has_data(text), PAINT_S)
        found["panes_s"] = _since(cockpit, shown)
        found["data_s"] = _since(cockpit, cockpit.wait(has_data, DATA_S))
        pressed = cockpit.press(b"q")
        found["quit_s"] = minus(cockpit.wait_end(QUIT_S), pressed)
    return found


def watch_data_s(target: Target) -> float | None:
    """Until `watch -n 5 squeue` shows a job; None where there is no watch or it takes a remote shell."""
    if target.ssh or not any(os.access(f"{folder}/watch", os.X_OK) for folder in os.get_exec_path()):
        return None
    found = []
    for _ in range(3):
        with Terminal(["watch", "-n", "5", "squeue", "-a"], env=target.env) as watch:
            found.append(_since(watch, watch.wait(lambda text: "gpu-" in text and "JOBID" in text, DATA_S)))
            watch.press(b"\x03")
    return median([each for each in found if each is not None])


def _since(terminal: Terminal, at: float | None) -> float | None:
    return minus(at, terminal.started_at)


def _one_by_one(target: Target) -> float:
    began = time.monotonic()
    for argv in target.reads():
        target.run(argv)
    return time.monotonic() - began


def _together(target: Target) -> float:
    """Both reads at the same time, as the cockpit makes them."""
    began = time.monotonic()
    env = {**os.environ, **target.env}
    running = [
        subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for argv in target.reads()
    ]
    for process in running:
        process.communicate()
    return time.monotonic() - began
