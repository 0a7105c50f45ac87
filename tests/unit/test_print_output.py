"""`cockpit output`: what it prints, and its exit codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cockpit.cluster import Cluster
from cockpit.config import ClusterConfig, ConfigError
from cockpit.demo.output_files import OutputFarm
from cockpit.demo.programs.jobfields import error_path, output_path
from cockpit.demo.sim import Simulation
from cockpit.hosts.base import Completed
from cockpit.hosts.local import LocalHost
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.print_output import print_output
from tests.still import StillClock, StillHost


class FileHost(StillHost):
    """A head with the demo's Slurm and real files."""

    def __init__(self, sim: Simulation, folder: Path) -> None:
        super().__init__(sim)
        self.farm = OutputFarm(sim, folder)

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        unset: Sequence[str] = (),
        max_bytes: int = 2**20,
    ) -> Completed:
        if argv[:2] == ["sh", "-s"] and self.fault is None:
            local = [self.farm.localize(word) for word in argv]
            return LocalHost().run(local, deadline_s=deadline_s, stdin=stdin, max_bytes=max_bytes)
        return super().run(argv, deadline_s=deadline_s, stdin=stdin, env=env, unset=unset)


class Demo:
    """A cluster on that head, and jobs of it by name."""

    def __init__(self, folder: Path, scenario: str = "busy") -> None:
        self.clock = StillClock()
        self.head = FileHost(Simulation(clock=self.clock.now, scenario=scenario), folder)
        self.cluster = Cluster(ClusterConfig("still"), clock=self.clock, head=self.head, watch_gpus=False)

    def job(self, name: str) -> int:
        return next(job.job_id for job in self.head.sim.jobs.values() if job.ask.name == name)


@pytest.fixture(name="demo")
def _demo(tmp_path: Path) -> Demo:
    return Demo(tmp_path)


def test_the_last_lines(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_output(demo.cluster, str(demo.job("llama3-405b-pretrain")), 3) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 3
    assert all(" | loss " in line for line in out)
    assert print_output(demo.cluster, str(demo.job("llama3-405b-pretrain")), 0) == 0
    assert capsys.readouterr().out == ""


def test_standard_error_of_its_own(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_output(demo.cluster, str(demo.job("safety-eval")), 100, stderr=True) == 0
    out = capsys.readouterr().out.splitlines()
    assert "WARNING tokenizer" in out[0]
    assert out[1].startswith("running: ")  # an hour of a progress bar
    assert len(out) == 2


def test_more_lines_than_are_read(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_output(demo.cluster, str(demo.job("llama3-405b-pretrain")), 30_000) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("[")
    assert "before these lines are not shown" in printed.err or len(printed.out.splitlines()) > 20_000


def test_following(demo: Demo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        demo.clock.time += 60
        if len(waited) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        print_output(demo.cluster, str(demo.job("llama3-405b-pretrain")), 1, follow=True)
    steps = [
        int(line.split("step ")[1].split()[0]) for line in capsys.readouterr().out.splitlines() if "| loss" in line
    ]
    assert steps == list(range(steps[0], steps[0] + len(steps)))
    assert len(steps) > 20


@pytest.mark.parametrize("job", ["", "x", "12;rm", "-5", "1_2_3", "12345678901"])
def test_what_is_no_job(demo: Demo, job: str) -> None:
    with pytest.raises(ConfigError):
        print_output(demo.cluster, job, 3)
    assert not any("show" in call for call in demo.head.calls)


def test_an_array_needs_its_task(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    array = demo.job("eval-sweep")
    with pytest.raises(ConfigError, match=f"{array}_0"):
        print_output(demo.cluster, str(array), 3)
    assert print_output(demo.cluster, f"{array}_1", 2) == 0
    assert "accuracy" in capsys.readouterr().out
    assert print_output(demo.cluster, f"{array}_20", 2) == 1
    assert "have not started" in capsys.readouterr().err


def test_nothing_to_print(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_output(demo.cluster, str(demo.job("lr-search")), 3) == 1
    assert "has not started" in capsys.readouterr().err
    assert print_output(demo.cluster, "99999999", 3) == 1
    assert "does not know this job" in capsys.readouterr().err


def test_a_head_that_is_not_reached(demo: Demo) -> None:
    demo.head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "reaching head", "connection refused"))
    with pytest.raises(FaultError):
        print_output(demo.cluster, "48219", 3)


# What the demo writes.


def test_the_demo_writes_the_same_in_one_step_and_in_many(tmp_path: Path) -> None:
    once, often = Demo(tmp_path / "once"), Demo(tmp_path / "often")
    path = output_path(once.head.sim.jobs[once.job("asr-debug")])
    for _ in range(20):
        often.clock.time += 30
        often.head.farm.localize(path)
    once.clock.time += 600
    texts = [Path(demo.head.farm.localize(path)).read_bytes() for demo in (once, often)]
    assert texts[0] == texts[1]
    assert texts[0].count(b"\n") > 100


def test_a_hung_run_of_the_demo_tells_so_as_pytorch_does(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "hang")
    job = demo.head.sim.jobs[demo.job("llama3-405b-pretrain")]
    text = Path(demo.head.farm.localize(output_path(job))).read_text()
    world = job.ask.nodes * job.ask.gpus
    assert text.count("Watchdog caught collective operation timeout") == world - 1
    assert text.count("Received a dump signal") == 1
    last_step = text.rfind("| loss")
    assert last_step < text.index("Watchdog")


def test_a_lost_gpu_of_the_demo_ends_the_steps(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "xid")
    struck = next(host for host, told in demo.head.sim.struck.items() if told[0].kind == "lost")
    job = next(job for job in demo.head.sim.jobs.values() if job.hosts == (struck,) and job.state == "RUNNING")
    path = output_path(job)
    assert "NCCL WARN" not in Path(demo.head.farm.localize(path)).read_text()
    demo.clock.time += 120
    text = Path(demo.head.farm.localize(path)).read_text()
    assert "NCCL WARN Cuda failure" in text.splitlines()[-1]


def test_jobs_that_ended_tell_how(tmp_path: Path) -> None:
    demo = Demo(tmp_path)
    words = {"TIMEOUT": "DUE TO TIME LIMIT", "CANCELLED": "CANCELLED AT", "FAILED": "Exited with", "COMPLETED": "done"}
    for job in list(demo.head.sim.jobs.values()):
        if job.state in words:
            text = Path(demo.head.farm.localize(output_path(job))).read_text()
            assert words[job.state] in text.splitlines()[-1]
            words.pop(job.state)
    assert not words


def test_only_files_of_jobs_are_made(demo: Demo, tmp_path: Path) -> None:
    demo.head.farm.localize("cat /fsx/maria/runs/slurm-1.out /fsx/../etc/passwd /fsx/maria/runs/slurm-99_1.err")
    assert list(tmp_path.rglob("*.out")) == []
    job = demo.head.sim.jobs[demo.job("safety-eval")]
    assert error_path(job) != output_path(job)
