"""What a Grid knows and how its lines get to the screen; classes that build on it add keys and mouse."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Generic

from cockpit.models import Health
from screens import grid_messages as messages
from screens.column_choice import Choice, arranged
from screens.filters import compile_filter
from screens.grid_canvas import TOP_LINES, Canvas, Frame
from screens.grid_model import Column, Prepared, R, Recipe, cell_text
from screens.grid_paint import Palette, palette
from screens.grid_state import GridState
from screens.grid_title import TitleFacts, empty_words, title_pieces
from screens.scrolled import Scrollable, Scrolled
from themes import token_styles
from themes.glyphs import Signs, signs

# Above this many rows filtering and sorting leave the UI's thread.
SMALL = 2_000


class GridCore(Scrolled, Generic[R]):
    """Rows, order, cursor and marks of a table, and the drawing of what is on screen; see Grid."""

    BAR_TOP = TOP_LINES

    def __init__(
        self,
        columns: Sequence[Column[R]],
        key: Callable[[R], str],
        *,
        health: Callable[[R], Health] | None = None,
        fields: Mapping[str, Callable[[R], str]] | None = None,
        title: str = "",
        empty: str = "nothing here",
        sort: str | None = None,
        descending: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's name for it
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.columns = self._offered = tuple(columns)
        self.usual_choice: Choice | None = None  # the config's
        self._choice: Choice | None = None
        if len({column.id for column in columns}) != len(self.columns):
            raise ValueError("two columns have the same id")
        self.title, self.headline = title, ""
        self.empty = empty
        fields = _cell_fields(self.columns) if fields is None else fields
        self.fields = {name.lower(): text for name, text in fields.items()}
        self.state: GridState[R] = GridState()
        self.canvas = Canvas(self.columns, health)
        self._key = key
        self._health = health
        self._sort = sort
        self._descending = descending
        self._filter_text = ""
        self._keep: Callable[[R], bool] | None = None
        self._problems_only = False
        self._rows: Sequence[R] | None = None
        self._joined: object = None
        self._recipe = self._new_recipe()
        self._turn = 0
        self._working = False
        self._queued: tuple[Sequence[R], bool] | None = None
        self._look_kept: tuple[Hashable, tuple[Palette, Signs]] | None = None
        self._told_key: str | None = None
        self._told_marks: tuple[str, ...] = ()

    # What others read.

    @property
    def cursor_key(self) -> str | None:
        """The key of the row under the cursor; None when no row is shown."""
        return self.state.cursor_key if self.state.count else None

    @property
    def cursor_row(self) -> R | None:
        """The row under the cursor; None when no row is shown."""
        view = self.state.view
        return view.row(self.state.cursor) if view is not None and len(view) else None

    @property
    def marked_keys(self) -> tuple[str, ...]:
        """The keys of all marked rows in the order they were marked, also of those a filter hides."""
        return tuple(self.state.marks)

    @property
    def target_keys(self) -> tuple[str, ...]:
        """What an action is about: the marked rows, else the row under the cursor, else nothing."""
        return self.marked_keys or (() if self.cursor_key is None else (self.cursor_key,))

    @property
    def visible_rows(self) -> list[R]:
        """The rows that the filter lets through, sorted, on screen or scrolled away."""
        view = self.state.view
        return [] if view is None else [view.rows[index] for index in view.order]

    @property
    def rows_total(self) -> int | None:
        """How many rows there are without the filter; None before the first reading."""
        return None if self.state.view is None else len(self.state.view.rows)

    @property
    def filter_text(self) -> str:
        """The filter as it was typed; empty for none."""
        return self._filter_text

    filter_replaces = False

    @property
    def filter_hint(self) -> str:
        """The language of the filter, for whoever types one."""
        return f"words · field:value · !not · fields: {', '.join(self.fields)}"

    def filter_closed(self) -> None:
        """Nobody types a filter any longer."""

    @property
    def problems_only(self) -> bool:
        """True while only rows that are not OK are shown."""
        return self._problems_only

    @property
    def sort(self) -> tuple[str | None, bool]:
        """The id of the column sorted by (None: the order of arrival), and whether it is turned round."""
        return self._sort, self._descending

    @property
    def choice(self) -> Choice | None:
        """Which columns were chosen by hand; None while nobody has."""
        return self._choice

    @property
    def choice_now(self) -> Choice | None:
        """The same, else the config's."""
        return self._choice or self.usual_choice

    @property
    def busy(self) -> bool:
        """True while a thread filters and sorts."""
        return self._working

    def scrollable(self) -> Scrollable:
        """The rows."""
        return self.state

    # What others tell it.

    def show(self, rows: Sequence[R], *, stale: str | None = None, joined: object = None) -> None:
        """Replace the rows. Above SMALL rows a thread filters and sorts them, and they appear a little later.

        `stale` says how old they are when they are too old, such as "stale 34s". `joined` is what cells look
        at besides the row: as long as it is the same object, rows that are the same are not asked again.
        """
        self._stale = stale
        self._rows = rows
        if joined is not self._joined:
            self._joined = joined
            self._recipe = self._new_recipe()
        self._submit(home=False)

    def set_columns(self, columns: Sequence[Column[R]]) -> None:
        """Show other columns of the same rows; cursor, marks and filter stay, and the order where it still can."""
        self._offered = tuple(columns)
        self._take_columns()

    def choose_columns(self, choice: Choice | None) -> None:
        """Show these columns in this order; None for the usual ones, which may be the config's."""
        self._choice = choice
        self._take_columns()

    def _take_columns(self) -> None:
        self.columns = self.canvas.columns = arranged(self._offered, self.choice_now)
        if self._sort not in {column.id for column in self.columns if column.sort}:
            self._sort = None
        self._recipe = self._new_recipe()
        if self.canvas.width:
            self.canvas.fit(self.state.view, self.canvas.width)
        self._submit(home=False)

    def tick(self) -> None:
        """Draw the rows on screen again where a column is `live`, as when the clock has moved on."""
        self.canvas.forget_live()
        self.sync()

    def draw_anew(self) -> None:
        """Draw every row again, and as wide as it is now: its texts have changed, such as the zone of its times."""
        if self.canvas.width:
            self.canvas.fit(self.state.view, self.canvas.width)
            self.sync()

    def set_filter(self, text: str) -> None:
        """Filter by `text`. Raises FilterError for an unknown field; the filter there was then stays."""
        text = text.strip()
        if text == self._filter_text:
            return
        self._keep = compile_filter(text, self.fields) if text else None
        self._filter_text = text
        self._view_changed()

    def set_problems_only(self, only: bool) -> None:
        """Show only rows that are not OK, or all; without effect for rows that have no state."""
        if self._health is not None and only != self._problems_only:
            self._problems_only = only
            self._view_changed()

    def set_sort(self, column: str | None, descending: bool = False) -> None:
        """Sort by a column's id, None for the order of arrival. Raises KeyError when that is impossible."""
        if column is not None and column not in {item.id for item in self.columns if item.sort}:
            raise KeyError(column)
        self._sort, self._descending = column, descending
        self._view_changed()

    # Filtering and sorting.

    def _view_changed(self) -> None:
        self._recipe = self._new_recipe()
        # Whoever has not moved from the first row wants to see the first row of the new order.
        self._submit(home=self.state.at_home)
        self.post_message(messages.ViewChanged(self))

    def _new_recipe(self) -> Recipe[R]:
        sort = next((column.sort for column in self.columns if column.id == self._sort), None)
        health = self._health if self._problems_only else None
        return Recipe(self._key, self._keep, health, sort, self._descending, self._joined)

    def _submit(self, *, home: bool) -> None:
        if self._rows is None:
            self.sync()
            return
        self._turn += 1
        if len(self._rows) <= SMALL or not self.is_mounted:
            self._queued = None
            self._adopt(self._recipe.prepare(self._rows, self.state.view), home=home)
        elif self._working:
            self._queued = (self._rows, home)
        else:
            self._start(self._rows, home)

    def _start(self, rows: Sequence[R], home: bool) -> None:
        self._working = True
        job = (self._recipe, rows, self.state.view, self._turn, home)
        threading.Thread(target=self._work, args=job, name="grid-prepare", daemon=True).start()

    def _work(self, recipe: Recipe[R], rows: Sequence[R], old: Prepared[R] | None, turn: int, home: bool) -> None:
        result: Prepared[R] | Exception
        try:
            result = recipe.prepare(rows, old)
        except Exception as error:  # raised again on the UI's thread, where it is seen
            result = error
        self.post_message(messages.RowsReady(self, turn, home, result))

    def on_grid_rows_ready(self, event: messages.RowsReady) -> None:
        """Take over what the thread made, unless something newer has been asked for since."""
        self._working = False
        if isinstance(event.result, Exception):
            raise event.result
        if event.turn == self._turn:
            self._adopt(event.result, home=event.home)
        elif self._queued is not None:
            (rows, home), self._queued = self._queued, None
            self._start(rows, home)

    def _adopt(self, prepared: Prepared[R], *, home: bool) -> None:
        first = not self.state.count
        self.state.adopt(prepared, home=home)
        self.canvas.forget_live()
        if first and self.canvas.width:
            self.canvas.fit(prepared, self.canvas.width)
        self.sync()

    # Drawing.

    def _draw(self) -> None:
        size = self.size
        if size != self._lines_size or self.canvas.width != size.width:
            self.state.resize(size.height - TOP_LINES)
            self.canvas.fit(self.state.view, size.width)
            self._lines_size = size
        self._lines = self.canvas.draw(self.state, size.height, self._look(), self._frame())

    def _look(self) -> tuple[Palette, Signs]:
        tokens, chars = token_styles(self.app), signs(self.app)
        asked = (id(tokens), self.rich_style, self.has_focus, self._stale is not None, chars)
        if self._look_kept is None or self._look_kept[0] != asked:
            look = palette(tokens, self.rich_style, focused=self.has_focus, stale=self._stale is not None)
            self._look_kept = (asked, (look, chars))
        return self._look_kept[1]

    def _frame(self) -> Frame:
        facts = self._facts()
        left, right = title_pieces(facts, signs(self.app))
        rule = "accent" if self.has_focus else "rule"
        return Frame(left, right, rule, empty_words(facts), self._sort, self._descending)

    def _facts(self) -> TitleFacts:
        sorted_by = next((column for column in self.columns if column.id == self._sort), None)
        hidden = sorted_by is not None and sorted_by.wide and not self.canvas.wide
        return TitleFacts(
            title=self.title,
            headline=self.headline,
            focused=self.has_focus,
            total=self.rows_total,
            shown=self.state.count,
            marked=len(self.state.marks),
            hidden_marks=self.state.hidden_marks(),
            lost_marks=self.state.lost_marks,
            range_size=len(self.state.pending_range()),
            filter_text=self._filter_text,
            problems_only=self._problems_only,
            sort=sorted_by.title if sorted_by else "",
            sort_hidden=hidden,
            descending=self._descending,
            stale=self._stale,
            dropped=0 if self.canvas.wide else self.canvas.layout.dropped,
            wide=self.canvas.wide,
            empty=self.empty,
            waiting=self._waiting,
        )

    def _announce(self) -> None:
        key, marks = self.cursor_key, self.marked_keys
        if key != self._told_key:
            self._told_key = key
            self.post_message(messages.CursorMoved(self, key))
        if marks != self._told_marks:
            self._told_marks = marks
            self.post_message(messages.MarksChanged(self))


def _cell_fields(columns: Sequence[Column[Any]]) -> dict[str, Callable[[Any], str]]:
    """Make every column a field of the filter, for a table that names none."""
    return {column.id: partial(_text_of, column) for column in columns}


def _text_of(column: Column[Any], row: Any) -> str:
    return cell_text(column.cell(row))
