"""What a node's state, or a remedy, leads to on a cluster of this kind, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from cockpit.catalog.reader import load
from cockpit.catalog.severity import Remedy
from cockpit.kinds.base import Kind
from cockpit.models import NodeState


def kind_note(kind: Kind | None, topic: str, origin: str = "") -> str:
    """The sentence about a topic of catalog/kind_notes.yaml; "" where there is nothing to say, or no kind is known."""
    if kind is None:
        return ""
    notes = cast("Mapping[str, str]", load("kind_notes").get(kind.id, {}))
    return notes.get(f"{topic}.{origin}") or notes.get(topic, "")


def remedy_note(kind: Kind | None, remedy: Remedy, origin: str = "") -> str:
    """How the remedy is brought about on this kind, where that makes a difference."""
    topic = {Remedy.REPLACE: "replace", Remedy.REBOOT: "reboot"}.get(remedy)
    return kind_note(kind, topic, origin) if topic else ""


def node_note(kind: Kind | None, state: NodeState, origin: str = "") -> str:
    """What will happen to a node in this state, as far as the kind makes a difference."""
    topic = _topic(state)
    return kind_note(kind, topic, origin) if topic else ""


def _topic(state: NodeState) -> str:
    """In the order in which ParallelCluster's manager looks, which the others do not contradict."""
    if state.has("reboot_requested", "reboot_issued"):
        return "reboot"
    if state.has("fail"):
        return "fail"
    if state.has("drain"):
        if state.has("power_down", "powering_down"):
            return ""
        idle = state.base in ("idle", "down") and not state.has("completing")
        return "drained" if idle else "draining"
    if state.base == "down":
        return "" if state.has("powering_down") else "down"
    if state.has("powered_down"):
        return "powered_down"
    return "silent" if state.has("not_responding") and not state.has("powering_up") else ""
