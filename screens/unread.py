"""What the probes may not or cannot read, and what stays unseen for it: pure functions. Imports no Textual."""

from __future__ import annotations

from collections import defaultdict

from cockpit.formats.hostlist import fold
from cockpit.gpu_models import NodeReading
from cockpit.sources.gpus import FleetReading
from screens.lines import Line, fact, section

# What is not seen, and what helps, by what a probe names in `not_read`.
_MEANS = {
    "kernel log": (
        "Xids, memory kills, EFA and disk errors of the kernel are not seen: none told is not none there",
        "add the login of the probe to the group systemd-journal or adm on the node",
    ),
    "EFA counters": ("nothing is known of the node's EFA traffic and errors", ""),
    "processes": ("who uses the GPUs is known in part only", ""),
}


def unread_lines(reading: NodeReading | None) -> list[Line]:
    """For the details of a node or of one of its GPUs: nothing when all was read."""
    if reading is None or not reading.not_read:
        return []
    lines: list[Line] = [[], section("what cannot be read there")]
    for what, why in reading.not_read.items():
        unseen, step = _MEANS.get(what, ("", ""))
        lines.append(fact(what, why, "warning"))
        lines += [fact("", text, "dim") for text in (unseen, step) if text]
    return lines


def unread_words(fleet: FleetReading | None) -> list[str]:
    """For the command line: each thing that cannot be read for the same reason once, with its nodes."""
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for watch in fleet.nodes.values() if fleet else ():
        for what, why in watch.reading.not_read.items() if watch.reading else ():
            alike[what, why].append(watch.node)
    return [f"! {what} of {fold(nodes)} not read: {why}" + _unseen(what) for (what, why), nodes in alike.items()]


def _unseen(what: str) -> str:
    unseen, step = _MEANS.get(what, ("", ""))
    return "".join(f" — {text}" for text in (unseen, step) if text)
