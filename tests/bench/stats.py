"""Figures from samples."""

from __future__ import annotations

import math
from collections.abc import Sequence


def median(samples: Sequence[float]) -> float | None:
    """The middle one; None without samples."""
    return percentile(samples, 50)


def percentile(samples: Sequence[float], share: float) -> float | None:
    """The smallest sample that `share` percent of all do not exceed; None without samples."""
    if not samples:
        return None
    return sorted(samples)[max(0, math.ceil(len(samples) * share / 100) - 1)]


def ratio(value: float | None, base: float | None) -> float | None:
    """How many times `base` it is; None when either is not known."""
    return value / base if value is not None and base else None


def minus(value: float | None, base: float | None) -> float | None:
    """The difference; None when either is not known."""
    return value - base if value is not None and base is not None else None


def share_over(samples: Sequence[float], limit: float) -> int:
    """How many are over the limit."""
    return sum(1 for sample in samples if sample > limit)
