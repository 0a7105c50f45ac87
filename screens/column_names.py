"""What `columns:` in the config may name: every pane with its columns, and the check of a user's lists. No Textual."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cockpit.config import ColumnsSetting
from cockpit.words import nearest
from screens.column_choice import Choice
from screens.grid_model import Column

_OWN = "own."  # of a site's own checks: the catalogue does not know them


def _unasked(*args: Any) -> Any:
    raise AssertionError("only the columns are looked at, no cell of them")


def _nodes() -> Sequence[Column[Any]]:
    from screens.node_table import NodeTable

    return NodeTable(_unasked, _unasked, _unasked, _unasked).columns()


def _gpus() -> Sequence[Column[Any]]:
    from screens.gpu_table import GpuTable

    return GpuTable(_unasked).columns()


def _queue() -> Sequence[Column[Any]]:
    from screens.queue_table import QueueTable

    return QueueTable(_unasked).columns()


def _problems() -> Sequence[Column[Any]]:
    from screens.problem_table import ProblemTable

    return ProblemTable(_unasked).columns()


def _nccl() -> Sequence[Column[Any]]:
    from screens.nccl_table import NcclTable

    return NcclTable(_unasked).columns()


def _checks(kind: str) -> Callable[[], Sequence[Column[Any]]]:
    def columns() -> Sequence[Column[Any]]:
        from cockpit.catalog.checks import checks_for
        from screens.check_table import CheckTable

        return CheckTable(kind, _unasked).columns(fine=list(checks_for(kind)))

    return columns


def _versions() -> Sequence[Column[Any]]:
    from screens.check_table import version_columns

    return version_columns(_unasked)


def _storage() -> Sequence[Column[Any]]:
    from screens.storage_table import StorageTable

    return StorageTable().columns()


def _cost() -> Sequence[Column[Any]]:
    from screens.cost_table import CostTable

    return CostTable().columns()


def _log() -> Sequence[Column[Any]]:
    from screens.log_table import LogTable

    return LogTable(_unasked).columns()


# By the id of the pane's table; each is only loaded when it is named.
COLUMNS: Mapping[str, Callable[[], Sequence[Column[Any]]]] = {
    "problems": _problems,
    "nodes": _nodes,
    "gpus": _gpus,
    "queue": _queue,
    "nccl": _nccl,
    "checks-efa": _checks("efa"),
    "checks-health": _checks("health"),
    "checks-versions": _versions,
    "storage": _storage,
    "cost": _cost,
    "log": _log,
}


def read_columns(settings: Mapping[str, ColumnsSetting]) -> dict[str, Choice]:
    """Check what the config says about columns. Raises ConfigError, with file and line, for the first mistake."""
    return {pane: _read(pane, setting) for pane, setting in settings.items()}


def _read(pane: str, setting: ColumnsSetting) -> Choice:
    make = COLUMNS.get(pane)
    if make is None:
        raise setting.error(pane, f"there is no such table{nearest(pane, COLUMNS)}")
    known = [column.id for column in make()]
    if not setting.names:
        raise setting.error(pane, f"needs at least one column; there are {', '.join(known)}")
    for name in setting.names:
        if (why := _refusal(name, known, setting.names)) is not None:
            raise setting.error(pane, why)
    return Choice(setting.names, only=True)


def _refusal(name: str, known: Sequence[str], names: Sequence[str]) -> str | None:
    if name not in known and not (name.startswith(_OWN) and any("." in each for each in known)):
        return f"there is no column `{name}`{nearest(name, known)}"
    if names.count(name) > 1:
        return f"`{name}` stands twice"
    return None


def table() -> str:
    """Every table and its columns in Markdown, for docs/CONFIG.md; those that are usually not shown in brackets."""
    rows = [f"| `{pane}` | {', '.join(map(_shown, make()))} |" for pane, make in COLUMNS.items()]
    return "\n".join(["| table | columns |", "|---|---|", *rows])


def _shown(column: Column[Any]) -> str:
    return f"(`{column.id}`)" if column.wide else f"`{column.id}`"
