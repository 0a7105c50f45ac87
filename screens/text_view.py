"""The one widget for everything that is text: details, help, explanations, job output, plans, the audit."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType

from screens.filter_bar import FilterBar
from screens.grid_paint import safe_cells
from screens.keys import bindings
from screens.lines import Link
from screens.text_core import TOP_LINES, TextCore
from screens.text_messages import CopyText, FollowLink
from screens.text_paint import MARGIN
from screens.text_state import piece_text
from screens.wrap import hang


class TextView(TextCore, can_focus=True):
    """Lines of styled pieces, some of which lead elsewhere: enter posts FollowLink.

    With links a cursor moves from line to line; without, the screen moves as in a pager. Only the lines on
    screen are ever broken and drawn, so a text may have any number of lines.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    TextView {
        width: 1fr;
        height: 1fr;
        background: $background;
        color: $foreground;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("text"),
        # The same id as the app's: clears the search, then it is the turn of whoever is above.
        Binding("escape", "back", "back", show=False, id="app.back"),
    ]

    def action_back(self) -> None:
        """Clear the search, or leave the key to whoever is above."""
        if not self.clear_search():
            raise SkipAction

    def action_cursor_down(self) -> None:
        """One line down."""
        self.state.move(1)
        self.sync()

    def action_cursor_up(self) -> None:
        """One line up."""
        self.state.move(-1)
        self.sync()

    def action_cursor_top(self) -> None:
        """To the first line."""
        self.state.home()
        self.sync()

    def action_cursor_bottom(self) -> None:
        """To the last line."""
        self.state.end()
        self.sync()

    def action_sideways(self, step: int) -> None:
        """To the next link of this line, else to the side where lines are not wrapped."""
        self.state.sideways(step)
        self.sync()

    def action_next_link(self, step: int) -> None:
        """To the next line with a link; where there is none, tab is for whoever is above."""
        if not self.state.browsing:
            raise SkipAction
        self.state.next_link(step)
        self.sync()

    def action_open(self) -> None:
        """Ask for the details of what the active link leads to."""
        if self.subject is not None:
            self.post_message(FollowLink(self.subject))

    def action_search(self) -> None:
        """Type what to look for."""
        bars = self.screen.query(FilterBar)
        if not bars or not self.has_focus:
            raise SkipAction
        bars.first().open(self)

    def action_next_hit(self, step: int) -> None:
        """To the next line that holds what is searched for, or the one before it."""
        self.to_hit(step)

    def action_wrap(self) -> None:
        """Break long lines, or let them run out of the screen."""
        self.state.set_wrap(not self.state.wrap)
        self.sync()

    def action_copy_text(self) -> None:
        """Ask to copy everything that stands here."""
        self.post_message(CopyText(self.text))

    # The mouse; everything has a key as well.

    def on_click(self, event: events.Click) -> None:
        """Choose a line, and follow the link that was clicked."""
        place = event.get_content_offset(self)
        if place is None or place.x >= self.size.width - 1 or place.y < TOP_LINES or not self.state.browsing:
            return
        rows = self.state.visible()
        if place.y - TOP_LINES >= len(rows):
            return
        line, row = rows[place.y - TOP_LINES]
        self.state.go_to(line)
        link = self._link_at(line, row, place.x)
        if link is not None:
            self.state.link = link
            self.action_open()
        self.sync()

    def _link_at(self, line: int, row: int, x: int) -> int | None:
        """Which link of the line stands in that cell."""
        pieces = self.state.lines[line]
        start, end = self.state.rows(line)[row]
        cells = MARGIN + (hang(pieces, self.state.width) if row else 0) - (0 if self.state.wrap else self.state.left)
        at, link = 0, -1
        for piece in pieces:
            text = piece_text(piece)
            link += isinstance(piece, Link)
            width = safe_cells(text[max(0, start - at) : max(0, end - at)])[1]
            if cells <= x < cells + width and isinstance(piece, Link):
                return link
            at, cells = at + len(text), cells + width
        return None

    def scroll_to_share(self, share: float) -> None:
        """Put that share of the lines above the screen."""
        self.state.scroll_to(share)
