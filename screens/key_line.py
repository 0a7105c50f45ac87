"""What a line of the key table says, and the one key that works before the table is loaded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """One binding. `scope` is where it works (see SCOPES); `footer` names the scopes whose last line shows it.

    `drop` is who leaves a narrow footer: the highest first, 0 last of all; there the keys of the panes stand for all
    of them as one. `listed` keys are in the palette too.
    `fixed` ones cannot be remapped.
    """

    id: str
    keys: str  # Textual key names, comma-separated
    action: str
    title: str  # at most two words, for the footer and the palette
    help: str  # one sentence for `?`
    scope: str
    footer: tuple[str, ...] = ()
    first: bool = False  # it moves the focus: it must take effect before the next key of a burst is looked at
    drop: int = 0
    listed: bool = True
    fixed: bool = False


QUIT = Key("app.quit", "q,ctrl+q", "quit", "quit", "Leave the cockpit; nothing on the cluster changes.", "always")
