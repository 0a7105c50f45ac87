"""Which nodes somebody has before their eyes: those are dialled and watched before all others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from screens.heatmap import Heatmap
from screens.pane import TablePane

if TYPE_CHECKING:
    from screens.cockpit_screen import CockpitScreen

_KINDS = ("node", "gpu")


def nodes_on_screen(screen: CockpitScreen) -> frozenset[str]:
    """Names of the nodes in the lines that are not scrolled away, and of the one whose details are shown."""
    return frozenset(_nodes(screen))


def _nodes(screen: CockpitScreen) -> Iterator[str]:
    subject = screen.subject()
    if subject is not None and subject.kind in _KINDS:
        yield _node(subject.key)
    if screen.in_detail:
        return
    front = screen.front
    for table in (front, *front.query(TablePane)):
        if isinstance(table, TablePane) and table.spec.kind in _KINDS and table.display:
            yield from _in_table(table)
    for heat in front.query(Heatmap):
        if heat.display:
            yield from _in_heatmap(heat)


def _in_table(table: TablePane) -> Iterator[str]:
    state = table.state
    if state.view is not None:
        places = range(state.top, min(state.top + state.height, state.count))
        yield from (_node(state.view.key(place)) for place in places)


def _in_heatmap(heat: Heatmap) -> Iterator[str]:
    state = heat.state
    shown = islice(state.rows, state.top * state.per_line, (state.top + state.height) * state.per_line)
    yield from (row.key for row in shown)


def _node(key: str) -> str:
    return key.partition("/")[0]
