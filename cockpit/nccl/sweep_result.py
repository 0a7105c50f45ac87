"""What a sweep has found, in words that can stand behind a drain: who, how much, how often, with whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from cockpit.formats.hostlist import brief
from cockpit.nccl.measured import Standing
from cockpit.nccl.stats import REPEATABLE_CV, SLOW, WEAK, outliers, variation
from cockpit.nccl.sweep import Sweep
from cockpit.words import plural

_OFTEN = {1: "once", 2: "twice"}


@dataclass(frozen=True, slots=True)
class SweepFinding:
    """One thing found. `ratio` is the share of what peers reach; `certain` is False for what was seen only once.

    kind: slow_node, weak_node, failing_node, lost_node, slow_pair, failing_pair, slow_group, scale, common_failure,
    unclear.
    """

    kind: str
    nodes: tuple[str, ...]
    text: str
    ratio: float | None = None
    certain: bool = True
    evidence: tuple[str, ...] = ()

    @property
    def names_a_node(self) -> bool:
        """True when it is reason enough to take the node out of service."""
        return self.certain and self.kind in ("slow_node", "failing_node")

    @property
    def reason(self) -> str:
        """A reason for Slurm."""
        return f"NCCL sweep: {self.text}"


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The end, or how far it has come. Bandwidths are GB/s at the size that was measured."""

    findings: tuple[SweepFinding, ...]
    scores: dict[str, float]
    usual_pair_gbs: float | None
    usual_alone_gbs: float | None
    jobs: int
    rounds: int
    pairs_measured: int
    pairs_possible: int
    outliers: dict[str, float]
    finished: bool

    @property
    def bad_nodes(self) -> tuple[str, ...]:
        """The nodes that are named."""
        return tuple(finding.nodes[0] for finding in self.findings if finding.names_a_node)

    @property
    def nothing(self) -> str:
        """What is said where nothing was found."""
        return "all nodes are alike" if self.finished else "nothing found as far as it came: it was not finished"

    @property
    def summary(self) -> str:
        """One line: what was found, and at what cost."""
        cost = f"{plural(self.jobs, 'job')} in {plural(self.rounds, 'round')}"
        measured = f"{self.pairs_measured} of {plural(self.pairs_possible, 'pair')} measured"
        found = "; ".join(finding.text for finding in self.findings) or self.nothing
        return f"{found} ({cost}, {measured})"


def sweep_result(sweep: Sweep, *, finished: bool = True) -> SweepResult:
    """What the trials recorded so far say."""
    measured = sweep.measured
    pairs = ((trial, outcome) for trial, outcome in measured.outcomes.items() if len(trial.nodes) == 2)
    told = {frozenset(trial.nodes) for trial, outcome in pairs if outcome.busbw_gbs is not None or outcome.failed}
    count = len(measured.nodes)
    scores = measured.scores()
    return SweepResult(
        findings=tuple(_findings(sweep)),
        scores=scores,
        usual_pair_gbs=measured.usual_pair(),
        usual_alone_gbs=measured.usual_alone(),
        jobs=sweep.jobs,
        rounds=sweep.rounds,
        pairs_measured=len(told),
        pairs_possible=count * (count - 1) // 2,
        outliers=outliers(scores),
        finished=finished,
    )


def pair_matrix(sweep: Sweep) -> dict[tuple[str, str], float | None]:
    """The best bandwidth of every pair that was tried, None where it gave none; keys in the order of the nodes."""
    order = {node: at for at, node in enumerate(sweep.measured.nodes)}
    found: dict[tuple[str, str], float | None] = {}
    for trial, outcome in sweep.measured.outcomes.items():
        if len(trial.nodes) == 2:
            one, other = sorted(trial.nodes, key=order.__getitem__)
            before = found.get((one, other))
            found[one, other] = before if outcome.busbw_gbs is None else max(outcome.busbw_gbs, before or 0.0)
    return found


def _findings(sweep: Sweep) -> Iterator[SweepFinding]:
    if not sweep.common_failure():
        yield from _node_findings(sweep)
        yield from _pair_findings(sweep)
        yield from _group_findings(sweep)
        return
    texts = Counter(outcome.text for outcome in sweep.measured.outcomes.values() if outcome.failed)
    (text, times), *_ = texts.most_common(1)
    told = f"most tests fail, so no node is to blame: {text or 'no reason given'} ({times} times)"
    yield SweepFinding("common_failure", sweep.measured.nodes, told, certain=False, evidence=tuple(texts))


def _node_findings(sweep: Sweep) -> Iterator[SweepFinding]:
    for node in sweep.measured.nodes:
        found = _lost(sweep, node) or _alone(sweep, node) or _in_pairs(sweep, node)
        if found is not None:
            yield found


def _lost(sweep: Sweep, node: str) -> SweepFinding | None:
    why = sweep.measured.lost.get(node)
    return None if why is None else SweepFinding("lost_node", (node,), f"{node} was lost meanwhile: {why}")


def _alone(sweep: Sweep, node: str) -> SweepFinding | None:
    """Bad by itself: GPUs, NVLink or the host, not the network."""
    measured = sweep.measured
    standing, usual = measured.standing_alone(node), measured.usual_alone()
    if standing is Standing.FAILING:
        texts = _texts(sweep, node, 1)
        text = f"{node} fails alone, {_often(measured.failed_alone(node))}{_because(texts)}"
        return SweepFinding("failing_node", (node,), text, evidence=texts)
    if standing not in (Standing.SLOW, Standing.WEAK) or not usual:
        return None
    values = measured.alone(node)
    return _slow(node, [("alone", value) for value in values], usual, "its peers alone")


