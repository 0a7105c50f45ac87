"""Whether EFA is really used: what nodes and jobs send and receive over it now. Imports no Textual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cockpit.cluster import Cluster
from cockpit.gpu_models import NodeReading
from cockpit.sources.efa_traffic import EfaTraffic
from cockpit.words import byte_rate, plural, span
from screens.details.parts import find_node, job_link, known_nodes, node_link
from screens.lines import Line, Piece, fact, section

OLD_S = 60.0  # a probe reads the counters every 15 s
NODES_MAX = 200


def _reading(cluster: Cluster, node: str) -> NodeReading | None:
    watch = cluster.view.fleet.nodes.get(node) if cluster.view.fleet else None
    return watch.reading if watch else None


def node_traffic_lines(cluster: Cluster, node: str) -> list[Line]:
    """One line for the details of a node; none where no EFA device is known."""
    reading = _reading(cluster, node)
    if reading is None or not reading.efa:
        return []
    return [fact("EFA now", *_told(cluster.streams.traffic.of(node), reading))]


def _told(traffic: EfaTraffic | None, reading: NodeReading) -> tuple[str, str]:
    """What moved, and the style of it."""
    if traffic is None:
        return f"{plural(len(reading.efa), 'device')}; what moves is known after two readings, 15 s apart", "dim"
    age_s = reading.taken_at - traffic.at
    old = f", read {span(age_s)} ago" if age_s > OLD_S else ""
    if not traffic.moving:
        quiet = span(traffic.at - (traffic.quiet_since or traffic.at))
        return f"nothing moves over {plural(traffic.devices, 'device')}, for {quiet} at least{old}", ""
    each = byte_rate(max(traffic.sent_b_s, traffic.received_b_s) / traffic.moving)
    rates = f"sends {byte_rate(traffic.sent_b_s)}, receives {byte_rate(traffic.received_b_s)}"
    over = f"over {traffic.moving} of {plural(traffic.devices, 'device')}, {each} a device"
    return f"{rates} {over}, in the last {span(traffic.seconds)}{old}", ""


def job_traffic_lines(cluster: Cluster, nodes: Sequence[str]) -> list[Line]:
    """One line for the details of a job on several nodes: on how many of them anything moves over EFA."""
    found = [traffic for node in nodes if (traffic := cluster.streams.traffic.of(node)) is not None]
    if len(nodes) < 2 or not found:
        return []
    moving = [traffic for traffic in found if traffic.moving]
    unknown = f"; of {plural(len(nodes) - len(found), 'node')} it is not known" if len(found) < len(nodes) else ""
    if not moving:
        words = f"nothing moves on {len(found)} of its {len(nodes)} nodes{unknown}"
        return [fact("EFA now", f"{words}: it waits, computes alone, or does not use EFA", "warning")]
    rates = sorted(max(traffic.sent_b_s, traffic.received_b_s) for traffic in moving)
    low, high = byte_rate(rates[0]), byte_rate(rates[-1])
    each = low if low == high else f"{low} to {high}"
    style = "warning" if len(moving) < len(found) else ""
    return [fact("EFA now", f"{len(moving)} of its {len(nodes)} nodes send and receive, {each} a node{unknown}", style)]


def traffic_lines(cluster: Cluster, name: str) -> list[Line]:
    """Of every node, or the one named: what moves over EFA now, and the jobs that run there."""
    names = [name] if name else [node.name for node in cluster.view.nodes or ()]
    known = [node for node in names if (reading := _reading(cluster, node)) is not None and reading.efa]
    found = [traffic for node in known if (traffic := cluster.streams.traffic.of(node)) is not None]
    found.sort(key=lambda traffic: -(traffic.sent_b_s + traffic.received_b_s))
    if not known:
        where = name or "any node"
        return [[f"no EFA device is known of {where}"], [("  E asks the nodes themselves", "dim")]]
    moving = sum(1 for traffic in found if traffic.moving)
    lines: list[Line] = [
        [(f"EFA is used on {moving} of {plural(len(known), 'node')} now", "bright")],
        [
            (
                "  By the cards' own counters, two readings subtracted: TCP and what stays inside a node are no part.",
                "dim",
            )
        ],
        [("  A job on one node uses no EFA.", "dim")],
        [],
        section("nodes, most traffic first"),
        *_rows(cluster, found[:NODES_MAX]),
    ]
    missing = [node for node in known if all(traffic.node != node for traffic in found)]
    if missing:
        lines.append([(f"  of {plural(len(missing), 'node')} more in a moment: it takes two readings", "dim")])
    return lines


def _rows(cluster: Cluster, found: Iterable[EfaTraffic]) -> Iterable[Line]:
    nodes, width = known_nodes(cluster.view), max((len(node.name) for node in cluster.view.nodes or ()), default=8)
    for traffic in found:
        reading = _reading(cluster, traffic.node)
        if reading is None:
            continue
        jobs: list[Piece] = []
        for job in cluster.view.jobs_of_node.get(traffic.node, ())[:4]:
            jobs += ["  ", job_link(job)]
        words, style = _told(traffic, reading)
        yield [
            "  ",
            node_link(traffic.node, nodes.get(traffic.node) or find_node(cluster.view, traffic.node)),
            " " * (width - len(traffic.node) + 2),
            (words, style or ("" if traffic.moving else "dim")),
            *jobs,
        ]
