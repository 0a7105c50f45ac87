"""Output of real jobs, followed over real SSH: on the head, on the job's node, and nothing left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.models import Job
from cockpit.outputs import open_output
from cockpit.sources.output_reader import OutputReader, OutputReading
from tests.rig import Rig

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]


@contextmanager
def reader_of(rig: Rig, job_id: int) -> Iterator[tuple[OutputReader, Callable[..., OutputReading]]]:
    """A reader of that job's output, and how to wait for what it tells."""
    cluster = Cluster(next(iter(load_config(rig.config()).clusters.values())), watch_gpus=False)
    cluster.read_once()
    told = threading.Condition()

    def changed() -> None:
        with told:
            told.notify_all()

    def until(true: Callable[[OutputReading], object]) -> OutputReading:
        with told:
            assert told.wait_for(lambda: true(reader.look()), 40), reader.look()
        return reader.look()

    reader = open_output(cluster, Job(job_id, "R"), None, changed)
    reader.start()
    try:
        yield reader, until
    finally:
        reader.close()
        cluster.stop()


def texts(reading: OutputReading) -> list[str]:
    return [line.text for line in reading.held.lines]


def test_a_job_is_followed_to_its_end_and_nothing_is_left_behind(rig: Rig, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    script = "i=0; while :; do i=$((i + 1)); echo step $i; sleep 0.2; done"
    job = rig.submit(script, nodes=1, chdir=str(tmp_path), output="run-%4j-%N-%t.out")
    with reader_of(rig, job) as (reader, until):
        reading = until(lambda reading: "step 3" in texts(reading))
        assert reading.path.startswith(f"{tmp_path}/run-{job:04d}-gpu-")
        assert reading.path.endswith("-0.out")
        assert (reading.node, reading.following) == ("", True)
        rig.slurm("scancel", str(job))
        until(lambda reading: any("CANCELLED AT" in text for text in texts(reading)))
        reader.first_error()
        found = until(lambda reading: reading.turn == 1)
        assert found.found is not None
        assert "CANCELLED AT" in texts(found)[found.found - found.held.first]
    left = rig.slurm("ps", "-eo", "args").stdout.decode()
    assert f"run-{job:04d}" not in left
    assert not any(line.startswith(("tail ", "sh -s ")) for line in left.splitlines())


def test_a_file_that_only_the_node_has_is_found_there(rig: Rig, tmp_path: Path) -> None:
    node, private = rig.static_nodes[0], tmp_path / "local"
    private.mkdir()
    tmp_path.chmod(0o777)
    assert rig.inside(node, "mount", "-t", "tmpfs", "none", str(private)).returncode == 0
    try:
        job = rig.submit("echo written on the node; sleep 60", nodelist=node, output=str(private / "%j.out"))
        with reader_of(rig, job) as (_, until):
            reading = until(lambda reading: "written on the node" in texts(reading))
            assert (reading.node, reading.where) == (node, node)
            assert not (private / f"{job}.out").exists()
    finally:
        rig.inside(node, "umount", "-l", str(private))
