"""What every simulated program is handed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.demo.sim import Simulation


@dataclass(frozen=True, slots=True)
class Call:
    """One invocation: argv without the program's name, its environment, and the machine it runs on."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    host: str
    sim: Simulation  # locked and current while a handler runs
    root: bool = False  # behind sudo
