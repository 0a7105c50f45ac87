"""What was gathered -> evidence. Pure: the same for a live job and for a bundle."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

from cockpit.diagnosis import census
from cockpit.diagnosis.evidence import Evidence, JobFacts, LogEvidence, NodeEvidence, Rank, StepFacts
from cockpit.diagnosis.flight import compare
from cockpit.diagnosis.gathered import Gathered, GatheredLog, GatheredNode
from cockpit.diagnosis.log_cause import explain
from cockpit.diagnosis.naming import ranks_word
from cockpit.diagnosis.progress import progress_of
from cockpit.formats.errors import FormatError
from cockpit.formats.flight_recorder import FlightRecord, parse_record
from cockpit.formats.hostlist import expand, fold
from cockpit.formats.log_digest import digest_of
from cockpit.formats.log_lines import shown_line
from cockpit.formats.ras import RasReport, parse_ras
from cockpit.formats.scontrol_show import JobDetail, parse_job_details
from cockpit.formats.sweep import read_sweep
from cockpit.models import FaultError
from cockpit.rank_models import NodeSweep
from cockpit.text import printable

LAST_LINES = 400
RECORDS_S = 3.0  # for reading all flight records
_PAIR = re.compile(r"(\w+)=(\S*)")
# Of the environments, those in which ranks should agree or which tell what was set.
_TOLD = (
    "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "NCCL_NET", "FI_PROVIDER", "TORCH_FR_BUFFER_SIZE",
    "TORCH_NCCL_TRACE_BUFFER_SIZE", "NCCL_RAS_ADDR", "NCCL_RAS_ENABLE",
)  # fmt: skip


def evidence_of(gathered: Gathered) -> Evidence:
    """Everything joined; what could not be read stands in `missing`."""
    job = _job(gathered)
    steps = _steps(gathered.step_text)
    nodes = tuple(_node(node) for node in gathered.nodes)
    launched = max((step.tasks or 0 for step in steps if step.step.isdigit()), default=0) or None
    counted = census.take(nodes, launched, gathered.gpus, elsewhere=job.parts)
    logs = tuple(_logs(gathered.logs, nodes))
    records, refused = _records(nodes)
    reports, unread = _reports(gathered.ras)
    return Evidence(
        job=job,
        now=gathered.taken_at + gathered.head_ahead_s,
        steps=steps,
        nodes=nodes,
        ranks=counted.ranks,
        extra=counted.extra,
        world=counted.world,
        launched=launched,
        logs=logs,
        gpus=gathered.gpus,
        efa=gathered.efa,
        env=_environment(nodes),
        disagreements=compare(records, sorted({*records, *_without_record(counted.ranks, nodes)})),
        records=len(records),
        ras=reports,
        missing=(*gathered.missing, *_missing(nodes), *refused, *unread),
        whole=gathered.whole,
        cluster=gathered.cluster,
        taken_at=gathered.taken_at,
        took_s=gathered.took_s,
    )


def job_facts(detail: JobDetail, label: str) -> JobFacts:
    """What matters of Slurm's record of a job."""
    return JobFacts(
        label=label,
        job_id=detail.job_id,
        state=detail.get("JobState").split(" ")[0],
        reason="" if detail.get("Reason") in ("None", "") else detail.get("Reason"),
        name=detail.get("JobName"),
        user=detail.get("UserId").partition("(")[0],
        exit_code=detail.get("ExitCode"),
        nodes=tuple(_names(detail.get("NodeList"))),
        started_at=_epoch(detail.get("StartTime")),
        ends_at=_epoch(detail.get("EndTime")),
        restarts=_digits(detail.get("Restarts")),
        tasks=_digits(detail.get("NumTasks")),
        parts=detail.get("HetJobId") not in ("", "0"),
    )


def _job(gathered: Gathered) -> JobFacts:
    details = parse_job_details(gathered.job_text)
    return job_facts(details[0], gathered.job) if details else JobFacts(gathered.job, 0)


def _steps(raw: bytes) -> tuple[StepFacts, ...]:
    """`scontrol show step`: one record after another, each begins with StepId."""
    found = []
    for record in re.split(r"(?m)^(?=StepId=)", raw.decode("utf-8", "replace")):
        pairs = dict(_PAIR.findall(record))
        if "StepId" not in pairs:
            continue
        step = printable(pairs["StepId"].rpartition(".")[2])
        nodes = tuple(_names(pairs.get("NodeList", "")))
        found.append(StepFacts(step, printable(pairs.get("State", "")), nodes, _digits(pairs.get("Tasks", ""))))
    return tuple(found)


def _node(told: GatheredNode) -> NodeEvidence:
    sweep = read_sweep(told.lines) if told.lines else None
    ahead_s = error_s = None
    if sweep is not None and sweep.at is not None and told.asked_at is not None and told.answered_at is not None:
        ahead_s = sweep.at - (told.asked_at + told.answered_at) / 2
        error_s = (told.answered_at - told.asked_at) / 2
    return NodeEvidence(told.name, told.state, told.reason, sweep, told.fault, told.next_step, ahead_s, error_s)


