"""Which columns a grid shows at which width, and texts cut to cells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from screens.grid_layout import Layout, arrange
from screens.grid_model import Column
from screens.grid_paint import fit, safe_cells


def column(name: str, width: int, most: int = 40, drop: int = 0, wide: bool = False) -> Column[str]:
    return Column(name, name, str, width=width, max_width=most, drop=drop, wide=wide)


COLUMNS = [
    column("a", 8),
    column("b", 10, drop=2),
    column("c", 10, drop=3),
    column("d", 20, drop=1),
    column("e", 30, wide=True),
]


def ids(layout: Layout) -> list[str]:
    return [slot.column.id for slot in layout.slots]


@pytest.mark.parametrize(
    ("width", "shown", "dropped"),
    [(200, "abcd", 1), (54, "abcd", 1), (52, "abd", 2), (42, "abd", 2), (41, "ad", 3), (25, "a", 4)],
)
def test_the_highest_drop_goes_first(width: int, shown: str, dropped: int) -> None:
    layout = arrange(COLUMNS, {}, width)
    assert "".join(ids(layout)) == shown
    assert layout.dropped == dropped


def test_wide_drops_nothing_and_scrolls_by_columns_until_the_last_is_whole() -> None:
    seen = []
    for skip in range(6):
        layout = arrange(COLUMNS, {}, 60, wide=True, skip=skip)
        assert ids(layout)[0] == "a"
        seen.append(("".join(ids(layout)), layout.left, layout.right))
    assert seen == [
        ("abcde", 0, 1),
        ("acde", 1, 1),
        ("ade", 2, 1),
        ("ae", 3, 0),
        ("ae", 3, 0),
        ("ae", 3, 0),
    ]


def test_a_number_at_the_right_edge_is_whole_or_not_there() -> None:
    numbers: list[Column[str]] = [column("a", 8), column("b", 10), Column("n", "n", str, width=9, align="right")]
    for width in range(22, 40):
        slots = arrange(numbers, {}, width, wide=True).slots
        assert slots[-1].width == 9 or ids(Layout(slots, width, 1)) == ["a", "b"]
    assert ids(arrange(numbers, {}, 31, wide=True)) == ["a", "b", "n"]
    assert arrange(numbers, {}, 30, wide=True).right == 1


def test_columns_want_their_text_but_not_more_than_allowed() -> None:
    layout = arrange([column("a", 4, 10), column("b", 4, 10)], {"a": 30, "b": 6}, 80)
    assert [slot.width for slot in layout.slots] == [10, 6]


def test_scarce_room_meets_small_wishes_first() -> None:
    layout = arrange([column("a", 4, 40), column("b", 4, 40)], {"a": 6, "b": 40}, 32)
    assert [slot.width for slot in layout.slots] == [6, 23]


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.integers(0, 60), st.integers(0, 3), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 220),
    st.integers(0, 12),
    st.booleans(),
)
def test_nothing_reaches_over_the_edge_or_overlaps(
    specs: list[tuple[int, int, int, bool]], width: int, skip: int, wide: bool
) -> None:
    columns = [
        column(f"c{i}", w, w + more, drop, is_wide and i > 0) for i, (w, more, drop, is_wide) in enumerate(specs)
    ]
    layout = arrange(columns, {c.id: c.max_width for c in columns}, width, margin=2, wide=wide, skip=skip)
    assert layout.slots[0].column.id == "c0"
    end = 0
    for slot in layout.slots:
        assert slot.x > end or slot.x == 2
        end = slot.x + slot.width
    assert end <= max(3, width - 1)
    whole = len(layout.slots) + layout.left + layout.right + layout.dropped
    assert whole in (len(columns), len(columns) + 1)  # one column may be both seen and cut off


TEXTS = [
    "plain",
    "日本語ジョブ",
    "e\u0301a\u0300",
    "🔥🔥🔥",
    "a\x1b[31mb",
    "👍🏽🇩🇪",
    "",
    "mixed 語 text",
    "\u200b\u202e\n\t",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("right", [False, True])
def test_fitted_text_takes_exactly_its_cells(text: str, right: bool) -> None:
    for width in range(1, 16):
        assert cell_len(fit(text, width, "…", right=right)) == width


@given(st.text(), st.integers(1, 20))
def test_any_text_fits(text: str, width: int) -> None:
    fitted = fit(text, width, "…")
    assert cell_len(fitted) == width
    assert not set(fitted) & {chr(code) for code in (*range(32), *range(127, 160))}


def test_cut_text_says_so_and_whole_text_does_not() -> None:
    assert fit("abcdef", 4, "…") == "abc…"
    assert fit("日本語", 4, "…") == "日 …"
    assert fit("abcd", 4, "…") == "abcd"


def test_flags_and_skin_tones_are_written_out() -> None:
    assert safe_cells("🇩🇪👍🏽") == ("DE👍·", 5)
