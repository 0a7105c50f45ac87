"""Which node a shell is for, and the words where there can be none."""

from __future__ import annotations

import shutil

import pytest
from textual.app import App

from cockpit.models import Health
from screens.lines import Subject
from screens.ssh_shell import open_shell
from screens.subjects import job_behind, jobs_behind, shell_node
from tests.screens.helpers import screen_text
from tests.still import still_cluster


async def test_without_a_terminal_or_a_machine_it_says_why() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    app = App[None]()
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        for subject, words in (
            (None, "nothing under the cursor"),
            (Subject("node", "gpu-st-p5-1"), "no terminal here"),
            (Subject("node", "gpu-dy-p5-4"), "gpu-dy-p5-4 is powering down: there is no machine"),
            (Subject("node", "\x1b[2Jx"), "is not among the nodes"),
            (Subject("queue", "gpu"), "this queue has no machine"),
            (Subject("nccl", "20261130"), "this NCCL test has no machine"),
            (Subject("cost", "idle:free::"), "this line of the costs has no machine"),
        ):
            open_shell(app, cluster, subject)
            await pilot.pause()
            text = " ".join(screen_text(app).replace("▌", " ").split())
            assert words in text, text
            assert "\x1b" not in text
            app.clear_notifications()
            await pilot.pause()


async def test_without_an_ssh_program_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    app = App[None]()
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        open_shell(app, cluster, Subject("node", "gpu-st-p5-1"))
        await pilot.pause()
        assert "no `ssh` program" in screen_text(app)


def test_a_job_has_its_batch_host_and_a_gpu_its_node() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    view = cluster.view
    assert view.queue is not None
    assert view.nodes is not None
    running = next(row for row in view.queue.rows if row.lead.state == "R" and row.lead.batch_host)
    node, why = shell_node(view, Subject("job", running.key))
    assert (node.name if node else None, why) == (running.lead.batch_host, "")
    pending = next(row for row in view.queue.rows if row.lead.state == "PD")
    assert shell_node(view, Subject("job", pending.key))[1] == f"job {pending.lead.label} is on no node now"
    assert shell_node(view, Subject("job", "99999999"))[1] == "the job has left the queue"
    node, why = shell_node(view, Subject("gpu", "gpu-st-p5-1/3"))
    assert node is not None
    assert node.name == "gpu-st-p5-1"
    down = next(node for node in view.nodes if node.health is Health.CRITICAL)
    problem = next(problem for problem in view.problems if down.name in problem.subject)
    node, why = shell_node(view, Subject("problem", problem.key))
    assert (node.name if node else None, why) == (down.name, "")
    assert shell_node(view, Subject("problem", ""))[1] == "this problem is not about one node"


@pytest.mark.parametrize(
    ("kind", "noun"),
    [("gpu", "GPU"), ("nccl", "NCCL test"), ("efa", "node"), ("log", "log line"), ("storage", "mount")],
)
def test_what_has_no_job_is_called_by_its_own_word(kind: str, noun: str) -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    subject = Subject(kind, "nowhere/0")
    assert job_behind(cluster.view, subject)[1] == f"no job is behind this {noun}"
    assert jobs_behind(cluster.view, subject)[1] == f"no job is behind this {noun}"
