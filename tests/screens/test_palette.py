"""The palette: what is found for what is typed, and what enter does with it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

import themes
from cockpit.cluster import View
from cockpit.models import Health, Node, NodeState, QueueReading, QueueRow
from screens import change_offers, palette_words
from screens.commands import Command, Context, Entry
from screens.content import plain
from screens.filters import compile_filter, field_filter
from screens.key_table import KEYS
from screens.keymap import DEFAULT
from screens.keys import bindings, press
from screens.lines import Subject
from screens.palette import PaletteInput, PaletteScreen
from screens.palette_entries import PROVIDERS, VERBS
from screens.palette_search import MOST, Catalog
from tests.screens.golden import assert_golden
from tests.screens.grid_app import GridApp, node_rows
from tests.screens.menu_app import context, opened, still_view
from tests.screens.test_app import HOSTILE

VIEW = still_view()
NODE = Subject("node", "gpu-st-p5-8")


def texts(text: str, where: Context | None = None) -> list[str]:
    return [entry.text for entry in Catalog(where or context(VIEW)).find(text).entries]


def big_view(nodes: int = 1024, jobs: int = 20_000) -> View:
    """As large a cluster as the cockpit promises to be quick on."""
    assert VIEW.queue is not None
    one = next(row for row in VIEW.queue.rows if row.key.isdigit())
    rows = tuple(
        QueueRow(str(key), (replace(one.lead, job_id=key, name=f"run-{key % 97}", user=f"u{key % 40}"),), one.tally)
        for key in range(100_000, 100_000 + jobs)
    )
    queue = QueueReading(tuple(row.lead for row in rows), rows)
    assert VIEW.nodes is not None
    named = tuple(replace(VIEW.nodes[0], name=f"p5-{number}") for number in range(1, nodes + 1))
    return replace(VIEW, nodes=named, queue=queue)


def test_with_nothing_typed_all_that_can_be_done_here_comes_first_and_what_cannot_last() -> None:
    entries = Catalog(context(VIEW, subject=NODE)).find("").entries
    assert entries[0].text == "details"
    disabled = [bool(entry.disabled) for entry in entries]
    assert disabled == sorted(disabled)
    output = next(entry for entry in entries if entry.text == "output")
    assert output.disabled == "no job is behind this node"
    assert {"node NAME", "job ID", "theme NAME", "screenshot", "refresh"} <= {entry.text for entry in entries}
    assert not {"down", "half page", "go to"} & {entry.text for entry in entries}  # moving is no command


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("q", "quit"),  # its key comes first, as in `:q`
        (":q", "quit"),
        ("?", "help"),
        ("ref", "refresh"),
        ("REF", "refresh"),
        ("all", "mark all"),
        ("srt lft", "sort left"),
        ("node gpu-st-p5-8", "node gpu-st-p5-8"),
        (":node p5-8", "node gpu-st-p5-8"),
        ("node  st8", "node gpu-st-p5-8"),
        ("gpu-st-p5-3", "node gpu-st-p5-3"),
        ("user mar", "user maria"),
        ("kenji", "user kenji"),
        ("queue gpu", "queue gpu"),
        ("no", "nodes"),
    ],
)
def test_the_best_match_comes_first(typed: str, first: str) -> None:
    assert texts(typed)[0] == first


def test_a_cluster_is_armed_for_the_time_that_was_typed_not_for_one_that_looks_like_it() -> None:
    found = {typed: Catalog(context(VIEW)).find(f"arm {typed}").entries for typed in ("5m", "1m", "90s", "2", "15m")}
    assert {typed: entries[0].command for typed, entries in found.items()} == {
        typed: Command("arm", typed) for typed in found
    }
    assert [entry.text for entry in found["15m"]] == ["arm 15m"]
    assert "5m" in found["5m"][0].help
    assert "2m" in found["2"][0].help  # a number alone is minutes
    assert texts("arm ")[0] == "arm 15m"
    assert all(entry.help for entry in Catalog(context(VIEW)).find("arm ").entries)


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("why is my job pending", "explain"),
        ("which rank hangs", "diagnose ID"),
        ("which node is bad?", "nodes"),
        ("shut down for the weekend", "stop the cluster"),
        ("start it again", "start the cluster"),
        ("who changed what", "log"),
        ("what does the idle capacity cost", "cost"),
        ("nccl history", "NCCL"),
        ("export table", "export"),
        ("kill job", "cancel"),  # not `down`, whose help says that jobs are killed
        ("search output", "output"),
    ],
)
def test_what_people_ask_in_their_own_words_is_found(asked: str, first: str) -> None:
    changes = change_offers.entries(DEFAULT, lambda offer: "")
    assert texts(asked, replace(context(VIEW, subject=NODE), changes=changes))[0] == first


def test_every_word_of_others_belongs_to_something_that_the_palette_offers() -> None:
    offers = {offer.id for offer in change_offers.OFFERS}
    known = {key.id for key in KEYS if key.listed} | offers | {verb.id for verb in VERBS}
    by_hand = {"traffic", "screenshot", "clusters", "undo", "nccl-run", "nccl-sweep", "app.filter"}
    assert set(palette_words.ALSO) <= known | by_hand


def test_names_come_by_beginning_then_any_part_then_scattered_letters() -> None:
    names = ("ab-1", "x-ab", "a-x-b", "zz")
    view = replace(VIEW, nodes=tuple(Node(name, NodeState("idle"), "idle", Health.OK) for name in names))
    assert texts("node ab", context(view)) == ["node ab-1", "node x-ab", "node a-x-b"]
    assert texts("node zz", context(view)) == ["node zz"]


def test_of_many_names_the_first_are_shown_and_the_rest_told() -> None:
    where = context(big_view())
    found = Catalog(where).find("node ")
    assert len(found.entries) == MOST
    assert found.note == "the first 50 of 1,024; type more of the name"
    found = Catalog(where).find("job 1")
    assert len(found.entries) == MOST
    assert [entry.text for entry in Catalog(where).find("job 119999").entries] == ["job 119999"]
    assert len(Catalog(where).find("job run-5").entries) == MOST
    assert Catalog(where).find("job nosuch").note == "no job matches “nosuch” among 20,000"


def test_a_task_of_an_array_leads_to_the_line_of_its_array() -> None:
    assert VIEW.queue is not None
    array = next(row for row in VIEW.queue.rows if row.key.endswith("_"))
    number = array.lead.array_job_id
    found = Catalog(context(VIEW)).find(f"job {number}_1").entries
    assert [entry.command for entry in found] == [Command("job", array.key)]
    assert Catalog(context(VIEW)).find(f"{number}_1").entries[0].command == Command("job", array.key)
    assert Catalog(context(VIEW)).find("job 9" * 40).entries == ()


def test_what_is_not_known_is_told_with_what_is_possible() -> None:
    assert "try `node NAME`" in Catalog(context(VIEW)).find("frobnicate").note
    assert Catalog(context(View())).find("node x").note == "the nodes were not read yet"
    assert Catalog(context(View())).find("job 1").note == "the queue is empty or was not read yet"
    assert Catalog(context(VIEW)).find("cluster x").note == "the config names no cluster"


def test_what_the_caller_knows_against_a_command_is_said() -> None:
    where = context(VIEW, disabled={"app.refresh": "paused", "screenshot": "no disk"})
    found = {entry.text: entry.disabled for entry in Catalog(where).find("").entries}
    assert (found["refresh"], found["screenshot"]) == ("paused", "no disk")


def test_actions_add_entries_of_their_own() -> None:
    def drain(where: Context) -> list[Entry]:
        return [Entry(Command("drain"), "drain", "Take it out.", "D", tier=2, disabled="read-only")]

    found = Catalog(context(VIEW), (*PROVIDERS, drain)).find("D").entries[0]
    assert (found.text, found.tier, found.disabled) == ("drain", 2, "read-only")


def test_in_details_the_commands_are_those_of_the_text() -> None:
    known = texts("", context(VIEW, scopes=("text",), subject=NODE))
    assert {"copy", "search", "next hit"} <= set(known)
    assert not {"mark all", "export", "details", "wide", "filter"} & set(known)


@pytest.mark.parametrize("user", ["maria", 'we"ird', "a,b:c d", "!x", "[/]"])
def test_the_filter_of_a_user_finds_that_user(user: str) -> None:
    keep = compile_filter(field_filter("user", user), {"user": lambda row: str(row)})
    assert keep(user.replace('"', " "))
    assert not keep("somebody else")


async def test_golden_of_the_palette() -> None:
    for size in ((80, 24), (120, 40), (200, 60)):
        async with opened(lambda: PaletteScreen(context(VIEW, subject=NODE, problems=VIEW.problems)), size) as (
            app,
            pilot,
        ):
            await pilot.press(*"node 8")
            await pilot.pause()
            assert_golden(f"palette-node-{size[0]}x{size[1]}", app.text())
            await pilot.press("ctrl+u")
            await pilot.pause()
            assert_golden(f"palette-{size[0]}x{size[1]}", app.text())


async def test_enter_runs_and_escape_closes() -> None:
    async with opened(lambda: PaletteScreen(context(VIEW))) as (app, pilot):
        await pilot.press(*"node p5-8", "enter")
        await pilot.pause()
        assert app.results == [Command("node", "gpu-st-p5-8")]
        await app.open()
        await pilot.press("escape")
        await pilot.pause()
        assert app.results[1:] == [None]
        assert app.text().startswith("below")


async def test_arrows_choose_tab_completes_and_a_verb_asks_for_its_name() -> None:
    async with opened(lambda: PaletteScreen(context(VIEW))) as (app, pilot):
        await pilot.press(*"user", "enter")
        await pilot.pause()
        line = app.screen.query_one(PaletteInput)
        assert line.value == "user "
        await pilot.press("down", "ctrl+n", "up", "ctrl+p", "down")
        await pilot.press("tab")
        second = texts("user ")[1]
        assert line.value == second
        assert line.has_focus
        await pilot.press("enter")
        await pilot.pause()
        assert app.results == [Command("user", second.removeprefix("user "))]


async def test_what_cannot_be_done_now_says_why_and_stays() -> None:
    async with opened(lambda: PaletteScreen(context(VIEW, subject=NODE))) as (app, pilot):
        await pilot.press(*"output", "enter")
        await pilot.pause()
        assert app.results == []
        assert "│ not now: no job is behind this node" in app.text()


async def test_a_paste_is_one_harmless_line() -> None:
    async with opened(lambda: PaletteScreen(context(VIEW))) as (app, pilot):
        app.post_message(events.Paste("node \x1b[31m\ngpu\r\nx"))
        await pilot.pause()
        assert app.screen.query_one(PaletteInput).value == "node ␛[31m gpu x"
        assert app.results == []


async def test_hostile_names_stay_text() -> None:
    assert VIEW.queue is not None
    rows = tuple(
        QueueRow(str(number), (replace(VIEW.queue.rows[0].lead, job_id=number, name=name, user=name),), ())
        for number, name in enumerate(HOSTILE, 900)
    )
    view = replace(VIEW, queue=QueueReading(tuple(row.lead for row in rows), rows))
    async with opened(lambda: PaletteScreen(context(view, clusters=tuple(HOSTILE))), (160, 48)) as (app, pilot):
        for typed in ("job ", "user ", "cluster ", "job [/]", "[/", "\\", "(("):
            app.screen.query_one(PaletteInput).value = typed
            await pilot.pause()
            for _ in HOSTILE:
                await pilot.press("down")
            assert not [char for char in app.text() if ord(char) < 32 and char != "\n"]
        app.screen.query_one(PaletteInput).value = ""
        await pilot.press(*"job 901", "tab", "enter")
        await pilot.pause()
        assert app.results == [Command("job", "901")]


class BurstApp(App[None]):
    """Opens the palette by its keys, as the cockpit does."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("app")
    CSS_PATH = themes.STYLESHEET
    ENABLE_COMMAND_PALETTE = False

    def __init__(self) -> None:
        super().__init__()
        self.register_theme(themes.theme())
        self.theme = themes.DEFAULT
        self.results: list[Command | None] = []

    def compose(self) -> ComposeResult:
        yield Static(plain("below"))

    async def action_palette(self) -> None:
        """What the screen of a cluster does."""
        await self.push_screen(PaletteScreen(context(VIEW)), self.results.append)


async def test_the_rest_of_a_burst_goes_into_the_palette() -> None:
    app = BurstApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for char in ":node p5-8":
            key = {":": "colon", " ": "space", "-": "minus"}.get(char, char)
            app.post_message(events.Key(key, char))
        app.post_message(events.Key("enter", "\r"))
        for _ in range(20):
            await pilot.pause()
        assert app.results == [Command("node", "gpu-st-p5-8")]


async def test_a_chosen_key_does_what_it_does_where_the_focus_is() -> None:
    app = GridApp(node_rows(5))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert await press(app.screen, "grid.mark_all")
        assert len(app.grid.marked_keys) == 5
        assert not await press(app.screen, "gpus.metric")
        app.screen.set_focus(None)
        assert not await press(app.screen, "grid.unmark")
        assert await press(app.screen, "grid.unmark", then=[app.grid])
        assert not app.grid.marked_keys
