"""What the newest kept check runs found wrong, read again whenever somebody has checked: from here, a shell or cron."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.checks.place import history_path
from cockpit.clock import Clock
from cockpit.kept_lines import stamp_of
from cockpit.models import Problem

if TYPE_CHECKING:
    from cockpit.checks.failing import Failing
    from cockpit.view import View

TRUST_S = 24 * 3600.0  # an older verdict says nothing of a node any more


class KeptChecks:
    """Failing checks of a cluster's nodes. `sync` waits for the disk; all else looks at memory."""

    def __init__(self, cluster: str, clock: Clock) -> None:
        self._path, self._clock = history_path(cluster), clock
        self._stamp: object = None
        self._found: tuple[Failing, ...] = ()

    def sync(self) -> bool:
        """Read the newest runs when there are new ones; True when something else fails now.

        A file that cannot be read leaves what was known; pane 6 tells why it cannot.
        """
        try:
            if (stamp := stamp_of(self._path)) in (None, self._stamp):
                return False
            from cockpit.checks.failing import newest_failing  # not before there is something to read

            found = newest_failing(self._path, self._clock.now() - TRUST_S)
        except OSError:
            return False
        changed, self._found, self._stamp = found != self._found, found, stamp
        return changed

    def failing(self, view: View) -> tuple[Failing, ...]:
        """Those that can still be trusted: of the last day, and of the machine that stands there now."""
        if not self._found:
            return ()
        from cockpit.check_problems import trusted

        return trusted(self._found, view, self._clock.now() - TRUST_S)

    def of(self, key: str, view: View) -> tuple[Failing, ...]:
        """What is behind one of its problems, by the problem's key."""
        _, kind, check = key.split(":", 2)
        return tuple(one for one in self.failing(view) if (one.kind, one.check) == (kind, check))

    def problems(self, view: View) -> tuple[Problem, ...]:
        """One problem for each check that fails, over all nodes where it does."""
        if not self._found:
            return ()
        from cockpit.check_problems import of_checks

        return tuple(of_checks(self.failing(view), self._clock.now()))
