"""What leaves the screen: toasts, the clipboard, files."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from textual.app import App
from textual.notifications import SeverityLevel

from cockpit.config import state_dir
from cockpit.export import export_table, new_stem, private_dir, write_private
from cockpit.sources.base import unexpected
from cockpit.text import printable
from cockpit.words import plural
from screens.grid_model import cell_text
from screens.pane_spec import PaneSpec
from screens.screenshot import take

CLIPBOARD_MAX = 50_000  # terminals and tmux cut longer OSC 52 sequences
TOAST_MAX = 300
TOAST_S = 8.0
END_AFTER_S = 2.0


def tell(app: App[Any], text: str, *, title: str = "", severity: SeverityLevel = "information") -> None:
    """A toast with text that may come from outside."""
    app.notify(printable(text), title=title, severity=severity, timeout=TOAST_S, markup=False)


def copy(app: App[Any], text: str) -> None:
    """Copy, and show what was copied, since no terminal says whether it took it."""
    if len(text) > CLIPBOARD_MAX:
        tell(app, f"{len(text):,} characters are too much for a clipboard; x writes files", severity="warning")
        return
    app.copy_to_clipboard(text)
    shown = text if len(text) <= TOAST_MAX else f"{text[:TOAST_MAX]} … {len(text):,} characters"
    tell(app, shown, title="sent to the terminal's clipboard")


def export_rows(app: App[Any], cluster: str, spec: PaneSpec, rows: Sequence[Any]) -> None:
    """Write the rows as CSV and Markdown (as shown), JSON and JSONL (whole models), on a thread: they may be many."""
    header = [column.title for column in spec.columns]
    lines = (([cell_text(column.cell(row)) for column in spec.columns], spec.record(row)) for row in rows)

    def write() -> str:
        paths = export_table(state_dir() / "exports", f"{cluster}-{spec.id}", header, lines)
        first, *others, last = (path.suffix if number else str(path) for number, path in enumerate(paths))
        return f"{', '.join([first, *others])} and {last}"  # four long paths would cover half of a small screen

    _write_and_tell(app, write, f"{plural(len(rows), 'line')} exported", "nothing exported")


def screenshot(app: App[Any], name: str, *, redact: bool = False) -> None:
    """Write the screen as SVG and as plain text; `redact` hides AWS account ids and public addresses in both."""
    picture = take(app, redact=redact)

    def write() -> str:
        folder = private_dir(state_dir() / "screenshots")
        stem = folder / new_stem(name)
        write_private(stem.with_name(f"{stem.name}.svg"), picture.svg)
        write_private(stem.with_name(f"{stem.name}.txt"), picture.text)
        return f"{stem}.svg and .txt"

    hidden = f"; {plural(picture.redacted, 'number')} hidden" if redact else ""
    _write_and_tell(app, write, f"screen written{hidden}", "no screenshot")


def _write_and_tell(app: App[Any], write: Callable[[], str], done: str, failed: str) -> None:
    """Write files on a thread and tell where they are, or why they are not there."""

    def work() -> None:
        try:
            words = write()
        except OSError as error:
            why = error.strerror or str(error)
            where = f": {error.filename}" if error.filename else ""
            tell(app, f"{failed}: {why}{where}", severity="error")
        except Exception as error:  # told where it was asked for, whatever it is
            tell(app, f"{failed}: {unexpected('writing', error).line()}", severity="error")
        else:
            tell(app, words, title=done)

    threading.Thread(target=work, daemon=True).start()


def end_in_any_case(code: int, stop: Callable[[], None]) -> None:
    """End the process soon, even when the way out blocks.

    A terminal that is gone ends Textual's writing thread, and its shutdown then waits for ever to be rid of
    the last escape sequences.
    """

    def end() -> None:
        time.sleep(END_AFTER_S)
        stop()
        atexit._run_exitfuncs()  # such as the demo's, which removes its keys
        os._exit(code)

    threading.Thread(target=end, daemon=True).start()
