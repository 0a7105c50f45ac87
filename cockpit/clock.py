"""Time as one object, so that tests can stand still."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """`now` is the wall clock in epoch seconds; `steady` only grows and also counts a suspended laptop."""

    def now(self) -> float: ...
    def steady(self) -> float: ...


_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def steady(self) -> float:
        # CLOCK_MONOTONIC stands still during suspend on Linux; data would look fresh after opening the lid.
        return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


SYSTEM_CLOCK = SystemClock()
