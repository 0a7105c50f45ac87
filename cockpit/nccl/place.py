"""Where the NCCL tests of a cluster are kept. By itself, so that a start need not load what reads them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from cockpit.config import state_dir


def history_path(cluster: str) -> Path:
    """Where a cluster's runs are kept."""
    return state_dir() / "nccl" / f"{quote(cluster, safe='')}.jsonl"
