"""Which columns are shown and in which order: by hand, by the config, from a file of another version."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.config import ConfigError
from cockpit.config_file import load_config
from screens.column_choice import Choice, arranged, as_json, from_json, moved, toggled
from screens.column_names import COLUMNS, read_columns
from screens.grid_model import Column

TABLE = tuple(
    Column[str](name, name, str, wide=wide, drop=drop)
    for name, wide, drop in (("node", False, 0), ("state", False, 0), ("load", False, 9), ("by", True, 0))
)
CLUSTERS = "clusters:\n  one:\n    head: local\n"


def ids(choice: Choice | None, columns: tuple[Column[str], ...] = TABLE) -> str:
    """The columns from left to right; the hidden ones in brackets."""
    return " ".join(f"({c.id})" if c.wide else c.id for c in arranged(columns, choice))


def read(tmp_path: Path, text: str) -> dict[str, Choice]:
    path = tmp_path / "config.yaml"
    path.write_text(CLUSTERS + text)
    return read_columns(load_config(path).columns)


def test_without_a_choice_the_columns_are_the_very_same() -> None:
    assert arranged(TABLE, None) == TABLE


def test_hiding_and_showing_leave_every_column_where_it_is() -> None:
    hidden = toggled(TABLE, None, "state")
    assert ids(hidden) == "node (state) load (by)"
    assert ids(toggled(arranged(TABLE, hidden), hidden, "by")) == "node (state) load by"
    assert ids(toggled(arranged(TABLE, hidden), hidden, "state")) == "node state load (by)"


def test_the_column_that_names_the_row_is_neither_hidden_nor_moved_nor_passed() -> None:
    assert ids(toggled(TABLE, None, "node")) == ids(None)
    assert ids(moved(TABLE, None, "node", 1)) == ids(None)
    assert ids(moved(TABLE, None, "state", -1)) == ids(None)
    assert ids(moved(TABLE, None, "by", 1)) == ids(None)
    assert ids(moved(TABLE, None, "load", -1)) == "node load state (by)"
    assert ids(Choice(("load", "node"), only=True)) == "node load (state) (by)"


def test_a_column_that_was_chosen_gives_way_on_a_narrow_terminal_after_the_others() -> None:
    drops = {column.id: column.drop for column in arranged(TABLE, toggled(TABLE, None, "by"))}
    assert drops == {"node": 0, "state": 0, "load": 9, "by": 1}


def test_a_new_column_stands_beside_its_neighbour_and_is_shown_as_usual() -> None:
    new = (*TABLE[:2], Column[str]("new", "new", str), *TABLE[2:], Column[str]("rare", "rare", str, wide=True))
    choice = Choice(("node", "load", "state", "by"), frozenset({"state"}), frozenset({"by"}))
    assert ids(choice, new) == "node load (state) new by (rare)"
    assert ids(Choice(("state", "by"), only=True), new) == "node state by (new) (load) (rare)"


def test_names_that_the_table_does_not_have_now_are_kept_for_when_it_has_them() -> None:
    """A check of which no node has told yet, a column of another version."""
    before = Choice(("node", "later", "by", "gone"), frozenset({"gone"}))
    now = arranged(TABLE, before)
    for after in (toggled(now, before, "load"), moved(now, before, "load", -1)):
        assert {"later", "gone"} <= set(after.order)
        assert "gone" in after.hidden


def test_hiding_leaves_the_order_to_the_table() -> None:
    """The checks with trouble come first, also after somebody has hidden a column."""
    hidden = toggled(TABLE, None, "state")
    assert ids(hidden, (TABLE[0], TABLE[3], TABLE[2], TABLE[1])) == "node (by) load (state)"


def test_what_is_changed_by_hand_begins_with_what_the_config_has() -> None:
    config = Choice(("node", "by", "load"), only=True)
    assert ids(config) == "node by load (state)"
    more = toggled(arranged(TABLE, config), config, "state")
    assert ids(more) == "node by load state"
    assert ids(toggled(arranged(TABLE, more), more, "by")) == "node (by) load state"
    assert ids(moved(arranged(TABLE, config), config, "load", -1)) == "node load by (state)"


@given(st.lists(st.tuples(st.sampled_from([c.id for c in TABLE]), st.sampled_from([0, 1, -1])), max_size=20))
def test_whatever_is_done_every_column_stays_there_once_and_survives_the_file(done: list[tuple[str, int]]) -> None:
    choice: Choice | None = None
    for name, step in done:
        now = arranged(TABLE, choice)
        choice = moved(now, choice, name, step) if step else toggled(now, choice, name)
        assert (from_json(as_json(choice)) or Choice()) == choice
    now = arranged(TABLE, choice)
    assert {column.id for column in now} == {column.id for column in TABLE}
    assert len(now) == len(TABLE)
    assert (now[0].id, now[0].wide) == ("node", False)


@pytest.mark.parametrize(
    "kept", [None, 3, [], {}, {"order": "node"}, {"order": 7}, {"order": [7, None, {}]}, {"order": ["n" * 99]}]
)
def test_what_is_no_choice_is_none(kept: object) -> None:
    assert from_json(kept) is None


def test_a_choice_of_another_version_counts_as_far_as_it_is_known() -> None:
    choice = from_json({"order": ["node", "by", "\x1b[31m", 7], "hidden": ["\x1b[31m", "load", ["x"]], "shown": ["by"]})
    assert ids(choice) == "node state (load) by"


def test_the_config_names_what_is_shown(tmp_path: Path) -> None:
    found = read(tmp_path, "columns:\n  nodes: [node, reason, comment]\n  checks-efa: [verdict, own.disk]\n")
    assert found["nodes"] == Choice(("node", "reason", "comment"), only=True)
    shown = [column.id for column in arranged(COLUMNS["nodes"](), found["nodes"]) if not column.wide]
    assert shown == ["node", "reason", "comment"]
    assert read(tmp_path, "") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("columns:\n  nods: [node]\n", "config.yaml:5: columns.nods: there is no such table; did you mean `nodes`?"),
        ("columns:\n  xyz: [node]\n", "there is no such table; known: problems, nodes, gpus"),
        ("columns:\n  nodes: [node, raeson]\n", "columns.nodes: there is no column `raeson`; did you mean `reason`?"),
        ("columns:\n  queue: [zzz]\n", "there is no column `zzz`; known: job, state, name"),
        ("columns:\n  queue: [job, job]\n", "`job` stands twice"),
        ("columns:\n  queue: []\n", "needs at least one column; there are job, state"),
        ("columns:\n  queue: job\n", "must be a list"),
        ("columns: [nodes]\n", "must be a block"),
        ("columns:\n  nodes: [own.disk]\n", "there is no column `own.disk`"),
    ],
)
def test_a_mistake_in_the_config_is_one_line_that_helps(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_table_can_be_named_and_its_first_column_names_the_row() -> None:
    first = {pane: make()[0].id for pane, make in COLUMNS.items()}
    assert first["nodes"] == "node"
    assert first["queue"] == "job"
    assert all(not make()[0].wide for make in COLUMNS.values())
