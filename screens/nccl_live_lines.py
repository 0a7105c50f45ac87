"""An NCCL test or sweep that runs, as lines: progress, rows with the expected line, the pair matrix. No Textual."""

from __future__ import annotations

from actions.nccl_live import Live, LiveSweep, LiveTest
from cockpit.formats.hostlist import brief
from cockpit.models import Health
from cockpit.nccl.models import Expectation, Judgement, NcclRow, Verdict
from cockpit.nccl.run import NcclRequest
from cockpit.nccl.stats import WEAK, usual
from cockpit.nccl.sweep import estimate
from cockpit.text import printable
from cockpit.words import MISSING, binary_size, plural, span
from screens.lines import Line, Piece, section
from screens.nccl_matrix import matrix_lines
from themes import STATE_TOKENS
from themes.glyphs import UNICODE, Signs

BAR = 36
_FULL = "█"
_WORD_HEALTH = {
    Judgement.PASS: Health.OK,
    Judgement.WARN: Health.WARN,
    Judgement.FAIL: Health.CRITICAL,
    Judgement.INCOMPLETE: Health.WARN,
    Judgement.UNJUDGED: Health.UNKNOWN,
}


def live_lines(live: Live, steady: float, signs: Signs = UNICODE) -> list[Line]:
    """Everything of it, what came of it first once it is over."""
    if isinstance(live, LiveSweep):
        return _sweep_lines(live, steady, signs)
    assert isinstance(live, LiveTest)
    return _test_lines(live, steady, signs)


def _state(live: Live, steady: float, signs: Signs) -> list[Line]:
    lines: list[Line] = []
    if live.fault:
        lines.append([(f"{signs.states[Health.CRITICAL]} {printable(live.fault)}", "critical")])
    if not live.over.is_set():
        word = "stopping: its job is being cancelled" if live.stopped.is_set() else live.state
        lines.append([(f"{signs.right} {printable(word)}", "accent"), (f"  {span(steady - live.began_at)}", "dim")])
    elif live.stopped.is_set():
        lines.append([(f"{signs.states[Health.WARN]} stopped: its job is cancelled, nothing is kept", "warning")])
    return lines


# -- one test


def sizes_of(request: NcclRequest) -> int:
    """How many rows it will print."""
    size, count = request.min_bytes, 0
    while size <= request.max_bytes:
        size, count = size * request.factor, count + 1
    return count


def _test_lines(live: LiveTest, steady: float, signs: Signs) -> list[Line]:
    request, verdict = live.request, live.verdict
    lines = _state(live, steady, signs)
    if live.over.is_set() and live.record is not None and verdict is not None:
        lines += _verdict(verdict, signs)
    sizes = f"{binary_size(request.min_bytes)} to {binary_size(request.max_bytes)}"
    ring = " ring" if request.algorithm == "ring" else ""
    job = f"job {live.job_id} · " if live.job_id is not None else ""
    what = f"  {job}{request.collective}{ring} · {plural(request.gpus, 'GPU')} · {sizes}"
    lines += [[], [printable(what)], [(f"  on {printable(brief(request.nodes, 90))}", "dim")]]
    lines += _progress(len(live.rows), sizes_of(request), live.over.is_set())
    expected = verdict.expectation if verdict is not None else None
    lines += [[], *_rows(live.rows, expected), *(_expected(expected) if live.rows else ())]
    if verdict is not None and not live.over.is_set():
        lines += [[], [("so far", "bright")], *([f"  {printable(reason)}"] for reason in verdict.reasons[1:4])]
    return lines


def _verdict(verdict: Verdict, signs: Signs) -> list[Line]:
    health = _WORD_HEALTH[verdict.word]
    busbw = "" if verdict.busbw_large_gbs is None else f"  {verdict.busbw_large_gbs:.1f} GB/s"
    pct = "" if verdict.pct is None else f", {verdict.pct:.0f}% of expected"
    first: Line = [(f"{signs.states[health]} {verdict.word.value}", STATE_TOKENS[health]), (f"{busbw}{pct}", "bright")]
    return [first, *([f"  {printable(reason)}"] for reason in verdict.reasons)]


