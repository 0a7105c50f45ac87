"""The line without a command is read without building any; every other line as ever."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from cockpit import cli


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[argparse.Namespace]:
    """What the cockpit was opened with."""
    found: list[argparse.Namespace] = []

    def note(arguments: argparse.Namespace) -> int:
        found.append(arguments)
        return 0

    monkeypatch.setattr(cli, "_open", note)
    return found


def barred() -> argparse.ArgumentParser:
    raise AssertionError("commands were built")


@pytest.mark.parametrize(
    "words", [[], ["--config", "f", "--read-only"], ["--theme=light", "--ascii"], ["--cluster", "demo"]]
)
def test_opening_builds_no_command(
    words: list[str], opened: list[argparse.Namespace], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = vars(cli._parser().parse_args(words))
    monkeypatch.setattr(cli, "_parser", barred)
    assert cli.main(words) == 0
    assert vars(opened[0]) == {**full, "run": cli._open}
    assert opened[0].config in (None, Path("f"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--config"], "expected one argument"),
        (["statuss"], "invalid choice: 'statuss'"),
        (["--no-such"], "unrecognized arguments: --no-such"),
        (["--read-only", "nodes", "--gpus"], "unrecognized arguments: --gpus"),
    ],
)
def test_a_mistake_is_told_as_ever(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    assert "diagnose" in capsys.readouterr().out
