"""Paging, the wheel and the scroll bar: the same in tables, texts and heatmaps."""

from __future__ import annotations

from typing import ClassVar, Protocol

from textual import events

from screens.drawn import Drawn

WHEEL_LINES = 3


class Scrollable(Protocol):
    """Where somebody is in what is longer than the screen; `height` is the number of lines on it."""

    height: int

    def page(self, lines: int) -> None:
        """Scroll by whole lines and take the cursor along."""

    def scroll(self, lines: int) -> None:
        """Scroll as a wheel does; the cursor stays on screen."""


class Scrolled(Drawn):
    """What is drawn line by line and may be longer than the screen.

    `BAR_TOP` is the line of its scroll bar's top,
    0 for none that can be dragged."""

    BAR_TOP: ClassVar[int] = 0
    _dragging = False

    def scrollable(self) -> Scrollable:
        """What is scrolled."""
        raise NotImplementedError

    def scroll_to_share(self, share: float) -> None:
        """Put that share of the lines above the screen: 0.0 is the beginning, 1.0 the end."""

    def _page(self, lines: int) -> None:
        self.scrollable().page(lines)
        self.sync()

    def action_half_page_down(self) -> None:
        """Half a page down."""
        self._page(max(1, self.scrollable().height // 2))

    def action_half_page_up(self) -> None:
        """Half a page up."""
        self._page(-max(1, self.scrollable().height // 2))

    def action_page_down(self) -> None:
        """One page down; one line stays for orientation."""
        self._page(max(1, self.scrollable().height - 1))

    def action_page_up(self) -> None:
        """One page up; one line stays for orientation."""
        self._page(-max(1, self.scrollable().height - 1))

    # The mouse.

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down; the cursor stays on screen."""
        self._wheel(event, WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up; the cursor stays on screen."""
        self._wheel(event, -WHEEL_LINES)

    def _wheel(self, event: events.MouseEvent, lines: int) -> None:
        event.stop()
        event.prevent_default()
        if event.ctrl or event.shift:
            self.wheel_sideways(1 if lines > 0 else -1)
        else:
            self.scrollable().scroll(lines)
        self.sync()

    def wheel_sideways(self, step: int) -> None:
        """Scroll to the side, where that is possible."""
        self.scrollable().scroll(step * WHEEL_LINES)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the scroll bar."""
        place = event.get_content_offset(self)
        if self.BAR_TOP and place is not None and place.x == self.size.width - 1 and place.y >= self.BAR_TOP:
            self._dragging = True
            self.capture_mouse()
            self._drag_to(place.y - self.BAR_TOP)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the scroll bar."""
        if self._dragging:
            self._drag_to(event.get_content_offset_capture(self).y - self.BAR_TOP)

    def on_mouse_up(self) -> None:
        """Let the scroll bar go."""
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def _drag_to(self, line: int) -> None:
        self.scroll_to_share(max(0.0, min(1.0, line / max(1, self.scrollable().height - 1))))
        self.sync()
