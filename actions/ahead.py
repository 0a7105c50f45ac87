"""What AWS would refuse of a launch, for plans that launch: verdicts as lines, within a deadline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from cockpit.in_time import Late, in_time
from cockpit.models import FaultError
from cockpit.preflight_models import Result, Verdict
from cockpit.sources.aws import AWS
from cockpit.sources.base import unexpected
from cockpit.text import printable
from cockpit.words import span

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

DEADLINE_S = 8.0
KEPT_S = 60.0  # the runner plans once more before it sends anything: the same answer serves
_ORDER = (Result.FAIL, Result.UNKNOWN, Result.WARN, Result.PASS)
_Kept = tuple[tuple[str, ...], float, tuple[str, ...]]
_kept: WeakKeyDictionary[Cluster, _Kept] = WeakKeyDictionary()


def ahead(cluster: Cluster, names: Sequence[str]) -> tuple[str, ...]:
    """A line for each check of launching these nodes, worst first; () where AWS is not read or nothing launches."""
    if not names or not cluster.trusts(AWS):
        return ()
    wanted, now = tuple(names), cluster.clock.steady()
    kept = _kept.get(cluster)
    if kept is not None and kept[0] == wanted and now - kept[1] < KEPT_S:
        return kept[2]
    try:
        lines = in_time(lambda: _looked(cluster, wanted), DEADLINE_S, "preflight")
    except Late:
        return (f"unknown  AWS did not answer within {span(DEADLINE_S)}: nothing is known of quota and capacity",)
    _kept[cluster] = (wanted, now, lines)
    return lines


def _looked(cluster: Cluster, names: tuple[str, ...]) -> tuple[str, ...]:
    from cockpit.preflights import preflight

    try:
        verdicts = [verdict for flight in preflight(cluster, names) for verdict in flight.verdicts]
    except FaultError as error:
        return (f"unknown  {printable(error.fault.line())}",)
    except Exception as error:  # a plan must not fail because of what only helps it
        return (f"unknown  {printable(unexpected('looking ahead', error).line())}",)
    return tuple(_line(verdict) for verdict in sorted(verdicts, key=lambda one: _ORDER.index(one.result)))


def _line(verdict: Verdict) -> str:
    step = f" → {verdict.next_step}" if verdict.next_step and verdict.result is not Result.PASS else ""
    return printable(f"{verdict.result.value:<8} {verdict.check}: {verdict.text}{step}")
