"""Time as one object, so that tests can stand still."""

from __future__ import annotations

import sys
import time
from typing import Protocol


class Clock(Protocol):
    """`now` is the wall clock in epoch seconds; `steady` only grows and also counts a suspended laptop."""

    def now(self) -> float: ...
    def steady(self) -> float: ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def steady(self) -> float:
        # CLOCK_MONOTONIC stands still during suspend on Linux; data would look fresh after opening the lid.
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()


SYSTEM_CLOCK = SystemClock()
