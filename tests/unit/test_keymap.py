"""The key table, the names of keys, and what a user's config may make of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from textual.keys import _character_to_key

from actions.table import ACTIONS
from cockpit.config import ConfigError
from cockpit.config_file import load_config
from screens.chrome import key_pieces
from screens.help_lines import help_lines
from screens.key_names import KeyNameError, is_printable, read_keys, shown_keys
from screens.key_sheet import markdown, sheet
from screens.key_table import CAPITALS, EVERYWHERE, KEYS, ON, OWN_WAY, RESERVED, SCOPES, TOGETHER
from screens.keymap import DEFAULT, Keymap, heard, key_of, read_keymap
from screens.lines import Line

DOCS = Path(__file__).parents[2] / "docs"
CLUSTERS = "clusters:\n  one:\n    head: local\n"


def keymap_of(tmp_path: Path, keys: str) -> Keymap:
    path = tmp_path / "config.yaml"
    path.write_text(CLUSTERS + keys)
    return read_keymap(load_config(path).keys)


def plain(lines: list[Line]) -> list[str]:
    return ["".join(piece if isinstance(piece, str) else piece[0] for piece in line) for line in lines]


def test_ids_are_unique_and_scopes_known() -> None:
    assert not [key_id for key_id, count in Counter(key.id for key in KEYS).items() if count > 1]
    assert {key.scope for key in KEYS} == set(SCOPES)
    assert {scope for key in KEYS for scope in key.footer} <= {*SCOPES, *ON}
    assert {scope for group in TOGETHER for scope in group} == set(SCOPES)


def test_no_key_stands_for_two_things_in_one_scope() -> None:
    for scope in SCOPES:
        pressed = Counter(key for line in KEYS if line.scope == scope for key in line.keys.split(","))
        assert not [key for key, count in pressed.items() if count > 1]


def test_the_keys_of_everywhere_stand_for_one_thing_in_tables() -> None:
    pressed = Counter(
        key for line in KEYS if line.scope in (*EVERYWHERE, "grid", "gpus") for key in line.keys.split(",")
    )
    assert not [key for key, count in pressed.items() if count > 1]


def test_no_reading_key_takes_a_capital_kept_for_changes() -> None:
    taken = {(key, line.scope) for line in KEYS for key in line.keys.split(",") if key in CAPITALS}
    assert {(key, scope) for key, scope in taken if scope != "change"} <= {
        ("N", "text"),  # as in less: the match before
        ("E", "subject"),  # checks read: they have no plan
        ("C", "subject"),
        ("N", "grid"),  # a test has a form of its own; in a text N is taken
        ("K", "columns"),  # in a dialog of its own, where `k` moves the cursor: K moves the column
        ("H", "subject"),  # a diagnosis only reads, but it asks every node of a job
    }


def test_every_key_of_the_table_of_actions_is_bound_and_every_bound_capital_is_one_of_its() -> None:
    lines = {key.keys: key for key in KEYS if key.scope == "change"}
    assert set(lines) == {action.key for action in ACTIONS if action.key}
    assert set(lines) | set(RESERVED) | OWN_WAY == set(CAPITALS)
    assert not set(lines) & set(RESERVED)
    assert lines["D"].id == "change.drain"
    assert lines["L"].title == "hold/release"


def test_changes_stay_on_capitals(tmp_path: Path) -> None:
    assert keymap_of(tmp_path, "keys: {change.drain: X}\n").changed == {"change.drain": "X"}
    for key, words in (("d", "needs a capital letter"), ("ctrl+d", "needs a capital letter"), ("N", "NCCL test")):
        with pytest.raises(ConfigError, match=words):
            keymap_of(tmp_path, f"keys: {{change.drain: {key}}}\n")
    with pytest.raises(ConfigError, match="kept for what changes a cluster"):
        keymap_of(tmp_path, "keys: {grid.export: D}\n")


def test_every_default_key_is_one_that_arrives() -> None:
    for line in KEYS:
        keys = line.keys.split(",")
        assert read_keys(line.keys) == tuple(keys), line.id
        # Textual looks at a key that must come first before a text line does; mixed ones would steal letters.
        assert not line.first or len({is_printable(key) for key in keys}) == 1, line.id


def test_no_two_commands_of_a_pane_have_one_name() -> None:
    for scopes in (("grid", "gpus"), ("text",)):
        titles = Counter(key.title for key in KEYS if key.listed and key.scope in (*scopes, *EVERYWHERE))
        assert not [title for title, count in titles.items() if count > 1]


def test_docs_hold_what_the_table_holds() -> None:
    assert (DOCS / "KEYS.md").read_text(encoding="utf-8") == markdown(), "run `make keys`"


@pytest.mark.parametrize("char", [char for char in map(chr, range(33, 127)) if char != ","])
def test_characters_have_textuals_names(char: str) -> None:
    assert read_keys(char) == (_character_to_key(char),)
    assert shown_keys(_character_to_key(char)) == char


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("f", ("f",)),
        ("f, ctrl+r", ("f", "ctrl+r")),
        (",", ("comma",)),
        ("comma", ("comma",)),
        ("+", ("plus",)),
        ("esc", ("escape",)),
        ("PgDn", ("pagedown",)),
        ("?", ("question_mark",)),
        ("shift+tab", ("shift+tab",)),
        ("Ctrl+X", ("ctrl+x",)),
        ("F2", ("f2",)),
        ("ü", ("ü",)),
        ("f,f", ("f",)),
    ],
)
def test_keys_as_people_write_them(text: str, keys: tuple[str, ...]) -> None:
    assert read_keys(text) == keys


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("alt+x", "alt does not arrive through tmux"),
        ("ctrl+shift+x", "cannot tell ctrl+shift from ctrl"),
        ("shift+ctrl+x", "cannot tell ctrl+shift from ctrl"),
        ("super+x", "keeps super for itself"),
        ("foo+x", "`foo` is neither ctrl nor shift"),
        ("ctrl+ctrl+x", "names a modifier twice"),
        ("shift+x", "written as the capital itself"),
        ("ctrl+i", "same as tab"),
        ("ctrl+m", "same as enter"),
        ("ctrl+[", "same as escape"),
        ("ctrl+1", "only with a letter or a cursor key"),
        ("ctrl+", "names no key after the `+`"),
        ("g g", "not several after each other"),
        ("pageflip", "there is no key `pageflip`"),
        ("f13", "there is no key `f13`"),
        ("", "needs a key"),
        ("f,,g", "written `comma`"),
        ("\x1b", "a control character is no key"),
    ],
)
def test_keys_that_do_not_arrive_are_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(KeyNameError, match=words.replace("+", r"\+").replace("(", r"\(")):
        read_keys(text)


def test_a_config_gives_actions_other_keys(tmp_path: Path) -> None:
    keymap = keymap_of(
        tmp_path, 'keys:\n  app.refresh: ";,ctrl+r"\n  grid.mark: m\n  gpus.metric: space\n  checks.view: t\n'
    )
    assert keymap.textual() == {
        "app.refresh": "semicolon,ctrl+r",
        "grid.mark": "m",
        "gpus.metric": "space",
        "checks.view": "t",
    }
    assert keymap.shown(key_of("app.refresh")) == "; ctrl+r"
    assert keymap.shown(key_of("app.pause")) == "p"


def test_two_actions_may_swap_their_keys(tmp_path: Path) -> None:
    assert keymap_of(tmp_path, "keys: {app.refresh: p, app.pause: r}\n").changed == {
        "app.refresh": "p",
        "app.pause": "r",
    }


@pytest.mark.parametrize(
    ("keys", "line", "words"),
    [
        ("keys:\n  app.refesh: ;\n", 5, "keys.app.refesh: there is no such id; did you mean `app.refresh`?"),
        ("keys:\n  zzzzz: ;\n", 5, "there is no such id; `cockpit keys` lists them"),
        ("keys:\n  app.pause: ;\n  app.refresh: alt+r\n", 6, "keys.app.refresh: `alt+r`: alt does not arrive"),
        ("keys:\n  app.refresh: j\n", 5, "j already stands for grid.down (down) in a table"),
        ("keys:\n  app.refresh: ;\n  app.pause: ;\n", 6, "; already stands for app.refresh (refresh)"),
        ("keys:\n  app.refresh: p\n", 5, "p already stands for app.pause (pause) everywhere"),
        ("keys:\n  grid.zoom: q\n", 5, "q already stands for app.quit (quit) always"),
        ("keys:\n  grid.zoom: D\n", 5, "`D` is kept for what changes a cluster (drain)"),
        ("keys:\n  palette.run: f2\n", 5, "cannot be changed"),
        ("keys:\n  app.palette: ';'\n", 5, "`;` is text in a filter"),
        ("keys:\n  app.refresh: ctrl+c\n", 5, "`ctrl+c`: it is no key for anything but"),
        ("keys:\n  app.refresh: ~\n", 5, "keys.app.refresh: needs one value"),
        ("keys:\n  app.refresh: [f]\n", 5, "needs one value"),
        ("keys:\n  app.refresh: ;\n  app.refresh: g\n", 6, "stands twice"),
        ("keys: ;\n", 4, "must be a block"),
        ("keys:\n  app.refresh: '\x1b[31m'\n", 5, "there is no key"),
    ],
)
def test_a_mistake_is_one_line_with_file_line_and_key(tmp_path: Path, keys: str, line: int, words: str) -> None:
    if "\x1b" in keys:
        keys = keys.replace("'\x1b[31m'", '"\\e[31m"')
    with pytest.raises(ConfigError) as caught:
        keymap_of(tmp_path, keys)
    told = str(caught.value)
    assert told.startswith(f"{tmp_path / 'config.yaml'}:{line}: keys")
    assert words in told
    assert told.isprintable()


def test_footer_help_and_sheet_show_the_users_keys(tmp_path: Path) -> None:
    keymap = keymap_of(tmp_path, "keys: {app.help: ctrl+g, app.refresh: ;}\n")
    line = footer(80, "grid", keymap=keymap)
    assert " ctrl+g help" in line
    assert "? help" not in line
    helped = plain(help_lines(("grid",), keymap))
    assert any(text.split() == [";", "Read", "everything", "again", "now."] for text in helped)
    assert any(text.startswith("* ; ") and "app.refresh" in text for text in sheet(keymap))
    assert "| `;` | Read everything again now. | `app.refresh` |" in markdown(keymap)


def footer(width: int, *scopes: str, **how: Any) -> str:
    """The last line of a screen that is so wide."""
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in key_pieces(width, *scopes, **how))


@pytest.mark.parametrize("scopes", [("grid",), ("grid", "gpus"), ("overview", "grid", "node"), ("text",)])
def test_a_narrow_footer_keeps_help_and_quit_and_says_how_many_panes_there_are(scopes: tuple[str, ...]) -> None:
    panes = [key for key in KEYS if key.id.startswith("pane.")]
    for width in (40, 80, 120, 200, 300):
        line = footer(width, *scopes)
        assert len(line) <= width
        assert " ? help" in line
        assert " q quit" in line
        if " 1-9 panes " not in line:
            assert all(f" {key.keys} {key.title}" in line for key in panes)
    assert " 1-9 panes " in footer(80, *scopes)
    assert " 8 cost" in footer(300, *scopes)


def test_the_panes_are_one_key_in_a_narrow_footer_whatever_they_were_changed_to() -> None:
    assert " F…9 panes" in footer(80, "grid", keymap=Keymap({"pane.overview": "F"}))


@pytest.mark.parametrize(
    ("scopes", "verbs"),
    [
        (("grid", "node", "queue"), (" D drain", " R resume", " P power", " a actions")),
        (("overview", "grid", "node", "queue"), (" D drain", " tab next", " a actions")),
        (("grid", "job", "queue"), (" K cancel", " H why it hangs", " a actions")),
        (("grid", "cluster"), (" P power", " a actions")),
        (("grid", "nccl"), (" N NCCL test", " P power", " a actions")),
    ],
)
def test_at_80_columns_the_footer_names_the_keys_that_act_on_what_the_cursor_is_on(
    scopes: tuple[str, ...], verbs: tuple[str, ...]
) -> None:
    line = footer(80, *scopes)
    assert all(verb in line for verb in verbs), line


def test_the_key_that_one_is_here_for_comes_first_and_stays() -> None:
    scopes = ("grid", "checks", "node", "queue")
    assert footer(300, *scopes, lead="checks.health").index("C health") < footer(300, *scopes).index("C health")
    for lead, first, other in (("checks.health", "C health check", "E EFA"), ("checks.efa", "E EFA check", "C health")):
        wide, narrow = footer(300, *scopes, lead=lead), footer(60, *scopes, lead=lead)
        assert wide.index(first) < wide.index(other)
        assert first in narrow


def test_help_tells_the_panes_own_keys_first_and_what_works_nowhere_else_not_at_all() -> None:
    told = plain(help_lines(("gpus", "grid"), fields=("node", "state")))
    titles = [text for text in told if text in SCOPES.values()]
    assert titles == [SCOPES[scope] for scope in ("gpus", "grid", *EVERYWHERE)]
    assert any(text.split() == ["fields", "node,", "state"] for text in told)
    assert SCOPES["app"] not in plain(help_lines(("filter",)))


def test_a_key_that_the_pane_has_its_own_meaning_for_is_told_once() -> None:
    ids = [key.id for key in heard(("text",))]
    assert "text.search" in ids
    assert "app.filter" not in ids
    assert "app.filter" in [key.id for key in heard(("grid",))]
    assert "app.filter" in [key.id for key in heard(("text",), Keymap({"app.filter": "f"}))]
    assert "grid.next" not in [key.id for key in heard(("overview", "grid"))]


def test_help_dims_what_is_not_possible_now_with_the_reason() -> None:
    lines = help_lines(("grid",), DEFAULT, {"subject.ssh": "p5-3 is powered down"})
    line = next(line for line in lines if "powered down" in "".join(piece[0] for piece in line))
    assert [piece[1] for piece in line] == ["dim", "dim"]
    assert "A shell on the node" in line[1][0]


def test_help_begins_with_what_only_this_pane_has_and_ends_the_keys_with_how_to_move() -> None:
    told = plain(help_lines(("grid", "checks")))
    headings = [line for line in told if line and not line.startswith(" ")]
    assert headings[:2] == [SCOPES["checks"], SCOPES["grid"]]
    moving = told.index("Moving")
    assert any(line.split()[:1] == ["j"] for line in told[moving:])
    assert not any(line.split()[:1] == ["j"] for line in told[:moving])
    assert any(line.split()[:1] == ["N"] for line in told[:moving])  # unlisted, but no move
    assert any(line.split()[:1] == ["n"] for line in plain(help_lines(("text",)))[:-30])


def test_help_names_every_key_that_is_heard_once() -> None:
    for scopes in (("grid", "gpus"), ("grid", "overview"), ("grid", "checks"), ("text", "hang"), ("text", "output")):
        lines = help_lines(scopes)
        for key in heard(scopes):
            assert sum(len(line) > 1 and line[1] == key.help for line in lines) == [
                each.help for each in heard(scopes)
            ].count(key.help), key.id
