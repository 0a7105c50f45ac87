"""A small app around one OutputView, on a cluster whose head is this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.pilot import Pilot

import themes
from cockpit.cluster import Cluster
from cockpit.config import ClusterConfig
from cockpit.formats.scontrol_show import JobDetail
from cockpit.hosts.local import LocalHost
from cockpit.models import Job
from screens.filter_bar import FilterBar
from screens.keys import bindings
from screens.output_view import OutputView
from tests.screens.helpers import screen_lines


def detail_of(out: Path, err: Path | None = None) -> JobDetail:
    """What Slurm would tell of a running job that writes there."""
    pairs = (("JobId", "42"), ("JobState", "RUNNING"), ("BatchFlag", "1"))
    return JobDetail(42, pairs, std_out=str(out), std_err=str(err or out), work_dir=str(out.parent))


class OutputApp(App[None]):
    """One output and the search line, in the cockpit's own look."""

    CSS_PATH = themes.STYLESHEET
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("subject")]

    def __init__(self, out: Path, err: Path | None = None, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.register_theme(themes.theme())
        self.theme = themes.DEFAULT
        self.ascii_only = ascii_only
        self.cluster = Cluster(ClusterConfig("here"), head=LocalHost(), watch_gpus=False)
        self.view = OutputView()
        self.heard: list[Message] = []
        self._detail = detail_of(out, err)

    def compose(self) -> ComposeResult:
        """The output over the search line."""
        yield self.view
        yield FilterBar()

    def on_mount(self) -> None:
        """Open it."""
        self.view.open(self.cluster, Job(42, "R"), self._detail)
        self.view.focus()

    def on_unmount(self) -> None:
        """End every call."""
        self.cluster.stop()

    def action_output(self) -> None:
        """What the key for a job's output does where that is in front."""
        self.view.action_other_stream()

    def on_copy_text(self, event: Message) -> None:
        """Note it."""
        self.heard.append(event)

    def on_pager_wanted(self, event: Message) -> None:
        """Note it."""
        self.heard.append(event)


async def until(pilot: Pilot[Any], true: Callable[[], object], within_s: float = 20.0) -> None:
    """Let the app go on until something is true."""
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, "\n".join(screen_lines(pilot.app))
        await pilot.pause(0.02)
