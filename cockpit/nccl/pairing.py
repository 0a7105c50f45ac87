"""Who is measured with whom: rounds of disjoint pairs by the circle method, and pairs that are still owed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

Pair = tuple[str, str]


def all_rounds(nodes: Sequence[str]) -> list[list[Pair]]:
    """Every pair exactly once, in n-1 rounds (n for an odd number) of disjoint pairs."""
    ring: list[str | None] = list(nodes)
    if len(ring) % 2:
        ring.append(None)  # whoever meets None sits this round out
    last = len(ring) - 1
    rounds = []
    for at in range(last):
        met = [(ring[last], ring[at])]
        met += [(ring[(at + i) % last], ring[(at - i) % last]) for i in range(1, len(ring) // 2)]
        rounds.append([(a, b) for a, b in met if a is not None and b is not None])
    return [each for each in rounds if each]


def two_rounds(nodes: Sequence[str]) -> list[list[Pair]]:
    """Two rounds with different partners for every node; with an odd number the two that sat out meet in a third."""
    rounds = all_rounds(nodes)[:2]
    sat_out = [next(iter(set(nodes) - {node for pair in each for node in pair}), None) for each in rounds]
    if len(rounds) == 2 and sat_out[0] is not None and sat_out[1] is not None:
        rounds.append([(sat_out[0], sat_out[1])])
    return rounds


def owed_pairs(
    wanting: Iterable[str], partners: Sequence[str], met: Callable[[str, str], int], fewest: int = 0
) -> list[Pair]:
    """One partner for each that wants one, disjoint, those first that it has met least; some may have to wait.

    `partners` are in order of preference; a pair that has met more than `fewest` times is not made.
    """
    free, pairs = list(partners), []
    taken: set[str] = set()
    for node in wanting:
        if node in taken:
            continue
        fitting = [other for other in free if other != node and other not in taken and met(node, other) <= fewest]
        if fitting:
            other = min(fitting, key=lambda each: met(node, each))
            pairs.append((node, other))
            taken |= {node, other}
    return pairs


def halves(nodes: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Two groups of equal size; with an odd number the last one stays out."""
    middle = len(nodes) // 2
    return tuple(nodes[:middle]), tuple(nodes[middle : 2 * middle])
