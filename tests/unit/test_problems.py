"""Problems: worst first, alike ones as one, each with its next step; sources before all the rest."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.aws_models import AwsReading, AwsScope, FleetItem, Part
from cockpit.models import (
    Fault,
    FaultError,
    FaultKind,
    Health,
    Job,
    NodesReading,
    Partition,
    QueueReading,
)
from cockpit.problems import Ages, of_slurm
from tests.still import still_cluster


def test_a_busy_cluster_names_its_troubles_worst_first() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    found = cluster.problems()
    assert [(problem.health, problem.subject) for problem in found] == [
        (Health.CRITICAL, "gpu-st-p5-8"),
        (Health.WARN, "job 48236"),
        (Health.DRAINED, "gpu-st-p5-6"),
    ]
    assert all(problem.next_step for problem in found)
    assert [problem.since is not None for problem in found] == [True, False, True]  # Slurm dates nodes, not jobs
    assert "DependencyNeverSatisfied" in found[1].title


def test_a_quiet_cluster_has_none() -> None:
    cluster, _, _ = still_cluster(scenario="calm")
    cluster.read_once()
    assert cluster.problems() == ()


def test_sources_that_fail_for_the_same_cause_are_one_problem_and_come_first() -> None:
    cluster, head, clock = still_cluster()
    cluster.read_once()
    head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "reaching head", "connection refused", "is sshd up?"))
    cluster.read_once()
    clock.time += 3600
    worst = cluster.problems()[0]
    assert (worst.subject, worst.title, worst.health) == ("nodes, queue, slurm", "connection refused", Health.CRITICAL)
    assert worst.next_step == "is sshd up?"
    assert "3600 s ago" in worst.evidence
    head.fault = None
    cluster.read_once()
    assert not [problem for problem in cluster.problems() if problem.key.startswith("source:")]


def test_the_age_of_a_problem_is_kept_while_it_lasts_and_forgotten_after() -> None:
    ages, (cluster, _, _) = Ages(), still_cluster()
    cluster.read_once()
    undated = [replace(problem, since=None) for problem in cluster.problems()]
    old, new = undated[:1], undated[1:]
    assert [p.since for p in ages.dated(old, 100.0)] == [None]  # there at the first look: since when, nobody knows
    assert [p.since for p in ages.dated(old + new, 200.0)] == [None, 200.0, 200.0]
    assert [p.since for p in ages.dated(old + new, 300.0)] == [None, 200.0, 200.0]
    ages.dated([], 400.0)
    assert ages.dated(old, 500.0)[0].since == 500.0


@pytest.mark.parametrize(
    ("status", "kept"),
    [
        ("RUNNING", ["queue:cpu:down", "queue:gpu:inactive"]),
        ("STOP_REQUESTED", ["queue:cpu:down"]),
        ("STOPPED", ["queue:cpu:down"]),
        (None, ["queue:cpu:down", "queue:gpu:inactive"]),
    ],
)
@pytest.mark.parametrize("asked", [True, False])
def test_queues_of_a_fleet_that_was_stopped_are_as_wished(status: str | None, kept: list[str], asked: bool) -> None:
    closed = (Partition("gpu", "inactive"), Partition("cpu", "down"))
    waiting = tuple(Job(number, "PD", partitions=(name,)) for number, name in enumerate(("gpu", "cpu"), 1))
    aws = AwsReading(AwsScope(), fleet=Part(FleetItem(status) if status else None))
    told = {"nodes": NodesReading((), closed), "queue": QueueReading(waiting, ()), "aws": aws if asked else None}
    store: Any = SimpleNamespace(state=lambda key: SimpleNamespace(data=told[key.name]))
    assert [one.key for one in of_slurm(store)] == (kept if asked else ["queue:cpu:down", "queue:gpu:inactive"])
