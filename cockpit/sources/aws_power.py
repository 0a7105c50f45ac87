"""Carries out what a power plan orders and waits for. The runner of actions alone calls it; nothing is tried twice.

A write that may have happened (no answer) is not repeated: the next read tells what is so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from cockpit.aws_models import AwsScope, Instance
from cockpit.aws_orders import filled, order_of
from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.fleet_power import BOOT_S, GONE_S, IN_PROGRESS_S, PICKED_UP_S, Tell, stopped_outcome
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources.aws import read_checks, read_fleet, read_hyperpod, read_instances
from cockpit.sources.aws_client import AwsCalls
from cockpit.text import printable

EVERY_S = 5.0
JOBS_EVERY_S = 30.0
_REVERSED = {
    "STOPPED": ("START_REQUESTED", "STARTING", "RUNNING"),
    "RUNNING": ("STOP_REQUESTED", "STOPPING", "STOPPED"),
}
_REQUESTED = ("STOP_REQUESTED", "START_REQUESTED")

Sleep = Callable[[float], bool]  # seconds; True: the run was cancelled meanwhile


def carry_out(calls: AwsCalls, argv: tuple[str, ...]) -> str:
    """Give one order to AWS and say what it answered; raises FaultError (CONFLICT: the race was lost)."""
    order = order_of(argv)
    now = str(datetime.now(timezone.utc))
    what = f"{order.service} {order.method.replace('_', ' ')}"
    answer = calls.once().call(order.service, order.method, what, **filled(order.request, now))
    if order.service == "dynamodb":
        status = ((answer.get("Attributes") or {}).get("Data") or {}).get("M", {}).get("status", {}).get("S", "")
        return f"fleet status is now {status}" if status else "written"
    if failed := answer.get("Failed"):  # SageMaker's batches take some and refuse others
        why = "; ".join(printable(f"{one.get('NodeId')}: {one.get('Message', one.get('ErrorCode'))}") for one in failed)
        raise FaultError(Fault(FaultKind.FAILED, what, why, "the others were taken"))
    changes = answer.get("StoppingInstances") or answer.get("StartingInstances") or ()
    states = Counter(str((change.get("CurrentState") or {}).get("Name", "?")) for change in changes)
    return ", ".join(f"{count} {state}" for state, count in states.items()) or "accepted"


def may(calls: AwsCalls, argv: tuple[str, ...]) -> Fault | None:
    """Whether an EC2 order would be allowed, asked by a dry run that changes nothing; None when it would be."""
    order = order_of(argv)
    try:
        calls.call(order.service, order.method, "asking for the right", **order.request, DryRun=True)
    except FaultError as error:
        return None if "DryRunOperation" in error.fault.why else error.fault
    return None


@dataclass(frozen=True, slots=True)
class Waits:
    """Everything a wait step may look at. `running_jobs` and `head_answers` ask Slurm and the head."""

    calls: AwsCalls
    scope: AwsScope
    running_jobs: Callable[[], int]
    head_answers: Callable[[], bool]
    clock: Clock = SYSTEM_CLOCK

    def wait(self, argv: Sequence[str], tell: Tell, sleep: Sleep) -> str:
        """Wait until it is so and say what was seen; raises FaultError when it will not come, or not in time."""
        word, rest = argv[1], tuple(argv[2:])
        if word == "fleet":
            return self._fleet(rest[0], tell, sleep)
        if word == "gone":
            return self._until("waiting for the instances to go", GONE_S, EVERY_S, self._gone, tell, sleep)
        if word == "instances":
            what = f"waiting for instances to be {rest[0]}"
            return self._until(what, BOOT_S, EVERY_S, lambda: self._instances(rest[0], rest[1:]), tell, sleep)
        if word == "groups":
            wanted = {name: int(count) for name, _, count in (item.rpartition("=") for item in rest)}
            return self._until("waiting for SageMaker", BOOT_S, EVERY_S, lambda: self._groups(wanted), tell, sleep)
        if word == "unchanged":
            return self._unchanged({name: size for name, _, size in (item.rpartition("=") for item in rest)})
        if word == "ssh":
            return self._until("waiting for the head", BOOT_S, EVERY_S, self._ssh, tell, sleep)
        if word == "jobs":
            return self._until("waiting for the jobs", None, JOBS_EVERY_S, self._jobs, tell, sleep)
        raise ValueError(f"no such wait: {word}")

    def _until(
        self,
        what: str,
        limit_s: float | None,
        every_s: float,
        look: Callable[[], tuple[bool, str]],
        tell: Tell,
        sleep: Sleep,
    ) -> str:
        began, told = self.clock.steady(), ""
        while True:
            done, words = _patient(look)
            if done:
                return words
            if words != told:
                tell(words)
                told = words
            if limit_s is not None and self.clock.steady() - began > limit_s:
                raise FaultError(Fault(FaultKind.TIMEOUT, what, f"not so after {limit_s / 60:.0f} min: {words}"))
            if sleep(every_s):
                raise FaultError(Fault(FaultKind.FAILED, what, f"cancelled: {words}", "what was ordered goes on"))

    def _fleet(self, wanted: str, tell: Tell, sleep: Sleep) -> str:
        """The fleet on its way: taken up within minutes, done some minutes later, or turned round by somebody."""
        began = self.clock.steady()

        def look() -> tuple[bool, str]:
            status = read_fleet(self.calls, self.scope.fleet_table).status
            if status in _REVERSED[wanted] or (wanted == "RUNNING" and status == "PROTECTED"):
                why = f"the fleet is {status} and no longer on its way to {wanted}"
                step = "somebody else, or the head, changed it: look before you order anything again"
                raise FaultError(Fault(FaultKind.CONFLICT, "waiting for the fleet", why, step))
            if status in _REQUESTED and self.clock.steady() - began > PICKED_UP_S:
                why = f"{status} for {PICKED_UP_S / 60:.0f} min: the head does not take it up"
                step = "is the head running? `supervisorctl status clusterstatusmgtd` there"
                raise FaultError(Fault(FaultKind.TIMEOUT, "waiting for the fleet", why, step))
            return status == wanted, f"fleet {status}"

        return self._until("waiting for the fleet", PICKED_UP_S + IN_PROGRESS_S, EVERY_S, look, tell, sleep)

    def _gone(self) -> tuple[bool, str]:
        """No compute instance any more, and a fleet that launches none: only then may the head go."""
        status = read_fleet(self.calls, self.scope.fleet_table).status if self.scope.fleet_table else None
        outcome = stopped_outcome(status, read_instances(self.calls, self.scope))
        if outcome.failed:
            step = "somebody else, or the head, changed it: look before you order anything again"
            raise FaultError(Fault(FaultKind.CONFLICT, "waiting for the instances to go", outcome.text, step))
        left = f": {', '.join(outcome.left[:5])}" if outcome.left else ""
        return outcome.done, outcome.text + ("" if outcome.done else left)

    def _instances(self, wanted: str, ids: Sequence[str]) -> tuple[bool, str]:
        """`stopped`, or `ok`: running with both status checks passed."""
        found = {i.id: i for i in read_instances(self.calls, self.scope) if i.id in ids}
        state = "running" if wanted == "ok" else wanted
        there = [i for i in found.values() if i.state == state]
        if wanted == "ok" and len(there) == len(ids):
            return self._healthy(there)
        missing = [name for name in ids if name not in found]
        states = Counter([i.state for i in found.values()] + ["gone"] * len(missing))
        return len(there) == len(ids), ", ".join(f"{count} {word}" for word, count in states.items())

    def _healthy(self, instances: Sequence[Instance]) -> tuple[bool, str]:
        checks = read_checks(self.calls, [i.id for i in instances])
        good = [i for i in instances if (c := checks.get(i.id)) and c.system == c.instance == "ok"]
        return len(good) == len(instances), f"{len(good)} of {len(instances)} pass EC2's status checks"

    def _groups(self, wanted: Mapping[str, int]) -> tuple[bool, str]:
        cluster = read_hyperpod(self.calls, self.scope.hyperpod)
        found = {group.name: group.current for group in cluster.groups}
        words = ", ".join(f"{name} {found.get(name)} of {count}" for name, count in wanted.items())
        done = cluster.status == "InService" and all(found.get(name) == count for name, count in wanted.items())
        return done, f"{cluster.status}: {words}"

    def _unchanged(self, sizes: Mapping[str, str]) -> str:
        """The groups are wished to be as large as they were when the plan was made; raises FaultError."""
        cluster = read_hyperpod(self.calls, self.scope.hyperpod)
        now = {group.name: str(group.target) for group in cluster.groups}
        if now == sizes:
            return "the groups are as they were"
        changed = sorted(name for name in now.keys() | sizes if now.get(name) != sizes.get(name))
        why = f"somebody has changed {', '.join(changed)} since the plan was made"
        raise FaultError(Fault(FaultKind.CONFLICT, "looking at the groups", why, "plan it anew"))

    def _ssh(self) -> tuple[bool, str]:
        return (True, "the head answers") if self.head_answers() else (False, "the head does not answer yet")

    def _jobs(self) -> tuple[bool, str]:
        count = self.running_jobs()
        return count == 0, "no job runs" if count == 0 else f"{count} still running"


def _patient(look: Callable[[], tuple[bool, str]]) -> tuple[bool, str]:
    """A look that fails because AWS is busy or away is no look; one that is refused, or tells of others, is an end."""
    try:
        return look()
    except FaultError as error:
        if error.fault.kind not in (FaultKind.THROTTLED, FaultKind.TIMEOUT, FaultKind.UNREACHABLE):
            raise
        if error.fault.what == "waiting for the fleet":
            raise
        return False, error.fault.line()
