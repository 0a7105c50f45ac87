"""Where the NCCL tests of a cluster are kept. By itself, so that a start need not load what reads them."""

from __future__ import annotations

from pathlib import Path

from cockpit.config import state_dir
from cockpit.kept_lines import cluster_file


def history_path(cluster: str) -> Path:
    """Where a cluster's runs are kept."""
    return cluster_file(state_dir() / "nccl", cluster)
