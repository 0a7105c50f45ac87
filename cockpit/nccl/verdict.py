"""One run -> verdict. Pure; only rows of 1 GiB and more are judged, the average over all sizes never is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from cockpit.catalog import nccl_expected as catalogue
from cockpit.config import Rules
from cockpit.nccl.findings import (
    LARGE_BYTES,
    Finding,
    curve_findings,
    data_findings,
    error_findings,
    launch_findings,
    network_findings,
    nvls_findings,
    wrong_elements,
)
from cockpit.nccl.models import Expectation, Judgement, NcclRow, NcclRun, Shape, Verdict
from cockpit.nccl.shape import cap_gbs
from cockpit.words import binary_size, plural

DEFAULT_RULES = Rules()  # its nccl_min_pct is what the catalogue's own lines stand for
LATENCY_BYTES = 8192
BAD_PCT = 75.0  # of the own history's median
_ORDER = (Judgement.FAIL, Judgement.INCOMPLETE, Judgement.WARN, Judgement.UNJUDGED, Judgement.PASS)
_FROM = {"gpu": " (taken from the GPUs' name)", "name": " (taken from the file's name)", "log": "", "given": ""}


def judge(run: NcclRun, shape: Shape, rules: Rules = DEFAULT_RULES, history: Expectation | None = None) -> Verdict:
    """The verdict of a run of that shape. An expectation from the own history counts before the catalogue's."""
    large = large_rows(run)
    size = large[0].size_bytes if large else None
    values = [value for row in large if (value := row.busbw_gbs) is not None]
    busbw = None if not values or len({row.label for row in large}) > 1 else round(median(values), 2)
    expected = history or expectation(shape, rules)
    findings = [
        *error_findings(run),
        *data_findings(run),
        *network_findings(run, shape),
        *launch_findings(run),
        *_bandwidth(run, shape, large, busbw, expected),
        *nvls_findings(run, shape, busbw),
        *curve_findings(run),
    ]
    wrong, flags = wrong_elements(run), {finding.flag for finding in findings}
    comparable = busbw is not None and expected is not None and flags.isdisjoint(("above_cap", "copies"))
    return Verdict(
        word=_word(findings),
        reasons=_reasons(findings),
        shape=shape,
        busbw_large_gbs=busbw,
        size_large_bytes=size,
        expectation=expected,
        pct=round(100 * busbw / expected.good_gbs, 1) if comparable and busbw and expected else None,
        cap_gbs=cap_gbs(shape),
        latency_us=_latency_us(run),
        wrong=wrong,
        data_checked=None if not run.rows else wrong is not None,
        flags=tuple(dict.fromkeys(finding.flag for finding in findings if finding.flag)),
    )


def _word(findings: Sequence[Finding]) -> Judgement:
    levels, flags = {finding.level for finding in findings}, {finding.flag for finding in findings}
    if "copies" in flags and Judgement.FAIL not in levels:
        return Judgement.UNJUDGED  # the numbers are nobody's, complete or not
    return next(level for level in _ORDER if level in levels or level is Judgement.PASS)


def _reasons(findings: Sequence[Finding]) -> tuple[str, ...]:
    """What decided first; a bandwidth before mere remarks."""

    def weight(finding: Finding) -> tuple[int, bool]:
        return -1 if finding.flag == "copies" else _ORDER.index(finding.level), bool(finding.flag)

    return tuple(finding.text for finding in sorted(findings, key=weight))


def _latency_us(run: NcclRun) -> float | None:
    """What a tiny message takes: the median of the rows up to 8 KiB."""
    times = [
        half.time_us
        for row in run.rows
        if 0 < row.size_bytes <= LATENCY_BYTES
        for half in row.placements
        if half.time_us is not None
    ]
    return round(median(times), 2) if times else None


def large_rows(run: NcclRun) -> list[NcclRow]:
    """The rows of the largest size, when that is 1 GiB or more; several after -N."""
    top = max((row.size_bytes for row in run.rows), default=0)
    return [row for row in run.rows if row.size_bytes == top] if top >= LARGE_BYTES else []


