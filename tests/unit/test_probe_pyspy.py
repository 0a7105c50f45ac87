"""Which py-spy a look at a job may run: none that the job's user could have put there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.probe.agent.pyspy import find, ours


@pytest.fixture
def spy(tmp_path: Path) -> Path:
    folder = tmp_path / "env" / "bin"
    folder.mkdir(parents=True)
    path = folder / "py-spy"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def process(proc: Path, spy: Path) -> str:
    """A process of the job, started from that environment."""
    folder = proc / "7"
    folder.mkdir(parents=True)
    (folder / "cmdline").write_bytes(f"{spy.with_name('python3')}\0train.py\0".encode())
    return str(proc)


def test_one_of_this_login_is_run(spy: Path, tmp_path: Path) -> None:
    assert ours(str(spy))
    assert find(process(tmp_path / "proc", spy), [7]) == os.path.realpath(spy)


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_one_that_others_can_replace_is_not(spy: Path, tmp_path: Path, mode: int) -> None:
    os.chown(spy.parent.parent, -1, next(iter(set(os.getgroups()) - {0, os.getuid()}), -1))
    spy.parent.parent.chmod(mode)
    if mode == 0o775 and spy.parent.parent.stat().st_gid in (0, os.getuid()):
        pytest.skip("this login is in no group of others")
    assert not ours(str(spy))
    assert find(process(tmp_path / "proc", spy), [7]) != os.path.realpath(spy)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_one_of_the_jobs_user_is_not_run_even_by_root(spy: Path, tmp_path: Path) -> None:
    os.chown(spy, 12345, 12345)
    assert not ours(str(spy))
    os.chown(spy, 0, 0)
    assert ours(str(spy))
    os.chown(spy.parent, 12345, 12345)
    assert find(process(tmp_path / "proc", spy), [7]) != os.path.realpath(spy)


def test_a_link_to_another_program_is_not_run(spy: Path) -> None:
    spy.unlink()
    spy.symlink_to("/bin/sh")
    assert not ours(str(spy))
