"""A sweep over simulated nodes names the bad one and no other, whoever it is and however many there are."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.nccl.measured import Outcome, Trial
from cockpit.nccl.pairing import all_rounds, halves, two_rounds
from cockpit.nccl.stats import behind, outliers, usual, variation
from cockpit.nccl.sweep import MOST_NODES, Sweep, SweepOptions, estimate
from cockpit.nccl.sweep_result import SweepFinding, SweepResult, pair_matrix, sweep_result


@dataclass
class Cluster:
    """Nodes with a network each; a pair is as fast as the slower, give or take 3 %."""

    count: int
    slow: Mapping[str, float] = field(default_factory=dict)  # node: share in pairs
    slow_alone: Mapping[str, float] = field(default_factory=dict)
    links: Mapping[frozenset[str], float] = field(default_factory=dict)
    failing: frozenset[str] = frozenset()
    failing_alone: frozenset[str] = frozenset()
    dies: Mapping[str, int] = field(default_factory=dict)  # node: in that round
    scale: frozenset[str] = frozenset()  # slow only where three and more of them work together
    seed: int = 0

    def __post_init__(self) -> None:
        self.nodes = [f"n{number}" for number in range(self.count)]
        self.noise = random.Random(self.seed)
        self.rounds: list[tuple[Trial, ...]] = []

    def outcome(self, trial: Trial) -> Outcome:
        noise = self.noise.uniform(0.97, 1.03)
        if len(trial.nodes) == 1:
            if self.failing_alone.intersection(trial.nodes):
                return Outcome(failed=True, text="CUDA call failed")
            return Outcome(480 * self.slow_alone.get(trial.nodes[0], 1.0) * noise)
        if self.failing.intersection(trial.nodes):
            return Outcome(failed=True, text="remote process exited")
        share = min(self.slow.get(node, 1.0) for node in trial.nodes)
        share *= self.links.get(frozenset(trial.nodes), 1.0)
        if len(trial.nodes) > 2 and len(self.scale.intersection(trial.nodes)) > 2:
            share *= 0.5
        return Outcome(443 * share * noise)

    def sweep(self, options: SweepOptions | None = None) -> tuple[Sweep, SweepResult]:
        sweep = Sweep(self.nodes, options or SweepOptions(seed=self.seed))
        while trials := sweep.next_round():
            self.rounds.append(trials)
            for node, when in self.dies.items():
                if when == sweep.rounds:
                    sweep.lose(node, "NODE_FAIL")
            for trial in trials:
                dead = any(sweep.rounds >= when for node, when in self.dies.items() if node in trial.nodes)
                sweep.record(trial, Outcome(text="node lost") if dead else self.outcome(trial))
        return sweep, sweep_result(sweep)


def kinds(result: SweepResult) -> list[tuple[str, tuple[str, ...]]]:
    return [(finding.kind, finding.nodes) for finding in result.findings]


SWEEPS = settings(deadline=None, max_examples=60)  # this machine is shared
counts = st.integers(min_value=3, max_value=40)
seeds = st.integers(min_value=0, max_value=2**16)
shares = st.floats(min_value=0.1, max_value=0.7)


@SWEEPS
@given(count=st.integers(min_value=2, max_value=60), seed=seeds)
def test_healthy_nodes_are_never_named(count: int, seed: int) -> None:
    _, result = Cluster(count, seed=seed).sweep()
    assert result.findings == ()
    assert result.bad_nodes == ()
    assert (result.jobs, result.rounds) == estimate(count)
    assert "all nodes are alike" in result.summary


@SWEEPS
@given(count=counts, seed=seeds, share=shares, data=st.data())
def test_one_slow_node_is_named_and_no_healthy_one(count: int, seed: int, share: float, data: st.DataObject) -> None:
    bad = f"n{data.draw(st.integers(0, count - 1))}"
    _, result = Cluster(count, slow={bad: share}, seed=seed).sweep()
    assert kinds(result) == [("slow_node", (bad,))]
    (finding,) = result.findings
    assert finding.certain
    assert finding.ratio == pytest.approx(share, rel=0.08)
    assert len(set(finding.evidence)) >= 2
    assert f"{bad}: " in finding.text


@SWEEPS
@given(count=st.integers(min_value=2, max_value=40), seed=seeds, share=shares, data=st.data())
def test_a_node_that_is_slow_alone_is_named_and_kept_out_of_pairs(
    count: int, seed: int, share: float, data: st.DataObject
) -> None:
    bad = f"n{data.draw(st.integers(0, count - 1))}"
    cluster = Cluster(count, slow_alone={bad: share}, slow={bad: share}, seed=seed)
    _, result = cluster.sweep()
    assert kinds(result) == [("slow_node", (bad,))]
    assert "twice" in result.findings[0].text
    assert all(bad not in trial.nodes for trials in cluster.rounds for trial in trials if len(trial.nodes) == 2)


@SWEEPS
@given(count=st.integers(min_value=3, max_value=8), seed=seeds, share=shares, data=st.data())
def test_one_slow_pair_is_named_and_neither_of_its_nodes(
    count: int, seed: int, share: float, data: st.DataObject
) -> None:
    nodes = [f"n{number}" for number in range(count)]
    link = data.draw(st.sampled_from(list(combinations(nodes, 2))))
    _, result = Cluster(count, links={frozenset(link): share}, seed=seed).sweep()
    assert [(finding.kind, set(finding.nodes)) for finding in result.findings] == [("slow_pair", set(link))]
    assert result.bad_nodes == ()
    assert "twice" in result.findings[0].text
    assert result.pairs_measured == result.pairs_possible


@SWEEPS
@given(count=st.integers(min_value=9, max_value=40), seed=seeds, share=shares, data=st.data())
def test_a_slow_link_in_a_large_sweep_blames_no_node(count: int, seed: int, share: float, data: st.DataObject) -> None:
    nodes = [f"n{number}" for number in range(count)]
    link = frozenset(data.draw(st.sampled_from(list(combinations(nodes, 2)))))
    sweep, result = Cluster(count, links={link: share}, seed=seed).sweep()
    assert result.bad_nodes == ()
    measured = any(set(pair) == link for pair in pair_matrix(sweep))
    assert [set(finding.nodes) for finding in result.findings] == ([set(link)] if measured else [])


@SWEEPS
@given(count=st.integers(min_value=4, max_value=40), seed=seeds, alone=st.booleans(), data=st.data())
def test_a_failing_node_is_named_and_its_partners_are_cleared(
    count: int, seed: int, alone: bool, data: st.DataObject
) -> None:
    bad = f"n{data.draw(st.integers(0, count - 1))}"
    only = frozenset((bad,))
    cluster = Cluster(count, failing=only, failing_alone=only if alone else frozenset(), seed=seed)
    _, result = cluster.sweep()
    assert kinds(result) == [("failing_node", (bad,))]
    assert result.bad_nodes == (bad,)
    assert ("alone" in result.findings[0].text) == alone
    assert set(result.scores) == set(cluster.nodes) - {bad}


@SWEEPS
@given(count=st.integers(min_value=4, max_value=40), seed=seeds, when=st.integers(1, 4), data=st.data())
def test_a_node_that_dies_in_the_middle_is_lost_and_blames_nobody(
    count: int, seed: int, when: int, data: st.DataObject
) -> None:
    dead = f"n{data.draw(st.integers(0, count - 1))}"
    sweep, result = Cluster(count, dies={dead: when}, seed=seed).sweep()
    happened = sweep.rounds >= when
    assert kinds(result) == ([("lost_node", (dead,))] if happened else [])
    assert result.bad_nodes == ()
    assert set(result.scores) >= {f"n{number}" for number in range(count)} - {dead}


@SWEEPS
@given(count=st.integers(min_value=9, max_value=40), seed=seeds, data=st.data())
def test_a_slow_and_a_dead_node_together(count: int, seed: int, data: st.DataObject) -> None:
    slow, dead = data.draw(st.permutations([f"n{number}" for number in range(count)]))[:2]
    _, result = Cluster(count, slow={slow: 0.42}, dies={dead: 2}, seed=seed).sweep()
    assert set(kinds(result)) == {("slow_node", (slow,)), ("lost_node", (dead,))}


@SWEEPS
@given(count=st.integers(min_value=12, max_value=40), seed=seeds, data=st.data())
def test_two_slow_nodes_are_both_named(count: int, seed: int, data: st.DataObject) -> None:
    one, other = data.draw(st.permutations([f"n{number}" for number in range(count)]))[:2]
    _, result = Cluster(count, slow={one: 0.4, other: 0.6}, seed=seed).sweep()
    assert set(kinds(result)) == {("slow_node", (one,)), ("slow_node", (other,))}


@pytest.mark.parametrize("count", [64, 127, 128])
def test_large_sweeps_need_few_rounds(count: int) -> None:
    cluster = Cluster(count, slow={"n5": 0.5}, seed=3)
    _, result = cluster.sweep()
    assert result.bad_nodes == ("n5",)
    assert result.rounds <= 6
    assert result.jobs <= 2 * count + 6
    assert f"{result.jobs} jobs in {result.rounds} rounds" in result.summary


def test_a_round_never_uses_a_node_twice() -> None:
    cluster = Cluster(17, slow={"n1": 0.5}, failing=frozenset(("n2",)), dies={"n3": 2}, seed=1)
    cluster.sweep()
    for trials in cluster.rounds:
        used = [node for trial in trials for node in trial.nodes]
        assert len(used) == len(set(used))


def test_a_fault_at_scale_is_followed_into_the_slow_half() -> None:
    options = SweepOptions(together=True, expected_together=lambda _: 443.0)
    group = frozenset(f"n{number}" for number in range(8, 12))
    _, result = Cluster(16, scale=group).sweep(options)
    assert [finding.kind for finding in result.findings] == ["slow_group"]
    assert set(result.findings[0].nodes) == group
    assert result.bad_nodes == ()
    _, healthy = Cluster(16).sweep(options)
    assert healthy.findings == ()


def test_what_is_slow_everywhere_at_scale_names_nobody() -> None:
    options = SweepOptions(together=True, expected_together=lambda _: 800.0)
    _, result = Cluster(16).sweep(options)
    assert [finding.kind for finding in result.findings] == ["scale"]
    assert result.bad_nodes == ()


def test_two_nodes_alone_cannot_blame_one_of_them() -> None:
    options = SweepOptions(expected_together=lambda _: 443.0)
    _, result = Cluster(2, slow={"n0": 0.5}).sweep(options)
    assert [finding.kind for finding in result.findings] == ["slow_pair"]
    assert "third node" in result.findings[0].text
    _, result = Cluster(2, failing=frozenset(("n0",))).sweep()
    assert [finding.kind for finding in result.findings] == ["failing_pair"]
    assert result.bad_nodes == ()


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("count", [2, 3, 6, 20])
def test_when_everything_fails_no_node_is_blamed_and_it_ends_soon(count: int, alone: bool) -> None:
    cluster = Cluster(count)
    every = frozenset(cluster.nodes)
    cluster.failing = cluster.failing_alone = every
    _, result = cluster.sweep(SweepOptions(alone=alone))
    assert result.bad_nodes == ()
    if alone or count > 3:
        assert [finding.kind for finding in result.findings] == ["common_failure"]
    assert result.rounds <= 3
    most = Cluster(9, failing_alone=frozenset(f"n{number}" for number in range(6)))
    assert most.sweep()[1].bad_nodes == ()


def test_the_reason_for_a_drain_says_how_much_and_how_often() -> None:
    _, result = Cluster(6, slow={"n3": 0.42}, seed=2).sweep()
    (finding,) = result.findings
    assert finding.names_a_node
    assert finding.reason.startswith("NCCL sweep: n3: 0.4")
    assert "of its peers" in finding.reason
    assert not SweepFinding("slow_pair", ("a", "b"), "x").names_a_node


def test_driving_it_wrongly_is_refused() -> None:
    sweep = Sweep(["a", "b", "c"])
    (first, *_) = sweep.next_round()
    with pytest.raises(RuntimeError):
        sweep.next_round()
    sweep.record(first, Outcome(1.0))
    with pytest.raises(KeyError):
        sweep.record(first, Outcome(1.0))
    for nodes in (["a"], ["a", "a"], [str(number) for number in range(MOST_NODES + 1)]):
        with pytest.raises(ValueError, match=r"sweep takes|stands twice"):
            Sweep(nodes)


@SWEEPS
@given(st.integers(min_value=2, max_value=40))
def test_all_rounds_hold_every_pair_once(count: int) -> None:
    nodes = [str(number) for number in range(count)]
    rounds = all_rounds(nodes)
    pairs = [frozenset(pair) for each in rounds for pair in each]
    assert len(pairs) == len(set(pairs)) == count * (count - 1) // 2
    assert all(len(each) == count // 2 for each in rounds)


@SWEEPS
@given(st.integers(min_value=3, max_value=128))
def test_two_rounds_give_everybody_two_partners(count: int) -> None:
    nodes = [str(number) for number in range(count)]
    met: dict[str, set[str]] = {node: set() for node in nodes}
    for each in two_rounds(nodes):
        for one, other in each:
            met[one].add(other)
            met[other].add(one)
    assert all(len(partners) == 2 for partners in met.values())


def test_halves_are_equal() -> None:
    assert halves(["a", "b", "c", "d", "e"]) == (("a", "b"), ("c", "d"))


def test_statistics_among_peers() -> None:
    values = {f"n{number}": 100.0 + number for number in range(8)}
    assert outliers(values) == {}
    assert set(outliers({**values, "bad": 60.0})) == {"bad"}
    assert outliers({"a": 1.0, "b": 100.0}) == {}
    same = dict.fromkeys("abcdefg", 100.0)
    assert outliers({**same, "near": 95.0}) == {}
    assert set(behind({**same, "x": 42.0})) == {"x"}
    assert behind({}) == {}
    assert (usual([]), usual([1.0, 2.0]), usual([1.0, 2.0, 9.0])) == (None, 2.0, 2.0)
    assert variation([1.0, 1.0]) is None
    assert variation([100.0, 100.0, 80.0]) == pytest.approx(0.101, abs=0.001)
