"""One run of the watched cockpit (tests/bench/entry.py) and what its log and its terminal tell."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.stats import minus
from tests.bench.targets import Target
from tests.bench.terminal import Terminal

QUIT_S = 15.0
_TOKEN = re.compile(rb"\x1b\[(\d+);\d+H|\x1b\[([0-9;]*)m")
_BACKGROUND = re.compile(rb"48;(?:2;\d+;\d+;\d+|5;\d+)")

Event = dict[str, Any]


class Session(Terminal):
    """The cockpit over a target, with its log."""

    def __init__(
        self, target: Target, *, heartbeat: bool, size: tuple[int, int] = (160, 48), colours: str = "truecolor"
    ) -> None:
        self.target = target
        self._folder = tempfile.TemporaryDirectory(prefix="cockpit-bench-")
        self._log = Path(self._folder.name) / "log"
        self._log.touch()
        argv = [sys.executable, "-m", "tests.bench.entry", str(self._log), "--config", str(target.config)]
        super().__init__(argv + ["--heartbeat"] * heartbeat, env=target.env, size=size, colours=colours)

    def events(self, event: str, **facts: Any) -> list[Event]:
        """The log's events of that kind so far."""
        lines = self._log.read_text().splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        wanted = {"event": event, **facts}
        return [each for each in found if wanted.items() <= each.items()]

    def wait_beats(self, name: str, count: int, timeout_s: float) -> Event:
        """The `count`th time that source was read; TimeoutError when it was not."""
        until = time.monotonic() + timeout_s
        while len(found := self.events("beat", name=name)) < count:
            if time.monotonic() > until or self.ended_at is not None:
                raise TimeoutError(f"{self.target.name}: {name} was read {len(found)} times, not {count}")
            time.sleep(0.02)
        return found[count - 1]

    def next_beat(self, name: str, timeout_s: float = 30.0) -> Event:
        """The next time that source is read."""
        return self.wait_beats(name, len(self.events("beat", name=name)) + 1, timeout_s)

    def memory_mib(self, line: str) -> float | None:
        """VmRSS or VmHWM of the cockpit's process."""
        found = re.search(rf"^{line}:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text(), re.MULTILINE)
        return int(found[1]) / 1024 if found else None

    def quit_s(self) -> float | None:
        """How long it takes from `q` to the end of the process; None when it did not end."""
        pressed = self.press(b"q")
        return minus(self.wait_end(QUIT_S), pressed)

    def close(self) -> None:
        """End it and remove the log."""
        super().close()
        self._folder.cleanup()


class Cursor:
    """Follows the cursor line of a table through the terminal's bytes, by its background."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._at, self._rest, self._row = 0, b"", 0
        self._bar = b""
        self.row = 0  # line of the screen, from 1; 0 when not seen yet

    def learn(self) -> None:
        """Find out the background of the cursor line; ValueError when no key seems to move it."""
        for _ in range(5):
            if self._try_to_learn():
                return
            time.sleep(0.5)  # a refresh painted the whole table at the same time
        raise ValueError(f"{self._session.target.name}: no cursor line was seen to move")

    def _try_to_learn(self) -> bool:
        """After `j` two neighbouring lines are painted, the lower one with the bar."""
        self.skip()
        pressed = self._session.press(b"j")
        time.sleep(0.5)
        lines: dict[int, bytes] = {}
        raw = b"".join(chunk for at, chunk in self._session.chunks if at > pressed)
        for row, style in self._tokens(raw):
            if row > 3 and style is not None:
                lines.setdefault(row, style)
        pair = next((row for row in lines if row + 1 in lines and lines[row] != lines[row + 1]), None)
        found = _BACKGROUND.search(lines[pair + 1]) if pair else None
        if pair is None or found is None:
            return False
        self._bar, self.row = found[0], pair + 1
        self.skip()
        return True

    def skip(self) -> None:
        """Leave everything out that has come by now."""
        self._at, self._rest = len(self._session.chunks), b""

    def press(self, key: bytes, timeout_s: float = 1.0) -> float | None:
        """Type a key that moves the cursor; how long until the bar was painted elsewhere.

        None when it was not: at the end of the rows, or where a refresh moved the rows at the same moment.
        """
        self._follow(time.monotonic())
        pressed, before = self._session.press(key), self.row
        while self._session.wait_chunk(self._at, pressed + timeout_s):
            when = self._session.chunks[self._at][0]
            self._next_chunk()
            if self.row != before and when > pressed:
                return when - pressed
        return None

    def _follow(self, until: float) -> None:
        while self._at < len(self._session.chunks) and self._session.chunks[self._at][0] <= until:
            self._next_chunk()

    def _next_chunk(self) -> None:
        raw = self._rest + self._session.chunks[self._at][1]
        self._at += 1
        cut = raw.rfind(b"\x1b")
        # An escape at the very end may go on in the next chunk.
        whole = cut < 0 or _TOKEN.match(raw, cut) is not None or len(raw) - cut > 64
        raw, self._rest = (raw, b"") if whole else (raw[:cut], raw[cut:])
        for row, style in self._tokens(raw):
            if style is not None and self._bar in style and row > 3:
                self.row = row

    def _tokens(self, raw: bytes) -> Iterator[tuple[int, bytes | None]]:
        """The line that each escape is about, and the style it sets."""
        for found in _TOKEN.finditer(raw):
            if found[1]:
                self._row = int(found[1])
            yield self._row, found[2]
