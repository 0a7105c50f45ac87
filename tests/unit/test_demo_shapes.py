"""How the demo spells values and records, against what real clusters printed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from cockpit.demo.programs.registry import run
from cockpit.demo.programs.spelling import array_tasks, duration, memory, padded, ranges, stamp
from cockpit.demo.sim import Simulation

T0 = 1_795_993_917.0


@pytest.fixture(name="sim")
def a_sim() -> Simulation:
    return Simulation(clock=lambda: T0)


def shown(sim: Simulation, *words: str) -> str:
    return run(sim, ("scontrol", *words), {}, "demo-head").stdout.decode()


@pytest.mark.parametrize(
    ("seconds", "short", "long"),
    [
        (4, "0:04", "00:00:04"),
        (1822, "30:22", "00:30:22"),
        (7200, "2:00:00", "02:00:00"),
        (129600, "1-12:00:00", "1-12:00:00"),
    ],
)
def test_durations(seconds: int, short: str, long: str) -> None:
    assert (duration(seconds), padded(seconds)) == (short, long)


@pytest.mark.parametrize(
    ("mib", "text"),
    [
        (384000, "375G"),
        (192000, "187.50G"),
        (2000000, "2000000M"),
        (32000000, "31250G"),
        (90000, "90000M"),
        (65536, "64G"),
        (1048576, "1T"),
    ],
)
def test_memory_as_seen_on_real_clusters(mib: int, text: str) -> None:
    assert memory(mib) == text


def test_ranges_and_array_tasks() -> None:
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
    assert ranges([]) == ""
    scattered = range(1, 99, 2)
    assert array_tasks(scattered, 7, {"SLURM_BITSTR_LEN": "0"}).endswith(",95,97%7")
    cut = array_tasks(scattered, 7, {})
    assert cut.endswith(",...%7")
    assert len(cut) <= 66


def test_time_formats() -> None:
    assert stamp(T0, {"SLURM_TIME_FORMAT": "%s"}, "N/A") == "1795993917"
    assert re.fullmatch(r"2026-11-(29|30)T\d\d:\d\d:57", stamp(T0, {}, "N/A"))
    assert stamp(None, {}, "N/A") == "N/A"


def samples() -> Path:
    """Output of real clusters, kept outside of the repository."""
    named = os.environ.get("COCKPIT_SAMPLES")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "samples"
    if not (folder / "slurm").is_dir():
        pytest.skip("no samples of real output here")
    return folder / "slurm" / "23.11.11"


def keys(record: str) -> list[str]:
    return re.findall(r"(?:^|(?<=[ \n]))([A-Za-z_/:]+)=", record.replace("OS=Linux", "OS=")) or [record]


@pytest.mark.samples
def test_node_record_has_the_keys_of_a_real_one(sim: Simulation) -> None:
    real = (samples() / "scontrol_show_node_detail_oneline.txt").read_text()
    for name, ours in (("gpu-st-p5-5", "gpu-st-p5-6"), ("gpu-dy-p5-1", "gpu-dy-p5-1")):
        theirs = next(line for line in real.splitlines() if line.startswith(f"NodeName={name} "))
        theirs = re.sub(r" Port=\d+", "", re.sub(r"NVRM = x", "", theirs))
        mine = shown(sim, "-d", "-o", "show", "node", ours).rstrip("\n")
        assert keys(mine) == keys(theirs)


@pytest.mark.samples
def test_partition_record_has_the_keys_of_a_real_one(sim: Simulation) -> None:
    real = (samples() / "scontrol_show_partition_oneline.txt").read_text().splitlines()[0]
    mine = shown(sim, "-o", "show", "partition", "gpu").rstrip("\n")
    assert keys(mine) == keys(real)


@pytest.mark.samples
def test_job_record_has_the_keys_of_a_real_one(sim: Simulation) -> None:
    real = (samples() / "scontrol_show_job_dd.txt").read_text().split("\n\n")
    theirs = next(record for record in real if record.lstrip().startswith("JobId=1 "))
    job = next(job for job in sim.jobs.values() if job.ask.name == "llama3-405b-pretrain")
    mine = shown(sim, "-d", "show", "job", str(job.job_id)).removesuffix("\n\n")
    assert keys(mine) == [{"MinMemoryCPU": "MinMemoryNode"}.get(key, key) for key in keys(theirs)]
