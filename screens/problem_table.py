"""The columns of the problems: what is wrong, since when, what to do, in the order in which they are given.

Pure functions from a problem to a cell. Imports no Textual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cockpit import report
from cockpit.cluster import Cluster
from cockpit.models import Freshness, Health, Problem
from cockpit.sources.base import SourceKey
from cockpit.words import plural, slow_span
from screens.grid_model import Cell, Column
from screens.lines import Line, Piece
from screens.pane_spec import PaneSpec
from themes import STATE_TOKENS
from themes.glyphs import WORDS

# No source of its own: problems are drawn from all of them, and a source that fails is one of them. So they are
# never greyed out as stale, whatever fails.
PROBLEMS: SourceKey[tuple[Problem, ...]] = SourceKey("problems")

NEXT_LEAST = 30  # narrower than this, what to do cannot be read in its column; the overview tells it below the table


@dataclass(frozen=True, slots=True)
class ProblemTable:
    """Columns and filter fields over problems; `now` is the time on our own clock."""

    now: Callable[[], float]

    def columns(self) -> tuple[Column[Problem], ...]:
        """Every column, in order; the narrowest screen keeps whom it hits and what is wrong."""
        return (
            Column("problem", "problem", _subject, lambda p: p.subject, 10, 28),
            Column("what", "what", _what, lambda p: p.title, 28, 90, cut=True),
            Column("since", "since", self._since, lambda p: p.since, 5, 7, "right", 1, live=True),
            Column("next", "what to do", _next, None, NEXT_LEAST, 120, drop=2, cut=True, note="the next step"),
        )

    def fields(self) -> Mapping[str, Callable[[Problem], str]]:
        """What `field:value` in a filter may name."""
        return {
            "problem": lambda p: p.subject,
            "what": lambda p: p.title,
            "next": lambda p: p.next_step,
            "evidence": lambda p: p.evidence,
            "state": lambda p: f"{WORDS[p.health]} {p.health.value}{' acknowledged' if p.acknowledged else ''}",
        }

    def _since(self, problem: Problem) -> Cell:
        return slow_span(self.now() - problem.since) if problem.since else ""


def _subject(problem: Problem) -> Cell:
    return problem.subject, "dim" if problem.acknowledged else STATE_TOKENS[problem.health]


def _what(problem: Problem) -> Cell:
    return problem.title, "dim" if problem.acknowledged else ""


def _next(problem: Problem) -> Cell:
    told = problem.acknowledged
    return f"{told.who} knows: {told.note}" if told else problem.next_step, "dim"


def next_pieces(problem: Problem | None) -> Line:
    """What to do about one problem, as a line of its own."""
    if problem is None:
        return []
    return [("→ ", "accent"), _next(problem)[0] or "enter tells what is known"]


def health(problem: Problem) -> Health:
    """What deserves a look: one that somebody knows of does not, so it has no sign and `!` hides it."""
    return Health.OK if problem.acknowledged else problem.health


def problem_spec(cluster: Cluster) -> PaneSpec:
    """The problems of a cluster as a pane; worst first, as the cluster ranks them."""
    table = ProblemTable(cluster.clock.now)
    return PaneSpec(
        id="problems",
        kind="problem",
        source=PROBLEMS,
        rows=lambda view: cluster.problems(),
        key=lambda problem: problem.key,
        health=health,
        columns=table.columns(),
        fields=table.fields(),
        record=report.problem_record,
        copied=lambda keys: _copied(cluster.problems(), keys),
        empty=lambda view: text_of(calm_pieces(cluster)),
        nodes=lambda problem: [key for kind, key in problem.about if kind == "node"],
    )


def text_of(line: Line) -> str:
    """The words of a line without their styles."""
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in line)


def _copied(problems: Sequence[Problem], keys: Sequence[str]) -> str:
    """What one pastes into a channel: each problem as one line, with what to do."""
    at = {problem.key: problem for problem in problems}
    found = [at[key] for key in keys if key in at]
    return "\n".join(": ".join(word for word in (p.subject, p.title, p.next_step) if word) for p in found)


def calm_pieces(cluster: Cluster, width: int = 0) -> Line:
    """What it means that there is no problem: all is well only where every source was read just now.

    Of what was checked as much is told as fits in `width` cells (0: there is no limit).
    """
    steady, states = cluster.clock.steady(), cluster.sources()
    if all(state.good is None and state.error is None for state in states):
        return [(f"nothing is known yet: reading from {cluster.config.head} …", "dim")]
    told = {kind: [s.name for s in states if s.freshness(steady) is kind] for kind in _DOUBTS}
    if not any(told.values()):
        calm, checked = "nothing is wrong that the cockpit can see", _checked(cluster)
        while width and checked and len(calm) + len(_told(checked)) > width:
            checked = checked[:-1]
        return [calm, (_told(checked), "dim")]
    doubts: list[Piece] = [
        (f" · {', '.join(names)} {_DOUBTS[kind][0]}", _DOUBTS[kind][1]) for kind, names in told.items() if names
    ]
    return ["no problem is known, but not everything is", *doubts]


# How data that are not live are told, worst first, and in which style.
_DOUBTS = {
    Freshness.LOST: ("lost", "critical"),
    Freshness.STALE: ("not read for a while", "warning"),
    Freshness.NEVER: ("not read yet", "dim"),
}


def _told(checked: Sequence[str]) -> str:
    return f" · checked: {', '.join(checked)}" if checked else ""


def _checked(cluster: Cluster) -> list[str]:
    """What the calm rests on, in numbers of what was looked at."""
    view, words = cluster.view, []
    if view.nodes is not None:
        words.append(plural(len(view.nodes), "node"))
    if view.fleet is not None:
        read = sum(1 for row in view.gpu_rows if row.sample is not None and row.sample.taken_at is not None)
        missing = "" if read == len(view.gpu_rows) else f"{read} of "
        words.append(f"{missing}{plural(len(view.gpu_rows), 'GPU')}")
    if view.queue is not None:
        words.append(plural(len(view.queue.jobs), "job"))
    return [*words, plural(len(cluster.store.states()), "source")]
