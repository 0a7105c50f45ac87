"""What is read only when details are open: Slurm's own records, a node's history, a job's processes.

These wait for the head or for nodes, so they run on a thread of whoever shows them; each raises FaultError.
Imports no Textual.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from cockpit.cluster import Cluster
from cockpit.formats.hostlist import fold
from cockpit.formats.job_states import STARTED
from cockpit.formats.listpids import JobPid
from cockpit.formats.scontrol_show import JobDetail
from cockpit.formats.times import instant
from cockpit.joins import find_row, nodes_of
from cockpit.models import FaultError, Job, Node
from cockpit.sources.base import unexpected
from cockpit.sources.on_demand import HISTORY_DAYS
from cockpit.words import moment, plural, span
from screens.details.gpu_rows import rank_of
from screens.details.job_place import job_place
from screens.details.parts import find_gpu, gpu_link, known_nodes, label, node_link
from screens.details.ranks import ranges
from screens.lines import Line, Piece, facts, section

ASKED_MAX = 64  # nodes asked for a job's processes
AT_ONCE = 8
ALL_S = 20.0  # nodes that were not asked by then are not asked
HISTORY_MAX = 20
EPOCH_DIGITS = 10


def record_lines(pairs: Iterable[tuple[str, str]], now: float) -> list[Line]:
    """A record of Slurm's, every key as it stands there; times in epoch seconds are told as times, too."""
    lines: list[Line] = [[(f"  {key}=", "dim"), value, (_when(key, value, now), "dim")] for key, value in pairs]
    return [[], section("Slurm's record"), *lines]


def _when(key: str, value: str, now: float) -> str:
    at = instant(value) if key.endswith(("Time", "LastSchedEval", "Deadline")) and len(value) == EPOCH_DIGITS else None
    return "" if at is None else f"  {moment(at, now)}"


def read_node(cluster: Cluster, name: str) -> list[Line]:
    """The node's history, as far as accounting keeps one, and Slurm's record."""
    record = cluster.node_detail(name)
    return [*_history(cluster, name), *record_lines(record.pairs, cluster.head_now())]


def look_at_gpu(cluster: Cluster, key: str) -> list[Line]:
    """Have its node asked directly where a Prometheus stands in for probes; what that brings is in the details."""
    if row := find_gpu(cluster, key):
        cluster.look_closely(row.node)
    return []


def _history(cluster: Cluster, name: str) -> list[Line]:
    """Who took it out of service when; what keeps that from being told is no failure of the record."""
    title = section(f"out of service in the last {HISTORY_DAYS} days")
    site = cluster.view.site
    if site is not None and site.accounting is False:
        return [title, [("  not kept: this cluster has no accounting database", "dim")]]
    try:
        outages = cluster.node_history(name)
    except FaultError as error:
        return [title, [(f"  {error.fault.line()}", "dim")]]
    now = cluster.head_now()
    lines: list[Line] = []
    for outage in outages[:HISTORY_MAX]:
        lasted = "until now" if outage.ended_at is None else f"for {span(outage.ended_at - (outage.began_at or 0.0))}"
        when = f"{moment(outage.began_at, now)} {lasted}"
        lines.append([(f"  {when:<24} ", "dim"), f"{outage.state}  {outage.user}  {outage.reason}"])
    return [title, *(lines or [[("  never", "dim")]])]


def read_job(cluster: Cluster, key: str) -> list[Line]:
    """Where its output goes, which GPUs are its, the processes no probe has told, and Slurm's record."""
    row = find_row(cluster.view.queue, key)
    if row is None:
        return []
    record = cluster.job_detail(row.lead)
    return [
        *_files(row.lead, record, array=len(row.jobs) > 1),
        *_indices(cluster, record),
        *(_pids(cluster, row.lead, key) if len(row.jobs) == 1 else []),
        *record_lines(record.pairs, cluster.head_now()),
    ]


def _files(job: Job, record: JobDetail, *, array: bool) -> list[Line]:
    """A pending array's paths hold Slurm's number for "no task yet"."""
    told = facts(
        [
            ("output", record.std_out.replace("4294967294", "<task>")),
            ("errors", "" if record.std_err == record.std_out else record.std_err.replace("4294967294", "<task>")),
            ("directory", record.work_dir),
            ("command", record.command),
        ]
    )
    of = f" of {job.label}" if array else ""
    return [section(f"files{of}"), *told] if told else []


