"""What a plan that launches says of AWS before it does: pass, warn and fail with numbers, and never late."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from actions import ahead
from actions.plan_lines import plan_lines, plan_record
from actions.spec import Options, Plan, Scope, Targets
from actions.table import action
from cockpit import preflights
from cockpit.cluster import Cluster
from cockpit.preflight_models import Result, Verdict
from cockpit.preflights import Flight
from screens.plan_text import head_lines, plan_text
from tests.aws.moto_cluster import MotoCluster
from tests.still import still_cluster

SCALE = action("scale")


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def plan_of(cluster: Cluster) -> Plan:
    return SCALE.plan(cluster, Targets(Scope.QUEUE, ("gpu",)), Options(count=10))


def told(lines: Any) -> str:
    return "\n".join("".join(piece if isinstance(piece, str) else piece[0] for piece in line) for line in lines)


def test_a_scale_plan_tells_what_aws_would_say_with_numbers(moto: MotoCluster) -> None:
    cluster, _, _ = still_cluster(moto.config, scenario="calm")
    cluster.read_once()
    plan = plan_of(cluster)
    text = "\n".join(plan_lines(plan))
    assert "Before the launch, by AWS" in text
    assert "quota" in text
    assert plan_record(plan)["ahead"] == list(plan.ahead)
    assert all(line.split(" ", 1)[0] in ("pass", "warn", "fail", "unknown") for line in plan.ahead)


def test_what_fails_stands_at_the_top_and_the_worst_first(moto: MotoCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _, _ = still_cluster(moto.config, scenario="calm")
    cluster.read_once()
    verdicts = (
        Verdict("zone", Result.PASS, "offered"),
        Verdict("quota", Result.FAIL, "needs 768 vCPU, 100 left", "ask for more"),
    )
    asked: list[object] = []

    def judged(cluster: Cluster, nodes: Any) -> tuple[Flight, ...]:
        asked.append(nodes)
        return (Flight(tuple(nodes), None, verdicts),)

    monkeypatch.setattr(preflights, "preflight", judged)
    plan = plan_of(cluster)
    assert plan.ahead == ("fail     quota: needs 768 vCPU, 100 left → ask for more", "pass     zone: offered")
    assert "AWS would refuse it: 1 check below fails" in told(head_lines(plan))
    assert "Before the launch, by AWS: 1 fail, 1 pass" in told(plan_text(plan))
    assert plan.again is not None
    assert plan.again().ahead == plan.ahead
    assert len(asked) == 1  # planning again before the run asks nothing anew


def test_without_aws_nothing_is_said_and_a_hanging_aws_holds_up_nobody(
    moto: MotoCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, _, _ = still_cluster(scenario="calm")
    cluster.read_once()
    assert plan_of(cluster).ahead == ()
    cluster, _, _ = still_cluster(moto.config, scenario="calm")
    cluster.read_once()
    hangs = threading.Event()
    monkeypatch.setattr(preflights, "preflight", lambda cluster, nodes: hangs.wait(30) and ())
    monkeypatch.setattr(ahead, "DEADLINE_S", 0.05)
    try:
        (line,) = plan_of(cluster).ahead
    finally:
        hangs.set()
    assert line.startswith("unknown  AWS did not answer within")
