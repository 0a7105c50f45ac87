"""The characters that carry meaning: one set for every terminal with Unicode, one in ASCII."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cockpit.models import Health

WORDS: Mapping[Health, str] = MappingProxyType(
    {
        Health.OK: "ok",
        Health.UNKNOWN: "?",
        Health.DRAINED: "drain",
        Health.WARN: "warn",
        Health.CRITICAL: "crit",
    }
)


@dataclass(frozen=True, slots=True)
class Signs:
    """Each sign is one cell wide, `ramp` has eight of them; `states` has one for each of the five states."""

    states: Mapping[Health, str]
    up: str
    down: str
    left: str
    right: str
    rule: str
    mark: str
    thumb: str
    cut: str
    dot: str
    ramp: str  # eight signs from least to most, none of which is also a state's or the dot


def _states(text: str) -> Mapping[Health, str]:
    return MappingProxyType(dict(zip(Health, text, strict=True)))


# The arrows of the order must not be a state's sign: `sort state ▲` reads as a warning.
UNICODE = Signs(_states("●○◆▲✖"), "↑", "↓", "‹", "›", "─", "▌", "┃", "…", "·", "▁▂▃▄▅▆▇█")
ASCII = Signs(_states("*?#^x"), "/", "\\", "<", ">", "-", "+", "|", "~", "-", "_.:=+o%@")


def signs(app: object) -> Signs:
    """The signs to draw with: ASCII where the app was told so (`app.ascii_only`)."""
    return ASCII if getattr(app, "ascii_only", False) else UNICODE
