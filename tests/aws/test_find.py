"""ParallelCluster's stacks as candidates for `cockpit init`."""

from __future__ import annotations

import pytest

from cockpit.setup.find import find
from tests.aws.moto_cluster import REGION, MotoCluster


def test_a_stack_is_a_candidate_with_its_heads_login(moto: MotoCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.setup.find.has_slurm", lambda: False)
    monkeypatch.setattr("cockpit.setup.find.ssh_hosts", lambda path: ())
    found = find(region=REGION, endpoint_url=moto.endpoint)
    (one,) = found.candidates
    assert found.fault is None
    assert (one.name, one.kind, one.region, one.stack) == ("prod", "parallelcluster", REGION, "prod")
    assert one.head.startswith("ubuntu@")


def test_aws_that_refuses_costs_only_its_own_part(moto: MotoCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.setup.find.has_slurm", lambda: True)
    monkeypatch.setattr("cockpit.setup.find.ssh_hosts", lambda path: ("box",))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    found = find(region=REGION, endpoint_url=moto.endpoint)
    assert [one.head for one in found.candidates] == ["local", "box"]
    assert found.fault is not None
