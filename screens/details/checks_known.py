"""The checks of a node in the details of it: a line each, which leads to all of them. Imports no Textual."""

from __future__ import annotations

from cockpit.cluster import Cluster
from cockpit.words import span
from screens.check_book import KINDS, CheckRow, check_book
from screens.check_runs import TITLES
from screens.lines import LABEL_WIDTH, Line, Link, Subject, section
from themes import state_token


def checks_of(cluster: Cluster, node: str) -> list[Line]:
    """What the last checks found; nothing while no check of the node is known."""
    book = check_book(cluster)
    rows = [row for kind in KINDS if (row := book.row(kind, node)) is not None and row.verdict is not None]
    return [[], section("checks"), *(_line(cluster, row) for row in rows)] if rows else []


def _line(cluster: Cluster, row: CheckRow) -> Line:
    from screens.check_table import health, verdict_word, what_text  # the catalogue is no part of the first paint

    link = Link(f"{TITLES[row.kind]}", state_token(health(row)), Subject(row.kind, row.node))
    age = f"  {span(cluster.clock.now() - row.at)} ago" if row.at is not None else ""
    told = what_text(row)
    words = f"  {verdict_word(row)}{f': {told}' if told else ''}"
    return ["  ", link, " " * max(1, LABEL_WIDTH + 1 - len(link.text)), (words, state_token(health(row))), (age, "dim")]
