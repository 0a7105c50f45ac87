"""The way back: through the same runner, to the very state that was there before."""

from __future__ import annotations

from pathlib import Path

import pytest

from actions.errors import ActionError
from actions.undo import undo_of
from tests.unit.action_kit import Kit, waiting

pytestmark = pytest.mark.usefixtures("own_state")


def undo(kit: Kit) -> None:
    kit.read()
    result = kit.run(undo_of(kit.log.entries()[-1], kit.cluster))
    assert result.outcome == "ok", result
    kit.read()


def test_drain_and_back(kit: Kit) -> None:
    kit.do("drain", "gpu-st-p5-[4-5]", reason="x")
    undo(kit)
    assert not any(kit.head.sim.nodes[f"gpu-st-p5-{number}"].drain for number in (4, 5))


def test_what_was_drained_before_stays_so_when_the_drain_of_others_is_undone(kit: Kit) -> None:
    kit.do("drain", "gpu-st-p5-[5-6]", reason="x")  # 6 is drained already
    undo(kit)
    assert kit.head.sim.nodes["gpu-st-p5-6"].drain
    assert not kit.head.sim.nodes["gpu-st-p5-5"].drain


def test_a_resume_undone_restores_the_reason_word_for_word(kit: Kit) -> None:
    reason = kit.head.sim.nodes["gpu-st-p5-6"].reason
    kit.do("resume", "gpu-st-p5-6")
    assert kit.head.sim.nodes["gpu-st-p5-6"].reason == ""
    undo(kit)
    assert kit.head.sim.nodes["gpu-st-p5-6"].reason == reason


def test_a_reason_longer_than_one_may_type_comes_back_too(kit: Kit) -> None:
    reason = "NHC: " + "check_ps_service failed; " * 20
    kit.head.sim.nodes["gpu-st-p5-6"].reason = reason.strip()
    kit.do("resume", "gpu-st-p5-6")
    undo(kit)
    assert kit.head.sim.nodes["gpu-st-p5-6"].reason == reason.strip()


def test_a_node_that_was_drained_before_its_quarantine_is_so_again(tmp_path: Path) -> None:
    kit = Kit(tmp_path, "parallelcluster")
    kit.do("quarantine", "gpu-st-p5-[5-6]", reason="look")
    assert not kit.head.sim.nodes["gpu-st-p5-6"].drain
    back = undo_of(kit.log.entries()[-1], kit.cluster)
    assert "state=drain" in back.steps[0].argv  # before the reservation ends
    undo(kit)
    node = kit.head.sim.nodes["gpu-st-p5-6"]
    assert (node.drain, node.reason.startswith("INC-4821")) == (True, True)
    assert not kit.head.sim.nodes["gpu-st-p5-5"].drain


def test_queue_state_and_back(kit: Kit) -> None:
    kit.do("queue", "gpu", state="DRAIN")
    kit.do("queue", "gpu", state="DOWN")
    undo(kit)
    assert kit.head.sim.queue_states == {"gpu": "DRAIN"}


def test_hold_and_back(kit: Kit) -> None:
    job = kit.job(waiting)
    kit.do("hold", job.label)
    assert kit.head.sim.jobs[job.job_id].ask.held
    undo(kit)
    assert not kit.head.sim.jobs[job.job_id].ask.held


def test_quarantine_and_back_lets_go_only_what_it_kept_up(kit: Kit) -> None:
    kit.do("pin", "gpu-dy-p5-1")
    kit.do("quarantine", "gpu-dy-p5-[1-2]", reason="x")
    sim = kit.head.sim
    assert set(sim.reservations) == {"cockpit-gpu-dy-p5-1", "cockpit-gpu-dy-p5-2"}
    assert {"gpu-dy-p5-1", "gpu-dy-p5-2"} <= sim.kept_up
    undo_plan = undo_of(kit.log.entries()[-1], kit.cluster)
    kit.runner.audit.path.parent.mkdir(parents=True, exist_ok=True)
    assert undo_plan.count == 2
    undo(kit)
    assert sim.reservations == {}
    assert "gpu-dy-p5-1" in sim.kept_up


def test_pin_and_back(kit: Kit) -> None:
    kit.do("pin", "gpu-dy-p5-2")
    undo(kit)
    assert "gpu-dy-p5-2" not in kit.head.sim.kept_up


def test_a_reboot_is_cancelled_while_jobs_run(kit: Kit) -> None:
    kit.do("reboot", "gpu-st-p5-5", reason="x")
    assert kit.head.sim.nodes["gpu-st-p5-5"].reboot == "requested"
    undo(kit)
    assert kit.head.sim.nodes["gpu-st-p5-5"].reboot == ""


def test_there_is_no_way_back_from_a_cancel(kit: Kit) -> None:
    kit.do("cancel", kit.job(waiting).label)
    with pytest.raises(ActionError, match="there is no way back from cancel"):
        undo_of(kit.log.entries()[-1], kit.cluster)


def test_nothing_to_take_back_says_why(kit: Kit) -> None:
    kit.do("drain", "gpu-st-p5-5", reason="x")
    kit.do("resume", "gpu-st-p5-5")
    with pytest.raises(ActionError, match="it needs no resume"):
        undo_of(kit.log.entries()[0], kit.cluster)
    kit.cluster.lock.forced = True
    kit.run(kit.plan("drain", "gpu-st-p5-4", reason="x"))
    with pytest.raises(ActionError, match="was refused"):
        undo_of(kit.log.entries()[-1], kit.cluster)
