"""The NVML child as its parent sees it: a deadline, one child at a time, pauses that grow."""

import json
import time

from cockpit.probe.agent.child import Child, Nursery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.probe.agent.child import Body

STARTING, OK, SILENT, SLOW, HUNG, CRASHED, NONE = "starting", "ok", "silent", "slow", "hung", "crashed", "none"


class Driver:
    """Asks the NVML child and never waits for it.

    An answer that is out for `silent_s` is told as that at once; after `slow_s` it is trouble. After `deadline_s`
    without an answer the child is killed and left alone: a process in D state ignores SIGKILL, and waiting for it
    would hang the parent as well. The next one is started only when the old one is gone and `backoff_s` has passed.
    """

    def __init__(
        self,
        nursery: Nursery,
        body: "Body",
        silent_s: float,
        slow_s: float,
        deadline_s: float,
        backoff_s: "list[float]",
    ) -> None:
        self.state = STARTING
        self.since = time.time()
        self.why = ""
        self.code: int | None = None  # of NVML, when the driver itself refused
        self.took_ms: int | None = None
        self._nursery, self._body = nursery, body
        self._silent_s, self._slow_s, self._deadline_s, self._backoff_s = silent_s, slow_s, deadline_s, backoff_s
        self._child: Child | None = None
        self._asked: float | None = None
        self._asked_at = 0.0
        self._failures = 0
        self._not_before = 0.0

    @property
    def waiting(self) -> bool:
        """Whether a question is out."""
        return self._asked is not None

    def ask(self, now: float, word: bytes) -> bool:
        """Put a question (`f` or `s`) when nothing is out; starts the child when it may."""
        if self._child is None and now >= self._not_before:
            return self._start(now)
        child = self._child
        if child is None or child.killed or self._asked is not None or self.state not in (OK, SILENT, SLOW):
            return False
        if child.tell(word):
            self._asked, self._asked_at = now, time.time()
            return True
        return False

    def step(self, now: float) -> "list[dict[str, object]]":
        """What the child has said since the last call."""
        child = self._child
        if child is None:
            return []
        if child.killed:
            if child.reap():
                self._child = None
            return []
        replies = [reply for reply in map(_parse, child.lines()) if reply]
        for reply in replies:
            self._heard(now, reply)
        if child.eof:
            if child.reap():
                self._gone(now, child)
        elif self._asked is not None:
            self._check(now - self._asked, now, child)
        return replies

    def wants(self, now: float) -> float:
        """Seconds until this wants to be looked at again."""
        if self._child is not None and self._child.eof and not self._child.killed:
            return 0.01
        if self._asked is None:
            return 60.0
        limits = {OK: min(self._silent_s, self._slow_s), STARTING: self._slow_s, SILENT: self._slow_s}
        limit = limits.get(self.state, self._deadline_s)
        return max(0.0, self._asked + limit - now) + 0.01

    def _start(self, now: float) -> bool:
        try:
            self._child = self._nursery.start(self._body, talks=True)
        except OSError as error:
            self._fail(now, CRASHED, f"no child process: {error.strerror}")
            return False
        self._asked, self._asked_at = now, time.time()
        return True

    def _heard(self, now: float, reply: "dict[str, object]") -> None:
        if self._asked is not None:
            self.took_ms = int((now - self._asked) * 1000)
        self._asked = None
        fatal = reply.get("fatal")
        if fatal is None:
            self._become(OK, time.time())
            if "g" in reply:
                self._failures = 0
            return
        self.code = fatal if isinstance(fatal, int) else -1
        self._fail(now, NONE, str(reply.get("why")))

    def _check(self, late: float, now: float, child: Child) -> None:
        if late > self._deadline_s:
            self._asked = None
            child.kill()
            child.reap()
            self._fail(now, HUNG, f"no answer within {self._deadline_s:g} s", self._asked_at)
        elif late > self._slow_s and self.state in (OK, STARTING, SILENT):
            self._become(SLOW, self._asked_at)
        elif late > self._silent_s and self.state == OK:
            self._become(SILENT, self._asked_at)

    def _gone(self, now: float, child: Child) -> None:
        self._child = None
        self._asked = None
        if self.state != NONE:
            self._fail(now, CRASHED, f"the driver's library ended the reader: {child.ending()}")

    def _fail(self, now: float, state: str, why: str, since: "float | None" = None) -> None:
        pause = self._backoff_s[min(self._failures, len(self._backoff_s) - 1)]
        self._failures += 1
        self._not_before = now + pause
        self.why = why
        self._become(state, since or time.time())

    def _become(self, state: str, since: float) -> None:
        trouble = (SILENT, SLOW, HUNG)
        # From silent to hung the trouble is the same, and so is its beginning.
        if state != self.state and not (state in trouble and self.state in trouble):
            self.since = since
        if state == OK:
            self.why, self.code = "", None
        self.state = state


def _parse(line: bytes) -> "dict[str, object] | None":
    try:
        reply = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None
    return reply if isinstance(reply, dict) else None
