"""Which cockpit this is: its version, and the commit it was built of or is run from."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path

PACKAGE = "gpu-cockpit"
_HERE = Path(__file__).resolve().parent
_GIT_S = 3.0


def version() -> str:
    """The version of the package; "unknown" when it is run without being installed."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return "unknown"


def commit() -> str:
    """The commit, with `+changes` when there were any beside it; "" when nobody knows."""
    try:
        return (_HERE / "COMMIT").read_text(encoding="utf-8").strip()
    except OSError:
        return _of_checkout()


def _of_checkout() -> str:
    root = _HERE.parent
    if not (root / ".git").exists():
        return ""
    found = _git(root, "rev-parse", "--short=10", "HEAD")
    return f"{found}+changes" if found and _git(root, "status", "--porcelain", "--untracked-files=no") else found


def _git(root: Path, *words: str) -> str:
    argv = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_GIT_S)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def version_line() -> str:
    """One line for people and bug reports."""
    built = f" ({commit()})" if commit() else ""
    return f"cockpit {version()}{built}, Python {platform.python_version()}"
