"""Sums and joins: nothing unknown becomes a number, nothing is counted twice."""

from __future__ import annotations

from dataclasses import replace

from cockpit.formats.node_state import judge, parse_state
from cockpit.joins import gpu_counts, has_accelerators, hidden_nodes, jobs_by_node, nodes_by_word, takes_work
from cockpit.models import Gres, Health, Job, Node, NodesReading, PartitionConfig, QueueReading, SlurmSite


def node(name: str, state: str, total: int | None = 8, used: int | None = 0) -> Node:
    parsed = parse_state(state)
    word, health = judge(parsed)
    return Node(name, parsed, word, health, gpus_total=total, gpus_used=used)


def test_gpus_are_split_by_what_they_can_do_now() -> None:
    counts = gpu_counts(
        [
            node("a", "mixed", used=7),
            node("b", "idle+cloud+powered_down"),
            node("c", "mixed+drain", used=2),
            node("d", "down+not_responding"),
            node("e", "idle", total=None, used=None),
            node("f", "mixed+cloud+not_responding+powering_up", used=8),
        ]
    )
    assert (counts.total, counts.allocated, counts.free) == (40, 17, 1)
    assert (counts.powered_down, counts.out_of_service) == (8, 14)


def test_without_any_gpu_gres_there_is_no_number() -> None:
    assert gpu_counts([node("a", "idle", total=None, used=None)]).total is None
    assert gpu_counts([]).allocated is None


def test_which_nodes_take_work() -> None:
    takes = ["idle", "mixed", "idle+cloud+powered_down", "idle+cloud+not_responding+powering_up", "idle+planned"]
    refuses = ["idle+drain", "down", "idle+not_responding", "unknown+not_responding", "idle+maintenance+reserved"]
    assert [takes_work(node("n", state)) for state in takes] == [True] * len(takes)
    assert [takes_work(node("n", state)) for state in refuses] == [False] * len(refuses)


def test_jobs_hold_the_nodes_they_run_on_and_no_others() -> None:
    jobs = (
        Job(1, "R", hostlist="p5-[1-2]"),
        Job(2, "PD", scheduled_hostlist="p5-1"),
        Job(3, "CG", hostlist="p5-2"),
        Job(4, "CD", hostlist="p5-1"),
    )
    held = jobs_by_node(QueueReading(jobs, ()))
    assert {name: [job.job_id for job in on] for name, on in held.items()} == {"p5-1": [1], "p5-2": [1, 3]}
    assert jobs_by_node(None) == {}


def test_nodes_that_slurm_hides_are_named_as_hidden() -> None:
    reading = NodesReading((node("p5-1", "idle"),), ())
    site = SlurmSite(partitions=(PartitionConfig("gpu", "UP", "p5-[1-3]"), PartitionConfig("b", "UP", "p5-3")))
    assert hidden_nodes(reading, site) == ()
    hiding = SlurmSite(partitions=site.partitions, hides_powered_down=True)
    found = hidden_nodes(reading, hiding)
    assert [(one.name, one.word, one.health, one.partitions) for one in found] == [
        ("p5-2", "hidden", Health.UNKNOWN, ("gpu",)),
        ("p5-3", "hidden", Health.UNKNOWN, ("gpu", "b")),
    ]
    assert found[0].gpus_total is None
    assert nodes_by_word([*reading.nodes, *found]) == {"hidden": 2, "idle": 1}


def test_which_nodes_a_probe_is_sent_to() -> None:
    plain = node("a", "idle", total=None, used=None)
    assert not has_accelerators(plain)
    assert has_accelerators(node("b", "idle"))
    assert has_accelerators(replace(plain, gres=(Gres("neuron", None, 16),)))
    assert has_accelerators(replace(plain, features=("dynamic", "trn1.32xlarge")))
    assert not has_accelerators(replace(plain, features=("infiniband",)))
