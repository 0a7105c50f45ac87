"""Pane 6: the matrix, its details, versions, and a check run from its key to its end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cockpit.catalog.checks import parts_for
from cockpit.checks.models import NodeResult, Result, Verdict
from cockpit.hosts.base import Completed
from cockpit.models import Fault, FaultError, FaultKind
from screens.check_book import check_book
from screens.lines import Subject
from tests.check_results import RISING, SHORT, keep, node, nodes
from tests.screens.change_app import Changed, changing, without_pauses
from tests.screens.golden import assert_golden
from tests.screens.test_app import HOSTILE, SIZES, Pilot, cockpit
from tests.still import NOON

BAD = {"\x1b", "\x07", "\x1e", "\x1f", "\x9b", "\u202e", "\u202c", "\udce9"}
# Of a node where nothing of EFA is to be seen.
PARTS = {name: {"rc": 0, "out": "[]", "s": 0.1} for name in parts_for("efa")}


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    without_pauses(monkeypatch, tmp_path)


def known(pilot: Pilot | Changed, found: Sequence[NodeResult], kind: str = "efa") -> None:
    """As if this cockpit had just asked them."""
    for each in found:
        check_book(pilot.cluster).add(kind, each)


async def until(pilot: Pilot | Changed, true: Callable[[str], bool]) -> str:
    for _ in range(400):
        if true(pilot.text()):
            return pilot.text()
        if isinstance(pilot, Changed):
            await pilot.pilot.pause(0.01)
        else:
            await pilot.settle()
            threading.Event().wait(0.01)
        pilot.app.cockpit.refresh_chrome()
    raise AssertionError(pilot.text())


async def shown(pilot: Pilot, *keys: str) -> None:
    await pilot.read()
    await pilot.press("6", *keys)
    await until(pilot, lambda text: "reading the history" not in text)
    pilot.app.cockpit.refresh_chrome()  # the last line follows what the cursor is on
    await pilot.settle()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_golden_of_the_matrix_its_details_and_the_versions(size: tuple[int, int]) -> None:
    keep(*nodes(NOON - 7200), at=NOON - 7200, run_id="old")
    async with cockpit(size) as pilot:
        known(pilot, nodes())
        await shown(pilot)
        assert_golden(f"checks-{size[0]}x{size[1]}", pilot.text())
        await pilot.press("g", "enter")
        assert_golden(f"detail-checks-{size[0]}x{size[1]}", pilot.text())
        await pilot.press("escape", "m", "m")
        assert_golden(f"checks-versions-{size[0]}x{size[1]}", pilot.text())


async def test_never_run_says_what_to_press() -> None:
    async with cockpit((80, 24)) as pilot:
        await shown(pilot)
        text = pilot.text()
        assert "no EFA check of this cluster is kept yet" in text
        assert "E asks all nodes that are up, after a question" in text
        await pilot.press("m")
        assert "C asks all nodes" in await until(pilot, lambda text: "no health check" in text)


async def test_what_others_have_found_is_shown_with_its_age_and_since_when_it_fails() -> None:
    keep(node("gpu-st-p5-7"), at=NOON - 90_000, run_id="a")
    keep(node("gpu-st-p5-7", SHORT), at=NOON - 7200, run_id="b")
    keep(node("gpu-st-p5-7", SHORT), at=NOON - 3600, run_id="c")
    async with cockpit((120, 40)) as pilot:
        await shown(pilot)
        line = next(line for line in pilot.lines() if "gpu-st-p5-7" in line)
        assert "fail" in line
        assert "1h00m" in line
        assert "31 of 32 devices" in line
        assert "11 never" in pilot.text()  # its peers
        await pilot.press("g", "enter")
        text = pilot.text()
        assert "since        08:53, 2 runs; pass before" in text
        assert "the evidence of kept runs is not kept" in text


async def test_filters_find_nodes_by_check_verdict_and_queue() -> None:
    async with cockpit((120, 40)) as pilot:
        known(pilot, nodes())
        await shown(pilot, "slash", *"check:counters", "enter")
        assert "2/12" in pilot.text()
        await pilot.press("escape", "slash", *"verdict:fail", "enter")
        assert "1/12" in pilot.text()
        await pilot.press("escape", "slash", *"queue:nowhere", "enter")
        assert "hides all 12" in pilot.text()


class Node:
    """Answers, refuses, or waits until it is let go."""

    def __init__(self, gate: threading.Event | None = None, *, silent: bool = False, kernel: str = "") -> None:
        self.gate, self.silent, self.kernel = gate, silent, kernel

    def run(self, argv: Any, **_: Any) -> Completed:
        if self.gate is not None:
            self.gate.wait(20)
        if self.silent:
            raise FaultError(Fault(FaultKind.UNREACHABLE, "the node", "no route to host", "is it up?"))
        rows = json.dumps([["/proc/sys/kernel/osrelease", self.kernel]]) if self.kernel else "[]"
        parts = PARTS | {"host": {"rc": 0, "out": rows, "s": 0.1}}
        told = {"k": "look", "v": 1, "t": NOON, "host": "n", "s": 1, "py": "3.9", "parts": parts}
        return Completed(0, json.dumps(told, separators=(",", ":")).encode(), b"", 0.01)


def hosts(pilot: Pilot | Changed, make: Callable[[str], Node]) -> list[str]:
    """The nodes that are asked, as they are asked."""
    asked: list[str] = []

    def open_node(name: str) -> Any:
        asked.append(name)
        return make(name)

    pilot.cluster.node_host = open_node  # type: ignore[method-assign]
    return asked


async def test_e_asks_the_node_under_the_cursor_and_shows_it_in_the_pane() -> None:
    async with cockpit(scenario="calm") as pilot:
        asked = hosts(pilot, lambda name: Node())
        await pilot.read()
        await pilot.press("slash", *"st-p5-4", "enter", "E")
        text = await until(pilot, lambda text: "EFA check: 1 node" in text)
        assert asked == ["gpu-st-p5-4"]
        line = next(line for line in text.split("\n") if "gpu-st-p5-4" in line)
        assert "fail" in line  # it has no EFA device and its type has 32
        assert "no EFA device" in line


async def test_e_asks_the_marked_nodes_and_c_their_health() -> None:
    async with cockpit(scenario="calm") as pilot:
        asked = hosts(pilot, lambda name: Node(silent=name.endswith("2")))
        await pilot.read()
        await pilot.press("slash", *"st-p5", "enter", "g", "space", "space", "C")
        text = await until(pilot, lambda text: "health check: 2 nodes" in text)
        assert sorted(asked) == ["gpu-st-p5-1", "gpu-st-p5-2"]
        assert "1 does not answer" in text
        assert "no answer" in next(line for line in text.split("\n") if "gpu-st-p5-2" in line)
        assert "no route to host" in text


async def test_with_nothing_aimed_at_it_asks_before_it_asks_all_that_are_up() -> None:
    async with changing((120, 40), pane="6") as pilot:
        asked = hosts(pilot, lambda name: Node())
        await until(pilot, lambda text: "no EFA check" in text)
        await pilot.press("E")
        await until(pilot, lambda text: "ask them?" in text)
        assert "all nodes that are up, out of 12 nodes" in pilot.said()
        await pilot.press("escape")
        assert not asked
        await pilot.press("E")
        await until(pilot, lambda text: "ask them?" in text)
        await pilot.pilot.pause(0.05)
        await pilot.press("y")
        await until(pilot, lambda text: "EFA check: 8 nodes" in text)
        assert len(asked) == len(set(asked)) == 8  # those that are down or have no machine are not
        assert "is down" in next(line for line in pilot.lines()[5:] if "gpu-st-p5-8" in line)


async def test_progress_is_told_esc_stops_and_what_answered_stays() -> None:
    gate = threading.Event()
    async with cockpit((120, 40), scenario="calm") as pilot:
        hosts(pilot, lambda name: Node(gate if name.endswith("-3") else None, silent=name.endswith("-2")))
        await pilot.read()
        await pilot.press("slash", *"st-p5", "enter", "asterisk", "E")
        await until(pilot, lambda text: "7 of 8 nodes" in text)
        assert "6 fail, 1 does not answer · esc stops" in pilot.text()
        await pilot.press("E")  # one run at a time
        assert "one run at a time" in pilot.text()
        await pilot.press("2")
        assert "EFA check 7/8, 6 fail, 6 shows it" in pilot.lines()[0]
        await pilot.press("6", "escape")
        text = await until(pilot, lambda text: "stopped: 7 of 8 nodes" in text)
        assert "never" in next(line for line in text.split("\n") if "gpu-st-p5-3" in line)
        gate.set()


async def test_a_run_is_kept_and_one_that_cannot_be_is_said(tmp_path: Any) -> None:
    (tmp_path / "cockpit").mkdir()
    (tmp_path / "cockpit/checks").write_text("no folder")
    async with cockpit(scenario="calm") as pilot:
        hosts(pilot, lambda name: Node())
        await pilot.read()
        await pilot.press("slash", *"st-p5-4", "enter", "E")
        await until(pilot, lambda text: "this run is not kept" in text)
        assert "no EFA device" in pilot.text()  # what it found is shown all the same


async def test_drain_proposes_the_failing_check_as_the_reason() -> None:
    async with changing((120, 40)) as pilot:
        known(pilot, nodes())
        await pilot.press("6")
        await until(pilot, lambda text: "gpu-st-p5-7" in text)
        await pilot.press("g", "D")
        await pilot.planned()
        assert "EFA devices: 31 of 32 devices" in pilot.said()
        assert "gpu-st-p5-7" in pilot.said()
        assert not pilot.writes
        await pilot.press("escape", "enter", "D")  # from the details, too
        await pilot.planned()
        assert "EFA devices: 31 of 32 devices" in pilot.said()


async def test_drain_from_other_panes_proposes_nothing() -> None:
    async with changing((120, 40)) as pilot:
        known(pilot, nodes())
        pilot.cursor_to("gpu-st-p5-7")
        await pilot.press("D")
        await pilot.planned()
        assert "31 of 32" not in pilot.said()


async def test_hostile_answers_stay_text() -> None:
    async with cockpit((120, 40)) as pilot:
        for number, text in enumerate(HOSTILE[:7]):
            result = Result("efa.devices", Verdict.FAIL, text, (text, text), text, (text,))
            bad = node(f"gpu-st-p5-{number + 1}", result, Result(f"own.{text}", Verdict.WARN, text), efa=text)
            known(pilot, [bad])
        for key in ("6", "w", "l", "g", *(["enter", "a", "escape", "e", "escape", "Y", "escape", "escape", "j"] * 4),
                    "m", "m", "enter", "escape", "y", "x", "question_mark", "escape"):  # fmt: skip
            await pilot.press(key)
            assert pilot.app.is_running
            assert not BAD & set(pilot.text()), f"after {key}"


async def test_hostile_history_stays_text() -> None:
    for number, text in enumerate(HOSTILE[:10]):  # the last one is no text that can be kept
        keep(node("gpu-st-p5-1", Result(f"own.{text}", Verdict.FAIL, text), efa=text), run_id=str(number))
    async with cockpit((80, 24)) as pilot:
        await shown(pilot)
        for key in ("g", "enter", "escape", "m", "m", "enter", "escape"):
            await pilot.press(key)
            assert not BAD & set(pilot.text()), f"after {key}"


def test_worst_comes_first_and_the_columns_with_trouble_before_the_others() -> None:
    from screens.check_book import CheckRow, Said
    from screens.check_table import CheckTable, rank, seen_checks

    def row(name: str, **said: Verdict) -> CheckRow:
        checks = {check.replace("_", "."): Said(verdict, "", NOON) for check, verdict in said.items()}
        return CheckRow(name, "efa", at=NOON, checks=checks)

    rows = [
        row("fine", efa_devices=Verdict.PASS, efa_counters=Verdict.PASS),
        CheckRow("never", "efa"),
        row("warned", efa_devices=Verdict.PASS, efa_counters=Verdict.WARN),
        row("failed", efa_devices=Verdict.FAIL, efa_counters=Verdict.PASS, efa_driver=Verdict.NA),
        CheckRow("silent", "efa", at=NOON, fault="no route"),
    ]
    assert [each.node for each in sorted(rows, key=rank)] == ["failed", "warned", "silent", "never", "fine"]
    bad, fine = seen_checks("efa", rows)
    assert (bad, fine) == (["efa.devices", "efa.counters"], ["efa.driver"])
    ids = [column.id for column in CheckTable("efa", lambda: NOON).columns(bad, fine)]
    assert ids[:7] == ["node", "verdict", "age", "what", "efa.devices", "efa.counters", "efa.driver"]


def test_the_example_results_are_what_they_say() -> None:
    assert {each.verdict for each in nodes()} == {Verdict.PASS, Verdict.WARN, Verdict.FAIL, Verdict.UNKNOWN}
    assert RISING.fact.title


async def test_the_details_of_a_node_lead_to_its_checks() -> None:
    async with changing((120, 40)) as pilot:
        known(pilot, nodes())
        pilot.cursor_to("gpu-st-p5-7")
        await pilot.press("enter")
        await until(pilot, lambda text: "fail: EFA devices: 31 of 32 devices" in text)
        for _ in range(20):
            await pilot.press("tab")
            if pilot.app.cockpit.subject() == Subject("efa", "gpu-st-p5-7"):
                break
        await pilot.press("enter")
        assert "EFA check of gpu-st-p5-7" in pilot.text()
        assert "Every EFA interface of the instance is one device" in pilot.text()


async def test_the_actions_menu_checks_too_and_versions_that_differ_are_told_at_the_end() -> None:
    async with cockpit(scenario="calm") as pilot:
        hosts(pilot, lambda name: Node(kernel=name))
        await pilot.read()
        await pilot.press("slash", *"st-p5", "enter", "asterisk", "a", "E")
        await until(pilot, lambda text: "versions differ: kernel" in text)


async def test_an_odd_version_is_told_with_what_the_others_have_and_who_they_are() -> None:
    async with cockpit((120, 40)) as pilot:
        known(pilot, nodes())
        await shown(pilot, "m", "m", "g", "enter")
        assert "versions of gpu-st-p5-2" in pilot.text()
        assert "2.17.3 on gpu-st-p5-1, gpu-st-p5-3, gpu-st-p5-4" in " ".join(pilot.text().split())


async def test_quarantine_proposes_the_failing_check_too() -> None:
    async with changing((120, 40)) as pilot:
        known(pilot, nodes())
        await pilot.press("6")
        await until(pilot, lambda text: "gpu-st-p5-7" in text)
        await pilot.press("g", "colon", *"quarantine", "enter")
        await pilot.planned()
        assert "EFA devices: 31 of 32 devices" in pilot.said()


async def test_a_queue_is_asked_about_before_all_its_nodes_are_asked() -> None:
    async with changing((120, 40)) as pilot:
        asked = hosts(pilot, lambda name: Node())
        await pilot.app.cockpit.go(Subject("queue", "interactive"))
        await pilot.press("E")
        await until(pilot, lambda text: "ask them?" in text)
        assert "2 nodes behind it: gpu-st-p5-[1-2]" in pilot.said()
        await pilot.pilot.pause(0.05)
        await pilot.press("y")
        await until(pilot, lambda text: "EFA check: 2 nodes" in text)
        assert sorted(asked) == ["gpu-st-p5-1", "gpu-st-p5-2"]


async def test_a_check_is_allowed_on_a_read_only_cluster() -> None:
    async with changing((120, 40), forced=True) as pilot:
        asked = hosts(pilot, lambda name: Node())
        pilot.cursor_to("gpu-st-p5-4")
        await pilot.press("C")
        await until(pilot, lambda text: "health check: 1 node" in text)
        assert asked == ["gpu-st-p5-4"]
