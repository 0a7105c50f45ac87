"""A window of a few lines, as a split tmux pane is: the worst is seen, and everything comes back with the room."""

from __future__ import annotations

import pytest

from tests.screens.test_app import cockpit


@pytest.mark.parametrize("pane", ["1", "2"])
async def test_five_lines_show_the_worst_and_the_keys(pane: str) -> None:
    async with cockpit((20, 5), pane=pane) as pilot:
        await pilot.read()
        assert len(pilot.lines()) == 5
        assert any(line.startswith(" ✖ gpu-st-") for line in pilot.lines())
        assert "q quit" in pilot.lines()[-1]
        assert "nodes 0s" not in pilot.text()


async def test_what_gave_way_comes_back_with_the_room() -> None:
    async with cockpit((20, 5)) as pilot:
        await pilot.read()
        await pilot._pilot.resize_terminal(80, 24)  # type: ignore[attr-defined]
        await pilot.tick(1)
        assert "● nodes 1s" in pilot.lines()[1]
        assert pilot.lines()[2].startswith(" ✖ gpu-st-p5-8: down")
