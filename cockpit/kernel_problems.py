"""What the kernels of the nodes complain about, as problems that end some time after the last complaint."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from cockpit.catalog.severity import Severity
from cockpit.catalog.xids import sxid
from cockpit.fleet_state import Fleet, about_nodes, earliest, of_several
from cockpit.formats.kernel_log import KernelEvent, KernelKind, health_of
from cockpit.models import Health, Problem
from cockpit.sources.gpu_events import WINDOW_S
from cockpit.sources.gpus import NodeWatch

RECENT_S = 1800.0  # a kill or a blocked task is news for that long, and history after it
CLEARED_S = 120.0  # a server that answers again is told of for that long: it may go away again
_LOST = re.compile(r"was lost|evicted")
_RANK = {health: rank for rank, health in enumerate(Health)}
_Told = tuple[NodeWatch, KernelEvent]


class Per(str, Enum):
    """What makes two complaints of the same kind one problem."""

    FLEET = "fleet"
    NODE = "node"  # a card or disk of the same name on another node is another one
    SERVER = "server"  # several nodes that miss the same server have one problem


@dataclass(frozen=True, slots=True)
class Rule:
    """Which lines become which problem, and for how long after the last of them."""

    code: str
    kind: KernelKind
    title: str
    next_step: str
    per: Per = Per.FLEET
    lasts_s: float = RECENT_S
    picks: Callable[[KernelEvent], bool] = lambda event: True


def _read_only(event: KernelEvent) -> bool:
    return "read-only" in event.text


# Texts and levels: Linux, EFA driver, GPUD and GCM, as in formats/kernel_hosts.py. Cards and disks do not mend
# themselves, so what was said of them holds as long as it is known.
RULES = (
    Rule("oom", KernelKind.OOM, "the kernel killed for want of memory",
         "the job asked for too little memory, or leaks it"),
    Rule("hung_task", KernelKind.HUNG_TASK, "tasks blocked in the kernel",
         "see what they wait for: a file system or a driver; reboot"),
    Rule("lockup", KernelKind.LOCKUP, "a CPU locked up", "drain the node, read its kernel log, reboot it"),
    Rule("efa", KernelKind.EFA, "an EFA card no longer answers",
         "jobs over several nodes fail or hang here: drain the node and replace the instance",
         Per.NODE, WINDOW_S, lambda event: event.severity is Severity.REPLACE),
    Rule("efa_refused", KernelKind.EFA, "an EFA card refuses commands",
         "look for processes that an earlier job left on the node: they hold what the card has",
         Per.NODE, RECENT_S, lambda event: event.severity is not Severity.REPLACE),
    Rule("read_only", KernelKind.DISK, "a file system went read-only after errors",
         "what writes there fails: drain the node; replace the instance, or the volume",
         Per.NODE, WINDOW_S, _read_only),
    Rule("disk", KernelKind.DISK, "a disk fails", "drain the node; replace the instance, or the volume",
         Per.NODE, WINDOW_S, lambda event: not _read_only(event)),
    Rule("lustre", KernelKind.LUSTRE, "Lustre: connection lost",
         "jobs wait or fail in their files, not in NCCL: look at the file system, then at the nodes' network",
         Per.SERVER, RECENT_S, lambda event: _LOST.search(event.text) is not None),
    Rule("nfs", KernelKind.NFS, "NFS: the server does not respond",
         "whatever touches it waits, jobs too: look at the server and at the network to it", Per.SERVER),
)  # fmt: skip


def of_kernels(fleet: Fleet) -> Iterator[Problem]:
    """Every problem that the kernels tell, in no order."""
    log = _Log.of(fleet)
    for rule in RULES:
        alike: dict[str, list[_Told]] = defaultdict(list)
        for watch, event in log.told[rule.kind]:
            if rule.picks(event) and log.holds(watch, event, rule.lasts_s):
                alike[_whose(rule, watch, event)].append((watch, event))
        for whose, found in alike.items():
            yield _problem(f"kernel:{rule.code}{whose}", rule, found, log, fleet)
    yield from _switches(log, fleet)


def _whose(rule: Rule, watch: NodeWatch, event: KernelEvent) -> str:
    return {Per.FLEET: "", Per.NODE: f":{watch.node}", Per.SERVER: f":{event.device}"}[rule.per]


@dataclass(frozen=True, slots=True)
class _Log:
    """All events of the nodes' last boots by kind, and when each node's kernel last said that something is over."""

    told: Mapping[KernelKind, list[_Told]]
    cleared: Mapping[tuple[str, KernelKind, str], float]

    @classmethod
    def of(cls, fleet: Fleet) -> _Log:
        """One pass over every event of the fleet."""
        told: dict[KernelKind, list[_Told]] = defaultdict(list)
        cleared: dict[tuple[str, KernelKind, str], float] = {}
        for watch in fleet.reading.nodes.values():
            boot = watch.reading.boot_id if watch.reading else ""
            for event in watch.events.events:
                if event.boot and boot and event.boot != boot:
                    continue  # what an earlier boot suffered is over
                if not event.clears:
                    told[event.kind].append((watch, event))
                elif event.at is not None:
                    cleared[watch.node, event.kind, event.device] = event.at  # events are in time order
        return cls(told, cleared)

    def cleared_at(self, watch: NodeWatch, event: KernelEvent) -> float | None:
        """When the same kernel said that this is over; None when it has not."""
        at = self.cleared.get((watch.node, event.kind, event.device))
        return None if at is None or at < (event.at or 0.0) else at

    def holds(self, watch: NodeWatch, event: KernelEvent, lasts_s: float) -> bool:
        """Whether the event is still news, by the node's clock."""
        if watch.reading is None or event.at is None or watch.reading.taken_at - event.at > lasts_s:
            return False
        cleared_at = self.cleared_at(watch, event)
        return cleared_at is None or watch.reading.taken_at - cleared_at <= CLEARED_S


