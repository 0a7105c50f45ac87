"""The overview in a small app: what is seen first, who has the focus, what hidden panels do, hostile text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual import events
from textual.geometry import Region

import themes
from cockpit.cluster import Cluster
from cockpit.hosts.base import Completed
from cockpit.models import Acknowledgement, Fault, FaultError, FaultKind
from screens.overview_panels import columns_for, compact, problem_lines
from screens.pane import TablePane
from screens.pane_spec import PaneSpec
from screens.panes import pane_specs
from screens.problem_table import problem_spec
from tests.screens.golden import assert_golden
from tests.screens.helpers import screen_lines, screen_text
from tests.screens.overview_app import OverviewApp
from tests.screens.test_app import HOSTILE
from tests.still import StillClock, StillHost, still_cluster
from tests.still_gpus import busy_fleet, tell

SIZES = [(80, 24), (120, 40), (200, 60)]


class Pilot:
    """The running overview with the means to move it on."""

    def __init__(self, app: OverviewApp, pilot: Any, head: StillHost, clock: StillClock) -> None:
        self.app, self.cluster, self.head, self.clock, self._pilot = app, app.cluster, head, clock, pilot

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        await self._pilot.pause()
        await self._pilot.pause()

    async def read(self) -> None:
        self.cluster.read_once()
        await self.show()

    async def show(self) -> None:
        self.app.overview.show_view(self.cluster)
        await self.settle()

    async def tick(self, seconds: float) -> None:
        self.clock.time += seconds
        self.app.overview.show_age(self.cluster)
        await self.settle()

    @property
    def focused(self) -> str:
        return str(self.app.focused and self.app.focused.id)

    def table(self, name: str) -> TablePane:
        return self.app.query_one(f"#overview-{name}", TablePane)

    def text(self) -> str:
        return screen_text(self.app)

    def lines(self) -> list[str]:
        return screen_lines(self.app)


@asynccontextmanager
async def overview(
    size: tuple[int, int] = (120, 40), *, read: bool = True, gpus: bool = True, **simulation: Any
) -> AsyncIterator[Pilot]:
    """The overview over a cluster that was read before it is shown."""
    cluster, head, clock = still_cluster(**simulation)
    if read:
        cluster.read_once()
        if gpus:
            tell(cluster, busy_fleet(cluster))
    app = OverviewApp(cluster)
    async with app.run_test(size=size, notifications=True) as pilot:
        running = Pilot(app, pilot, head, clock)
        await running.settle()
        yield running


@pytest.fixture(autouse=True)
def _one_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_golden(size: tuple[int, int]) -> None:
    async with overview(size) as pilot:
        assert_golden(f"overview-{size[0]}x{size[1]}", pilot.text())


async def test_the_worst_problem_is_seen_first_and_enter_opens_it() -> None:
    async with overview((80, 24)) as pilot:
        assert "✖ gpu-st-p5-8" in pilot.lines()[2]
        assert pilot.focused == "overview-problems"
        await pilot.press("enter")
        opened = pilot.app.heard[-1]
        assert opened.grid.spec.id == "problems"
        assert opened.key == pilot.cluster.problems()[0].key


async def test_the_focus_goes_to_problems_that_come_unless_somebody_looks_at_something() -> None:
    async with overview(read=False) as pilot:
        assert pilot.focused == "overview-nodes"
        await pilot.read()
        assert pilot.focused == "overview-problems"
    async with overview(read=False) as pilot:
        await pilot.press("tab", "tab")
        assert pilot.focused == "overview-nccl"
        await pilot.read()
        assert pilot.focused == "overview-nccl"


async def test_a_panel_that_tells_late_that_it_had_the_focus_does_not_take_the_keys_from_the_one_that_has_it() -> None:
    async with overview((80, 24)) as pilot:
        assert pilot.focused == "overview-problems"
        pilot.app.overview.post_message(events.DescendantFocus(pilot.table("nodes")))  # it was busy, and is heard now
        await pilot.settle()
        assert pilot.app.overview.table.id == pilot.focused
        await pilot.press("tab")
        assert pilot.focused == "overview-nodes"  # from the problems, not from the nodes


async def test_tab_goes_round_and_a_narrow_screen_shows_the_panel_with_the_focus() -> None:
    names = ["nodes", "gpus", "nccl", "queue"]
    async with overview((80, 24)) as pilot:
        for name in [*names, "problems", "nodes"]:
            await pilot.press("tab")
            assert pilot.focused == f"overview-{name}"
            shown = [panel for panel in names if pilot.app.query_one(f"#overview-{panel}").display]
            assert shown == [name if name in names else "queue"]
            assert pilot.app.query_one("#overview-problems").display
        await pilot.press("shift+tab", "shift+tab")
        assert pilot.focused == "overview-queue"
        assert "48219" in pilot.text()


async def test_keys_of_a_burst_go_where_tab_led() -> None:
    async with overview() as pilot:
        await pilot.press("tab", "j", "j", "enter")
        assert pilot.app.heard[-1].grid.spec.id == "nodes"
        assert pilot.app.heard[-1].key == pilot.table("nodes").visible_rows[2].name
        await pilot.press("tab", "tab", "tab", "/", *"maria", "enter")
        assert pilot.table("queue").filter_text == "maria"
        assert {row.lead.user for row in pilot.table("queue").visible_rows} == {"maria"}


async def test_what_to_do_about_the_problem_under_the_cursor_stands_below_them_whole() -> None:
    async with overview((80, 24)) as pilot:
        await pilot.read()
        problems = pilot.cluster.problems()
        for key, problem in (("g", problems[0]), ("j", problems[1]), ("G", problems[-1])):
            await pilot.press(key)
            line = next(line for line in pilot.lines() if line.startswith(" →"))
            assert line.strip(" →…") in problem.next_step


async def test_zoom_gives_a_panel_the_whole_pane_and_back() -> None:
    async with overview() as pilot:
        for key, name in (("tab", "nodes"), ("tab", "gpus")):
            await pilot.press(key, "z")
            assert pilot.app.query_one(f"#overview-{name}").size.height == 40
            assert not pilot.app.query_one("#overview-problems").display
            await pilot.press("escape" if name == "gpus" else "z")
            assert pilot.app.query_one("#overview-problems").display
            assert pilot.app.query_one("#overview-queue").display
        await pilot.press("shift+tab", "shift+tab", "z")
        assert pilot.table("problems").size.height == 39  # and the line of what to do
        await pilot.press("tab")
        assert pilot.table("nodes").size.height == 40
        await pilot.press("slash", *"p5-1", "enter", "escape")
        assert pilot.table("nodes").filter_text == ""
        assert pilot.table("nodes").size.height == 40  # the first esc clears the filter, the next leaves the zoom
        await pilot.press("escape")
        assert pilot.app.query_one("#overview-problems").display


async def test_where_nothing_is_wrong_one_calm_line_says_what_that_rests_on() -> None:
    async with overview(gpus=False, scenario="calm") as pilot:
        assert pilot.cluster.problems() == ()
        assert "nothing is wrong that the cockpit can see · checked: 12 nodes, " in pilot.lines()[0]
        assert not pilot.app.query_one("#overview-problems").display
        assert pilot.focused == "overview-nodes"
        await pilot.press("shift+tab")
        assert pilot.focused == "overview-queue"


@pytest.mark.parametrize(("width", "last"), [(66, "12 nodes"), (80, " jobs"), (50, "can see"), (24, "…")])
async def test_where_the_calm_line_has_no_room_no_number_is_cut(width: int, last: str) -> None:
    async with overview((width, 24), gpus=False, scenario="calm") as pilot:
        assert pilot.lines()[0].rstrip().endswith(last)


async def test_what_to_do_shows_that_it_goes_on_where_it_has_no_room() -> None:
    async with overview((40, 24)) as pilot:
        line = next(line for line in pilot.lines() if line.startswith(" → "))
        assert line.rstrip().endswith("…")


async def test_where_nothing_is_wrong_nothing_has_a_colour() -> None:
    async with overview(gpus=False, scenario="calm") as pilot:
        styles = themes.token_styles(pilot.app)
        alarming = {styles[token].color for token in themes.STATE_TOKENS.values()} - {styles["unknown"].color}
        strips = pilot.app.screen._compositor.render_strips()
        seen = {segment.style.color for strip in strips for segment in strip if segment.style}
        assert not alarming & seen
        assert {segment.style.bgcolor for strip in strips for segment in strip if segment.style} <= {
            styles["cursor"].bgcolor, styles["cursor-blurred"].bgcolor, pilot.app.screen.styles.background.rich_color,
        }  # fmt: skip


async def test_it_is_not_called_well_while_sources_are_unread_old_or_failing() -> None:
    async with overview(read=False, scenario="calm") as pilot:
        assert "nothing is known yet: reading from local" in pilot.lines()[0]
        await pilot.read()
        assert "nothing is wrong" in pilot.lines()[0]
        await pilot.tick(34)
        assert "no problem is known, but not everything is · nodes, queue not read for a while" in pilot.lines()[0]
        assert "nothing is wrong" not in pilot.text()
        await pilot.tick(400)
        assert "nodes, queue lost" in pilot.lines()[0]
        pilot.head.fault = FaultError(
            Fault(FaultKind.UNREACHABLE, "reaching head", "connection refused", "is sshd up?")
        )
        await pilot.read()
        assert "✖ nodes, queue, slurm" in pilot.lines()[2]
        assert "nothing is wrong" not in pilot.text()
        pilot.head.fault = None
        await pilot.read()
        assert "nothing is wrong" in pilot.lines()[0]
        assert pilot.focused == "overview-nodes"  # it was on the problem, which is gone


async def test_a_source_that_was_never_read_keeps_it_from_being_called_well() -> None:
    async with overview(read=False, scenario="calm") as pilot:
        pilot.head.answers["squeue"] = lambda argv: Completed(1, b"", b"", 0.01)
        await pilot.read()
        assert "nothing is wrong" not in pilot.text()
        assert "queue" in pilot.lines()[2]


async def test_failing_sources_keep_the_problems_in_their_colours() -> None:
    async with overview() as pilot:
        pilot.head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "reaching head", "connection refused"))
        await pilot.read()
        await pilot.tick(300)
        assert "stale" not in pilot.lines()[0]
        assert "lost 5m" in pilot.text()  # the nodes below
        critical = themes.token_styles(pilot.app)["critical"].color
        line = pilot.table("problems").render_line(2)
        assert any(segment.style and segment.style.color == critical for segment in line)


async def test_hidden_panels_do_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    plain = TablePane.show_view

    def noted(pane: TablePane, cluster: Cluster) -> None:
        drawn.append(str(pane.id))
        plain(pane, cluster)

    monkeypatch.setattr(TablePane, "show_view", noted)
    async with overview((80, 24)) as pilot:
        drawn.clear()
        await pilot.show()
        assert set(drawn) == {"overview-problems", "overview-nodes"}
        await pilot.press("tab", "tab", "z")
        drawn.clear()
        await pilot.show()
        assert set(drawn) == {"overview-problems"}  # they are counted; the heatmap fills the pane


async def test_what_was_hidden_is_up_to_date_when_it_is_shown() -> None:
    async with overview((80, 24)) as pilot:
        await pilot.press("tab", "tab", "tab", "tab")
        assert pilot.table("queue").rows_total
        await pilot.press("tab", "tab")
        pilot.head.answers["squeue"] = lambda argv: Completed(0, b"", b"", 0.01)
        await pilot.read()
        assert pilot.table("queue").rows_total
        await pilot.press("shift+tab", "shift+tab")
        assert pilot.focused == "overview-queue"
        assert "no jobs in the queue" in pilot.text()


async def test_a_refresh_repaints_only_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    repainted: list[tuple[str | None, tuple[Region, ...]]] = []
    plain = TablePane.refresh

    def noted(pane: TablePane, *regions: Region, **options: Any) -> Any:
        repainted.append((pane.id, regions))
        return plain(pane, *regions, **options)

    async with overview() as pilot:
        monkeypatch.setattr(TablePane, "refresh", noted)
        await pilot.read()
        assert repainted == []
        nodes = pilot.cluster.view.nodes
        assert nodes
        changed = tuple(replace(n, gpus_used=1) if n.name == "gpu-st-p5-3" else n for n in nodes)
        pilot.cluster.view = replace(pilot.cluster.view, nodes=changed)
        await pilot.show()
        assert [(name, [region.height for region in regions]) for name, regions in repainted] == [
            ("overview-nodes", [1])
        ]


async def test_problems_take_two_fifths_at_most_and_scroll() -> None:
    async with overview((120, 30), gpus=False) as pilot:
        one = pilot.cluster.problems()[0]
        many = tuple(replace(one, key=f"p{i}", subject=f"node-{i}") for i in range(40))
        pilot.cluster.view = replace(pilot.cluster.view, problems=many)
        await pilot.show()
        assert pilot.table("problems").size.height == 12
        await pilot.press("G")
        assert "node-39" in pilot.text()
        await pilot.press("y")
        assert pilot.table("problems").spec.copied(["p39"]).startswith("node-39: down")


async def test_a_problem_that_somebody_knows_of_is_quiet() -> None:
    async with overview((120, 40), gpus=False) as pilot:
        known = replace(pilot.cluster.problems()[-1], acknowledged=Acknowledgement("ticket 7", "maria", 0.0))
        pilot.cluster.view = replace(pilot.cluster.view, problems=(*pilot.cluster.problems()[:-1], known))
        await pilot.show()
        line = next(line for line in pilot.lines() if "maria knows: ticket 7" in line)
        assert line.startswith("   gpu-st-p5-6")  # without a sign
        await pilot.press("exclamation_mark")
        assert "ticket 7" not in pilot.text()


async def test_hostile_text_stays_text() -> None:
    async with overview((160, 48), gpus=False) as pilot:
        for job, name in zip(list(pilot.head.sim.jobs.values()), HOSTILE, strict=False):
            job.ask = replace(job.ask, name=name, comment=name)
        await pilot.read()
        one = pilot.cluster.problems()[0]
        hostile = tuple(
            replace(one, key=f"{i}{text}", subject=text, title=text, next_step=text) for i, text in enumerate(HOSTILE)
        )
        pilot.cluster.view = replace(pilot.cluster.view, problems=hostile)
        await pilot.show()
        await pilot.press("G", "k", "enter", "y", "tab", "tab", "tab", "tab", "enter", "slash", *"[/]", "enter")
        text = pilot.text()
        assert not [c for c in text if ord(c) < 32 and c != "\n"]
        assert "\x9b" not in text
        assert "[@click=app.quit]x" in text
        assert pilot.app.is_running


async def test_a_thousand_nodes_fit() -> None:
    async with overview(nodes=1024) as pilot:
        assert "nodes 1,024" in pilot.text()
        assert "✖ 1 · ▲ 2" in pilot.text()
        await pilot.press("tab", "tab", "j", "enter", "z", "z")
        assert pilot.app.is_running


def test_the_arrangement_follows_the_room() -> None:
    assert [columns_for(80, 14), columns_for(99, 40), columns_for(100, 16), columns_for(120, 24)] == [1, 1, 2, 2]
    assert [columns_for(120, 15), columns_for(160, 15), columns_for(160, 7), columns_for(200, 50)] == [1, 4, 1, 2]
    assert [problem_lines(count, 36, 2) for count in (1, 5, 50)] == [3, 7, 14]
    assert problem_lines(50, 4, 2) == 3


def _spec(cluster: Cluster, name: str) -> PaneSpec:
    return next(spec for spec in pane_specs(cluster) if spec.id == name)


def test_compact_panes_are_the_same_pane_with_fewer_columns() -> None:
    cluster, _, _ = still_cluster()
    full = _spec(cluster, "queue")
    few = compact(full)
    assert (few.id, few.fields, few.record) == (full.id, full.fields, full.record)
    assert {column.id for column in few.columns} < {column.id for column in full.columns}
    assert all(column.cell in [other.cell for other in full.columns] for column in few.columns)


def test_problems_can_be_filtered_by_what_they_are() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    spec = problem_spec(cluster)
    worst = cluster.problems()[0]
    assert [spec.fields[name](worst) for name in ("problem", "state")] == ["gpu-st-p5-8", "crit critical"]
    assert spec.record(worst)["health"] == "critical"
    assert "nothing is known yet" in problem_spec(still_cluster()[0]).empty(cluster.view)
