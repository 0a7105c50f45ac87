"""Finding the bad node: which tests to run next, given what the earlier ones gave. A pure state machine.

Each node alone; disjoint pairs in two rounds with different partners; suspects and slow pairs once more with good
partners; all nodes together, and halves of them, for what shows only at scale. Whoever drives it submits the trials
of a round at once, records what came of each, and asks for the next round until there is none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cockpit.nccl.measured import ALONE, CONFIRM, PAIRS, TOGETHER, Measured, Outcome, Standing, Trial
from cockpit.nccl.pairing import Pair, all_rounds, halves, owed_pairs, two_rounds
from cockpit.nccl.stats import WEAK

ALL_PAIRS_UP_TO = 8  # so few nodes are measured in every pair: seven rounds, and a bad link cannot hide
MOST_NODES = 128
_MAKE_UP_ROUNDS = 4
_CONFIRM_ROUNDS = 6
_SMALLEST_GROUP = 2

Round = list[tuple[str, tuple[str, ...]]]  # (phase, nodes) of each trial
ExpectedTogether = Callable[[int], float | None]


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """How a sweep goes about it. Expected bandwidths (GB/s) come from the catalogue or the history, None: unknown."""

    alone: bool = True  # False for nodes with one GPU: there is nothing to measure
    all_pairs: bool | None = None  # None: where there are eight nodes or fewer
    together: bool = False  # also all nodes at once, and halves of them when that is slow
    expected_together: ExpectedTogether = lambda _: None
    seed: int = 0


class Sweep:
    """One sweep over 2 to 128 nodes. Raises ValueError for any other number, or a name that stands twice."""

    def __init__(self, nodes: Sequence[str], options: SweepOptions = SweepOptions()) -> None:
        if not 2 <= len(nodes) <= MOST_NODES:
            raise ValueError(f"a sweep takes 2 to {MOST_NODES} nodes, not {len(nodes)}")
        if len(set(nodes)) != len(nodes):
            raise ValueError("a node stands twice")
        self.measured = Measured(tuple(nodes))
        self.options = options
        self.jobs = self.rounds = 0
        self.slow_group: tuple[str, ...] = ()
        self._open: dict[int, Trial] = {}
        self._course = self._phases()

    # -- driving it

    def next_round(self) -> tuple[Trial, ...]:
        """The trials to run at once; () when the sweep is over. Raises RuntimeError while a round is open."""
        if self._open:
            raise RuntimeError(f"{len(self._open)} trials of this round are not recorded yet")
        planned = next(self._course, None)
        if planned is None:
            return ()
        self.rounds += 1
        trials = []
        for phase, nodes in planned:
            self.jobs += 1
            trials.append(Trial(self.jobs, self.rounds, phase, nodes))
        self._open = {trial.number: trial for trial in trials}
        return tuple(trials)

    @property
    def open_trials(self) -> tuple[Trial, ...]:
        """The trials of this round that are not recorded yet."""
        return tuple(self._open.values())

    def record(self, trial: Trial, outcome: Outcome) -> None:
        """What came of a trial of this round; raises KeyError for one that is not open."""
        self.measured.put(self._open.pop(trial.number), outcome)

    def lose(self, node: str, why: str) -> None:
        """The node is gone (NODE_FAIL, powered down): it is measured no more, and its trials are nobody's fault."""
        if node in self.measured.nodes:
            self.measured.lost.setdefault(node, why)

    # -- the course

    def _phases(self) -> Iterator[Round]:
        if self.options.alone:
            yield from self._alone()
            if self.common_failure():
                return
        for planned in self._pairs():
            yield planned
            if self.common_failure():
                return
        yield from self._make_up()
        yield from self._confirm()
        if self.options.together:
            yield from self._together()

    def _alone(self) -> Iterator[Round]:
        yield [(ALONE, (node,)) for node in self.measured.live]
        again = [node for node in self.measured.live if self.measured.standing_alone(node) is not Standing.GOOD]
        if again:
            yield [(ALONE, (node,)) for node in again]

    def common_failure(self) -> bool:
        """True when most fail: a missing binary or a wrong MPI does that, so no node is to blame for it."""
        measured = self.measured
        failing = [node for node in measured.nodes if measured.failed_alone(node) and not measured.alone(node)]
        if 2 * len(failing) > len(measured.nodes):
            return True
        given = [outcome for outcome in measured.outcomes.values() if outcome.busbw_gbs is not None or outcome.failed]
        return len(given) >= 2 and all(outcome.failed for outcome in given)

    def fit(self) -> tuple[str, ...]:
        """The nodes that are worth pairing: there, and not bad by themselves."""
        bad = (Standing.SLOW, Standing.FAILING)
        return tuple(node for node in self.measured.live if self.measured.standing_alone(node) not in bad)

    def _pairs(self) -> Iterator[Round]:
        nodes = list(self.fit())
        random.Random(self.options.seed).shuffle(nodes)  # noqa: S311 - no secret
        every = self.options.all_pairs
        if every is None:
            every = len(nodes) <= ALL_PAIRS_UP_TO
        for planned in all_rounds(nodes) if every else two_rounds(nodes):
            there = set(self.measured.live)
            pairs = [pair for pair in planned if there.issuperset(pair)]
            if pairs:
                yield _as_round(PAIRS, pairs)

    def _make_up(self) -> Iterator[Round]:
        """Nodes without a bandwidth from two partners: their partner died, or the test failed."""
        for _ in range(_MAKE_UP_ROUNDS):
            wanting = [node for node in self.fit() if self._wants(node)]
            partners = [node for node in self.fit() if self.measured.standing(node) is not Standing.FAILING]
            pairs = owed_pairs(wanting, [*self._good(), *partners], self.measured.met)
            if not pairs:
                return
            yield _as_round(PAIRS, pairs)

    def _wants(self, node: str) -> bool:
        standing = self.measured.standing(node)
        partners = {partner for partner, _ in self.measured.pairs(node)}
        most = min(2, len(self.fit()) - 1)
        return standing is not Standing.FAILING and len(partners) < most

    def _good(self) -> list[str]:
        """Nodes whose best pair is as fast as it should be, the fastest first."""
        scores = self.measured.scores()
        good = [node for node in self.fit() if self.measured.standing(node) is Standing.GOOD]
        return sorted(good, key=lambda node: -scores[node])

    def _confirm(self) -> Iterator[Round]:
        """Suspects with good partners that are new to them; slow pairs of good nodes once more, less crowded."""
        confirmed: dict[str, int] = {}
        for _ in range(_CONFIRM_ROUNDS):
            suspects = [node for node in self.fit() if self._suspect(node, confirmed.get(node, 0))]
            pairs = owed_pairs(suspects, self._good(), self.measured.met, fewest=2)
            for node, _partner in pairs:
                confirmed[node] = confirmed.get(node, 0) + 1
            busy = {node for pair in pairs for node in pair}
            for pair in self.doubtful_pairs():
                if busy.isdisjoint(pair):
                    pairs.append(pair)
                    busy.update(pair)
            if not pairs:
                return
            yield _as_round(CONFIRM, pairs)

    def _suspect(self, node: str, confirmed: int) -> bool:
        """Slow so far, and not yet seen so by two good partners and once more."""
        if self.measured.standing(node) not in (Standing.WEAK, Standing.SLOW):
            return False
        good = set(self._good()).intersection(partner for partner, _ in self.measured.pairs(node))
        return confirmed < 1 or (len(good) < 2 and confirmed < 3)

    def doubtful_pairs(self) -> list[Pair]:
        """Pairs of good nodes that were slow together, or failed, and were tried only once."""
        usual = self.measured.usual_pair() or 0.0
        good = set(self._good())
        found = []
        for trial, outcome in self.measured.outcomes.items():
            if len(trial.nodes) != 2 or not good.issuperset(trial.nodes):
                continue
            slow = outcome.busbw_gbs is not None and outcome.busbw_gbs < WEAK * usual
            if (slow or outcome.failed) and self.measured.met(*trial.nodes) == 1:
                found.append((trial.nodes[0], trial.nodes[1]))
        return found

    # -- faults that show only at scale

    def _together(self) -> Iterator[Round]:
        group = tuple(sorted(self._good(), key=self.measured.nodes.index))
        if len(group) < 2 * _SMALLEST_GROUP:
            return
        yield [(TOGETHER, group)]
        expected, reached = self.options.expected_together(len(group)), self.together(group)
        if reached is not None and (expected is None or reached >= WEAK * expected):
            return
        while len(group) >= 2 * _SMALLEST_GROUP:
            one, other = halves(group)
            yield [(TOGETHER, one), (TOGETHER, other)]
            worse = self._worse(one, other)
            if worse is None:
                return  # equal halves: what slows them is common to all
            self.slow_group = group = worse
        if self.slow_group:
            yield [(TOGETHER, self.slow_group)]

    def together(self, group: tuple[str, ...]) -> float | None:
        """What that group reached last."""
        found = [outcome.busbw_gbs for trial, outcome in self.measured.outcomes.items() if trial.nodes == group]
        return found[-1] if found else None

    def _worse(self, one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...] | None:
        first, second = self.together(one), self.together(other)
        if first is None or second is None:
            return None if first is second else one if first is None else other
        if min(first, second) >= WEAK * max(first, second):
            return None
        return one if first < second else other


def _as_round(phase: str, pairs: Sequence[Pair]) -> Round:
    return [(phase, pair) for pair in pairs]


def estimate(count: int, options: SweepOptions = SweepOptions()) -> tuple[int, int]:
    """Jobs and rounds of a sweep over so many healthy nodes; suspects add some."""
    names = [str(number) for number in range(count)]
    every = count <= ALL_PAIRS_UP_TO if options.all_pairs is None else options.all_pairs
    rounds = all_rounds(names) if every else two_rounds(names)
    jobs = sum(len(each) for each in rounds) + (count if options.alone else 0) + int(options.together)
    return jobs, len(rounds) + int(options.alone) + int(options.together)
