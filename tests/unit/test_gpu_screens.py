"""What the GPU table, the heatmap and the details say of GPUs that are lost, old or were never read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cockpit.config import Rules
from cockpit.fleet import GpuRow
from cockpit.fleet_state import Fleet
from cockpit.gpu_models import Driver, DriverState, Lack, Missing
from cockpit.models import Health, Job
from cockpit.node_problems import of_nodes
from cockpit.sources.gpu_history import GpuHistory
from cockpit.sources.gpus import FleetReading
from screens.details.gpu import gpu_lines, peers_of
from screens.details.parts import find_gpu
from screens.gpu_table import GpuTable
from screens.gpus_pane import METRICS, heat_rows
from screens.lines import Line
from screens.unread import unread_lines, unread_words
from tests.still import still_cluster
from tests.still_gpus import busy_fleet, remember, tell
from tests.unit.test_fleet import rows, sample, watch

STEADY = 1001.0
GONE = Missing(Lack.LOST, "GPU is lost", 15)
UTIL, PROBLEMS = METRICS[0], METRICS[-1]


def state(row: GpuRow) -> str:
    column = next(column for column in GpuTable(lambda: STEADY).columns() if column.id == "state")
    cell = column.cell(row)
    return cell if isinstance(cell, str) else cell[0]


def text_of(lines: Sequence[Line]) -> str:
    return "\n".join("".join(piece if isinstance(piece, str) else piece[0] for piece in line) for line in lines)


def test_a_lost_gpu_does_not_make_a_stale_row_fresh_and_its_old_number_is_not_shown() -> None:
    hung = rows(watch(sample(0, taken_at=50.0), sample(1, taken_at=50.0, lost=GONE)))
    assert heat_rows(hung[:2], UTIL, STEADY)[0].stale
    [told] = heat_rows(
        rows(watch(sample(0), sample(1, taken_at=10.0, lost=GONE), sample(2, taken_at=10.0))), UTIL, STEADY
    )
    assert not told.stale
    assert [cell.value is None for cell in told.cells[:3]] == [False, True, True]
    assert "97" not in told.cells[2].text


def test_what_nobody_has_read_is_not_called_well() -> None:
    unread = rows(watch(sample(0, taken_at=None), sample(1)))
    [told] = heat_rows(unread, PROBLEMS, STEADY)
    assert [cell.text for cell in told.cells] == ["not read", "well", "not read", "not read"]
    assert state(unread[0]) == "not read yet"
    lost = rows(watch(sample(0, taken_at=None, lost=GONE)))[0]
    assert "lost" in state(lost).lower()


def test_a_silent_driver_is_said_on_each_of_its_gpus_and_is_no_problem_yet() -> None:
    late = replace(watch(sample(0), sample(1, lost=GONE)), seen_at=STEADY - 1.0)
    assert late.reading is not None
    reading = replace(late.reading, driver=Driver(DriverState.SILENT, since=late.reading.taken_at - 3.2))
    well, lost = rows(replace(late, reading=reading))[:2]
    assert state(well) == "driver silent 4s"
    assert well.health is Health.UNKNOWN
    assert state(lost).startswith("driver silent 4s · GPU")
    assert lost.health is Health.CRITICAL
    cluster, _, clock = still_cluster()
    clock.time += STEADY - clock.steady()
    assert text_of(gpu_lines(cluster, well)).startswith("  state        driver silent 4s · allocated by Slurm")
    util = next(column for column in GpuTable(lambda: STEADY).columns() if column.id == "util")
    assert util.cell(well) == ("97%", "stale")  # dim: nobody knows whether it is still so
    fleet = FleetReading({late.node: replace(late, reading=reading)})
    look = Fleet((well, lost), fleet, {}, GpuHistory(), Rules(), STEADY)
    assert not [problem for problem in of_nodes(look) if problem.key.startswith("driver:")]


def test_what_cannot_be_read_is_said_once_with_what_is_not_seen_for_it() -> None:
    told = watch(sample(0))
    assert told.reading is not None
    assert unread_lines(told.reading) == unread_lines(None) == []
    reading = replace(told.reading, not_read={"kernel log": "journal: not permitted", "processes": "no answer"})
    text = text_of(unread_lines(reading))
    assert "kernel log   journal: not permitted" in text
    assert "systemd-journal" in text
    nodes = {name: replace(told, node=name, reading=reading) for name in ("p5-1", "p5-2")}
    words = unread_words(FleetReading(nodes))
    assert len(words) == 2
    assert words[0].startswith("! kernel log of p5-[1-2] not read: journal: not permitted — Xids")


def test_a_graph_tells_when_and_a_gap_in_it_is_no_zero() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    fleet = busy_fleet(cluster)
    remember(cluster, fleet)
    tell(cluster, fleet)
    row = find_gpu(cluster, "gpu-st-p5-2/5")  # lost five minutes ago
    assert row is not None
    shown = text_of(gpu_lines(cluster, row)).split("\n")
    assert "readings of 5m ago" in shown
    assert not [line for line in shown if line.startswith("against its")]  # peers of now, and numbers of then
    top = next(place for place, line in enumerate(shown) if line.startswith("  util "))
    graph, times, temperature = shown[top : top + 4], shown[top + 4], shown[top + 5]
    assert graph[0].index("┤") == graph[3].index("┤") == temperature.index("▅") - 1 == 14
    assert times.split() == ["-10m", "-5m", "now"]
    assert graph[3][15:].rstrip("·") == "█" * 25
    assert graph[3].endswith("·" * 25)
    assert temperature[15:65] == "▅" * 25 + " " * 25
    assert max(map(len, shown[top : top + 7])) <= 77  # an 80-column screen breaks none of them


def test_peers_are_the_others_whose_numbers_are_of_now() -> None:
    job = Job(7, "R", user="maria", hostlist="p5-1")
    found = rows(watch(sample(0), sample(1), sample(2, taken_at=10.0), sample(3, lost=GONE)))
    held = tuple(replace(row, job=job) for row in found)
    assert [row.slot for row in peers_of(held[0], held, STEADY)] == [1]
    assert peers_of(found[3], found, STEADY) == []
