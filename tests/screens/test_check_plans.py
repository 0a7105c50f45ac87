"""Checks that load nodes: pairs over EFA and NVIDIA's diagnostics, from the palette to their kept results."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from actions import checks_live
from actions.checks import deep_action
from actions.checks_live import LiveDeep
from actions.spec import Scope, Targets
from cockpit.checks.deep import DeepRequest
from cockpit.checks.history import CheckHistory
from cockpit.checks.models import Verdict
from cockpit.checks.place import history_path
from cockpit.formats.output_paths import JobOutputs, OutputFile
from cockpit.hosts.base import Completed
from screens.check_book import check_book
from screens.commands import Command
from screens.leaving import LeaveDialog
from screens.lines import Subject
from tests.screens.change_app import Changed, changing, without_pauses
from tests.screens.test_check_pane import until
from tests.still import still_cluster
from tests.unit.test_checks_pair import ROWS


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    without_pauses(monkeypatch, tmp_path)


class Stream:
    """fi_pingpong's server: it has started, and waits until it is closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        yield b"#started\n"
        self.closed.wait(20)

    def close(self) -> None:
        self.closed.set()


class Pinger:
    """One end of a pair; what runs on it is noted."""

    def __init__(self, name: str, ran: list[tuple[str, str]]) -> None:
        self.name, self.ran = name, ran

    def stream(self, argv: Any, **_: Any) -> Stream:
        self.ran.append((self.name, "server"))
        return Stream()

    def run(self, argv: Any, **_: Any) -> Completed:
        self.ran.append((self.name, "client"))
        return Completed(0, ROWS.format(latency="17.30").encode(), b"", 0.01)


async def marked(pilot: Changed, *names: str) -> None:
    for name in names:
        pilot.cursor_to(name)
        await pilot.press("space")


async def test_two_marked_nodes_are_a_pair_after_a_plan_and_its_result_is_kept() -> None:
    ran: list[tuple[str, str]] = []
    async with changing((120, 40)) as pilot:
        pilot.cluster.node_host = lambda name: Pinger(name, ran)  # type: ignore[method-assign,assignment,return-value]
        await marked(pilot, "gpu-st-p5-1", "gpu-st-p5-2")
        await pilot.press("colon", *"pair check", "enter")
        await pilot.planned()
        assert "fi_pingpong listens on the first node of a pair" in pilot.said()
        assert not ran
        await pilot.press("y")
        await pilot.ended()
        assert sorted(name for name, _ in ran) == ["gpu-st-p5-1", "gpu-st-p5-2"]
        assert [end for _, end in ran] == ["server", "client"]
        await pilot.press("escape", "6")
        text = await until(pilot, lambda text: "pair" in text and "gpu-st-p5-1" in text)
        assert "ok" in next(line for line in text.split("\n")[5:] if "gpu-st-p5-2" in line)
        (kept,) = CheckHistory(history_path("still")).load()
        assert kept.kind == "pair"
        assert kept.nodes["gpu-st-p5-1"].checks == {
            "efa.pair:gpu-st-p5-2": (Verdict.PASS, "17 µs, 9,800 MB/s at 1 MiB")
        }
        pilot.cursor_to("gpu-st-p5-1")
        await pilot.press("enter")
        assert "17 µs, 9,800 MB/s at 1 MiB" in pilot.text()


async def test_one_node_is_no_pair_and_a_read_only_cluster_has_none() -> None:
    async with changing((120, 40)) as pilot:
        await pilot.press("a", "end")
        await pilot.press(*["up"] * 2)
        assert "mark two nodes or more (space)" in pilot.said()
        await pilot.press("escape")
    async with changing((120, 40), forced=True) as pilot:
        pair = next(entry for entry in pilot.app.cockpit.check_entries(()) if entry.command.id == "efa-pair")
        assert "read-only" in pair.disabled
        every = next(entry for entry in pilot.app.cockpit.check_entries(()) if entry.command.argument == "efa")
        assert not every.disabled  # looking is allowed


async def test_three_marked_nodes_are_one_pair_and_the_one_left_is_named() -> None:
    async with changing((120, 40)) as pilot:
        names = ("gpu-st-p5-1", "gpu-st-p5-2", "gpu-st-p5-3")
        await pilot.app.cockpit.do_check(Command("efa-pair"), [[Subject("node", name) for name in names]])
        await pilot.planned()
        assert "has no partner left and sits out" in pilot.said()


