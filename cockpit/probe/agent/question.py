"""Something asked now and then in a child: never twice at once, never again beside one that hangs."""

import time

from cockpit.probe.agent.child import Child, Nursery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.probe.agent.child import Body


class Question:
    """Asks `body` every `every_s`. After `deadline_s` the child is killed and `late_since` is set.

    A killed child that cannot die (D state) blocks the question until it does; nothing else waits for it.
    """

    def __init__(self, nursery: Nursery, body: "Body", every_s: float, deadline_s: float) -> None:
        self.every_s = every_s
        self.late_since: float | None = None  # wall time of the question that has had no answer
        self.due = 0.0
        self.child: Child | None = None
        self._nursery = nursery
        self._body = body
        self._deadline_s = deadline_s
        self._asked = 0.0
        self._asked_at = 0.0

    def step(self, now: float) -> "Child | None":
        """Start, look after and collect; returns the child that has answered, once."""
        child = self.child
        if child is None:
            if now >= self.due:
                self._start(now)
            return None
        if child.killed:
            if child.reap():
                self.child = None
                self.due = now + self.every_s
            return None
        child.read()
        if child.eof and child.reap():
            self.child = None
            self.late_since = None
            self.due = self._asked + self.every_s
            return child
        if now > self._asked + self._deadline_s:
            child.kill()
            child.reap()
            self.late_since = self.late_since or self._asked_at
        return None

    def wants(self, now: float) -> float:
        """Seconds until this wants to be looked at again."""
        if self.child is None:
            return max(0.0, self.due - now)
        if self.child.eof:
            return 1.0 if self.child.killed else 0.01
        return max(0.0, self._asked + self._deadline_s - now) + 0.01

    def _start(self, now: float) -> None:
        self._asked, self._asked_at = now, time.time()
        try:
            self.child = self._nursery.start(self._body)
        except OSError:
            self.due = now + self.every_s
