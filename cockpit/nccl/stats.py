"""Who falls behind its peers: the ratio rule, and median absolute deviations where there are enough values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median, pstdev

WEAK, SLOW = 0.90, 0.75  # of the peers: below it deserves a look, below it is bad
Z_LIMIT, LEAST_OFF, LEAST_VALUES = 3.5, 0.10, 5
REPEATABLE_CV = 0.05


def usual(values: Sequence[float]) -> float | None:
    """What is usual among peers: the median; of two the better one, for then either may be the bad one."""
    if not values:
        return None
    return max(values) if len(values) == 2 else median(values)


def behind(values: Mapping[str, float]) -> dict[str, float]:
    """Those below the ratio rule, with their share of what is usual, worst first."""
    peers = usual(list(values.values()))
    if not peers:
        return {}
    ratios = {name: value / peers for name, value in values.items()}
    return {name: ratio for name, ratio in sorted(ratios.items(), key=lambda item: item[1]) if ratio < WEAK}


def outliers(values: Mapping[str, float]) -> dict[str, float]:
    """Modified z-scores beyond 3.5 of values more than 10 % off; {} with fewer than five values.

    The deviation is at least 1 % of the median, or equal values would make any noise an outlier.
    """
    if len(values) < LEAST_VALUES:
        return {}
    middle = median(values.values())
    spread = max(median(abs(value - middle) for value in values.values()), 0.01 * abs(middle))
    if not spread:
        return {}
    scores = {name: 0.6745 * (value - middle) / spread for name, value in values.items()}
    off = {name for name, value in values.items() if abs(value - middle) > LEAST_OFF * abs(middle)}
    return {name: score for name, score in scores.items() if abs(score) > Z_LIMIT and name in off}


def variation(values: Sequence[float]) -> float | None:
    """The coefficient of variation of repeats; above 0.05 it is a finding by itself. None with fewer than three."""
    mean = fmean(values) if values else 0.0
    return pstdev(values) / mean if len(values) >= 3 and mean > 0 else None
