"""Where the check runs of a cluster are kept; what reads them need not be loaded to know it."""

from __future__ import annotations

from pathlib import Path

from cockpit.config import state_dir
from cockpit.kept_lines import cluster_file


def history_path(cluster: str) -> Path:
    """Where a cluster's check runs are kept."""
    return cluster_file(state_dir() / "checks", cluster)