def _logs(own: Iterable[GatheredLog], nodes: Iterable[NodeEvidence]) -> Iterable[LogEvidence]:
    seen = set()
    for log in own:
        seen.add(log.path)
        if log.why:
            continue
        yield _log(log.path, log.where, log.data, log.age_s, log.grown, log.size, own=True)
    for node in nodes:
        for tail in node.sweep.tails if node.sweep else ():
            if tail.path not in seen and tail.data and not tail.why:
                yield _log(tail.path, node.name, tail.data, tail.age_s, None, tail.size, own=False)


def _log(
    path: str, where: str, data: bytes, age_s: float | None, grown: bool | None, size: int | None, *, own: bool
) -> LogEvidence:
    lines = [shown_line(raw) for raw in data.rstrip(b"\n").split(b"\n")[-LAST_LINES:]]
    return LogEvidence(
        path=path,
        where=where,
        explained=explain(digest_of([data])),
        progress=progress_of(lines),
        age_s=age_s,
        grown=grown,
        size=size,
        own=own,
        lines=tuple(lines[-40:]),
    )


def _records(nodes: Iterable[NodeEvidence]) -> tuple[dict[int, FlightRecord], list[tuple[str, str]]]:
    """The newest flight record of each rank, and why others were not read."""
    found: dict[int, FlightRecord] = {}
    refused: list[tuple[str, str]] = []
    until = time.monotonic() + RECORDS_S
    late: set[int] = set()
    for node in nodes:
        if node.sweep is None:
            continue
        ranks = {process.pid: process.rank for process in node.sweep.processes or ()}
        for file in node.sweep.records:
            rank = ranks.get(file.pid)
            if rank is None or rank in found:
                continue
            if file.why:
                refused.append((f"flight record {file.path} on {node.name}", file.why))
                continue
            if time.monotonic() > until:
                late.add(rank)
                continue
            try:
                found[rank] = parse_record(file.data, rank)
            except FaultError as error:
                refused.append((f"flight record {file.path} on {node.name}", error.fault.why))
    if late:
        refused.append((f"flight records of {ranks_word(late)}", f"too many to read within {RECORDS_S:g} s"))
    return found, refused


def _without_record(ranks: Iterable[Rank], nodes: Iterable[NodeEvidence]) -> set[int]:
    """The ranks that have surely written no flight record since the job began; it may tell that they are frozen."""
    told = {node.name: node.sweep for node in nodes if node.sweep is not None and node.sweep.files_told}
    wrote = {(name, file.pid) for name, sweep in told.items() for file in sweep.records if file.of_this_run}
    found = set()
    for rank in ranks:
        process = rank.process
        silent = process is None or (not process.env_why and (rank.node, process.pid) not in wrote)
        if rank.node in told and silent:
            found.add(rank.rank)
    return found


def _reports(raw: Iterable[bytes]) -> tuple[tuple[RasReport, ...], list[tuple[str, str]]]:
    found, unread = [], []
    for one in raw:
        try:
            found.append(parse_ras(one))
        except FaultError as error:
            unread.append(("NCCL's RAS report", error.fault.why))
    return tuple(found), unread


def _environment(nodes: Iterable[NodeEvidence]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for node in nodes:
        for lead in census.leads_of(node):
            for name in _TOLD:
                if name in lead.env:
                    found.setdefault(name, {})[lead.env[name]] = None
    return {name: tuple(values) for name, values in found.items()}


def _missing(nodes: Iterable[NodeEvidence]) -> list[tuple[str, str]]:
    """What nodes could not tell; the same of many nodes stands once, folded."""
    found: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        if node.fault:
            found.setdefault(("", node.fault), []).append(node.name)
        sweep = node.sweep
        if sweep is None:
            continue
        for what, why in sweep.missing:
            found.setdefault((what, why), []).append(node.name)
        for what, why in _missing_in(sweep):
            found.setdefault((what, why), []).append(node.name)
    return [(f"{what} on {fold(names)}" if what else fold(names), why) for (what, why), names in found.items()]


def _missing_in(sweep: NodeSweep) -> Iterable[tuple[str, str]]:
    whys = {dump.why for process in sweep.processes or () for dump in process.dumps if dump.why}
    for why in sorted(whys)[:2]:
        yield "stacks", why
    if any(process.env_why == "denied" for process in sweep.processes or ()):
        yield "environments", "not permitted: the login must be the job's owner or root (`nodes: {user: root}`)"


def _names(text: str) -> list[str]:
    try:
        return expand(text)
    except FormatError:
        return []


def _digits(text: str) -> int | None:
    return int(text) if text.isdigit() and len(text) < 10 else None


def _epoch(text: str) -> float | None:
    return float(text) if text.isdigit() and len(text) < 13 else None
