"""What an EC2 instance type has, for when EC2 cannot be asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cockpit.catalog.reader import load


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One instance type; what is not known is None, and `efa` or `link_gb_s` 0 means that there is none."""

    name: str
    accelerator: str
    count: int
    mem_mib: int | None = None  # of one accelerator; nvidia-smi shows a few per cent less
    vcpus: int | None = None
    efa: int | None = None
    network_gbps: int | None = None
    nvme: str = ""  # disks and size in GB: 8x3800
    ram_gib: int | None = None
    link_gb_s: int | None = None  # GPU to GPU inside the node, both directions together


@cache
def instance_type(name: str) -> InstanceType | None:
    """The facts about `p5.48xlarge`; None for a type that is not in the catalogue."""
    entry = load("instance_types")["types"].get(name)
    return None if entry is None else InstanceType(name=name, **entry)


def known_instance_types() -> tuple[str, ...]:
    """Every type of the catalogue, in its order."""
    return tuple(load("instance_types")["types"])