def _indices(cluster: Cluster, record: JobDetail) -> list[Line]:
    """Which GPUs Slurm gave it on each node; nodes with the same ones are one line."""
    alike: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for node, indices in record.gpu_indices.items():
        alike[indices].append(node)
    lines: list[Line] = []
    for indices, names in alike.items():
        where: Piece = node_link(names[0]) if len(names) == 1 else fold(names)
        links = _gpu_links(cluster, names[0], indices) if len(names) == 1 else []
        on: list[Piece] = [piece for link in links for piece in ("  ", link)]
        lines.append(["  ", where, *(on or [f"  GPU {ranges(indices)}"])])
    return [[], section("GPUs by Slurm's record"), *lines] if lines else []


def _gpu_links(cluster: Cluster, node: str, indices: tuple[int, ...]) -> list[Piece]:
    """Slurm's index is the place in gres.conf, normally the minor number of /dev/nvidiaN."""
    found: list[Piece] = []
    for row in cluster.view.gpu_rows:
        gpu = row.sample.gpu if row.sample else None
        place = None if gpu is None else gpu.minor if gpu.minor is not None else gpu.index
        if row.node == node and place in indices:
            found.append(gpu_link(row, f"GPU {row.slot}"))
    return found


def _pids(cluster: Cluster, job: Job, key: str) -> list[Line]:
    """Processes from Slurm on the nodes of which no probe tells any with a rank."""
    names = _unseen(cluster, job, key)
    if not names or job.state not in STARTED:
        return []
    nodes = known_nodes(cluster.view)
    asked = [nodes[name] for name in names[:ASKED_MAX] if name in nodes]
    until = cluster.clock.steady() + ALL_S
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(lambda node: _ask(cluster, node, job, until), asked))
    lines: list[Line] = []
    failed: dict[str, list[str]] = defaultdict(list)
    for node, told in zip(asked, answers, strict=True):
        if isinstance(told, str):
            failed[told].append(node.name)
        else:
            lines += _node_pids(node, told)
    lines += [[label("not told"), f"{fold(which)}: {why}"] for why, which in failed.items()]
    if len(names) > ASKED_MAX:
        lines.append([(f"  {plural(len(names) - ASKED_MAX, 'node')} more {ASKED_MAX} were not asked", "dim")])
    return [[], section("processes by Slurm on its nodes"), *lines]


def _unseen(cluster: Cluster, job: Job, key: str) -> list[str]:
    row = find_row(cluster.view.queue, key)
    if row is None:
        return list(nodes_of(job.hostlist))
    place = job_place(cluster, row)
    told = {gpu.node for gpu in place.rows if any(rank_of(p) is not None for p in place.processes[gpu.key])}
    return [name for name in place.names if name not in told]


def _ask(cluster: Cluster, node: Node, job: Job, until: float) -> tuple[JobPid, ...] | str:
    """The processes, or why there are none: one node that fails does not hide the others."""
    if cluster.clock.steady() > until:
        return f"not asked, since the others took {ALL_S:.0f} s"
    try:
        return cluster.job_pids(node, job)
    except FaultError as error:
        return f"{error.fault.why}{f' — {error.fault.next_step}' if error.fault.next_step else ''}"
    except Exception as error:  # told where it was asked for, whatever it is
        return unexpected(f"asking {node.name}", error).why


def _node_pids(node: Node, told: tuple[JobPid, ...]) -> list[Line]:
    lines: list[Line] = [["  ", node_link(node.name, node), ("" if told else "  no process of it", "dim")]]
    ranks = sorted((one for one in told if one.rank is not None), key=lambda one: (one.step, one.rank or 0))
    lines += [[f"    rank {one.rank}  pid {one.pid}", (f"  step {one.step}", "dim")] for one in ranks]
    rest: dict[str, list[str]] = defaultdict(list)
    for one in told:
        if one.rank is None:
            rest[one.step].append(str(one.pid))
    return [*lines, *[[(f"    step {step}: pid {', '.join(pids)}", "dim")] for step, pids in rest.items()]]


def read_queue(cluster: Cluster, name: str) -> list[Line]:
    """Slurm's record of the queue."""
    return record_lines(cluster.partition_detail(name), cluster.head_now()) if name else []
