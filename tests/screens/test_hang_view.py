"""From the key to the verdict, and from there to what to do; a node that hangs; esc; hostile text; the screen."""

from __future__ import annotations

import asyncio
import re
import tarfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from cockpit import diagnosing
from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from cockpit.config_file import load_config
from cockpit.demo.cluster import DemoCluster
from cockpit.diagnosing import DiagnosisLook
from cockpit.diagnosis.bundle import read_bundle
from cockpit.gather import Gatherer
from screens.choice import ChoiceMenu
from screens.hang_lines import Shown, hang_lines
from screens.lines import Subject
from screens.plan_dialog import PlanDialog
from tests.screens.change_app import without_pauses
from tests.screens.golden import assert_golden
from tests.screens.hang_app import hanging, threads
from tests.screens.helpers import screen_lines, screen_text
from tests.screens.test_app import HOSTILE
from tests.screens.test_hostile_walk import BAD
from tests.screens.text_app import TextApp
from tests.unit.diagnosis_kit import R, job_text, verdict

SIZES = ((80, 24), (120, 40), (200, 60))


async def test_from_the_key_to_the_verdict_and_back(tmp_path: Path) -> None:
    async with hanging(tmp_path) as app:
        app.all_may()
        await app.press("H")
        await app.until(lambda: app.whole)
        await app.until(lambda: "looked 0s ago" in app.text())
        lines = app.lines()
        assert f"queue › job {app.job.job_id} diagnosis" in lines[3]
        assert f"HUNG, likely: rank 5 on {app.hosts[1]}" in lines[4]
        assert "What to do" in app.text()
        assert "esc back" in lines[-1]
        assert "x capture" in lines[-1]
        await app.press("escape")
        assert app.app.cockpit.pane.has_focus
        assert app.app.cockpit.pane.cursor_key == str(app.job.job_id)
        await app.until(lambda: not threads())
        assert sorted(app.let_gone) == sorted(app.hosts)


async def test_it_fills_in_and_says_how_far_it_is(tmp_path: Path) -> None:
    async with hanging(tmp_path) as app:
        await app.press("H")
        await app.until(lambda: "looking, esc stops: 0 of 4 nodes answered" in app.text())
        for name in app.hosts[:3]:
            app.may[name].set()
        await app.until(lambda: "looking, esc stops: 3 of 4 nodes answered" in app.text())
        await app.until(lambda: f"rank 5 on {app.hosts[1]}" in app.text())
        assert "more answers come: it may change" in app.text()
        app.all_may()
        await app.until(lambda: app.whole and "it may change" not in app.text())


async def test_esc_stops_what_is_under_way_and_leaves_no_thread(tmp_path: Path) -> None:
    async with hanging(tmp_path) as app:
        await app.press("H")
        await app.until(lambda: len(app.streams) == 4)
        await app.press("escape")
        assert app.app.cockpit.pane.has_focus
        await app.until(lambda: not threads())
        assert all(stream.closed.is_set() for stream in app.streams)
        assert sorted(app.let_gone) == sorted(app.hosts)


async def test_another_pane_stops_it_and_a_link_does_not(tmp_path: Path) -> None:
    async with hanging(tmp_path) as app:
        await app.press("H")
        await app.until(lambda: len(app.streams) == 4)
        await app.app.cockpit.go(Subject("node", app.hosts[0]))
        assert threads()
        assert not any(stream.closed.is_set() for stream in app.streams)
        await app.press("2")
        await app.until(lambda: not threads())


async def test_on_the_way_back_it_stands_as_it_was(tmp_path: Path) -> None:
    async with hanging(tmp_path) as app:
        app.all_may()
        await app.press("H")
        await app.until(lambda: app.whole)
        asked = len(app.streams)
        await app.app.cockpit.go(Subject("node", app.hosts[1]))
        await app.press("escape")
        assert "HUNG, likely" in app.text()
        assert len(app.streams) == asked


async def test_a_node_that_hangs_is_named_and_nothing_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosing, "Gatherer", partial(Gatherer, deadline_s=2.0))
    async with hanging(tmp_path) as app:
        silent = app.hosts[3]
        for name in app.hosts[:3]:
            app.may[name].set()
        await app.press("H")
        await app.until(lambda: app.whole)
        await app.until(lambda: "not everything was read" in app.text())
        assert f"HUNG, likely: rank 5 on {app.hosts[1]}" in app.text()
        assert "4 not read" in app.text()
        await app.press("G")
        assert f"{silent}: no answer within 2 s" in app.text()
        await app.until(lambda: not threads())


