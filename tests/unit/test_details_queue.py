"""The details of queues and problems."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.catalog.problems import problem_fact
from cockpit.cluster import Cluster
from cockpit.gpu_models import MountReading
from cockpit.models import Acknowledgement, Health, Partition, Problem
from cockpit.sources.base import Beat
from cockpit.sources.slurm import NODES
from screens.detail_registry import details
from screens.lines import Line, Subject
from tests.unit.details_cluster import lead, leads_to, link_texts, texts, watched, with_gpu, with_reading, with_text

KEYS = [
    "gpu:n1:xid:79", "gpu:n1:throttle:40", "gpu:n1:lost", "gpu:n1:reset", "gpu:n1:not_readable", "gpu:n1:recovery",
    "gpu:n1:remap_failed", "gpu:n1:remap_pending", "gpu:n1:ecc", "gpu:n1:nvlink", "gpu:n1:hot", "gpu:n1:count",
    "gpu:n1:not_given", "gpu:n1:no_job", "gpu:n1:leftover", "job:lag:7:util_pct", "job:idle:7", "job:low:7",
    "job:BadConstraints", "driver:n1", "mount:hung:/fsx", "mount:error:/fsx", "mount:full:/fsx:fsx@tcp:/x", "stuck",
    "kernel:oom", "sxid:n1:20034", "probe:timeout", "probe:left_out", "node:down:Not responding", "queue:gpu:down",
    "source:nodes", "check:efa:efa.devices",
]  # fmt: skip


def with_problem(cluster: Cluster, *problems: Problem) -> None:
    cluster.view = replace(cluster.view, problems=problems)


def of(cluster: Cluster, key: str) -> list[Line]:
    return details(cluster, Subject("problem", key))


def test_a_queue_tells_its_nodes_its_gpus_and_who_waits_and_why() -> None:
    cluster, _, _ = watched()
    lines = details(cluster, Subject("queue", "gpu"))
    told = texts(lines)
    assert {("node", "gpu-st-p5-8"), ("node", "gpu-st-p5-6"), ("reason", "Priority")} <= leads_to(lines)
    assert "allocated" in told
    assert "gpu-st-p5-[1-5,7]" in told
    assert "72 of 96 allocated, 0 free, 8 powered down, 16 out of service" in told
    assert "30 pending" in told
    assert link_texts(with_text(lines, "next start"))
    priority = texts(lines[lines.index(with_text(lines, "Waits behind other jobs")) :])
    assert priority.index("vit-g-distill") < priority.index("rlhf-actor")
    assert "Jobs with a higher priority are ahead of it" in priority


def test_every_queue_is_in_the_list_of_all() -> None:
    cluster, _, _ = watched()
    lines = details(cluster, Subject("queue", ""))
    assert {key for kind, key in leads_to(lines) if kind == "queue"} == {"gpu", "prio", "interactive"}
    assert "Slurm names no queue" in texts(details(cluster, Subject("queue", "nope")))


@pytest.mark.parametrize(("kind", "here"), [("parallelcluster", "Start the fleet"), ("slurm", "somebody did")])
def test_a_closed_queue_says_what_closed_it_here(kind: str, here: str) -> None:
    cluster, _, clock = watched(kind=kind)
    reading = cluster.store.state(NODES)
    assert reading.data is not None
    assert reading.good is not None
    closed = replace(reading.data, partitions=(Partition("gpu", "inactive", ()),))
    cluster.store.put(NODES.name, Beat(replace(reading.good, data=closed), 5.0, clock.steady()))
    lines = details(cluster, Subject("queue", "gpu"))
    assert "inactive" in texts(lines)
    assert "takes no jobs and starts none" in texts(lines)
    assert here in texts(lines)
    assert any(key.startswith("queue:gpu:") for kind, key in leads_to(lines) if kind == "problem")


@pytest.mark.parametrize("key", KEYS)
def test_every_kind_of_problem_says_what_it_means(key: str) -> None:
    assert problem_fact(key).means or ":xid:" in key or key.startswith(("sxid:", "check:"))
    cluster, _, _ = watched()
    node, job = "gpu-st-p5-2", lead(cluster).key
    about = (("gpu", f"{node}/3"), ("node", node), ("job", job), ("queue", "gpu"))
    with_problem(cluster, Problem(key, Health.WARN, node, "a title", "a step", "evidence", about=about))
    lines = of(cluster, key)
    assert "meaning" in texts(lines)
    assert "a title" in texts(lines)
    assert set(about) <= leads_to(lines)
    assert "{" not in texts(lines)
    if key != "probe:left_out":
        assert "what shows it" in texts(lines)


def test_who_knows_of_a_problem_is_told_in_their_words() -> None:
    cluster, _, clock = watched()
    known = Acknowledgement("INC-7 [/] waits for parts", "maria", clock.now() - 60)
    one = Problem("driver:n1", Health.WARN, "n1", "t", "s", acknowledged=known)
    cluster.problems = lambda: (one,)  # type: ignore[method-assign]
    for key in ("", "driver:n1"):
        assert "maria since" in texts(of(cluster, key))
        assert "INC-7 [/] waits for parts" in texts(of(cluster, key))


def test_commands_are_quoted_so_that_they_can_be_pasted() -> None:
    mount = MountReading("/my data; rm -rf ~", "nfs", error="Stale file handle")
    cluster, _, _ = watched({"gpu-st-p5-2": with_reading(mounts=(mount,))})
    [problem] = [one for one in cluster.view.problems if one.key.startswith("mount:")]
    assert "timeout 5 df -h '/my data; rm -rf ~'" in texts(of(cluster, problem.key))


def test_a_command_whose_names_are_not_known_is_left_out() -> None:
    cluster, _, _ = watched()
    with_problem(cluster, Problem("job:idle:7", Health.WARN, "job 7", "t", "s", about=(("job", "7"),)))
    told = texts(of(cluster, "job:idle:7"))
    assert "7 (left the queue)" in told
    assert "what shows it" not in told


def test_the_problems_that_the_rules_find_name_what_they_are_about() -> None:
    cluster, _, _ = watched({"gpu-st-p5-3": with_gpu(5, ecc_uncorrected=2.0)})
    about = {problem.key: set(problem.about) for problem in cluster.view.problems}
    assert about["gpu:gpu-st-p5-3:ecc"] == {("gpu", "gpu-st-p5-3/5"), ("node", "gpu-st-p5-3"), ("job", "48219")}
    assert about["node:down:Not responding"] == {("node", "gpu-st-p5-8")}
    assert ("job", "48236") in about["job:DependencyNeverSatisfied"]


def test_the_list_of_all_problems_leads_to_each_and_one_that_is_over_says_so() -> None:
    cluster, _, _ = watched()
    lines = of(cluster, "")
    assert {key for kind, key in leads_to(lines) if kind == "problem"} == {one.key for one in cluster.problems()}
    assert "is over" in texts(of(cluster, "gpu:nope:lost"))
    with_problem(cluster)
    assert "no problem is known" in texts(of(cluster, ""))
