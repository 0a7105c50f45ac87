"""From a running job to the pid of rank 3 in four keys, on a real Slurm, as a person presses them."""

from __future__ import annotations

import asyncio
import re
import time

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from cockpit.config_file import load_config
from tests.rig import Rig
from tests.rig.files import USERS
from tests.rig.nvml import missing
from tests.screens.helpers import screen_lines, screen_text

pytestmark = [
    pytest.mark.rig,
    pytest.mark.xdist_group("rig"),
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]
# The queue, its details; where the record is longer than the screen, a page down or two.
KEYS = ("4", "enter", "pagedown", "pagedown")
RANK_3 = re.compile(r"\brank 3  pid (\d+)\b")
SIZES = [(120, 40), (80, 24)]


@pytest.fixture
def job(rig: Rig) -> int:
    """Eight ranks on two nodes."""
    nodes = ",".join(rig.static_nodes[:2])
    found = rig.submit(
        "srun -n 8 sleep 300",
        nodes=2,
        ntasks=8,
        ntasks_per_node=4,
        gpus_per_node="h100:4",
        nodelist=nodes,
        uid=USERS["bob"],
    )
    rig.wait_for(lambda: len(pids(rig, found)) == 8, 30, "eight ranks")
    return found


def pids(rig: Rig, job: int) -> dict[int, int]:
    """Rank -> pid, by `scontrol listpids` on the job's nodes."""
    found: dict[int, int] = {}
    for node in rig.static_nodes[:2]:
        for line in rig.ssh(node, ["scontrol", "listpids", str(job)]).stdout.decode().splitlines()[1:]:
            pid, _, step, _, rank = line.split()
            if step == "0" and rank.isdigit():
                found[int(rank)] = int(pid)
    return found


async def shown(app: CockpitApp, wanted: re.Pattern[str], deadline_s: float) -> re.Match[str] | None:
    """What stands on the screen, once it does."""
    until = time.monotonic() + deadline_s
    while not (found := wanted.search(screen_text(app))) and time.monotonic() < until:
        await asyncio.sleep(0.05)
    return found


async def walk(app: CockpitApp, pilot: Pilot[int], job: int) -> tuple[int, int]:
    """Press the keys until rank 3 is on the screen; how many it took, and its pid."""
    for count, key in enumerate(KEYS, 1):
        await pilot.press(key)
        if key == "4":  # as she does: the line is there before she presses enter
            assert await shown(app, re.compile(rf"(?m)^. .*\b{job}\b.*running"), 20), screen_text(app)
        if found := await shown(app, RANK_3, 5 if count > 1 else 0):
            return count, int(found[1])
    raise AssertionError("\n".join(screen_lines(app)))


@pytest.mark.parametrize("by_probes", [False, True], ids=["by Slurm", "by the probes"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_from_a_running_job_to_the_pid_of_rank_3_in_four_keys(
    rig: Rig, job: int, size: tuple[int, int], by_probes: bool
) -> None:
    told = pids(rig, job)
    held = told.items() if by_probes else ()
    for node in rig.static_nodes[:2]:
        rig.nvml(node).no_processes()
    for rank, pid in held:
        rig.nvml(rig.static_nodes[rank // 4]).process(rank % 4, pid, 2**30)
    config = load_config(rig.config("keys.yaml", refresh={"slurm": 1}))
    clusters = Clusters.of_config(config, next(iter(config.clusters)), read_only=True)
    app = CockpitApp(clusters)
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            count, pid = await walk(app, pilot, job)
    finally:
        clusters.stop()
    assert pid == told[3]
    assert count <= 4
