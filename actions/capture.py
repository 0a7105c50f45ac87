"""The evidence of running jobs into a file before a plan ends them, as the first steps of that very plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from actions.errors import ActionError, Refusal
from actions.outcome import StepResult
from actions.spec import Plan, Step
from cockpit.models import Fault, FaultError, FaultKind

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

CAPTURE = "capture"
MOST = 4  # jobs: each takes a quarter of a minute
_BETWEEN_S = 3.0


def with_capture(plan: Plan) -> Plan:
    """The plan with the evidence first, and no further than that when it cannot be kept; raises ActionError."""
    jobs = plan.losing or tuple(job for job in plan.jobs if job.elapsed_s is not None)
    if not jobs:
        return plan
    if len(jobs) > MOST:
        raise ActionError(
            Refusal.USAGE, f"the evidence of {len(jobs)} jobs would take minutes; {MOST} at most: capture them alone"
        )
    steps = tuple(
        Step(f"keep the evidence of job {job.label} (up to 25 s)", ("cockpit", "bundle", job.label), (), writes=False,
             via=CAPTURE)
        for job in jobs
    )  # fmt: skip
    told = "the evidence is kept first; when that fails nothing else is done"
    return replace(plan, steps=(*steps, *plan.steps), effects=(told, *plan.effects), in_order=True)


def on_capture(cluster: Cluster, step: Step) -> StepResult:
    """Look at the job twice and write all of it into a private file; says where."""
    from cockpit.config import ConfigError
    from cockpit.diagnosing import capture

    began = cluster.clock.steady()
    try:
        path = capture(cluster, step.argv[-1], between_s=_BETWEEN_S)
    except FaultError as error:
        fault = error.fault
    except ConfigError as error:
        fault = Fault(FaultKind.FAILED, step.title, str(error))
    except OSError as error:
        fault = Fault(FaultKind.FAILED, step.title, f"not written: {error.strerror or error}")
    else:
        return StepResult(step, 0, cluster.clock.steady() - began, f"evidence kept: {path}")
    return StepResult(step, 1, cluster.clock.steady() - began, "", fault)
