"""What really reaches the terminal: ASCII signs, no colours, exact colours of the 256-colour palette."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.color import Color
from textual.widgets import Static

import themes
from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from tests.bench.terminal import Terminal
from tests.screens.helpers import screen_text
from tests.screens.overview_app import OverviewApp
from tests.screens.tmux import Tmux
from tests.still import still_cluster
from tests.still_gpus import busy_fleet, tell
from themes.ascii_text import ascii_text

LOOKS = [sys.executable, "-m", "tests.screens.overview_app"]


async def test_every_pane_detail_and_toast_is_ascii() -> None:
    cluster, head, _ = still_cluster()
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    for place, job in enumerate(head.sim.jobs.values()):
        job.ask = replace(job.ask, name=f"job-{place}", comment="")
    cluster.read_once()
    tell(cluster, busy_fleet(cluster))
    app = CockpitApp(Clusters.only(cluster), look=themes.Look(ascii=True))
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        for keys in (
            ("2",), ("w",), ("space", "v"), ("enter",), ("escape", "slash"), ("x", "escape"), ("4",), ("w", "l"),
            ("enter",), ("escape", "3"), ("m", "c"), ("tab", "enter"), ("escape", "e"), ("question_mark",),
            ("escape", "y"),
        ):  # fmt: skip
            await pilot.press(*keys)
            await pilot.pause()
            text = screen_text(app)
            assert text.isascii(), (keys, sorted({sign for sign in text if not sign.isascii()}))
    assert cluster.view.queue is not None


async def test_the_overview_is_ascii_when_the_look_says_so() -> None:
    cluster, head, _ = still_cluster()
    for job in head.sim.jobs.values():
        job.ask = replace(job.ask, name="plain")
    app = OverviewApp(cluster, themes.Look(ascii=True))
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        await pilot.pause()
        assert screen_text(app).isascii()
        cluster.read_once()
        tell(cluster, busy_fleet(cluster))
        app.overview.show_view(cluster)
        await pilot.pause()
        await pilot.press("slash", "q")
        text = screen_text(app)
        assert text.isascii(), sorted({sign for sign in text if not sign.isascii()})
        assert "x gpu-st-p5-8" in text


async def test_text_from_outside_stays_where_the_terminal_has_it() -> None:
    for encoding, wanted in (
        ("utf-8", "训练 é~"),
        ("iso8859-1", "???? é~"),
        ("ascii", "???? ?~"),
        ("no-such", "???? ?~"),
    ):
        app = OverviewApp(still_cluster()[0], themes.Look(ascii=True, encoding=encoding))
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            await app.mount(Static("训练 é…", markup=False))
            await pilot.pause()
            assert wanted in screen_text(app), encoding


def test_every_sign_of_ours_has_a_stand_in_of_its_width() -> None:
    from rich.cells import cell_len

    ours = "●○◆▲✖‹›─▌┃…·▁▂▃▄▅▆▇█→←↑↓×–—°┤│┌┐└┘├┴╭╯␛␊\ufffd" + "".join(themes.UNICODE.states.values())
    assert ascii_text(ours).isascii()
    for text in (ours, "reading from head …", "93 °C", "93°", "a…", "job 1 · maria → next", "gpu – 3"):
        assert ascii_text(text).isascii()
        assert cell_len(ascii_text(text)) == cell_len(text), text
    assert ascii_text("reading from head …") == "reading from head.."
    assert ascii_text("gpu-st-p5-1…") == "gpu-st-p5-1~"
    assert ascii_text("● ok · 3 jobs – 93 °C") == "* ok - 3 jobs - 93  C"
    assert ascii_text("plain [/] text") == "plain [/] text"


def contains(words: str, text: str) -> bool:
    return words in text


def bytes_of(argv: Sequence[str], *, env: Mapping[str, str], colours: str = "256") -> bytes:
    """Everything that a program writes to a terminal: from its start, over some keys, to its end by ctrl+q."""
    with Terminal(argv, env=env, size=(120, 36), colours=colours) as terminal:
        assert terminal.wait(lambda text: "problems" in text and "48219" in text, 20)
        for keys, words in ((b"\tj/", "field:value"), (b"5", 'filter "5"')):
            before = len(terminal.chunks)
            for key in keys:
                terminal.press(bytes([key]))
            assert terminal.wait(partial(contains, words), 10, before), words
        terminal.press(b"\x11")
        assert terminal.wait_end(10)
        return b"".join(chunk for _, chunk in terminal.chunks)


def colours_in(raw: bytes) -> set[str]:
    """The parameters of every SGR sequence that say something about a colour, in the order they came."""
    found = set()
    for sequence in re.findall(rb"\x1b\[([0-9;:]*)m", raw):
        words = sequence.decode().replace(":", ";").split(";")
        found |= {word for word in words if word.isdigit() and (30 <= int(word) <= 49 or 90 <= int(word) <= 107)}
    return found


@pytest.mark.parametrize("colours", ["256", "truecolor"])
def test_no_color_sends_not_one_colour(colours: str) -> None:
    raw = bytes_of(LOOKS, env={"NO_COLOR": "1"}, colours=colours)
    assert b"gpu-st-p5-8" in raw
    assert colours_in(raw) == set()
    assert b"\x1b[7m" in raw or b";7m" in raw  # the cursor line is still seen
    assert {"38", "48"} <= colours_in(bytes_of(LOOKS, env={}, colours=colours))  # and this would notice colours


def test_16_colours_get_the_terminals_own() -> None:
    raw = bytes_of(LOOKS, env={"TERM": "xterm-16color"})
    assert colours_in(raw) <= {str(number) for number in (*range(30, 38), 39, *range(40, 48), 49, *range(90, 108))}
    assert "91" in colours_in(raw)  # critical: bright red


def test_a_terminal_that_is_not_unicode_gets_ascii() -> None:
    raw = bytes_of(LOOKS, env={"PYTHONIOENCODING": "iso8859-1"})
    assert b"x gpu-st-p5-8" in re.sub(rb"\x1b\[[0-9;]*m", b"", raw)
    assert {byte for byte in raw if byte > 126} == set()


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    server = Tmux(tmp_path)
    yield server
    server.run("kill-server")


@pytest.mark.tmux
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
@pytest.mark.parametrize("name", ["cockpit-dark", "cockpit-light", "cockpit-contrast"])
def test_256_colours_get_exactly_the_entries_of_the_theme(tmux: Tmux, name: str) -> None:
    tmux.start(f"env -u COLORTERM {' '.join(LOOKS)} --theme {name}", (120, 36))
    tmux.wait(lambda text: "gpu-st-p5-8" in text and "48219" in text)
    captured = tmux.text(colours=True)
    assert "\x1b[38;2;" not in captured
    sent = {int(number) for number in re.findall(r"[34]8;5;(\d+)", captured)}
    text = (themes.FOLDER / f"{name.removeprefix('cockpit-')}.yaml").read_text(encoding="utf-8")
    told = {int(number) for number in re.findall(r'"\s+# (\d+)', text)}
    assert sent <= told, sent - told
    styles = themes.token_styles(name)
    for token in ("text", "critical", "drained", "dim", "rule", "header"):
        colour = styles[token].color
        assert colour is not None
        wanted = next(n for n in range(16, 256) if Color.from_ansi(n).get_truecolor() == colour.get_truecolor())
        assert wanted in sent, token
