"""What `?` says: the keys that work here, the pane's own first, then the words and signs. Pure, no Textual."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from cockpit.models import Health
from screens.key_line import Key
from screens.key_table import EVERYWHERE, SCOPES
from screens.keymap import DEFAULT, Keymap, heard
from screens.lines import Line, section
from themes import STATE_TOKENS
from themes.glyphs import UNICODE, Signs

KEY_WIDTH = 14
MOVING = "Moving"
_MOVES = frozenset(
    ("down", "up", "top", "bottom", "half_down", "half_up", "page_down", "page_up", "left", "right", "next", "previous",
     "next_link", "prev_link")
)  # fmt: skip
_STATES = {
    Health.OK: "live, well",
    Health.UNKNOWN: "not known, or never read",
    Health.DRAINED: "taken out by a person",
    Health.WARN: "look at it",
    Health.CRITICAL: "broken: something is harmed now",
}
_FILTER = (
    ("word", "lines with this word in any field; several words must all occur"),
    ("field:value", "only in this field; `field:a,b` is either"),
    ("!word", "lines without it; also `!field:value`"),
    ('"two words"', "as they stand, blanks and colons too"),
)
_WORDS = (
    ("–", "not known; empty: there is none"),
    ("stale, lost", "old data, with their age: nothing newer has come"),
)

# What a pane has of its own; by the id of the pane.
LEGENDS: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        "queue": (("R 4  PD 20", "a whole array on one line: how many of its tasks are in each state"),),
        "nccl": (("of expected", "by this cluster's last good ones of the same shape, else by the catalogue"),),
        "checks-efa": (("ok, n/a", "as it should be; makes no sense on this node"),),
        "checks-health": (("ok, n/a", "as it should be; makes no sense on this node"),),
        "gpus": (("heatmap", "a cell is a GPU: height and colour are its value, a sign is its state"),),
    }
)


def help_lines(
    scopes: Sequence[str],
    keymap: Keymap = DEFAULT,
    disabled: Mapping[str, str] | None = None,
    *,
    fields: Iterable[str] = (),
    legend: Iterable[tuple[str, str]] = (),
    signs: Signs = UNICODE,
) -> list[Line]:
    """Every key of these scopes and of everywhere, the pane's own first and moves last.

    Those in `disabled` (id -> reason) are dimmed, with the reason.
    `fields` are what a filter of the pane in front can name, `legend` is its own words (see LEGENDS).
    """
    lines: list[Line] = []
    for heading, keys in groupby(sorted(heard(scopes, keymap), key=_place), _heading):
        lines += [section(heading), *(_key_line(key, keymap, disabled or {}) for key in keys), []]
    if known := list(fields):
        lines += [section("Filter"), *map(_told, _FILTER), _told(("fields", ", ".join(known))), []]
    return [*lines, section("Signs and words"), *_state_lines(signs), *map(_told, (*legend, *_WORDS))]


def _place(key: Key) -> int:
    """What only this pane has comes first, how to move in it last: that is what one knows."""
    if _heading(key) == MOVING:
        return 3
    if key.scope in ("grid", "text"):
        return 1
    return 2 if key.scope in EVERYWHERE else 0


def _heading(key: Key) -> str:
    moves = not key.listed and key.scope in ("grid", "text") and key.id.partition(".")[2] in _MOVES
    return MOVING if moves else SCOPES[key.scope]


def _key_line(key: Key, keymap: Keymap, disabled: Mapping[str, str]) -> Line:
    shown = f"  {keymap.shown(key, most=3):<{KEY_WIDTH}} "
    reason = disabled.get(key.id)
    if reason is None:
        return [(shown, "accent"), key.help]
    return [(shown, "dim"), (f"{key.help} Not now: {reason}", "dim")]


def _state_lines(signs: Signs) -> list[Line]:
    return [
        [(f"  {signs.states[health]:<{KEY_WIDTH}} ", STATE_TOKENS[health]), _STATES[health]]
        for health in reversed(Health)
    ]


def _told(pair: tuple[str, str]) -> Line:
    return [(f"  {pair[0]:<{KEY_WIDTH}} ", "accent"), pair[1]]
