"""What a TextView knows and how its rows get to the screen; text_view.py adds keys and mouse."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from rich.segment import Segment
from textual.strip import Strip

from screens.drawn import thumb
from screens.grid_paint import draw_title, draw_words, safe_cells
from screens.lines import Line, Piece, Subject
from screens.scrolled import Scrollable, Scrolled
from screens.text_paint import AROUND, Drawing, TextLook, cut_pieces, draw_row, text_look, with_bar
from screens.text_search import TextSearch
from screens.text_state import Place, TextState, line_text, piece_text
from screens.wrap import hang
from themes import token_styles
from themes.glyphs import signs

TOP_LINES = 1  # the title
_AROUND_RIGHT = 9  # cells of a title that are rules and blanks when something stands at its right


class TextCore(Scrolled):
    """Lines, cursor, search and drawing of a text; see TextView."""

    BAR_TOP = TOP_LINES

    def __init__(
        self,
        *,
        title: Iterable[Piece] = (),
        empty: str = "",
        id: str | None = None,  # noqa: A002 - Textual's name for it
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.state = TextState()
        self.empty = empty
        self._title = tuple(title)
        self._search: TextSearch | None = None
        self._before_search: tuple[int, Place] | None = None
        self._jump_waits = False
        self._pumping = False
        self._look_kept: tuple[Hashable, TextLook] | None = None

    # What others read.

    @property
    def subject(self) -> Subject | None:
        """Where enter would lead; None where there is no link."""
        return self.state.subject

    @property
    def text(self) -> str:
        """Everything, each line in one piece however it is broken on screen."""
        return "\n".join(line_text(line) for line in self.state.lines)

    @property
    def current_line(self) -> str:
        """The line under the cursor, in one piece; the first one on screen where there is no cursor."""
        lines, state = self.state.lines, self.state
        place = state.cursor if state.browsing else state.top
        return line_text(lines[place]) if 0 <= place < len(lines) else ""

    def scrollable(self) -> Scrollable:
        """The lines."""
        return self.state

    # What others tell it.

    def show(
        self,
        lines: Sequence[Line],
        *,
        title: Iterable[Piece] | None = None,
        keep: bool = True,
        shift: int = 0,
    ) -> None:
        """Replace the text, and the title unless that is None. The sequence must not be changed afterwards.

        `keep` leaves cursor and scroll position where they are; a cursor on a link stays with its subject.
        `shift` says how many lines there are now before the one that was the first, or, when negative, that
        so many of the first lines are gone. Lines that are the very same objects cost next to nothing.
        """
        if title is not None:
            self._title = tuple(title)
        self.state.adopt(lines, keep=keep, shift=shift)
        if self._search is not None:
            self._search.adopt(lines, shift)
            self._pump()
        self.sync()

    def set_title(self, title: Iterable[Piece]) -> None:
        """Change only the title."""
        title = tuple(title)
        if title != self._title:
            self._title = title
            self.sync()

    def point_at(self, line: int) -> None:
        """Show that line, with others around it, under the cursor."""
        self.state.jump(line)
        self.sync()

    def set_follow(self, follow: bool) -> None:
        """Stay at the end when lines are added, until somebody scrolls up; or no longer."""
        self.state.follow = follow
        if follow:
            self.state.end()
        self.sync()

    # Searching: what the line at the bottom of the screen types into, see screens/filter_bar.py.

    filter_hint = "words to find, as they stand there"
    filter_replaces = True

    @property
    def filter_text(self) -> str:
        """What is searched for; empty for nothing."""
        return "" if self._search is None else self._search.needle

    def set_filter(self, text: str) -> None:
        """Search while somebody types: from where the search began. Empty goes back there."""
        text = piece_text(text)  # as it stands there
        if text == self.filter_text:
            return
        if self._before_search is None:
            self._before_search = (self.state.cursor, (self.state.top, self.state.skip))
        self.state.cursor, (self.state.top, self.state.skip) = self._before_search
        self.state.pointed = False
        self._search = TextSearch(text, self.state.lines) if text else None
        self._jump_waits = bool(text)
        if text:
            self._pump()
        self.sync()

    def filter_closed(self) -> None:
        """The search is kept or cleared; the next one begins from here."""
        self._before_search = None

    def clear_search(self) -> bool:
        """Forget what is searched for and stay here; False when nothing is."""
        found, self._search, self._before_search = self._search is not None, None, None
        self.state.pointed = False
        self.sync()
        return found

    def to_hit(self, step: int) -> None:
        """To the next line that holds what is searched for, or the one before it."""
        if self._search is None:
            return
        line = self._search.next_from(self.state.cursor, step)
        if line is not None:
            self._show_hit(line)
        self.sync()

    def _pump(self) -> None:
        """Search some lines, and the others once waiting keys have had their turn."""
        search = self._search
        if search is None:
            return
        search.advance()
        line = search.first_from(self.state.cursor) if self._jump_waits else None
        if line is not None:
            self._jump_waits = False
            self._show_hit(line)
        if not search.done and not self._pumping:
            self._pumping = self.call_later(self._pump_on)

    def _pump_on(self) -> None:
        self._pumping = False
        self._pump()
        self.sync()

    def _show_hit(self, line: int) -> None:
        self.state.jump(line)
        spans = () if self._search is None else self._search.spans(line_text(self.state.lines[line]))
        if spans:
            self.state.show_column(*spans[0])
            self.state.show_row(spans[0][0])

    # Drawing.

    def _announce(self) -> None:
        """Nobody waits to be told where the cursor is: enter says it."""

    def _draw(self) -> None:
        size, state = self.size, self.state
        width = max(1, size.width - AROUND)
        state.resize(width, size.height - TOP_LINES)
        self._lines_size = size
        look = self._look()
        rows = [self._row(place, look, size.width) for place in state.visible()]
        if not state.count and self.empty:
            rows = draw_words(self.empty, size.width - 1, look.plain, "", look.signs.cut)
        blank = Strip([Segment(" " * (size.width - 1), look.plain[""])], size.width - 1)
        rows = (rows + [blank] * (state.height - len(rows)))[: state.height]
        bar = self._bar()
        self._lines = [self._title_line(look), *with_bar(rows, bar, size.width, look)][: size.height]

    def _row(self, place: Place, look: TextLook, width: int) -> Strip:
        state, (at, row) = self.state, place
        line = state.lines[at]
        here = at == state.cursor
        hits = () if self._search is None else tuple(self._search.spans(line_text(line)))
        drawing = Drawing(
            span=state.rows(at)[row],
            indent=hang(line, state.width) if row else 0,
            cursor=here and (state.browsing or state.pointed),
            active=state.link if here and state.browsing and self.has_focus else None,
            hits=hits,
            here=here and state.pointed,
        )
        return draw_row(line, drawing, width, look, left=None if state.wrap else state.left)

    def _bar(self) -> range:
        state = self.state
        shown, at_end = len({line for line, _ in state.visible()}), state.at_end
        if (state.top, state.skip) > (0, 0) or not at_end:
            shown = min(shown, state.count - 1)  # some row of a line is hidden, even when each line has one on screen
        return thumb(state.top, shown, state.count, state.height, at_end)

    def _look(self) -> TextLook:
        tokens, chars = token_styles(self.app), signs(self.app)
        asked = (id(tokens), self.rich_style, self.has_focus, chars)
        if self._look_kept is None or self._look_kept[0] != asked:
            self._look_kept = (asked, text_look(tokens, self.rich_style, chars, focused=self.has_focus))
        return self._look_kept[1]

    def _title_line(self, look: TextLook) -> Strip:
        left = [(piece, "") if isinstance(piece, str) else (piece[0], piece[1]) for piece in self._title]
        right = [] if self._search is None else [(self._search.words(self.state.cursor), "accent")]
        if not self.state.wrap:
            right += [(f" {look.signs.dot} ", "dim")] if right else []
            right += [("not wrapped", "dim")]
        rule = "accent" if self.has_focus else "rule"
        told = sum(safe_cells(text)[1] for text, _ in right)
        left = cut_pieces(left, self.size.width - told - _AROUND_RIGHT, look.signs.cut) if told else left
        return draw_title(left, right, self.size.width, look.plain, look.signs, rule)
