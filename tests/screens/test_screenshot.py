"""Pictures of the screen: as Textual makes them, and with numbers hidden that nobody else should read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.widgets import Static

from screens import outlet
from screens.content import plain
from screens.screenshot import redacted_line, take
from tests.screens.helpers import screen_text

SECRETS = "arn:aws:iam::123456789012:role/x 54.240.1.9 10.0.0.5 ec2-54-12-3-4.compute.amazonaws.com 1764500000123"


class OneLine(App[None]):
    """Shows one line of text from outside."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.line = text

    def compose(self) -> ComposeResult:
        yield Static(plain(self.line))


def hidden(text: str) -> str:
    line, _ = redacted_line([Segment(text)])
    return "".join(segment.text for segment in line)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("account 123456789012", "account xxxxxxxxxxxx"),
        ("job 1764500000123 and 12345678901", "job 1764500000123 and 12345678901"),
        ("54.240.1.9:22", "xx.xxx.x.x:22"),
        (
            "10.0.0.5 172.16.3.4 192.168.1.1 127.0.0.1 169.254.1.1",
            "10.0.0.5 172.16.3.4 192.168.1.1 127.0.0.1 169.254.1.1",
        ),
        ("ec2-54-12-3-4.compute", "ec2-xx-xx-x-x.compute"),
        ("ip-10-0-0-5.ec2", "ip-10-0-0-5.ec2"),
        ("version 300.1.1.1 and 8.2.8", "version 300.1.1.1 and 8.2.8"),
        ("汉字 54.240.1.9 🚀", "汉字 xx.xxx.x.x 🚀"),
    ],
)
def test_what_is_hidden_and_what_is_not(text: str, after: str) -> None:
    assert hidden(text) == after


def test_a_number_in_several_pieces_is_hidden_and_the_pieces_keep_their_styles() -> None:
    bold = Style(bold=True)
    line, count = redacted_line([Segment("a 12345678"), Segment("9012", bold), Segment(" b")])
    assert count == 1
    assert [(segment.text, segment.style) for segment in line] == [("a xxxxxxxx", None), ("xxxx", bold), (" b", None)]


async def test_it_is_the_picture_that_textual_makes_and_the_text_on_the_screen() -> None:
    shown = OneLine("[/] \x1b[31mred ● 汉字 " + SECRETS)
    async with shown.run_test(size=(120, 10), notifications=True) as pilot:
        outlet.tell(shown, "a toast with [b]brackets[/b]")
        await pilot.pause()
        picture = take(shown)
        nameless = re.compile(r"terminal-\d+")
        assert nameless.sub("", picture.svg) == nameless.sub("", shown.export_screenshot())
        assert picture.text == screen_text(shown).rstrip("\n") + "\n"
        assert "\x1b" not in picture.text + picture.svg


async def test_hidden_numbers_are_in_neither_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    app = OneLine(SECRETS)
    async with app.run_test(size=(120, 10), notifications=True) as pilot:
        outlet.screenshot(app, "one", redact=True)
        folder = tmp_path / "cockpit" / "screenshots"
        for _ in range(200):
            await pilot.pause(0.02)
            if "screen written" in screen_text(app):
                break
        assert "3 numbers hidden" in screen_text(app)
        files = sorted(folder.iterdir())
        assert [path.suffix for path in files] == [".svg", ".txt"]
        for path in files:
            text = path.read_text()
            assert path.stat().st_mode & 0o777 == 0o600
            assert not [secret for secret in ("123456789012", "54.240.1.9", "54-12-3-4") if secret in text]
            assert "10.0.0.5" in text


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cockpit").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    app = OneLine("x")
    async with app.run_test(size=(100, 20), notifications=True) as pilot:
        outlet.screenshot(app, "one")
        for _ in range(200):
            await pilot.pause(0.02)
            if "no screenshot" in screen_text(app):
                break
        assert "no screenshot: " in screen_text(app)
        assert app.is_running
