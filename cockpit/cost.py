"""What the cluster costs by the hour, and what of that is for nothing. Pure; an unknown price stays unknown.

Sums are over what has a price; how much has none is told beside them and never counted as 0.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cockpit.aws_models import Instance, Joined, Market
from cockpit.formats.node_state import written_by_program
from cockpit.joins import takes_work
from cockpit.models import Job, Node
from cockpit.price_models import Price, Prices

MONDAY, OPENING_H = 0, 9
_NO_MACHINE = ("powered_down", "powering_down")
_IDLE_JOB = "job:idle:"
_ANYBODY = ("root", "slurm")  # logins that stand for whoever used sudo
_SAID_BY = re.compile(r"([a-z_][a-z0-9_.-]{0,31}): ")


@dataclass(frozen=True, slots=True)
class CostLine:
    """Like machines of one queue: `usd_h` is of those with a price (None: none has), `priced` how many that are."""

    queue: str  # head, login, or a queue's name; "" where nobody knows
    type: str
    market: Market | None
    count: int
    priced: int
    usd_h: float | None
    price: Price | None  # of one of them
    since_launch_usd: float | None


@dataclass(frozen=True, slots=True)
class IdleLine:
    """GPUs that are paid for and do nothing. `who`: the job's owner, or who drained the node, or ""."""

    why: str  # allocated, free, drained, down
    who: str
    job: str  # its label; "" where none holds them
    nodes: tuple[str, ...]
    gpus: int | None  # None: nodes without GPUs
    usd_h: float | None


