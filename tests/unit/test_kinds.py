"""What each kind of cluster makes of a drained, replaced or rebooted node."""

from __future__ import annotations

import pytest

from cockpit.kinds import ALL, kind_named

PC, POD, PLAIN = (kind_named(name) for name in ("parallelcluster", "hyperpod", "slurm"))


def test_only_parallelcluster_takes_a_drained_node_away() -> None:
    assert "launches a new one" in PC.fate_of_drained("gpu-st-p5-1")
    assert "terminates the instance; the reason is lost" in PC.fate_of_drained("gpu-dy-p5-1")
    assert POD.fate_of_drained("ip-10-1-2-3") == PLAIN.fate_of_drained("n1") == ""


@pytest.mark.parametrize(
    ("kind", "node", "now", "state", "reason", "kills"),
    [
        (PC, "gpu-st-p5-1", False, "drain", "", False),
        (PC, "gpu-dy-p5-1", False, "power_down_asap", "", False),
        (PC, "gpu-st-p5-1", True, "power_down_force", "", True),
        (PC, "gpu-dy-p5-1", True, "power_down_force", "", True),
        (POD, "ip-10-1-2-3", False, "fail", "Action:Replace", False),
        (POD, "ip-10-1-2-3", True, "down", "Action:Replace", True),
        (PLAIN, "gpu-1", False, "power_down_asap", "", False),
    ],
)
def test_replacements(kind: object, node: str, now: bool, state: str, reason: str, kills: bool) -> None:
    change = kind.replacement(node, cloud=True, now=now)  # type: ignore[attr-defined]
    assert (change.state, change.reason, change.kills_jobs) == (state, reason, kills)


def test_nobody_replaces_a_plain_node_without_power_saving() -> None:
    assert PLAIN.replacement("gpu-1", cloud=False, now=True) is None


def test_reboots() -> None:
    assert PC.reboot("gpu-st-p5-1") is None
    change = POD.reboot("ip-10-1-2-3")
    assert change is not None
    assert (change.state, change.reason) == ("fail", "Action:Reboot")
    assert "before 3.6" in PC.reboot_warning((22, 5, 8))
    assert PC.reboot_warning((23, 2, 7)) == PC.reboot_warning((0, 0, 0)) == PLAIN.reboot_warning((22, 5, 8)) == ""


def test_maint_is_kept_from_parallelcluster_and_inactive_too() -> None:
    assert "maint" not in PC.quarantine_flags()
    assert "maint" in PLAIN.quarantine_flags()
    assert [bool(kind.inactive_danger()) for kind in ALL] == [True, False, False]


def test_the_edit_counts_the_resource_that_grows() -> None:
    members = [f"gpu-st-p5-{n}" for n in range(1, 5)] + [f"gpu-dy-p5-{n}" for n in range(1, 9)] + ["gpu-dy-g6-1"]
    lines = PC.size_for_good("gpu", members, 6, "prod", "")
    assert "        - Name: p5" in lines
    assert "          MinCount: 5    # is 4: so many are always up" in lines  # one of the six is g6's
    assert "          MaxCount: 13    # is 12" in lines
    assert any(line.strip().startswith("pcluster update-cluster --cluster-name prod --cluster-conf") for line in lines)
    smaller = PC.size_for_good("gpu", members, 3, "prod", "")
    assert any("QueueUpdateStrategy: TERMINATE" in line for line in smaller)
    assert PC.size_for_good("other", ["n1"], 3, "prod", "") == ()