def _problem(key: str, rule: Rule, found: Sequence[_Told], log: _Log, fleet: Fleet) -> Problem:
    watches = list({watch.node: watch for watch, _ in found}.values())
    names = sorted({word for _, event in found if (word := event.name or event.device)})
    title = rule.title + (f": {', '.join(names[:4])}" if names else "") + _times(len(found))
    if all(log.cleared_at(watch, event) is not None for watch, event in found):
        title += " · answers again"
    since = earliest(fleet.our_time(watch, event.at) for watch, event in found)
    health = max((health_of(event.severity) for _, event in found), key=_RANK.__getitem__)
    evidence = "; ".join(f"{watch.node}: {event.text}" for watch, event in found[-4:])
    return of_several(key, health, watches, title, rule.next_step, fleet, evidence=evidence, since=since)


def _switches(log: _Log, fleet: Fleet) -> Iterator[Problem]:
    """SXids, which are of an NVSwitch and so of every GPU of the node."""
    alike: dict[tuple[str, int], list[_Told]] = defaultdict(list)
    for watch, event in log.told[KernelKind.SXID]:
        if event.code is not None and health_of(event.severity) is not Health.OK:
            alike[watch.node, event.code].append((watch, event))
    for (node, code), found in alike.items():
        watch, worst = max(found, key=lambda pair: pair[1].severity.rank)
        fact = sxid(code)
        devices = ", ".join(sorted({event.device for _, event in found if event.device}))
        title = f"SXid {code}{_times(len(found))}: {fact.title} · {devices}{fleet.as_of(watch)}"
        since = earliest(fleet.our_time(watch, event.at) for _, event in found)
        yield Problem(f"sxid:{node}:{code}", health_of(worst.severity), node, title, fact.next_step, worst.text, since,
                      about=about_nodes([node]))  # fmt: skip


def _times(count: int) -> str:
    return f" ×{count}" if count > 1 else ""