async def test_r_looks_again_and_says_what_is_different(tmp_path: Path) -> None:
    async with hanging(tmp_path) as app:
        app.all_may()
        await app.press("H")
        await app.until(lambda: app.whole)
        app.demo.clock.time += 30
        app.ranks[7] = None
        await app.press("r")
        await app.until(lambda: "Since the look before, 30s earlier" in app.text())
        assert "rank 7: missing, was waiting" in app.text()
        assert len(app.streams) == 8


async def test_a_whole_answer_stays_while_the_next_one_begins(tmp_path: Path) -> None:
    async with hanging(tmp_path) as app:
        app.all_may()
        await app.press("H")
        await app.until(lambda: app.whole)
        for event in app.may.values():
            event.clear()
        await app.press("r")
        await app.until(lambda: "looking, esc stops: 0 of 4 nodes answered" in app.text())
        assert f"HUNG, likely: rank 5 on {app.hosts[1]}" in app.text()


async def test_d_drains_the_node_that_is_named_with_the_reason_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_pauses(monkeypatch, tmp_path / "state")
    async with hanging(tmp_path) as app:
        app.all_may()
        await app.press("H")
        await app.until(lambda: app.whole)
        await app.press("D")
        await app.until(lambda: isinstance(app.app.screen, PlanDialog) and "Commands" in app.text())
        text = " ".join(app.text().split())
        assert f"drain {app.hosts[1]}" in text
        assert f"job {app.job.job_id} hung: rank 5" in text
        await app.press("escape")
        assert "HUNG, likely" in app.text()


async def test_d_on_bad_hardware_is_one_plan_and_on_a_nodes_name_a_drain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_pauses(monkeypatch, tmp_path / "state")
    async with hanging(tmp_path) as app:
        app.ranks = {5: R(state="D", channel="nvidia_dev_ioctl", stack=None)}
        app.all_may()
        await app.press("H")
        await app.until(lambda: app.whole and "and requeue" in app.text())
        bad, job = app.hosts[1], app.job.job_id
        assert f"D       drain {bad} and requeue {job}: one plan" in app.text()
        await app.press("D")
        await app.until(lambda: isinstance(app.app.screen, PlanDialog) and "requeue" in app.text())
        await app.until(lambda: "type 2, how many it changes" in " ".join(app.text().split()))
        assert f"drain {bad} and requeue {job}" in app.text()
        assert "capture first" in app.text()
        await app.press("escape")
        while app.view.subject != Subject("node", bad):
            await app.press("tab")
        await app.press("D")
        await app.until(lambda: isinstance(app.app.screen, PlanDialog) and "type 1, how many" in app.text())


@pytest.mark.parametrize(("key", "verb"), [("Q", "requeue"), ("K", "cancel")])
async def test_q_and_k_mean_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, verb: str) -> None:
    without_pauses(monkeypatch, tmp_path / "state")
    async with hanging(tmp_path) as app:
        app.all_may()
        await app.press("H")
        await app.until(lambda: app.whole)
        await app.press(key)
        await app.until(lambda: isinstance(app.app.screen, PlanDialog) and "Commands" in app.text())
        assert f"{verb} {app.job.job_id}" in app.text()


async def test_x_keeps_the_evidence_of_two_looks_in_a_private_file(tmp_path: Path) -> None:
    async with hanging(tmp_path) as app:
        app.all_may()
        await app.press("H")
        await app.until(lambda: app.whole)
        await app.press("x")
        await app.until(lambda: "evidence kept" in app.told)
        look = app.view.seen
        assert look is not None
        path = Path(look.kept)
        assert path.stat().st_mode & 0o077 == 0
        assert read_bundle(path).job == str(app.job.job_id)
        with tarfile.open(path) as tar:
            assert any(name.endswith("/earlier.json") for name in tar.getnames())
        assert "  evidence kept:" in app.text()


async def test_why_the_evidence_was_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no-folder").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "no-folder"))
    async with hanging(tmp_path) as app:
        app.all_may()
        await app.press("H")
        await app.until(lambda: app.whole)
        await app.press("x")
        await app.until(lambda: "no evidence kept: not written" in app.told)


async def test_where_several_jobs_are_it_asks_which(tmp_path: Path) -> None:
    async with hanging(tmp_path, pane="2") as app:
        app.all_may()
        shared = next(name for name, jobs in app.demo.cluster.view.jobs_of_node.items() if len(jobs) > 1)
        app.cursor_to(shared)
        await app.press("H")
        assert isinstance(app.app.screen, ChoiceMenu)
        await app.press("escape")
        app.cursor_to(app.hosts[0])
        await app.press("H")
        await app.until(lambda: app.app.cockpit.trail.here.view == "diagnosis")
        assert app.app.cockpit.trail.here.subject == Subject("job", str(app.job.job_id))
        await app.until(lambda: app.whole)


