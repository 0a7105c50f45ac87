"""What the table of actions offers: by key, by scope, with the reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from actions.runner import Runner
from actions.spec import Context, Scope, Targets
from actions.table import ACTIONS, action, by_key
from tests.unit.action_kit import Kit, waiting

pytestmark = pytest.mark.usefixtures("own_state")


def test_an_action_of_another_cluster_is_refused(kit: Kit, tmp_path: Path) -> None:
    plan = kit.plan("drain", "gpu-st-p5-5", reason="x")
    kit.cluster.config = type(kit.cluster.config)("other")
    assert "the plan is for still, this is other" in Runner(kit.cluster, audit=kit.log).run(plan, "1", print).text


def test_a_wrong_scope_is_told(kit: Kit) -> None:
    context = Context(kit.cluster, Targets(Scope.JOB, ("1",)))
    assert action("drain").disabled_reason(context) == "it is for a node"


def test_a_key_offers_what_is_possible_and_says_why_the_rest_is_not(kit: Kit) -> None:
    def reasons(key: str, targets: Targets) -> dict[str, str | None]:
        return {each.id: each.disabled_reason(Context(kit.cluster, targets)) for each in by_key(key)}

    held = kit.job(lambda job: job.reason.startswith("JobHeld")).label
    assert reasons("L", kit.jobs(held)) == {"hold": "is held already", "release": None}
    assert reasons("L", kit.jobs(kit.job(waiting).label)) == {"hold": None, "release": "is pending, not held"}
    assert reasons("R", kit.nodes("gpu-st-p5-5")) == {"resume": "gpu-st-p5-5 is allocated"}
    assert reasons("R", kit.nodes("gpu-st-p5-[5-6]")) == {"resume": None}


def test_the_table_keeps_the_rules_of_keys() -> None:
    ids = [each.id for each in ACTIONS]
    assert len(ids) == len(set(ids))
    for each in ACTIONS:
        assert each.key == "" or each.key.isupper()  # lower case never changes a cluster
        assert each.help.endswith(".")
        assert each.tier >= 1
    assert {each.key for each in ACTIONS} - {""} == set("DRBTSKQLP")
