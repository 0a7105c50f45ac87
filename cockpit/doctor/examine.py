"""Goes through the steps in order, each on a thread of its own with its own deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping

from cockpit.doctor.models import Finding, Result, Step, Verdict, failed, of_fault
from cockpit.in_time import Late, in_time
from cockpit.models import FaultError
from cockpit.sources.base import unexpected

_BLOCKS = (Verdict.FAIL, Verdict.NOT_TRIED)


def examine(
    steps: Iterable[Step], told: Callable[[Result], None] = lambda result: None, *, stop: threading.Event | None = None
) -> tuple[Result, ...]:
    """Every step's result, each also given to `told` as it comes; ends early when `stop` is set."""
    results: dict[str, Result] = {}
    for step in steps:
        if stop is not None and stop.is_set():
            break
        began = time.monotonic()
        finding = _not_tried(step, results) or _look(step)
        results[step.id] = result = Result(step.id, step.title, finding, time.monotonic() - began)
        told(result)
    return tuple(results.values())


def _not_tried(step: Step, results: Mapping[str, Result]) -> Finding | None:
    missing = [results[name].title for name in step.after if name in results and results[name].verdict in _BLOCKS]
    return Finding(Verdict.NOT_TRIED, f"needs: {', '.join(missing)}") if missing else None


def _look(step: Step) -> Finding:
    try:
        return in_time(step.look, step.deadline_s, f"doctor {step.id}")
    except FaultError as error:
        return of_fault(error.fault)
    except Late as late:
        return failed(str(late))
    except Exception as error:  # one step's defect leaves the others
        return of_fault(unexpected(step.title, error))


def worst(results: Iterable[Result]) -> Verdict:
    """FAIL when any step failed, else PASS."""
    return Verdict.FAIL if any(result.verdict is Verdict.FAIL for result in results) else Verdict.PASS
