"""`e` says something on every pane and every row, in plain words with a next step; also where there is no row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.hosts.base import Completed
from cockpit.models import Fault, FaultError, FaultKind
from screens.explain_pane import explain_pane
from screens.lines import Subject
from screens.pane import TablePane
from screens.subjects import title
from tests.screens.test_app import HOSTILE, Pilot, cockpit
from tests.screens.test_hostile_walk import BAD, poison
from tests.still_gpus import busy_fleet, tell

PANES = "123456789"
EMPTY = {"5": "nccl", "6": "checks-efa", "9": "log"}


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


async def until_read(pilot: Pilot, table: TablePane) -> None:
    """Records and histories are read on threads of their own."""
    for _ in range(300):
        pilot.app.cockpit.on_changed()
        if "reading the" not in table.empty:
            return
        await pilot._pilot.pause(0.01)  # type: ignore[attr-defined]
    raise AssertionError(table.empty)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_before_anything_is_read_e_says_what_the_pane_is_and_why_it_is_empty(size: tuple[int, int]) -> None:
    async with cockpit(size) as pilot:
        for pane in PANES:
            await pilot.press(pane, "e")
            text = pilot.text()
            assert "explained" in text, pane
            assert "why nothing is under the cursor" in text, pane
            assert "Traceback" not in text
            await pilot.press("escape")


@pytest.mark.parametrize(("pane", "name"), EMPTY.items())
async def test_an_empty_pane_is_explained_with_what_fills_it(pane: str, name: str) -> None:
    async with cockpit((120, 40)) as pilot:
        await pilot.read()
        await pilot.press(pane)
        table = pilot.app.cockpit.pane
        assert table.spec.id == name
        await until_read(pilot, table)
        await pilot.press("e")
        text = pilot.text()
        for line in table.empty.split("\n"):
            assert " ".join(line.split())[:40] in text
        assert f"{len(pilot.cluster.problems())} problems known on this cluster" in text
        assert title(Subject("pane", name)) in text
        await pilot.press("tab", "enter")
        assert "problems" in pilot.lines()[3]


async def test_a_filter_that_hides_all_is_told_by_the_table_and_by_e() -> None:
    async with cockpit((120, 40)) as pilot:
        await pilot.read()
        await pilot.press("slash", *"nosuchnode", "enter")
        assert 'the filter "nosuchnode" hides all 12: esc clears the filter' in pilot.text()
        await pilot.press("e")
        assert "12 lines, all hidden by a filter or by `!` (problems only): esc shows them again" in pilot.text()


async def test_a_source_that_failed_is_told_with_cause_next_step_what_still_works_and_the_next_try() -> None:
    async with cockpit((120, 40)) as pilot:
        await pilot.read()
        pilot.cluster.view = replace(pilot.cluster.view, queue=None)
        await pilot.press("4")
        lines = "\n".join(line.strip() for line in pilot.lines())
        assert "reading from local" in lines
    async with cockpit((120, 40)) as pilot:

        def refused(argv: object, **options: object) -> Completed:
            raise FaultError(Fault(FaultKind.UNREACHABLE, "reaching local", "connection refused", "is sshd up?"))

        pilot.head.run = refused  # type: ignore[method-assign]
        pilot.cluster.read_once()
        await pilot.press("4")
        text = pilot.text()
        assert "reaching local: connection refused" in text
        assert "is sshd up?" in text
        await pilot.press("e")
        assert "connection refused" in pilot.text()


async def test_every_row_of_every_pane_is_explained_without_a_raw_key() -> None:
    """Each line's own explanation: what it means, never a key of ours, and no problem of another thing."""
    async with cockpit((160, 48)) as pilot:
        await pilot.read()
        tell(pilot.cluster, busy_fleet(pilot.cluster))
        await pilot.settle()
        for pane in PANES:
            await pilot.press(pane)
            await until_read(pilot, pilot.app.cockpit.pane)
            for _ in range(min(len(pilot.app.cockpit.pane.visible_rows), 14)):
                subject = pilot.app.cockpit.subject()
                assert subject is not None
                await pilot.press("e")
                lines = pilot.lines()
                shown = "\n".join(lines)
                assert "explained" in shown, (pane, subject)
                assert sum(bool(line.strip()) for line in lines[4:-1]) >= 2, (pane, subject, shown)
                if subject.kind in ("cost", "storage", "log", "nccl"):
                    assert f"{subject.key} explained" not in shown
                await pilot.press("escape", "j")


async def test_a_gpu_that_was_not_read_is_explained_by_why_not_and_what_to_do() -> None:
    async with cockpit((120, 40), pane="3") as pilot:
        await pilot.read()
        tell(pilot.cluster, busy_fleet(pilot.cluster))
        await pilot.settle()
        unread = next(row for row in pilot.cluster.view.gpu_rows if row.watch and row.watch.seen_at is None)
        await pilot.app.cockpit.go(Subject("gpu", unread.key), "explained")
        await pilot.settle()
        text = pilot.text()
        assert "it was not read, so nothing is known of it" in text
        assert unread.watch is not None
        assert unread.watch.fault is not None
        assert unread.watch.fault.why in text
        assert unread.watch.fault.next_step in text
        assert "is down" in text  # its node, which is why


@pytest.mark.parametrize("pane", PANES)
async def test_hostile_rows_are_explained_as_text(pane: str) -> None:
    async with cockpit((80, 24), pane=pane) as pilot:
        poison(pilot)
        await pilot.read()
        tell(pilot.cluster, busy_fleet(pilot.cluster))
        await pilot.settle()
        for _ in range(len(HOSTILE) // 2):
            await pilot.press("e")
            assert not BAD & set(pilot.text())
            await pilot.press("escape", "j")


def test_every_table_has_a_purpose_and_an_unknown_one_is_no_crash() -> None:
    from screens.column_names import COLUMNS
    from tests.still import still_cluster

    cluster, _, _ = still_cluster()
    for name in COLUMNS:
        lines = explain_pane(cluster, name)
        assert lines[0][0] != (name, "bright"), name
    assert explain_pane(cluster, "moon") == [["there is no such table"]]


async def test_help_says_of_reading_keys_too_why_they_do_nothing_here() -> None:
    async with cockpit((120, 60)) as pilot:
        await pilot.read()
        await pilot.press("slash", *"gpu-dy-p5-4", "enter", "question_mark")
        text = " ".join(pilot.text().split())
        assert "Not now: no job is behind this node" in text  # o: output
        assert "gpu-dy-p5-4 is powering down" in text  # s: ssh
