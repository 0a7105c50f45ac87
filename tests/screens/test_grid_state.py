"""Filter, order, cursor and marks of a grid, without any screen."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.models import Health
from screens.grid_model import Prepared, Recipe
from screens.grid_state import GridState
from tests.screens.grid_app import Row, node_rows

PLAIN: Recipe[Row] = Recipe(lambda r: r.name)
BY_LOAD: Recipe[Row] = Recipe(lambda r: r.name, sort=lambda r: r.load)


def names(view: Prepared[Row]) -> list[str]:
    return [view.key(place) for place in range(len(view))]


def state_at(place: int, rows: list[Row], height: int = 5, recipe: Recipe[Row] = PLAIN) -> GridState[Row]:
    state: GridState[Row] = GridState(height=height)
    state.adopt(recipe.prepare(rows))
    state.move_to(place)
    return state


@pytest.mark.parametrize("descending", [False, True])
def test_rows_without_a_value_come_last_in_both_directions(descending: bool) -> None:
    loads = [3.0, None, 1.0, float("nan"), 2.0]
    rows = [Row(f"n{i}", load=load) for i, load in enumerate(loads)]
    order = names(replace(BY_LOAD, descending=descending).prepare(rows))
    assert order == (["n0", "n4", "n2"] if descending else ["n2", "n4", "n0"]) + ["n1", "n3"]


def test_equal_values_keep_the_order_of_arrival_in_both_directions() -> None:
    rows = [Row(name, load=1.0) for name in "dacb"]
    assert names(BY_LOAD.prepare(rows)) == list("dacb")
    assert names(replace(BY_LOAD, descending=True).prepare(rows)) == list("dacb")


def test_values_of_mixed_kinds_still_sort() -> None:
    mixed = {"a": 2, "b": "x", "c": 1}
    recipe: Recipe[str] = Recipe(str, sort=mixed.__getitem__)
    assert sorted(recipe.prepare(list("abc")).order) == [0, 1, 2]


def test_problems_only_and_filter_are_both_applied() -> None:
    rows = [Row("a"), Row("b", health=Health.WARN), Row("c", health=Health.UNKNOWN)]
    recipe = Recipe[Row](lambda r: r.name, keep=lambda r: r.name != "c", health=lambda r: r.health)
    assert names(recipe.prepare(rows)) == ["b"]


def test_only_changed_rows_are_asked_again() -> None:
    asked: list[str] = []

    def load(row: Row) -> float | None:
        asked.append(row.name)
        return row.load

    recipe = Recipe[Row](lambda r: r.name, sort=load)
    rows = node_rows(5)
    first = recipe.prepare(rows)
    asked.clear()
    rows[2] = replace(rows[2], load=99.0)
    second = recipe.prepare([*reversed(rows)], first)
    assert asked == ["n002"]
    assert names(second) == ["n000", "n001", "n003", "n004", "n002"]


@given(st.integers(0, 2**32))
def test_carrying_answers_over_gives_what_a_fresh_pass_gives(seed: int) -> None:
    rng = random.Random(seed)
    recipe = Recipe[Row](lambda r: r.name, keep=lambda r: (r.load or 0) > 3, sort=lambda r: r.load)
    pool = [Row(f"n{i}", load=rng.choice([None, *range(9)])) for i in range(12)]
    old = recipe.prepare(rng.sample(pool, 8))
    changed = [replace(row, load=rng.random() * 9) if rng.random() < 0.3 else row for row in pool]
    rows = rng.sample(changed, 8)
    assert names(recipe.prepare(rows, old)) == names(recipe.prepare(rows))


def test_cursor_stays_with_its_row_and_on_its_line() -> None:
    rows = node_rows(30)
    state = state_at(12, rows)
    line = state.cursor - state.top
    state.adopt(PLAIN.prepare([Row("new1"), Row("new2"), *rows]))
    assert (state.cursor_key, state.cursor) == ("n012", 14)
    assert state.cursor - state.top == line
    state.adopt(PLAIN.prepare(rows[4:]))
    assert (state.cursor_key, state.cursor - state.top) == ("n012", line)


def test_at_the_top_new_rows_push_the_cursor_down_and_stay_in_sight() -> None:
    rows = node_rows(30)
    state = state_at(1, rows)
    state.adopt(PLAIN.prepare([Row("worse"), *rows]))
    assert (state.top, state.cursor_key, state.cursor) == (0, "n001", 2)


def test_at_the_top_the_cursor_row_is_never_pushed_off_the_screen() -> None:
    rows = node_rows(30)
    state = state_at(1, rows)
    state.adopt(PLAIN.prepare([*(Row(f"worse{i}") for i in range(10)), *rows]))
    assert state.cursor_key == "n001"
    assert state.top <= state.cursor < state.top + state.height


@pytest.mark.parametrize(
    ("gone", "heir"),
    [({12}, "n013"), ({12, 13, 14}, "n015"), (set(range(12, 30)), "n011"), (set(range(1, 30)), "n000")],
)
def test_a_removed_row_hands_the_cursor_to_the_one_in_its_place(gone: set[int], heir: str) -> None:
    rows = node_rows(30)
    state = state_at(12, rows)
    state.adopt(PLAIN.prepare([row for i, row in enumerate(rows) if i not in gone]))
    assert state.cursor_key == heir


def test_cursor_comes_back_to_its_row_after_an_empty_view() -> None:
    rows = node_rows(9)
    state = state_at(4, rows)
    state.adopt(PLAIN.prepare([]))
    assert state.count == 0
    state.adopt(PLAIN.prepare(rows))
    assert state.cursor_key == "n004"


@pytest.mark.parametrize("lines", [-20, 20])
@pytest.mark.parametrize("move", ["page", "scroll"])
def test_paging_where_no_row_is_shown_moves_nothing(move: str, lines: int) -> None:
    """A page up over an empty list left a cursor before its beginning, and the next rows ended the app."""
    state = state_at(2, node_rows(3))
    state.adopt(PLAIN.prepare([]))
    getattr(state, move)(lines)
    assert (state.cursor, state.top) == (0, 0)
    state.adopt(PLAIN.prepare(node_rows(9)[5:]))
    assert state.cursor_key == "n005"


def test_marks_stay_with_their_rows_and_vanished_ones_are_counted() -> None:
    rows = node_rows(9)
    state = state_at(2, rows)
    state.toggle_mark()
    state.move_to(5)
    state.toggle_mark()
    state.adopt(replace(BY_LOAD, descending=True).prepare(rows))
    assert list(state.marks) == ["n002", "n005"]
    state.adopt(PLAIN.prepare([row for row in rows if row.name != "n002"]))
    assert (list(state.marks), state.lost_marks) == (["n005"], 1)
    state.unmark()
    assert (state.marks, state.lost_marks) == ({}, 0)


def test_marks_survive_a_filter_that_hides_them() -> None:
    rows = node_rows(9)
    state = state_at(2, rows)
    state.toggle_mark()
    state.adopt(Recipe[Row](lambda r: r.name, keep=lambda r: r.name > "n004").prepare(rows))
    assert (list(state.marks), state.hidden_marks()) == (["n002"], 1)


def test_a_filter_that_hides_the_row_under_the_cursor_puts_it_on_the_first_that_fits() -> None:
    rows = node_rows(9)
    state = state_at(6, rows)
    found = Recipe[Row](lambda r: r.name, keep=lambda r: r.name in ("n001", "n003", "n008"))
    state.adopt(found.prepare(rows))
    assert state.cursor_key == "n001"
    state.move_to(1)
    state.adopt(found.prepare([row for row in rows if row.name != "n003"]))
    assert state.cursor_key == "n008"  # the filter is the same: the row that took its place
    narrower = Recipe[Row](lambda r: r.name, keep=lambda r: r.name in ("n003", "n008"))
    state.adopt(narrower.prepare(rows))
    assert state.cursor_key == "n008"  # it fits, so it stays


def test_range_spans_in_both_directions_and_ends_when_its_row_goes() -> None:
    rows = node_rows(9)
    state = state_at(5, rows)
    state.anchor = state.cursor_key
    state.move_to(3)
    assert state.pending_range() == range(3, 6)
    state.adopt(PLAIN.prepare([row for row in rows if row.name != "n005"]))
    assert state.anchor is None


@given(st.lists(st.tuples(st.sampled_from(["move", "page", "scroll", "resize", "rows"]), st.integers(-40, 40))))
def test_cursor_is_always_a_row_on_screen(steps: list[tuple[str, int]]) -> None:
    state = state_at(0, node_rows(20))
    for what, amount in steps:
        if what == "rows":
            state.adopt(BY_LOAD.prepare(node_rows(abs(amount))))
        elif what == "move":
            state.move_to(state.cursor + amount)
        else:
            getattr(state, what)(amount)
        assert 0 <= state.top <= max(0, state.count - state.height)
        if state.count and state.view is not None:
            assert state.top <= state.cursor < min(state.count, state.top + state.height)
            assert state.view.key(state.cursor) == state.cursor_key


def test_a_pinned_cursor_is_on_the_first_row_until_somebody_moves_it() -> None:
    state: GridState[Row] = GridState(height=5, pinned=True)
    state.adopt(PLAIN.prepare([Row("b"), Row("c")]))
    state.adopt(PLAIN.prepare([Row("a"), Row("b"), Row("c")]))
    assert state.cursor_key == "a"
    state.move_to(1)
    state.adopt(PLAIN.prepare([Row("0"), Row("a"), Row("b"), Row("c")]))
    assert state.cursor_key == "b"
