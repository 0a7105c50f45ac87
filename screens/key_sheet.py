"""The key table as text: `cockpit keys`, and docs/KEYS.md, which is generated from it. Imports no Textual."""

from __future__ import annotations

from collections.abc import Iterator

from screens.key_line import Key
from screens.key_table import KEYS, SCOPES
from screens.keymap import DEFAULT, Keymap

_HEAD = """\
# Keys

Written by `make keys` from the table in `screens/key_table.py`; `cockpit keys` prints the same with your own
changes. `?` in the cockpit shows only what works where you are.

Lower case never changes a cluster. One letter means one thing in every pane. Any id can be given other keys under
`keys:` in the config, see [CONFIG.md](CONFIG.md#keys); those marked – cannot.
"""


def markdown(keymap: Keymap = DEFAULT) -> str:
    """The whole of docs/KEYS.md."""
    parts = [_HEAD]
    for scope, title in SCOPES.items():
        rows = [f"| {_quoted(keymap.shown(key))} | {key.help} | {_id(key)} |" for key in _of(scope)]
        parts.append("\n".join([f"\n## {title}\n", "| keys | what | id |", "|---|---|---|", *rows, ""]))
    return "".join(parts)


def sheet(keymap: Keymap = DEFAULT) -> list[str]:
    """The same as lines for a terminal; what the user has changed is marked with `*`."""
    width = max(len(keymap.shown(key)) for key in KEYS)
    ids = max(len(key.id) for key in KEYS)
    lines: list[str] = []
    for scope, title in SCOPES.items():
        lines += [title, *(_line(key, keymap, width, ids) for key in _of(scope)), ""]
    return lines[:-1]


def _line(key: Key, keymap: Keymap, width: int, ids: int) -> str:
    mark = "*" if key.id in keymap.changed else " "
    return f"{mark} {keymap.shown(key):<{width}}  {key.id:<{ids}}  {key.help}"


def _of(scope: str) -> Iterator[Key]:
    return (key for key in KEYS if key.scope == scope)


def _id(key: Key) -> str:
    return "–" if key.fixed else f"`{key.id}`"


def _quoted(shown: str) -> str:
    """Each key as code; a pipe would end the cell and a backtick the code."""
    return " ".join(f"`` {key} ``" if "`" in key else f"`{key}`".replace("|", "\\|") for key in shown.split(" "))
