"""What `Y` can put on the clipboard: the same rows as names, table, JSON, markdown or command. Pure, no Textual."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cockpit.export import inert, markdown_row, markdown_rule
from cockpit.formats.hostlist import fold
from cockpit.words import plural
from screens.grid_model import cell_text
from screens.pane_spec import PaneSpec

MOST = 50_000  # characters; terminals and tmux cut longer OSC 52 sequences


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing to copy, made when it is looked at; `text` gives None for what is too long for a clipboard."""

    letter: str
    title: str
    text: Callable[[], str | None]


def row_offers(spec: PaneSpec, rows: Sequence[Any]) -> list[Offer]:
    """What can be copied of some rows of a pane, at least one."""
    keys = [spec.key(row) for row in rows]
    offers = [Offer("n", "names", lambda: bounded(_names(spec, keys), "\n"))]
    if nodes := {name for row in rows for name in spec.nodes(row)}:
        title = "nodes, folded" if spec.kind == "node" else f"{plural(len(nodes), 'node')} behind them, folded"
        offers.append(Offer("f", title, lambda: bounded([fold(nodes)])))
    offers += [
        Offer("t", "table for a spreadsheet (TSV)", lambda: bounded(_tsv(spec, rows), "\n")),
        Offer("m", "table in markdown", lambda: bounded(_markdown(spec, rows), "\n")),
        Offer("o", "JSON objects", lambda: bounded(_json(spec, rows), "\n")),
    ]
    if command := spec.command(rows):
        offers.append(Offer("c", f"{command[0]} command", lambda: bounded([shlex.join(command)])))
    return offers


def text_offers(whole: str, line: str) -> list[Offer]:
    """What can be copied of a text: all of it, or the line that the cursor is on."""
    offers = [Offer("w", "the whole text", lambda: bounded([whole]))]
    return [Offer("l", "this line", lambda: bounded([line])), *offers] if line.strip() else offers


def bounded(parts: Iterable[str], between: str = "") -> str | None:
    """Join the parts; None as soon as they are more than a clipboard takes, without making the rest."""
    taken: list[str] = []
    size = 0
    for part in parts:
        size += len(part) + len(between)
        if size > MOST + len(between):
            return None
        taken.append(part)
    return between.join(taken)


def _names(spec: PaneSpec, keys: Iterable[str]) -> Iterator[str]:
    return (spec.copied([key]) for key in keys)


def _tsv(spec: PaneSpec, rows: Iterable[Any]) -> Iterator[str]:
    """Every column as shown; no cell holds a tab, since texts from outside are one harmless line."""
    yield "\t".join(column.title for column in spec.columns)
    for row in rows:
        yield "\t".join(inert(cell_text(column.cell(row))) for column in spec.columns)


def _markdown(spec: PaneSpec, rows: Iterable[Any]) -> Iterator[str]:
    """The usual columns, for an incident channel; names from outside are no markup there."""
    columns = [column for column in spec.columns if not column.wide]
    yield markdown_row(column.title for column in columns)
    yield markdown_rule(column.align for column in columns)
    for row in rows:
        yield markdown_row(cell_text(column.cell(row)) for column in columns)


def _json(spec: PaneSpec, rows: Sequence[Any]) -> Iterator[str]:
    """One row is one object, several are an array."""
    if len(rows) == 1:
        yield _object(spec, rows[0])
        return
    yield "["
    for number, row in enumerate(rows, 1):
        yield _object(spec, row) + ("," if number < len(rows) else "")
    yield "]"


def _object(spec: PaneSpec, row: Any) -> str:
    return json.dumps(spec.record(row), ensure_ascii=False, indent=1)
