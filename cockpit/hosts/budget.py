"""What one machine is asked to bear: new connections a second, to it and through it, and sessions at once.

Every host keeps its own account, and there is no way around it: docs/SCALE.md says why the numbers are these.
"""

from __future__ import annotations

import threading
import time

CONNECTIONS_PER_S = 32
# sshd allows 10 sessions on a connection (MaxSessions). Two are left for those that sshd still counts after
# we gave them up; streams may not take them all, or no command would ever run.
SESSIONS_MAX = 8
STREAMS_MAX = 5
# One that is used for everything new, and those that older streams still run on.
LOGINS_MAX = 3


class Gate:
    """Lets one new connection begin at a time, and never more than `per_s` within any second."""

    def __init__(self, per_s: float = CONNECTIONS_PER_S) -> None:
        self._gap_s = 1.0 / per_s
        self._free_at = 0.0
        self._turn = threading.Lock()

    def enter(self, until: float) -> bool:
        """Wait for the next free moment; False when there is none until then (time.monotonic())."""
        if not self._turn.acquire(timeout=max(0.0, until - time.monotonic())):
            return False
        try:
            now = time.monotonic()
            if self._free_at > until:
                return False
            # The one who waits holds the place, so that two can never begin closer than the gap.
            if self._free_at > now:
                time.sleep(self._free_at - now)
            self._free_at = time.monotonic() + self._gap_s
        finally:
            self._turn.release()
        return True
