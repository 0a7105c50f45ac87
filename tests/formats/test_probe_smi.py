"""nvidia-smi's CSV with the odd values that real drivers print."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.probe import ProbeReader
from cockpit.formats.probe_smi import bus_id, read_smi
from cockpit.gpu_models import DriverState, GpuSample, Lack, Missing, NodeReading
from cockpit.probe.agent.smi import FIELDS

GOOD = (
    "{0}, GPU-{0}, 00000000:5{0}:00.0, NVIDIA A100-SXM4-40GB, 165, 535.183.01, Disabled, 40960, 1410, 4, 16, 93, 41, "
    "39000, 61, 74, 350.10, 1395, 0x0000000000000000, 400.00, 0, 0, 4, 16"
)
PLACE = {name: place for place, name in enumerate(FIELDS)}


def row(gpu: int = 0, **changes: str) -> str:
    cells = GOOD.format(gpu).split(", ")
    for name, text in changes.items():
        cells[PLACE[name.replace("__", ".")]] = text
    return ", ".join(cells)


def node(*answers: tuple[int, str], bus: tuple[str, ...] = ()) -> NodeReading:
    """The node after these answers of nvidia-smi: (exit status, text)."""
    reader = ProbeReader(now=lambda: 100.0)
    reader.feed(json.dumps({"k": "h", "v": 1, "rev": 0, "gpus": [], "pci": bus}).encode())
    found = None
    for number, (rc, out) in enumerate(answers):
        told = {"k": "s", "n": number, "t": 100.0 + number, "rev": 0, "dr": ["smi", 1, "", None]}
        found = reader.feed(json.dumps({**told, "c": {"f": list(FIELDS), "rc": rc, "out": out}}).encode())
    assert found is not None
    return found


def only(*answers: tuple[int, str]) -> GpuSample:
    [sample] = node(*answers).gpus
    return sample


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("N/A", Lack.UNSUPPORTED),
        ("[N/A]", Lack.UNSUPPORTED),
        ("[Not Supported]", Lack.UNSUPPORTED),
        ("(Not Supported)", Lack.UNSUPPORTED),
        ("Not Supported", Lack.UNSUPPORTED),
        ("[Requested functionality has been deprecated]", Lack.UNSUPPORTED),
        ("[Unknown Error]", Lack.LOST),
        ("Unknown Error", Lack.LOST),
        ("[GPU is lost]", Lack.LOST),
        ("ERR!", Lack.LOST),
        ("[GPU requires reset]", Lack.LOST),
        ("[Insufficient Permissions]", Lack.DENIED),
        ("", Lack.FAILED),
        ("many watts", Lack.FAILED),
        ("nan", Lack.FAILED),
    ],
)
def test_words_in_one_field(text: str, kind: Lack) -> None:
    sample = only((0, row(power__draw=text)))
    assert isinstance(sample.power_w, Missing)
    assert sample.power_w.kind is kind
    assert sample.lost is None  # one field says nothing about the GPU
    assert sample.util_pct == 93


def test_errors_in_most_fields_are_a_lost_gpu() -> None:
    names = (
        "utilization.gpu",
        "utilization.memory",
        "memory.used",
        "temperature.gpu",
        "power.draw",
        "clocks.current.sm",
    )
    broken = {name.replace(".", "__"): "[Unknown Error]" for name in names}
    found = node((0, f"{row(0)}\n{row(1)}"), (0, f"{row(0)}\n{row(1, **broken)}"))
    assert [sample.lost is None for sample in found.gpus] == [True, False]
    assert found.gpus[1].util_pct == 93


def test_rows_with_too_few_or_too_many_cells_are_not_shifted() -> None:
    short = row(1).rpartition(", ")[0]
    found = node((0, f"{row(0)}\n{row(1)}"), (0, f"{row(0)}\n{short}"))
    assert [sample.taken_at for sample in found.gpus] == [101.0, 100.0]
    # The cut line may have been that GPU: it is not called lost.
    assert found.gpus[1].lost is None


def test_a_gpu_that_is_no_longer_listed_keeps_its_row() -> None:
    found = node((0, f"{row(0)}\n{row(1)}"), (0, row(1, index="0")))
    assert [sample.gpu.key for sample in found.gpus] == ["GPU-0", "GPU-1"]
    assert found.gpus[0].lost is not None
    assert found.gpus[0].lost.code == 28
    assert found.gpus[1].gpu.index == 0


def test_a_gpu_on_the_bus_that_is_not_listed_is_lost_once_all_rows_are_there() -> None:
    bus = ("0000:50:00", "0000:51:00")
    assert [sample.lost and sample.lost.code for sample in node((0, row(0)), (0, row(0)), bus=bus).gpus] == [None, 28]
    cut = row(1).rpartition(", ")[0]
    assert [sample.lost for sample in node((0, f"{row(0)}\n{cut}"), bus=bus).gpus] == [None]


def test_one_gpu_without_handle_says_nothing_about_the_others() -> None:
    text = (
        "Unable to determine the device handle for GPU0000:51:00.0: GPU is lost.  Reboot the system to recover this GPU"
    )
    found = node((0, f"{row(0)}\n{row(1)}"), (15, text.replace("GPU0000", "GPU 0000")))
    assert [sample.lost is None for sample in found.gpus] == [True, False]
    assert found.gpus[0].taken_at == 100.0
    assert found.driver.state is DriverState.FAILED
    again = node((0, f"{row(0)}\n{row(1)}"), (15, text))  # newer drivers print no blank
    assert [sample.lost is None for sample in again.gpus] == [True, False]


def test_mismatch_does_not_wipe_out_what_was_known() -> None:
    found = node(
        (0, row(0)), (18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550")
    )
    assert (found.driver.state, found.driver.code) == (DriverState.FAILED, 18)
    assert found.gpus[0].util_pct == 93


@pytest.mark.parametrize("status", [14, 15, 8, 10, 4, 255, 3])
def test_exit_statuses_have_words(status: int) -> None:
    found = node((status, ""))
    assert found.driver.state is DriverState.FAILED
    assert found.driver.why


def test_mig_and_unified_memory() -> None:
    mig = only((0, row(mig__mode__current="Enabled", utilization__gpu="[N/A]")))
    assert mig.gpu.mig is True
    assert isinstance(mig.util_pct, Missing)
    assert only((0, row(mig__mode__current="[N/A]"))).gpu.mig is None
    assert only((0, row(memory__total="0"))).gpu.unified_memory
    assert not only((0, row(memory__total="[N/A]"))).gpu.unified_memory


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("00000000:61:00.0", "0000:61:00"),
        ("0008:01:00.0", "0008:01:00"),
        ("C1:00.0", "0000:c1:00"),
        ("x", ""),
        ("", ""),
    ],
)
def test_bus_ids(raw: str, shown: str) -> None:
    assert bus_id(raw) == shown


@given(st.text(max_size=400), st.integers(-300, 300))
def test_any_text_is_read(out: str, rc: int) -> None:
    reading = read_smi(list(FIELDS), rc, out)
    assert len(reading.entries) == len(reading.fast) == len(reading.slow)
