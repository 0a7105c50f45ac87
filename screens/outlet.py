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
from cockpit.export import export_table
from cockpit.text import printable
from cockpit.words import plural
from screens.grid_model import cell_text
from screens.pane_spec import PaneSpec

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
    """Write the rows as CSV (cells as shown) and JSON (whole models), on a thread: there may be many."""

    def write() -> None:
        try:
            paths = export_table(
                state_dir() / "exports",
                f"{cluster}-{spec.id}",
                [column.title for column in spec.columns],
                [[cell_text(column.cell(row)) for column in spec.columns] for row in rows],
                [spec.record(row) for row in rows],
            )
        except OSError as error:
            why = error.strerror or str(error)
            app.call_from_thread(tell, app, f"nothing exported: {why}: {error.filename}", severity="error")
            return
        title = f"{plural(len(rows), 'line')} exported"
        app.call_from_thread(tell, app, " ".join(map(str, paths)), title=title)

    threading.Thread(target=write, daemon=True).start()


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
