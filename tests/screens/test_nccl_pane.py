"""Pane 5, the details of a test, the form over its plan, and a test or sweep while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from actions.nccl_live import LiveSweep, LiveTest
from cockpit.demo.nccl_stand_in import Speeds, parse_arguments, whole_run
from cockpit.hosts.base import Completed
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.nccl.history import History
from cockpit.nccl.place import history_path
from cockpit.nccl.rounds import sweep_request
from cockpit.nccl.run import NcclRequest
from cockpit.nccl.sweep import SweepOptions
from screens.nccl_live_lines import live_lines
from screens.problem_table import text_of
from tests.nccl_runs import PAIR, add_run
from tests.screens.golden import assert_golden
from tests.screens.test_app import SIZES, cockpit
from tests.still import NOON, StillHost, still_cluster

FOUND = b"binary\t/opt/nccl-tests/build/all_reduce_perf\tyes\nmpi\tpmix\nend\n"


@pytest.fixture(autouse=True)
def _one_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


def fill(cluster_name: str = "still") -> None:
    history = History(history_path(cluster_name))
    add_run(history, Speeds(), NOON - 90_000, name="first")
    add_run(history, Speeds(), NOON - 9_000, PAIR[:1], name="alone")
    add_run(history, Speeds(sockets=True), NOON - 7_000, name="sockets")
    add_run(history, Speeds(pair_gbs=390), NOON - 600, name="slow")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_golden_of_the_pane_and_its_details(size: tuple[int, int]) -> None:
    fill()
    async with cockpit(size) as pilot:
        await pilot.read()
        await pilot.press("5")
        assert_golden(f"nccl-{size[0]}x{size[1]}", pilot.text())
        await pilot.press("g", "enter")
        assert_golden(f"detail-nccl-{size[0]}x{size[1]}", pilot.text())


async def test_the_overview_shows_them_too() -> None:
    fill()
    async with cockpit((200, 60), pane="1") as pilot:
        await pilot.read()
        assert "% of 473" in pilot.text()


async def test_without_any_the_key_is_told() -> None:
    async with cockpit() as pilot:
        await pilot.read()
        await pilot.press("5")
        assert "no NCCL test of this cluster is kept yet; N runs one" in pilot.text()


class Node:
    """A node that has nccl-tests, or does not answer."""

    def __init__(self, fault: FaultError | None = None) -> None:
        self.fault = fault

    def run(self, argv: Any, **_: Any) -> Completed:
        if self.fault is not None:
            raise self.fault
        return Completed(0, FOUND, b"", 0.01)


async def shown(pilot: Any, true: Callable[[str], bool]) -> str:
    for _ in range(200):
        if true(pilot.text()):
            return str(pilot.text())
        await pilot.settle()
        threading.Event().wait(0.01)
    raise AssertionError(pilot.text())


async def test_n_shows_the_form_over_the_plan_of_the_marked_nodes() -> None:
    async with cockpit(scenario="calm") as pilot:
        pilot.cluster.node_host = lambda name: Node()  # type: ignore[method-assign, assignment, return-value]
        await pilot.read()
        await pilot.press("slash", *"st-p5-8", "enter", "space", "N")
        text = await shown(pilot, lambda text: "sbatch" in text)
        assert "takes 8 GPUs on 1 node" in text
        assert "$55.04/h at list price" in text
        assert "/opt/nccl-tests/build/all_reduce_perf" in text
        assert "1 marked node: gpu-st-p5-8" in text
        assert "[ n no ]" in text
        assert not any(word.endswith("sbatch") for argv in pilot.head.calls for word in argv[:1])


async def test_a_node_that_cannot_be_asked_is_named_and_nothing_is_planned() -> None:
    fault = FaultError(Fault(FaultKind.UNREACHABLE, "asking it", "no route to host", ""))
    async with cockpit(scenario="calm") as pilot:
        pilot.cluster.node_host = lambda name: Node(fault)  # type: ignore[method-assign, assignment, return-value]
        await pilot.read()
        await pilot.press("N")
        text = await shown(pilot, lambda text: "cannot be done" in text)
        assert "no route to host" in text


async def test_no_question_of_the_form_ends_amid_its_sentence_on_a_narrow_screen() -> None:
    async with cockpit((80, 24), scenario="calm") as pilot:
        pilot.cluster.node_host = lambda name: Node()  # type: ignore[method-assign, assignment, return-value]
        await pilot.read()
        await pilot.press("N")
        text = " ".join((await shown(pilot, lambda text: "[ n no ]" in text)).replace("│", " ").split())
        assert "[ ] with NCCL_ALGO=Ring: shows a network loss that two nodes by default hide" in text


async def test_a_read_only_cluster_is_told_instead_of_a_form() -> None:
    async with cockpit() as pilot:
        pilot.cluster.lock.forced = True
        await pilot.read()
        await pilot.press("N")
        assert "read-only" in pilot.text().lower()


class Lines:
    """A stream whose lines are known before."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[bytes]:
        return (line.encode() for line in self._lines)

    def write(self, data: bytes) -> None: ...
    def close_stdin(self) -> None: ...
    def close(self) -> None: ...


