"""`W`: which columns a table shows, and in which order; it takes effect while one chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Static

from screens.column_choice import Choice, moved, toggled
from screens.content import styled
from screens.grid import Grid
from screens.grid_canvas import TOP_LINES
from screens.grid_model import Cell, Column
from screens.grid_title import TitleFacts
from screens.keys import bindings
from screens.lines import Line, Piece
from screens.menu_grid import MenuGrid
from screens.modal import Modal

LEAST_WIDTH, MOST_WIDTH = 47, 56  # half of the screen, or what the words need
FRAME_LINES = 2
ROOMY_FROM = 12  # lines within the frame, from which the words below the list have room
WORDS_LINES = 3
_KEYS = (("space", "show/hide"), ("J K", "move"), ("0", "usual"), ("esc", "close"))
# What is said of a column, and in which style.
ALWAYS, SHOWN, NO_ROOM, HIDDEN = ("always", "dim"), ("yes", ""), ("no room", "warning"), ("no", "dim")


@dataclass(frozen=True, slots=True)
class Offered:
    """One column of the table behind: whether it is shown, and what it is."""

    id: str
    title: str
    shown: Cell
    about: str


def offered(table: Grid[Any]) -> Iterator[Offered]:
    """Every column of a table in its order now."""
    seen = {slot.column.id for slot in table.canvas.layout.slots}
    for place, column in enumerate(table.columns):
        shown = SHOWN if column.id in seen else NO_ROOM
        word = ALWAYS if place == 0 else HIDDEN if column.wide else shown
        yield Offered(column.id, column.title, word, column.note)


class ColumnGrid(Grid[Offered], inherit_bindings=False):
    """The columns as lines; one can only move in it."""

    BINDINGS: ClassVar[list[BindingType]] = MenuGrid.BINDINGS

    def __init__(self, title: str) -> None:
        columns: tuple[Column[Offered], ...] = (
            Column("title", "column", lambda line: line.title, None, 6, 24),
            Column("shown", "shown", lambda line: line.shown, None, 3, 7),
            Column("id", "in the config", lambda line: (line.id, "dim"), None, 4, 24, drop=2),
            Column("about", "what it is", lambda line: (line.about, "dim"), None, 18, 60, drop=1, cut=True),
        )
        super().__init__(columns, lambda line: line.id, title=title, empty="")

    def _facts(self) -> TitleFacts:
        return replace(super()._facts(), dropped=0)  # no key here shows what has no room

    def sort_by(self, column_id: str | None) -> None:
        """A click on a title sorts nothing: the order is what is chosen here."""


class ColumnsScreen(Modal[None]):
    """Changes the table behind it at once; `kept` says for how long. It stands at the right, so that one sees that."""

    AUTO_FOCUS = "ColumnGrid"
    BINDINGS: ClassVar[list[BindingType]] = bindings("columns")
    DEFAULT_CSS = """
    ColumnsScreen { align: right middle; }
    ColumnsScreen > #columns {
        width: auto;
        max-width: 100%;
        height: auto;
        max-height: 100%;
        border: solid $cockpit-accent;
        background: $background;
    }
    ColumnsScreen #columns-keys, ColumnsScreen #columns-kept { width: 100%; height: auto; padding: 0 1; }
    """

    def __init__(self, table: Grid[Any], kept: str) -> None:
        super().__init__()
        self._table, self._kept = table, kept
        self._grid = ColumnGrid(f"{table.title}: columns")

    def compose(self) -> ComposeResult:
        with Vertical(id="columns"):
            yield self._grid
            yield Static(styled(_key_pieces()), id="columns-keys")
            yield Static(styled([(self._kept, "dim")]), id="columns-kept")

    def on_mount(self) -> None:
        """The second line is under the cursor: the first can be neither hidden nor moved."""
        self.styles.background = "transparent"  # the table behind is what one looks at
        self.show_columns()
        self._grid.state.move_to(1)
        self._grid.sync()

    def on_resize(self) -> None:
        """As large as the list; where the terminal is small, the list before the words below it."""
        width, height = self.app.size
        self._grid.styles.width = min(max(LEAST_WIDTH, width // 2), MOST_WIDTH, width - FRAME_LINES)
        room = height - FRAME_LINES
        roomy = room >= ROOMY_FROM
        for words in self.query(Static):
            words.display = roomy
        lines = len(self._table.columns) + TOP_LINES
        self._grid.styles.height = max(1, min(lines, room - (WORDS_LINES if roomy else 0)))
        self.call_after_refresh(self.show_columns)  # the table behind has another width too

    def show_columns(self) -> None:
        """Say of each column how it is now."""
        self._grid.show(tuple(offered(self._table)))

    # What keys do.

    def action_show_or_hide(self) -> None:
        """Show the column, or hide it."""
        self._change(lambda name: toggled(self._table.columns, self._table.choice_now, name))

    def action_move(self, step: int) -> None:
        """Move the column by one place."""
        self._change(lambda name: moved(self._table.columns, self._table.choice_now, name, step))

    def action_reset(self) -> None:
        """The usual columns again."""
        self._take(None)

    def action_close(self) -> None:
        """Back to the table."""
        self.dismiss(None)

    def _change(self, how: Callable[[str], Choice]) -> None:
        if self._grid.cursor_key is not None:
            self._take(how(self._grid.cursor_key))

    def _take(self, choice: Choice | None) -> None:
        if self._table.canvas.wide:  # it shows every column, and a change would not be seen
            self._table.action_wide()
        self._table.choose_columns(None if choice == Choice() else choice)
        self.show_columns()


def _key_pieces() -> Line:
    pieces: list[Piece] = []
    for place, (key, words) in enumerate(_KEYS):
        pieces += [(f"{'  ' * bool(place)}{key} ", "accent"), words]
    return pieces


def kept_words(*, remember: bool) -> str:
    """For how long a choice counts."""
    return "kept for the next start" if remember else "until you quit; `remember: true` keeps it"
