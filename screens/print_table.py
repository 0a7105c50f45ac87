"""The tables of `cockpit status`, `nodes` and `jobs` without --json: the panes' own columns as plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

from cockpit import joins
from cockpit.cluster import Cluster
from cockpit.models import Problem
from cockpit.text import printable
from cockpit.words import count, moment, span
from screens.grid_model import Column, cell_text
from screens.panes import pane_specs
from screens.unread import unread_words
from themes.glyphs import WORDS


def lines(cluster: Cluster, command: str) -> list[str]:
    """The lines of one command; sources that failed are told first."""
    told = [f"! {printable(state.error.line())}" for state in cluster.store.states() if state.error]
    if command == "status":
        return told + _status(cluster)
    spec = {spec.id: spec for spec in pane_specs(cluster)}[{"nodes": "nodes", "gpus": "gpus", "jobs": "queue"}[command]]
    rows = spec.rows(cluster.view)
    if rows is None:
        return told
    if command == "gpus":
        told += [printable(words) for words in unread_words(cluster.view.fleet)]
    return (
        told + table([column for column in spec.columns if not column.wide], rows)
        if rows
        else [*told, spec.empty(cluster.view).partition("\n")[0]]  # what follows is about keys
    )


def table(columns: Sequence[Column[Any]], rows: Sequence[Any]) -> list[str]:
    """Title line and rows, each column as wide as its widest cell; nothing is cut."""
    cells = [[cell_text(column.cell(row)) for column in columns] for row in rows]
    widths = [max(cell_len(text) for text in texts) for texts in zip(*cells, [c.title for c in columns], strict=True)]
    shown = [[column.title for column in columns], *cells]
    return [_line(columns, widths, texts) for texts in shown]


def _line(columns: Sequence[Column[Any]], widths: Sequence[int], texts: Sequence[str]) -> str:
    padded = [
        " " * (width - cell_len(text)) + text if column.align == "right" else set_cell_size(text, width)
        for column, width, text in zip(columns, widths, texts, strict=True)
    ]
    return "  ".join(padded).rstrip()


def _status(cluster: Cluster) -> list[str]:
    view, steady = cluster.view, cluster.clock.steady()
    found = []
    if view.nodes is not None:
        found.append(f"nodes   {len(view.nodes)}: {_tally(joins.nodes_by_word(view.nodes))}")
    if view.gpus.total is not None:
        gpus = view.gpus
        found.append(
            f"gpus    {gpus.total}: {gpus.allocated} allocated, {gpus.free} free, "
            f"{gpus.powered_down} powered down, {gpus.out_of_service} out of service"
        )
    if view.queue is not None:
        by_state = view.queue.by_state
        found.append(f"jobs    {count(by_state.get('R', 0))} running, {count(by_state.get('PD', 0))} pending")
    ages = [f"{s.name} {s.freshness(steady).value} {span(s.age_s(steady))}" for s in cluster.sources()]
    found.append(f"sources {', '.join(ages)}")
    now = cluster.clock.now()
    return found + [printable(_problem(problem, now)) for problem in cluster.problems()]


def _problem(problem: Problem, now: float) -> str:
    """One problem; its key, which `cockpit ack` wants, where that can be typed."""
    age = f" for {span(now - problem.since)}" if problem.since else ""
    line = f"{problem.subject}: {problem.title}{age}"
    if told := problem.acknowledged:
        return f"{'acked':<7} {line} · {told.who} {moment(told.at, now)}: {told.note}"
    key = f"  [{problem.key}]" if re.fullmatch(r"[\w:.,/-]{1,32}", problem.key, re.ASCII) else ""
    return f"{WORDS[problem.health]:<7} {line}{key}"


def acknowledged_lines(cluster: Cluster) -> list[str]:
    """What is acknowledged on this cluster, by whom, when and why."""
    now, found = cluster.clock.now(), cluster.acknowledged.book().values()
    told = [(kept, kept.acknowledgement) for kept in sorted(found, key=lambda kept: -kept.acknowledgement.at)]
    lines = [
        f"{kept.key} · {note.who} {moment(note.at, now)}: {note.note}" + ("" if kept.gone_at is None else " (gone)")
        for kept, note in told
    ]
    return [printable(line) for line in lines] or ["nothing is acknowledged"]


def _tally(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.items())
