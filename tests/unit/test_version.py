"""Version, completion and the man page."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit import cli, version
from cockpit.cli_completion import SHELLS, cluster_names

ROOT = Path(cli.__file__).parents[1]


def test_a_built_package_tells_the_commit_it_was_built_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "_HERE", tmp_path)
    assert version.commit() == ""
    (tmp_path / "COMMIT").write_text("0123456789\n")
    assert version.commit() == "0123456789"
    assert version.version_line().startswith(f"cockpit {version.version()} (0123456789), Python ")


def test_a_checkout_tells_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "cockpit"
    package.mkdir()
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run([*git, "init", "-q"], check=True)
    (package / "a.py").write_text("1\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    monkeypatch.setattr(version, "_HERE", package)
    assert re.fullmatch(r"[0-9a-f]{10}", version.commit())
    (package / "a.py").write_text("2\n")
    assert version.commit().endswith("+changes")


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_text_for_that_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    assert "cockpit" in capsys.readouterr().out


def complete(line: str, home: Path) -> list[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n"}
    env |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    argv = ["sh", "-c", f'exec 8>&1; exec "{sys.executable}" -m cockpit']
    done = subprocess.run(argv, capture_output=True, text=True, env=env, cwd=ROOT, timeout=60, check=False)
    return [word.strip() for word in done.stdout.splitlines()]


def test_commands_scenarios_and_clusters_complete(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "cockpit"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("clusters:\n  prod: {head: a}\n  test: {head: b}\n")
    assert complete("cockpit doc", tmp_path) == ["doctor"]
    assert "hang" in complete("cockpit demo --scenario ", tmp_path)
    assert complete("cockpit --cluster ", tmp_path) == ["prod", "test"]


def test_a_broken_config_completes_nothing_and_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("clusters: [")
    assert cluster_names(argparse.Namespace(config=path)) == []


def parsers(parser: argparse.ArgumentParser, name: str = "cockpit") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                yield from parsers(below, f"{name} {word}")


def test_the_man_page_names_every_command_and_option() -> None:
    page = re.sub(r"\\f.|\\", "", (ROOT / "docs" / "cockpit.1").read_text(encoding="utf-8"))
    for name, parser in parsers(cli._parser()):
        assert name in page, f"`make docs` writes it anew: {name}"
        for action in parser._actions:
            shown = action.help is not argparse.SUPPRESS and action.dest != "help"
            assert not shown or all(option in page for option in action.option_strings), (
                f"{name} {action.option_strings}"
            )
    assert "/root/" not in page


def test_what_is_printed_is_ascii_on_request(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("clusters:\n  prod: {head: a}\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONIOENCODING": "utf-8"}

    def cockpit(*words: str, **more: str) -> bytes:
        argv = [sys.executable, "-m", "cockpit", "--config", str(path), *words]
        return subprocess.run(argv, capture_output=True, env=env | more, cwd=ROOT, timeout=60, check=True).stdout

    usual, plain = cockpit("keys", "--markdown"), cockpit("keys", "--markdown", "--ascii")
    assert not usual.isascii()
    assert plain.isascii()
    assert cockpit("--ascii", "keys", "--markdown") == plain
    assert cockpit("keys", "--markdown", PYTHONIOENCODING="ascii") == plain
    assert len(plain.decode().splitlines()) == len(usual.decode().splitlines())
