"""What makes a table pane, as data. Imports no Textual, so the command line can print the same tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cockpit.cluster import View
from cockpit.models import Health
from cockpit.sources.base import SourceKey
from screens.grid_model import Column


@dataclass(frozen=True, slots=True)
class PaneSpec:
    """What makes one table pane: its source, its rows, its columns. The panes of the app are a list of these."""

    id: str
    kind: str  # of the Subject that a row is
    source: SourceKey[Any]
    rows: Callable[[View], Sequence[Any] | None]
    key: Callable[[Any], str]
    health: Callable[[Any], Health]
    columns: Sequence[Column[Any]]
    fields: Mapping[str, Callable[[Any], str]]
    record: Callable[[Any], dict[str, Any]]  # the full model of a row, for exports
    copied: Callable[[Sequence[str]], str]  # what `y` puts on the clipboard for these keys
    empty: Callable[[View], str]  # what to say when there are no rows
    nodes: Callable[[Any], Iterable[str]] = lambda row: ()  # the nodes behind a row
    command: Callable[[Sequence[Any]], Sequence[str]] = lambda rows: ()  # Slurm's own way to show them, as argv
    joined: Callable[[View], object] = lambda view: None  # what cells look at besides their row
    sort: str | None = None
    settable: bool = True  # the config's `columns:` has an entry of this id
    headline: Callable[[View], str] = lambda view: ""  # the sums of all rows, for the title
