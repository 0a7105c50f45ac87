"""How the steps of a whole cluster's plan are carried out: orders to AWS, and waits between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from actions.outcome import StepResult
from actions.spec import Step
from cockpit.models import FaultError

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

AWS, WAIT = "aws", "wait"


def on_aws(cluster: Cluster, step: Step) -> StepResult:
    """Give one order to AWS, once; a lost race comes back as a fault and is not tried again."""
    from cockpit.sources.aws_power import carry_out

    return _done(cluster, step, lambda: carry_out(cluster.aws.calls(), step.argv))


def on_wait(cluster: Cluster, step: Step, tell: Callable[[str], None], sleep: Callable[[float], bool]) -> StepResult:
    """Wait until it is so, telling what is seen; `sleep` is True once the run was cancelled."""
    from cockpit.power_looks import waits

    return _done(cluster, step, lambda: waits(cluster).wait(step.argv, tell, sleep))


def _done(cluster: Cluster, step: Step, act: Callable[[], str]) -> StepResult:
    began = cluster.clock.steady()
    try:
        said = act()
    except FaultError as error:
        took_s = cluster.clock.steady() - began
        return StepResult(step, None, took_s, "", error.fault, frozenset(step.subjects))
    return StepResult(step, 0, cluster.clock.steady() - began, said)
