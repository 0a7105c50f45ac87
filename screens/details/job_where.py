"""Where a job runs: its ranks, its nodes, on each its GPUs, on each its processes. Imports no Textual."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow, watch_freshness
from cockpit.formats.hostlist import fold
from cockpit.joins import nodes_of
from cockpit.models import Freshness, Health, Node, QueueRow
from cockpit.words import plural, span
from screens.details.gpu_rows import gpu_lines_of, process_words
from screens.details.job_place import JobPlace
from screens.details.parts import gpu_link, known_nodes, node_link, nodes_line
from screens.details.ranks import census_lines, ranges
from screens.lines import Line, Piece, facts, section
from themes import STATE_TOKENS, state_token

ODD_MAX = 16
FULL_GPUS = 512  # of a bigger job only nodes with something odd are listed GPU by GPU
NODES_MAX = 512


def rank_lines(place: JobPlace) -> list[Line]:
    """Which ranks were seen, and the GPUs that are not like the others."""
    alone = len(place.rows) == 1 and not place.odd  # its one process stands in its line
    lines = [] if alone else census_lines(place.census, place.silent)
    for one in place.odd[:ODD_MAX]:
        words = "; ".join(process_words(process) for process in place.processes[one.row.key])
        pieces: list[Piece] = ["  ", gpu_link(one.row), f"  {words}  " if words else "  "]
        lines.append([*pieces, (one.why, state_token(one.health))])
    if len(place.odd) > ODD_MAX:
        lines.append([(f"  and {len(place.odd) - ODD_MAX} more", "dim")])
    title = "ranks, and what is not like the others" if place.odd else "ranks"
    return [[], section(title), *lines] if lines else []


def where_lines(cluster: Cluster, row: QueueRow, place: JobPlace) -> list[Line]:
    """Node by node, those that deviate first; where it ran or is to run for a job that holds none."""
    if not place.names:
        return _elsewhere(cluster, row)
    strange = {one.row.node for one in place.odd} | {name for name in place.names if _deviates(place.nodes.get(name))}
    lines: list[Line] = [[], section(f"where: {plural(len(place.names), 'node')}")]
    lines += facts([("nodes", fold(place.names)), ("batch host", row.lead.batch_host)])
    for name in sorted(place.names, key=lambda name: name not in strange)[:NODES_MAX]:
        lines.append(_node_line(cluster, name, place))
        if len(place.rows) <= FULL_GPUS or name in strange:
            lines += _gpus(cluster, place.by_node.get(name, ()), place)
    if len(place.names) > NODES_MAX:
        lines.append([(f"  and {len(place.names) - NODES_MAX} more nodes, of which nothing odd is known", "dim")])
    return lines


def _gpus(cluster: Cluster, rows: Sequence[GpuRow], place: JobPlace) -> list[Line]:
    steady = cluster.clock.steady()
    return [line for gpu in rows for line in gpu_lines_of(gpu, place.processes[gpu.key], steady)]


def _elsewhere(cluster: Cluster, row: QueueRow) -> list[Line]:
    names = [name for job in row.jobs for name in nodes_of(job.hostlist or job.scheduled_hostlist)]
    if not names:
        return []
    word = "ran on" if row.lead.hostlist else "planned on"
    return [[], section("where"), *nodes_line(word, names, known_nodes(cluster.view))]


def _deviates(node: Node | None) -> bool:
    return node is None or node.health is not Health.OK


def _node_line(cluster: Cluster, name: str, place: JobPlace) -> Line:
    node = place.nodes.get(name)
    line: list[Piece] = ["  ", node_link(name, node)]
    if node is None:
        return [*line, ("  not among Slurm's nodes", STATE_TOKENS[Health.UNKNOWN])]
    line.append((f"  {node.word}", state_token(node.health)))
    if node.health is not Health.OK and node.reason:
        line.append(f"  {node.reason}")
    if ranks := place.census.by_node.get(name):
        line.append(f"  ranks {ranges(ranks)}" if len(ranks) > 1 else f"  rank {ranks[0]}")
    if not place.by_node.get(name):
        line.append((_without_rows(node, place), "dim"))
    return [*line, *_probe_words(cluster, name)]


def _without_rows(node: Node, place: JobPlace) -> str:
    if not node.gpus_total:
        return "  no GPUs; its processes stand in Slurm's record below"
    if node.name in place.read:
        return "  which of its GPUs are this job's stands in Slurm's record below"
    return "  its GPUs are not read"


def _probe_words(cluster: Cluster, name: str) -> list[Piece]:
    """Why what stands below a node may be old."""
    watch = cluster.view.fleet.nodes.get(name) if cluster.view.fleet else None
    steady = cluster.clock.steady()
    if watch is None or watch_freshness(watch, steady) is Freshness.LIVE:
        return []
    why = f": {watch.fault.why}" if watch.fault else ""
    if watch.seen_at is None:
        return [(f"  no readings{why}", "warning") if why else ("  connecting …", "dim")]
    return [(f"  readings {span(steady - watch.seen_at)} old{why}", "warning")]
