"""Whether a cluster may be changed just now: read-only by the config, armed for a while, or read-only for good."""

from __future__ import annotations

from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.words import span

LONGEST_S = 8 * 3600.0


class ReadOnly:
    """`forced` is --read-only, which nothing lifts; `configured` is `read_only: true`, which can be armed."""

    def __init__(self, *, forced: bool, configured: bool, clock: Clock = SYSTEM_CLOCK) -> None:
        self.forced, self.configured = forced, configured
        self._clock = clock
        self._armed_until: float | None = None  # steady clock

    @property
    def on(self) -> bool:
        """True when every change is refused."""
        return self.forced or (self.configured and self.armed_for_s is None)

    @property
    def armed_for_s(self) -> float | None:
        """Seconds left of the armed time; None when not armed."""
        left_s = (self._armed_until or 0.0) - self._clock.steady()
        return left_s if self._armed_until is not None and left_s > 0 else None

    def arm(self, seconds: float) -> None:
        """Allow changes for so long, at most eight hours. Raises PermissionError with the reason."""
        if self.forced:
            raise PermissionError("started with --read-only: start the cockpit again without it")
        if not 0 < seconds <= LONGEST_S:
            raise PermissionError(f"a cluster is armed for more than 0s and at most {span(LONGEST_S)}")
        self._armed_until = self._clock.steady() + seconds

    def disarm(self) -> None:
        """Read-only again at once, where the config says so."""
        self._armed_until = None

    def why(self) -> str:
        """Why changes are refused, with the way out; "" when they are not."""
        if not self.on:
            return ""
        if self.forced:
            return "read-only: the cockpit was started with --read-only"
        return "read-only: the config says `read_only: true` for this cluster; `:arm 15m` in the cockpit lifts it"
