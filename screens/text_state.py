"""Where the reader of a text is: cursor, scroll position, rows. Only what is near the screen is ever broken."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from screens.grid_paint import safe_cells
from screens.lines import Line, Link, Subject, links
from screens.wrap import Span, hang, spans

Place = tuple[int, int]  # a line, and a row of it

_KEPT_ROWS = 5_000  # broken lines that are remembered
_CONTEXT = 3  # a line that is jumped to stands at a third of the screen


def piece_text(piece: str | tuple[str, str] | Link) -> str:
    """The text of a piece as it is shown: harmless, whatever it came from."""
    return safe_cells(piece if isinstance(piece, str) else piece[0])[0]


def line_text(line: Line) -> str:
    """The text of a line as it is shown."""
    return "".join(map(piece_text, line))


def unchanged(old: Sequence[Line], new: Sequence[Line], shift: int) -> range:
    """The lines of `new` that are those of `old`, `shift` lines further down; empty when any of them differs.

    Lines that are the very same objects cost next to nothing, as when a log grows.
    """
    start, ahead = max(0, shift), max(0, -shift)
    same = max(0, min(len(old) - ahead, len(new) - start))
    # A line of words above a log, the last line, which grows, and words below are no reason to look at all again.
    for skip in (0, 1):
        for cut in (0, 1, 3):
            first, last = start + skip, start + same - cut
            if first < last and old[first - shift : last - shift] == new[first:last]:
                return range(first, last)
    return range(start, start)


@dataclass
class TextState:
    """`cursor` is a line, `top` and `skip` the line and the row of it that stand first on the screen.

    Where some line has a link, the cursor is what moves. Elsewhere the text is read as in a pager: the screen
    moves, and the cursor is only the line that searching goes on from; `pointed` shows it after a jump.
    """

    lines: Sequence[Line] = ()
    width: int = 80  # cells for text
    height: int = 1  # rows
    wrap: bool = True
    cursor: int = 0
    link: int = 0  # which link of the cursor line is active
    top: int = 0
    skip: int = 0
    left: int = 0  # cells scrolled away, only while lines are not broken
    pointed: bool = False
    chosen: bool = False  # somebody has put the cursor where it is; it stands on the first line without that
    follow: bool = False  # stay at the end when lines are added
    linked: list[int] = field(default_factory=list)  # the lines with a link
    _rows: dict[int, list[Span]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many lines there are."""
        return len(self.lines)

    @property
    def browsing(self) -> bool:
        """True where there is something to choose, so that the cursor is what moves."""
        return bool(self.linked)

    @property
    def subject(self) -> Subject | None:
        """Where the active link leads."""
        if not self.browsing or not self.count:
            return None
        there = links(self.lines[self.cursor])
        return there[min(self.link, len(there) - 1)] if there else None

    def rows(self, line: int) -> list[Span]:
        """How a line is broken for the present width."""
        found = self._rows.get(line)
        if found is None:
            if len(self._rows) > _KEPT_ROWS:
                self._rows.clear()
            text = line_text(self.lines[line])
            whole = [(0, len(text))]
            found = spans(text, self.width, hang(self.lines[line], self.width)) if self.wrap else whole
            self._rows[line] = found
        return found

    def visible(self) -> list[Place]:
        """The rows on screen from top to bottom."""
        places: list[Place] = []
        line, row = self.top, self.skip
        while line < self.count and len(places) < self.height:
            places += [(line, at) for at in range(row, len(self.rows(line)))][: self.height - len(places)]
            line, row = line + 1, 0
        return places

    @property
    def at_end(self) -> bool:
        """True while the last row is on screen."""
        return (self.top, self.skip) >= self._last_top()

    # New content and new sizes.

    def adopt(self, lines: Sequence[Line], *, keep: bool, shift: int = 0) -> None:
        """Take new lines over: `shift` of them stand before the first one there was, or that many fewer.

        A cursor on a link goes along with its subject and stays on its row of the screen.
        """
        subject = self.subject if keep else None
        old, self.lines = self.lines, lines
        self._index(old, shift)
        self._rows.clear()
        if not keep:
            self.cursor = self.link = self.top = self.skip = self.left = 0
            self.pointed = self.chosen = False
        self.cursor, self.top = self.cursor + shift, self.top + shift
        row = self.cursor - self.top
        found = None if subject is None else self._line_of(subject)
        if found is not None and found != self.cursor:
            at_top = self.top == 0 and found < self.height
            self.cursor = found
            self.top, self.skip = (0, 0) if at_top else (found - row, 0)
        self._settle()
        if self.browsing:
            self._show_cursor()

    def resize(self, width: int, height: int) -> None:
        """Take a new size; what stood first on the screen stays there."""
        width, height = max(1, width), max(1, height)
        if (width, height) != (self.width, self.height):
            self.height = height
            self._rebreak(width, self.wrap)

    def set_wrap(self, wrap: bool) -> None:
        """Break long lines, or let them be scrolled sideways."""
        self.left = 0
        self._rebreak(self.width, wrap)

    def _rebreak(self, width: int, wrap: bool) -> None:
        start = self.rows(self.top)[min(self.skip, len(self.rows(self.top)) - 1)][0] if self.count else 0
        self.width, self.wrap = width, wrap
        self._rows.clear()
        if self.count:
            self.skip = max(row for row, span in enumerate(self.rows(self.top)) if span[0] <= start)
        self._settle()
        if self.browsing or self.pointed:
            self._show_cursor()

    def _index(self, old: Sequence[Line], shift: int) -> None:
        same = unchanged(old, self.lines, shift)
        kept = [line + shift for line in self.linked if line + shift in same]
        self.linked = [*_linked(self.lines, range(same.start)), *kept]
        self.linked += _linked(self.lines, range(same.stop, len(self.lines)))

    def _line_of(self, subject: Subject) -> int | None:
        """The line nearest to the cursor that leads there; its link becomes the active one."""
        found = [line for line in self.linked if subject in links(self.lines[line])]
        if not found:
            return None
        line = min(found, key=lambda line: abs(line - self.cursor))
        self.link = links(self.lines[line]).index(subject)
        return line

    # Movements.

    def move(self, step: int) -> None:
        """One line down (1) or up (-1): with the cursor where there are links, else of the screen."""
        self.pointed = False
        if not self.browsing:
            self._scroll(step)
            return
        row = len(self.rows(self.cursor)) - 1 if step > 0 else 0
        if self._is_hidden((self.cursor, row), step):
            self._scroll(step)  # a line taller than the screen is read to its end first
        else:
            self.go_to(self.cursor + step)

    def go_to(self, line: int) -> None:
        """Put the cursor on a line and scroll no further than needed."""
        line = max(0, min(line, self.count - 1))
        self.chosen = True
        if line != self.cursor:
            self.cursor, self.link = line, 0
        self._show_cursor()

    def jump(self, line: int) -> None:
        """Put the cursor on a line from afar: when that is off screen it comes to stand with lines around it."""
        line = max(0, min(line, self.count - 1))
        rows = [at for at, _ in self.visible()]
        if line not in rows:
            self.top, self.skip = self._back((line, 0), self.height // _CONTEXT)
        self.go_to(line)
        self.pointed = True
        self._settle()

    def home(self) -> None:
        """To the first line."""
        self.pointed = False
        self.top = self.skip = 0
        self.go_to(0)

    def end(self) -> None:
        """To the last line."""
        self.pointed = False
        self.top, self.skip = self._last_top()
        self.chosen = True
        if self.count:
            self.cursor, self.link = self.count - 1, 0
        self._settle()

    def page(self, rows: int) -> None:
        """Scroll by rows and take the cursor along on its row of the screen."""
        self.pointed, self.chosen = False, True
        places = self.visible()
        row = next((at for at, place in enumerate(places) if place[0] == self.cursor), 0)
        before = (self.top, self.skip)
        self._scroll(rows)
        places = self.visible()
        if not places or not self.browsing:
            return
        if (self.top, self.skip) == before:
            row = len(places) - 1 if rows > 0 else 0
        line = places[min(row, len(places) - 1)][0]
        if line != self.cursor:
            self.cursor, self.link = line, 0

    def scroll(self, rows: int) -> None:
        """Scroll as a mouse wheel does; the cursor is taken along only where it would leave the screen."""
        self._scroll(rows)

    def scroll_to(self, share: float) -> None:
        """Put that share of the lines above the screen: 0.0 is the beginning, 1.0 the end."""
        self.top, self.skip, self.follow = round(share * max(0, self.count - 1)), 0, False
        self._settle()
        self._clamp_cursor()

    def next_link(self, step: int) -> None:
        """To the next line with a link, or the one before it; after the last comes the first."""
        if not self.linked:
            return
        at = bisect_right(self.linked, self.cursor) if step > 0 else bisect_left(self.linked, self.cursor) - 1
        self.pointed = False
        self.go_to(self.linked[at % len(self.linked)])

    def sideways(self, step: int) -> None:
        """To the next link of the line, else to the side when lines are not broken."""
        count = len(links(self.lines[self.cursor])) if self.browsing else 0
        if count and 0 <= min(self.link, count - 1) + step < count:
            self.link, self.chosen = min(self.link, count - 1) + step, True
            self._show_column()
        elif not self.wrap:
            self.left = max(0, min(self.left + step * max(8, self.width // 4), self._widest() - self.width))

    def show_column(self, start: int, end: int) -> None:
        """Scroll sideways as far as needed to see these letters of the cursor line."""
        text = line_text(self.lines[self.cursor])
        first, last = safe_cells(text[:start])[1], safe_cells(text[:end])[1]
        if not self.wrap and not self.left <= first <= last <= self.left + self.width:
            self.left = max(0, min(first - self.width // _CONTEXT, self._widest() - self.width))

    def show_row(self, offset: int) -> None:
        """Scroll as far as needed to see the row of the cursor line that holds this letter."""
        row = max(at for at, span in enumerate(self.rows(self.cursor)) if span[0] <= offset)
        place = (self.cursor, row)
        if place < (self.top, self.skip):
            self.top, self.skip = place
        else:
            self.top, self.skip = max((self.top, self.skip), self._back(place, self.height - 1))

    # How it is worked out.

    def _widest(self) -> int:
        """The cells of the widest line on screen, and one for the sign that there is no more."""
        return max((safe_cells(line_text(self.lines[line]))[1] for line, _ in self.visible()), default=0) + 1

    def _show_column(self) -> None:
        at = 0
        place = -1
        for piece in self.lines[self.cursor]:
            end = at + len(piece_text(piece))
            place += isinstance(piece, Link)
            if isinstance(piece, Link) and place == self.link:
                self.show_column(at, end)
                self.show_row(at)
            at = end

    def _scroll(self, rows: int) -> None:
        self.top, self.skip = (
            self._forward((self.top, self.skip), rows) if rows > 0 else self._back((self.top, self.skip), -rows)
        )
        self._clamp_top()
        self.follow = self.follow and self.at_end
        self._clamp_cursor()

    def _is_hidden(self, place: Place, step: int) -> bool:
        places = self.visible()
        return not places or (place > places[-1] if step > 0 else place < places[0])

    def _show_cursor(self) -> None:
        if not self.count:
            return
        first, last = (self.cursor, 0), (self.cursor, len(self.rows(self.cursor)) - 1)
        lowest = self._back(last, self.height - 1)
        if lowest > first and any(line == self.cursor for line, _ in self.visible()):
            pass  # taller than the screen: wherever it is read is fine
        elif (self.top, self.skip) > first or lowest > first:
            self.top, self.skip = first
        elif (self.top, self.skip) < lowest:
            self.top, self.skip = lowest
        self._clamp_top()
        self.follow = self.follow and self.at_end

    def _settle(self) -> None:
        """Bring everything back into what there is."""
        self.cursor = max(0, min(self.cursor, self.count - 1))
        if self.top < 0:
            self.top = self.skip = 0
        self._clamp_top()
        if self.follow:
            self.top, self.skip = self._last_top()
        if not self.browsing and not self.pointed:
            self._clamp_cursor()

    def _clamp_top(self) -> None:
        self.top = max(0, min(self.top, self.count - 1))
        self.skip = max(0, min(self.skip, len(self.rows(self.top)) - 1)) if self.count else 0
        self.top, self.skip = min((self.top, self.skip), self._last_top())

    def _clamp_cursor(self) -> None:
        places = self.visible()
        if places:
            line = max(places[0][0], min(self.cursor, places[-1][0]))
            if line != self.cursor:
                self.cursor, self.link, self.pointed = line, 0, False

    def _last_top(self) -> Place:
        """What stands first when the last row stands last."""
        if not self.count:
            return (0, 0)
        return self._back((self.count - 1, len(self.rows(self.count - 1)) - 1), self.height - 1)

    def _back(self, place: Place, rows: int) -> Place:
        line, row = place
        while rows > row and line > 0:
            rows -= row + 1
            line -= 1
            row = len(self.rows(line)) - 1
        return line, max(0, row - rows)

    def _forward(self, place: Place, rows: int) -> Place:
        line, row = place
        while line < self.count:
            left = len(self.rows(line)) - 1 - row
            if rows <= left:
                return line, row + rows
            rows -= left + 1
            line, row = line + 1, 0
        return self._last_top()


def _linked(lines: Sequence[Line], places: range) -> list[int]:
    return [at for at in places if Link in map(type, lines[at])]