def expectation(shape: Shape, rules: Rules = DEFAULT_RULES) -> Expectation | None:
    """The catalogue's, with its lines moved by the site's `nccl_min_pct` (90: as they are); None without any."""
    facts = catalogue.network_facts(shape.instance_type)
    if facts is None or shape.nodes is None or shape.gpus_per_node != facts.gpus:
        return None
    lines = catalogue.threshold(shape.instance_type, shape.nodes, shape.collective, shape.algorithm)
    if lines is None or lines.good_gbs is None:
        return None
    moved = rules.nccl_min_pct / DEFAULT_RULES.nccl_min_pct
    warn = None if lines.warn_below_gbs is None else min(lines.good_gbs, lines.warn_below_gbs * moved)
    fail = lines.fail_below_gbs
    return Expectation(
        basis="catalogue",
        good_gbs=lines.good_gbs,
        warn_below_gbs=warn,
        fail_below_gbs=fail if fail is None or warn is None else min(fail, warn),
        min_size_bytes=lines.min_size_bytes,
        sources=(lines.source,),
        note="" if lines.certain else "no public figure for this very shape",
    )


def from_history(values_gbs: Sequence[float], rules: Rules = DEFAULT_RULES) -> Expectation | None:
    """What this cluster's own last good runs of the same shape and size say; None without any."""
    if not values_gbs:
        return None
    usual = median(values_gbs)
    return Expectation(
        basis="history",
        good_gbs=usual,
        warn_below_gbs=usual * rules.nccl_min_pct / 100,
        fail_below_gbs=usual * min(BAD_PCT, rules.nccl_min_pct) / 100,
        sources=(f"median of the last {plural(len(values_gbs), 'good run')}",),
    )


def _bandwidth(
    run: NcclRun, shape: Shape, large: Sequence[NcclRow], busbw: float | None, expected: Expectation | None
) -> Iterator[Finding]:
    if not run.rows or run.copies > 1:
        return
    if not large:
        top = binary_size(max(row.size_bytes for row in run.rows))
        text = f"too small to judge: the largest size is {top}; bandwidth is judged from 1 GiB on"
        yield Finding(Judgement.UNJUDGED, text, "sizes_too_small")
        return
    at = binary_size(large[0].size_bytes)
    if busbw is None:
        yield Finding(Judgement.UNJUDGED, _several(large, at), "several_tables")
    elif (cap := cap_gbs(shape)) is not None and busbw > 1.03 * cap:
        text = f"{busbw:.1f} GB/s at {at} is more than the {cap:.0f} GB/s that {_what(shape)} can carry"
        yield Finding(Judgement.UNJUDGED, f"{text}: this is another network, or another number of nodes", "above_cap")
    elif _hardly_any(shape, busbw):
        yield from _suspect(run, shape, busbw, at)
    elif expected is None:
        yield Finding(Judgement.UNJUDGED, _nothing_expected(shape, busbw, at), "no_expectation")
    else:
        yield _compared(run, shape, busbw, large[0].size_bytes, expected)


def _several(large: Sequence[NcclRow], at: str) -> str:
    shown = ", ".join(f"{row.label}: {row.busbw_gbs:.1f}" for row in large[:8] if row.busbw_gbs is not None)
    return f"several runs in one table at {at}, by its first column (no size): {shown} GB/s"


def _what(shape: Shape) -> str:
    """`2 x p5.48xlarge (all_reduce, ring)`, with where the type is from when nobody said it."""
    ring = ", ring" if shape.algorithm == "ring" else ""
    kind, collective = shape.instance_type or "unknown type", shape.collective or "unknown collective"
    return f"{shape.nodes or '?'} x {kind} ({collective}{ring}){_FROM.get(shape.type_from, '')}"


def _hardly_any(shape: Shape, busbw: float) -> bool:
    """True where several nodes reach so little of their NICs' rate that EFA was hardly used."""
    facts = catalogue.network_facts(shape.instance_type)
    if facts is None or not shape.nodes or shape.nodes < 2 or shape.gpus_per_node != facts.gpus:
        return False
    ring_like = shape.collective in ("all_reduce", "all_gather", "reduce_scatter")
    return ring_like and shape.instance_type[0] == "p" and busbw < catalogue.suspect_share() * facts.nic_gbs


