"""A controller that limits requests (rl_enable, Slurm 23.02 and later), by the words that Slurm has for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from actions.audit import AuditLog
from actions.runner import Runner
from actions.spec import Options
from actions.table import action
from actions.targets import node_targets
from cockpit.config import ClusterConfig
from cockpit.hosts.base import Completed
from cockpit.models import FaultKind
from cockpit.sources.slurm import QUEUE
from tests.faults.conftest import Seen
from tests.still import still_cluster

# slurm_errno.c of 23.02 and later, where SlurmctldParameters=rl_enable limits a user.
LIMITED = b"slurm_load_jobs error: Rate limit exceeded, please retry momentarily\n"


def test_requests_that_slurm_limits(seen: Seen) -> None:
    """rl_enable: mostly Slurm's client waits in silence; what it says when that is over is told as what it is."""
    cluster, head, clock = still_cluster()
    cluster.read_once()
    before = cluster.view.queue
    limits = Completed(1, b"", LIMITED, 0.2)
    head.answers["squeue"] = lambda argv: limits
    head.calls.clear()
    clock.time += 30
    cluster.read_once()
    error = cluster.store.state(QUEUE).error
    assert error is not None
    assert (error.kind, "limits how often" in error.why) == (FaultKind.THROTTLED, True)
    assert cluster.view.queue is before, "an outage is never an empty list"
    assert not [argv for argv in head.calls if "ping" in argv], "it is not asked even more"
    del head.answers["squeue"]
    cluster.read_once()
    assert cluster.store.state(QUEUE).error is None
    seen("named as what it is, the queue kept, no other request instead; live with the next answer")


def test_a_change_that_slurm_limits_is_sent_once(tmp_path: Path, seen: Seen) -> None:
    cluster, head, _ = still_cluster(ClusterConfig("still", kind="slurm"))
    cluster.read_once()
    plan = action("drain").plan(cluster, node_targets(cluster, "gpu-st-p5-1"), Options(reason="x"))
    sent: list[Sequence[str]] = []

    def limited(argv: Sequence[str]) -> Completed:
        sent.append(argv)
        return Completed(1, b"", LIMITED.replace(b"slurm_load_jobs", b"slurm_update"), 0.2)

    head.answers["scontrol"] = limited
    log = AuditLog("still", tmp_path)
    result = Runner(cluster, audit=log, sleep=lambda _: True).run(plan, plan.confirm.word, lambda _: None)
    assert len([argv for argv in sent if "update" in argv]) == 1
    assert result.outcome != "ok"
    assert any("limits how often" in note for note in result.notes), result
    (entry,) = log.entries()
    assert entry.outcome == result.outcome
    seen("a change is sent a single time, and the record says why it was not done")
