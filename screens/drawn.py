"""A widget that draws its lines ahead of time and has only those sent that look different from before."""

from __future__ import annotations

from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from screens.grid_paint import changed_width


class Drawn(Widget):
    """Whatever changes calls sync(). Subclasses say how lines are drawn (`_draw`) and whom to tell (`_announce`)."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._lines: list[Strip] = []
        self._lines_size = Size(0, 0)
        self._stale: str | None = None
        self._waiting = "not read yet"

    def set_stale(self, stale: str | None) -> None:
        """Change only the age that is shown, such as "stale 34s"; None when what is shown is fresh."""
        if stale != self._stale:
            self._stale = stale
            self.sync()

    def set_waiting(self, words: str) -> None:
        """Say why nothing was read yet; shown only until the first rows come."""
        if words != self._waiting:
            self._waiting = words
            self.sync()

    def _draw(self) -> None:
        """Fill `_lines` for `self.size` and note that size in `_lines_size`."""
        raise NotImplementedError

    def _announce(self) -> None:
        """Tell others what has changed, such as the cursor."""
        raise NotImplementedError

    def sync(self) -> None:
        """Draw what is on screen, have the lines sent that look different, and tell what has changed."""
        if self.is_mounted and self.size:
            before, size = self._lines, self._lines_size
            self._draw()
            if size != self._lines_size:
                self.refresh()
            else:
                self._refresh_changed(before)
        self._announce()

    def _refresh_changed(self, before: list[Strip]) -> None:
        widths = map(changed_width, before, self._lines)
        regions = [Region(0, line, width, 1) for line, width in enumerate(widths) if width]
        if regions:
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        """The line at `y`, drawn before by whatever changed it."""
        if self._lines_size != self.size:
            self._draw()
        return self._lines[y] if y < len(self._lines) else Strip.blank(self.size.width, self.rich_style)

    def on_mount(self) -> None:
        """Draw for the first time."""
        self.sync()

    def on_resize(self) -> None:
        """Arrange everything for the new size."""
        self.sync()

    def on_focus(self) -> None:
        """Show that keys go here."""
        self.sync()

    def on_blur(self) -> None:
        """Show that keys go elsewhere."""
        self.sync()

    def notify_style_update(self) -> None:
        """Draw in the new colours when the theme changes."""
        super().notify_style_update()
        if self._lines:
            self.call_later(self.sync)


def thumb(top: int, shown: int, count: int, height: int, at_end: bool = False) -> range:
    """The lines of the screen that the thumb of a scroll bar covers, of `height`; none when all is shown."""
    if shown >= count:
        return range(0)
    size = max(1, height * shown // count)
    start = height - size if at_end else round(top * (height - size) / (count - shown))
    return range(start, start + size)
