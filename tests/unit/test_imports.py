"""What a fresh interpreter has loaded: the promises that a static import graph cannot see."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("boto3", "botocore", "paramiko", "pynvml", "cryptography")


def loaded_by(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(' '.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["cockpit.app", "cockpit.cluster", "cockpit.cli", "screens.grid"])
def test_network_libraries_wait_until_they_are_needed(module: str) -> None:
    assert loaded_by(f"import {module}").isdisjoint(HEAVY)


@pytest.mark.parametrize("module", ["cockpit.cluster", "cockpit.report", "cockpit.cli", "cockpit.demo.cluster"])
def test_the_engine_runs_without_textual(module: str) -> None:
    assert "textual" not in loaded_by(f"import {module}")


def test_the_cli_starts_lean() -> None:
    assert {"yaml", "textual", "cockpit.cluster"}.isdisjoint(loaded_by("import cockpit.cli"))


def test_packing_the_probe_is_not_importing_nvml() -> None:
    assert "pynvml" not in loaded_by("from cockpit.probe.bundle import probe_stdin\nprobe_stdin()")
