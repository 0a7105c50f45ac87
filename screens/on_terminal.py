"""Textual draws to the standard error; where that leads elsewhere (`2>file`), draw to the terminal all the same."""

from __future__ import annotations

import os
import sys
from typing import Any

from textual.driver import Driver


def drawn_on_terminal(driver: type[Driver]) -> type[Driver]:
    """The same driver, drawing to the standard output's terminal where the standard error is none.

    What is written to the standard error goes where the user wants it.
    """
    if sys.__stderr__ is None or sys.__stdout__ is None or sys.__stderr__.isatty() or not sys.__stdout__.isatty():
        return driver

    class OnStandardOutput(driver):  # type: ignore[misc, valid-type]
        """Takes its file while it is made, from the name that the standard error has then."""

        def __init__(self, *args: Any, **options: Any) -> None:
            kept = sys.__stderr__
            assert sys.__stdout__ is not None
            # A file of its own: the app redirects the standard output, and writes this one from a thread.
            terminal = os.fdopen(os.dup(sys.__stdout__.fileno()), "w", encoding=sys.__stdout__.encoding)
            setattr(sys, "__stderr__", terminal)  # noqa: B010 - typed as one that never changes
            try:
                super().__init__(*args, **options)
            finally:
                setattr(sys, "__stderr__", kept)  # noqa: B010

    return OnStandardOutput
