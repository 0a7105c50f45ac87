"""What a collective should reach on an instance type, and where each figure comes from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from cockpit.catalog.reader import load


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """The network of one instance type: `nic_gbs` is all EFA devices together, one direction."""

    name: str
    gpu: str
    gpus: int
    nics: int
    nic_gbs: float
    source: str


@dataclass(frozen=True, slots=True)
class Threshold:
    """Where a shape is good, doubtful and bad, in GB/s; None where no public number supports a line."""

    good_gbs: float | None
    warn_below_gbs: float | None
    fail_below_gbs: float | None
    min_size_bytes: int
    certain: bool
    source: str


@dataclass(frozen=True, slots=True)
class Published:
    """One public measurement; `busbw` as published, which may be a range."""

    busbw: str
    what: str
    source: str
    before_nccl: tuple[int, ...] = ()

    @property
    def lowest_gbs(self) -> float:
        """The figure, or the low end of the range."""
        return float(self.busbw.split("-")[0])


@cache
def network_facts(instance_type: str) -> NetworkFacts | None:
    """The network of `p5.48xlarge`; None for a type that is not in the catalogue."""
    entry = load("nccl_expected")["types"].get(instance_type)
    return None if entry is None else NetworkFacts(name=instance_type, **entry)


def type_of_gpu(name: str) -> str:
    """The type that eight GPUs of this name in a node stand for, or ""."""
    return next((kind for gpu, kind in load("nccl_expected")["gpus"].items() if gpu in name.split("-")[0].split()), "")


def type_of_platform(name: str) -> str:
    """The type that NCCL's plugin means by a platform's name, or ""."""
    known: str = load("nccl_expected")["platforms"].get(name, "")
    return known or (name if "." in name and name.endswith("xlarge") else "")


def threshold(instance_type: str, nodes: int, collective: str, algorithm: str) -> Threshold | None:
    """The catalogue's lines for a shape; None where it has none."""
    for entry in load("nccl_expected")["thresholds"]:
        if _fits(entry, instance_type, nodes, collective) and entry["algorithm"] in ("any", algorithm):
            return Threshold(
                good_gbs=entry.get("good"),
                warn_below_gbs=entry.get("warn_below"),
                fail_below_gbs=entry.get("fail_below"),
                min_size_bytes=entry["min_size_mib"] * 2**20,
                certain=entry["certain"],
                source=entry["source"],
            )
    return None


def _fits(entry: dict[str, Any], instance_type: str, nodes: int, collective: str) -> bool:
    fewest, most = entry["nodes"]
    return (
        instance_type in entry["types"]
        and collective == entry["collective"]
        and fewest <= nodes
        and (nodes <= most or most == 0)
    )


def published(instance_type: str, nodes: int, collective: str) -> tuple[Published, ...]:
    """Public measurements of that shape."""
    return tuple(
        Published(
            busbw=entry["busbw"],
            what=entry["what"],
            source=entry["source"],
            before_nccl=tuple(int(part) for part in entry.get("before_nccl", "").split(".") if part),
        )
        for entry in load("nccl_expected")["published"]
        if instance_type in entry["types"] and nodes == entry["nodes"] and collective == entry["collective"]
    )


def without_nvls(gpu: str, busbw_gbs: float) -> bool:
    """True when one node with these GPUs reaches what it does without NVLS, and no more."""
    entry = load("nccl_expected")["without_nvls"]
    return gpu in entry["gpus"] and entry["from_gbs"] <= busbw_gbs <= entry["to_gbs"]


def suspect_share() -> float:
    """The share of the NIC peak below which several nodes hardly used EFA."""
    share: float = load("nccl_expected")["suspect_share"]
    return share
