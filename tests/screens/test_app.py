"""The app over a cluster that stands still: panes, details, freshness, keys, hostile text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cockpit.app import CockpitApp
from cockpit.cluster import Cluster
from cockpit.clusters import Clusters
from cockpit.config import ClusterConfig
from cockpit.hosts.base import Completed
from cockpit.models import Fault, FaultError, FaultKind
from tests.screens.golden import assert_golden
from tests.screens.helpers import screen_lines, screen_text
from tests.still import StillClock, StillHost, still_cluster

SIZES = [(80, 24), (120, 40), (200, 60)]
HOSTILE = [
    "a|b|c",
    "two\nlines",
    "field\x1fand\x1erecord",
    "[/]",
    "[@click=app.quit]x[/]",
    "\x1b]52;c;eA==\x07\x1b[31mred",
    "汉字汉字汉字",
    "🚀🚀 launch",
    "\u202egnp.exe\u202c",
    "n" * 200,
    "caf\udce9",
]


@pytest.fixture(autouse=True)
def _one_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


class Pilot:
    """The running app with the means to move it on."""

    def __init__(self, app: CockpitApp, pilot: object, cluster: Cluster, head: StillHost, clock: StillClock) -> None:
        self.app, self.cluster, self.head, self.clock = app, cluster, head, clock
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)  # type: ignore[attr-defined]
        await self.settle()

    async def resize(self, width: int, height: int) -> None:
        await self._pilot.resize_terminal(width, height)  # type: ignore[attr-defined]
        await self.settle()
        await self.settle()

    async def settle(self) -> None:
        await self._pilot.pause()  # type: ignore[attr-defined]

    async def read(self) -> None:
        self.cluster.read_once()
        await self.settle()

    async def tick(self, seconds: float) -> None:
        self.clock.time += seconds
        self.app.cockpit.refresh_chrome()
        await self.settle()

    def text(self) -> str:
        return screen_text(self.app)

    def lines(self) -> list[str]:
        return screen_lines(self.app)


@asynccontextmanager
async def cockpit(size: tuple[int, int] = (120, 40), *, pane: str = "2", **simulation: Any) -> AsyncIterator[Pilot]:
    """The app with nothing read yet, with a pane by its key; its pollers stand still, `read` polls everything once."""
    cluster, head, clock = still_cluster(**simulation)
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    app = CockpitApp(Clusters.only(cluster))
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.press(pane)
        await pilot.pause()
        yield Pilot(app, pilot, cluster, head, clock)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(("pane", "key"), [("nodes", "2"), ("queue", "4")])
async def test_golden_of_each_pane(pane: str, key: str, size: tuple[int, int]) -> None:
    async with cockpit(size) as pilot:
        await pilot.read()
        await pilot.press(key)
        assert_golden(f"{pane}-{size[0]}x{size[1]}", pilot.text())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("node", ["2", "enter"]),
        ("job", ["4", "G", "enter"]),
        ("problem", ["1", "enter"]),
        ("explained", ["2", "e"]),
        ("help", ["?"]),
    ],
)
async def test_golden_of_details_and_help(name: str, keys: list[str], size: tuple[int, int]) -> None:
    async with cockpit(size) as pilot:
        await pilot.read()
        await pilot.press(*keys)
        await wait_for_record(pilot)
        assert_golden(f"detail-{name}-{size[0]}x{size[1]}", pilot.text())


async def wait_for_record(pilot: Pilot) -> None:
    for _ in range(100):
        if "reading …" not in pilot.text():
            return
        await pilot.settle()
    raise AssertionError("the record never came")


@pytest.mark.parametrize("staged", [True, False])
async def test_the_worst_problem_has_the_cursor_when_it_was_known_before_the_screen_was_made(staged: bool) -> None:
    cluster, _, _ = still_cluster()
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    cluster.read_once()
    app = CockpitApp(Clusters.only(cluster), staged=staged)
    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(200):
            if "problems" in screen_text(app):
                break
            await pilot.pause(0.05)
        await pilot.pause()
        await pilot.pause()
        assert app.focused is not None
        assert app.focused.id == "overview-problems"


async def test_before_the_first_answer_it_says_that_it_reads() -> None:
    async with cockpit() as pilot:
        assert "reading from local" in pilot.text()
        assert "○ nodes never" in pilot.text()
        assert "no nodes" not in pilot.text()


async def test_a_head_that_cannot_be_reached_is_told_with_the_next_step() -> None:
    async with cockpit() as pilot:
        pilot.head.fault = FaultError(
            Fault(FaultKind.UNREACHABLE, "reaching head", "connection refused", "is sshd up?")
        )
        await pilot.read()
        text = pilot.text()
        assert "connection refused" in text
        assert "is sshd up?" in text
        assert "✖" in pilot.lines()[2]


async def test_an_outage_keeps_the_last_good_rows_and_tells_their_age() -> None:
    async with cockpit() as pilot:
        await pilot.read()
        before = [line for line in pilot.lines() if "gpu-st-p5-1 " in line]
        pilot.head.fault = FaultError(Fault(FaultKind.TIMEOUT, "reading the nodes", "no answer within 12 s", "wait"))
        await pilot.read()
        await pilot.tick(34)
        assert [line for line in pilot.lines() if "gpu-st-p5-1 " in line] == before
        assert "stale 34s" in pilot.text()
        await pilot.tick(300)
        assert "lost 5m" in pilot.text()
        assert "✖ nodes, queue, slurm: no answer within 12 s" in pilot.lines()[2]
        pilot.head.fault = None
        await pilot.read()
        assert "lost" not in pilot.text()
        assert "stale" not in pilot.text()


async def test_an_empty_queue_is_not_an_outage() -> None:
    async with cockpit() as pilot:
        pilot.head.answers["squeue"] = lambda argv: Completed(0, b"", b"", 0.01)
        await pilot.read()
        await pilot.press("4")
        assert "no jobs in the queue" in pilot.text()


async def test_squeue_that_fails_without_a_word_is_not_an_empty_queue() -> None:
    async with cockpit() as pilot:
        pilot.head.answers["squeue"] = lambda argv: Completed(1, b"", b"", 0.01)
        await pilot.read()
        await pilot.press("4")
        assert "no jobs in the queue" not in pilot.text()
        assert "reading the queue" in pilot.text()


async def test_hostile_names_stay_text_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with cockpit((160, 48)) as pilot:
        jobs = list(pilot.head.sim.jobs.values())
        for job, name in zip(jobs, HOSTILE, strict=False):
            job.ask = replace(job.ask, name=name, comment=name)
        await pilot.read()
        await pilot.press("4")
        rows = pilot.cluster.view.queue
        assert rows is not None
        assert len(rows.jobs) >= len(HOSTILE)
        for _ in rows.rows:
            await pilot.press("enter", "escape", "y", "j")
        await pilot.press("x", "asterisk", "y", "slash", *"[/]", "enter")
        text = pilot.text()
        assert not [c for c in text if ord(c) < 32 and c != "\n"]
        assert "\x9b" not in text
        assert pilot.app.is_running
    exported = list((tmp_path / "cockpit" / "exports").iterdir())
    assert len(exported) == 4
    for path in exported:
        assert "\x1b" not in path.read_text()
        assert path.stat().st_mode & 0o777 == 0o600


async def test_pause_and_refresh() -> None:
    async with cockpit() as pilot:
        await pilot.read()
        await pilot.press("p")
        assert "PAUSED" in pilot.lines()[0]
        assert pilot.cluster.pace.paused
        await pilot.press("p")
        assert not pilot.cluster.pace.paused


async def test_zoom_gives_the_table_the_whole_screen_and_back() -> None:
    async with cockpit((80, 24)) as pilot:
        await pilot.read()
        await pilot.press("z")
        assert "nodes 12" in pilot.lines()[2]
        assert "● queue" not in pilot.text()
        await pilot.press("z")
        assert "● queue" in pilot.text()


async def test_copy_shows_what_was_copied() -> None:
    async with cockpit() as pilot:
        await pilot.read()
        await pilot.press("asterisk", "y")
        assert "gpu-st-p5-[1-8]" in pilot.text()
        assert "gpu-dy-p5-[1-4]" in pilot.app.clipboard


async def test_a_job_that_left_while_its_details_are_open_is_said_to_have_left() -> None:
    async with cockpit() as pilot:
        await pilot.read()
        await pilot.press("4", "enter")
        pilot.head.answers["squeue"] = lambda argv: Completed(0, b"", b"", 0.01)
        await pilot.read()
        assert "has left the queue" in pilot.text()
        await pilot.press("escape")
        assert "no jobs in the queue" in pilot.text()


async def test_q_leaves() -> None:
    async with cockpit() as pilot:
        await pilot.press("q")
        assert not pilot.app.is_running or pilot.app._exit


def without_answer() -> Callable[[Sequence[str]], Completed]:
    def answer(argv: Sequence[str]) -> Completed:
        raise FaultError(Fault(FaultKind.TIMEOUT, "running", "no answer within 12 s", ""))

    return answer


async def test_a_hung_controller_on_a_head_that_answers_is_named_as_such() -> None:
    async with cockpit() as pilot:
        await pilot.read()
        for program in ("sinfo", "squeue", "scontrol"):
            pilot.head.answers[program] = without_answer()
        pilot.head.answers["true"] = lambda argv: Completed(0, b"", b"", 0.01)
        await pilot.read()
        assert "slurmctld does not answer, not even a ping" in pilot.lines()[2]


async def test_exit_0_with_an_error_text_and_no_output_is_an_outage() -> None:
    words = b"slurm_load_node error: Unable to contact slurm controller (connect failure)"
    async with cockpit() as pilot:
        for program in ("sinfo", "squeue"):
            pilot.head.answers[program] = lambda argv: Completed(0, b"", words, 0.01)
        await pilot.read()
        assert "names no nodes" not in pilot.text()
        assert pilot.cluster.view.nodes is None
        assert pilot.cluster.view.queue is None


async def test_jobs_that_slurm_hides_are_told() -> None:
    async with cockpit() as pilot:
        pilot.head.answers["squeue"] = lambda argv: Completed(0, b"", b"", 0.01)
        await pilot.read()
        site = pilot.cluster.view.site
        assert site is not None
        hiding = replace(site, private_data=("jobs",), sees_all_jobs=False)
        pilot.cluster.view = replace(pilot.cluster.view, site=hiding)
        await pilot.press("4")
        assert "own jobs only" in pilot.lines()[0]
        assert "Slurm hides others' jobs" in pilot.text()


async def test_paused_and_read_only_are_seen_on_the_narrowest_screen() -> None:
    config = ClusterConfig("a-cluster-with-a-long-name", region="us-east-1", read_only=True)
    async with cockpit((80, 24), config=config) as pilot:
        await pilot.read()
        await pilot.press("p")
        assert "READ-ONLY" in pilot.lines()[0]
        assert "PAUSED" in pilot.lines()[0]


async def test_a_host_key_fault_can_be_read_whole_and_copied() -> None:
    step = "compare the fingerprint, then: ssh -o StrictHostKeyChecking=ask -o " + "x" * 150 + " THE-END"
    async with cockpit((80, 24)) as pilot:
        pilot.head.fault = FaultError(Fault(FaultKind.HOST_KEY, "host key of head", "not in known_hosts", step))
        await pilot.read()
        assert "THE-END" in pilot.text()
        await pilot.press("e")
        assert "THE-END" in pilot.text()
        await pilot.press("y")
        assert step in pilot.app.clipboard


async def test_a_filter_by_user_follows_the_queue() -> None:
    async with cockpit((160, 48)) as pilot:
        await pilot.read()
        pilot.app.cockpit.pane.set_filter("user:zelda")
        await pilot.settle()
        assert "hides all" in pilot.text()
        for job in list(pilot.head.sim.jobs.values()):
            job.ask = replace(job.ask, user="zelda")
        pilot.cluster._pollers[1].poll_once()
        await pilot.settle()
        assert "zelda" in next(line for line in pilot.lines() if "gpu-st-p5-2" in line)


async def test_details_tell_when_their_data_are_old() -> None:
    async with cockpit((120, 100)) as pilot:
        await pilot.read()
        await pilot.press("enter")
        await wait_for_record(pilot)
        await pilot.tick(40)
        assert "stale 40s" in pilot.text()
        assert "read 40s ago" in pilot.text()


async def test_a_failing_source_is_never_shown_as_live() -> None:
    async with cockpit() as pilot:
        await pilot.read()
        pilot.head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "reaching head", "connection refused"))
        await pilot.read()
        assert pilot.lines()[1].count("failing") == 3
        assert "●" not in pilot.lines()[1]


async def test_keys_of_a_burst_go_where_the_key_before_them_led() -> None:
    async with cockpit() as pilot:
        await pilot.read()
        await pilot.press("4", *"/maria", "enter")
        assert pilot.app.is_running
        assert pilot.app.cockpit.pane.filter_text == "maria"
        await pilot.press("escape", "2", "enter", "4")
        assert "has left the queue" not in pilot.text()
        await pilot.press("2", "x", "4")
        assert pilot.app.is_running


async def test_a_long_text_hangs_under_where_it_began() -> None:
    async with cockpit((80, 24)) as pilot:
        await pilot.read()
        await pilot.press("enter")
        lines = pilot.lines()
        began = next(i for i, line in enumerate(lines) if "Its reason was written by a program" in line)
        assert lines[began].index("Its") == len(lines[began + 1]) - len(lines[began + 1].lstrip())


async def test_in_details_the_names_and_the_nodes_behind_them_can_be_copied_too() -> None:
    async with cockpit() as pilot:
        await pilot.read()
        await pilot.press("colon", *"job 48219", "enter", "Y")
        assert "job 48219: ways to copy" in pilot.text()
        await pilot.press("f")
        assert pilot.app.clipboard == "gpu-st-p5-[2-4]"
        await pilot.press("1", "enter", "Y", "f")  # the worst problem: the node that is down
        assert pilot.app.clipboard == "gpu-st-p5-8"
        await pilot.press("question_mark", "Y")
        assert "ways to copy" not in pilot.text()
