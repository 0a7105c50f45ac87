"""Prometheus' HTTP API with the series of NVIDIA's dcgm-exporter -> readings of GPUs.

Facts: sentinels of DCGM for a value that is not there (dcgm_structs.h); DCGM_FI_DEV_XID_ERRORS is a gauge of the last
code that never resets, so a code without a change tells nothing of when.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cockpit.formats.errors import FormatError
from cockpit.formats.probe_gpus import throttle_words
from cockpit.gpu_models import NOT_READ, Gpu, GpuEvent, GpuSample, Lack, Missing, Value
from cockpit.text import cut, printable

PREFIX = "DCGM_FI_DEV_"
MAX_SERIES = 1_000_000
XID = "XID_ERRORS"
# Field of DCGM -> attribute of GpuSample. What is not collected (the usual file has few) stays not read.
FAST = {
    "GPU_UTIL": "util_pct",
    "MEM_COPY_UTIL": "mem_util_pct",
    "FB_USED": "mem_used_mib",
    "GPU_TEMP": "temp_c",
    "MEMORY_TEMP": "hbm_temp_c",
    "POWER_USAGE": "power_w",
    "SM_CLOCK": "sm_clock_mhz",
    "CLOCK_THROTTLE_REASONS": "throttle_mask",
}
SLOW = {
    "POWER_MGMT_LIMIT": "power_limit_w",
    "ECC_SBE_VOL_TOTAL": "ecc_corrected",
    "ECC_DBE_VOL_TOTAL": "ecc_uncorrected",
    "ROW_REMAP_PENDING": "remap_pending",
    "ROW_REMAP_FAILURE": "remap_failed",
    "PCIE_LINK_GEN": "pcie_gen",
    "PCIE_LINK_WIDTH": "pcie_width",
}
_MEMORY = ("FB_TOTAL", "FB_FREE", "FB_RESERVED")
FIELDS = (*FAST, *SLOW, *_MEMORY, XID)
KEY_LABELS = ("UUID", "gpu", "pci_bus_id", "GPU_I_ID")  # which GPU it is, or which slice of one
GPU_LABELS = (*KEY_LABELS, "device", "modelName")
_BLANK = Missing(Lack.UNSUPPORTED, "DCGM has no value")
_BLANK_32, _BLANK_32_END, _BLANK_64 = 0x7FFFFFF0, 0x7FFFFFFF, 140737488355328.0
_WHAT = "reading Prometheus' answer"
# How an answer begins, up to its list of series.
_HEAD = re.compile(
    r'\s*\{\s*"status"\s*:\s*"success"\s*,\s*"data"\s*:\s*\{\s*"resultType"\s*:\s*"\w+"\s*,'
    r'\s*"result"\s*:\s*\['
)
_BLANKS = re.compile(r"[ \t\n\r]*")
_BUS = re.compile(r"(?:0000)?([0-9A-Fa-f]{4}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})(?:\.[0-9])?")


@dataclass(frozen=True, slots=True)
class Series:
    """One time series; `points` are (seconds since the epoch, value), oldest first. Labels have passed `printable`."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Xid:
    """The code that a GPU's gauge shows."""

    gpu: str
    code: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What one node's exporter told: `taken_at` is when it was last scraped, by Prometheus' clock."""

    label: str
    taken_at: float | None = None
    gpus: tuple[GpuSample, ...] = ()
    xids: tuple[Xid, ...] = ()


def parse_answer(raw: bytes) -> tuple[Series, ...]:
    """The series of a vector or a matrix; raises FormatError for anything else, with Prometheus' own words.

    Read series by series: json holds the interpreter for the whole of a big answer, and no key would be heard.
    """
    seen: dict[Any, str] = {}  # most labels say the same in every series
    found: list[Series] = []
    try:
        text = raw.decode()
        if head := _HEAD.match(text):
            found, end = _series_from(text, head.end(), seen)
            text = text[: head.end()] + text[end:]
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise FormatError(_WHAT, "it is no JSON", raw[:80], "is it the address of a Prometheus?") from None
    rest = _result_of(told)
    return (*found, *(one for each in rest if (one := _series(each, seen)) is not None))


def _series_from(text: str, at: int, seen: dict[Any, str]) -> tuple[list[Series], int]:
    """The series of the list that begins here, and where its bracket closes; ValueError for what is no list."""
    decode, found = json.JSONDecoder().raw_decode, list[Series]()
    at = _after_blanks(text, at)
    if text[at : at + 1] == "]":
        return found, at
    while len(found) <= MAX_SERIES:
        raw, at = decode(text, _after_blanks(text, at))
        if (one := _series(raw, seen)) is not None:
            found.append(one)
        at = _after_blanks(text, at)
        if text[at : at + 1] != ",":
            break
        at += 1
    if text[at : at + 1] != "]":
        raise ValueError
    return found, at


def _after_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _result_of(told: Any) -> list[Any]:
    """The list below data and result; raises FormatError."""
    data = told.get("data") if isinstance(told, dict) else None
    if not isinstance(data, dict) or told.get("status") != "success":
        error = told.get("error") if isinstance(told, dict) else None
        raise FormatError(_WHAT, "it answers with an error", str(error or "no reason"))
    found = data.get("result")
    if data.get("resultType") not in ("vector", "matrix") or not isinstance(found, list) or len(found) > MAX_SERIES:
        raise FormatError(_WHAT, "it is neither a vector nor a matrix")
    return found


def _series(raw: Any, seen: dict[Any, str]) -> Series | None:
    labels = raw.get("metric") if isinstance(raw, dict) else None
    if not isinstance(labels, dict):
        return None
    points = raw.get("values") if "values" in raw else [raw.get("value")]
    told = [point for each in (points if isinstance(points, list) else ()) if (point := _point(each)) is not None]
    named = {_clean(key, seen): _clean(value, seen) for key, value in labels.items()}
    return Series(named, tuple(told))


def _clean(raw: Any, seen: dict[Any, str]) -> str:
    text = raw if isinstance(raw, str) else str(raw)
    found = seen.get(text)
    if found is None:
        found = seen[text] = printable(cut(text, 200))
    return found


def _point(raw: Any) -> tuple[float, float] | None:
    try:
        at, value = raw
        found = float(at), float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if all(math.isfinite(number) for number in found) else None


def value_of(number: float) -> Value:
    """A number of DCGM, or why it is none: the blanks of 32 and 64 bits and of floats."""
    return _BLANK if number >= _BLANK_64 or _BLANK_32 <= number <= _BLANK_32_END else number


def label_of(labels: Mapping[str, str], names: Sequence[str]) -> str:
    """The first of these labels that says anything: it names the node."""
    return next((labels[name] for name in names if labels.get(name)), "")


@dataclass
class _Told:
    """One GPU while its series come in."""

    labels: Mapping[str, str]
    values: dict[str, Value] = field(default_factory=dict)
    taken_at: float | None = None
    sliced: bool = False


def read_machines(values: Iterable[Series], times: Iterable[Series], names: Sequence[str]) -> tuple[Machine, ...]:
    """Every node that the series tell of, by `names`, the labels that may name it.

    `times` are series whose values are when a GPU was last scraped; a GPU without one has no time and no values.
    """
    told: dict[str, dict[str, _Told]] = {}
    for series in times:
        label, key = label_of(series.labels, names), _key(series.labels)
        if label and key and series.points:
            gpu = told.setdefault(label, {}).setdefault(key, _Told(series.labels))
            gpu.taken_at = max(gpu.taken_at or 0.0, series.points[-1][1])
    for series in values:
        _take(told, series, names)
    return tuple(_machine(label, gpus) for label, gpus in told.items())


def _take(told: dict[str, dict[str, _Told]], series: Series, names: Sequence[str]) -> None:
    label, name = label_of(series.labels, names), series.labels.get("__name__", "")
    key = _key(series.labels)
    if not label or not key or not name.startswith(PREFIX) or not series.points:
        return
    gpu = told.setdefault(label, {}).setdefault(key, _Told(series.labels))
    if series.labels.get("GPU_I_ID"):  # of one MIG slice: it says nothing of the whole GPU
        gpu.sliced = True
    else:
        gpu.values[name.removeprefix(PREFIX)] = value_of(series.points[-1][1])


def _key(labels: Mapping[str, str]) -> str:
    index = labels.get("gpu")
    return labels.get("UUID") or labels.get("pci_bus_id") or (f"#{index}" if index else "")


def _machine(label: str, told: Mapping[str, _Told]) -> Machine:
    order = sorted(told, key=lambda key: (_whole(told[key].labels.get("gpu", "")) or 0, key))
    samples = tuple(_sample(key, told[key]) for key in order)
    times = [sample.taken_at for sample in samples if sample.taken_at is not None]
    codes = {key: told[key].values.get(XID, NOT_READ) for key in order if told[key].taken_at is not None}
    xids = tuple(Xid(key, int(code)) for key, code in codes.items() if not isinstance(code, Missing) and code >= 0)
    return Machine(label, max(times, default=None), samples, xids)


def _sample(key: str, told: _Told) -> GpuSample:
    sample = GpuSample(_gpu(key, told))
    if told.taken_at is None:
        return sample
    read: dict[str, Any] = {name: told.values[of] for of, name in (FAST | SLOW).items() if of in told.values}
    if read.get("hbm_temp_c") == 0:  # what the exporter gives for memory without a thermometer
        read["hbm_temp_c"] = _BLANK
    slow_at = told.taken_at if any(of in told.values for of in SLOW) else None
    return replace(
        sample,
        taken_at=told.taken_at,
        slow_at=slow_at,
        throttle=throttle_words(read.get("throttle_mask", NOT_READ)),
        **read,
    )


def _gpu(key: str, told: _Told) -> Gpu:
    labels = told.labels
    bus = _BUS.fullmatch(labels.get("pci_bus_id", ""))
    device = labels.get("device", "").removeprefix("nvidia")
    return Gpu(
        key,
        index=_whole(labels.get("gpu", "")),
        minor=_whole(device),
        uuid=labels.get("UUID", ""),
        pci=":".join(bus.groups()).lower() if bus else "",
        name=labels.get("modelName", ""),
        mem_total_mib=_total(told.values),
        mig=True if told.sliced else None,
    )


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else None


def _total(values: Mapping[str, Value]) -> Value:
    """All of its memory: as told, or the sum of its three parts. Without the reserved part the sum would be wrong."""
    if "FB_TOTAL" in values:
        return values["FB_TOTAL"]
    parts = [values.get(name, NOT_READ) for name in ("FB_USED", "FB_FREE", "FB_RESERVED")]
    numbers = [part for part in parts if not isinstance(part, Missing)]
    return sum(numbers) if len(numbers) == len(parts) else NOT_READ


def xid_events(history: Iterable[Series], since: float) -> tuple[GpuEvent, ...]:
    """Each change of a gauge to a code, later than `since`: the first point of a series tells nothing of when."""
    found = []
    for series in history:
        for (_, before), (at, code) in zip(series.points, series.points[1:], strict=False):
            if code != before and code > 0 and at > since and not isinstance(value_of(code), Missing):
                found.append(GpuEvent(at, _key(series.labels), "xid", int(code)))
    return tuple(sorted(found, key=lambda event: event.at))
