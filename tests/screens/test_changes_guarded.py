"""Nobody changes a cluster by accident: type-ahead, pastes, bursts; and a read-only cluster by no way at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual import events

from actions.audit import AuditLog
from screens import guard, plan_dialog
from screens.ask_dialog import AskDialog
from screens.confirm import ConfirmLine, YesNo
from screens.guard import BURST_S, SETTLE_S, Guard
from screens.plan_dialog import PlanDialog
from tests.screens.change_app import Changed, changing, without_pauses

A_HAND_S = 0.03  # between two keys of somebody who types fast


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_pauses(monkeypatch, tmp_path)


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("SUDO_USER", "maria")


def burst(at: Changed, text: str) -> None:
    """What a terminal without bracketed paste makes of a paste: all keys in one read."""
    for char in text:
        key = "enter" if char == "\n" else char
        at.app.post_message(events.Key(key, char if char != "\n" else "\r"))


async def typed(at: Changed, text: str) -> None:
    for char in text:
        await at.press("enter" if char == "\n" else char)
        await asyncio.sleep(A_HAND_S)


def paste(at: Changed, text: str) -> None:
    at.app.post_message(events.Paste(text))


def test_the_guard_hears_nothing_before_it_was_read_and_no_bursts() -> None:
    ear = Guard()
    assert not ear.is_open(1e9)
    ear.shut(100.0)
    assert not ear.is_open(100.0 + SETTLE_S - 0.001)
    assert ear.is_open(100.0 + SETTLE_S)
    assert ear.press(200.0)
    assert not ear.press(200.0 + BURST_S / 2)
    assert not ear.press(200.0 + BURST_S)
    assert ear.press(200.0 + 3 * BURST_S)


async def test_keys_of_the_first_moment_are_ignored(real: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SETTLE_S == 0.3
    for module in (guard, plan_dialog):
        monkeypatch.setattr(module, "SETTLE_S", 2.0)  # a busy test machine may take 0.3 s for a key
    async with changing() as at:
        at.cursor_to("gpu-st-p5-6")
        await at.press("R", "y", "y", "enter", "y")
        await at.until(lambda: "do it on still?" in at.text())
        await at.press("y", "enter")  # the plan is there, but nobody has read it
        assert isinstance(at.app.screen, PlanDialog)
        await at.planned()
        assert at.writes == []
        await asyncio.sleep(A_HAND_S)
        await at.press("y")
        await at.until(lambda: at.writes)


async def test_a_key_that_was_pressed_before_the_plan_was_there_counts_for_nothing_however_late_it_comes(
    quick: None,
) -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-6")
        early = events.Key("y", "y")
        await at.press("R")
        await at.planned()
        at.app.post_message(early)  # a slow screen: it was in the terminal's buffer all the time
        await at.pilot.pause(0.05)
        assert isinstance(at.app.screen, PlanDialog)
        assert at.writes == []


@pytest.mark.parametrize("text", ["y\ny\n", "y\n", "yes\n", "\ny\n"])
async def test_a_burst_answers_no_question_of_y_or_n(real: None, text: str) -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-6")
        await at.press("R")
        await at.planned()
        burst(at, text)
        await at.until(lambda: "faster than a hand types" in at.text())
        await at.pilot.pause(4 * BURST_S)
        assert at.writes == []
        assert isinstance(at.app.screen, PlanDialog)
        paste(at, text)
        await at.pilot.pause(4 * BURST_S)
        assert at.writes == []
        assert isinstance(at.app.screen, PlanDialog)


async def test_pastes_and_bursts_confirm_no_count_and_no_name(real: None) -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("B")
        await at.planned()
        paste(at, "driver\nstill\n")  # the words of a ticket may be pasted, as one line
        await at.pilot.pause()
        assert "maria: driver still" in at.said()
        await asyncio.sleep(A_HAND_S)
        await at.press("enter")
        await at.until(lambda: isinstance(at.app.focused, ConfirmLine))
        await asyncio.sleep(A_HAND_S)
        line = at.app.screen.query_one(ConfirmLine)
        for send in (burst, paste):
            send(at, "still\n")
            await at.until(lambda: "faster than a hand types" in at.text())
            await at.pilot.pause(2 * BURST_S)
            assert at.app.focused is line
            assert line.value == ""
        await at.press("ctrl+v")
        assert line.value == ""
        assert at.writes == []
        await typed(at, "still\n")
        await at.until(lambda: at.writes)


async def test_an_unbracketed_paste_into_the_reason_does_not_run_on_into_the_confirmation(real: None) -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("D")
        await at.planned()
        burst(at, "hot\n1\n1\n")
        await at.pilot.pause(0.2)
        assert at.writes == []
        assert isinstance(at.app.screen, PlanDialog)


async def test_ctrl_d_delete_and_backspace_change_nothing(quick: None) -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("ctrl+d", "delete", "backspace", "ctrl+k", "d", "escape")
        assert at.app.screen is at.app.cockpit
        assert at.writes == []


# A read-only cluster.


async def by_key(at: Changed) -> None:
    for key in "DRBTSKQL":
        await at.press(key)


async def by_palette(at: Changed) -> None:
    for word in ("drain", "quarantine", "keep up", "set queue down", "undo"):
        await at.press("colon", *word, "enter")
        assert "not now: read-only" in at.said()
        await at.press("escape")


async def by_menu(at: Changed) -> None:
    await at.press("a")
    for key in "DRBTSu":
        await at.press(key)
        assert "not now: read-only" in at.said()
    await at.press("G", "enter", "escape")


async def by_undo(at: Changed) -> None:
    await at.app.cockpit.undo()
    await at.pilot.pause()


WAYS = [by_key, by_palette, by_menu, by_undo]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("forced", [False, True], ids=["config", "flag"])
async def test_read_only_holds_by_every_way_and_nothing_goes_over_the_wire(
    quick: None, way: Callable[[Changed], Awaitable[None]], forced: bool
) -> None:
    async with changing(read_only=not forced, forced=forced) as at:
        for pane in ("2", "4"):
            await at.press(pane)
            before = list(at.head.calls)
            await way(at)
            assert at.app.screen is at.app.cockpit
            assert at.head.calls == before
        assert at.writes == []
        assert AuditLog("still").entries() == ()
        if way is by_key:
            assert "read-only" in at.told
            await at.press("question_mark")
            assert at.app.cockpit.disabled_keys(at.app.cockpit.pointed())["change.drain"].startswith("read-only")


async def test_arming_needs_the_name_counts_down_and_ends(quick: None) -> None:
    async with changing((120, 40), read_only=True) as at:
        assert "READ-ONLY" in at.lines()[0]
        await at.press("colon", *"arm 15m", "enter")
        await at.until(lambda: isinstance(at.app.screen, AskDialog) and at.app.focused is not None)
        assert "For 15m the cluster still may be changed from here." in at.text()
        await at.press(*"prod", "enter")
        assert isinstance(at.app.screen, AskDialog)
        assert at.cluster.read_only
        await at.press(*"still", "enter")
        await at.until(lambda: at.app.screen is at.app.cockpit)
        at.app.cockpit.refresh_chrome()
        await at.pilot.pause()
        assert "ARMED 15m" in at.lines()[0]
        assert "READ-ONLY" not in at.lines()[0]
        at.clock.time += 61
        await at.read()
        at.app.cockpit.refresh_chrome()
        await at.pilot.pause()
        assert "ARMED 13m" in at.lines()[0]
        at.cursor_to("gpu-st-p5-3")
        await at.press("D")
        await at.planned()
        await at.press(*"hot", "enter", "1")
        at.clock.time += 900  # it ends while the question stands there
        at.cluster.read_once()
        await at.press("enter")
        await at.ended()
        assert "refused, nothing was sent: read-only" in at.said()
        assert at.writes == []
        await at.press("escape")
        at.app.cockpit.refresh_chrome()
        await at.pilot.pause()
        assert "READ-ONLY" in at.lines()[0]


async def test_disarm_ends_it_at_once_and_the_flag_cannot_be_armed(quick: None) -> None:
    async with changing((120, 40), read_only=True) as at:
        at.cluster.lock.arm(900)
        await at.press("colon", *"disarm", "enter")
        assert at.cluster.read_only
        at.cluster.lock.forced = True
        await at.press("colon", *"arm 15m", "enter")
        await at.pilot.pause()
        assert at.app.screen is at.app.cockpit
        assert "started with --read-only" in at.told
    async with changing((120, 40)) as at:
        await at.press("colon", *"arm 15m", "enter")
        await at.pilot.pause()
        assert "not read-only: there is nothing to arm" in at.told


async def test_what_cannot_be_read_is_not_agreed_to(quick: None) -> None:
    async with changing((80, 24)) as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("D")
        await at.planned()
        await at.press(*"hot", "enter")
        await at.pilot.resize_terminal(20, 5)
        await at.press("1", "enter")
        await at.pilot.pause()
        assert isinstance(at.app.screen, PlanDialog)
        assert at.writes == []
        await at.pilot.resize_terminal(80, 24)
        await at.press("enter")
        await at.until(lambda: at.writes)


async def test_arming_hears_no_paste(real: None) -> None:
    async with changing((120, 40), read_only=True) as at:
        await at.app.cockpit.arm("15m")
        await at.until(lambda: isinstance(at.app.focused, ConfirmLine))
        burst(at, "still\n")
        paste(at, "still\n")
        await at.pilot.pause(0.1)
        assert at.cluster.read_only
        assert isinstance(at.app.screen, AskDialog)


async def test_the_question_of_y_or_n_begins_with_no_each_time(quick: None) -> None:
    async with changing() as at:
        at.cursor_to("gpu-st-p5-6")
        await at.press("R")
        dialog = await at.planned()
        await at.press("right")
        assert "[ y yes ]" in at.text()
        dialog.replan()
        await at.planned()
        assert "[ n no ]" in at.text()
        assert isinstance(at.app.focused, YesNo)
