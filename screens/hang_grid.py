"""The ranks of a job as a grid, one line a node and one sign a rank; nodes that look alike share a line. No Textual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from cockpit.diagnosis.evidence import (
    ALONE,
    BLOCKED,
    MISSING,
    ODD,
    STOPPED,
    UNKNOWN,
    UNREAD,
    WAITING,
    WORKING,
    ZOMBIE,
    Evidence,
    Rank,
)
from cockpit.diagnosis.naming import folded
from cockpit.formats.hostlist import brief
from cockpit.models import Health
from cockpit.words import plural
from screens.lines import Line, Link, Piece, Subject
from themes.glyphs import Signs

EACH = 8  # nodes that have a line of their own each
_LINES = 16
_NAME = 24  # cells of the names of a line
_ODD_SHOWN = 8
_NODE_UNKNOWN = "node not known"

# The worst first. T, D and Z are the kernel's own letters.
_TOKENS: Mapping[str, str] = {
    MISSING: "critical",
    ZOMBIE: "critical",
    STOPPED: "critical",
    BLOCKED: "critical",
    ODD: "critical",
    ALONE: "warning",
    UNREAD: "stale",
    UNKNOWN: "stale",
    WAITING: "dim",
    WORKING: "",
}
_WELL = (WAITING, WORKING)


def rank_sign(state: str, signs: Signs) -> str:
    """One cell for what a rank is in; each state has a sign of its own."""
    return {
        MISSING: signs.states[Health.CRITICAL],
        ZOMBIE: "Z",
        STOPPED: "T",
        BLOCKED: "D",
        ODD: signs.states[Health.WARN],
        ALONE: signs.states[Health.DRAINED],
        WAITING: signs.dot,
        WORKING: signs.states[Health.OK],
        UNREAD: signs.states[Health.UNKNOWN],
    }.get(state, "?")


def grid_lines(evidence: Evidence, signs: Signs) -> list[Line]:
    """A legend with counts, then the grid, then each rank that is not as the others."""
    if not evidence.ranks:
        return []
    return [_legend(evidence, signs), *_rows(evidence, signs), *_odd_lines(evidence, signs)]


def _legend(evidence: Evidence, signs: Signs) -> Line:
    counts = Counter(rank.state for rank in evidence.ranks)
    there = len(evidence.ranks) - counts[MISSING] - counts[UNREAD]
    pieces: list[Piece] = [("Ranks", "bright"), (f"  {there} of {evidence.world or '?'} seen ", "dim")]
    for state, token in _TOKENS.items():
        if counts[state]:
            pieces += [("  ", ""), (f"{rank_sign(state, signs)} ", token), (f"{counts[state]} {state}", token or "dim")]
    return pieces


def _rows(evidence: Evidence, signs: Signs) -> list[Line]:
    rows = _by_node(evidence)
    groups = [([name], ranks) for name, ranks in rows.items()] if len(rows) <= EACH else _alike(rows)
    lines: list[Line] = [_heads(rows.values()), *(_row(names, ranks, signs) for names, ranks in groups[:_LINES])]
    if left := [name for names, _ in groups[_LINES:] for name in names]:
        lines.append([(f"  and {plural(len(left), 'node')} more: {brief(left, 60)}", "dim")])
    return lines


def _heads(rows: Iterable[Sequence[Rank]]) -> Line:
    """The last digit of each local rank over its column."""
    longest = max(rows, key=len)
    numbers = " ".join(str((rank.local if rank.local is not None else at) % 10) for at, rank in enumerate(longest))
    return [(f"  {'local rank':<{_NAME + 2}}{numbers}", "dim")]


def _by_node(evidence: Evidence) -> dict[str, list[Rank]]:
    rows: dict[str, list[Rank]] = {node.name: [] for node in evidence.nodes}
    for rank in evidence.ranks:
        rows.setdefault(rank.node or _NODE_UNKNOWN, []).append(rank)
    return {name: sorted(ranks, key=_place) for name, ranks in rows.items() if ranks}


def _place(rank: Rank) -> tuple[int, int]:
    return (rank.local if rank.local is not None else rank.rank, rank.rank)


def _alike(rows: Mapping[str, Sequence[Rank]]) -> list[tuple[list[str], Sequence[Rank]]]:
    """Nodes whose ranks are in the same states, on one line; those that deviate first."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, ranks in rows.items():
        found.setdefault(tuple(rank.state for rank in ranks), []).append(name)
    ordered = sorted(found.items(), key=lambda item: (set(item[0]) <= set(_WELL), len(item[1])))
    return [(names, rows[names[0]]) for _, names in ordered]


def _row(names: Sequence[str], ranks: Sequence[Rank], signs: Signs) -> Line:
    pieces: list[Piece] = [("  ", "")]
    name = brief(names, _NAME)
    if len(names) == 1 and name != _NODE_UNKNOWN:
        pieces.append(Link(name, "", Subject("node", names[0])))
    else:
        pieces.append(name)
    pieces.append((" " * max(2, _NAME + 2 - len(name)), ""))
    pieces += [(f"{rank_sign(rank.state, signs)} ", _TOKENS.get(rank.state, "")) for rank in ranks]
    told = f" ranks {folded(rank.rank for rank in ranks)}" if len(names) == 1 else f" {len(names)} nodes like this"
    return [*pieces, (told, "dim")]


def _odd_lines(evidence: Evidence, signs: Signs) -> list[Line]:
    """What is known of each rank that is not as the others, as long as they are few."""
    odd = [rank for rank in evidence.ranks if rank.state not in (*_WELL, UNKNOWN, UNREAD)]
    order = list(_TOKENS)
    odd.sort(key=lambda rank: (order.index(rank.state) if rank.state in order else len(order), rank.rank))
    lines: list[Line] = [_odd_line(rank, signs) for rank in odd[:_ODD_SHOWN]]
    if len(odd) > _ODD_SHOWN:
        rest = folded(rank.rank for rank in odd[_ODD_SHOWN:])
        lines.append([(f"  and {plural(len(odd) - _ODD_SHOWN, 'rank')} more: {rest}", "dim")])
    return lines


def _odd_line(rank: Rank, signs: Signs) -> Line:
    token = _TOKENS.get(rank.state, "")
    pieces: list[Piece] = [(f"  {rank_sign(rank.state, signs)} rank {rank.rank}", token), (f" {rank.words}", "")]
    if rank.node:
        sure = "" if rank.sure else "probably "
        pieces += [(f" {signs.dot} {sure}on ", "dim"), Link(rank.node, "", Subject("node", rank.node))]
    if rank.process is not None:
        pieces.append((f" pid {rank.process.pid}", "dim"))
    if rank.gpu is not None:
        gpu = rank.gpu
        pieces += [(f" {signs.dot} ", "dim"), Link(f"GPU {gpu.slot}", "", Subject("gpu", f"{gpu.node}/{gpu.slot}"))]
        pieces.append((_gpu_words(gpu.util_pct, gpu.power_w, gpu.lost), "critical" if gpu.lost else "dim"))
    return pieces


def _gpu_words(util_pct: float | None, power_w: float | None, lost: str) -> str:
    if lost:
        return f" lost: {lost}"
    told: Iterable[str] = (
        f"{util_pct:.0f}%" if util_pct is not None else "",
        f"{power_w:.0f}W" if power_w is not None else "",
    )
    return "".join(f" {word}" for word in told if word)
