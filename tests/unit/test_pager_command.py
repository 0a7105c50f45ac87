"""The argv of the pager: nothing of a path is ever seen by a shell but as one word."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cockpit.config import ClusterConfig
from cockpit.hosts.pager_command import find_pager
from tests.sshd import Sshd, needs_sshd

ODD = "$(touch pwned) `id` 'x' \"y\" \\ !z.out"


@pytest.fixture(name="page")
def _page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\n[ "$1" = -- ] && exec cat -- "$2"\n')
    pager.chmod(0o755)
    monkeypatch.setenv("PAGER", str(pager))
    path = tmp_path / ODD
    path.write_text("paged\n")
    return path


def test_on_this_machine(page: Path, tmp_path: Path) -> None:
    argv = find_pager(ClusterConfig("here"), str(page))
    assert subprocess.run(argv, capture_output=True, check=True, cwd=tmp_path).stdout == b"paged\n"
    assert not (tmp_path / "pwned").exists()


def test_a_head_with_a_login_and_a_port(tmp_path: Path) -> None:
    argv = find_pager(ClusterConfig("one", head="ops@head.example:2200", ssh_config=tmp_path / "c"), "/fsx/a.out")
    assert argv[:-1] == ["ssh", "-t", "-F", str(tmp_path / "c"), "-l", "ops", "-p", "2200", "--", "head.example"]


@pytest.mark.sshd
@pytest.mark.parametrize("_", [pytest.param(None, marks=needs_sshd)])
def test_over_ssh(_: None, page: Path, tmp_path: Path) -> None:
    with Sshd(tmp_path / "sshd", options=[f"SetEnv PAGER={os.environ['PAGER']}"]) as server:
        argv = find_pager(ClusterConfig("one", head="box", ssh_config=server.write_config()), str(page))
        done = subprocess.run(argv, capture_output=True, check=False, timeout=30, stdin=subprocess.DEVNULL)
    assert done.stdout.replace(b"\r", b"") == b"paged\n", done.stderr
