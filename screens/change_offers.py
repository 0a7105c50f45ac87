"""What palette, menus and keys offer of the table of actions: each with what is asked first. Imports no Textual."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from actions.spec import Action, Option, Options, Scope
from actions.table import ACTIONS
from screens.commands import Command, Context, Entry
from screens.key_table import KEYS
from screens.keymap import Keymap


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that can be chosen. `fields` are what its dialog asks; without the one named `first` there is no plan.

    `id` is the argument of its command: that of the action, or one of its own where an action is offered in parts.
    """

    id: str
    action: Action
    title: str
    help: str
    options: Options = field(default_factory=Options)
    fields: tuple[Option, ...] = ()
    first: str = ""


_QUEUE_STATES = {
    "UP": "Let jobs of the queue start (again).",
    "DOWN": "Let no job of the queue start; running ones go on, new ones wait.",
    "DRAIN": "Take no new jobs into the queue; those in it go on.",
}


# What an action cannot be planned without.
_FIRST = {"drain-requeue": "nodes", "scale": "count", "nice": "count", "schedule": "at"}


def _offers(action: Action) -> Iterator[Offer]:
    if action.id == "queue":
        for state, words in _QUEUE_STATES.items():
            yield Offer(f"queue-{state.lower()}", action, f"set queue {state.lower()}", words, Options(state=state))
        return
    if action.id == "cancel":
        signals = tuple(option for option in action.options if option.name != "capture")
        yield Offer(action.id, action, action.title, "End jobs.", fields=action.options[len(signals) :])
        words = "Send jobs a signal, such as USR1 for a checkpoint."
        yield Offer("signal", action, "signal", words, fields=signals, first="signal")
        return
    first = _FIRST.get(action.id, "")
    yield Offer(action.id, action, action.title, action.help, fields=action.options, first=first)


OFFERS: tuple[Offer, ...] = tuple(offer for action in ACTIONS for offer in _offers(action))
_BY_ID = {offer.id: offer for offer in OFFERS}


def offer_of(offer_id: str) -> Offer:
    """The offer of that id; KeyError when there is none."""
    return _BY_ID[offer_id]


def same_key(offer_id: str) -> tuple[Offer, ...]:
    """The offers that share the key of this one: hold and release, stop and start."""
    key = _BY_ID[offer_id].action.key
    return tuple(offer for offer in OFFERS if offer.action.key == key and offer.id == offer.action.id)


def entries(keymap: Keymap, why_not: Callable[[Offer], str]) -> tuple[Entry, ...]:
    """Every offer as palette and menus want it, with the reason of those that cannot be done now."""
    return tuple(_entry(offer, keymap, why_not(offer)) for offer in OFFERS)


def _entry(offer: Offer, keymap: Keymap, why: str) -> Entry:
    key = ""
    if offer.action.key and offer.id == offer.action.id:
        line = next(key for key in KEYS if key.scope == "change" and key.keys == offer.action.key)
        key = keymap.shown(line)
    command = Command("change", offer.id)
    return Entry(command, offer.title, offer.help, key, tier=offer.action.tier, disabled=why)


def change_entries(context: Context) -> Iterator[Entry]:
    """For the palette: every change, those that cannot be done now with the reason."""
    yield from context.changes


def fitting_entries(context: Context) -> Iterator[Entry]:
    """For the menu of actions: the changes of what the cursor is on, and of the cluster."""
    for entry in context.changes:
        offer = _BY_ID.get(entry.command.argument) if entry.command.id == "change" else None
        if offer is None or offer.action.scope is Scope.CLUSTER or offer.action.scope.value in context.scopes:
            yield entry
