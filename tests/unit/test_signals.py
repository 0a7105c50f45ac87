"""A cockpit that is told to end leaves the terminal as it was, and nothing of its demo behind."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal(number: signal.Signals, tmp_path: Path) -> None:
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "TMPDIR": str(tmp_path)}
    argv = [sys.executable, "-m", "cockpit", "demo"]
    process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
    os.close(slave)
    output = b""
    try:
        until = time.monotonic() + 30
        while b"gpu-st-p5-1" not in output:
            output += os.read(master, 65536)
            assert time.monotonic() < until
        process.send_signal(number)
        try:
            while chunk := os.read(master, 65536):
                output += chunk
        except OSError:
            pass
        assert process.wait(10) == 128 + number
    finally:
        if process.poll() is None:
            process.kill()
        os.close(master)
    assert output.rindex(b"\x1b[?1049l") > output.rindex(b"\x1b[?1049h")  # back from the alternate screen
    assert output.rindex(b"\x1b[?1000l") > output.rindex(b"\x1b[?1000h")  # and the mouse is the terminal's again
    assert not list(tmp_path.glob("cockpit-demo-*"))


@pytest.mark.parametrize("told", [True, False], ids=["sighup", "no-signal"])
def test_a_terminal_that_goes_away_ends_the_cockpit(told: bool, tmp_path: Path) -> None:
    # Only the leader of the terminal's session is sent SIGHUP: under `make demo` that is make, which waits for us.
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "TMPDIR": str(tmp_path)}
    lead = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n" if told else ""
    code = lead + "from cockpit.cli import main\nmain(['demo'])"
    argv = [sys.executable, "-c", code]
    process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
    os.close(slave)
    output = b""
    try:
        until = time.monotonic() + 30
        while b"gpu-st-p5-1" not in output:
            output += os.read(master, 65536)
            assert time.monotonic() < until
        os.close(master)  # the kernel hangs up
        process.wait(20)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
            pytest.fail("it went on without a terminal")
    assert not list(tmp_path.glob("cockpit-demo-*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_ended_before_its_screen_listens_leaves_nothing_behind(
    number: signal.Signals, tmp_path: Path
) -> None:
    argv = [sys.executable, "-m", "cockpit", "demo", "--headless", "--seconds", "60"]
    process = subprocess.Popen(argv, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while not list(tmp_path.glob("cockpit-demo-*/stubs.sock")):  # it is at work, and its keys come next
            assert time.monotonic() < until
            time.sleep(0.005)
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert not list(tmp_path.glob("cockpit-demo-*"))
