"""With `remember: true` in the config: the pane; columns, sort, filter and width of tables; from run to run."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.screen import Screen

from cockpit.cluster import Cluster
from cockpit.config import state_dir
from cockpit.export import new_stem, private_dir, write_private
from cockpit.kept_lines import cluster_file
from screens.column_choice import as_json, from_json
from screens.filters import FilterError
from screens.key_table import KEYS
from screens.pane import TablePane
from screens.trail import Trail

EVERY_S = 2.0
SCHEMA = 1
_MOST_BYTES = 2**16
_MOST_FILTER = 300
PANES = frozenset(found[1] for key in KEYS if (found := re.fullmatch(r"pane\('(\w+)'\)", key.action)))


@dataclass(frozen=True, slots=True)
class Seen:
    """What was looked at: the pane's name, and each table by the id of its widget."""

    pane: str = "overview"
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def view_file(cluster: str) -> Path:
    """Where it is kept."""
    return cluster_file(state_dir() / "view", cluster, ".json")


def read_seen(path: Path) -> Seen:
    """What was kept; the usual where nothing was, or nothing that can be read."""
    try:
        with path.open(encoding="utf-8") as file:
            found = json.loads(file.read(_MOST_BYTES))
        tables = {str(name): table for name, table in found["tables"].items() if isinstance(table, dict)}
        return Seen(found["pane"] if found["pane"] in PANES else "overview", tables)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Seen()


def write_seen(path: Path, seen: Seen) -> None:
    """Keep it, whole or not at all; raises OSError."""
    private_dir(path.parent)
    fresh = path.with_name(f"{new_stem('view')}.tmp")
    write_private(fresh, json.dumps({"schema": SCHEMA, "pane": seen.pane, "tables": seen.tables}, ensure_ascii=False))
    os.replace(fresh, path)


def look_of(table: TablePane) -> dict[str, Any]:
    """How a table is looked at. A filter is kept only where it stands in sight: not in the panels of the overview."""
    sort, descending = table.sort
    found: dict[str, Any] = {"sort": sort, "descending": descending, "wide": table.canvas.wide}
    if table.choice is not None:
        found["columns"] = as_json(table.choice)
    return found if _is_panel(table) else found | {"filter": table.filter_text[:_MOST_FILTER]}


def apply(table: TablePane, kept: Mapping[str, Any]) -> None:
    """Look at a table as before; what it no longer knows is passed over."""
    sort, words = kept.get("sort"), kept.get("filter")
    if (choice := from_json(kept.get("columns"))) is not None:
        table.choose_columns(choice)
    with suppress(KeyError, TypeError):
        if sort is None or isinstance(sort, str):
            table.set_sort(sort, kept.get("descending") is True)
    if isinstance(words, str) and not _is_panel(table):
        with suppress(FilterError):
            table.set_filter(words[:_MOST_FILTER])
    if (kept.get("wide") is True) != table.canvas.wide:
        table.action_wide()


def _is_panel(table: TablePane) -> bool:
    return (table.id or "").startswith("overview-")


class Remembers(Screen[None]):
    """The part of a cluster's screen that keeps how it is looked at. Nothing waits for the disk."""

    cluster: Cluster
    trail: Trail
    _seen_before: Seen | None = None  # None: nothing is kept, or it is not read yet

    def begin_to_remember(self) -> None:
        """Read what was kept, on a thread, and keep what is looked at from then on."""
        threading.Thread(target=self.read_view, name="read-view", daemon=True).start()

    def read_view(self) -> None:
        """Runs on a thread."""
        seen = read_seen(view_file(self.cluster.config.name))
        if self.is_running:
            self.app.call_from_thread(self.restore_view, seen)

    def restore_view(self, seen: Seen) -> None:
        """Look at everything as it was kept, and keep it from now on."""
        self._seen_before = seen
        self.restore_tables()
        # Whoever has gone somewhere in the meantime stays there.
        if seen.pane != "overview" and self.trail.here.view == "pane-overview":
            self.call_later(self.run_action, f"pane('{seen.pane}')")
        self.set_interval(EVERY_S, self.keep_view)

    def restore_tables(self) -> None:
        """Look at tables that are new on the screen as they were looked at before."""
        if self._seen_before is None:
            return
        for table in self.query(TablePane):
            kept = self._seen_before.tables.get(table.id or "")
            if kept is not None and not table.has_class("-restored"):
                apply(table, kept)
            table.add_class("-restored")

    def view_now(self) -> Seen:
        """How it is looked at now; tables that were not opened in this run stay as they were kept."""
        before = self._seen_before or Seen()
        now = {table.id or "": look_of(table) for table in self.query(TablePane) if table.has_class("-restored")}
        return Seen(self.trail.pane.view.removeprefix("pane-"), {**before.tables, **now})

    def keep_view(self) -> None:
        """Write it down, on a thread, when it is not as it was."""
        seen = self.view_now()
        if seen == self._seen_before:
            return
        self._seen_before, path = seen, view_file(self.cluster.config.name)

        def work() -> None:
            with suppress(OSError):  # no room, no right: what is lost is only how it was looked at
                write_seen(path, seen)

        threading.Thread(target=work, name="keep-view", daemon=True).start()
