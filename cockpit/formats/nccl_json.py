"""The file that nccl-tests writes with -J (2.17.3 and later), also one that breaks off."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from cockpit.formats.errors import FormatError
from cockpit.formats.nccl_env import redact
from cockpit.formats.nccl_failures import FailureReader
from cockpit.formats.nccl_tests import MAX_RANKS, MAX_ROWS
from cockpit.nccl.models import (
    COLLECTIVES,
    IterationTimes,
    NcclFooter,
    NcclRank,
    NcclRow,
    NcclRun,
    NcclVersions,
    Placement,
)
from cockpit.text import printable

MAX_BYTES = 64 * 2**20

# nccl-tests prints doubles with %lf, so an infinite one breaks the file.
_NO_NUMBER = re.compile(r"(?<=[:,\[])-?(?:inf|nan)(?=[,}\]])")
_NAME = re.compile(r"([a-z_]+)_perf(?:_[A-Za-z0-9]+)?$")
_PARAMETERS = {
    "nthreads": "nThread", "ngpus": "nGpus", "minimum_bytes": "minBytes", "maximum_bytes": "maxBytes",
    "step_factor": "step factor", "step_bytes": "step bytes", "warmup_iters": "warmup iters", "iterations": "iters",
    "aggregated_iterations": "agg iters", "validation": "validation", "graph": "graph",
}  # fmt: skip


def looks_like_json(start: str | bytes) -> bool:
    """True when the first characters can only be those of a -J file."""
    return start.lstrip()[:1] in ("{", b"{")


def parse_json(raw: str | bytes) -> NcclRun:
    """The run that a -J file tells; of a file that breaks off, what is there, without a footer.

    The environment in it is redacted. Raises FormatError for what is no such file, or is larger than 64 MiB.
    """
    if len(raw) > MAX_BYTES:
        raise FormatError("reading nccl-tests' JSON", f"larger than {MAX_BYTES // 2**20} MiB")
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    content = _load(_NO_NUMBER.sub("null", text))
    if not isinstance(content, dict) or not {"results", "config", "nccl_version", "args"} & set(content):
        raise FormatError("reading nccl-tests' JSON", "it is JSON, but not what nccl-tests -J writes")
    return _run(content)


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise FormatError("reading nccl-tests' JSON", "its values are nested too deeply") from None
    except ValueError:
        pass
    try:
        return json.loads(_mend(text))
    except (ValueError, RecursionError):
        raise FormatError("reading nccl-tests' JSON", "it is not valid JSON", text[:60]) from None


def _mend(text: str) -> str:
    """A text that breaks off, cut behind its last whole value and closed."""
    open_brackets: list[str] = []
    whole, closers = 0, ""
    inside = escaped = False
    for at, char in enumerate(text):
        if inside:
            inside = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            inside = True
        elif char in "{[":
            open_brackets.append("}" if char == "{" else "]")
        elif char in "}]" and open_brackets:
            open_brackets.pop()
            whole, closers = at + 1, "".join(reversed(open_brackets))
        elif char == ",":
            whole, closers = at, "".join(reversed(open_brackets))
    return text[:whole] + closers


def _run(content: Mapping[str, Any]) -> NcclRun:
    config = _dict(content.get("config"))
    args = [printable(str(word)[:200]) for word in _list(content.get("args"))[:200]]
    env, hidden = redact(_variables(content.get("env")))
    devices = _list(config.get("devices")) or _list(content.get("devices"))
    footer = _footer(content)
    failures = FailureReader()
    for error in _list(content.get("errors"))[:50]:
        failures.feed(f"# error: {error}")
    return NcclRun(
        collective=_collective(args),
        parameters=_parameters(config),
        ranks=tuple(_rank(_dict(each)) for each in devices[:MAX_RANKS]),
        ranks_cut=bool(devices),  # one entry a process, whatever the number of its GPUs
        versions=NcclVersions(nccl=_version(content.get("nccl_version"))),
        rows=tuple(_row(_dict(each)) for each in _list(content.get("results"))[:MAX_ROWS]),
        rows_dropped=max(0, len(_list(content.get("results"))) - MAX_ROWS),
        footer=footer,
        # With a footer NCCL's last error is a left-over: the run went on after it.
        errors=() if footer is not None else failures.errors(),
        env=env,
        env_hidden=hidden,
    )


def _collective(args: list[str]) -> str:
    found = _NAME.search(args[0]) if args else None
    return found[1] if found and found[1] in COLLECTIVES else ""


def _parameters(config: Mapping[str, Any]) -> dict[str, int]:
    found = {shown: _int(config.get(key)) for key, shown in _PARAMETERS.items()}
    return {key: value for key, value in found.items() if value is not None}


def _variables(raw: Any) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for each in _list(raw)[:10_000]:
        if isinstance(each, dict):
            pairs.append((str(each.get("name", "")), str(each.get("value", ""))))
        else:
            name, _, value = str(each).partition("=")
            pairs.append((name, value))
    return pairs


def _version(raw: Any) -> str:
    number = _int(raw)
    if number is None or not 0 < number < 10**6:
        return ""
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _rank(entry: Mapping[str, Any]) -> NcclRank:
    return NcclRank(
        rank=_int(entry.get("rank")) or 0,
        group=_int(entry.get("group")),
        pid=_int(entry.get("pid")) or 0,
        host=printable(str(entry.get("hostname", ""))[:255]),
        device=_int(entry.get("device")) or 0,
        pci=printable(str(entry.get("device_hex", ""))[:32]),
        gpu=printable(str(entry.get("device_info", ""))[:80].strip()),
    )


def _row(entry: Mapping[str, Any]) -> NcclRow:
    return NcclRow(
        size_bytes=_int(entry.get("size")) or 0,
        count=_int(entry.get("count")) or 0,
        dtype=printable(str(entry.get("type", ""))[:20]),
        redop=printable(str(entry.get("redop", ""))[:20]),
        root=_int(entry.get("root")),
        out_of_place=_placement(entry, "out_of_place"),
        in_place=_placement(entry, "in_place"),
    )


def _placement(entry: Mapping[str, Any], key: str) -> Placement | None:
    half = _dict(entry.get(key))
    if not half:
        return None
    spread = _dict(entry.get(f"{key}_per_iter"))
    names = ("min_us", "max_us", "p99_us", "cv_pct")
    wrong = _float(half.get("nwrong"))
    return Placement(
        time_us=_float(half.get("time", half.get("cpu_time"))),
        algbw_gbs=_float(half.get("alg_bw")),
        busbw_gbs=_float(half.get("bus_bw")),
        wrong=None if wrong is None else round(wrong),
        iterations=IterationTimes(*(_float(spread.get(name)) for name in names)) if spread else None,
    )


def _footer(content: Mapping[str, Any]) -> NcclFooter | None:
    bounds = _dict(content.get("out_of_bounds"))
    average = _dict(content.get("average_bus_bandwidth") or content.get("average_bus_bandwidith"))
    if not average:
        return None
    return NcclFooter(
        out_of_bounds=_int(bounds.get("count")),
        out_of_bounds_ok=_bool(bounds.get("okay")),
        average_gbs=_float(average.get("bandwidth", average.get("bandwidith"))),
        average_ok=_bool(average.get("okay")),
    )


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _bool(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value) if isinstance(value, str) else None


def _float(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _int(value: Any) -> int | None:
    number = _float(value)
    return None if number is None or abs(number) > 2**63 else int(number)
