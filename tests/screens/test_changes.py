"""From a key to what is really true: each tier, whom it hurts, undo, what is refused, and nothing by accident."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual.widgets import Input

from actions.audit import AuditLog
from cockpit.models import Fault, FaultError, FaultKind
from screens.choice import ChoiceMenu
from screens.lines import Subject
from screens.plan_dialog import PlanDialog
from screens.run_view import RunView
from screens.text_state import line_text
from screens.text_view import TextView
from tests.screens.change_app import Changed, changing, without_pauses
from tests.screens.golden import assert_golden

SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_pauses(monkeypatch, tmp_path)


async def drain(at: Changed, name: str = "gpu-st-p5-3", words: str = "rail 5 slow") -> None:
    at.cursor_to(name)
    await at.press("D")
    await at.planned()
    await at.press(*words, "enter", "1", "enter")
    await at.ended()


async def test_drain_by_keys_is_planned_confirmed_sent_once_and_seen() -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("D")
        await at.planned()
        text = at.text()
        assert "drain gpu-st-p5-3" in text
        assert "touches 1 job of 1 user" in text
        assert "state=drain" in text
        assert "type 1, how many it changes, to do it on still:" in text
        assert at.writes == []
        await at.press(*"rail 5 slow", "enter")
        assert "'reason=maria: rail 5 slow'" in at.text()
        await at.press("2", "enter")
        assert "'2' is not it" in at.text()
        assert at.writes == []
        await at.press("1", "enter")
        await at.ended()
        assert [argv[-3:] for argv in at.writes] == [
            ("nodename=gpu-st-p5-3", "state=drain", "reason=maria: rail 5 slow")
        ]
        assert "● drain gpu-st-p5-3: done, seen in Slurm" in at.text()
        entry = AuditLog("still").entries()[-1]
        assert entry.outcome == "ok"
        assert entry.begin["confirmed"] == "typed '1' in the cockpit"


async def test_without_a_reason_there_is_no_drain() -> None:
    async with changing() as at:
        await at.press("D")
        await at.planned()
        await at.press("enter", "tab", "1", "enter")
        assert "say why first" in at.text()
        assert at.app.screen is not at.app.cockpit
        await at.press("escape")
        assert at.app.screen is at.app.cockpit
        assert at.writes == []


async def test_resume_is_y_or_n_with_no_as_the_default_and_is_taken_back() -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-6")
        for keys in (["enter"], ["n"], ["escape"]):
            await at.press("R")
            await at.planned()
            assert "INC-4821" in at.text()
            await at.press(*keys)
            await at.until(lambda: not isinstance(at.app.screen, PlanDialog))
            assert at.writes == []
        await at.press("R")
        await at.planned()
        await at.press("right", "left", "y")
        await at.ended()
        assert [argv[-1] for argv in at.writes] == ["state=resume"]
        await at.read()
        await at.press("u")
        await at.planned()
        assert "undo " in at.text()
        assert "INC-4821" in at.text()
        await at.press("1", "enter")
        await at.ended()
        assert at.writes[-1][-2] == "state=drain"
        assert "INC-4821" in at.writes[-1][-1]


async def test_a_reboot_needs_the_name_of_the_cluster() -> None:
    async with changing(production=True) as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("B")
        dialog = await at.planned()
        assert dialog.has_class("-production")
        assert "PRODUCTION" in at.text()
        await at.press(*"driver", "enter", "1", "enter")
        assert "'1' is not it: type the cluster's name, still" in at.text()
        await at.press(*"Still", "enter")
        assert at.writes == []
        await at.press(*"still", "enter")
        await at.until(lambda: isinstance(at.app.screen, RunView))
        assert "PRODUCTION" in at.text()
        await at.until(lambda: at.writes)
        assert "reboot" in at.writes[0]
        await at.press("x")
        await at.ended()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    ("name", "pane", "key", "on"),
    [("drain", "2", "D", "gpu-st-p5-1"), ("replace", "2", "T", "gpu-st-p5-1"), ("cancel", "4", "K", "48219")],
)
async def test_golden_of_the_plan(name: str, pane: str, key: str, on: str, size: tuple[int, int]) -> None:
    async with changing(size, pane=pane, kind="parallelcluster", production=True) as at:
        at.cursor_to(on)
        await at.press(key)
        await at.planned()
        text = at.text()
        # The question and whom it hurts stand there without scrolling.
        assert "touches" in text or "hurts" in text
        assert "to do it" in text
        assert_golden(f"plan-{name}-{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_golden_of_the_run_and_of_the_log(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actions.runner.new_id", lambda: "20251130-105320-3f9a")
    monkeypatch.setattr("actions.who.socket.gethostname", lambda: "laptop")
    async with changing(size) as at:
        await drain(at)
        assert_golden(f"run-{size[0]}x{size[1]}", at.text())
        await at.press("escape", "9")
        await at.until(lambda: "rail 5 slow" in at.text())
        assert_golden(f"log-{size[0]}x{size[1]}", at.text())
        await at.press("enter")
        await at.until(lambda: "way back" in at.text())
        assert_golden(f"log-entry-{size[0]}x{size[1]}", at.text())


async def test_cancel_says_what_is_lost_and_q_requeues() -> None:
    async with changing(pane="4") as at:
        at.cursor_to("48219")
        await at.press("K")
        await at.planned()
        assert "hurts 1 job of 1 user" in at.text()
        assert "GPU-hours of work are lost" in at.text()
        await at.press("escape", "Q")
        await at.planned()
        await at.press("1", "enter")
        await at.until(lambda: at.writes)
        assert at.writes[0][-2:] == ("requeue", "48219")


async def test_l_holds_or_releases_by_the_jobs_states_and_asks_when_they_differ() -> None:
    async with changing(pane="4") as at:
        queue = at.cluster.view.queue
        assert queue is not None
        waiting = next(row.key for row in queue.rows if row.lead.state == "PD" and "Held" not in row.lead.reason)
        at.cursor_to(waiting)
        await at.press("L")
        await at.planned()
        assert f"hold {waiting.rstrip('_')}" in at.text()
        await at.press("y")
        await at.ended()
        await at.press("escape")
        await at.read()
        await at.press("L")
        await at.planned()
        assert f"release {waiting.rstrip('_')}" in at.text()
        await at.press("escape", "asterisk", "L")
        await at.until(lambda: isinstance(at.app.screen, ChoiceMenu))
        await at.press("r")
        await at.planned()
        assert "release" in at.lines()[0]


async def test_scale_asks_for_the_queue_and_the_count_with_the_bounds() -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("S")
        await at.until(lambda: isinstance(at.app.screen, ChoiceMenu))
        await at.press("1")
        await at.planned()
        assert "of 12 are up now; it can be from" in at.text()
        before = len(at.head.calls)
        await at.press("enter")
        assert "type a whole number" in at.text()
        assert len(at.head.calls) == before
        await at.press(*"99", "enter")
        await at.until(lambda: "cannot be done" in at.text())
        assert "has 12 nodes, not 99" in at.text()
        await at.press("escape")
        assert at.writes == []


async def test_a_gpu_stands_for_its_node_and_a_problem_for_what_it_is_about() -> None:
    async with changing(pane="1") as at:
        overview = at.app.cockpit.front
        overview.show_view(at.cluster)
        await at.pilot.pause()
        overview.query_one("#overview-problems").focus()
        await at.pilot.pause()
        problem = next(p for p in at.cluster.problems() if p.about == (("node", "gpu-st-p5-8"),))
        table = overview.table
        assert table.spec.id == "problems"
        table.state.move_to([table.spec.key(row) for row in table.visible_rows].index(problem.key))
        table.sync()
        assert "D drain" in at.lines()[-1] or at.app.size.width == 80
        await at.press("D")
        await at.planned()
        assert "drain gpu-st-p5-8" in at.text()
        assert "1 node that the problem is about" in at.text()


async def test_what_does_not_fit_says_why_and_nothing_opens() -> None:
    async with changing(pane="4") as at:
        await at.press("D")
        assert "drain: it is for a node, and this is job" in at.told
        await at.press("2", "K")
        assert "cancel: it is for a job, and this is node" in at.told
        at.cursor_to("gpu-st-p5-3")
        await at.press("R")
        assert "resume: gpu-st-p5-3 is allocated" in at.told
        assert at.app.screen is at.app.cockpit
        assert at.writes == []


async def test_old_data_are_refused_at_the_key_and_at_the_end() -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("D")
        await at.planned()
        await at.press(*"hot", "enter", "1")
        at.clock.time += 600
        await at.press("enter")
        view = await at.ended()
        assert "refused, nothing was sent: the nodes were last read 10m ago: too old to act on" in at.said()
        assert at.writes == []
        await at.read()
        view.action_again()
        await at.planned()
        await at.press("escape")
        at.clock.time += 600
        await at.press("D")
        assert "too old to act on" in at.told
        assert at.app.screen is at.app.cockpit


async def test_a_list_that_moves_under_the_dialog_does_not_move_the_targets() -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("D")
        await at.planned()
        await at.press(*"hot", "enter", "1")
        at.app.cockpit.pane.state.move_to(0)
        at.app.cockpit.pane.set_filter("gpu-st-p5-7")
        await at.read()
        await at.press("enter")
        await at.ended()
        assert [argv[-3] for argv in at.writes] == ["nodename=gpu-st-p5-3"]


async def test_a_palette_opened_on_a_node_acts_on_that_node() -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("colon", *"quarantine")
        at.app.screen_stack[-2].query_one("#pane-nodes").state.move_to(0)  # type: ignore[attr-defined]
        await at.press("enter")
        await at.planned()
        assert "quarantine gpu-st-p5-3" in at.text()


async def test_marked_nodes_are_one_plan_and_the_count_is_typed() -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("space", "space", "D")
        await at.planned()
        assert "drain gpu-st-p5-[3-4]" in at.text()
        await at.press(*"hot", "enter", "1", "enter")
        assert "'1' is not it" in at.text()
        await at.press("2", "enter")
        await at.ended()
        assert [argv[-3] for argv in at.writes] == ["nodename=gpu-st-p5-[3-4]"]


async def test_on_parallelcluster_quarantine_is_offered_and_a_key_takes_it() -> None:
    async with changing((120, 40), kind="parallelcluster") as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("D")
        await at.planned()
        assert "ctrl+o quarantine instead" in at.text()
        await at.press(*"look at it", "ctrl+o")
        await at.until(lambda: "quarantine gpu-st-p5-3" in at.text())
        await at.planned()
        assert "look at it" in at.text()
        assert at.writes == []


async def test_an_option_makes_another_plan_and_the_confirmation_starts_over() -> None:
    async with changing((120, 40), kind="parallelcluster") as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("T")
        dialog = await at.planned()
        assert "none of them loses work" in at.text()
        await at.press(*"dead", "enter", *"stil")
        await at.press("tab", "space")
        await at.until(lambda: "hurts 1 job" in at.text())
        await at.planned()
        assert dialog.query_one("#confirm").value == ""  # type: ignore[attr-defined]
        assert "dead" in at.text()


async def test_a_head_that_does_not_answer_is_told_and_may_be_asked_again() -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-3")
        at.head.fault = FaultError(Fault(FaultKind.TIMEOUT, "asking for rights", "no answer within 12 s", "wait"))
        at.cluster.slurm.known_facts = lambda: None  # type: ignore[method-assign]
        await at.press("T")
        await at.until(lambda: "planning …" not in at.text())
        if "cannot be done" in at.text():
            assert "no answer within 12 s" in at.text()
            at.head.fault = None
            await at.press("r")
            await at.planned()
        assert "replace gpu-st-p5-3" in at.text()


async def test_a_head_that_hangs_leaves_the_dialog_free_to_be_left() -> None:
    hangs = threading.Event()
    async with changing() as at:
        real = at.head.run

        def run(*args: object, **options: object) -> object:
            hangs.wait(20)
            return real(*args, **options)  # type: ignore[arg-type]

        at.head.run = run  # type: ignore[method-assign, assignment]
        await at.press("T")
        await at.until(lambda: "planning …" in at.text())
        await at.press("1", "enter", "y", "escape")
        assert at.app.screen is at.app.cockpit
        hangs.set()
        await at.pilot.pause()
        assert at.app.screen is at.app.cockpit
    assert at.writes == []


async def test_with_nothing_under_the_cursor_no_action_finds_a_target_by_itself() -> None:
    async with changing(pane="4") as at:
        await at.press("slash", *"zzzz", "enter")
        await at.press("D")
        assert "nothing under the cursor" in at.told
        await at.press("e", "D")
        assert at.app.cockpit.in_detail
        assert at.app.screen is at.app.cockpit  # no dialog


async def test_the_list_of_all_problems_gives_a_target_only_where_somebody_has_put_the_cursor() -> None:
    async with changing() as at:
        await at.app.cockpit.go(Subject("problem", ""), "explained")
        await at.pilot.pause()
        await at.press("D")
        assert "nothing under the cursor" in at.told
        assert at.app.screen is at.app.cockpit
        await at.press("tab", "shift+tab", "D")
        await at.planned()
        assert "drain gpu-st-p5-8" in at.text()
        assert "that the problem is about" in at.text()


@pytest.mark.parametrize(("key", "end"), [("D", ("end", "home")), ("R", ("G", "g"))])
async def test_the_end_of_a_long_plan_is_one_key_away(key: str, end: tuple[str, str]) -> None:
    async with changing((80, 10)) as at:
        if key == "R":
            at.cursor_to("gpu-st-p5-6")
        await at.press(key)
        dialog = await at.planned()
        state = dialog.query_one(TextView).state
        last = line_text(state.lines[-1]).strip() or line_text(state.lines[-2]).strip()
        assert last[:40] not in at.text()
        await at.press(end[0])
        assert state.at_end
        assert last[:40] in at.text()
        await at.press(end[1])
        assert (state.top, state.skip) == (0, 0)
        assert at.writes == []


async def test_letters_that_move_in_a_plan_are_typed_into_its_lines() -> None:
    async with changing((80, 14)) as at:
        await at.press("D")
        await at.planned()
        await at.press(*"Gg")
        assert at.app.screen.query_one("#reason", Input).value == "Gg"
