"""What keeps keys from answering a question that nobody has read: type-ahead, pastes, bursts. Imports no Textual."""

from __future__ import annotations

from dataclasses import dataclass

SETTLE_S = 0.3  # a dialog takes no key before it has stood there so long
BURST_S = 0.02  # characters that come closer together were not typed by a hand


@dataclass
class Guard:
    """`shut` closes it; times are those of the events themselves, so a slow screen lets nothing through."""

    opens_at: float = float("inf")
    _last_at: float = float("-inf")
    burst: bool = False  # the last characters came faster than a hand types

    def shut(self, now: float) -> None:
        """Something new is on the screen: it has to be read first."""
        self.opens_at = now + SETTLE_S
        self.forget()

    def is_open(self, at: float) -> bool:
        """True for a key that was pressed once the dialog had stood there for a while."""
        return at >= self.opens_at

    def press(self, at: float) -> bool:
        """Take note of a key; False when it is part of a burst, which makes all of the burst void."""
        self.burst = at - self._last_at < BURST_S
        self._last_at = at
        return not self.burst

    def forget(self) -> None:
        """Begin anew."""
        self._last_at, self.burst = float("-inf"), False
