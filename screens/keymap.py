"""The user's own keys: what `keys:` in the config changes in the table, checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cockpit.config import KeySetting
from cockpit.words import nearest
from screens.key_line import Key
from screens.key_names import KeyNameError, is_printable, read_keys, shown_keys
from screens.key_table import CAPITALS, EVERYWHERE, KEYS, RESERVED, SCOPES, TOGETHER

# Textual has them for itself, whatever the table says.
_KEPT = {"ctrl+c": "it is no key for anything but stopping what runs", "ctrl+q": "it always leaves the cockpit"}
_WITH_PANE = ("grid", "text")
_BY_ID = {key.id: key for key in KEYS}


@dataclass(frozen=True, slots=True)
class Keymap:
    """Which keys stand for what: `changed` maps ids of the table to Textual key names, comma-separated."""

    changed: Mapping[str, str] = field(default_factory=dict)

    def keys(self, key: Key) -> str:
        """The keys of a line of the table, comma-separated."""
        return self.changed.get(key.id, key.keys)

    def shown(self, key: Key, most: int = 9) -> str:
        """The same as a person writes them."""
        return shown_keys(self.keys(key), most)

    def textual(self) -> dict[str, str]:
        """For App.set_keymap."""
        return dict(self.changed)


DEFAULT = Keymap()


def key_of(key_id: str) -> Key:
    """The line of the table with that id; KeyError for an unknown one."""
    return _BY_ID[key_id]


def heard(scopes: Sequence[str], keymap: Keymap = DEFAULT) -> list[Key]:
    """Every line of the table that works in a pane with these scopes: its own first, then what works everywhere.

    What a scope before has its own meaning for is left out: `/` searches in a text and filters elsewhere.
    """
    # In a line of text or a menu the keys of the panes are not heard.
    wanted = (*scopes, *EVERYWHERE) if set(_WITH_PANE) & set(scopes) else tuple(scopes)
    works: list[Key] = []
    taken: set[str] = set()
    for scope in dict.fromkeys(wanted):
        new = [key for key in KEYS if key.scope == scope and not taken.issuperset(keymap.keys(key).split(","))]
        works += new
        taken.update(pressed for key in new for pressed in keymap.keys(key).split(","))
    return works


def read_keymap(settings: Mapping[str, KeySetting]) -> Keymap:
    """Check what the config says about keys. Raises ConfigError, with file and line, for the first mistake."""
    changed: dict[str, str] = {}
    for key_id, setting in settings.items():
        key = _BY_ID.get(key_id)
        if key is None:
            raise setting.error(
                key_id, f"there is no such id{nearest(key_id, _BY_ID, listed=False)}; `cockpit keys` lists them"
            )
        try:
            keys = read_keys(setting.keys)
        except KeyNameError as error:
            raise setting.error(key_id, str(error)) from None
        if (why := _refusal(key, keys)) is not None:
            raise setting.error(key_id, why)
        changed[key_id] = ",".join(keys)
    keymap = Keymap(changed)
    for key_id, setting in settings.items():
        if (clash := _clash(key_id, keymap)) is not None:
            other, pressed = clash
            words = f"{shown_keys(pressed)} already stands for {other.id} ({other.title})"
            raise setting.error(key_id, f"{words} {_where(other)}")
    return keymap


def _refusal(key: Key, keys: tuple[str, ...]) -> str | None:
    if key.fixed:
        return f"cannot be changed: {shown_keys(key.keys)} works in every text line and menu"
    for pressed in keys:
        if pressed in _KEPT and pressed not in key.keys.split(","):
            return f"`{pressed}`: {_KEPT[pressed]}"
        kept = RESERVED if key.scope == "change" else CAPITALS
        if pressed in kept:
            return f"`{pressed}` is kept for what changes a cluster ({kept[pressed]})"
        if key.scope == "change" and not (len(pressed) == 1 and pressed.isupper()):
            return f"`{shown_keys(pressed)}`: this changes the cluster, so it needs a capital letter"
        # Textual looks at such a key before a text line does, and would take the letter away from it.
        if key.first and is_printable(pressed) and not is_printable(key.keys.split(",")[0]):
            return f"`{shown_keys(pressed)}` is text in a filter; this one also works there, so it needs a ctrl key"
    return None


def _clash(key_id: str, keymap: Keymap) -> tuple[Key, str] | None:
    """Another line of the table that one of its keys already stands for; of two changed ones the second is told."""
    mine, changed = _BY_ID[key_id], list(keymap.changed)
    scopes = {scope for group in TOGETHER if mine.scope in group for scope in group}
    later = changed[changed.index(key_id) :]
    for other in KEYS:
        if other.scope in scopes and other.id not in later:
            for pressed in keymap.keys(mine).split(","):
                if pressed in keymap.keys(other).split(","):
                    return other, pressed
    return None


def _where(key: Key) -> str:
    return SCOPES[key.scope][0].lower() + SCOPES[key.scope][1:]
