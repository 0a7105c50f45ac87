"""Packs one look at a node for its checks, and the command line that takes it there, as the probe's bundle does.

What comes back is one JSON line, read by `cockpit.formats.look`. Nothing is installed or written on the node.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cockpit.probe.agent.options import DEFAULTS
from cockpit.probe.bundle import MODULES, START, modules_source, pynvml_packed
from cockpit.probe.look_fallback import fallback_script

PROTOCOL = 1
MODULES_OF_LOOK = ("parts", "look")  # after those of the probe


@dataclass(frozen=True, slots=True)
class Asking:
    """What one look asks: parts by name as the catalogue has them; `reading`: GPUs, mounts and kernel log as well.

    `driver` False leaves the GPU driver alone, for a node on which another reader of it hangs already.
    """

    parts: Mapping[str, Mapping[str, Any]]
    deadline_s: float
    reading: bool = False
    driver: bool = True
    options: Mapping[str, str] = field(default_factory=dict)


def look_argv(asking: Asking) -> list[str]:
    """The command for Host.run; raises ValueError for options that the agent does not know."""
    unknown = set(asking.options) - set(DEFAULTS)
    if unknown:
        raise ValueError(f"unknown options: {', '.join(sorted(unknown))}")
    words = [f"{name}={value}" for name, value in asking.options.items()]
    return [*START, "interval=2", f"driver_hung={max(5.0, asking.deadline_s - 6):g}", *words]


def look_stdin(asking: Asking) -> bytes:
    """What goes over stdin, which is then closed."""
    asked = json.dumps(
        {
            "parts": asking.parts,
            "deadline_s": asking.deadline_s,
            "reading": asking.reading,
            "driver": asking.driver,
        },
        sort_keys=True,
    )
    return _packed(asked, asking.reading)


@lru_cache(maxsize=16)
def _packed(asked: str, reading: bool) -> bytes:
    shell = fallback_script(json.loads(asked)["parts"]).encode()
    own = (("asked", f"ASKED = {asked!r}\n"),)
    agent = zlib.compress(modules_source((*MODULES, *MODULES_OF_LOOK), own).encode(), 6)
    pynvml = pynvml_packed() if reading else zlib.compress(b"")
    sizes = "".join(f"{len(part):<8}" for part in (shell, agent, pynvml))
    return sizes.encode() + shell + agent + pynvml
