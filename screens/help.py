"""`?`: the keys that work where one is, and what the signs mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from screens.filter_bar import FilterBar
from screens.help_lines import LEGENDS, help_lines
from screens.keymap import DEFAULT, Keymap
from screens.modal import Modal
from screens.text_view import TextView
from themes.glyphs import signs


class HelpScreen(Modal[None]):
    """What help_lines says of these scopes; any of esc, q and ? closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "dismiss", "close")]

    def __init__(
        self,
        scopes: Sequence[str] = ("grid", "gpus", "text"),
        keymap: Keymap = DEFAULT,
        disabled: Mapping[str, str] | None = None,
        *,
        fields: Iterable[str] = (),
        legend: Iterable[tuple[str, str]] = (*LEGENDS["queue"], *LEGENDS["gpus"]),
    ) -> None:
        super().__init__()
        self._scopes, self._keymap, self._disabled = scopes, keymap, disabled
        self._fields, self._legend = fields, legend

    def compose(self) -> ComposeResult:
        yield TextView(title=[("keys", "bright"), (" · esc closes", "dim")], id="help")
        yield FilterBar()

    def on_mount(self) -> None:
        """Fill in."""
        text, chars = self.query_one(TextView), signs(self.app)
        told = help_lines(
            self._scopes, self._keymap, self._disabled, fields=self._fields, legend=self._legend, signs=chars
        )
        text.show(told)
        text.focus()
