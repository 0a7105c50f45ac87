"""The words of a Grid: its title line, and what it says where there are no rows."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.models import Health
from themes.glyphs import Signs

Pieces = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TitleFacts:
    """What the title tells. `total` is None before the first reading; `sort` is a column's title."""

    title: str
    focused: bool
    total: int | None
    shown: int
    marked: int
    hidden_marks: int
    lost_marks: int
    range_size: int
    filter_text: str
    problems_only: bool
    sort: str
    descending: bool
    stale: str | None
    dropped: int
    wide: bool
    empty: str
    waiting: str
    sort_hidden: bool = False  # sorted by a column that is not shown
    headline: str = ""  # what the rows come to


def title_pieces(facts: TitleFacts, signs: Signs) -> tuple[Pieces, Pieces]:
    """The title as (left, right) pieces of (text, style token): `nodes 12 · 2 marked · filter "gpu" 5/12`."""
    left = [(facts.title, "bright" if facts.focused else "text")]
    if facts.total is not None:
        left.append((f" {facts.headline}" if facts.headline else f" {facts.total:,}", "text"))
    if facts.stale is not None:
        left.append((f" {signs.dot} {signs.states[Health.UNKNOWN]} {facts.stale}", "bright"))
    more = [(_marks(facts), "mark"), (_range(facts), "mark"), (_hiding(facts), "accent")]
    if facts.sort:
        unseen = " (hidden)" if facts.sort_hidden else ""
        more.append((f"sort {facts.sort}{unseen} {signs.down if facts.descending else signs.up}", "dim"))
    left += [(f" {signs.dot} {text}", token) for text, token in more if text]
    right = "wide" if facts.wide else f"+{facts.dropped} column{'s' * (facts.dropped > 1)}: w" if facts.dropped else ""
    return tuple(left), ((right, "dim"),) if right else ()


def empty_words(facts: TitleFacts) -> str:
    """Why there are no rows: not read yet, nothing there, or all hidden; empty when there are rows."""
    if facts.total is None:
        return facts.waiting
    if facts.shown:
        return ""
    if not facts.total:
        return facts.empty
    if facts.filter_text:
        what = f'the filter "{facts.filter_text}"'
        what += " and problems-only hide" if facts.problems_only else " hides"
        return f"{what} all {facts.total:,}: esc clears the filter"
    return f"none of {facts.total:,} deviates: ! shows all"


def _marks(facts: TitleFacts) -> str:
    if not facts.marked and not facts.lost_marks:
        return ""
    notes = [f"{facts.hidden_marks} hidden"] if facts.hidden_marks else []
    notes += [f"{facts.lost_marks} gone"] if facts.lost_marks else []
    return f"{facts.marked} marked" + (f" ({', '.join(notes)})" if notes else "")


def _range(facts: TitleFacts) -> str:
    return f"range of {facts.range_size}: v marks it, esc leaves" if facts.range_size else ""


def _hiding(facts: TitleFacts) -> str:
    words = "problems only" if facts.problems_only else ""
    if facts.filter_text:
        words += f'{" and " if words else ""}filter "{facts.filter_text}"'
    return f"{words} {facts.shown:,}/{facts.total or 0:,}" if words else ""