def _in_pairs(sweep: Sweep, node: str) -> SweepFinding | None:
    measured = sweep.measured
    standing, usual = measured.standing(node), measured.usual_pair()
    if standing is Standing.FAILING:
        partners = list(dict.fromkeys(measured.failures(node)))
        texts = _texts(sweep, node, 2)
        text = f"{node} fails with {brief(partners)}, whose other tests end{_because(texts)}"
        return SweepFinding("failing_node", (node,), text, evidence=texts)
    if standing in (Standing.SLOW, Standing.WEAK) and usual:
        return _with_partners(sweep, node, usual)
    if standing is Standing.UNKNOWN and node in sweep.fit() and len(measured.nodes) > 2 and _tried(sweep, node):
        return SweepFinding("unclear", (node,), f"{node} could not be measured with anybody", certain=False)
    return None


def _with_partners(sweep: Sweep, node: str, usual: float) -> SweepFinding | None:
    """Slow with partners that are good: its own fault. Without two such partners nobody can tell."""
    pairs = sweep.measured.pairs(node)
    good = [(partner, value) for partner, value in pairs if sweep.measured.standing(partner) is Standing.GOOD]
    if len({partner for partner, _ in good}) >= 2:
        return _slow(node, good, usual, "its peers")
    return SweepFinding(
        "unclear", (node,), f"{node} is slow, but too few good partners are left to blame it", certain=False
    )


def _slow(node: str, seen: list[tuple[str, float]], usual: float, peers: str) -> SweepFinding:
    best = max(value for _, value in seen)
    ratio = best / usual
    kind = "slow_node" if ratio < SLOW else "weak_node"
    text = f"{node}: {ratio:.2f} of {peers}, {_often(len(seen))} ({best:.1f} of {usual:.1f} GB/s)"
    evidence = tuple(f"with {partner}: {value:.1f} GB/s" for partner, value in seen)
    return SweepFinding(kind, (node,), text, ratio, certain=len(seen) >= 2, evidence=evidence)


def _pair_findings(sweep: Sweep) -> Iterator[SweepFinding]:
    """Pairs that are slow or fail although both nodes are good with others: the way between them."""
    measured, usual = sweep.measured, sweep.measured.usual_pair()
    if len(measured.nodes) == 2:
        yield from _lone_pair(sweep)
    if not usual or len(measured.nodes) == 2:
        return
    for one, other in pair_matrix(sweep):
        if any(measured.standing(node) is not Standing.GOOD for node in (one, other)):
            continue
        values = measured.values(one, other)
        failed = measured.failures(one).count(other)
        if values and max(values) < WEAK * usual:
            ratio = max(values) / usual
            text = (
                f"pair {one}, {other}: {ratio:.2f} of what others reach, {_often(len(values))}; both are good elsewhere"
            )
            yield SweepFinding("slow_pair", (one, other), text, ratio, certain=len(values) >= 2)
        elif failed >= 2 and not values:
            text = f"pair {one}, {other} fails, {_often(failed)}; both are good elsewhere"
            yield SweepFinding("failing_pair", (one, other), text)
        elif (spread := variation(values)) is not None and spread > REPEATABLE_CV:
            text = f"pair {one}, {other} does not repeat: {spread:.0%} variation over {len(values)} tests"
            yield SweepFinding("unclear", (one, other), text, certain=False)


def _lone_pair(sweep: Sweep) -> Iterator[SweepFinding]:
    one, other = sweep.measured.nodes
    expected, values = sweep.options.expected_together(2), sweep.measured.values(one, other)
    if not values and sweep.measured.failures(one):
        text = (
            f"pair {one}, {other} fails{_because(_texts(sweep, one, 2))}; which of the two needs a third node to tell"
        )
        yield SweepFinding("failing_pair", (one, other), text, certain=False)
    if values and expected and max(values) < WEAK * expected:
        ratio = max(values) / expected
        text = f"pair {one}, {other}: {ratio:.2f} of what is expected; which of the two needs a third node to tell"
        yield SweepFinding("slow_pair", (one, other), text, ratio, certain=False)


def _group_findings(sweep: Sweep) -> Iterator[SweepFinding]:
    if sweep.slow_group:
        text = f"slow only together: {brief(sweep.slow_group)}; each pair is good, so look at what they share"
        yield SweepFinding("slow_group", sweep.slow_group, text)
        return
    groups = [trial.nodes for trial in sweep.measured.outcomes if len(trial.nodes) > 2]
    whole = max(groups, key=len, default=())
    expected = sweep.options.expected_together(len(whole)) if whole else None
    reached = sweep.together(whole) if whole else None
    if whole and reached is None:
        yield SweepFinding("scale", whole, f"{plural(len(whole), 'node')} together gave no result", certain=False)
    elif whole and reached is not None and expected and reached < WEAK * expected:
        text = (
            f"{plural(len(whole), 'node')} together: {reached / expected:.2f} of what is expected, in all parts alike"
        )
        yield SweepFinding("scale", whole, text, reached / expected, certain=False)


def _tried(sweep: Sweep, node: str) -> bool:
    return any(node in trial.nodes and len(trial.nodes) == 2 for trial in sweep.measured.outcomes)


def _texts(sweep: Sweep, node: str, size: int) -> tuple[str, ...]:
    found = (
        outcome.text
        for trial, outcome in sweep.measured.outcomes.items()
        if node in trial.nodes and len(trial.nodes) == size and outcome.failed and outcome.text
    )
    return tuple(dict.fromkeys(found))


def _because(texts: tuple[str, ...]) -> str:
    return f": {texts[0]}" if texts else ""


def _often(times: int) -> str:
    return _OFTEN.get(times, f"{times} times")
