"""What pyproject.toml cannot say: a build carries the commit that it was made of, for `cockpit --version`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent


def git(*words: str) -> str:
    """What git says of this very checkout; "" where it says nothing."""
    try:
        done = subprocess.run(["git", "-C", str(HERE), *words], capture_output=True, text=True, check=False, timeout=20)  # noqa: S607
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def write_commit(package: Path) -> None:
    """Leave the commit in the package's file; a source distribution brings that of its own build along."""
    if git("rev-parse", "--show-toplevel") != str(HERE):
        return
    changed = "+changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    (package / "COMMIT").write_text(git("rev-parse", "--short=10", "HEAD") + changed + "\n", encoding="utf-8")


class BuildWithCommit(build_py):
    """Builds for wheels."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            write_commit(Path(self.build_lib) / "cockpit")


class SdistWithCommit(sdist):
    """The source distribution."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        write_commit(Path(base_dir) / "cockpit")


setup(cmdclass={"build_py": BuildWithCommit, "sdist": SdistWithCommit})