def _progress(done: int, total: int, over: bool) -> list[Line]:
    full = min(BAR, BAR * done // max(1, total))
    word = "" if over and done >= total else f"  {done} of {plural(total, 'size')}"
    return [["  ", (_FULL * full, "accent"), ("·" * (BAR - full), "dim"), (word, "dim")]]


def _rows(rows: tuple[NcclRow, ...], expected: Expectation | None) -> list[Line]:
    if not rows:
        return [[("  no row was printed yet", "dim")]]
    values = [row.busbw_gbs or 0.0 for row in rows]
    top = max([*values, expected.good_gbs if expected else 0.0, 1e-9]) * 1.05
    mark = None if expected is None else min(BAR - 1, int(BAR * expected.good_gbs / top))
    lines: list[Line] = [[(f"  {'size':>12}  {'GB/s':>8}", "dim")]]
    for row, value in zip(rows, values, strict=True):
        shown = MISSING if row.busbw_gbs is None else f"{row.busbw_gbs:.1f}"
        wrong: list[Piece] = [(f"  {row.wrong:,} wrong values", "critical")] if row.wrong else []
        size = f"  {binary_size(row.size_bytes):>12}  {shown:>8}  "
        lines.append([size, *_bar(int(BAR * value / top), mark), *wrong])
    return lines


def _bar(full: int, mark: int | None) -> list[Piece]:
    """A bar with the expected line across it."""
    cells = [_FULL if at < full else " " for at in range(BAR)]
    if mark is None:
        return [("".join(cells), "accent")]
    return [("".join(cells[:mark]), "accent"), ("│", "ok"), ("".join(cells[mark + 1 :]), "accent")]


def _expected(expected: Expectation | None) -> list[Line]:
    if expected is None:
        return [[("  nothing is known to compare with: no catalogue entry, no earlier good run of this shape", "dim")]]
    whose = "usual here" if expected.basis == "history" else "expected by the catalogue"
    least = f" at {binary_size(expected.min_size_bytes)} and more" if expected.min_size_bytes else ""
    return [[("  │ ", "ok"), (f"{expected.good_gbs:.0f} GB/s {whose}{least}", "dim")]]


# -- a sweep


def _sweep_lines(live: LiveSweep, steady: float, signs: Signs) -> list[Line]:
    look, nodes = live.look, live.request.nodes
    lines = _state(live, steady, signs)
    if live.over.is_set() and look.found is not None and look.found.finished:
        lines += _findings(live, signs)
    total = max(look.jobs, estimate(len(nodes), live.sweep.options)[0])
    job = f"job {live.job_id} · " if live.job_id is not None else ""
    lines += [[], [printable(f"  {job}{plural(len(nodes), 'node')} · {live.request.collective}")]]
    full = BAR * look.done // max(1, total)
    tests = f"  {look.done} of {plural(total, 'test')} · round {look.rounds}{f', {look.phase}' if look.phase else ''}"
    lines.append(["  ", (_FULL * full, "accent"), ("·" * (BAR - full), "dim"), (tests, "dim")])
    running = frozenset(frozenset(pair) for pair in look.running if len(pair) == 2)
    lines += [[], section("pairs"), *matrix_lines(nodes, look.pairs, signs, running)]
    return [*lines, *_alone(live)]


def _findings(live: LiveSweep, signs: Signs) -> list[Line]:
    found = live.look.found
    assert found is not None
    cost = f"{plural(found.jobs, 'test')} in {plural(found.rounds, 'round')}, "
    cost += f"{found.pairs_measured} of {plural(found.pairs_possible, 'pair')} measured"
    if not found.findings:
        ok = f"{signs.states[Health.OK]} all nodes are alike"
        return [[(ok, "ok"), (f"  {cost}", "dim")]]
    lines: list[Line] = []
    for finding in found.findings:
        health = Health.CRITICAL if finding.certain else Health.WARN
        lines.append([(f"{signs.states[health]} {printable(finding.text)}", STATE_TOKENS[health])])
        lines += [[(f"    {printable(each)}", "dim")] for each in finding.evidence[:6]]
    return [*lines, [(f"  {cost}", "dim")]]


def _alone(live: LiveSweep) -> list[Line]:
    """What each node reaches by itself: in one line, those that fall behind named."""
    alone = live.look.alone
    peers = usual(list(alone.values()))
    if not alone or not peers:
        return []
    slow = [f"{node} {value:.1f}" for node, value in alone.items() if value < WEAK * peers]
    told: Piece = (f", behind: {', '.join(slow)}", "warning") if slow else (", all alike", "dim")
    return [[], [("alone", "bright"), f"  {plural(len(alone), 'node')}, usual {peers:.1f} GB/s", told]]
