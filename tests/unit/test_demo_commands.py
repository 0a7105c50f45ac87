"""Which exec requests are calls of a simulated program, and what they hand to it."""

from __future__ import annotations

import pytest

from cockpit.demo.commands import interpret
from cockpit.hosts.base import command_line

ENV = {"PATH": "/demo/bin", "LANG": "C.UTF-8", "SQUEUE_FORMAT": "%i"}


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("squeue", ("squeue",)),
        ("/opt/slurm/bin/squeue -h", ("/opt/slurm/bin/squeue", "-h")),
        ("timeout -k 2 8 sinfo -s", ("sinfo", "-s")),
        ("timeout --foreground -s KILL 8s sinfo", ("sinfo",)),
        ("sudo -n scontrol ping", ("scontrol", "ping")),
        ("sudo -n -u slurm /opt/slurm/bin/scontrol ping", ("/opt/slurm/bin/scontrol", "ping")),
        ("timeout 8 sudo -n env A=1 squeue", ("squeue",)),
        ("LC_ALL=C squeue", ("squeue",)),
        ("squeue -O 'JobID:0\x1f,Name:0\x1e'", ("squeue", "-O", "JobID:0\x1f,Name:0\x1e")),
        ("squeue -n 'a;b|c>d&e'", ("squeue", "-n", "a;b|c>d&e")),
        ('squeue -n "two words" x\\ y', ("squeue", "-n", "two words", "x y")),
        ("squeue -u '$(id)'", ("squeue", "-u", "$(id)")),
        ("squeue -u $(id)", ("squeue", "-u", "$(id)")),
        ("squeue -n 'line\nbreak'", ("squeue", "-n", "line\nbreak")),
    ],
)
def test_calls_of_simulated_programs(line: str, argv: tuple[str, ...]) -> None:
    call = interpret(line, ENV)
    assert call is not None
    assert call.argv == argv


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ls",
        "squeue | head",
        "squeue; id",
        "squeue > out",
        "squeue && id",
        "squeue\nid",
        "command -v squeue",
        "sh -c 'squeue'",
        "env",
        "timeout 5",
        "sudo -n true",
        "squeue 'unclosed",
    ],
)
def test_lines_for_a_shell(line: str) -> None:
    assert interpret(line, ENV) is None


def test_environment_of_wrappers() -> None:
    call = interpret("env -u SQUEUE_FORMAT SLURM_TIME_FORMAT=%s LC_ALL=C squeue", ENV)
    assert call is not None
    assert call.env == {
        "PATH": "/demo/bin",
        "LANG": "C.UTF-8",
        "SLURM_TIME_FORMAT": "%s",
        "LC_ALL": "C",
    }
    cleared = interpret("env -i A=1 -- squeue", ENV)
    assert cleared is not None
    assert cleared.env == {"A": "1"}
    assert ENV["SQUEUE_FORMAT"] == "%i", "the caller's environment stays as it was"


def test_what_hosts_send_is_understood() -> None:
    argv = ["/opt/slurm/bin/squeue", "-h", "-O", "JobID:0\x1f,Name:0\x1e", "-n", "it's $HOME `id`"]
    line = command_line(argv, deadline_s=8.5, env={"SLURM_TIME_FORMAT": "%s"}, unset=["SQUEUE_FORMAT", "NOT_SET"])
    call = interpret(line, ENV)
    assert call is not None
    assert list(call.argv) == argv
    assert "SQUEUE_FORMAT" not in call.env
    assert call.env["SLURM_TIME_FORMAT"] == "%s"