async def test_without_a_job_it_says_why(tmp_path: Path) -> None:
    async with hanging(tmp_path, pane="2") as app:
        free = next(node.name for node in app.demo.head.sim.nodes.values() if not node.shares)
        app.cursor_to(free)
        await app.press("H")
        assert "no job is behind this node" in app.told
        assert app.app.cockpit.trail.here.view == "pane-nodes"


async def test_a_job_that_slurm_does_not_know_any_more(tmp_path: Path) -> None:
    async with hanging(tmp_path) as app:
        app.all_may()
        app.demo.head.sim.jobs.pop(app.job.job_id)
        await app.press("H")
        await app.until(lambda: "it could not be looked at" in app.text())
        assert "r tries again" in app.text()


async def test_the_palette_goes_there(tmp_path: Path) -> None:
    async with hanging(tmp_path, pane="2") as app:
        app.all_may()
        await app.press("colon", *f"diagnose {app.job.job_id}", "enter")
        await app.until(lambda: app.app.cockpit.trail.here.view == "diagnosis" and app.whole)
        await app.press("a")
        assert "why it hangs" in app.text()


async def test_the_problem_of_a_hung_job_and_its_details_lead_there(tmp_path: Path) -> None:
    async with hanging(tmp_path) as app:
        app.all_may()
        await app.press("enter", "H")
        await app.until(lambda: app.app.cockpit.trail.here.view == "diagnosis" and app.whole)
        assert "job" in app.lines()[3]
        await app.press("escape")
        assert app.app.cockpit.in_detail


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_stays_text(text: str) -> None:
    frames = [[text, f"/x/{text}.py", 1], ["main", text, 2]]
    found = verdict(
        ranks={5: R(stack=frames, file=f"/fsx/{text}"), 6: R(state="D", channel=text, stack=None)},
        log=f"{text}\nOSError: [Errno 116] Stale file handle: '{text}'\n".encode(errors="replace").decode(),
        age_s=900.0,
        job=job_text(JobName=text.encode(errors="replace").decode(), Comment=text.encode(errors="replace").decode()),
        faults={"p5-1": text},
    )
    look = DiagnosisLook(text, found, fault=text, changes=(text,), before_s=3.0, kept=text, kept_well=False)
    app = TextApp(hang_lines(look, Shown()))
    async with app.run_test(size=(100, 60)) as pilot:
        await pilot.pause()
        shown = screen_text(app)
        assert not BAD & set(shown)
        assert "What to do" in shown


def plain(lines: list[str]) -> str:
    """The screen without what differs from run to run: times, ids, readings."""
    text = "\n".join(lines)
    text = re.sub(r"\b\d\d:\d\d:\d\d\b", "HH:MM:SS", text)
    text = re.sub(r"looked \d+s ago", "looked Ns ago", text)
    text = re.sub(r"\d{4,}", lambda found: "N" * len(found[0]), text)
    text = re.sub(r"\b\d+W\b", lambda found: "N" * (len(found[0]) - 1) + "W", text)
    return re.sub(r"NN-NN|-\d\d-\d\d\b", "-NN-NN", text)


async def test_the_screen_of_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real SSH, real looks at the processes of simulated nodes; the sizes one after another."""
    with DemoCluster(scenario="hang") as path:
        config = load_config(path)
        clusters = Clusters.of_config(replace(config), "demo", read_only=False)
        app = CockpitApp(clusters)
        try:
            async with app.run_test(size=SIZES[0], notifications=True) as pilot:
                await settled(pilot, lambda: len(app.cockpit.pane.visible_rows) > 0, "4")
                job = next(row.key for row in app.cockpit.pane.visible_rows if "405b-pretrain" in row.lead.name)
                await app.cockpit.diagnose(Subject("job", job))
                view = app.cockpit.hang_view()
                assert view is not None
                await settled(pilot, lambda: (look := view.seen) is not None and look.seen_at is not None)
                for width, height in SIZES:
                    await pilot.resize_terminal(width, height)
                    await pilot.pause(0.2)
                    assert_golden(f"diagnosis-{width}x{height}", plain(screen_lines(app)[3:-1]))
        finally:
            clusters.stop()


async def settled(pilot: object, true: object, *keys: str) -> None:
    until = time.monotonic() + 40
    if keys:
        await pilot.press(*keys)  # type: ignore[attr-defined]
    while not true():  # type: ignore[operator]
        assert time.monotonic() < until
        await asyncio.sleep(0.1)
