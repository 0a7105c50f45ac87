"""What nvidia-smi prints, from whatever libnvidia-ml.so.1 is found. Run as a file, standard library only.

Texts and exit statuses are those of NVIDIA's program, as its manual and public logs of it show them.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.rig.nvml.smi_fields import GPU_FIELDS, PROCESS_FIELDS, REMAP_FIELDS, Field, Refused, text
else:
    # It runs from a copy, beside a copy of that module.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from smi_fields import GPU_FIELDS, PROCESS_FIELDS, REMAP_FIELDS, Field, Refused, text

OK, BAD_ARGUMENT, NOT_FOUND, DRIVER_NOT_LOADED, NO_LIBRARY, LOST, MISMATCH = 0, 2, 6, 9, 12, 15, 18
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n"
)
LIBRARY_ABSENT = (
    "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display "
    "Driver is properly installed and present in your system.\nPlease also try adding directory that contains "
    "libnvidia-ml.so to your system PATH."
)
Device = ctypes.c_void_p


class Ended(Exception):  # noqa: N818  (it may end well)
    """The program says this and ends with that status."""

    def __init__(self, status: int, words: str = "") -> None:
        super().__init__(words)
        self.status, self.words = status, words


def main(argv: Sequence[str]) -> int:
    try:
        run(argv)
    except Ended as ended:
        if ended.words:
            show(ended.words)
        return ended.status
    return OK


def run(argv: Sequence[str]) -> None:
    options = dict(arg.partition("=")[::2] for arg in argv)
    style = options.get("--format", "csv").split(",")
    queries: dict[str, Callable[[], None]] = {
        "-L": lambda: list_gpus(start()),
        "--list-gpus": lambda: list_gpus(start()),
        "--help-query-gpu": help_query_gpu,
        "--query-gpu": lambda: per_gpu(options["--query-gpu"], GPU_FIELDS, style),
        "--query-remapped-rows": lambda: per_gpu(options["--query-remapped-rows"], REMAP_FIELDS, style),
        "--query-compute-apps": lambda: per_process(options["--query-compute-apps"], style),
    }
    for option in options:
        if option in queries:
            return queries[option]()
    known = {"--format"}
    wrong = next((option for option in options if option not in known), "")
    if wrong:
        raise Ended(
            BAD_ARGUMENT, f"Invalid combination of input arguments. Please run 'nvidia-smi -h' for help. ({wrong})"
        )
    summary(start())
    return None


def start() -> ctypes.CDLL:
    """The library, initialized; Ended with what the real program says when that fails."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        raise Ended(NO_LIBRARY, LIBRARY_ABSENT) from None
    nvml.nvmlErrorString.restype = ctypes.c_char_p
    code = nvml.nvmlInit_v2()
    if code == DRIVER_NOT_LOADED:
        raise Ended(DRIVER_NOT_LOADED, NO_DRIVER)
    if code:
        said = nvml.nvmlErrorString(code).decode()
        version = f"\nNVML library version: {_branch(nvml)}" if code == MISMATCH else ""
        raise Ended(code if code < 100 else 255, f"Failed to initialize NVML: {said}{version}")
    return nvml


def _branch(nvml: ctypes.CDLL) -> str:
    return ".".join(text(nvml.nvmlSystemGetNVMLVersion).split(".")[1:3])


def devices(nvml: ctypes.CDLL) -> list[Device]:
    """All handles. One that cannot be had ends the program, and then no GPU is shown at all."""
    count = ctypes.c_uint()
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    if count.value == 0:
        raise Ended(NOT_FOUND, "No devices were found")
    found = []
    for index in range(count.value):
        device = Device()
        code = nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
        if code:
            raise Ended(LOST if code == LOST else 255, _no_handle(nvml, index, code))
        found.append(device)
    return found


def _no_handle(nvml: ctypes.CDLL, index: int, code: int) -> str:
    said = (
        "GPU is lost.  Reboot the system to recover this GPU" if code == LOST else nvml.nvmlErrorString(code).decode()
    )
    return f"Unable to determine the device handle for GPU {_place(index)}: {said}"


def _place(index: int) -> str:
    """Where the GPU was: NVML tells no more, so the control file is asked."""
    path = os.environ.get("NVML_STAND_IN") or "/run/nvml-stand-in.state"
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.split() for line in file]
    gone = {words[0] for words in lines if words[1:] == ["missing", "1"]}
    places = [words[2] for words in lines if words[1:2] == ["bus_id"] and words[0] not in gone]
    return places[index][4:] if index < len(places) else "0000:00:00.0"


def list_gpus(nvml: ctypes.CDLL) -> None:
    for index, device in enumerate(devices(nvml)):
        name, uuid = text(nvml.nvmlDeviceGetName, device), text(nvml.nvmlDeviceGetUUID, device)
        show(f"GPU {index}: {name} (UUID: {uuid})")
        for place in range(16):
            part = Device()
            if nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, place, ctypes.byref(part)) == 0:
                profile = text(nvml.nvmlDeviceGetName, part).rpartition("MIG ")[2]
                show(f"  MIG {profile}     Device  {place}: (UUID: {text(nvml.nvmlDeviceGetUUID, part)})")


def summary(nvml: ctypes.CDLL) -> None:
    """The table that a bare nvidia-smi prints, without its frame."""
    devices(nvml)
    show(f"NVIDIA-SMI {text(nvml.nvmlSystemGetDriverVersion)}")
    list_gpus(nvml)


def help_query_gpu() -> None:
    show('List of valid properties to query for the switch "--query-gpu=":\n')
    for name in GPU_FIELDS:
        show(f'"{name}"\n')


def chosen(wish: str, known: dict[str, Field]) -> list[Field]:
    """The asked fields; one that is unknown makes the whole query fail."""
    for name in wish.split(","):
        if name.strip() not in known:
            raise Ended(BAD_ARGUMENT, f'Field "{name.strip()}" is not a valid field to query.\n')
    return [known[name.strip()] for name in wish.split(",")]


def per_gpu(wish: str, known: dict[str, Field], style: Sequence[str]) -> None:
    fields = chosen(wish, known)
    nvml = start()
    rows = [[cell(field, nvml, device, style) for field in fields] for device in devices(nvml)]
    table(fields, rows, style)


def per_process(wish: str, style: Sequence[str]) -> None:
    fields = chosen(wish, PROCESS_FIELDS)
    nvml = start()
    rows = []
    for device in devices(nvml):
        for process in processes(nvml, device):
            rows.append([cell(field, nvml, device, style, process) for field in fields])
    table(fields, rows, style)


class Process(ctypes.Structure):
    """nvmlProcessInfo_t, version 2 and 3."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


def processes(nvml: ctypes.CDLL, device: Device) -> list[Process]:
    room = ctypes.c_uint(64)
    found = (Process * room.value)()
    code = nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(room), found)
    return list(found[: room.value]) if code == 0 else []


def cell(field: Field, nvml: ctypes.CDLL, device: Device, style: Sequence[str], process: object = None) -> str:
    try:
        value = field.read(nvml, device, process)
    except Refused as refused:
        return refused.shown()
    return value if "nounits" in style or not field.unit else f"{value} {field.unit}"


def table(fields: Sequence[Field], rows: Sequence[Sequence[str]], style: Sequence[str]) -> None:
    if "noheader" not in style:
        show(", ".join(f"{field.name} [{field.unit}]" if field.unit else field.name for field in fields))
    for row in rows:
        show(", ".join(row))


def show(line: str) -> None:
    # Names may hold bytes that are no text; they are passed on as they are.
    sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
