"""What the details of a GPU say. Imports no Textual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow, driver_silent, gpu_age_s, gpu_freshness
from cockpit.formats.kernel_log import KernelEvent
from cockpit.gpu_models import GpuProcess, known
from cockpit.gpu_rules import Finding
from cockpit.models import Freshness, Problem
from cockpit.words import MISSING, mib, moment, plural, span
from screens.details.gpu_readings import READINGS, history_lines, identity_lines, reading_lines
from screens.details.gpu_rows import odd_ones, process_words, processes_of
from screens.details.node_machine import event_pieces
from screens.details.parts import concerning, find_node, gpu_link, job_link, label, node_link, problem_section
from screens.gpu_table import driver_words, silent_words
from screens.lines import Line, Link, Piece, Subject, fact, facts, section
from screens.unread import unread_lines
from themes import state_token

ODD_MAX = 6
_COMPARED = (READINGS[0], READINGS[2], READINGS[4], READINGS[6])
_USE = {True: "allocated by Slurm", False: "free", None: "Slurm does not tell whether it is allocated"}


def gpu_lines(cluster: Cluster, row: GpuRow) -> list[Line]:
    """What is wrong with it, who uses it, its past and its peers, every reading."""
    steady = cluster.clock.steady()
    node = find_node(cluster.view, row.node)
    word: list[Piece] = [(f"  {node.word}", state_token(node.health))] if node else []
    lines: list[Line] = [
        fact("state", _state(row, steady), state_token(row.health)),
        [label("node"), node_link(row.node, node), *word],
    ]
    for finding in row.findings:
        lines += [[], [label("wrong"), *finding_pieces(finding)]]
        lines += facts([("evidence", finding.evidence), ("next", finding.next_step)])
    lines += problem_section(_problems(cluster, row), cluster.clock.now())
    lines += [[], section("who has it"), *_users(row)]
    unread = unread_lines(row.watch.reading if row.watch else None)
    if row.sample is None:
        return [*lines, *unread]
    lines += [[], section("the last ten minutes"), *history_lines(cluster, row, row.sample)]
    live = gpu_freshness(row, steady) in (Freshness.LIVE, Freshness.NEVER)
    readings = "readings" if live else f"readings of {span(gpu_age_s(row, steady))} ago"
    lines += [*_peers(cluster, row), [], section(readings), *reading_lines(row.sample)]
    return [*lines, [], section("what it is"), *identity_lines(row.sample), *_events(cluster, row), *unread]


def finding_pieces(finding: Finding) -> list[Piece]:
    """Its title; an Xid and a clock reason lead to their explanation."""
    kind, colon, code = finding.code.partition(":")
    token = state_token(finding.health)
    if colon and kind in ("xid", "throttle"):
        return [Link(finding.title, token, Subject(kind, code))]
    return [(finding.title, token)]


def _problems(cluster: Cluster, row: GpuRow) -> list[Problem]:
    """Those that name it, or its node and no GPU; its own findings stand above already."""
    own = {f"gpu:{row.node}:{finding.code}" for finding in row.findings}
    named = [one for one in cluster.view.problems if one.key not in own]
    mine = concerning(named, gpus={row.key}, nodes={row.node})
    return [one for one in named if one in mine or ("gpu", row.key) in one.about]


def _state(row: GpuRow, steady: float) -> str:
    watch = row.watch
    if watch is None:
        return "its node is not watched"
    if watch.seen_at is None:
        return f"not read: {watch.fault.line()}" if watch.fault else "connecting …"
    why = f" · {watch.fault.why}" if watch.fault else ""
    wrong = row.findings[0].title if row.findings else ""
    if row.sample is None or row.sample.taken_at is None:
        unread = "the driver does not show it" if row.sample is None else "not read yet"
        return f"{wrong or unread} · {_USE[row.allocated]}{why}"
    freshness = gpu_freshness(row, steady)
    age = "" if freshness is Freshness.LIVE else f"{freshness.value}, read {span(gpu_age_s(row, steady))} ago · "
    driver = silent_words(row, steady) if driver_silent(row) else driver_words(row)
    said = " · ".join(part for part in (driver, wrong) if part)
    return f"{age}{said or 'well'} · {_USE[row.allocated]}{why}"


def _users(row: GpuRow) -> list[Line]:
    lines: list[Line] = []
    if row.job is not None:
        lines.append(["  job ", job_link(row.job), f"  {row.job.user}  {row.job.name}"])
    lines += [_process(process, row) for process in row.processes]
    return lines or [[("  nobody that is known", "dim")]]


def _process(process: GpuProcess, row: GpuRow) -> Line:
    used = known(process.mem_mib)
    line: list[Piece] = [f"  {process_words(process)}  memory {MISSING if used is None else mib(used)}"]
    if process.job_id is not None and (row.job is None or row.job.job_id != process.job_id):
        line += ["  of job ", Link(str(process.job_id), "", Subject("job", str(process.job_id)))]
    return line


def _peers(cluster: Cluster, row: GpuRow) -> list[Line]:
    """The other GPUs of the job: where this one stands among them."""
    steady = cluster.clock.steady()
    if row.job is None or gpu_freshness(row, steady) is not Freshness.LIVE:
        return []  # its own numbers are of another time than theirs
    peers = peers_of(row, cluster.view.gpu_rows, steady)
    if not peers:
        return []
    lines: list[Line] = [[], section(f"against its {plural(len(peers), 'peer')} of job {row.job.label}")]
    for title, name, form in _COMPARED:
        values = [value for r in peers if (value := known(getattr(r.sample, name))) is not None]
        mine = known(getattr(row.sample, name))
        if values and mine is not None:
            spread = f"median {form.format(median(values))}, {form.format(min(values))} to {form.format(max(values))}"
            lines.append([*fact(title, form.format(mine)), (f"  {spread}", "dim")])
    return [*lines, *_odd_peers(cluster, row, peers)]


def _odd_peers(cluster: Cluster, row: GpuRow, peers: Sequence[GpuRow]) -> list[Line]:
    """Those of them that differ from the rest, the worst first."""
    ids = {row.job.job_id} if row.job else set()
    processes = {one.key: processes_of(one, ids) for one in (row, *peers)}
    odd = odd_ones([row, *peers], processes, cluster.clock.steady(), cluster.rules.straggler_pct)
    others = [one for one in odd if one.row.key != row.key]
    return [
        [label("differs" if not at else ""), gpu_link(one.row), "  ", (one.why, state_token(one.health))]
        for at, one in enumerate(others[:ODD_MAX])
    ]


def peers_of(row: GpuRow, rows: Iterable[GpuRow], steady: float) -> list[GpuRow]:
    """The other GPUs of its job whose numbers are of now."""
    return [
        other
        for other in rows
        if row.job is not None
        and other.job is not None
        and other.job.job_id == row.job.job_id
        and other.key != row.key
        and other.sample is not None
        and other.sample.lost is None
        and gpu_freshness(other, steady) is Freshness.LIVE
    ]


def _events(cluster: Cluster, row: GpuRow) -> list[Line]:
    if row.watch is None or row.sample is None:
        return []
    events = row.watch.events.of_gpu(row.sample.gpu.pci)
    if not events:
        return []
    boot = row.watch.reading.boot_id if row.watch.reading else ""
    now = cluster.head_now()

    def line(event: KernelEvent) -> Line:
        return [(f"  {moment(event.at, now):<12} ", "dim"), *event_pieces(event, {}, boot)]

    return [[], section("events of the last two hours"), *map(line, reversed(events[-20:]))]
