"""The actions menu and the copy menu over the still cluster."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from cockpit.formats.hostlist import expand
from cockpit.models import Health, Job, QueueRow
from cockpit.text import printable
from screens.action_menu import PROVIDERS, ActionMenuScreen
from screens.commands import Command, Context, Entry
from screens.copy_menu import CopyMenuScreen
from screens.copy_offers import MOST, Offer, row_offers, text_offers
from screens.keymap import Keymap
from screens.lines import Subject
from screens.pane_spec import PaneSpec
from screens.panes import pane_specs
from screens.subject_entries import subject_entries
from tests.screens.golden import assert_golden
from tests.screens.menu_app import context, opened
from tests.screens.test_app import HOSTILE
from tests.still import still_cluster

SIZES = ((80, 24), (120, 40), (200, 60))
CLUSTER = still_cluster()[0]
CLUSTER.read_once()
VIEW = CLUSTER.view
SPECS = {spec.id: spec for spec in pane_specs(CLUSTER)}
DOWN = Subject("node", "gpu-st-p5-8")


def about(subject: Subject | None, **changes: Any) -> Context:
    return context(VIEW, subject=subject, problems=VIEW.problems, **changes)


def job_subject(*states: str) -> Subject:
    assert VIEW.queue is not None
    return Subject("job", next(row.key for row in VIEW.queue.rows if row.lead.state in states))


def reasons(subject: Subject | None, **changes: Any) -> dict[str, str]:
    return {entry.command.id: entry.disabled for entry in subject_entries(about(subject, **changes))}


def copied(spec: PaneSpec, rows: list[Any]) -> dict[str, str | None]:
    return {offer.letter: offer.text() for offer in row_offers(spec, rows)}


def drain(where: Context) -> list[Entry]:
    """An action as the next step will have them."""
    return [Entry(Command("drain"), "drain", "Take it out.", "D", tier=2, disabled="the cockpit is read-only")]


def test_why_something_cannot_be_done() -> None:
    assert reasons(None)["subject.ssh"] == "there is nothing under the cursor"
    assert reasons(None)["app.explain"] == ""
    node = reasons(DOWN)
    assert (node["subject.ssh"], node["subject.acknowledge"]) == ("", "")
    assert node["subject.output"] == "no job is behind this node"
    assert reasons(Subject("node", "gpu-dy-p5-4"))["subject.ssh"].startswith("gpu-dy-p5-4 is powering down")
    well = next(node.name for node in VIEW.nodes or () if node.health is Health.OK)
    assert reasons(Subject("node", well))["subject.acknowledge"] == f"no problem is known of node {well}"
    pending = reasons(job_subject("PD"))
    assert pending["subject.output"].endswith("has not started")
    assert reasons(job_subject("R"))["subject.output"] == ""
    problem = reasons(Subject("problem", VIEW.problems[0].key))
    assert problem["subject.acknowledge"] == ""
    assert reasons(DOWN, disabled={"subject.ssh": "no terminal"})["subject.ssh"] == "no terminal"


def test_in_details_only_what_works_there_is_offered() -> None:
    assert "grid.open" not in reasons(DOWN, scopes=("text",))
    assert "text.copy" in reasons(DOWN, scopes=("text",))


async def test_golden_of_the_actions_menu() -> None:
    for size in SIZES:
        async with opened(lambda: ActionMenuScreen(about(DOWN), (*PROVIDERS, drain)), size) as (app, _):
            assert_golden(f"actions-{size[0]}x{size[1]}", app.text())


async def test_a_key_chooses_at_once_and_a_disabled_one_says_why() -> None:
    async with opened(lambda: ActionMenuScreen(about(DOWN), (*PROVIDERS, drain))) as (app, pilot):
        await pilot.press("D")
        await pilot.pause()
        assert "│ not now: the cockpit is read-only" in app.text()
        assert app.results == []
        await pilot.press("s")
        await pilot.pause()
        assert app.results == [Command("subject.ssh")]


async def test_a_long_reason_is_read_whole_below_the_list_at_80_columns() -> None:
    why = "the config has no `schedule_role`: " + "a role that scheduler.amazonaws.com may take " * 5 + "and so on"

    def long(_: Context) -> Iterator[Entry]:
        yield Entry(Command("schedule"), "schedule", "Stop at a time, by itself.", "X", disabled=why)

    async with opened(lambda: ActionMenuScreen(about(DOWN), (*PROVIDERS, long))) as (app, pilot):
        await pilot.press("X")
        await pilot.pause()
        told = " ".join(" ".join(line.strip("│ ") for line in app.text().split("\n")).split())
        assert f"not now: {why}" in told
        assert "Stop at a time, by itself." in told.split("and so on")[1]
        assert "Everything known about this line." in told  # the list is still there


async def test_the_cursor_and_enter_choose_too_and_q_closes() -> None:
    async with opened(lambda: ActionMenuScreen(about(DOWN))) as (app, pilot):
        await pilot.press("j", "down", "k", "enter")
        await pilot.pause()
        assert app.results == [Command("app.explain")]
        await app.open()
        await pilot.press("G", "enter", "escape")
        await pilot.pause()
        await app.open()
        await pilot.press("q")
        await pilot.pause()
        assert app.results[1:] == [Command("grid.export"), None]


async def test_remapped_keys_are_shown_and_work_in_the_menu() -> None:
    keymap = Keymap({"subject.ssh": "exclamation_mark"})
    async with opened(lambda: ActionMenuScreen(about(DOWN, keymap=keymap))) as (app, pilot):
        assert "!       ssh" in app.text()
        await pilot.press("exclamation_mark")
        await pilot.pause()
        assert app.results == [Command("subject.ssh")]


async def test_a_menu_with_more_actions_than_lines_still_shows_its_note() -> None:
    def many(where: Context) -> list[Entry]:
        return [Entry(Command(str(number)), f"action {number}", f"What {number} does.") for number in range(60)]

    async with opened(lambda: ActionMenuScreen(about(None), [many])) as (app, pilot):
        assert "│ What 0 does." in app.text()
        await pilot.press("G")
        await pilot.pause()
        assert "action 59" in app.text()
        assert "│ What 59 does." in app.text()


async def test_nothing_of_a_table_but_moving_works_in_a_menu() -> None:
    async with opened(lambda: ActionMenuScreen(about(DOWN))) as (app, pilot):
        await pilot.press("slash", "space", "v", "asterisk", "less_than_sign", "w", "z", "I", "U")
        await pilot.pause()
        assert "1 marked" not in app.text()
        assert app.results == []


@pytest.mark.parametrize("pane", ["nodes", "queue"])
def test_every_form_holds_every_row(pane: str) -> None:
    spec = SPECS[pane]
    rows = list(spec.rows(VIEW) or ())[:4]
    forms = copied(spec, rows)
    keys = [spec.key(row).rstrip("_") for row in rows]
    assert forms["n"] == "\n".join(keys)
    assert (forms["t"] or "").count("\n") == 4
    assert (forms["m"] or "").count("\n") == 5
    assert json.loads(forms["o"] or "") == json.loads(json.dumps([spec.record(row) for row in rows]))
    words = shlex.split(forms["c"] or "")
    # A part of a het job is shown as 123+0 and asked for by its own id.
    asked = expand(words[-1]) if pane == "nodes" else words[-1].split(",")
    assert asked == [str(row.lead.job_id) if "+" in key else key for row, key in zip(rows, keys, strict=True)]


def test_one_row_is_one_object_and_names_itself() -> None:
    spec = SPECS["nodes"]
    node = next(node for node in VIEW.nodes or () if node.name == DOWN.key)
    forms = copied(spec, [node])
    assert json.loads(forms["o"] or "")["name"] == DOWN.key
    assert forms["n"] == forms["f"] == DOWN.key
    assert forms["c"] == f"scontrol show node {DOWN.key}"


def test_a_job_offers_the_nodes_it_holds() -> None:
    spec, subject = SPECS["queue"], job_subject("R")
    row = next(row for row in spec.rows(VIEW) or () if row.key == subject.key)
    assert expand(copied(spec, [row])["f"] or "") == expand(row.lead.hostlist)
    pending = next(row for row in spec.rows(VIEW) or () if row.key == job_subject("PD").key)
    assert "f" not in copied(spec, [pending])


def test_names_from_outside_are_no_markup_no_formula_and_no_extra_cell() -> None:
    spec = SPECS["queue"]
    lead: Job = next(row for row in spec.rows(VIEW) or ()).lead
    for number, name in enumerate([*HOSTILE, "=1+1", "@SUM(A1)", "**bold**", "<!channel>", "back\\slash|pipe`tick"]):
        row = QueueRow(str(number), (replace(lead, name=printable(name), job_id=number),), ())
        forms = copied(spec, [row])
        table = (forms["m"] or "").split("\n")
        cells = table[-1].replace("\\\\", "").replace("\\|", "").count("|")
        assert cells == table[0].count("|")
        assert not [mark for mark in ("<!channel>", "**bold**", "[/]") if mark in table[-1]]
        values = (forms["t"] or "").split("\n")[-1].split("\t")
        assert not [value for value in values if value.startswith(("=", "@", "+"))]


def test_too_much_for_a_clipboard_is_not_even_made() -> None:
    made = []

    def record(row: Any) -> dict[str, Any]:
        made.append(row)
        return {"text": "x" * 1000}

    spec = replace(SPECS["nodes"], record=record)
    rows = list(VIEW.nodes or ())[:1] * 20_000
    assert copied(spec, rows)["o"] is None
    assert len(made) < 2 * MOST // 1000


async def test_golden_of_the_copy_menu_and_what_it_copies() -> None:
    spec = SPECS["nodes"]
    rows = list(VIEW.nodes or ())[:4]
    for size in SIZES[1:]:
        async with opened(lambda: CopyMenuScreen("4 nodes", row_offers(spec, rows)), size) as (app, _):
            assert_golden(f"copy-{size[0]}x{size[1]}", app.text())
    async with opened(lambda: CopyMenuScreen("4 nodes", row_offers(spec, rows))) as (app, pilot):
        await pilot.press("j", "j")
        await pilot.pause()
        assert_golden("copy-80x24", app.text())
        await pilot.press("f")
        await pilot.pause()
        assert app.clipboard == "gpu-dy-p5-[1-4]"
        assert app.results == [None]
        await app.open()
        await pilot.press("G", "enter")
        await pilot.pause()
        assert app.clipboard == "scontrol show node 'gpu-dy-p5-[1-4]'"


async def test_too_much_is_said_and_nothing_is_copied() -> None:
    offers = [Offer("w", "everything", lambda: None), Offer("l", "a line", lambda: "x")]
    async with opened(lambda: CopyMenuScreen("text", offers)) as (app, pilot):
        assert "more than the 50,000 characters" in app.text()
        await pilot.press("w")
        await pilot.pause()
        assert (app.clipboard, app.results) == ("", [])


def test_a_text_offers_its_line_and_the_whole() -> None:
    assert [(offer.letter, offer.text()) for offer in text_offers("a\nb", "b")] == [("l", "b"), ("w", "a\nb")]
    assert [offer.letter for offer in text_offers("a\n\nb", "")] == ["w"]


async def test_hostile_text_in_the_preview_stays_text() -> None:
    async with opened(lambda: CopyMenuScreen("text", text_offers("\n".join(HOSTILE), HOSTILE[5]))) as (app, pilot):
        for _ in range(2):
            assert not [char for char in app.text() if ord(char) < 32 and char != "\n"]
            await pilot.press("j")
            await pilot.pause()
        assert "[/]" in app.text()
