"""The processes on the GPUs, each with who and which job is behind it."""

import json

from cockpit.probe.agent.child import Nursery, answer
from cockpit.probe.agent.node import stat_fields
from cockpit.probe.agent.pids import describe
from cockpit.probe.agent.question import Question
from cockpit.probe.agent.values import compact, read_file

_REFRESH_S = 60.0  # a process may be moved to another cgroup after its start
_NEVER = 1e18


class Processes:
    """Joins the driver's pids to /proc; what is known of a process is read again once a minute."""

    def __init__(self, nursery: Nursery, proc: str, deadline_s: float) -> None:
        self.why = ""
        self._proc = proc
        self._held: list[list[object]] = []  # [GPU, pid, MiB, instance]
        self._errors: list[list[object]] = []
        self._known: dict[int, tuple[str, object]] = {}  # pid -> start time in ticks, description
        self._wanted: list[int] = []
        self._with_environ = True
        self._refresh_at = 0.0
        body = answer(lambda: describe(self._proc, self._wanted, self._with_environ))
        self._question = Question(nursery, body, _NEVER, deadline_s)
        self._question.due = _NEVER
        self._told = b""
        self._dirty = False

    def update(self, now: float, lists: "list[object]", place: "list[int]") -> None:
        """Take the driver's answer: per GPU a list of [pid, MiB, instance], or a word."""
        self._held, self._errors = [], []
        for row, told in enumerate(lists):
            if place[row] < 0:
                continue
            if isinstance(told, list):
                self._held += [[place[row], *process] for process in told]
            else:
                self._errors.append([place[row], told])
        self._dirty = True
        pids = {int(str(process[1])) for process in self._held}
        self._known = {pid: known for pid, known in self._known.items() if pid in pids and known[0] == self._start(pid)}
        if self._question.child is None:
            # What was read before stands until the new answer is here: no rank vanishes for a moment.
            again = now >= self._refresh_at
            self._refresh_at = now + _REFRESH_S if again else self._refresh_at
            self._wanted = sorted(pids if again else pids - set(self._known))
            self._question.due = now if self._wanted else _NEVER

    def step(self, now: float) -> None:
        """Start and collect."""
        child = self._question.step(now)
        if child is None:
            if self._question.late_since is not None and self._with_environ:
                # An environment that cannot be read hangs its reader: from now on without it.
                self._with_environ = False
                self.why = "reading the environment of a process did not end"
            return
        try:
            told = json.loads(child.out.decode("utf-8", "replace"))
        except ValueError:
            told = {}
        for pid in self._wanted:
            if pid in self._known and str(pid) not in told:
                continue  # the reader fell over: what it told the last time is still the best there is
            self._known[pid] = (self._start(pid), told.get(str(pid)))
        self._dirty = True

    def wants(self, now: float) -> float:
        """Seconds until this wants to be looked at again."""
        return self._question.wants(now) if self._question.child is not None else 60.0

    def take(self, everything: bool) -> "list[list[object]] | None":
        """Rows [GPU, pid, MiB, instance, known?, description ...] and [GPU, word], when they have changed."""
        if not (self._dirty or everything):
            return None
        self._dirty = False
        rows: list[list[object]] = [*self._errors, *(self._row(process) for process in self._held)]
        text = compact(rows)
        if text == self._told and not everything:
            return None
        self._told = text
        return rows

    def _row(self, process: "list[object]") -> "list[object]":
        known = self._known.get(int(str(process[1])))
        if known is None:
            return process
        about = known[1]
        return [*process, 1, *about] if isinstance(about, list) else [*process, 0]

    def _start(self, pid: int) -> str:
        return stat_fields(read_file(f"{self._proc}/{pid}/stat", 512))[2]
