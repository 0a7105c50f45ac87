"""What the details of a line of the cost pane or the storage pane say. Imports no Textual."""

from __future__ import annotations

from cockpit.cluster import Cluster
from cockpit.cost_report import LIST_NOTE, usd
from cockpit.words import MISSING, mib, plural
from screens import cost_table, storage_table
from screens.details.parts import known_nodes, label, node_link
from screens.lines import Line, fact, facts
from themes import state_token

NODES_MAX = 200


def cost_lines(cluster: Cluster, key: str) -> list[Line]:
    """The whole line, each of its nodes as a link."""
    row = cost_table.find_row(cluster, key)
    if row is None:
        return [["this is over: nothing of it is paid for any more"]]
    lines = [fact("what", row.what, state_token(row.health))]
    if row.group != "note":
        each = f", {usd(row.each_usd_h)} each" if row.each_usd_h is not None else ""
        lines.append(fact("costs", f"{usd(row.usd_h)}/h{each}"))
    since = f"{usd(row.since_launch_usd)} at today's prices" if row.since_launch_usd is not None else ""
    lines += facts(
        [
            ("type", row.type),
            ("market", row.market),
            ("machines", plural(row.machines, "machine") if row.machines is not None else ""),
            ("GPUs", str(row.gpus) if row.gpus is not None else ""),
            ("who", row.who),
            ("job", row.job),
            ("since launch", since),
            ("about", row.about),
            ("prices", LIST_NOTE if row.group == "runs" and "list" in row.about else ""),
        ]
    )
    return [*lines, *_nodes(cluster, row.nodes)]


def storage_lines(cluster: Cluster, key: str) -> list[Line]:
    """The whole line, each of its nodes as a link."""
    row = storage_table.find_row(cluster, key)
    if row is None:
        return [["this is not seen any more"]]
    used = MISSING if row.used_pct is None else f"{row.used_pct:.1f} % of {mib(row.total_mib)}"
    lines = [
        fact("what", row.what),
        fact("state", row.state, state_token(row.health)),
        *facts(
            [
                ("kind", row.kind),
                ("used", used),
                ("free", mib(row.free_mib) if row.free_mib is not None else ""),
                ("inodes", f"{row.inodes_pct:.1f} % used" if row.inodes_pct is not None else ""),
                ("about", row.about),
            ]
        ),
    ]
    return [*lines, *_nodes(cluster, row.nodes)]


def _nodes(cluster: Cluster, names: tuple[str, ...]) -> list[Line]:
    known = known_nodes(cluster.view)
    lines: list[Line] = [
        [label("nodes" if at == 0 else ""), node_link(name, known.get(name))]
        for at, name in enumerate(names[:NODES_MAX])
    ]
    return lines + ([[f"  and {len(names) - NODES_MAX} more"]] if len(names) > NODES_MAX else [])
