"""Slurm's node states: base and flags, one plain word, how bad it is, and what it means in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from cockpit.catalog.reader import load
from cockpit.models import Health, NodeState
from cockpit.text import printable

_WORKING = ("allocated", "mixed")
_GOING_DOWN = ("powering_down", "powered_down")
_STARTING = ("powering_up", "power_up")
_REBOOT = ("reboot_issued", "reboot_requested")
_FAILED_POWER_UP = "resumetimeout reached"


@dataclass(frozen=True, slots=True)
class WrittenReason:
    """A reason that a program writes (texts in lower case), and how bad a node out of service with it is."""

    starts: str
    contains: str
    health: Health
    means: str
    next: str


@lru_cache(maxsize=2048)
def parse_state(text: str) -> NodeState:
    """A state as StateComplete (`mixed+cloud+drain`) or scontrol (`MIXED+CLOUD+DRAIN`) gives it.

    The one-word forms of other columns (`drained*`, `mixed-`) are read too. Unknown flags are kept.
    """
    words = printable(text.strip()).lower()
    symbols: dict[str, str] = load("slurm_nodes")["symbols"]
    extra = set()
    while words and words[-1] in symbols:
        extra.add(symbols[words[-1]])
        words = words[:-1]
    words = load("slurm_nodes")["words"].get(words, words)
    base, *flags = words.split("+")
    return NodeState(base or "unknown", frozenset(flag for flag in (*flags, *extra) if flag))


def written_by_program(reason: str) -> WrittenReason | None:
    """The catalogue's entry when Slurm or ParallelCluster wrote this reason; None for a person's words."""
    folded = reason.casefold()
    for entry in _reasons():
        if folded.startswith(entry.starts) and entry.contains in folded:
            return entry
    return None


def judge(state: NodeState, reason: str = "") -> tuple[str, Health]:
    """The plain word for a node's state, and its health.

    Healthy are also nodes that power up or down, powered-down ones and planned ones; a reason says nothing
    about a node in service, since Slurm 23.11 and later keep the text of an old one. Drained by a person is
    DRAINED; drained by Slurm itself is as bad as the catalogue says.
    """
    if state.has("invalid_reg"):
        return "invalid registration", Health.CRITICAL
    if state.base == "down":
        return _down(state, reason)
    if state.has("fail"):
        return ("failing" if _busy(state) else "failed"), Health.WARN
    if state.has(*_REBOOT):
        return _rebooting(state, reason)
    if state.has("drain"):
        return _drained(state, reason)
    if _is_lost(state):
        return _not_responding(state)
    if state.has(*_STARTING, *_GOING_DOWN, "power_down"):
        return _powering(state)
    return _in_service(state)


def explain_state(state: NodeState, reason: str = "") -> list[str]:
    """What base and flags mean, a sentence each, then what is known of the reason; unknown ones are named."""
    sentences = [sentence for _, sentence in state_words(state)]
    if _is_lost_powered_down(state):
        sentences.append(
            "Powered down and not responding together: Slurm may leave it out of scheduling; powering it "
            "down by force clears that."
        )
    entry = written_by_program(reason)
    if entry and judge(state, reason)[1] is not Health.OK:
        sentences += [f"Its reason was written by a program: {entry.means}", entry.next]
    return sentences


def state_words(state: NodeState) -> list[tuple[str, str]]:
    """Base and every flag as Slurm spells them, each with its sentence; unknown ones are named."""
    data = load("slurm_nodes")
    words = [(state.base, data["bases"].get(state.base, f"Slurm calls it {state.base!r}, which is not known here."))]
    order = {flag: at for at, flag in enumerate(data["flags"])}
    for flag in sorted(state.flags, key=lambda flag: (order.get(flag, len(order)), flag)):
        words.append((flag, data["flags"].get(flag, f"Slurm also says {flag!r}, which is not known here.")))
    return words


def next_step(state: NodeState, reason: str = "") -> str:
    """What to do about a node in this state; "" for one that needs nothing."""
    entry = written_by_program(reason)
    if entry and judge(state, reason)[1] is not Health.OK:
        return entry.next
    steps: dict[str, str] = load("slurm_nodes")["next"]
    return next((step for word, step in steps.items() if word == state.base or word in state.flags), "")


def _down(state: NodeState, reason: str) -> tuple[str, Health]:
    if reason.casefold().startswith(_FAILED_POWER_UP):
        return "failed power-up", Health.CRITICAL
    entry = written_by_program(reason)
    if state.has(*_REBOOT):
        return _rebooting(state, reason)
    if entry and entry.health is Health.DRAINED:
        return ("powered down" if state.has("powered_down") else "down"), Health.DRAINED
    if state.has("drain"):  # a person may well be at work on it, but it must not hide behind "drained"
        return "drained, down", entry.health if entry else Health.WARN
    return "down", entry.health if entry else Health.CRITICAL


def _rebooting(state: NodeState, reason: str) -> tuple[str, Health]:
    entry = written_by_program(reason)
    health = Health.CRITICAL if entry and entry.health is Health.CRITICAL else Health.DRAINED
    if state.has("reboot_issued"):
        return ("failed reboot" if health is Health.CRITICAL else "rebooting"), health
    return "reboot pending", health


def _drained(state: NodeState, reason: str) -> tuple[str, Health]:
    word = "draining" if _busy(state) else "drained"
    entry = written_by_program(reason)
    if entry:
        return word, entry.health
    return word, Health.WARN if _is_lost(state) else Health.DRAINED


def _powering(state: NodeState) -> tuple[str, Health]:
    if state.has(*_STARTING):
        return "powering up", Health.OK
    if state.base in _WORKING:  # what is only asked for does not touch the jobs that run
        return state.base, Health.OK
    if state.has("powered_down"):
        return "powered down", Health.WARN if _is_lost_powered_down(state) else Health.OK
    return "powering down", Health.OK


def _not_responding(state: NodeState) -> tuple[str, Health]:
    if state.base == "unknown":
        return "unknown", Health.WARN
    return "not responding", Health.CRITICAL if state.base in _WORKING else Health.WARN


def _in_service(state: NodeState) -> tuple[str, Health]:
    if state.base in _WORKING:
        return state.base, Health.OK
    if state.has("maintenance"):
        return "maintenance", Health.DRAINED
    if state.base == "idle":
        for flag in ("completing", "reserved", "blocked", "planned"):
            if state.has(flag):
                return flag, Health.OK
        return "idle", Health.OK
    return state.base, Health.OK if state.base == "future" else Health.UNKNOWN


def _busy(state: NodeState) -> bool:
    return state.base in _WORKING or state.has("completing")


def _is_lost(state: NodeState) -> bool:
    """True when slurmd's silence has no good reason.

    Booting is one, with or without a job that waits for the node; powering down is one only without jobs,
    and power_up and power_down are mere requests.
    """
    if not state.has("not_responding") or state.has("powering_up"):
        return False
    return state.base in _WORKING or not state.has(*_GOING_DOWN)


def _is_lost_powered_down(state: NodeState) -> bool:
    return state.base == "idle" and state.has("powered_down") and state.has("not_responding")


@cache
def _reasons() -> tuple[WrittenReason, ...]:
    entries = [
        WrittenReason(
            entry["starts"].casefold(),
            entry.get("contains", "").casefold(),
            Health(entry["health"]),
            entry["means"],
            entry["next"],
        )
        for entry in load("slurm_nodes")["reasons"]
    ]
    # The most exact first, so that "Reboot ASAP : reboot timed out" wins over "Reboot ASAP".
    return tuple(sorted(entries, key=lambda entry: -len(entry.starts + entry.contains)))
