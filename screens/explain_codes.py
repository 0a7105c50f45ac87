"""Xids, SXids, clock reasons and pending reasons explained. Imports no Textual."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.catalog.gpu_codes import throttle_reasons
from cockpit.catalog.reader import load
from cockpit.catalog.severity import Remedy, Severity
from cockpit.catalog.xids import SxidFact, XidFact, sxid, xid
from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow
from cockpit.formats.kernel_log import KernelKind, health_of
from cockpit.formats.reasons import explain_reason
from cockpit.gpu_models import known
from cockpit.kinds.notes import kind_note, remedy_note
from cockpit.words import moment, plural
from screens.details.commands import commands, gpu_words, job_words
from screens.details.parts import command, gpu_link, jobs_listed, label, listed, node_link
from screens.details.queue import NO_REASON, waiting_by_reason
from screens.lines import Line, Piece, fact, facts, section
from themes import state_token

SEEN_MAX = 20
_KERNEL_LOG = ("journalctl", "_TRANSPORT=kernel", "-o", "short-iso-precise", "--since", "-2h", "--no-pager")
_SEVERITY = {
    Severity.INFO: "nothing to do",
    Severity.WARN: "look at it",
    Severity.DRAIN: "let the jobs end, then take the node out",
    Severity.CRITICAL: "a job is already harmed: act now",
    Severity.REPLACE: "the instance cannot be mended",
}
_REMEDY = {
    Remedy.LOOK: "look at it",
    Remedy.RESTART_APP: "start the job again",
    Remedy.RESET: "reset the GPU",
    Remedy.RESET_LATER: "reset the GPU when its job has ended",
    Remedy.REBOOT: "reboot the node",
    Remedy.REPLACE: "replace the instance",
    Remedy.BY_TEXT: "as the line itself says",
}


def xid_lines(cluster: Cluster, key: str) -> list[Line]:
    """What an Xid is, how bad, what it means here, what the public sources say, and where it was seen."""
    if not key.isdecimal() or len(key) > 6:
        return [[f"{key} is no Xid"]]
    told = xid(int(key))
    lines: list[Line] = [[(f"Xid {told.code}: {told.title}", "bright")], [], *_fault(told)]
    if told.app_fault:
        lines += facts([("whose", "normally the job's own fault: never a reason to drain the node by itself")])
    if told.repeats is not None:
        lines += facts([("repeated", f"on one GPU under different jobs: {_SEVERITY[told.repeats]}")])
    if told.folds:
        lines += facts([("comes with", "another fault: look for the one before it")])
    if told.driver_hangs:
        lines += facts([("then", "the driver often hangs next: programs that ask it may hang, too")])
    lines += facts([("here", remedy_note(cluster.kind, told.remedy))])
    lines += _sources("xids", told.told)
    return lines + _seen(cluster, KernelKind.XID, told.code)


def sxid_lines(cluster: Cluster, key: str) -> list[Line]:
    """The same for an error code of an NVSwitch."""
    if not key.isdecimal() or len(key) > 6:
        return [[f"{key} is no SXid"]]
    told = sxid(int(key))
    name = f" ({told.name})" if told.name else ""
    lines: list[Line] = [[(f"SXid {told.code}{name}: {told.title}", "bright")], [], *_fault(told)]
    lines += facts([("where", "in an NVSwitch, which serves every GPU of the node")])
    if told.growing is not None:
        lines += facts([("growing", _SEVERITY[told.growing])])
    lines += facts([("here", remedy_note(cluster.kind, told.remedy))])
    lines += _sources("sxids", told.told)
    return lines + _seen(cluster, KernelKind.SXID, told.code)


def _fault(told: XidFact | SxidFact) -> list[Line]:
    again = f"after a reset or reboot: {_SEVERITY[told.again]}" if told.again is not None else ""
    return [
        fact("severity", _SEVERITY[told.severity], state_token(health_of(told.severity))),
        *facts([("meaning", told.meaning), ("remedy", _REMEDY[told.remedy]), ("next", told.next_step)]),
        *facts([("comes back", again)]),
    ]


def _sources(catalogue: str, told: tuple[tuple[str, str], ...]) -> list[Line]:
    """What each public source says in its own words: they disagree, so all are shown."""
    names: Mapping[str, str] = load(catalogue)["sources"]
    if not told:
        return []
    lines: list[Line] = [[], section(f"what public sources say (as of {names['as_of']})")]
    for source, words in told:
        lines += [[label(source), words, (f"  {names.get(source, '')}", "dim")]]
    return lines


def _seen(cluster: Cluster, kind: KernelKind, code: int) -> list[Line]:
    """Where it was told in the last two hours, the newest first."""
    found: list[tuple[float, Line]] = []
    rows = {(row.node, row.sample.gpu.pci): row for row in cluster.view.gpu_rows if row.sample}
    nodes: dict[str, None] = {}
    now = cluster.head_now()
    for name, watch in (cluster.view.fleet.nodes if cluster.view.fleet else {}).items():
        for event in watch.events.events:
            if event.code == code and (event.kind is KernelKind.SXID) is (kind is KernelKind.SXID):
                nodes[name] = None
                row = rows.get((name, event.bus))
                where: Piece = gpu_link(row) if row else node_link(name)
                line: Line = [(f"  {moment(event.at, now):<12} ", "dim"), where, f"  {event.text}"]
                found.append((event.at or 0.0, line))
    title = section("seen here in the last two hours")
    if not found:
        return [[], title, [("  not that any probe can tell", "dim")]]
    newest = [line for _, line in sorted(found, key=lambda pair: -pair[0])]
    more: list[Line] = [[(f"  and {len(found) - SEEN_MAX} more", "dim")]] if len(found) > SEEN_MAX else []
    return [[], title, *newest[:SEEN_MAX], *more, [], command(next(iter(nodes)), *_KERNEL_LOG)]


def throttle_lines(cluster: Cluster, key: str) -> list[Line]:
    """What holds a GPU's clocks down; the key is the bit of NVML's mask in hex."""
    try:
        [told] = throttle_reasons(int(key, 16))
    except ValueError:
        return [[f"{key} is no clock reason"]]
    lasting = "it counts when it lasts; a moment of it under full load is normal" if told.lasting else ""
    lines: list[Line] = [
        [(f"clocks held down: {told.word}", "bright")],
        [],
        fact("severity", _SEVERITY[told.severity], state_token(health_of(told.severity))),
        *facts([("meaning", told.meaning), ("when", lasting)]),
        *facts([("next", _throttle_step(told.severity)), ("here", _throttle_here(cluster, told.severity))]),
    ]
    held = [row for row in cluster.view.gpu_rows if _is_held(row, told.bit)]
    lines += [[], section("GPUs it holds now"), *(listed("", [gpu_link(row) for row in held]) or [[("  none", "dim")]])]
    if held:
        lines += commands([("node", ("nvidia-smi", "-q", "-i", "{gpu}"))], gpu_words(held[0]))
    return lines


def _throttle_step(severity: Severity) -> str:
    if severity is Severity.INFO:
        return "nothing"
    return "compare clocks, temperature and power with the node's other GPUs; when it lasts, drain the node"


def _throttle_here(cluster: Cluster, severity: Severity) -> str:
    return "" if severity is Severity.INFO else kind_note(cluster.kind, "replace")


def _is_held(row: GpuRow, bit: int) -> bool:
    mask = known(row.sample.throttle_mask) if row.sample else None
    return mask is not None and bool(int(mask) & bit)


def reason_lines(cluster: Cluster, key: str) -> list[Line]:
    """What a pending reason means, what to do, and who waits with it."""
    lines: list[Line] = []
    for told in explain_reason(key) or ((NO_REASON,) if key == NO_REASON.code else ()):
        lines += [[(f"{told.code}: {told.title}", "bright")], []]
        lines += facts([("meaning", told.meaning), ("next", told.next_step), ("nodes", told.hostlist)])
        if told.stuck:
            lines.append(fact("for ever", "it does not go away by itself", "warning"))
        lines += facts([("here", kind_note(cluster.kind, "queue_closed") if told.code.startswith("Partition") else "")])
        jobs = cluster.view.queue.jobs if cluster.view.queue else ()
        held = next((found for one, found in waiting_by_reason(jobs) if one.code == told.code), [])
        tasks = plural(sum(job.task_count for job in held), "job")
        lines += [[], section(f"who waits with it: {tasks}"), *jobs_listed("by priority", held)]
        lines += commands([("head", argv) for argv in told.show], job_words(held[0])) if held else []
    return lines or [[f"{key} is no reason"]]
