"""The NVML stand-in under the real nvidia-ml-py: values, errors, faults, and the nvidia-smi stand-in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.rig.nvml import NvmlControl, build, install, missing
from tests.rig.nvml.control import ABSENT, MODELS, NO_PERMISSION, NOT_SUPPORTED, RESET_REQUIRED

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

GIB = 1 << 30
# Evaluates what the test sends, one expression a line, and answers in JSON: a value, or NVML's error.
CHILD = """
import json, pynvml as n, sys, warnings
from pynvml import *
warnings.simplefilter("ignore")
def gpu(i): return nvmlDeviceGetHandleByIndex(i)
def plain(x):
    if isinstance(x, bytes): return x.decode("utf-8", "replace")
    if hasattr(x, "_fields_"): return {k: plain(getattr(x, k)) for k, *_ in x._fields_ if k not in ("device", "value")}
    if isinstance(x, (list, tuple)): return [plain(y) for y in x]
    return x if isinstance(x, (int, float, str, type(None))) else plain(vars(x)) if hasattr(x, "__dict__") else str(x)
def fields(i, *ids):
    def value(f): return {1: f.value.uiVal, 3: f.value.ullVal, 5: f.value.siVal}[f.valueType]
    return [f"error {f.nvmlReturn}" if f.nvmlReturn else value(f) for f in nvmlDeviceGetFieldValues(gpu(i), ids)]
def listen(*gpus):
    global events
    events = nvmlEventSetCreate()
    for i in gpus: nvmlDeviceRegisterEvents(gpu(i), nvmlEventTypeXidCriticalError, events)
def heard(ms):
    e = nvmlEventSetWait_v2(events, ms)
    return [nvmlDeviceGetIndex(e.device), e.eventType, e.eventData, e.gpuInstanceId]
def procs(call):
    return [(p.pid, p.usedGpuMemory, p.gpuInstanceId) for p in call]
for line in sys.stdin:
    try: print(json.dumps(plain(eval(line))), flush=True)
    except NVMLError as e: print(json.dumps({"error": e.value}), flush=True)
