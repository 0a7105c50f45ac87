"""The words sinfo prints for a node state; order of tests and symbols as in Slurm's manual and as seen."""

from __future__ import annotations

from cockpit.demo.machines import SimNode

# The order in which Slurm prints flags behind the base state.
_FLAG_ORDER = (
    "cloud",
    "completing",
    "drain",
    "powered_down",
    "not_responding",
    "planned",
    "powering_up",
    "powering_down",
)
# One symbol at most; the first that applies wins.
_SYMBOLS = (("powering_up", "#"), ("powering_down", "%"), ("powered_down", "~"), ("not_responding", "*"))
_SHORT = {
    "idle": "idle",
    "allocated": "alloc",
    "mixed": "mix",
    "down": "down",
    "drained": "drain",
    "draining": "drng",
    "completing": "comp",
}


def complete(node: SimNode) -> str:
    """`mixed+cloud+not_responding+powering_up`."""
    flags = node.flags
    return "+".join([node.base, *(flag for flag in _FLAG_ORDER if flag in flags)])


def word(node: SimNode) -> str:
    """The long word without a symbol."""
    if node.drain:
        return "draining" if node.shares or node.completing else "drained"
    if node.base == "idle" and node.completing:
        return "completing"
    return node.base


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