def live_test(printed: list[str], monkeypatch: pytest.MonkeyPatch) -> LiveTest:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    monkeypatch.setattr(StillHost, "stream", lambda *args, **options: Lines(printed))
    live = LiveTest(cluster, NcclRequest(nodes=PAIR, binary="/x/all_reduce_perf"))
    live.job_id = 7
    return live


def printed(speeds: Speeds) -> list[str]:
    asked = parse_arguments("all_reduce_perf", ["-b1G", "-e8G", "-f2"])
    return [f"0: {line}" for line in whole_run(asked, PAIR, 8, speeds, debug=True)]


def told(live: LiveTest | LiveSweep) -> str:
    return "\n".join(text_of(line) for line in live_lines(live, 1000.0))


def test_a_test_shows_rows_the_expected_line_and_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    live = live_test(printed(Speeds()), monkeypatch)
    seen: list[str] = []
    live.heard = lambda: seen.append(told(live))
    assert "nothing is known" not in told(live)
    live.run()
    assert any("1 of 4 sizes" in text and "running" in text for text in seen)
    text = told(live)
    assert text.startswith("● pass")
    assert "430 GB/s expected by the catalogue" in text
    assert text.count("│") == 5  # one for each row, and the legend
    (kept,) = History(history_path("still")).load()
    assert (kept.job_id, kept.verdict, kept.nodes) == (7, "pass", PAIR)


def test_a_last_row_that_was_broken_off_is_shown_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(Speeds())
    last = max(at for at, line in enumerate(lines) if line.split()[1].isdigit())
    lines[last] = lines[last][:88]  # the values of one placement
    live = live_test(lines, monkeypatch)
    live.run()
    assert [row.size_bytes for row in live.rows][-1] == 8 * 2**30
    assert live.result is not None
    assert len(live.rows) == len(live.result.rows)


def test_what_a_hostile_test_prints_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    wild = ["# cockpit-node: host=\x1b[31mh node=\u202en driver=\x07", *printed(Speeds())[:12], "\x1b]0;x\x07 [bold]"]
    live = live_test([*wild, *printed(Speeds())[12:]], monkeypatch)
    live.run()
    assert "\x1b" not in told(live)
    assert "\u202e" not in told(live)


def test_a_connection_that_ends_blames_nobody_and_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    live = live_test(printed(Speeds())[:-6], monkeypatch)
    live.run()
    assert "the job goes on and writes" in live.fault
    assert History(history_path("still")).load() == ()


def test_a_history_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    history_path("still").mkdir(parents=True)
    live = live_test(printed(Speeds()), monkeypatch)
    live.run()
    assert "could not be kept" in told(live)


def test_a_sweep_shows_its_matrix_and_names_the_slow_node(tmp_path: Path) -> None:
    cluster, _, _ = still_cluster()
    nodes = tuple(f"n{number}" for number in range(1, 5))
    live = LiveSweep(cluster, sweep_request(NcclRequest(nodes=nodes)), SweepOptions(), "cockpit-sweep-x")
    speeds = Speeds(network={"n3": 0.42})
    from cockpit.nccl.rounds import SweepDriver

    driver = SweepDriver(live.sweep, on_outcome=live._told, on_round=live._looked)
    driver.begin()
    asked = parse_arguments("all_reduce_perf", ["-b1G", "-e4G", "-f4"])
    while not driver.over:
        if live.look.phase == "pairs":
            assert "›" in told(live)
        for trial in live.sweep.open_trials:
            for line in whole_run(asked, trial.nodes, 8, speeds, debug=False):
                driver.feed(f"T{trial.number}> 0: {line}".encode())
            driver.feed(f"T{trial.number}> # cockpit-exit: 0".encode())
        driver.feed(b"# cockpit-round-done")
    text = told(live)
    assert "n3" in text
    assert text.count("✖") >= 6
    assert live.found.bad_nodes == ("n3",)