def _suspect(run: NcclRun, shape: Shape, busbw: float, at: str) -> Iterator[Finding]:
    facts = catalogue.network_facts(shape.instance_type)
    if facts is None:
        return
    share = f"{100 * busbw / facts.nic_gbs:.1f} % of the NICs' {facts.nic_gbs:g} GB/s"
    proof = {
        "efa": "although the log shows EFA: look at its counters",
        "": "as over sockets instead of EFA; no line of the log tells (run with NCCL_DEBUG=INFO), the EFA counters do",
    }.get(run.evidence.transport, "as over sockets instead of EFA, which the log proves")
    yield Finding(
        Judgement.FAIL if run.complete else Judgement.WARN,
        f"{busbw:.1f} GB/s at {at} is {share} of {_what(shape)}: {proof}",
        "socket_suspected",
    )


def _nothing_expected(shape: Shape, busbw: float, at: str) -> str:
    told = f"{busbw:.1f} GB/s at {at}; nothing is expected of {_what(shape)}"
    known = catalogue.published(shape.instance_type, shape.nodes or 0, shape.collective)
    figures = "; ".join(f"{each.busbw} ({each.what}, {each.source})" for each in known)
    cap = cap_gbs(shape)
    if figures:
        return f"{told}; published: {figures}"
    if cap is not None:
        return f"{told}; that is {100 * busbw / cap:.0f} % of the {cap:.0f} GB/s its network can carry"
    return f"{told}: name the instance type and the number of nodes, or let the cluster's own history tell"


def _compared(run: NcclRun, shape: Shape, busbw: float, size: int, expected: Expectation) -> Finding:
    at = binary_size(size)
    usual = "this cluster's own" if expected.basis == "history" else "the"
    words = (
        f"{busbw:.1f} GB/s at {at} is {100 * busbw / expected.good_gbs:.0f} % of {usual} {expected.good_gbs:.0f} GB/s"
    )
    words += f" {'usual for' if expected.basis == 'history' else 'expected of'} {_what(shape)}"
    small = size < expected.min_size_bytes
    if expected.fail_below_gbs is not None and busbw < expected.fail_below_gbs:
        if (old := _old_stack(run, shape, busbw)) is not None:
            return Finding(Judgement.WARN, f"{words}; {old}", "old_stack")
        level = Judgement.FAIL if run.complete else Judgement.WARN
        return Finding(level, f"{words}; below {expected.fail_below_gbs:.0f} something is broken", "slow")
    if expected.warn_below_gbs is not None and busbw < expected.warn_below_gbs:
        if small:
            text = f"{words}; that is meant for {binary_size(expected.min_size_bytes)} and more: measure a larger size"
            return Finding(Judgement.UNJUDGED, text, "sizes_too_small")
        return Finding(Judgement.WARN, f"{words}; below {expected.warn_below_gbs:.0f} it deserves a look", "low")
    return Finding(Judgement.PASS, words + (_inflated(shape, busbw)), "")


def _inflated(shape: Shape, busbw: float) -> str:
    facts = catalogue.network_facts(shape.instance_type)
    if facts is None or shape.nodes != 2 or busbw <= facts.nic_gbs:
        return ""
    return f"; above the NICs' {facts.nic_gbs:g} GB/s, as two nodes may: each reduces inside first"


def _old_stack(run: NcclRun, shape: Shape, busbw: float) -> str | None:
    """Words for a figure that is low now but was all that a stack as old as this one gave."""
    parts = run.versions.nccl.split(".")
    version = tuple(int(part) for part in parts if part.isdigit())
    for each in catalogue.published(shape.instance_type, shape.nodes or 0, shape.collective):
        if each.before_nccl and version and version < each.before_nccl and busbw >= 0.9 * each.lowest_gbs:
            stack = f"a stack as old as NCCL {run.versions.nccl}"
            return f"{stack} gave no more ({each.busbw}, {each.source}): update it first"
    return None
