"""Answers of Prometheus with dcgm-exporter's series, as readings of GPUs; what is missing stays missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cockpit.formats.errors import FormatError
from cockpit.formats.prometheus import Series, parse_answer, read_machines, xid_events
from cockpit.gpu_models import NOT_READ, Lack, Missing

T = 1_764_500_000.0


def series(name: str, value: object, gpu: int = 0, **labels: str) -> dict[str, Any]:
    about = {
        "__name__": f"DCGM_FI_DEV_{name}", "gpu": str(gpu), "UUID": f"GPU-{gpu}", "device": f"nvidia{gpu}",
        "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "p5-1", "pci_bus_id": f"00000000:{0x53 + gpu:02X}:00.0",
    }  # fmt: skip
    return {"metric": {**about, **labels}, "value": [T, str(value)]}


def answer(*found: dict[str, Any], kind: str = "vector") -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": list(found)}}).encode()


def times(*gpus: int, at: float = T - 12) -> tuple[Series, ...]:
    return parse_answer(answer(*(series("", at, gpu, __name__="") for gpu in gpus)))


def test_a_gpu_with_what_the_usual_file_collects() -> None:
    told = parse_answer(
        answer(
            series("GPU_UTIL", 97), series("MEM_COPY_UTIL", 41), series("FB_USED", 70000), series("FB_FREE", 11000),
            series("FB_RESERVED", 559), series("GPU_TEMP", 61), series("MEMORY_TEMP", 0), series("POWER_USAGE", 688.4),
            series("SM_CLOCK", 1755), series("XID_ERRORS", 0), series("CLOCK_THROTTLE_REASONS", 0x40),
        )
    )  # fmt: skip
    (machine,) = read_machines(told, times(0), ("Hostname",))
    (sample,) = machine.gpus
    assert (machine.label, machine.taken_at, sample.taken_at) == ("p5-1", T - 12, T - 12)
    assert (sample.util_pct, sample.temp_c, sample.power_w, sample.mem_used_mib) == (97, 61, 688.4, 70000)
    assert sample.gpu.mem_total_mib == 81559
    assert (sample.gpu.pci, sample.gpu.minor, sample.gpu.key) == ("0000:53:00", 0, "GPU-0")
    assert sample.throttle
    assert isinstance(sample.hbm_temp_c, Missing)  # this exporter gives 0 for memory without a thermometer
    assert sample.ecc_uncorrected is NOT_READ  # not collected, which is not none
    assert sample.slow_at is None


def test_the_memory_is_not_guessed_without_its_reserved_part() -> None:
    told = parse_answer(answer(series("FB_USED", 70000), series("FB_FREE", 11000)))
    assert read_machines(told, times(0), ("Hostname",))[0].gpus[0].gpu.mem_total_mib is NOT_READ


@pytest.mark.parametrize("blank", [2147483632, 2147483634, 140737488355328.0, 0x7FFFFFFFFFFFFFF0])
def test_blanks_of_dcgm_are_no_numbers(blank: float) -> None:
    told = parse_answer(answer(series("POWER_USAGE", blank)))
    value = read_machines(told, times(0), ("Hostname",))[0].gpus[0].power_w
    assert isinstance(value, Missing)
    assert value.kind is Lack.UNSUPPORTED


def test_nothing_is_said_of_a_gpu_without_a_time() -> None:
    told = parse_answer(answer(series("GPU_UTIL", 97), series("GPU_UTIL", 5, 1)))
    first, second = read_machines(told, times(1), ("Hostname",))[0].gpus
    assert first.taken_at is None
    assert first.util_pct is NOT_READ
    assert second.util_pct == 5


def test_slices_say_nothing_of_the_whole_gpu() -> None:
    told = parse_answer(answer(series("FB_USED", 9000, GPU_I_ID="3"), series("GPU_TEMP", 50)))
    (sample,) = read_machines(told, times(0), ("Hostname",))[0].gpus
    assert sample.gpu.mig
    assert sample.mem_used_mib is NOT_READ
    assert sample.temp_c == 50


def test_the_label_that_names_the_node_can_be_chosen() -> None:
    told = parse_answer(answer(series("GPU_TEMP", 50, node="gpu-9", Hostname="")))
    assert read_machines(told, (), ("Hostname", "node"))[0].label == "gpu-9"
    assert read_machines(told, (), ("instance",)) == ()


def test_a_change_of_the_gauge_is_an_xid_and_its_first_value_none() -> None:
    history = [Series({"UUID": "GPU-0"}, ((T, 31.0), (T + 300, 31.0), (T + 600, 79.0), (T + 900, 0.0)))]
    (event,) = xid_events(history, T)
    assert (event.at, event.gpu, event.data) == (T + 600, "GPU-0", 79)


@pytest.mark.parametrize(
    "raw",
    [b"", b"<html>", b"[]", b'{"status":"error","error":"bad \\u001b[31m selector"}', b'{"status":"success","data":3}'],
)
def test_what_is_no_answer_is_told(raw: bytes) -> None:
    with pytest.raises(FormatError) as error:
        parse_answer(raw)
    assert "\x1b" not in error.value.fault.line()


def test_odd_numbers_are_none() -> None:
    told = parse_answer(answer(*(series("GPU_TEMP", word) for word in ("NaN", "+Inf", "", "x"))))
    assert [one.points for one in told] == [(), (), (), ()]
