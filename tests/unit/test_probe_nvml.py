"""The probe against a compiled libnvidia-ml.so.1 with NVML's ABI, through the real nvidia-ml-py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.gpu_models import DriverState, GpuSample, Lack, Missing, NodeReading
from tests.rig.nvml import NvmlControl, install, missing
from tests.rig.procs import descendants, program
from tests.sshd import wait_for
from tests.unit.probe_runs import Run

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "gcc is there")

FAST: dict[str, str | float] = {"slow": 0.4, "driver_slow": 5, "driver_hung": 10, "backoff": "0.5,0.5"}


@pytest.fixture
def node(tmp_path: Path) -> NvmlControl:
    """Eight healthy GPUs at exact readings."""
    install(tmp_path)
    control = NvmlControl(tmp_path / "state")
    control.values(util=71, mem_util=33, temp=64, mem_temp=77, power_w=512, clock_sm=1755, mem_used_mib=70000)
    return control


def start(control: NvmlControl, **options: str | float) -> Run:
    env = {"LD_LIBRARY_PATH": str(control.path.parent), "NVML_STAND_IN": str(control.path)}
    return Run({**FAST, **options}, env=env)


@pytest.fixture
def run(node: NvmlControl) -> Iterator[Run]:
    with start(node) as running:
        yield running


def complete(reading: NodeReading) -> bool:
    """Whether fast and slow readings of some GPU are there."""
    return any(gpu.taken_at and gpu.slow_at for gpu in reading.gpus)


def code(sample: GpuSample) -> int | None:
    return sample.lost.code if sample.lost is not None else None


def nvml_child(run: Run) -> int:
    """The process that has the library loaded."""
    [found] = [pid for pid in run.children() if "libnvidia-ml" in Path(f"/proc/{pid}/maps").read_text()]
    return found


def test_eight_healthy_gpus(node: NvmlControl, run: Run) -> None:
    reading = run.until(complete)
    assert reading.driver.state is DriverState.OK
    assert (reading.driver.version, reading.driver.cuda) == ("580.95.05", "13.0")
    assert len(reading.gpus) == 8
    sample = reading.gpus[5]
    assert sample.gpu.uuid == sample.gpu.key == node.uuid(5)
    assert sample.gpu.pci == "0000:a8:00"
    assert (sample.gpu.index, sample.gpu.minor, sample.gpu.name) == (5, 5, "NVIDIA H100 80GB HBM3")
    assert (sample.gpu.mem_total_mib, sample.gpu.sm_clock_max_mhz) == (81559, 1980)
    assert (sample.gpu.pcie_gen_max, sample.gpu.pcie_width_max) == (5, 16)
    assert (sample.util_pct, sample.mem_util_pct, sample.mem_used_mib) == (71, 33, 70000)
    assert (sample.temp_c, sample.hbm_temp_c, sample.power_w, sample.sm_clock_mhz) == (64, 77, 512, 1755)
    assert (sample.power_limit_w, sample.nvlinks, sample.nvlinks_down) == (700, 18, 0)
    assert (sample.ecc_corrected, sample.ecc_uncorrected) == (0, 0)
    assert (sample.remap_pending, sample.remap_failed) == (0, 0)
    assert (sample.pcie_gen, sample.pcie_width) == (5, 16)
    assert sample.recovery == "None"
    assert run.reader.bad_lines == 0


def test_a_sample_of_eight_gpus_stays_small(node: NvmlControl, run: Run) -> None:
    node.load(80)
    run.until(complete)
    run.until(lambda reading: reading.number > 12)
    samples = [line for line in run.lines if line.startswith(b'{"k":"s"')]
    assert max(map(len, samples)) < 1200
    assert sorted(map(len, samples))[len(samples) // 2] < 600


def test_a_lost_gpu_keeps_its_row_and_its_name(node: NvmlControl, run: Run) -> None:
    run.until(complete)
    node.lost(3)
    reading = run.until(lambda reading: code(reading.gpus[3]) == 15)
    assert reading.gpus[3].lost == Missing(Lack.LOST, "GPU is lost", 15)
    assert reading.gpus[3].gpu.uuid == node.uuid(3)
    assert reading.gpus[3].util_pct == 71  # the last one, with its age
    assert (reading.gpus[3].taken_at or 0) < reading.taken_at
    assert [gpu.lost for gpu in reading.gpus].count(None) == 7
    # Its limits are no longer told, and are remembered.
    later = run.until(lambda after: after.number > reading.number + 4)
    assert later.gpus[3].gpu.mem_total_mib == 81559
    node.well(3)
    assert run.until(lambda reading: reading.gpus[3].lost is None).gpus[3].util_pct == 71


@pytest.mark.parametrize(("failure", "kind"), [(999, Lack.LOST), (16, Lack.LOST), (28, Lack.LOST)])
def test_other_codes_of_a_gpu_in_trouble(node: NvmlControl, run: Run, failure: int, kind: Lack) -> None:
    run.until(complete)
    node.failing(0, failure)
    reading = run.until(lambda reading: code(reading.gpus[0]) == failure)
    lost = reading.gpus[0].lost
    assert lost is not None
    assert lost.kind is kind


def test_a_gpu_that_vanishes_from_the_list_keeps_its_row(node: NvmlControl) -> None:
    with start(node) as run:
        run.until(complete)
        # The next reader of the driver sees seven, and the indexes behind have shifted.
        node.gone(2)
        os.kill(nvml_child(run), signal.SIGKILL)
        reading = run.until(lambda reading: reading.driver.state is DriverState.OK and code(reading.gpus[2]) == 28)
        assert [sample.gpu.uuid for sample in reading.gpus] == [node.uuid(place) for place in range(8)]
        assert reading.gpus[7].gpu.index == 6
        assert reading.gpus[7].util_pct == 71
        assert [gpu.lost for gpu in reading.gpus].count(None) == 7


def test_a_gpu_that_is_lost_from_the_start_has_a_row(node: NvmlControl, tmp_path: Path) -> None:
    node.lost(1)
    devices = tmp_path / "sys/bus/pci/devices"
    for place in range(8):
        device = devices / node.bus_id(place)[4:].lower()
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text("0x030200\n")
    with start(node, sys=str(tmp_path / "sys")) as run:
        reading = run.until(complete)
    assert len(reading.gpus) == 8
    assert len(reading.pci_gpus) == 8
    assert code(reading.gpus[1]) == 15
    assert reading.gpus[1].gpu.key == "0000:64:00"  # the only address that no other GPU has
    assert reading.gpus[1].util_pct.kind is Lack.NOT_READ  # type: ignore[union-attr]


def test_missing_values_have_reasons_and_are_never_zero(node: NvmlControl, run: Run) -> None:
    node.function("nvmlDeviceGetPowerUsage", 3)
    node.function("nvmlDeviceGetTotalEccErrors", 4)
    node.function("nvmlDeviceGetTemperature", 27, 6)
    node.field(82, 3)
    node.field(230, 2)
    node.function("nvmlDeviceGetNvLinkState", 3)
    node.function("nvmlDeviceGetCurrentClocksEventReasons", 13)
    node.values(throttle=0x4)
    reading = run.until(lambda reading: complete(reading) and isinstance(reading.gpus[6].temp_c, Missing))
    reading = run.until(lambda reading: isinstance(reading.gpus[6].recovery_action, Missing))
    sample = reading.gpus[6]
    assert sample.power_w == Missing(Lack.UNSUPPORTED, "not supported")
    assert sample.ecc_corrected == Missing(Lack.DENIED, "not permitted")
    assert isinstance(sample.temp_c, Missing)
    assert (sample.temp_c.kind, sample.temp_c.code) == (Lack.FAILED, 27)
    for value in (sample.hbm_temp_c, sample.nvlinks, sample.nvlinks_down, sample.recovery_action):
        assert isinstance(value, Missing)
        assert value.kind is Lack.UNSUPPORTED
    assert sample.recovery == ""
    assert sample.throttle == ("power cap",)  # the older name of the function answers
    assert sample.lost is None
    assert reading.gpus[5].temp_c == 64


def test_faults_show_as_they_are(node: NvmlControl, run: Run) -> None:
    node.hot(0)
    node.nvlinks_down(1, 3, 4)
    node.pcie(2, gen=1, width=8)
    node.remap(3, pending=True, failed=True)
    node.recovery_action(4, 4)
    node.ecc(5, corrected=1000, uncorrected=2, corrected_per_s=500)
    reading = run.until(lambda reading: complete(reading) and (reading.gpus[5].ecc_corrected_per_s or 0) > 0)
    assert reading.gpus[0].temp_c == 91
    assert reading.gpus[0].throttle == ("HW slowdown", "HW thermal")
    assert (reading.gpus[1].nvlinks_down, reading.gpus[1].nvlinks) == (2, 18)
    assert (reading.gpus[2].pcie_gen, reading.gpus[2].pcie_width) == (1, 8)
    assert (reading.gpus[3].remap_pending, reading.gpus[3].remap_failed) == (1, 1)
    assert reading.gpus[4].recovery == "Drain and Reset"
    assert reading.gpus[5].ecc_uncorrected == 2
    assert reading.gpus[5].ecc_corrected_per_s == pytest.approx(500, rel=0.5)
    # Counting from nothing again is a new beginning, no negative rate.
    node.ecc(5, corrected=0)
    after = run.until(lambda reading: reading.gpus[5].ecc_corrected == 0)
    assert after.gpus[5].ecc_corrected_per_s in (None, 0)


def test_xid_events_arrive_once_with_their_gpu(node: NvmlControl, run: Run) -> None:
    run.until(complete)
    before = time.time()
    node.xid(6, 79)
    reading = run.until(lambda reading: reading.events)
    [event] = reading.events
    assert (event.gpu, event.kind, event.data) == (node.uuid(6), "xid", 79)
    assert before - 1 < event.at < time.time() + 1
    later = run.until(lambda after: after.number > reading.number)
    assert later.events == ()


def test_processes_are_joined_to_proc(node: NvmlControl) -> None:
    env = {**os.environ, "RANK": "3", "LOCAL_RANK": "1", "SLURM_PROCID": "3", "WORLD_SIZE": "16", "AWS_SECRET": "x"}
    rank = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env=env)
    try:
        node.process(1, rank.pid, 5 << 30)
        node.process(1, 4_000_000, None)  # beyond any pid of this machine
        with start(node) as run:
            reading = run.until(lambda reading: len([one for one in reading.processes if one.exists is not None]) == 2)
            assert b"AWS_SECRET" not in b"".join(run.lines)
        living, vanished = sorted(reading.processes, key=lambda process: process.pid)
        assert living.gpu == vanished.gpu == node.uuid(1)
        assert (living.pid, living.mem_mib, living.exists) == (rank.pid, 5120, True)
        assert living.command == program(rank.pid)
        assert (living.rank, living.local_rank, living.procid, living.world_size) == (3, 1, 3, 16)
        assert living.started_at == pytest.approx(time.time(), abs=60)
        assert living.job_id is None
        assert vanished.exists is False
        assert vanished.mem_mib == Missing(Lack.UNSUPPORTED, "not supported")
    finally:
        rank.kill()
        rank.wait(5)


def test_mig_instances_and_no_utilisation(node: NvmlControl) -> None:
    node.mig(0, "1g.10gb", "3g.40gb")
    with start(node) as run:
        reading = run.until(lambda reading: complete(reading) and reading.gpus[0].instances)
    sample = reading.gpus[0]
    assert sample.gpu.mig is True
    assert reading.gpus[1].gpu.mig is False
    assert isinstance(sample.util_pct, Missing)
    assert sample.util_pct.kind is Lack.UNSUPPORTED
    assert sample.lost is None
    assert [instance.gpu_instance for instance in sample.instances] == [7, 8]
    assert all(instance.uuid.startswith("MIG-") for instance in sample.instances)
    assert all(not isinstance(instance.mem_total_mib, Missing) for instance in sample.instances)


def test_unified_memory_duplicates_and_odd_bytes(node: NvmlControl) -> None:
    node.unified_memory(0)
    node.duplicate(3, of=2)
    node.set(4, "name", b"NVIDIA \xff\xfe\x1b[31mH100")
    with start(node) as run:
        reading = run.until(complete)
    assert reading.gpus[0].gpu.unified_memory
    assert not reading.gpus[1].gpu.unified_memory
    keys = [sample.gpu.key for sample in reading.gpus]
    assert len(keys) == len(set(keys)) == 7
    name = next(sample.gpu.name for sample in reading.gpus if sample.gpu.uuid == node.uuid(4))
    assert name.startswith("NVIDIA \ufffd\ufffd")
    assert "\x1b" not in name


def test_a_hung_driver_silences_only_itself(node: NvmlControl) -> None:
    with start(node, driver_slow=1, driver_hung=3, backoff="1.5,1.5") as run:
        before = run.until(complete)
        node.hang()
        slow = run.until(lambda reading: reading.driver.state is DriverState.SLOW)
        hung = run.until(lambda reading: reading.driver.state is DriverState.HUNG)
        assert "no answer" in hung.driver.why
        assert hung.driver.since == pytest.approx(slow.driver.since)
        assert before.taken_at - 1 <= (hung.driver.since or 0) <= hung.taken_at  # in whole seconds
        # The node's own readings come at their pace, and the GPUs keep their last values.
        numbers = [reading.number for reading in run.readings if reading.taken_at > (hung.driver.since or 0)]
        assert len(numbers) >= 5
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert hung.load
        assert hung.gpus[0].util_pct == 71
        node.well()
        again = run.until(lambda reading: reading.driver.state is DriverState.OK)
        assert again.driver.since is None


def test_an_overdue_answer_is_told_before_the_next_tick_and_as_no_more_than_that(node: NvmlControl) -> None:
    with start(node, interval=4, driver_silent=1.5) as run:
        run.until(complete)
        node.hang()
        silent = run.until(lambda reading: reading.driver.state is DriverState.SILENT)
        assert silent.driver.since is not None
        assert 1 < silent.taken_at - silent.driver.since < 3.5
        assert silent.load  # the node's own readings are in the very same line
        node.well()
        assert run.until(lambda reading: reading.driver.state is DriverState.OK).driver.since is None


def test_a_stopped_child_is_not_joined_by_a_second(node: NvmlControl) -> None:
    with start(node, driver_slow=1, driver_hung=3, backoff="0.2") as run:
        run.until(complete)
        child = nvml_child(run)
        os.kill(child, signal.SIGSTOP)
        reading = run.until(lambda reading: reading.driver.state is DriverState.HUNG)
        assert reading.load
        # SIGKILL ends a stopped process: only then is there another one.
        run.until(lambda reading: reading.driver.state is DriverState.OK)
        assert child not in descendants(run.process.pid)


def test_a_crash_of_the_library_is_told(node: NvmlControl) -> None:
    with start(node, backoff="1,1") as run:
        run.until(complete)
        node.crash()
        reading = run.until(lambda reading: reading.driver.state is DriverState.CRASHED)
        assert "signal 11" in reading.driver.why
        assert reading.gpus[0].gpu.uuid == node.uuid(0)
        node.well()
        run.until(lambda reading: reading.driver.state is DriverState.OK)


@pytest.mark.parametrize(
    ("loaded", "matches", "failure", "words"),
    [(False, True, 9, "Driver Not Loaded"), (True, False, 18, "version mismatch")],
)
def test_a_driver_that_refuses(node: NvmlControl, loaded: bool, matches: bool, failure: int, words: str) -> None:
    node.driver(loaded=loaded, matches=matches)
    with start(node) as run:
        reading = run.until(lambda reading: reading.driver.state is DriverState.FAILED)
        assert reading.driver.code == failure
        assert words.lower() in reading.driver.why.lower()
        node.driver()
        assert len(run.until(complete).gpus) == 8


def test_pauses_between_attempts_grow(node: NvmlControl) -> None:
    node.driver(loaded=False)
    with start(node, backoff="0.4,30") as run:
        run.until(lambda reading: reading.driver.state is DriverState.FAILED)
        assert wait_for(lambda: len([line for line in run.lines if b'"k":"s"' in line]) > 8, 10)
        node.driver()
        with pytest.raises(AssertionError):
            run.until(lambda reading: reading.driver.state is DriverState.OK, 2)


def test_a_pid_that_is_used_again_is_looked_up_again(node: NvmlControl, tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    (proc / "4242").mkdir(parents=True)
    (proc / "uptime").write_text("1000.0 1.0\n")
    (proc / "4242/environ").write_bytes(b"PATH=/bin\0RANK=7\0LOCAL_RANK=x\0SECRET=s3cr3t\0")

    def put(comm: str, start: int, job: int) -> None:
        fields = " ".join(["0"] * 17)
        (proc / "4242/stat").write_text(f"4242 ({comm}) R 1 {fields} {start} 0 0\n")
        (proc / "4242/cgroup").write_text(f"0::/system.slice/slurmstepd.scope/job_{job}/step_batch/user/task_0\n")

    put("python", 90_000, 88)
    node.process(0, 4242, 1 << 30)
    with start(node, proc=str(proc)) as run:
        first = run.until(lambda reading: any(process.exists for process in reading.processes)).processes[0]
        assert (first.command, first.job_id, first.step, first.task) == ("python", 88, "batch", "0")
        assert first.rank == 7
        assert isinstance(first.local_rank, Missing)
        assert first.started_at == pytest.approx(time.time() - 1000 + 90_000 / os.sysconf("SC_CLK_TCK"), abs=5)
        put("train", 95_000, 99)
        run.until(lambda reading: any(process.job_id == 99 for process in reading.processes))
        # The answer is kept: it is told again only when something differs.
        told = len([line for line in run.lines if b'"p":' in line])
        number = run.readings[-1].number
        run.until(lambda reading: reading.number > number + 8)
        assert len([line for line in run.lines if b'"p":' in line]) == told
        assert b"s3cr3t" not in b"".join(run.lines)


def test_a_library_that_appears_replaces_nvidia_smi(node: NvmlControl, tmp_path: Path) -> None:
    library = tmp_path / "libnvidia-ml.so.1"
    library.rename(tmp_path / "aside")
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho No devices were found\nexit 6\n")
    smi.chmod(0o755)
    with start(node, nvidia_smi=str(smi), smi=0.3) as run:
        run.until(lambda reading: reading.driver.code == 6)
        (tmp_path / "aside").rename(library)
        reading = run.until(complete)
        assert reading.driver.state is DriverState.OK
        assert len(reading.gpus) == 8
        before = len([line for line in run.lines if b'"c":' in line])
        run.until(lambda after: after.number > reading.number + 4)
        assert len([line for line in run.lines if b'"c":' in line]) == before
