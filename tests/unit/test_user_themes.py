"""Themes of the user's: what they may say, and what is said about a mistake."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

import themes
from cockpit.config import ConfigError
from cockpit.config_file import load_config
from themes.look import load


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    (tmp_path / "cockpit" / "themes").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def write(environ: Mapping[str, str], name: str, text: str) -> Path:
    path = Path(environ["XDG_CONFIG_HOME"], "cockpit", "themes", f"{name}.yaml")
    path.write_text(text, encoding="utf-8")
    return path


def test_some_tokens_over_a_base(environ: Mapping[str, str]) -> None:
    write(
        environ,
        "night",
        """base: cockpit-contrast
colours: {background: 233}
tokens:
  critical: "bold underline #FF0000"
  warning: 208
  unknown: bright_black
  cursor: "on 17"
""",
    )
    load("night", environ)
    styles, base = themes.token_styles("night"), themes.token_styles("cockpit-contrast")
    assert str(styles["critical"]) == "bold underline #ff0000"
    assert str(styles["warning"]) == "#ff8700"
    assert str(styles["cursor"]) == "on #00005f"
    assert styles["drained"] == base["drained"]
    made = themes.theme("night")
    assert (made.name, made.background, made.dark) == ("night", "#121212", True)
    assert made.variables["cockpit-unknown"] == "ansi_bright_black"


def test_without_a_base_it_is_the_dark_one_and_an_empty_file_changes_nothing(environ: Mapping[str, str]) -> None:
    write(environ, "empty", "")
    load("empty", environ)
    assert themes.token_styles("empty") == themes.token_styles("cockpit-dark")


def test_a_twin_for_the_cursor_line_goes_with_its_token(environ: Mapping[str, str]) -> None:
    assert "unknown@cursor" in themes.token_styles("cockpit-dark")
    write(environ, "one", "tokens: {unknown: 196}\n")
    write(environ, "two", "tokens: {unknown: 196, unknown@cursor: 226}\n")
    load("one", environ)
    load("two", environ)
    assert "unknown@cursor" not in themes.token_styles("one")
    assert str(themes.token_styles("two")["unknown@cursor"]) == "#ffff00"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("tokens:\n  critcal: 196\n", 2, "tokens.critcal: is not a known key; did you mean `critical`?"),
        ("tokens:\n  ok: 117\n  warning: yelow\n", 3, "tokens.warning: 'yelow' is no colour"),
        ("tokens: {ok: 3}\n", 1, "tokens.ok: '3' is no colour"),
        ("tokens: {ok: 256}\n", 1, "'256' is no colour"),
        ("tokens: {ok: " + "9" * 5000 + "}\n", 1, "is no colour"),
        ("tokens: {ok: '#12'}\n", 1, "'#12' is no colour"),
        ("tokens: {ok: 'bold on'}\n", 1, "tokens.ok: is no style"),
        ("tokens: {ok: '[/]'}\n", 1, "'[/]' is no colour"),
        ("tokens: {cursor: bold}\n", 1, "tokens.cursor: must be seen"),
        ("tokens: {ok: 117, ok: 118}\n", 1, "tokens.ok: stands twice"),
        ("tokens: [ok]\n", 1, "tokens: must be a block"),
        ("base: cockpit-drak\n", 1, "base: must be one of cockpit-dark"),
        ("base: night\n", 1, "base: must be one of"),
        ("colours:\n  background: red\n", 2, "colours.background: must be #rrggbb"),
        ("colors: {}\n", 1, "colors: is not a known key; did you mean `colours`?"),
        ("tokens: {ok: \x1b}\n", None, "not valid YAML"),
        ("tokens: {", 1, "not valid YAML"),
    ],
)
def test_a_mistake_is_one_line_with_file_line_and_token(
    environ: Mapping[str, str], text: str, line: int | None, words: str
) -> None:
    path = write(environ, "mine", text)
    with pytest.raises(ConfigError) as caught:
        load("mine", environ)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert words in message
    assert message.isprintable()


def test_an_unknown_name_tells_the_known_ones(environ: Mapping[str, str]) -> None:
    write(environ, "night", "")
    for name in ("nigth", "../night", "", "/etc/passwd"):
        with pytest.raises(ConfigError) as caught:
            load(name, environ)
        assert f"no theme named {name!r}; known: auto, cockpit-dark, cockpit-light" in str(caught.value)
        assert str(caught.value).endswith("cockpit-plain, night")


def test_a_file_cannot_take_the_place_of_one_of_ours(environ: Mapping[str, str]) -> None:
    write(environ, "cockpit-dark", "tokens: {ok: 196}\n")
    load("cockpit-dark", environ)
    assert str(themes.token_styles("cockpit-dark")["ok"]) == "#87d7ff"


def test_the_config_names_a_theme(environ: Mapping[str, str], tmp_path: Path) -> None:
    write(environ, "night", "")
    path = tmp_path / "config.yaml"
    path.write_text("clusters: {a: {head: local}}\ntheme: night\nascii: true\n")
    config = load_config(path)
    assert (config.theme, config.ascii) == ("night", True)
    path.write_text("clusters: {a: {head: local}}\n")
    assert (load_config(path).theme, load_config(path).ascii) == ("auto", False)
    path.write_text("clusters: {a: {head: local}}\ntheme: day\n")
    with pytest.raises(ConfigError, match=r":2: theme: no theme named 'day'; known: auto, cockpit-dark.*night$"):
        load_config(path)


def test_the_look_follows_the_terminal(environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    write(environ, "night", "")
    write(environ, "poor", "base: cockpit-ansi\n")
    for colours, no_color, name, wanted in (
        (2**24, False, "auto", "cockpit-dark"),
        (256, False, "night", "night"),
        (16, False, "auto", "cockpit-ansi"),
        (16, False, "night", "cockpit-ansi"),
        (16, False, "poor", "poor"),
        (None, False, "cockpit-light", "cockpit-light"),
        (2**24, True, "night", "cockpit-plain"),
        (2**24, False, "cockpit-plain", "cockpit-plain"),
    ):
        monkeypatch.setattr("themes.look.terminal_colours", lambda colours=colours: colours)
        told = {**environ, **({"NO_COLOR": "1"} if no_color else {})}
        assert themes.choose_look(name, environ=told).theme == wanted, (colours, no_color, name)


def test_signs_are_ascii_where_the_encoding_is_not_unicode(environ: Mapping[str, str]) -> None:
    assert not themes.choose_look(environ=environ, encoding="utf-8").ascii
    assert not themes.choose_look(environ=environ, encoding="UTF-16").ascii
    assert themes.choose_look(environ=environ, encoding="iso8859-1").ascii
    assert themes.choose_look(environ=environ, encoding="utf-8", ascii=True).ascii


@pytest.mark.parametrize(
    ("told", "client_utf8", "ascii_only"),
    [
        ({"TMUX": "x", "LANG": "de_DE.UTF-8"}, "0", False),  # the locale names it: nobody has to be asked
        ({"TMUX": "x", "LC_CTYPE": "C.UTF-8"}, "0", True),  # which Python puts there where none is named
        ({"TMUX": "x", "LANG": "C"}, "0", True),
        ({"TMUX": "x"}, "1", False),
        ({"TMUX": "x"}, "", False),
        ({"STY": "x"}, "", True),
        ({"LANG": "C"}, "0", False),
    ],
)
def test_signs_are_ascii_where_tmux_or_screen_shows_no_others(
    told: dict[str, str], client_utf8: str, ascii_only: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmux").write_text(f"#!/bin/sh\necho {client_utf8}\n")
    (tmp_path / "tmux").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    look = themes.choose_look(environ=told, encoding="utf-8")
    assert (look.ascii, look.encoding) == ((True, "ascii") if ascii_only else (False, "utf-8"))
