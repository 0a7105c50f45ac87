"""The text view in a running app: reading, links, wrapping, searching, what is repainted."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.geometry import Region

from screens.lines import Line, Link, Subject, fact
from screens.text_messages import CopyText, FollowLink
from screens.text_search import AT_ONCE
from tests.screens.helpers import screen_lines, screen_text
from tests.screens.test_grid_hostile import CONTROL, HOSTILE
from tests.screens.text_app import TextApp

SIZE = (60, 11)  # ten rows of text and one line of title


def numbered(count: int) -> list[Line]:
    return [[f"line {at}"] for at in range(count)]


def node(name: str) -> Subject:
    return Subject("node", name)


LINKED: list[Line] = [
    ["plain"],
    ["on ", Link("n1", "critical", node("n1")), " and ", Link("n2", "", node("n2"))],
    ["plain"],
    ["job ", Link("42", "", Subject("job", "42_"))],
]


def shown(app: TextApp) -> list[str]:
    """The rows of text on screen, without the scroll bar."""
    return [line[:-1].rstrip() if len(line) == app.size.width else line for line in screen_lines(app)[1:]]


def looks(app: TextApp, text: str) -> set[str]:
    """How the segments that hold that text look: any of reverse, underline, and the background."""
    found = set()
    for y in range(app.view.size.height):
        for segment in app.view.render_line(y):
            if text in segment.text and segment.style is not None:
                found |= {word for word in ("reverse", "underline") if getattr(segment.style, word)}
                found.add(str(segment.style.bgcolor.name if segment.style.bgcolor else ""))
    return found


async def test_without_links_the_screen_moves_and_no_line_is_highlighted() -> None:
    app = TextApp(numbered(50))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        plain = looks(app, "line 5")
        assert looks(app, "line 0") == plain
        await pilot.press("j", "j")
        assert shown(app)[0] == " line 2"
        assert looks(app, "line 2") == plain
        await pilot.press("k", "enter")
        assert shown(app)[0] == " line 1"
        await pilot.press("ctrl+d")
        assert shown(app)[0] == " line 6"
        await pilot.press("G")
        assert shown(app)[-1] == " line 49"
        await pilot.press("j", "pageup")
        assert shown(app)[-1] == " line 40"
        await pilot.press("g", "space")
        assert shown(app)[0] == " line 9"
        assert app.messages == []


async def test_links_are_underlined_and_followed() -> None:
    app = TextApp(LINKED)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        assert "underline" in looks(app, "n1")
        assert "reverse" not in looks(app, "n1")
        await pilot.press("enter", "tab")
        assert "reverse" in looks(app, "n1")
        assert "reverse" not in looks(app, "n2")
        await pilot.press("enter", "l", "enter", "l", "h", "enter", "tab", "enter", "tab", "shift+tab", "enter")
    followed = [event.subject for event in app.messages if isinstance(event, FollowLink)]
    assert followed == [node("n1"), node("n2"), node("n1"), Subject("job", "42_"), Subject("job", "42_")]


async def test_a_click_follows_the_link_under_it() -> None:
    app = TextApp(LINKED)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.click(app.view, offset=(2, 2))
        assert app.view.state.cursor == 1
        assert app.messages == []
        await pilot.click(app.view, offset=(11, 2))
    assert [event.subject for event in app.messages if isinstance(event, FollowLink)] == [node("n2")]


async def test_the_cursor_stays_with_its_link_when_the_text_changes() -> None:
    app = TextApp(LINKED)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("tab", "l")
        app.view.show([["new"], ["new"], *LINKED])
        await pilot.press("enter")
        app.view.show([["gone"] for _ in range(9)])
        await pilot.press("enter")
    assert [event.subject for event in app.messages if isinstance(event, FollowLink)] == [node("n2")]


async def test_only_lines_that_changed_are_sent() -> None:
    app = TextApp(numbered(8))
    async with app.run_test(size=SIZE, notifications=True):
        app.view.repainted.clear()
        lines = numbered(8)
        app.view.show(lines)
        assert app.view.repainted == []
        lines[3] = ["line 3 is new"]
        app.view.show(list(lines))
        assert [region.y for region in app.view.repainted if isinstance(region, Region)] == [4]


async def test_a_value_that_is_too_long_hangs_under_itself() -> None:
    app = TextApp([fact("next", "word " * 30), ["x" * 100]])
    async with app.run_test(size=(40, 14), notifications=True) as pilot:
        rows = shown(app)
        assert [row.index("word") for row in rows[:8]] == [16] * 8
        assert "".join(rows[8:]).count("x") == 100
        await pilot.press("w")
        assert shown(app)[0].endswith("›")
        assert "not wrapped" in screen_lines(app)[0]
        await pilot.press(*"l" * 20)
        assert shown(app)[0].endswith("word word")
        assert shown(app)[1].startswith(" ‹")
        assert "›" not in screen_text(app)
        await pilot.press(*"h" * 20)
        assert shown(app)[0].startswith("   next")
        await pilot.press("w")
        assert shown(app) == rows


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("text", [*HOSTILE, "汉字" * 200, "x汉" * 100, "e\u0301" * 200])
async def test_hostile_text_is_shown_and_every_row_is_as_wide_as_the_screen(text: str, wrap: bool) -> None:
    app = TextApp([[text], [f"  {text} ", (text, "critical")], [Link(text, "", Subject("node", text))]])
    async with app.run_test(size=(41, 30), notifications=True) as pilot:
        app.view.show(app.view.state.lines, title=[(text, "bright")])
        if not wrap:
            await pilot.press("w", "l")
        await pilot.press("tab", "slash", *"x", "enter", "y")
        app.view.set_filter(text)
        await pilot.pause()
        assert not CONTROL & set(screen_text(app))
        assert {app.view.render_line(y).cell_length for y in range(app.view.size.height)} == {41}
        copied = next(event for event in app.messages if isinstance(event, CopyText)).text
        assert not CONTROL & set(copied)


async def test_another_width_keeps_the_place() -> None:
    app = TextApp([[" ".join(f"w{line}.{word}" for word in range(40))] for line in range(40)])
    async with app.run_test(size=(60, 11), notifications=True) as pilot:
        await pilot.press(*["j"] * 25)
        first = shown(app)[0].split()[0]
        for width in (30, 100, 45):
            await pilot.resize_terminal(width, 11)
            await pilot.pause()
            assert first in shown(app)[0]


async def test_copying_takes_every_line_in_one_piece() -> None:
    command = "scontrol update " + "NodeName=gpu " * 20 + "state=resume"
    app = TextApp([["run:"], [f"  {command}"]])
    async with app.run_test(size=(40, 11), notifications=True) as pilot:
        await pilot.press("y")
    assert [event.text for event in app.messages if isinstance(event, CopyText)] == [f"run:\n  {command}"]


# Searching.


async def test_search_while_typing_then_next_and_round() -> None:
    app = TextApp(numbered(40))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("slash", *"line 3", "enter")
        assert '"line 3" 1/11' in screen_lines(app)[0]
        assert app.view.state.cursor == 3
        await pilot.press("n", "n")
        assert '"line 3" 3/11' in screen_lines(app)[0]
        assert " line 31" in shown(app)
        await pilot.press("N", "N", "N")
        assert '"line 3" 11/11' in screen_lines(app)[0]
        assert " line 39" in shown(app)
        await pilot.press("n")
        assert '"line 3" 1/11' in screen_lines(app)[0]
        await pilot.press("escape")
        assert '"line 3"' not in screen_lines(app)[0]
        assert app.view.state.cursor == 3


async def test_escape_while_typing_goes_back_to_where_one_was() -> None:
    app = TextApp(numbered(40))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("j", "j", "slash", *"line 39")
        await pilot.pause(0.2)
        assert " line 39" in shown(app)
        await pilot.press("escape")
        assert shown(app)[0] == " line 2"
        assert app.view.has_focus


async def test_what_is_found_stands_out_and_its_own_line_more() -> None:
    app = TextApp([["loss 1"], ["other"], ["loss 2"]])
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        before = looks(app, "loss")
        await pilot.press("slash", *"loss", "enter")
        assert "reverse" in looks(app, "loss")
        assert looks(app, "loss") != before
        assert "reverse" not in looks(app, "other")


@pytest.mark.parametrize(("needle", "hits"), [("error", 2), ("Error", 1), ("[/]", 1), ("a.b", 0), ("gone", 0)])
async def test_case_matters_with_a_capital_and_signs_stand_for_themselves(needle: str, hits: int) -> None:
    app = TextApp([["Error: x"], ["an error [/]"], ["axb"]])
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        app.view.set_filter(needle)
        await pilot.pause()
        assert (f'"{needle}" 1/{hits}' if hits else f'"{needle}" not found') in screen_lines(app)[0]


async def test_a_new_search_replaces_the_old_words() -> None:
    app = TextApp(numbered(5))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("slash", *"line", "enter", "slash", "4", "enter")
        assert app.view.filter_text == "4"


async def test_a_match_beyond_the_edge_is_brought_on_screen() -> None:
    app = TextApp([["start " + "x" * 300 + " needle"], ["y " * 500 + "needle"]])
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("w", "slash", *"needle", "enter")
        assert "needle" in shown(app)[0]
        await pilot.press("w", "n")
        assert any("needle" in row for row in shown(app))


# Long texts.


async def test_a_hundred_thousand_lines_are_only_broken_where_one_looks() -> None:
    app = TextApp(numbered(100_000))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("G")
        assert shown(app)[-1] == " line 99999"
        await pilot.press("pageup", "g", "pagedown", "j")
        assert len(app.view.state._rows) < 200
        app.view.set_filter("line 9999")
        for _ in range(100_000 // AT_ONCE + 5):
            await pilot.pause()
        assert '"line 9999" 1/11' in screen_lines(app)[0]
        await pilot.press("N")
        assert " line 99999" in shown(app)


async def test_lines_that_come_and_go_leave_the_reader_where_she_is() -> None:
    lines = numbered(100)
    app = TextApp(lines)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press(*["pagedown"] * 3)
        first = shown(app)[0]
        app.view.set_filter("line 3")
        app.view.filter_closed()
        cursor = app.view.state.cursor
        lines = [["earlier"], ["earlier line 3"], *lines, ["later line 3"]]
        app.view.show(lines, shift=2)
        await pilot.pause()
        assert first in shown(app)
        assert app.view.state.cursor == cursor + 2
        assert '"line 3" 3/13' in screen_lines(app)[0]
        app.view.show(lines[50:], shift=-50)
        await pilot.pause()
        assert shown(app)[0].strip() == lines[50][0]


async def test_following_stays_at_the_end_until_somebody_scrolls_up() -> None:
    app = TextApp(numbered(20))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        app.view.set_follow(True)
        app.view.show(numbered(30))
        await pilot.pause()
        assert shown(app)[-1] == " line 29"
        await pilot.resize_terminal(30, 8)
        await pilot.pause()
        assert shown(app)[-1] == " line 29"
        await pilot.press("k")
        assert not app.view.state.follow
        app.view.show(numbered(40))
        await pilot.pause()
        assert shown(app)[-1] == " line 28"


@pytest.mark.parametrize("theme", ["cockpit-light", "cockpit-ansi"])
async def test_other_themes_and_ascii(theme: str) -> None:
    app = TextApp([*LINKED, ["x" * 200], *numbered(20)], theme=theme, ascii_only=True)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("tab", "w", "slash", *"n1", "enter")
        assert screen_text(app).isascii()
        assert all(cell_len(line) <= 60 for line in screen_lines(app))


async def test_an_empty_text_does_nothing_and_says_why_it_is_empty() -> None:
    app = TextApp()
    app.view.empty = "nothing was written yet"
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        keys = ("j", "k", "g", "G", "ctrl+d", "ctrl+u", "space", "h", "l", "enter", "n", "N", "w", "tab", "y")
        await pilot.press(*keys, "slash", *"x", "enter", "n")
        app.view.focus()
        assert "nothing was written yet" in screen_text(app)
        assert app.is_running
