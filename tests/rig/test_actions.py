"""Actions on a real Slurm over real SSH; what is true afterwards is asked of scontrol here, never of the cockpit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actions.audit import AuditLog
from actions.outcome import Result
from actions.runner import Runner
from actions.spec import Options
from actions.table import action
from actions.targets import job_targets, node_targets, queue_target
from actions.undo import undo_of
from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.formats.hostlist import fold
from tests.rig import Rig

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]


@pytest.fixture(autouse=True)
def _private_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SUDO_USER", "maria")


def cockpit(rig: Rig, *words: str, code: int = 0) -> dict[str, Any]:
    """Run a change from the command line, without questions; its JSON."""
    argv = [sys.executable, "-m", "cockpit", "--config", str(rig.config()), *words, "--yes", "--json"]
    done = subprocess.run(
        argv, capture_output=True, timeout=180, env=dict(os.environ), stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == code, (done.returncode, done.stdout.decode(), done.stderr.decode())
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def slurm(rig: Rig, *words: str) -> str:
    return rig.slurm(*words).stdout.decode(errors="replace")


def state(rig: Rig, node: str) -> str:
    return slurm(rig, "sinfo", "-h", "-N", "-n", node, "-O", "StateComplete:0").split("\n")[0].strip()


def reason(rig: Rig, node: str) -> str:
    return slurm(rig, "sinfo", "-h", "-N", "-n", node, "-O", "Reason:0").split("\n")[0].strip()


def job_state(rig: Rig, job: int | str) -> str:
    return slurm(rig, "squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T|%r").strip()


def until(true: Callable[[], object], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < end, "did not come true in time"
        time.sleep(0.1)


def test_drain_and_resume_with_a_reason_full_of_traps(rig: Rig) -> None:
    words = 'rail 5 "slow" $(id) `id`; it\'s = [a@b], ends in "'
    told = cockpit(rig, "drain", "gpu-st-p5-[1-2]", "--reason", words)
    assert told["result"]["outcome"] == "ok"
    for node in ("gpu-st-p5-1", "gpu-st-p5-2"):
        assert state(rig, node) == "idle+cloud+drain"
        assert reason(rig, node) == f"maria: {words}"
    back = cockpit(rig, "undo", told["result"]["audit_id"])
    assert back["result"]["outcome"] == "ok"
    assert state(rig, "gpu-st-p5-1") == "idle+cloud"
    again = cockpit(rig, "undo", back["result"]["audit_id"])  # drained anew, with the very same words
    assert again["result"]["outcome"] == "ok"
    assert reason(rig, "gpu-st-p5-2") == f"maria: {words}"
    cockpit(rig, "resume", "gpu-st-p5-[1-2]")
    assert state(rig, "gpu-st-p5-2") == "idle+cloud"


def test_a_dry_run_and_read_only_change_nothing(rig: Rig) -> None:
    job = rig.submit("sleep 300", nodelist="gpu-st-p5-1", gpus=1, job_name="train")
    until(lambda: job_state(rig, job).startswith("RUNNING"))
    told = cockpit(rig, "drain", "gpu-st-p5-1", "--reason", "x", "--dry-run")
    assert [each["job_id"] for each in told["plan"]["jobs"]] == [job]
    assert told["plan"]["commands"][0][-3:] == ["nodename=gpu-st-p5-1", "state=drain", "reason=maria: x"]
    cockpit(rig, "--read-only", "drain", "gpu-st-p5-1", "--reason", "x", code=4)
    assert "drain" not in state(rig, "gpu-st-p5-1")


def test_scale_up_by_two_and_down_again(rig: Rig) -> None:
    until(lambda: all(state(rig, f"gpu-dy-p5-{n}").endswith("powered_down") for n in (1, 2)))
    told = cockpit(rig, "scale", "gpu", "6")
    assert told["result"]["outcome"] == "ok"
    assert {state(rig, f"gpu-dy-p5-{n}") for n in (1, 2)} == {"idle+cloud"}
    assert told["result"]["targets"]["gpu-dy-p5-1"]["text"].startswith("registered after ")
    down = cockpit(rig, "scale", "gpu", "4")
    assert down["result"]["outcome"] == "ok"
    assert {state(rig, f"gpu-dy-p5-{n}") for n in (1, 2)} == {"idle+cloud+powered_down"}
    refused = subprocess.run(
        [sys.executable, "-m", "cockpit", "--config", str(rig.config()), "scale", "gpu", "6", "--keep", "--dry-run"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "22.05" in slurm(rig, "sinfo", "--version"):
        assert refused.returncode == 4
        assert "cannot change SuspendExcNodes at run time" in refused.stderr


def test_jobs_are_held_released_requeued_and_cancelled(rig: Rig) -> None:
    job, other = (rig.submit("sleep 300", gpus=1) for _ in range(2))
    wait = rig.submit("sleep 300", gpus=1, begin="now+1hour")
    until(lambda: job_state(rig, other).startswith("RUNNING"))
    assert cockpit(rig, "hold", str(wait))["result"]["outcome"] == "ok"
    assert job_state(rig, wait) in ("PENDING|JobHeldAdmin", "PENDING|JobHeldUser")  # root owns it: either
    assert cockpit(rig, "release", str(wait))["result"]["outcome"] == "ok"
    assert "Held" not in job_state(rig, wait)
    assert cockpit(rig, "nice", "100", str(wait))["result"]["outcome"] == "ok"
    assert "Nice=100 " in slurm(rig, "scontrol", "show", "job", str(wait))
    assert cockpit(rig, "top", str(wait))["result"]["outcome"] == "ok"
    assert cockpit(rig, "requeue", str(job))["result"]["outcome"] == "ok"
    shown = slurm(rig, "scontrol", "show", "job", str(job))
    assert "Restarts=1 " in shown
    assert cockpit(rig, "requeue-hold", str(other))["result"]["outcome"] == "ok"
    assert "Held" in job_state(rig, other) or "held" in job_state(rig, other)
    told = cockpit(rig, "cancel", str(job), str(other), str(wait), "999999", "--confirm", "rig")
    assert told["result"]["outcome"] == "ok"
    assert told["plan"]["left_out"] == [{"name": "999999", "why": "is not in the queue (any more)"}]
    assert {job_state(rig, each).split("|")[0] for each in (job, other, wait)} <= {"CANCELLED", "COMPLETING"}


def test_a_bad_node_is_drained_and_its_job_requeued_elsewhere_with_the_evidence_kept(rig: Rig, tmp_path: Path) -> None:
    job = rig.submit("sleep 300", gpus=1, requeue=True)
    until(lambda: job_state(rig, job).startswith("RUNNING"))
    shown = slurm(rig, "scontrol", "show", "job", str(job))
    bad = next(word.partition("=")[2] for word in shown.split() if word.startswith("NodeList="))
    try:
        told = cockpit(
            rig, "drain-requeue", str(job), "--nodes", bad, "--reason", "job hung: rank 0 is gone", "--capture"
        )
        assert told["result"]["outcome"] == "ok", told["result"]
        assert told["plan"]["count"] == 2
        assert "drain" in state(rig, bad)
        assert reason(rig, bad) == "maria: job hung: rank 0 is gone"
        shown = slurm(rig, "scontrol", "show", "job", str(job))
        assert "Restarts=1 " in shown
        assert "Held" not in shown
        assert f"NodeList={bad}\n" not in shown
        kept = [note for note in told["result"]["notes"] if note.startswith("evidence kept: ")]
        assert Path(kept[0].partition(": ")[2]).stat().st_size > 500
        assert cockpit(rig, "undo", told["result"]["audit_id"])["result"]["outcome"] == "ok"
        assert "drain" not in state(rig, bad)
    finally:
        rig.slurm("scontrol", "update", f"nodename={bad}", "state=resume")
        rig.slurm("scancel", str(job))


def test_parts_of_an_array_and_a_signal(rig: Rig) -> None:
    array = rig.submit("trap 'touch $HOME/usr1-$SLURM_JOB_ID' USR1; while :; do sleep 0.2; done", array="1-8%1", gpus=1)
    until(lambda: "RUNNING" in job_state(rig, array))
    assert cockpit(rig, "hold", f"{array}_[4-6]")["result"]["outcome"] == "ok"
    assert "JobHeld" in slurm(rig, "scontrol", "show", "job", f"{array}_5")
    assert "JobHeld" not in slurm(rig, "scontrol", "show", "job", f"{array}_3")
    old = "22.05" in slurm(rig, "sinfo", "--version")  # there scancel delivers it and then never ends
    told = cockpit(rig, "cancel", f"{array}_", "--signal", "USR1", "--batch", code=1 if old else 0)
    assert told["result"]["outcome"] == ("unverified" if old else "ok")
    running = slurm(rig, "squeue", "-h", "-t", "R", "-j", str(array), "-o", "%A").split()
    until(lambda: all((rig.state / "home" / "root" / f"usr1-{each}").exists() for each in running))
    assert cockpit(rig, "cancel", f"{array}_[4-5]")["result"]["outcome"] == "ok"
    left = slurm(rig, "squeue", "-h", "-r", "-t", "PD", "-j", str(array), "-o", "%K").split()
    assert sorted(left) == ["2", "3", "6", "7", "8"]


def test_a_queue_down_and_back(rig: Rig) -> None:
    told = cockpit(rig, "queue", "down", "gpu")
    assert "State=DOWN" in slurm(rig, "scontrol", "show", "partition", "gpu")
    assert cockpit(rig, "undo", told["result"]["audit_id"])["result"]["outcome"] == "ok"
    assert "State=UP" in slurm(rig, "scontrol", "show", "partition", "gpu")


def test_quarantine_keeps_jobs_away_and_ends(rig: Rig) -> None:
    try:
        told = cockpit(rig, "quarantine", "gpu-st-p5-3", "--reason", "look at rail 5")
        assert told["result"]["outcome"] == "ok"
        assert "Nodes=gpu-st-p5-3 " in slurm(rig, "scontrol", "-o", "show", "reservation", "cockpit-gpu-st-p5-3")
        job = rig.submit("sleep 60", nodelist="gpu-st-p5-3", gpus=1)
        time.sleep(2)
        assert job_state(rig, job).startswith("PENDING")
        assert cockpit(rig, "unquarantine", "gpu-st-p5-3")["result"]["outcome"] == "ok"
        assert slurm(rig, "scontrol", "show", "reservation").startswith("No reservations")
    finally:
        rig.slurm("scontrol", "delete", "reservationname=cockpit-gpu-st-p5-3")


def test_a_reboot_is_seen_through(rig: Rig) -> None:
    told = cockpit(rig, "reboot", "gpu-st-p5-4", "--reason", "driver", "--confirm", "rig")
    assert told["result"]["outcome"] == "ok"
    assert told["result"]["targets"]["gpu-st-p5-4"]["text"] == "rebooted, idle"
    assert state(rig, "gpu-st-p5-4") == "idle+cloud"


def test_a_reboot_that_waits_for_a_job_is_told_and_taken_back(rig: Rig) -> None:
    job = rig.submit("sleep 300", nodelist="gpu-st-p5-2", gpus=1)
    until(lambda: job_state(rig, job).startswith("RUNNING"))
    told = cockpit(rig, "reboot", "gpu-st-p5-2", "--reason", "driver", "--confirm", "rig")
    assert told["result"]["targets"]["gpu-st-p5-2"]["state"] == "underway"
    assert "reboot_requested" in state(rig, "gpu-st-p5-2")
    assert cockpit(rig, "undo", told["result"]["audit_id"])["result"]["outcome"] == "ok"
    assert "reboot" not in state(rig, "gpu-st-p5-2")
    assert job_state(rig, job).startswith("RUNNING")


def test_down_kills_and_a_replacement_now_powers_down(rig: Rig) -> None:
    job = rig.submit("sleep 300", nodelist="gpu-st-p5-1", gpus=1)
    until(lambda: job_state(rig, job).startswith("RUNNING"))
    told = cockpit(rig, "replace", "gpu-st-p5-1", "--now", "--reason", "dead GPU", "--confirm", "rig")
    assert told["result"]["outcome"] == "ok"
    assert told["plan"]["gpu_hours_lost"] is not None
    assert not job_state(rig, job).startswith("RUNNING")
    assert "power" in state(rig, "gpu-st-p5-1")


def cluster_of(rig: Rig, name: str, **config: Any) -> Cluster:
    cluster = Cluster(next(iter(load_config(rig.config(name, **config)).clusters.values())), watch_gpus=False)
    cluster.read_once()
    return cluster


def test_a_controller_that_hangs_in_the_middle_is_told_and_looked_at_later(rig: Rig, tmp_path: Path) -> None:
    cluster = cluster_of(rig, "hung.yaml")
    log = AuditLog("rig", tmp_path)
    plan = action("drain").plan(cluster, node_targets(cluster, "gpu-st-p5-1"), Options(reason="x"))
    results: list[Result] = []

    def freeze_first(cluster_: Cluster, step: Any) -> Any:
        from actions.executors import on_head

        rig.freeze("slurmctld")
        threading.Timer(14.0, lambda: rig.thaw("slurmctld")).start()
        return on_head(cluster_, step)

    try:
        runner = Runner(cluster, audit=log, executors={"head": freeze_first})
        results.append(runner.run(plan, "1", lambda _: None))
    finally:
        rig.thaw("slurmctld")
        cluster.stop()
    # The client gave up, the change was made when the controller woke up, and that is what counts.
    assert results[0].outcome == "ok", results
    assert "drain" in state(rig, "gpu-st-p5-1")
    assert [entry.outcome for entry in log.entries()] == ["ok"]


def test_a_login_without_rights_says_so_and_changes_nothing(rig: Rig, tmp_path: Path) -> None:
    job = rig.submit("sleep 300", gpus=1, uid=20001)
    until(lambda: job_state(rig, job).startswith("RUNNING"))
    cluster = cluster_of(rig, "bob.yaml")
    cluster.slurm.facts()
    real = cluster.head.run

    def as_bob(argv: Any, **options: Any) -> Any:
        return real(["setpriv", "--reuid=20002", "--regid=100", "--clear-groups", *argv], **options)

    plan = action("cancel").plan(cluster, job_targets([str(job)]), Options())
    nodes = action("drain").plan(cluster, node_targets(cluster, "gpu-st-p5-1"), Options(reason="x"))
    cluster.head.run = as_bob  # type: ignore[method-assign]
    runner = Runner(cluster, audit=AuditLog("rig", tmp_path))
    try:
        for refused in (plan, nodes):
            result = runner.run(refused, refused.confirm.word, lambda _: None)
            assert result.outcome == "failed", result
            assert "Slurm does not let this login do it" in result.notes[0]
    finally:
        cluster.stop()
    assert job_state(rig, job).startswith("RUNNING")
    assert "drain" not in state(rig, "gpu-st-p5-1")


def test_undo_on_the_same_cluster_object(rig: Rig, tmp_path: Path) -> None:
    cluster = cluster_of(rig, "undo.yaml")
    log = AuditLog("rig", tmp_path)
    runner = Runner(cluster, audit=log)
    try:
        plan = action("queue").plan(cluster, queue_target(cluster, "prio"), Options(state="DRAIN"))
        assert runner.run(plan, plan.confirm.word, lambda _: None).ok
        assert "State=DRAIN" in slurm(rig, "scontrol", "show", "partition", "prio")
        cluster.read_once()
        back = undo_of(log.entries()[-1], cluster)
        assert runner.run(back, back.confirm.word, lambda _: None).ok
        assert "State=UP" in slurm(rig, "scontrol", "show", "partition", "prio")
    finally:
        cluster.stop()


@pytest.mark.parametrize(
    "line",
    [
        "scontrol update nodename=gpu-st-p5-1 state=drain",
        "scontrol update nodename=gpu-st-p5-1 state=drain reason=",
        "scontrol update nodename=nope state=drain reason=x",
        "scontrol update nodename=gpu-st-p5-1 state=resume",
        "scontrol update nodename=gpu-st-p5-1 state=undrain",
        "scontrol update partitionname=nope state=UP",
        "scontrol update partitionname=gpu state=BOGUS",
        "scontrol update partitionname=gpu state=UP",
        "scontrol update foo=bar",
        "scontrol delete reservationname=nope",
        "scontrol cancel_reboot gpu-st-p5-1",
        "scontrol reboot asap nextstate=resume reason=x nope",
        "scontrol hold 999999,999998",
        "scontrol release 999999,999998",
        "scontrol requeue 999999",
        "scontrol update jobid=999999 nice=1",
        "scancel 999999",
        "scancel abc",
        "scancel --signal=BOGUS 999999",
        "scontrol show reservation",
        "scontrol -o show reservation nope",
    ],
)
def test_the_demo_refuses_with_the_same_words(rig: Rig, line: str) -> None:
    from cockpit.demo.programs.registry import run
    from cockpit.demo.sim import Simulation

    real = rig.slurm(*line.split(" "))
    demo = run(Simulation(scenario="calm"), line.split(" "), {}, "demo-head", root=True)
    assert (demo.rc, demo.stdout, demo.stderr) == (real.returncode, real.stdout, real.stderr)


def test_slurm_reads_every_list_that_is_folded(rig: Rig) -> None:
    names = ["gpu-st-p5-1", "gpu-st-p5-2", "n08", "n9", "n010", "rack1n06-ib", "rack1n07-ib", "ip-10-0-1-2", "login",
             "h99999", "h100000", "big100000000000000004", "big100000000000000005", "a1b2", "a1b3"]  # fmt: skip
    assert sorted(slurm(rig, "scontrol", "show", "hostnames", fold(names)).split()) == sorted(names)


def test_of_a_list_that_slurm_does_in_part_the_part_can_be_undone(rig: Rig) -> None:
    """One node is resumed by somebody else in the very moment: scontrol does the others and exits with 1."""
    slurm(rig, "scontrol", "update", "nodename=gpu-st-p5-[1-2]", "state=drain", "reason=x")
    cluster = Cluster(load_config(rig.config()).clusters["rig"], watch_gpus=False)
    try:
        cluster.read_once()
        plan = action("resume").plan(cluster, node_targets(cluster, "gpu-st-p5-[1-2]"))
        slurm(rig, "scontrol", "update", "nodename=gpu-st-p5-2", "state=resume")
        result = Runner(cluster).run(replace(plan, again=None), "2", lambda _: None)
        assert result.steps[0].rc == 1
        assert "gpu-st-p5-1" in result.changed
        cluster.read_once()
        back = undo_of(AuditLog("rig").entries()[-1], cluster)
        assert back.steps[0].argv[-2:] == ("state=drain", "reason=x")
    finally:
        cluster.stop()
