"""The words sinfo prints for a node state; order of tests and symbols as in Slurm's manual and as seen."""

from __future__ import annotations

from cockpit.demo.machines import SimNode

# The order in which Slurm prints flags behind the base state.
_FLAG_ORDER = (
    "cloud",
    "completing",
    "drain",
    "fail",
    "maintenance",
    "power_down",
    "powered_down",
    "not_responding",
    "planned",
    "powering_up",
    "reboot_requested",
    "reboot_issued",
    "reserved",
    "powering_down",
)
# One symbol at most; the first that applies wins.
_SYMBOLS = (
    ("maintenance", "$"),
    ("reboot_issued", "^"),
    ("reboot_requested", "@"),
    ("powering_up", "#"),
    ("powering_down", "%"),
    ("powered_down", "~"),
    ("power_down", "!"),
    ("not_responding", "*"),
)
_SHORT = {
    "idle": "idle",
    "allocated": "alloc",
    "mixed": "mix",
    "down": "down",
    "drained": "drain",
    "draining": "drng",
    "completing": "comp",
    "failing": "failg",
    "fail": "fail",
    "maint": "maint",
    "reboot": "boot",
    "reserved": "resv",
}


def complete(node: SimNode) -> str:
    """`mixed+cloud+not_responding+powering_up`."""
    flags = node.flags
    return "+".join([node.base, *(flag for flag in _FLAG_ORDER if flag in flags)])


def word(node: SimNode) -> str:
    """The long word without a symbol."""
    busy = bool(node.shares or node.completing)
    if not busy and not node.drain and any(node.reservations.values()):
        return "maint"
    if node.reboot == "issued":
        return "reboot"
    if node.drain or node.reboot:
        return "draining" if busy else "drained"
    if node.failing:
        return "failing" if busy else "fail"
    if node.base == "idle" and node.completing:
        return "completing"
    return "reserved" if node.base == "idle" and node.reservations else node.base


def symbol(node: SimNode) -> str:
    """The symbol behind the word, or ""; an allocated node that also completes shows `+`."""
    flags = node.flags
    for flag, sign in _SYMBOLS:
        if flag in flags:
            return sign
    return "+" if node.base == "allocated" and node.completing else ""


def long_state(node: SimNode) -> str:
    return word(node) + symbol(node)


def short_state(node: SimNode) -> str:
    return _SHORT[word(node)] + symbol(node)
