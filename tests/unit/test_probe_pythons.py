"""The probe on every Python that this machine has: a node may be as old as 3.6."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest

from cockpit.formats.probe import ProbeReader
from cockpit.probe.bundle import probe_argv, probe_stdin

FOUND = [path for minor in range(6, 16) if (path := shutil.which(f"python3.{minor}"))]


@pytest.mark.parametrize("python", FOUND)
def test_the_agent_runs_and_ends_with_its_input(python: str) -> None:
    if subprocess.run([python, "-IS", "-c", "import zlib"], capture_output=True, check=False).returncode:
        pytest.skip("it does not start, or lacks zlib")
    boot, *words = probe_argv(1)[3:]
    argv = [python, "-IS", "-c", boot, *words]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(probe_stdin())
        process.stdin.flush()
        reader, until = ProbeReader(), time.monotonic() + 20
        for line in process.stdout:
            if (reading := reader.feed(line.rstrip(b"\n"))) is not None:
                break
            assert time.monotonic() < until
        assert reading is not None
        assert reading.load
        assert reader.bad_lines == 0
        process.stdin.close()
        assert process.wait(10) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
