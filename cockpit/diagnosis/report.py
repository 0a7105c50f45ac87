"""A diagnosis as JSON and as lines: the same content for the command line, the bundle's report and scripts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from cockpit.diagnosis.diagnose import Diagnosis
from cockpit.diagnosis.evidence import Evidence, LogEvidence, NodeEvidence, Rank
from cockpit.diagnosis.hypothesis import Hypothesis
from cockpit.diagnosis.naming import folded, ranks_word
from cockpit.diagnosis.stacks import StackGroup
from cockpit.formats.hostlist import brief
from cockpit.words import plural, span

SCHEMA = 1
_SHOWN = 8


def diagnosis_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """`verdict`, `hypotheses` (the strongest first), `evidence`, `missing`; missing values are null."""
    evidence, verdict = diagnosis.evidence, diagnosis.verdict
    return {
        "schema": SCHEMA,
        "cluster": evidence.cluster,
        "job": evidence.job.label,
        "taken_at": _iso(evidence.taken_at),
        "took_s": round(evidence.took_s, 2),
        "whole": evidence.whole,
        "verdict": asdict(verdict) | {"ranks": list(verdict.ranks), "nodes": list(verdict.nodes)},
        "hypotheses": [_hypothesis(each) for each in diagnosis.hypotheses],
        "evidence": _evidence(evidence, diagnosis.groups),
        "missing": [{"what": what, "why": why} for what, why in evidence.missing],
    }


def _hypothesis(one: Hypothesis) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "title": one.title,
        "sentence": one.sentence,
        "confidence": one.confidence,
        "ranks": list(one.ranks),
        "nodes": list(one.nodes),
        "for": list(one.speaks_for),
        "against": list(one.speaks_against),
        "next_step": one.next_step,
        "actions": [asdict(move) | {"targets": list(move.targets)} for move in one.moves],
    }


def _evidence(evidence: Evidence, groups: Iterable[StackGroup]) -> dict[str, Any]:
    job = evidence.job
    return {
        "slurm": asdict(job)
        | {
            "nodes": list(job.nodes),
            "started_at": _iso(job.started_at),
            "ends_at": _iso(job.ends_at),
            "steps": [asdict(step) | {"nodes": list(step.nodes)} for step in evidence.steps],
        },
        "world_size": evidence.world,
        "launched_tasks": evidence.launched,
        "ranks": [_rank(rank) for rank in evidence.ranks],
        "stacks": [_group(group) for group in groups],
        "nodes": [_node(node) for node in evidence.nodes],
        "gpus": [asdict(gpu) for gpu in evidence.gpus],
        "efa": [{"node": efa.node, "since": _iso(efa.since), "grown": dict(efa.grown)} for efa in evidence.efa],
        "logs": [_log(log) for log in evidence.logs],
        "environment": {name: list(values) for name, values in evidence.env.items()},
    }


def _rank(rank: Rank) -> dict[str, Any]:
    process = rank.process
    pulse = (process.second or process.first) if process else None
    return {
        "rank": rank.rank,
        "node": rank.node or None,
        "node_is_sure": rank.sure,
        "local_rank": rank.local,
        "state": rank.state,
        "words": rank.words,
        "pid": process.pid if process else None,
        "process_state": pulse.state if pulse else None,
        "wait_channel": (pulse.wait_channel or None) if pulse else None,
        "file": (process.close.file or None) if process and process.close else None,
        "doing": rank.doing.kind if rank.doing else None,
        "where": (rank.doing.where or None) if rank.doing else None,
        "moved": rank.moved,
        "connected": rank.connected,
        "gpu": rank.gpu.slot if rank.gpu else None,
    }


def _group(group: StackGroup) -> dict[str, Any]:
    return {
        "ranks": list(group.ranks),
        "label": group.label,
        "stack": list(group.stack),
        "kernel_stack": list(group.kernel),
    }


def _node(node: NodeEvidence) -> dict[str, Any]:
    sweep = node.sweep
    return {
        "node": node.name,
        "state": node.state or None,
        "reason": node.reason or None,
        "error": node.fault or None,
        "answered": sweep is not None and sweep.ended,
        "clock_ahead_s": None if node.clock_ahead_s is None else round(node.clock_ahead_s, 3),
        "clock_error_s": None if node.clock_error_s is None else round(node.clock_error_s, 3),
        "processes": None if sweep is None or sweep.processes is None else len(sweep.processes),
        "mounts": [asdict(mount) for mount in sweep.mounts] if sweep else [],
    }


def _log(log: LogEvidence) -> dict[str, Any]:
    cause = log.explained.cause
    return {
        "path": log.path,
        "where": log.where,
        "age_s": log.age_s,
        "grown": log.grown,
        "size_bytes": log.size,
        "step": log.progress.step,
        "rhythm_s": log.progress.rhythm_s,
        "phase": log.progress.phase or None,
        "cause": None if cause is None else {"id": cause.id, "sentence": cause.sentence, "text": cause.text},
        "last_line": log.lines[-1] if log.lines else None,
    }


def _iso(epoch: float | None) -> str | None:
    if epoch is None or not 0 <= epoch < 253_370_764_800:
        return None
    return datetime.fromtimestamp(epoch, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


# For a person.


def diagnosis_lines(diagnosis: Diagnosis) -> list[str]:
    """The verdict first, then the other possibilities, stacks, logs and what could not be read."""
    evidence, verdict = diagnosis.evidence, diagnosis.verdict
    job = evidence.job
    head = f"job {job.label} {job.name} · {job.user} · {brief(job.nodes)}" if job.job_id else f"job {job.label}"
    said = verdict.sentence.removeprefix("not hung: ")
    lines = [head, "", f"{verdict.state.upper()} ({verdict.confidence}): {said}"]
    for number, one in enumerate(diagnosis.hypotheses[:4]):
        lines += ["", *(_told(one) if number == 0 else _also(one))]
    lines += _rank_lines(evidence)
    if diagnosis.groups:
        lines += ["", "Who stands where, the odd ones first:"]
        for group in diagnosis.groups[:_SHOWN]:
            lines.append(f"  {group.label}")
            lines += [f"      {place}" for place in group.stack[:4]]
    lines += _log_lines(evidence)
    if evidence.missing:
        lines += ["", "Not known:"]
        lines += [f"  {what}: {why}" for what, why in evidence.missing[:_SHOWN]]
    return [*lines, "", f"taken {_iso(evidence.taken_at)} in {evidence.took_s:.1f} s"]


def _told(one: Hypothesis) -> list[str]:
    lines = [f"  for      {word}" for word in one.speaks_for]
    lines += [f"  against  {word}" for word in one.speaks_against]
    lines += [f"  next     {one.next_step}"] if one.next_step else []
    for move in one.moves:
        lines.append(f"  {move.key:<8} {move.action} {brief(move.targets)}: {move.words}")
    return lines


def _also(one: Hypothesis) -> list[str]:
    return [f"Also {one.confidence}: {one.sentence}", *[f"  for      {word}" for word in one.speaks_for[:2]]]


def _rank_lines(evidence: Evidence) -> list[str]:
    if not evidence.ranks:
        return []
    states: dict[str, list[int]] = {}
    for rank in evidence.ranks:
        states.setdefault(rank.state, []).append(rank.rank)
    told = " · ".join(f"{len(ranks)} {state} ({folded(ranks)})" for state, ranks in sorted(states.items(), key=_few))
    return ["", f"{plural(len(evidence.ranks), 'rank')} of {evidence.world or '?'}: {told}"]


def _few(item: tuple[str, list[int]]) -> int:
    return len(item[1])


def _log_lines(evidence: Evidence) -> list[str]:
    lines: list[str] = []
    for log in evidence.logs[:4]:
        age = f"last line {span(log.age_s)} ago" if log.age_s is not None else "age not known"
        step = f", step {log.progress.step}" if log.progress.step is not None else ""
        grows = ", growing" if log.grown else ""
        lines += ["", f"{log.path} on {log.where}: {age}{step}{grows}"]
        lines += [f"  {line}" for line in log.lines[-3:]]
    return lines


def ranks_of(diagnosis: Diagnosis) -> str:
    """The verdict's ranks in words, "" when it names none."""
    return ranks_word(diagnosis.verdict.ranks) if diagnosis.verdict.ranks else ""
