"""The cost of one cluster, as a report, as JSON and as lines."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from cockpit.catalog.instances import known_instance_types
from cockpit.catalog.prices import priced_types
from cockpit.cluster import Cluster
from cockpit.cost import CostReport, Machine, cost, idle_job_ids, machines_if_up, machines_of_ec2, machines_of_slurm
from cockpit.formats.hostlist import fold
from cockpit.price_models import Price
from cockpit.report import envelope
from cockpit.sources.prices import bundled
from cockpit.text import printable
from cockpit.words import MISSING, plural, shows_utc, span

LIST_NOTE = "list prices, not what the account pays (savings plans, private discounts)"


def cost_of(cluster: Cluster, without: Collection[str] = ()) -> CostReport | None:
    """What it costs by all that is known now, `without` some instances; None while neither EC2 nor Slurm was read."""
    view, found = cluster.view, _machines(cluster)
    if found is None:
        return None
    basis, machines = found[0], [one for one in found[1] if one.instance.id not in without]
    prices = view.prices or bundled(machine.instance for machine in machines)
    idle_jobs = None if view.fleet is None else idle_job_ids(problem.key for problem in view.problems)
    return cost(basis, machines, prices, view.jobs_of_node, idle_jobs, cluster.clock.now())


def _machines(cluster: Cluster) -> tuple[str, tuple[Machine, ...]] | None:
    """What costs money, and by whom that is told: ec2 or slurm."""
    view = cluster.view
    if view.aws is not None and view.aws.instances.data is not None:
        return "ec2", machines_of_ec2(view.aws.instances.data, view.joined, view.nodes or ())
    if view.nodes is not None:
        return "slurm", machines_of_slurm(view.nodes, (*known_instance_types(), *priced_types()))
    return None


def hour_of(cluster: Cluster, names: Collection[str]) -> float | None:
    """USD that these nodes cost by the hour together; None where the price of one of them is not known."""
    _, every = _machines(cluster) or ("", ())
    return _hour(cluster, [one for one in every if one.node and one.node.name in names], len(names))


def hour_if_up(cluster: Cluster, names: Collection[str]) -> float | None:
    """The same for nodes that are off, by the instance type among their features."""
    nodes = [node for node in cluster.view.nodes or () if node.name in names]
    machines = machines_if_up(nodes, (*known_instance_types(), *priced_types()))
    return _hour(cluster, machines, len(names))


def _hour(cluster: Cluster, machines: Sequence[Machine], count: int) -> float | None:
    asked = cluster.view.prices
    told = [(asked.of(one.instance) if asked else None) or bundled([one.instance]).of(one.instance) for one in machines]
    known = [price.usd_h for price in told if price is not None]
    return sum(known) if len(known) == count else None


def record(cluster: Cluster) -> dict[str, Any]:
    """The JSON of `cockpit cost`; `cost` is null when nothing could be read."""
    report = cost_of(cluster)
    if report is None:
        return envelope(cluster) | {"cost": None}
    told = asdict(report)
    for line in told["lines"]:
        line["market"] = line["market"].value if line["market"] else None
    faults = cluster.view.prices.faults if cluster.view.prices else ()
    told["prices_not_asked"] = [fault.line() for fault in faults]
    return envelope(cluster) | {"cost": told}


def lines(cluster: Cluster) -> list[str]:
    """The same for a person."""
    told = [f"! {printable(state.error.line())}" for state in cluster.store.states() if state.error]
    report = cost_of(cluster)
    if report is None:
        return told
    told.append(f"now     {usd(report.usd_h)}/h{_not_counted(report)}")
    monday = f"Monday 09:00{' local' * shows_utc()}"
    told.append(
        f"Monday  {usd(report.until_monday_usd)} until {monday}, in {span(report.until_monday_s)}, at this rate"
    )
    if report.since_launch_usd is not None:
        told.append(f"spent   {usd(report.since_launch_usd)} since these instances were launched, at today's prices")
    told.append(f"idle    {usd(report.idle_usd_h)}/h, {plural(report.idle_gpus, 'GPU')}" + _unseen(report))
    for line in report.lines:
        market = line.market.value if line.market else "as if on demand"
        each = f" ({usd(line.price.usd_h)} each)" if line.price and line.count > 1 else ""
        told.append(f"  {line.queue or MISSING:<12} {line.count:>4} × {line.type or 'unknown type':<18} "
                    f"{usd(line.usd_h):>10}/h{each} {market}")  # fmt: skip
    for idle in report.idle:
        whose = " ".join(part for part in (idle.who, f"job {idle.job}" if idle.job else "") if part) or _UNNAMED.get(
            idle.why, "nobody"
        )
        gpus = plural(idle.gpus, "GPU") if idle.gpus is not None else "no GPUs"
        told.append(f"  {idle.why:<12} {gpus:>9} {usd(idle.usd_h):>10}/h {printable(whose)}: {fold(idle.nodes)}")
    return told + [f"prices  {price_words(price)}" for price in report.prices] + _notes(report)


_UNNAMED = {"drained": "as root, by nobody named"}


def usd(amount: float | None) -> str:
    """Money in at most three significant decimals; `–` when it is not known."""
    if amount is None:
        return MISSING
    return f"${amount:,.0f}" if amount >= 1000 else f"${amount:,.2f}"


def price_words(price: Price) -> str:
    """Since when a price holds and where: `bundled list price of 2026-09-24, us-east-1`; the date before the rest."""
    return f"{price.source} of {price.as_of}, {price.where}"


def _not_counted(report: CostReport) -> str:
    parts = [f"{count} × {name}" for name, count in report.unpriced.items()]
    told = f"; not counted, price unknown: {', '.join(parts)}" if parts else ""
    return told + (f"; {report.paid_ahead} in capacity blocks, paid in advance" if report.paid_ahead else "")


def _unseen(report: CostReport) -> str:
    return "" if report.sees_idle_jobs else " (jobs that hold GPUs and use none are not watched here)"


def _notes(report: CostReport) -> list[str]:
    told = [f"        {LIST_NOTE}"] if any("list" in price.source for price in report.prices) else []
    if report.basis == "slurm":
        told.append("        by what Slurm tells of its nodes: EC2 was not asked, head and login nodes are not in it")
    return told
