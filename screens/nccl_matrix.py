"""Which pair of nodes is how fast, as signs in a square. Imports no Textual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.models import Health
from cockpit.nccl.stats import SLOW, WEAK, usual
from screens.lines import Line, Piece
from themes import STATE_TOKENS
from themes.glyphs import UNICODE, Signs

MOST_NODES = 40  # more are too wide for a terminal: then only what deviates is listed
_MOST_LISTED = 30
_NAME = 24
Pairs = Mapping[tuple[str, str], float | None]


def usual_of(pairs: Pairs) -> float | None:
    """What a node's best pair usually reaches, as a sweep judges by it."""
    best: dict[str, float] = {}
    for (one, other), busbw in pairs.items():
        for node in (one, other) if busbw is not None else ():
            best[node] = max(best.get(node, 0.0), busbw or 0.0)
    return usual(list(best.values()))


def pair_health(busbw: float | None, peers: float | None) -> Health:
    """By its share of what is usual; a pair without a result is as bad as one can be."""
    if busbw is None:
        return Health.CRITICAL
    if not peers or busbw >= WEAK * peers:
        return Health.OK
    return Health.CRITICAL if busbw < SLOW * peers else Health.WARN


def matrix_lines(
    nodes: Sequence[str], pairs: Pairs, signs: Signs = UNICODE, running: frozenset[frozenset[str]] = frozenset()
) -> list[Line]:
    """One line a node and one column a partner; `running` pairs are being measured just now."""
    peers = usual_of(pairs)
    if len(nodes) > MOST_NODES:
        return [*_deviating(pairs, peers, signs), *_legend(peers, signs)]
    both = {**pairs, **{(other, one): busbw for (one, other), busbw in pairs.items()}}
    width = min(_NAME, max(map(len, nodes), default=1))
    head = "".join(f"{number % 100:>3}" for number in range(1, len(nodes) + 1))
    lines: list[Line] = [[(f"  {'':>3} {'':<{width}} {head}", "dim")]]
    for at, node in enumerate(nodes, 1):
        pieces: list[Piece] = [(f"  {at:>3} ", "dim"), f"{_fitted(node, width)} "]
        for partner in nodes:
            pieces.append(_cell(node, partner, both, peers, signs, running))
        best = max((busbw for (one, _), busbw in both.items() if one == node and busbw is not None), default=None)
        pieces.append((f"   best {best:.1f}" if best is not None else "", "dim"))
        lines.append(pieces)
    return [*lines, *_legend(peers, signs)]


def _fitted(name: str, width: int) -> str:
    """The end of a name tells nodes apart."""
    return name.ljust(width) if len(name) <= width else f"…{name[1 - width :]}"


def _cell(
    node: str, partner: str, both: Pairs, peers: float | None, signs: Signs, running: frozenset[frozenset[str]]
) -> Piece:
    if node == partner:
        return ("  \\", "dim")
    if frozenset((node, partner)) in running:
        return (f"  {signs.right}", "accent")
    if (node, partner) not in both:
        return (f"  {signs.dot}", "dim")
    health = pair_health(both[node, partner], peers)
    return f"  {signs.states[health]}", STATE_TOKENS[health]


def _deviating(pairs: Pairs, peers: float | None, signs: Signs) -> list[Line]:
    """The pairs that are slow or gave nothing, worst first."""
    bad = [(pair, busbw) for pair, busbw in pairs.items() if pair_health(busbw, peers) is not Health.OK]
    lines: list[Line] = [[f"  {len(pairs)} pairs measured, {len(bad)} of them deviate"]]
    for (one, other), busbw in sorted(bad, key=lambda item: item[1] or 0.0)[:_MOST_LISTED]:
        health = pair_health(busbw, peers)
        told = "no result" if busbw is None else f"{busbw:.1f} GB/s"
        lines.append([(f"  {signs.states[health]} ", STATE_TOKENS[health]), f"{one}, {other}: {told}"])
    return lines


def _legend(peers: float | None, signs: Signs) -> list[Line]:
    told = "" if peers is None else f"usual {peers:.1f} GB/s · "
    ok, warn, bad = (signs.states[health] for health in (Health.OK, Health.WARN, Health.CRITICAL))
    return [
        [
            (
                f"  {told}{ok} as usual  {warn} below {WEAK:.0%}  {bad} below {SLOW:.0%} or no result"
                f"  {signs.dot} not measured",
                "dim",
            )
        ]
    ]