"""


class Nvml:
    """One process that has loaded the library; `ask` evaluates an expression in it."""

    def __init__(self, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def send(self, expression: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()

    def ask(self, expression: str) -> Any:
        self.send(expression)
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    install(folder)
    return folder


@pytest.fixture
def control(tmp_path: Path) -> NvmlControl:
    return NvmlControl(tmp_path / "state", seed="node")


@pytest.fixture
def env(library: Path, control: NvmlControl) -> dict[str, str]:
    return {**os.environ, "LD_LIBRARY_PATH": str(library), "NVML_STAND_IN": str(control.path)}


@pytest.fixture
def nvml(env: dict[str, str]) -> Iterator[Nvml]:
    running = Nvml(env)
    try:
        running.ask("nvmlInit()")
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


def test_eight_idle_h100(nvml: Nvml, control: NvmlControl) -> None:
    assert nvml.ask("nvmlDeviceGetCount()") == 8
    assert nvml.ask("nvmlSystemGetDriverVersion()") == "580.95.05"
    assert nvml.ask("nvmlSystemGetNVMLVersion()") == "13.580.95.05"
    assert nvml.ask("nvmlSystemGetCudaDriverVersion()") == 13000
    assert nvml.ask("nvmlDeviceGetName(gpu(7))") == "NVIDIA H100 80GB HBM3"
    assert nvml.ask("[nvmlDeviceGetUUID(gpu(i)) for i in range(8)]") == [control.uuid(i) for i in range(8)]
    assert nvml.ask("nvmlDeviceGetIndex(nvmlDeviceGetHandleByPciBusId('0000:64:00.0'))") == 1
    assert nvml.ask(f"nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID('{control.uuid(5)}'))") == 5
    assert nvml.ask("nvmlDeviceGetPciInfo(gpu(0))")["busId"] == "00000000:53:00.0"
    assert nvml.ask("nvmlDeviceGetPciInfo(gpu(0))")["busIdLegacy"] == "0000:53:00.0"
    assert nvml.ask("nvmlDeviceGetMinorNumber(gpu(6))") == 6
    assert nvml.ask("nvmlDeviceGetUtilizationRates(gpu(0))") == {"gpu": 0, "memory": 0}
    assert nvml.ask("nvmlDeviceGetCurrentClocksEventReasons(gpu(0))") == 1
    assert nvml.ask("nvmlDeviceGetRemappedRows(gpu(0))") == [0, 0, 0, 0]
    assert nvml.ask("nvmlDeviceGetEccMode(gpu(0))") == [1, 1]
    assert nvml.ask("nvmlDeviceGetMigMode(gpu(0))") == [0, 0]
    assert nvml.ask("procs(nvmlDeviceGetComputeRunningProcesses(gpu(0)))") == []
    assert nvml.ask("nvmlDeviceGetNvLinkState(gpu(0), 17)") == 1
    assert nvml.ask("nvmlDeviceGetNvLinkState(gpu(0), 18)") == {"error": NOT_SUPPORTED}
    assert nvml.ask("nvmlDeviceGetFanSpeed(gpu(0))") == {"error": NOT_SUPPORTED}


def test_versions_of_structures(nvml: Nvml) -> None:
    old = nvml.ask("nvmlDeviceGetMemoryInfo(gpu(0))")
    new = nvml.ask("nvmlDeviceGetMemoryInfo(gpu(0), nvmlMemory_v2)")
    assert old["total"] == new["total"] == 81559 << 20
    assert (old["used"], new["used"]) == (new["reserved"], 0)
    assert new["free"] + new["used"] + new["reserved"] == new["total"]
    assert nvml.ask("nvmlDeviceGetMemoryInfo(gpu(0), 0x03000028)") == {"error": 25}
    assert nvml.ask("nvmlDeviceGetTemperatureV(gpu(0), 0)") == pytest.approx(
        nvml.ask("nvmlDeviceGetTemperature(gpu(0), 0)"), abs=2
    )
    for version, keys in (
        ("c_nvmlGpuFabricInfo_v2_t", {"state": 3}),
        ("c_nvmlGpuFabricInfo_v3_t", {"healthSummary": 1}),
    ):
        nvml.ask(f"globals().update(info={version}()) or nvmlDeviceGetGpuFabricInfoV(gpu(0), byref(info))")
        found = {key: nvml.ask(f"info.{key}") for key in keys}
        assert found == keys
    assert (
        nvml.ask("globals().update(info=c_nvmlGpuFabricInfo_t()) or nvmlDeviceGetGpuFabricInfo(gpu(0), byref(info))")
        == 0
    )
    assert nvml.ask("info.state") == 3


def test_a_changed_file_is_seen_at_once_and_values_live(nvml: Nvml, control: NvmlControl) -> None:
    control.load(97)
    assert nvml.ask("nvmlDeviceGetUtilizationRates(gpu(3)).gpu") > 90
    assert 500_000 < nvml.ask("nvmlDeviceGetPowerUsage(gpu(3))") < 720_000
    assert 1500 < nvml.ask("nvmlDeviceGetClockInfo(gpu(3), NVML_CLOCK_SM)") <= 1980
    assert nvml.ask("nvmlDeviceGetMemoryInfo(gpu(3), nvmlMemory_v2).used") > 60 * GIB
    # At the crest of its wave a value stands still for a moment.
    power = "nvmlDeviceGetPowerUsage(gpu(3))"
    changed = f"any({power} != first or __import__('time').sleep(0.01) for first in [{power}] for _ in range(500))"
    assert nvml.ask(changed) is True
    control.values(3, util=12, temp=55, power_w=300, clock_sm=1200, mem_used_mib=1024)
    assert nvml.ask("nvmlDeviceGetUtilizationRates(gpu(3)).gpu") == 12
    assert nvml.ask("nvmlDeviceGetTemperature(gpu(3), 0)") == 55
    assert nvml.ask("nvmlDeviceGetPowerUsage(gpu(3))") == 300_000
    assert nvml.ask("nvmlDeviceGetClockInfo(gpu(3), NVML_CLOCK_SM)") == 1200
    assert nvml.ask("nvmlDeviceGetMemoryInfo(gpu(3), nvmlMemory_v2).used") == GIB
    control.load(0)
    control.clear(3, "util")
    assert nvml.ask("nvmlDeviceGetUtilizationRates(gpu(3)).gpu") == 0


@pytest.mark.parametrize("model", sorted(MODELS))
def test_models(nvml: Nvml, control: NvmlControl, model: str) -> None:
    control.reset(gpus=4, model=model)
    assert nvml.ask("nvmlDeviceGetCount()") == 4
    assert nvml.ask("nvmlDeviceGetName(gpu(3))") == MODELS[model].get("name", "NVIDIA H100 80GB HBM3")
    assert nvml.ask("nvmlDeviceGetMemoryInfo(gpu(3)).total") == int(MODELS[model].get("mem_total_mib", 81559)) << 20


def test_a_lost_gpu_is_still_counted_and_answers_nothing(nvml: Nvml, control: NvmlControl) -> None:
    nvml.ask("globals().update(old=gpu(3))")
    control.lost(3)
    assert nvml.ask("nvmlDeviceGetCount()") == 8
    assert nvml.ask("gpu(3)") == {"error": 15}
    assert nvml.ask("nvmlDeviceGetTemperature(old, 0)") == {"error": 15}
    assert nvml.ask("nvmlDeviceGetIndex(gpu(4))") == 4
    control.failing(3)
    assert nvml.ask("nvmlDeviceGetName(old)") == {"error": 999}
    control.failing(3, RESET_REQUIRED)
    assert nvml.ask("nvmlDeviceGetName(old)") == {"error": 16}
    control.well()
    assert nvml.ask("nvmlDeviceGetName(old)") == "NVIDIA H100 80GB HBM3"


def test_a_gpu_that_is_gone_shifts_the_indexes(nvml: Nvml, control: NvmlControl) -> None:
    control.gone(2)
    assert nvml.ask("nvmlDeviceGetCount()") == 7
    assert nvml.ask("nvmlDeviceGetUUID(gpu(2))") == control.uuid(3)
    assert nvml.ask("nvmlDeviceGetMinorNumber(gpu(2))") == 3
    assert nvml.ask("gpu(7)") == {"error": 2}


def test_faults_of_functions_and_fields(nvml: Nvml, control: NvmlControl) -> None:
    control.function("nvmlDeviceGetTemperature", NOT_SUPPORTED, 1)
    control.function("nvmlDeviceGetSerial", NO_PERMISSION)
    control.function("nvmlDeviceGetCurrentClocksEventReasons", ABSENT)
    control.field(82, NOT_SUPPORTED, 1)
    assert nvml.ask("nvmlDeviceGetTemperature(gpu(1), 0)") == {"error": 3}
    assert nvml.ask("nvmlDeviceGetTemperature(gpu(0), 0)") > 20
    assert nvml.ask("nvmlDeviceGetSerial(gpu(0))") == {"error": 4}
    assert nvml.ask("nvmlDeviceGetCurrentClocksEventReasons(gpu(0))") == {"error": 13}
    assert nvml.ask("nvmlDeviceGetCurrentClocksThrottleReasons(gpu(0))") == 1
    assert nvml.ask("fields(1, 82, 230)") == ["error 3", 0]
    control.function("nvmlDeviceGetSerial", None)
    assert nvml.ask("nvmlDeviceGetSerial(gpu(0))").isdigit()
    # A function that the stand-in does not have is absent, as with an old driver.
    assert nvml.ask("nvmlDeviceGetRepairStatus(gpu(0))") == {"error": 13}


def test_health(nvml: Nvml, control: NvmlControl) -> None:
    control.hot(0)
    control.ecc(1, corrected=7, uncorrected=2)
    control.ecc(2, corrected=5, corrected_per_s=1e6)
    control.remap(3, pending=True, rows=4)
    control.remap(4, failed=True)
    control.nvlinks_down(5, 0, 17)
    control.pcie(6, gen=1, width=8)
    control.recovery_action(7, 4)
    assert nvml.ask("nvmlDeviceGetCurrentClocksEventReasons(gpu(0))") == 0x48
    assert nvml.ask("nvmlDeviceGetTemperature(gpu(0), 0)") == 91
    assert nvml.ask("nvmlDeviceGetTotalEccErrors(gpu(1), 0, 0)") == 7
    assert nvml.ask("nvmlDeviceGetMemoryErrorCounter(gpu(1), 1, 1, NVML_MEMORY_LOCATION_DRAM)") == 2
    assert nvml.ask("fields(1, 3, 4)") == [7, 2]
    before = nvml.ask("nvmlDeviceGetTotalEccErrors(gpu(2), 0, 0)")
    assert nvml.ask("nvmlDeviceGetTotalEccErrors(gpu(2), 0, 0)") > before
    assert nvml.ask("fields(3, 142, 143, 144, 145)") == [0, 4, 1, 0]
    assert nvml.ask("nvmlDeviceGetRemappedRows(gpu(4))") == [0, 0, 0, 1]
    assert nvml.ask("[nvmlDeviceGetNvLinkState(gpu(5), i) for i in range(18)]") == [0] + [1] * 16 + [0]
    assert nvml.ask("fields(5, (165, 0), (165, 1), 91)") == [0, 1, 18]
    assert nvml.ask("nvmlDeviceGetCurrPcieLinkGeneration(gpu(6))") == 1
    assert nvml.ask("nvmlDeviceGetCurrPcieLinkWidth(gpu(6))") == 8
    assert nvml.ask("nvmlDeviceGetMaxPcieLinkWidth(gpu(6))") == 16
    assert nvml.ask("fields(7, 226, 227, 230)") == [0, 1, 4]
    assert nvml.ask("fields(0, 185, 194, 196)")[1:] == [-2, 0]


def test_odd_values(nvml: Nvml, control: NvmlControl) -> None:
    control.set(0, "name", b"NVIDIA \xff\xfeH100")
    control.unified_memory(1)
    control.duplicate(2, of=3)
    control.values(4, ecc=0)
    # The bindings themselves cannot read such a name, so a reader must be ready for it.
    assert nvml.ask("bytes(nvmlDeviceGetName.__wrapped__(gpu(0)))") == "NVIDIA \ufffd\ufffdH100"
    assert nvml.ask("nvmlDeviceGetMemoryInfo(gpu(1))") == {"total": 0, "free": 0, "used": 0}
    assert nvml.ask("nvmlDeviceGetUUID(gpu(2)) == nvmlDeviceGetUUID(gpu(3))") == 1
    assert nvml.ask("nvmlDeviceGetTotalEccErrors(gpu(4), 1, 0)") == {"error": NOT_SUPPORTED}
    assert nvml.ask("fields(4, 1, 3)") == [0, "error 3"]


def test_processes_in_all_layouts(nvml: Nvml, control: NvmlControl) -> None:
    control.process(0, os.getpid(), 30 * GIB)
    control.process(0, 4_000_000, None)
    control.process(0, 77, GIB, kind="graphics")
    control.process(0, 78, GIB, kind="mps")
    both = [[os.getpid(), 30 * GIB, 0xFFFFFFFF], [4_000_000, None, 0xFFFFFFFF]]
    assert nvml.ask("procs(nvmlDeviceGetComputeRunningProcesses(gpu(0)))") == both
    assert nvml.ask("procs(nvmlDeviceGetComputeRunningProcesses_v2(gpu(0)))") == both
    assert nvml.ask("procs(nvmlDeviceGetGraphicsRunningProcesses(gpu(0)))") == [[77, GIB, 0xFFFFFFFF]]
    assert nvml.ask("procs(nvmlDeviceGetMPSComputeRunningProcesses(gpu(0)))") == [[78, GIB, 0xFFFFFFFF]]
    assert nvml.ask("procs(nvmlDeviceGetComputeRunningProcesses(gpu(1)))") == []
    # The oldest layout, which nvidia-ml-py no longer calls: 16 bytes a process.
    old = "(lambda a, c: [n._nvmlGetFunctionPointer('nvmlDeviceGetComputeRunningProcesses')(gpu(0), byref(c), a), *a])"
    assert nvml.ask(f"{old}((c_ulonglong * 4)(), c_uint(2))") == [0, os.getpid(), 30 * GIB, 4_000_000, 2**64 - 1]
    assert nvml.ask(f"{old}((c_ulonglong * 2)(), c_uint(1))[0]") == 7
    assert nvml.ask("nvmlDeviceGetMemoryInfo(gpu(0), nvmlMemory_v2).used") == 32 * GIB
    control.no_processes(0)
    assert nvml.ask("procs(nvmlDeviceGetComputeRunningProcesses(gpu(0)))") == []


def test_mig(nvml: Nvml, control: NvmlControl) -> None:
    control.mig(0, "1g.10gb", "2g.20gb")
    control.process(0, 99, GIB, instance=(8, 0))
    assert nvml.ask("nvmlDeviceGetMigMode(gpu(0))") == [1, 1]
    assert nvml.ask("nvmlDeviceGetUtilizationRates(gpu(0))") == {"error": NOT_SUPPORTED}
    assert nvml.ask("fields(0, 144)") == ["error 3"]
    assert nvml.ask("nvmlDeviceGetMaxMigDeviceCount(gpu(0))") == 7
    nvml.ask("globals().update(mig=lambda i: nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), i))")
    assert nvml.ask("nvmlDeviceGetName(mig(1))") == "NVIDIA H100 80GB HBM3 MIG 2g.20gb"
    assert nvml.ask("nvmlDeviceGetUUID(mig(1))").startswith("MIG-")
    assert nvml.ask("[nvmlDeviceGetGpuInstanceId(mig(i)) for i in (0, 1)]") == [7, 8]
    assert nvml.ask("nvmlDeviceGetComputeInstanceId(mig(0))") == 0
    assert nvml.ask("nvmlDeviceGetMemoryInfo(mig(1)).total") == 20 * GIB
    assert nvml.ask("procs(nvmlDeviceGetComputeRunningProcesses(mig(0)))") == []
    assert nvml.ask("procs(nvmlDeviceGetComputeRunningProcesses(mig(1)))") == [[99, GIB, 8]]
    assert nvml.ask("nvmlDeviceGetTemperature(mig(0), 0)") == {"error": NOT_SUPPORTED}
    assert nvml.ask("mig(2)") == {"error": 6}
    assert nvml.ask("nvmlDeviceGetGpuInstanceId(gpu(0))") == {"error": 2}


def test_xids_are_delivered_once_to_those_who_listen(nvml: Nvml, control: NvmlControl) -> None:
    control.xid(2, 13)
    assert nvml.ask("nvmlDeviceGetSupportedEventTypes(gpu(0))") & 8
    nvml.ask("listen(2, 5)")
    assert nvml.ask("heard(1)") == {"error": 10}  # what was before nobody hears
    nvml.send("heard(10000)")
    control.xid(5, 79)
    assert nvml.process.stdout is not None
    assert json.loads(nvml.process.stdout.readline()) == [5, 8, 79, 0xFFFFFFFF]
    control.xid(2, 31, instance=(7, 0))
    control.xid(2, 31)
    control.xid(0, 48)  # not registered
    assert [nvml.ask("heard(0)") for _ in range(3)] == [[2, 8, 31, 7], [2, 8, 31, 0xFFFFFFFF], {"error": 10}]
    assert nvml.ask("nvmlEventSetFree(events)") is None


def test_a_driver_that_is_not_there(env: dict[str, str], control: NvmlControl) -> None:
    nvml = Nvml(env)
    try:
        assert nvml.ask("nvmlDeviceGetCount()") == {"error": 1}
        control.driver(loaded=False)
        assert nvml.ask("nvmlInit()") == {"error": 9}
        control.driver(matches=False)
        assert nvml.ask("nvmlInit()") == {"error": 18}
        control.driver("570.172.08")
        assert nvml.ask("nvmlInit()") is None
        assert nvml.ask("nvmlSystemGetDriverVersion()") == "570.172.08"
        control.path.unlink()
        assert nvml.ask("nvmlShutdown()") is None
        assert nvml.ask("nvmlInit()") == {"error": 9}
    finally:
        nvml.process.kill()
        nvml.process.communicate()


@pytest.mark.parametrize("gpu", [None, 3])
def test_a_hung_call_ends_only_by_kill(nvml: Nvml, control: NvmlControl, gpu: int | None) -> None:
    nvml.ask("__import__('signal').signal(2, lambda *_: print('never'))")
    control.hang(gpu)
    assert nvml.ask("print(1, flush=True) or nvmlDeviceGetTemperature(gpu(3), 0)") == 1
    with pytest.raises(subprocess.TimeoutExpired):
        nvml.process.wait(0.2)
    nvml.process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        nvml.process.wait(0.3)
    control.well()
    with pytest.raises(subprocess.TimeoutExpired):
        nvml.process.wait(0.1)
    nvml.process.kill()
    assert nvml.process.communicate()[0] == ""


def test_one_hung_gpu_leaves_the_others(nvml: Nvml, control: NvmlControl) -> None:
    control.hang(3)
    assert nvml.ask("nvmlDeviceGetTemperature(gpu(2), 0)") > 20


def test_a_crash(nvml: Nvml, control: NvmlControl) -> None:
    nvml.ask("__import__('faulthandler').enable()")
    control.function("nvmlDeviceGetPowerUsage", "crash")
    assert nvml.ask("nvmlDeviceGetTemperature(gpu(2), 0)") > 20
    nvml.send("nvmlDeviceGetPowerUsage(gpu(2))")
    assert nvml.process.wait(10) == -signal.SIGSEGV


def test_slow_calls(nvml: Nvml, control: NvmlControl) -> None:
    control.slow(150, 1)
    timed = "(lambda t, h: [nvmlDeviceGetTemperature(h, 0), t() - b][1])(__import__('time').monotonic, gpu({}))"
    nvml.ask("globals().update(b=0)")
    began = nvml.ask("__import__('time').monotonic()")
    assert nvml.ask(timed.format(1)) - began >= 0.3  # the handle and the value


def test_the_library_is_built_once_even_by_several_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        built = set(pool.map(build, [tmp_path] * 3))
    (library,) = built
    before = library.stat().st_mtime_ns
    assert build(tmp_path) == library
    assert library.stat().st_mtime_ns == before
    assert [path.name for path in library.parent.iterdir()] == ["libnvidia-ml.so.1"]


def test_two_controls_on_one_file_do_not_undo_each_other(control: NvmlControl, nvml: Nvml) -> None:
    other = NvmlControl(control.path)
    other.values(0, temp=70)
    control.values(1, temp=71)
    other.values(2, temp=72)
    assert nvml.ask("[nvmlDeviceGetTemperature(gpu(i), 0) for i in range(3)]") == [70, 71, 72]
