"""Environments without their secrets: only what explains a bandwidth may be shown or kept."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cockpit.text import printable

HIDDEN = "(hidden)"
_MAX_VALUE = 400
_EXPLAINS = re.compile(
    r"(?:NCCL|OFI_NCCL|FI|RDMAV|OMPI_MCA|PMIX_MCA|UCX)_[A-Z0-9_]+|CUDA_VISIBLE_DEVICES|LD_LIBRARY_PATH"
    r"|SLURM_(?:JOB_ID|JOB_NODELIST|JOB_NUM_NODES|NNODES|NTASKS|NTASKS_PER_NODE|JOB_PARTITION|MPI_TYPE)"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASS|KEY|CRED|AUTH|COOKIE", re.IGNORECASE)


def shown_setting(name: str, value: str) -> str:
    """The value as it may be shown: cut, printable, hidden where the name sounds like a secret."""
    return HIDDEN if _SECRET.search(name) else printable(value[:_MAX_VALUE])


def redact(variables: Iterable[tuple[str, str]]) -> tuple[dict[str, str], int]:
    """The variables that explain a bandwidth, and how many others were left out."""
    kept: dict[str, str] = {}
    hidden = 0
    for name, value in variables:
        if _EXPLAINS.fullmatch(name) and not _SECRET.search(name):
            kept[name] = shown_setting(name, value)
        else:
            hidden += 1
    return kept, hidden
