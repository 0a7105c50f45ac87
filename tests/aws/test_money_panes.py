"""The cost pane and the storage pane: what they say, at three sizes, without AWS, and with hostile words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cockpit.app import CockpitApp
from cockpit.aws_models import Part
from cockpit.clusters import Clusters
from cockpit.cost import CostLine, CostReport, IdleLine
from cockpit.gpu_models import MountReading
from cockpit.models import Fault, FaultKind, Health
from cockpit.storage_models import FileSystem, FileSystemUse, StorageReading
from cockpit.view import View
from screens.chrome import ClockLine
from screens.cost_table import cost_rows, cost_spec, find_row, headline
from screens.storage_table import storage_rows
from tests.aws.moto_cluster import MotoCluster
from tests.screens.golden import assert_golden
from tests.screens.helpers import screen_text
from tests.screens.test_app import HOSTILE, SIZES
from tests.still import NOON, still_cluster
from tests.unit.details_cluster import watched, with_reading


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(ClockLine, "tick", lambda self: None)


async def shown(cluster: Any, key: str, size: tuple[int, int], *more: str) -> str:
    """The pane of that key over a cluster that was read once."""
    cluster.start = lambda *, gpus=True: None
    app = CockpitApp(Clusters.only(cluster))
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.press(key, *more)
        await pilot.pause()
        return screen_text(app)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_golden_of_the_cost_pane_without_aws(size: tuple[int, int]) -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    text = await shown(cluster, "8", size)
    assert_golden(f"cost-{size[0]}x{size[1]}", text)
    assert "until Mon 09:00 (22h06m)" in text  # whole, also in 80 columns
    assert "list price of 2026-09-24" in text
    assert "AWS is not asked" in text


async def test_free_gpus_of_nodes_that_jobs_are_on_are_not_called_nodes_without_a_job() -> None:
    cluster, _, _ = still_cluster(scenario="idle")
    cluster.read_once()
    row = find_row(cluster, "idle:free::")
    assert row is not None
    states = {node.name: node for node in cluster.view.nodes or ()}
    assert any(states[name].gpus_used for name in row.nodes), "one of them has a job"
    text = " ".join((await shown(cluster, "8", (80, 24), "g", "e")).split())
    assert "no job is on them" not in text
    assert "No job has these GPUs" in text


async def test_cost_is_by_queue_and_type_and_names_what_is_not_counted(moto: MotoCluster) -> None:
    cluster, _, _ = still_cluster(moto.config)
    cluster.read_once()
    text = await shown(cluster, "8", (160, 40))
    assert "cost $220.16/h" in text
    assert "p5.48xlarge" in text
    assert "no price is known: not counted" in text  # the head's m5.xlarge
    assert "bundled list price of 2026-09-24, us-east-1" in text


async def test_details_of_a_line_name_every_node() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    text = await shown(cluster, "8", (120, 40), "enter")
    assert "cost ›" in text
    assert "nodes" in text


async def test_e_on_a_line_says_something() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    assert "cost ›" in await shown(cluster, "8", (120, 40), "e")


def test_a_missing_right_is_named_with_what_to_do() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    fault = Fault(FaultKind.DENIED, "reading instances", "ec2:DescribeInstances is not allowed", "docs/AWS.md has it")
    from cockpit.aws_models import AwsReading, AwsScope

    cluster.view = replace(cluster.view, aws=AwsReading(AwsScope(), instances=Part(None, None, fault)))
    cluster.aws._config = replace(cluster.config, region="us-east-1")
    from cockpit.cost_report import cost_of

    report = cost_of(cluster)
    assert report is not None
    words = [row.about for row in cost_rows(cluster, report) if row.group == "note"]
    assert any("ec2:DescribeInstances is not allowed" in word and "docs/AWS.md" in word for word in words)


def test_what_was_idle_adds_up_while_the_pane_is_looked_at() -> None:
    cluster, _, clock = still_cluster()
    cluster.read_once()
    spec = cost_spec(cluster)
    assert not [row for row in spec.rows(cluster.view) or () if row.what == "idle so far"]
    idle = [row for row in spec.rows(cluster.view) or () if row.group == "idle" and row.gpus]
    for _ in range(30):
        clock.time += 60
        rows = spec.rows(cluster.view) or ()
    hours = [row for row in rows if row.what == "idle so far"]
    assert len(hours) == len({(row.what, row.who) for row in idle}) > 0
    told = sum(float(row.about.split()[0]) for row in hours)
    assert told == pytest.approx(sum(row.gpus or 0 for row in idle) / 2, abs=0.1 * len(hours))
    assert "in 30m with this pane open" in hours[0].about
    assert find_row(cluster, hours[0].key) == hours[0]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_words_do_no_harm(text: str) -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    report = CostReport(
        "ec2", (CostLine(text, text, None, 1, 0, None, None, None),),
        (IdleLine("drained", text, text, (text,), 8, 55.0),), None, None, 3600.0, None, 55.0, 8, {text: 1}, 0, (), True,
    )  # fmt: skip
    rows = list(cost_rows(cluster, report))
    assert headline(report) == "compute –/h · idle $55.00/h, 8 GPUs"
    assert all("\x1b" not in f"{row.what}{row.type}{row.who}{row.about}" for row in rows)
    mount = MountReading(text, "lustre", text, 100.0, 99.0, 1.0, error=text)
    watched_cluster, _, _ = watched({"gpu-st-p5-1": with_reading(mounts=(mount,))})
    shown_text = await shown(watched_cluster, "7", (80, 24))
    assert "\x1b" not in shown_text
    assert "storage" in shown_text


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_golden_of_the_storage_pane(size: tuple[int, int]) -> None:
    cluster, _, _ = watched(
        {
            "gpu-st-p5-1": with_reading(mounts=mounts(41_000.0)),
            "gpu-st-p5-2": with_reading(mounts=mounts(96_000.0)),
            "gpu-st-p5-3": with_reading(mounts=mounts(30_000.0, hung=True)),
        }
    )
    text = await shown(cluster, "7", size)
    assert_golden(f"storage-{size[0]}x{size[1]}", text)
    assert "does not answer" in text


def mounts(local_mib: float, *, hung: bool = False) -> tuple[MountReading, ...]:
    fsx = MountReading("/fsx", "lustre", "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com@tcp:/abcd", 1.2e6, 9e5, 3e5)
    return (
        MountReading("/", "ext4", "/dev/nvme0n1p1", 1e5, local_mib, 1e5 - local_mib, 1e6, 2e5),
        replace(fsx, hung_since=NOON - 300.0, used_mib=None, available_mib=None) if hung else fsx,
    )


def test_fsx_tells_room_and_throughput_and_what_is_wrong() -> None:
    system = FileSystem("fs-0123456789abcdef0", "LUSTRE", "AVAILABLE", capacity_gib=1200, deployment="PERSISTENT_2")
    use = FileSystemUse(at=NOON, free_bytes=24 * 2.0**30, read_bytes_s=3e9, write_bytes_s=1e6, offered=("x",))
    reading = StorageReading(Part((system,), NOON), {system.id: Part(use, NOON)})
    rows = storage_rows(View(storage=reading))
    assert rows is not None
    (row,) = rows
    assert (row.health, round(row.used_pct or 0)) == (Health.CRITICAL, 98)
    assert "reads 2.8G/s" in row.about
    denied = Fault(FaultKind.DENIED, "reading metrics", "cloudwatch:GetMetricData is not allowed", "docs/AWS.md")
    blind = replace(reading, use={system.id: Part(None, None, denied)})
    (row,) = storage_rows(View(storage=blind)) or ()
    assert row.used_pct is None
    assert "cloudwatch:GetMetricData" in row.about


async def test_storage_before_any_probe_says_what_it_waits_for() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    assert "reading from" in await shown(cluster, "7", (80, 24))
