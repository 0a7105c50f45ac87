"""What is handed out works on its own: wheel and source distribution in a clean environment, and the single file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import pyz

ROOT = Path(__file__).parents[2]
# Runs `cockpit status --json` on a demo of its own; its words are the scenario.
_STATUS = """
import subprocess, sys
from cockpit.demo.cluster import DemoCluster
with DemoCluster(scenario=sys.argv[1]) as config:
    sys.exit(subprocess.run([sys.argv[2], "--config", str(config), "status", "--json"]).returncode)
"""

pytestmark = pytest.mark.packaging


def run(argv: Sequence[str | Path], home: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Without anything of this checkout in the environment."""
    clean = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8", **env}
    words = [str(word) for word in argv]
    return subprocess.run(words, capture_output=True, text=True, env=clean, cwd=home, timeout=300, check=False)


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    argv = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0 and re.search(r"No matching distribution|Connection|resolve", done.stdout + done.stderr):
        pytest.skip("no package index can be reached, which a build needs for setuptools")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a clean environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    argv: list[str | Path] = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        wheel,
    ]
    done = run(argv, folder, **{name: value for name, value in os.environ.items() if name.startswith("PIP_")})
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "bin"


def test_the_wheel_holds_its_data(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    data = [*ROOT.glob("cockpit/**/*.yaml"), *ROOT.glob("themes/*.yaml"), *ROOT.glob("themes/*.tcss")]
    assert {str(path.relative_to(ROOT)) for path in data} <= names
    assert {f"cockpit/probe/agent/{path.name}" for path in ROOT.glob("cockpit/probe/agent/*.py")} <= names
    assert any(name.endswith("share/man/man1/cockpit.1") for name in names)
    assert not [name for name in names if name.startswith("tests/")]
    assert not [name for name in names if name.startswith("setup")]


def test_the_source_distribution_brings_what_its_own_build_needs(dist: Path) -> None:
    (found,) = dist.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "setup.py",
        "README.md",
        "LICENSE",
        "docs/cockpit.1",
        "cockpit/catalog/xids.yaml",
    } <= names


def test_it_says_its_version_and_commit(installed: Path, tmp_path: Path) -> None:
    done = run([installed / "cockpit", "--version"], tmp_path)
    assert re.fullmatch(r"cockpit \d+\.\d+\.\d+ \([0-9a-f]{10}(\+changes)?\), Python [\d.]+\n", done.stdout), done


def test_the_demo_runs_without_a_terminal(installed: Path, tmp_path: Path) -> None:
    done = run([installed / "cockpit", "demo", "--headless", "--seconds", "5"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^gpus +96: ", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize(("scenario", "code"), [("busy", 1), ("calm", 0)])
def test_status_ends_as_the_cluster_is(installed: Path, tmp_path: Path, scenario: str, code: int) -> None:
    done = run([installed / "python", "-c", _STATUS, scenario, installed / "cockpit"], tmp_path)
    told = json.loads(done.stdout)
    assert done.returncode == code, told["problems"]
    assert bool(told["problems"]) is bool(code)


def test_completion_answers_the_shell(installed: Path, tmp_path: Path) -> None:
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": "cockpit dem", "COMP_POINT": "11", "_ARGCOMPLETE_IFS": "\n"}
    script = f'exec 8>&1; exec "{installed}/cockpit"'
    done = run(["sh", "-c", script], tmp_path, **asked)
    assert done.stdout.strip() == "demo"


def test_the_single_file_needs_nothing_installed(wheel: Path, tmp_path: Path) -> None:
    out = tmp_path / "cockpit.pyz"
    pyz.main(wheel, out)
    env = {"SHIV_ROOT": str(tmp_path / "shiv")}
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    done = run([python, "-I", out, "--version"], tmp_path, **env)
    assert done.stdout.startswith("cockpit "), done.stderr
    done = run([python, "-I", out, "demo", "--headless", "--seconds", "4"], tmp_path, **env)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^jobs +\d+ running", done.stdout, re.MULTILINE), done.stdout


def test_the_single_file_says_which_python_it_was_made_for() -> None:
    text = pyz._PREAMBLE.format(major=3, minor=4, machine="riscv64")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "was made for Python 3.4 on riscv64" in done.stderr
    assert "make pyz PYTHON=python" in done.stderr
