"""Explanations: every word of a state, what it means on this kind of cluster, what to do, the command that shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cockpit import problems
from cockpit.catalog.problems import problem_fact
from cockpit.catalog.reader import load
from cockpit.catalog.severity import Severity
from cockpit.catalog.xids import known_sxids, known_xids
from cockpit.formats.kernel_log import KernelEvent, KernelKind
from cockpit.formats.node_state import parse_state
from cockpit.kinds import ALL, kind_named
from cockpit.kinds.notes import kind_note, node_note
from cockpit.models import Fault, FaultError, FaultKind, Health, Problem
from cockpit.text import printable
from screens.detail_registry import details, explain
from screens.grid_model import cell_text
from screens.lines import Subject
from screens.queue_table import why_or_where
from tests.unit.details_cluster import (
    lead,
    leads_to,
    link_texts,
    row_named,
    texts,
    watched,
    with_events,
    with_gpu,
    with_text,
)

NODE = "gpu-st-p5-3"


def test_every_flag_of_a_node_is_told_in_plain_words() -> None:
    data = load("slurm_nodes")
    state = parse_state("+".join(["mixed", *data["flags"], "brand_new"]))
    cluster, _, _ = watched()
    assert cluster.view.nodes is not None
    odd = replace(cluster.view.nodes[0], state=state)
    cluster.view = replace(cluster.view, nodes=(odd,))
    told = texts(explain(cluster, Subject("node", odd.name)))
    for flag, sentence in data["flags"].items():
        assert flag in told
        assert sentence in told
    assert "'brand_new', which is not known here" in told


@pytest.mark.parametrize(
    ("flag", "words"), [("powering_down", "SuspendTimeout is over, 2m"), ("powering_up", "ResumeTimeout is over, 30m")]
)
def test_a_node_between_two_states_tells_what_ends_that(flag: str, words: str) -> None:
    cluster, _, _ = watched()
    assert cluster.view.nodes is not None
    odd = replace(cluster.view.nodes[0], state=parse_state(f"idle+cloud+{flag}"))
    cluster.view = replace(cluster.view, nodes=(odd,))
    subject = Subject("node", odd.name)
    assert words in texts(explain(cluster, subject))
    assert words in texts(details(cluster, subject))


@pytest.mark.parametrize("base", load("slurm_nodes")["bases"])
def test_every_base_state_is_told(base: str) -> None:
    cluster, _, _ = watched()
    assert cluster.view.nodes is not None
    odd = replace(cluster.view.nodes[0], state=parse_state(base))
    cluster.view = replace(cluster.view, nodes=(odd,))
    assert load("slurm_nodes")["bases"][base] in texts(explain(cluster, Subject("node", odd.name)))


def test_a_down_node_tells_who_wrote_its_reason_the_next_step_and_the_commands() -> None:
    cluster, _, _ = watched(kind="parallelcluster")
    told = texts(explain(cluster, Subject("node", "gpu-st-p5-8")))
    assert "written by a program: slurmd did not answer" in told
    assert "starts a new one and overwrites the reason" in told  # static, on ParallelCluster
    assert "reboot or replace it" in told
    assert "on the head    scontrol show node gpu-st-p5-8" in told
    assert "on gpu-st-p5-8  systemctl status slurmd" in told
    assert "written by a person, as root" in texts(explain(cluster, Subject("node", "gpu-st-p5-6")))


def test_what_a_drain_leads_to_is_told_by_kind_and_origin_and_not_without_a_kind() -> None:
    idle, busy = parse_state("idle+cloud+drain"), parse_state("mixed+cloud+drain")
    told = {kind.id: (node_note(kind, idle), node_note(kind, busy)) for kind in ALL}
    assert len(set(told.values())) == len(ALL)
    assert "ends its instance" in told["parallelcluster"][0]
    assert "leaves it alone while a job runs" in told["parallelcluster"][1]
    assert "Action:Replace" in told["hyperpod"][0]
    cloud = kind_named("parallelcluster")
    assert node_note(cloud, idle, "static") != node_note(cloud, idle, "dynamic")
    assert node_note(None, idle) == ""
    assert node_note(cloud, parse_state("idle+cloud")) == ""
    assert kind_note(cloud, "nothing like that") == ""


def test_notes_are_written_for_known_kinds_only() -> None:
    assert set(load("kind_notes")) == {kind.id for kind in ALL}


def test_a_job_that_waits_for_room_is_told_what_there_is() -> None:
    cluster, _, _ = watched()
    row = next(row for row in cluster.view.queue.rows if row.lead.reason == "Resources")  # type: ignore[union-attr]
    lines = explain(cluster, Subject("job", row.key))
    told = texts(lines)
    assert f"it asks for {row.lead.gpus} GPUs on {row.lead.node_count} nodes" in told
    assert "its queue has 0 free, 8 powered down, 16 out of service" in told
    assert {("node", "gpu-st-p5-8"), ("reason", "Resources")} <= leads_to(lines)
    assert f"squeue -j {row.key} --start" in told


def test_a_job_behind_others_names_who_is_ahead() -> None:
    cluster, _, _ = watched()
    lines = explain(cluster, Subject("job", row_named(cluster, "vit-g-distill").key))
    assert link_texts(with_text(lines, "  ahead of it"))
    assert "sprio -j" in texts(lines)


def test_a_job_with_an_odd_rank_is_told_what_that_does_to_it() -> None:
    cluster, _, _ = watched({NODE: with_gpu(5, util_pct=0.0)})
    told = texts(explain(cluster, Subject("job", lead(cluster).key)))
    assert "utilisation 0 % now" in told
    assert "the slowest sets the pace of all" in told


@pytest.mark.parametrize("code", [79, 13, 154, 119, 48, 99999])
def test_an_xid_is_told_with_what_every_source_says(code: int) -> None:
    cluster, _, _ = watched(kind="slurm")
    told = texts(explain(cluster, Subject("xid", str(code))))
    assert f"Xid {code}: " in told
    assert "meaning" in told
    assert ("what public sources say" in told) is (code != 99999)
    if code == 79:
        assert "stop and start its instance" in told
        assert "EKS node monitoring agent" in told
    if code == 13:
        assert "never a reason to drain" in told


def test_where_a_code_was_seen_leads_there() -> None:
    fault = KernelEvent(KernelKind.XID, Severity.CRITICAL, "NVRM: Xid 79 here", 1_764_499_000.0, "", 79, "0000:64:00")
    switch = KernelEvent(
        KernelKind.SXID, Severity.CRITICAL, "SXid there", 1_764_499_000.0, "", 20034, device="nvswitch1"
    )
    cluster, _, _ = watched({NODE: with_events(fault, switch)})
    assert ("gpu", f"{NODE}/1") in leads_to(explain(cluster, Subject("xid", "79")))
    assert ("node", NODE) in leads_to(explain(cluster, Subject("sxid", "20034")))
    assert f"on {NODE}  journalctl" in texts(explain(cluster, Subject("xid", "79")))
    assert "not that any probe can tell" in texts(explain(cluster, Subject("xid", "48")))


def test_every_code_of_the_catalogues_can_be_explained() -> None:
    cluster, _, _ = watched(kind="parallelcluster")
    for code in known_xids():
        assert "severity" in texts(explain(cluster, Subject("xid", str(code))))
    for code in known_sxids():
        assert "severity" in texts(explain(cluster, Subject("sxid", str(code))))
    for key in ("x", "-1", "9" * 50, ""):
        assert "is no Xid" in texts(explain(cluster, Subject("xid", key)))
        assert "is no SXid" in texts(explain(cluster, Subject("sxid", key)))


def test_a_clock_reason_is_told_with_the_gpus_it_holds() -> None:
    cluster, _, _ = watched({NODE: with_gpu(5, throttle_mask=64.0, throttle=("HW thermal",))})
    lines = explain(cluster, Subject("throttle", "40"))
    assert "because of heat" in texts(lines)
    assert ("gpu", f"{NODE}/5") in leads_to(lines)
    assert "nvidia-smi -q -i 5" in texts(lines)
    assert "none" in texts(explain(cluster, Subject("throttle", "80")))
    for key in ("", "zz", "0"):
        assert "is no clock reason" in texts(explain(cluster, Subject("throttle", key)))


def test_a_gpus_findings_lead_to_their_explanations() -> None:
    cluster, _, _ = watched({NODE: with_gpu(5, throttle_mask=64.0, ecc_uncorrected=1.0)})
    lines = explain(cluster, Subject("gpu", f"{NODE}/5"))
    assert {("throttle", "40"), ("problem", f"gpu:{NODE}:ecc")} <= leads_to(lines)
    assert "nothing is wrong with it" in texts(explain(cluster, Subject("gpu", f"{NODE}/4")))
    assert "is gone" in texts(explain(cluster, Subject("gpu", "nope/0")))


def codes() -> list[str]:
    return [str(entry["codes"][0]).replace("*", "X") for entry in load("slurm_reasons")]


@pytest.mark.parametrize("code", codes())
def test_every_pending_reason_can_be_explained_and_its_commands_are_whole(code: str) -> None:
    cluster, _, _ = watched()
    queue = cluster.view.queue
    assert queue is not None
    job = replace(queue.jobs[-1], state="PD", reason=code, account="research", qos="high", partitions=("gpu",))
    cluster.view = replace(cluster.view, queue=replace(queue, jobs=(job,)))
    told = texts(explain(cluster, Subject("reason", code)))
    assert "meaning" in told
    assert "who waits with it" in told
    entry = next(one for one in load("slurm_reasons") if str(one["codes"][0]).replace("*", "X") == code)
    assert told.count("on the head") == len(entry.get("show", ()))
    assert "{" not in told


@pytest.mark.parametrize("code", ["QOSFancyPerUser", "GalacticDrift", "held by [/] the \x1b[31msite", "汉字"])
def test_a_reason_of_a_newer_slurm_is_told_in_words_in_the_queue_and_explained(code: str) -> None:
    cluster, _, _ = watched()
    queue = cluster.view.queue
    assert queue is not None
    job = replace(queue.rows[-1].lead, state="PD", reason=code, hostlist="", qos="high")
    row = replace(queue.rows[-1], jobs=(job,))
    cluster.view = replace(cluster.view, queue=replace(queue, jobs=row.jobs, rows=(row,)))
    told = cell_text(why_or_where(row))
    assert told.startswith(printable(code))
    assert "by its name about" in told or "a reason the cockpit does not know" in told
    for subject in (Subject("job", row.key), Subject("reason", code)):
        explained = texts(explain(cluster, subject))
        assert "a newer Slurm, or a plugin of the site" in explained
        assert "slurmctld's log on the head" in explained
        assert "on the head    " in explained
        assert "\x1b" not in explained


def test_a_problem_of_a_code_or_a_node_is_explained_down_to_the_words() -> None:
    event = KernelEvent(KernelKind.XID, Severity.CRITICAL, "NVRM: Xid 79 here", 1_764_499_000.0, "", 79, "0000:64:00")
    cluster, _, _ = watched({NODE: with_events(event)})
    told = texts(explain(cluster, Subject("problem", f"gpu:{NODE}:xid:79")))
    assert "does not answer on PCIe any more" in told
    assert "what public sources say" in told
    node = texts(explain(cluster, Subject("problem", "node:down:Not responding")))
    assert "not_responding   Its slurmd does not answer the controller." in node
    assert "is over" in texts(explain(cluster, Subject("problem", "nope")))


def test_a_job_that_waits_for_another_is_explained_with_that_other_and_its_state() -> None:
    cluster, _, _ = watched()
    lines = explain(cluster, Subject("job", "48237"))  # afterok:48219
    assert "afterok:48219 running" in texts(lines)
    assert ("job", "48219") in leads_to(lines)
    never = texts(explain(cluster, Subject("job", "48236")))
    assert "depends on" in never


def test_a_queue_is_explained_by_its_reasons() -> None:
    cluster, _, _ = watched()
    lines = explain(cluster, Subject("queue", "gpu"))
    assert "It takes jobs and starts them." in texts(lines)
    assert ("reason", "DependencyNeverSatisfied") in leads_to(lines)
    assert "does not go away by itself" in texts(lines)
    assert explain(cluster, Subject("queue", ""))


def test_what_is_gone_is_said_to_be_gone() -> None:
    cluster, _, _ = watched()
    assert "is not among Slurm's nodes" in texts(explain(cluster, Subject("node", "nope")))
    assert "has left the queue" in texts(explain(cluster, Subject("job", "1")))


def test_a_finding_of_our_own_about_a_job_is_not_taken_for_a_reason_of_slurms() -> None:
    """A hung job's problem named `job:hung:48219` as Slurm's own words, and led to a page that knew nothing."""
    cluster, _, _ = watched(change={NODE: with_gpu(5, util_pct=0.0)})
    about = (("node", NODE), ("job", "48219"))
    hung = Problem("job:hung:48219", Health.CRITICAL, "job 48219", "looks hung: 23 of 24", "", about=about)
    cluster.view = replace(cluster.view, problems=(hung,))
    for told in (details(cluster, Subject("problem", hung.key)), explain(cluster, Subject("problem", hung.key))):
        assert "catalogue" not in texts(told)
        assert not {kind for kind, _ in leads_to(told)} & {"reason"}
        assert "rank 13" in texts(told)  # the odd one, on the page that the problem leads to


def yielded_keys() -> set[str]:
    """Every key that a rule of the engine gives a problem, with `x` for what differs from one to the next."""
    folder = Path(problems.__file__).parent
    rules = "".join(path.read_text("utf-8") for path in (*folder.glob("*problems.py"), folder / "aws_fabric.py"))
    found = re.findall(r'Problem\(\s*(?:key=)?f?"([a-z]+:[^"]*)"', rules)
    return {re.sub(r"\{[^}]*\}", "x", key) for key in found}


def test_every_kind_of_problem_has_a_meaning_in_plain_words() -> None:
    keys = yielded_keys()
    assert {"aws:gone", "aws:fleet:stuck", "events:silent", "fsx:x:full", "driver:x", "source:x"} <= keys
    of_codes = ("gpu:x:xid:x", "sxid:x:x", "check:x:x")  # the Xid's, SXid's and check's own words
    assert not [key for key in keys if key not in of_codes and not problem_fact(key).means]


def test_a_source_that_fails_is_explained_with_the_next_try_and_what_goes_on() -> None:
    cluster, head, clock = watched()
    answer = head.run

    def no_queue(argv: Sequence[str], **options: Any) -> Any:
        if "squeue" in argv[0]:
            raise FaultError(Fault(FaultKind.TIMEOUT, "reading the queue", "no answer in 10s", "is slurmctld busy?"))
        return answer(argv, **options)

    head.run = no_queue  # type: ignore[method-assign]
    clock.time += 120
    cluster.read_once()
    key = next(problem.key for problem in cluster.problems() if problem.key.startswith("source:"))
    told = texts(explain(cluster, Subject("problem", key)))
    assert "no answer in 10s" in told
    assert "is slurmctld busy?" in told
    assert "goes on      nodes, slurm" in told
    assert "actions that rest on it are refused" in told
