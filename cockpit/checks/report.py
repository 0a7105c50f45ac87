"""Check runs for the command line: JSON, and lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from cockpit.checks.history import KeptRun, since
from cockpit.checks.models import CheckRun, Drift, NodeResult, PairResult, Result, Verdict
from cockpit.formats.hostlist import brief, fold
from cockpit.report import iso
from cockpit.words import moment, plural, span

_BAD = (Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN)
_EVIDENCE = 4
_LONGEST = 160
_WORDS = {verdict: verdict.value.upper() for verdict in Verdict} | {Verdict.NA: "N/A"}


def run_record(run: CheckRun, history: Sequence[KeptRun] = ()) -> dict[str, Any]:
    """The run, JSON-ready; nodes worst first."""
    return {
        "check": run.kind,
        "id": run.id,
        "at": iso(run.at),
        "took_s": round(run.took_s, 2),
        "verdict": run.verdict.value,
        "cancelled": run.cancelled,
        "counts": counts(run),
        "nodes": [_node_record(node, [kept for kept in history if kept.kind == run.kind]) for node in run.ranked],
        "drift": [_drift_record(each) for each in run.drift],
        "pairs": [_pair_record(pair) for pair in run.pairs],
        "left_out": [{"node": node, "why": why} for node, why in run.left_out],
    }


def counts(run: CheckRun) -> dict[str, int]:
    """How many nodes came to each verdict, and how many could not be asked."""
    found = {verdict.value: 0 for verdict in Verdict}
    for node in run.asked:
        found[node.verdict.value] += 1
    return found | {"unreached": len(run.nodes) - len(run.asked)}


def _node_record(node: NodeResult, history: Sequence[KeptRun]) -> dict[str, Any]:
    return {
        "node": node.node,
        "queue": node.queue or None,
        "instance_type": node.instance_type or None,
        "verdict": node.verdict.value,
        "at": iso(node.at),
        "took_s": round(node.took_s, 2),
        "asked_again": node.asked_again,
        "error": asdict(node.fault) | {"kind": node.fault.kind.value} if node.fault else None,
        "drain_reason": node.drain_reason or None,
        "versions": dict(node.versions),
        "checks": [_result_record(result, node.node, history) for result in node.results],
    }


def _result_record(result: Result, node: str, history: Sequence[KeptRun]) -> dict[str, Any]:
    told = since(history, node, result.check) if result.verdict in _BAD else None
    return {
        "check": result.check,
        "title": result.fact.title,
        "verdict": result.verdict.value,
        "says": result.says,
        "evidence": list(result.evidence),
        "commands": list(result.commands),
        "means": result.fact.meaning,
        "next": result.next_step or None,
        "sources": list(result.fact.sources),
        "since": iso(told.at) if told else None,
    }


def _drift_record(drift: Drift) -> dict[str, Any]:
    return {
        "queue": drift.queue or None,
        "what": drift.title,
        "usual": drift.usual,
        "usual_nodes": drift.usual_count,
        "odd": [{"version": version, "nodes": list(nodes)} for version, nodes in drift.odd],
    }


def _pair_record(pair: PairResult) -> dict[str, Any]:
    return {
        "server": pair.server,
        "client": pair.client,
        "at": iso(pair.at),
        "took_s": round(pair.took_s, 2),
        "mb_s": pair.mb_s,
        "size_bytes": pair.size_bytes,
        "latency_us": pair.latency_us,
        **_result_record(pair.result, pair.server, ()),
    }


# -- text


def run_lines(
    run: CheckRun, history: Sequence[KeptRun] = (), *, everything: bool = False, width: int = 100
) -> Iterator[str]:
    """Findings worst first, nodes with the same one folded; then what could not be asked, drift, and the counts."""
    kept = [each for each in history if each.kind == run.kind]
    for (verdict, check, says), members in _findings(run, everything=everything):
        yield from _finding(verdict, check, says, members, kept, width)
    yield from _unclear(run, width)
    yield from _unreached(run, width)
    for each in run.drift:
        yield from _drift_lines(each, width)
    for pair in run.pairs:
        yield from _pair_lines(pair, width)
    for why, nodes in _left_out(run).items():
        yield f"not asked: {brief(nodes, width)} ({why})"
    yield _summary(run)


_Member = tuple[NodeResult, Result]


def _findings(run: CheckRun, *, everything: bool) -> list[tuple[tuple[Verdict, str, str], list[_Member]]]:
    alike: dict[tuple[Verdict, str, str], list[_Member]] = {}
    for node in run.nodes:
        for result in node.results:
            if result.verdict is not Verdict.UNKNOWN and (everything or result.verdict in _BAD):
                alike.setdefault((result.verdict, result.check, result.says), []).append((node, result))
    return sorted(alike.items(), key=lambda item: item[0][0].rank)


def _finding(verdict: Verdict, check: str, says: str, members: Sequence[_Member], history: Sequence[KeptRun],
             width: int) -> Iterator[str]:  # fmt: skip
    nodes, result = [node.node for node, _ in members], members[0][1]
    yield f"{_WORDS[verdict]:<7} {brief(nodes, 48)}: {result.fact.title}: {says}"
    if verdict not in _BAD:
        return
    if (told := since(history, nodes[0], check)) and (told.runs > 1 or told.before is not None):
        yield f"        since {moment(told.at, members[0][0].at)}, {plural(told.runs, 'run')}"
    lines = result.evidence if len(members) == 1 else tuple(f"{nodes[0]}: {line}" for line in result.evidence[:1])
    for line in lines[:_EVIDENCE]:
        yield f"        {line if len(line) <= _LONGEST else line[: _LONGEST - 1] + '…'}"
    if result.next_step:
        yield from _wrapped(f"next: {result.next_step}", width)


def _unclear(run: CheckRun, width: int) -> Iterator[str]:
    """What could not be told, by its reason: one cause, such as a driver that does not answer, leaves many open."""
    alike: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for node in run.nodes:
        for result in node.results:
            if result.verdict is Verdict.UNKNOWN:
                nodes, titles = alike.setdefault(result.says, ({}, {}))
                nodes[node.node] = titles[result.fact.title] = None
    for says, (nodes, titles) in alike.items():
        yield from wrap(
            f"UNKNOWN {brief(nodes, 48)}: {', '.join(titles)}: {says}",
            max(60, width),
            subsequent_indent=" " * 8,
            break_on_hyphens=False,
        )


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, max(50, width), initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False)


def _unreached(run: CheckRun, width: int) -> Iterator[str]:
    alike: dict[tuple[str, str], list[str]] = {}
    for node in run.nodes:
        if node.fault is not None:
            why = node.fault.why.replace(node.node, "NODE")
            alike.setdefault((why, node.fault.next_step), []).append(node.node)
    for (why, step), nodes in alike.items():
        yield f"NO ANSWER {brief(nodes, 60)}: {why.replace('NODE', nodes[0])}"
        if step:
            yield from _wrapped(f"next: {step}", width)


def _drift_lines(drift: Drift, width: int) -> Iterator[str]:
    where = f" in {drift.queue}" if drift.queue else ""
    yield f"DRIFT   {drift.title}{where}: {drift.usual} on {plural(drift.usual_count, 'node')}"
    for version, nodes in drift.odd:
        yield f"        {version} on {brief(nodes, width)}"


def _pair_lines(pair: PairResult, width: int) -> Iterator[str]:
    result = pair.result
    yield f"{_WORDS[result.verdict]:<7} {pair.server} and {pair.client}: {result.says}"
    if result.verdict in _BAD:
        for line in result.evidence[-_EVIDENCE:]:
            yield f"        {line}"
        for command in result.commands:
            yield f"        ran on {command}"
    if result.next_step:
        yield from _wrapped(f"next: {result.next_step}", width)


def _left_out(run: CheckRun) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node, why in run.left_out:
        found.setdefault(why, []).append(node)
    return found


def _summary(run: CheckRun) -> str:
    if run.pairs and not run.nodes:
        bad = sum(pair.result.verdict is Verdict.FAIL for pair in run.pairs)
        return f"{plural(len(run.pairs), 'pair')}, {bad} failed, in {span(run.took_s)}"
    told = counts(run)
    words = {
        "fail": "failed",
        "warn": "with warnings",
        "unknown": "unclear",
        "pass": "fine",
        "unreached": "not reached",
    }
    parts = [f"{told[name]} {word}" for name, word in words.items() if told[name]]
    well = told[Verdict.NA.value]
    parts += [f"{well} without anything to check"] if well else []
    return f"{plural(len(run.nodes), 'node')}: {', '.join(parts) or 'none asked'}, in {run.took_s:.1f} s"


def exit_code(run: CheckRun) -> int:
    """3 when nothing could be reached, 1 when a check failed or a node did not answer, else 0."""
    asked = [*run.asked, *(pair for pair in run.pairs if pair.result.verdict is not Verdict.UNKNOWN)]
    if not asked and (run.nodes or run.pairs or not run.left_out):
        return 3
    failed = run.verdict is Verdict.FAIL or len(run.asked) < len(run.nodes)
    return 1 if failed or any(pair.result.verdict is Verdict.UNKNOWN for pair in run.pairs) else 0


def folded(run: CheckRun) -> str:
    """The run's nodes as a hostlist."""
    return fold([node.node for node in run.nodes])
