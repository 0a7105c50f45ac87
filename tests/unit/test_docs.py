"""The documentation is true: what is made from the code is equal to it, and every command in it runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cockpit.cli import main
from cockpit.config_file import load_config
from cockpit.config_reference import MEANINGS, keys
from cockpit.demo.cluster import DemoCluster
from tests import docs
from tests.docs_blocks import FILES, ROOT, Block, blocks, loose_commands, synopses

ALL = [block for path in FILES for block in blocks(path)]
CONSOLE = [block for block in ALL if block.language == "console"]
RUN = [block for block in CONSOLE if block.not_run is None]
FINE = (0, 1)  # 1: something is wrong with the demo's cluster, which is what it is for
_LOG = """\
[rank3]: NCCL WARN Cuda failure 'an illegal memory access was encountered'
[rank3]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1234, unhandled cuda error
"""


def named(block: Block) -> str:
    return block.place


# -- what is made from the code


@pytest.mark.parametrize("path", docs.with_blocks(), ids=lambda path: path.name)
def test_blocks_are_as_the_code_has_them(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == docs.rendered(text), "run `make docs`"


def test_every_block_is_in_some_file() -> None:
    together = "".join(path.read_text(encoding="utf-8") for path in docs.with_blocks())
    assert [name for name in docs.BLOCKS if f"made by make docs: {name} -->" not in together] == []


def test_every_key_of_the_config_has_a_meaning_and_no_other() -> None:
    assert {key.path for key in keys()} == set(MEANINGS)


def test_the_example_config_is_one(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "CONFIG.md").read_text(encoding="utf-8")
    lines = text.split("\n    default: prod", 1)[1].split("\n\n", 1)[0].splitlines()
    path = tmp_path / "config.yaml"
    path.write_text("default: prod" + "\n".join(line[4:] if line.startswith("    ") else line for line in lines) + "\n")
    assert load_config(path).clusters["prod"].head == "ec2-user@head.prod"


def test_every_link_leads_somewhere() -> None:
    dead = []
    for path in FILES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            if not target.startswith(("http://", "https://")) and not (path.parent / target).exists():
                dead.append(f"{path.name}: {target}")
    assert dead == []


# -- commands


def test_commands_stand_in_blocks_that_are_run() -> None:
    assert [line for path in FILES for line in loose_commands(path)] == []
    assert [block.place for block in ALL if block.language in ("sh", "bash", "shell")] == []


def test_what_is_not_run_says_why() -> None:
    assert [block.place for block in CONSOLE if block.not_run == ""] == []
    assert [block.place for block in CONSOLE if not block.commands] == []
    assert len(RUN) >= 10


def test_nothing_that_is_run_changes_a_cluster_unasked() -> None:
    """Every change in the docs is a dry run: somebody may copy it."""
    reads = {"status", "nodes", "gpus", "jobs", "cost", "efa", "check", "ack", "doctor", "audit", "diagnose", "bundle"}
    reads |= {"explain", "output", "demo", "completion", "--version", "keys"}
    for block in RUN:
        for command in block.commands:
            words = command.split()
            assert words[0] == "cockpit", f"{block.place}: {command}"
            assert words[1] in reads or "--dry-run" in words, f"{block.place}: {command}"


@pytest.mark.parametrize("block", [block for block in ALL if block.language == "usage"], ids=named)
def test_synopses_name_commands_that_there_are(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    for words in synopses(block):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--help"])
        assert ended.value.code == 0, words
    assert "usage: cockpit" in capsys.readouterr().out


class Demos:
    """One demo a scenario, kept while the module is tested."""

    def __init__(self) -> None:
        self._clusters: dict[str, DemoCluster] = {}
        self._configs: dict[str, Path] = {}

    def config(self, scenario: str) -> Path:
        if scenario not in self._configs:
            self._clusters[scenario] = DemoCluster(scenario=scenario)
            self._configs[scenario] = self._clusters[scenario].start()
        return self._configs[scenario]

    def stop(self) -> None:
        for cluster in self._clusters.values():
            cluster.stop()


@pytest.fixture(scope="module")
def demos() -> Iterator[Demos]:
    running = Demos()
    yield running
    running.stop()


@pytest.mark.parametrize("block", RUN, ids=named)
def test_every_command_runs(block: Block, demos: Demos, tmp_path: Path) -> None:
    env = _home(tmp_path, demos.config(block.scenario))
    for command in block.commands:
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, env=env, cwd=tmp_path, timeout=120, check=False
        )
        assert done.returncode in FINE, f"{block.place}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr, f"{block.place}: {command}\n{done.stderr}"
        assert done.stdout or "> " in command, f"{block.place}: {command} says nothing"


def _home(folder: Path, config: Path) -> Mapping[str, str]:
    """A login whose `cockpit` is this one, whose config is the demo's, and that has the files the docs speak of."""
    (folder / "bin").mkdir()
    (folder / "bin" / "cockpit").write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m cockpit "$@"\n')
    (folder / "bin" / "cockpit").chmod(0o755)
    (folder / "cockpit").mkdir()
    (folder / "cockpit" / "config.yaml").symlink_to(config)
    (folder / "train.log").write_text(_LOG)
    aws = {name: str(config.parent / "aws_keys") for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")}
    path = f"{folder}/bin:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "LC_ALL": "C.UTF-8", **aws}
