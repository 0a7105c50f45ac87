"""The key table as Textual wants it: bindings by scope. The table itself is in key_table.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from textual.binding import BindingType
from textual.dom import DOMNode
from textual.screen import Screen

from screens.key_line import Key
from screens.key_names import shown_keys
from screens.key_table import KEYS, SCOPES
from screens.keymap import key_of
from screens.start_screen import bound

__all__ = ["KEYS", "SCOPES", "Key", "bindings", "press", "shown_keys"]


def bindings(scope: str) -> list[BindingType]:
    """The bindings of one scope, for a widget's BINDINGS."""
    return [bound(key) for key in KEYS if key.scope == scope]


async def press(screen: Screen[Any], key_id: str, then: Iterable[DOMNode] = ()) -> bool:
    """Do what a line of the key table does, as its key would with the focus where it is; False when nobody can.

    `then` are asked when the focus and what is around it cannot, such as the table beside a heatmap.
    """
    action, focused = key_of(key_id).action, screen.focused
    chain = focused.ancestors_with_self if focused is not None else [screen, screen.app]
    for node in (*chain, *then):
        if await screen.app.run_action(action, node):
            return True
    return False
