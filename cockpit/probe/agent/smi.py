"""GPUs through nvidia-smi, where NVML's library cannot be loaded. Its text is read at the other end."""

import re

from cockpit.probe.agent.child import Nursery, program
from cockpit.probe.agent.question import Question
from cockpit.probe.agent.values import decode

# Names that every driver since 450 knows; nvidia-smi refuses the whole query for one it does not know.
FIELDS = (
    "index",
    "uuid",
    "pci.bus_id",
    "name",
    "serial",
    "driver_version",
    "mig.mode.current",
    "memory.total",
    "clocks.max.sm",
    "pcie.link.gen.max",
    "pcie.link.width.max",
    "utilization.gpu",
    "utilization.memory",
    "memory.used",
    "temperature.gpu",
    "temperature.memory",
    "power.draw",
    "clocks.current.sm",
    "clocks_throttle_reasons.active",
    "power.limit",
    "ecc.errors.corrected.volatile.total",
    "ecc.errors.uncorrected.volatile.total",
    "pcie.link.gen.current",
    "pcie.link.width.current",
)
_RENAMED = {
    "clocks_throttle_reasons.active": "clocks_event_reasons.active",
    "clocks_event_reasons.active": "clocks_throttle_reasons.active",
}
_UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')
_MAX_TEXT = 16384


class Smi:
    """Asks now and then; `said` is the last answer in the protocol's form, told once."""

    def __init__(self, nursery: Nursery, path: str, every_s: float, deadline_s: float) -> None:
        self.said: dict[str, object] | None = None
        self._fields = list(FIELDS)
        self._tried: set[str] = set()
        self._path = path
        self._nursery = nursery
        self._every_s = every_s
        self._deadline_s = deadline_s
        self._question = self._ask()

    @property
    def late_since(self) -> "float | None":
        """When the question that has had no answer was asked, in wall time."""
        return self._question.late_since

    def step(self, now: float) -> None:
        """Start and collect; drops or renames a field that this driver does not know, and asks again."""
        child = self._question.step(now)
        if child is None:
            return
        text = decode(bytes(child.out[:_MAX_TEXT]))
        unknown = _UNKNOWN_FIELD.search(text)
        if unknown and unknown.group(1) in self._fields:
            self._give_up(unknown.group(1))
            self._question = self._ask()
            return
        self.said = {"f": self._fields, "rc": child.code, "out": text}

    def wants(self, now: float) -> float:
        """Seconds until this wants to be looked at again."""
        return self._question.wants(now)

    def _ask(self) -> Question:
        query = [self._path, "--query-gpu=" + ",".join(self._fields), "--format=csv,noheader,nounits"]
        return Question(self._nursery, program(query), self._every_s, self._deadline_s)

    def _give_up(self, field: str) -> None:
        place = self._fields.index(field)
        other = _RENAMED.get(field)
        self._tried.add(field)
        if other and other not in self._tried:
            self._fields[place] = other
        else:
            del self._fields[place]