async def test_diagnostics_ask_how_deep_and_show_whom_they_take() -> None:
    async with changing((120, 40)) as pilot:
        nodes = pilot.cluster.view.nodes or ()
        idle = next((node.name for node in nodes if node.state.base == "idle" and not node.state.flags - {"cloud"}), "")
        busy = next(node.name for node in nodes if node.state.base == "allocated")
        await pilot.app.cockpit.do_check(
            Command("gpu-dcgm"), [[Subject("node", name) for name in (idle or busy, busy)]]
        )
        await until(pilot, lambda text: "how deep" in text)
        await pilot.press("2")
        await pilot.planned()
        assert not pilot.writes
        wanted = "takes all GPUs of 1 node" if idle else "idle nodes only"
        assert wanted in pilot.said()


SAID = """#cockpit-dcgm gpu-st-p5-1 | | Memory                    | Pass                    |
#cockpit-dcgm gpu-st-p5-1 rc=0
#cockpit-dcgm gpu-st-p5-2 | | Memory                    | Fail                    |
#cockpit-dcgm gpu-st-p5-2 rc=226
"""


def test_the_output_of_diagnostics_is_read_judged_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, head, _ = still_cluster(scenario="calm", nodes=36)
    cluster.read_once()
    free = tuple(node.name for node in cluster.view.nodes or () if node.word == "idle")[:2]
    assert len(free) == 2
    plan = deep_action(DeepRequest((), 1)).plan(cluster, Targets(Scope.NODE, free))
    states = iter(["R", "CD"])
    monkeypatch.setattr(checks_live, "LOOK_S", 0.0)
    monkeypatch.setattr(checks_live, "REST_S", 0.0)
    monkeypatch.setattr(checks_live, "jobs_named", lambda *_: [SimpleNamespace(state=next(states))])
    monkeypatch.setattr(checks_live, "find_job", lambda *_: (None, b""))
    outputs = JobOutputs((OutputFile("output", "/home/ops/x.out"),))
    monkeypatch.setattr(checks_live, "job_outputs", lambda detail: outputs)
    said = SAID.replace("gpu-st-p5-1", free[0]).replace("gpu-st-p5-2", free[1])
    head.answers["cat"] = lambda argv: Completed(0, said.encode(), b"", 0.01)
    live = LiveDeep(cluster, plan)
    live.job_id = 7
    live.run()
    assert not live.fault
    assert live.kept is not None
    assert {node.node: node.verdict for node in live.kept.nodes} == {free[0]: Verdict.PASS, free[1]: Verdict.FAIL}
    book = check_book(cluster)
    book.keep(live.kept)
    for _ in range(200):
        if (row := book.row("health", free[1])) is not None:
            break
        threading.Event().wait(0.01)
    assert row is not None
    assert row.worst is not None
    assert row.worst[0] == "gpu.dcgm"


def test_an_output_that_cannot_be_found_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, head, _ = still_cluster(scenario="calm")
    cluster.read_once()
    free = tuple(node.name for node in cluster.view.nodes or () if node.word == "idle")[:1]
    plan = deep_action(DeepRequest((), 1)).plan(cluster, Targets(Scope.NODE, free))
    monkeypatch.setattr(checks_live, "REST_S", 0.0)
    monkeypatch.setattr(checks_live, "jobs_named", lambda *_: [])
    monkeypatch.setattr(checks_live, "find_job", lambda *_: (None, b""))
    outputs = JobOutputs((OutputFile("output", "/home/ops/x.out"),))
    monkeypatch.setattr(checks_live, "job_outputs", lambda detail: outputs)
    head.answers["cat"] = lambda argv: Completed(1, b"", b"No such file", 0.01)
    live = LiveDeep(cluster, plan)
    live.job_id = 7
    live.run()
    assert "/home/ops/x.out is on neither the head nor the first node" in live.fault
    assert live.kept is None


async def test_leaving_asks_while_diagnostics_run_and_yes_cancels_their_job() -> None:
    over = threading.Event()
    live: Any = SimpleNamespace(nodes=("gpu-st-p5-1",), job_id=None, state="submitting", over=over, stop=over.set)
    async with changing((120, 40)) as at:
        at.app.cockpit._deep = live
        assert at.app.unfinished == []  # nothing is in Slurm yet
        live.job_id, live.state = 4711, "running [/]\x1b[2J"
        await at.press("q")
        await at.until(lambda: isinstance(at.app.screen, LeaveDialog))
        assert "GPU diagnostics of 1 node" in at.said()
        assert "job 4711 is running [/]" in at.said()
        assert "its job is cancelled" in at.said()
        await at.until(lambda: at.app.screen.focused is not None)
        await at.press("n")
        await at.until(lambda: at.app.screen is at.app.cockpit)
        assert not over.is_set()
        await at.press("q")
        await at.until(lambda: at.app.screen.focused is not None and isinstance(at.app.screen, LeaveDialog))
        await at.press("y")
        await at.until(over.is_set)
        assert at.app.unfinished == []