@dataclass(frozen=True, slots=True)
class CostReport:
    """Everything the cost pane and `cockpit cost` tell; money in USD at the prices named in `prices`."""

    basis: str  # ec2: instances as EC2 tells them; slurm: instance types out of the nodes' features
    lines: tuple[CostLine, ...]
    idle: tuple[IdleLine, ...]
    usd_h: float | None
    since_launch_usd: float | None
    until_monday_s: float
    until_monday_usd: float | None
    idle_usd_h: float | None
    idle_gpus: int
    unpriced: Mapping[str, int]  # type -> machines without a known price
    paid_ahead: int  # machines of capacity blocks, which are paid in advance
    prices: tuple[Price, ...]  # one for each source, place and date
    sees_idle_jobs: bool  # False: nobody watches what jobs do with their GPUs


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine that costs money now, and the node on it."""

    instance: Instance
    node: Node | None
    queue: str


def machines_of_ec2(instances: Iterable[Instance], joined: Joined, nodes: Iterable[Node]) -> tuple[Machine, ...]:
    """What EC2 bills, each with its node."""
    named = {node.name: node for node in nodes}
    owner = {instance.id: named.get(name) for name, instance in joined.of_node.items()}
    return tuple(Machine(one, owner.get(one.id), _queue(one, owner.get(one.id))) for one in instances if one.billed)


def _queue(instance: Instance, node: Node | None) -> str:
    if instance.role in ("head", "login"):
        return instance.role
    return instance.queue or (node.partitions[0] if node and node.partitions else "")


def machines_of_slurm(nodes: Iterable[Node], known_types: Iterable[str]) -> tuple[Machine, ...]:
    """The same as far as Slurm tells it: nodes with a machine, and the instance type among their features."""
    there = (n for n in nodes if not n.state.has(*_NO_MACHINE) and n.state.base not in ("hidden", "future"))
    return machines_if_up(there, known_types)


def machines_if_up(nodes: Iterable[Node], known_types: Iterable[str]) -> tuple[Machine, ...]:
    """What these nodes would be with a machine behind each."""
    known, found = set(known_types), []
    for node in nodes:
        kind = next((name for name in node.features if name in known), "")
        queue = node.partitions[0] if node.partitions else ""
        found.append(Machine(Instance(node.name, kind, "running", role="compute", queue=queue), node, queue))
    return tuple(found)


def cost(
    basis: str,
    machines: Sequence[Machine],
    prices: Prices,
    jobs_of_node: Mapping[str, Sequence[Job]],
    idle_jobs: frozenset[int] | None,
    now: float,
) -> CostReport:
    """Add up what is known; `idle_jobs` are jobs that use none of their GPUs (None: nobody watches that)."""
    lines = _lines(machines, prices, now)
    idle = _idle(machines, prices, jobs_of_node, idle_jobs or frozenset())
    known = [line for line in lines if line.usd_h is not None]
    usd_h = sum(line.usd_h or 0.0 for line in known) if known or not machines else None
    until_s = until_monday_s(now)
    paid_ahead = sum(m.instance.market is Market.CAPACITY_BLOCK for m in machines)
    unpriced = Counter(
        m.instance.type or "unknown type"
        for m in machines
        if m.instance.market is not Market.CAPACITY_BLOCK and prices.of(m.instance) is None
    )
    money = [line.usd_h for line in idle if line.usd_h is not None]
    since = [line.since_launch_usd for line in lines if line.since_launch_usd is not None]
    return CostReport(
        basis=basis,
        lines=lines,
        idle=idle,
        usd_h=usd_h,
        since_launch_usd=sum(since) if since else None,
        until_monday_s=until_s,
        until_monday_usd=None if usd_h is None else usd_h * until_s / 3600,
        idle_usd_h=sum(money) if money or not idle else None,
        idle_gpus=sum(line.gpus or 0 for line in idle),
        unpriced=dict(unpriced),
        paid_ahead=paid_ahead,
        prices=_sources(machines, prices),
        sees_idle_jobs=idle_jobs is not None,
    )


def _lines(machines: Sequence[Machine], prices: Prices, now: float) -> tuple[CostLine, ...]:
    alike: dict[tuple[str, str, Market | None], list[Machine]] = defaultdict(list)
    for machine in machines:
        alike[machine.queue, machine.instance.type, machine.instance.market].append(machine)
    found = [_line(key, group, prices, now) for key, group in alike.items()]
    return tuple(sorted(found, key=lambda line: (-(line.usd_h or 0.0), line.queue, line.type)))


def _line(key: tuple[str, str, Market | None], group: Sequence[Machine], prices: Prices, now: float) -> CostLine:
    queue, kind, market = key
    priced = [(machine.instance, price) for machine in group if (price := prices.of(machine.instance))]
    spent = [
        price.usd_h * max(0.0, now - instance.launched_at) / 3600
        for instance, price in priced
        if instance.launched_at is not None
    ]
    return CostLine(
        queue,
        kind,
        market,
        len(group),
        len(priced),
        sum(price.usd_h for _, price in priced) if priced else None,
        priced[0][1] if priced else None,
        sum(spent) if spent else None,
    )


def _idle(
    machines: Sequence[Machine],
    prices: Prices,
    jobs_of_node: Mapping[str, Sequence[Job]],
    idle_jobs: frozenset[int],
) -> tuple[IdleLine, ...]:
    """Whole or part nodes that do nothing, those of the same cause and person together; dearest first."""
    alike: dict[tuple[str, str, str], list[tuple[str, int | None, float | None]]] = defaultdict(list)
    for machine in machines:
        node = machine.node
        if node is None or machine.instance.state != "running" or node.state.has("powering_up"):
            continue
        usd_h = price.usd_h if (price := prices.of(machine.instance)) else None
        jobs = jobs_of_node.get(node.name, ())
        for why, who, label, share, gpus in _shares(node, jobs, idle_jobs):
            alike[why, who, label].append((node.name, gpus, None if usd_h is None else usd_h * share))
    found = []
    for (why, who, label), parts in alike.items():
        counts = [count for _, count, _ in parts if count is not None]
        money = [usd_h for _, _, usd_h in parts if usd_h is not None]
        names = tuple(name for name, _, _ in parts)
        found.append(IdleLine(why, who, label, names, sum(counts) if counts else None, sum(money) if money else None))
    return tuple(sorted(found, key=lambda line: (-(line.usd_h or 0.0), -(line.gpus or 0), line.why)))


def _shares(
    node: Node, jobs: Sequence[Job], idle_jobs: frozenset[int]
) -> Iterable[tuple[str, str, str, float, int | None]]:
    """What of a node is for nothing: (why, who, job, share of its price, GPUs)."""
    total, used = node.gpus_total, node.gpus_used
    if not total:
        if not jobs and node.cpus_used == 0:
            yield *_nobody(node), 1.0, None
        return
    if used is not None and used < total:
        yield *_nobody(node), (total - used) / total, total - used
    holders = [job for job in jobs if job.job_id in idle_jobs]
    # Of several jobs on one node Slurm's list does not tell who has how many GPUs; then none is charged.
    if used and len(jobs) == 1 and holders:
        yield "allocated", holders[0].user, holders[0].label, used / total, used


def _nobody(node: Node) -> tuple[str, str, str]:
    if node.state.has("drain", "fail"):
        return "drained", drained_by(node), ""
    return ("free" if takes_work(node) else "down"), "", ""


def drained_by(node: Node) -> str:
    """The person behind a drain; "" when Slurm knows root alone, as whom anybody acts who uses sudo.

    The cockpit's own reasons begin with who said them.
    """
    if node.reason_by not in _ANYBODY:
        return node.reason_by
    named = _SAID_BY.match(node.reason)
    return named[1] if named and written_by_program(node.reason) is None else ""


def _sources(machines: Sequence[Machine], prices: Prices) -> tuple[Price, ...]:
    """Where the prices come from, each place and date once."""
    found: dict[tuple[str, str, str], Price] = {}
    for machine in machines:
        if (price := prices.of(machine.instance)) is not None:
            found.setdefault((price.source, price.where, price.as_of), price)
    return tuple(found.values())


def compute_usd_h(report: CostReport) -> float | None:
    """What stopping every compute node would save by the hour; None when no price is known."""
    lines = [line for line in report.lines if line.queue not in ("head", "login")]
    known = [line.usd_h for line in lines if line.usd_h is not None]
    return sum(known) if known or not lines else None


def until_monday_s(now: float) -> float:
    """Seconds until the next Monday, 09:00 on this machine's own clock; summer time is counted."""
    here = time.localtime(now)
    for days in range(8):
        then = time.mktime((here.tm_year, here.tm_mon, here.tm_mday + days, OPENING_H, 0, 0, 0, 0, -1))
        if time.localtime(then).tm_wday == MONDAY and then > now:
            return then - now
    raise AssertionError("every eight days have a Monday")


def idle_job_ids(problem_keys: Iterable[str]) -> frozenset[int]:
    """The jobs that the rules found to hold GPUs and use none, out of the keys of problems."""
    return frozenset(int(key[len(_IDLE_JOB) :]) for key in problem_keys if key.startswith(_IDLE_JOB))


class IdleMeter:
    """Adds up idle GPU-hours by person for as long as somebody looks; gaps in the looking are not counted."""

    def __init__(self, gap_s: float = 180.0) -> None:
        self._gap_s = gap_s
        self._last: float | None = None
        self._hours: dict[tuple[str, str], float] = defaultdict(float)
        self.watched_s = 0.0

    def add(self, report: CostReport, steady: float) -> None:
        """Count what is idle now for the time since the last look."""
        took_s = 0.0 if self._last is None else steady - self._last
        self._last = steady
        if not 0 < took_s <= self._gap_s:
            return
        self.watched_s += took_s
        for line in report.idle:
            if line.gpus:
                self._hours[line.why, line.who] += line.gpus * took_s / 3600

    def gpu_hours(self) -> Mapping[tuple[str, str], float]:
        """(why, who) -> idle GPU-hours since the cockpit began to look."""
        return dict(self._hours)
