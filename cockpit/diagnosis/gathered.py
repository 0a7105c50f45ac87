"""What was gathered of one job, as it came: what a bundle keeps, and what evidence is read from. JSON and back."""

from __future__ import annotations

import base64
import zlib
from dataclasses import asdict, dataclass, replace
from typing import Any

from cockpit.formats.sweep import unpacked
from cockpit.text import printable

VERSION = 1
_MAX_NODES, _MAX_LOGS, _MAX_GPUS, _MAX_LINES = 4096, 64, 65_536, 20_000


@dataclass(frozen=True, slots=True)
class GatheredNode:
    """One node: the lines of its look, when it was asked and answered (our clock), or why it was not read."""

    name: str
    lines: tuple[bytes, ...] = ()
    asked_at: float | None = None
    answered_at: float | None = None
    fault: str = ""
    next_step: str = ""
    state: str = ""  # Slurm's, as a plain word
    reason: str = ""

    @property
    def answered(self) -> bool:
        """True once it has told everything."""
        return bool(self.lines) and b'"k":"e"' in self.lines[-1]


@dataclass(frozen=True, slots=True)
class GatheredLog:
    """The end of one of the job's own files; `grown` tells whether it grew while we looked."""

    path: str
    where: str = ""
    stream: str = ""
    data: bytes = b""
    size: int | None = None
    age_s: float | None = None
    whole: bool = False
    grown: bool | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class GatheredGpu:
    """One GPU of the job's nodes. `usual_power_w` is the median of its last ten minutes."""

    node: str
    slot: int
    util_pct: float | None = None
    mem_util_pct: float | None = None
    mem_used_mib: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    usual_power_w: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    temp_c: float | None = None
    lost: str = ""
    throttle: tuple[str, ...] = ()
    trouble: tuple[str, ...] = ()  # findings that are critical, in words
    pids: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    live: bool = False


@dataclass(frozen=True, slots=True)
class GatheredEfa:
    """What EFA's error counters of a node grew by since `since`: (counter, by how much). () is none."""

    node: str
    since: float
    grown: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Gathered:
    """All of it. `missing` are (what, why) that could not be read; times are on our clock."""

    job: str
    cluster: str = ""
    taken_at: float = 0.0
    took_s: float = 0.0
    head_ahead_s: float = 0.0
    job_text: bytes = b""
    step_text: bytes = b""
    nodes: tuple[GatheredNode, ...] = ()
    logs: tuple[GatheredLog, ...] = ()
    gpus: tuple[GatheredGpu, ...] = ()
    efa: tuple[GatheredEfa, ...] = ()
    ras: tuple[bytes, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    whole: bool = False

    def with_node(self, node: GatheredNode) -> Gathered:
        """The same, with what that node has told by now."""
        return replace(self, nodes=tuple(node if each.name == node.name else each for each in self.nodes))


def gathered_json(gathered: Gathered) -> dict[str, Any]:
    """Everything as one object; bytes are text where they are UTF-8."""
    return {"version": VERSION, **_plain(asdict(gathered))}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"z": base64.b64encode(zlib.compress(value)).decode()}
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def gathered_from(told: Any) -> Gathered:
    """The reverse; raises ValueError for what is none."""
    if not isinstance(told, dict) or told.get("version") != VERSION:
        raise ValueError("it is no bundle of this version")
    try:
        return Gathered(
            job=_text(told["job"]),
            cluster=_text(told["cluster"]),
            taken_at=float(told["taken_at"]),
            took_s=float(told["took_s"]),
            head_ahead_s=float(told["head_ahead_s"]),
            job_text=_bytes(told["job_text"]),
            step_text=_bytes(told["step_text"]),
            nodes=tuple(_node(each) for each in told["nodes"][:_MAX_NODES]),
            logs=tuple(_log(each) for each in told["logs"][:_MAX_LOGS]),
            gpus=tuple(_gpu(each) for each in told["gpus"][:_MAX_GPUS]),
            efa=tuple(_efa(each) for each in told.get("efa", ())[:_MAX_NODES]),
            ras=tuple(_bytes(each) for each in told["ras"][:8]),
            missing=tuple((_text(row[0]), _text(row[1])) for row in told["missing"][:1000]),
            whole=bool(told["whole"]),
        )
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"it is damaged: {type(error).__name__} {error}") from None


def _node(told: dict[str, Any]) -> GatheredNode:
    return GatheredNode(
        name=_text(told["name"]),
        lines=tuple(_bytes(line) for line in told["lines"][:_MAX_LINES]),
        asked_at=_number(told["asked_at"]),
        answered_at=_number(told["answered_at"]),
        fault=_text(told["fault"]),
        next_step=_text(told["next_step"]),
        state=_text(told["state"]),
        reason=_text(told["reason"]),
    )


def _log(told: dict[str, Any]) -> GatheredLog:
    size, grown = told["size"], told["grown"]
    return GatheredLog(
        path=_text(told["path"]),
        where=_text(told["where"]),
        stream=_text(told["stream"]),
        data=_bytes(told["data"]),
        size=int(size) if isinstance(size, int) else None,
        age_s=_number(told["age_s"]),
        whole=bool(told["whole"]),
        grown=grown if isinstance(grown, bool) else None,
        why=_text(told["why"]),
    )


def _efa(told: dict[str, Any]) -> GatheredEfa:
    grown = tuple((_text(name), int(count)) for name, count in told["grown"][:64])
    return GatheredEfa(_text(told["node"]), float(told["since"]), grown)


_NUMBERS = (
    "util_pct", "mem_util_pct", "mem_used_mib", "power_w", "power_limit_w", "usual_power_w", "sm_clock_mhz",
    "sm_clock_max_mhz", "temp_c",
)  # fmt: skip


def _gpu(told: dict[str, Any]) -> GatheredGpu:
    return GatheredGpu(
        node=_text(told["node"]),
        slot=int(told["slot"]),
        lost=_text(told["lost"]),
        throttle=tuple(map(_text, told["throttle"])),
        trouble=tuple(map(_text, told["trouble"])),
        pids=tuple(int(pid) for pid in told["pids"]),
        ranks=tuple(int(rank) for rank in told["ranks"]),
        live=bool(told["live"]),
        **{name: _number(told[name]) for name in _NUMBERS},
    )


def _text(value: Any) -> str:
    return printable(str(value))[:4000]


def _bytes(value: Any) -> bytes:
    return unpacked(value["z"]) if isinstance(value, dict) else str(value).encode("utf-8", "surrogatepass")


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
