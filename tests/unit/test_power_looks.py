"""A stop after the jobs closes queues first: without knowing them it is no plan."""

from __future__ import annotations

import pytest

from cockpit.fleet_power import How
from cockpit.models import FaultError
from cockpit.power_looks import stop_plan
from tests.still import still_cluster


def test_queues_that_slurm_has_not_told_cannot_be_closed() -> None:
    cluster, _, _ = still_cluster()
    with pytest.raises(FaultError, match="the queues to close"):
        stop_plan(cluster, How.AFTER_JOBS)
