"""The one error of this package: text that cannot be read as what it should be."""

from __future__ import annotations

from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

_SHOWN = 80


class FormatError(FaultError):
    """Text that breaks its own format; carries a Fault of kind GARBLED with the piece that broke it."""

    def __init__(self, what: str, why: str, piece: str | bytes = "", next_step: str = "") -> None:
        shown = printable(piece[:_SHOWN])
        reason = f"{why}: {shown}" if shown else why
        super().__init__(Fault(FaultKind.GARBLED, what, reason, next_step))
