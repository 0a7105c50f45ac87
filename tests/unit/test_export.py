"""Files and directories that only their owner can read."""

from __future__ import annotations

import json
import os
import resource
import signal
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.config import state_dir
from cockpit.export import export_table, private_dir


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    before = os.umask(0o022)
    yield state_dir()
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_every_level_that_is_made_is_private(state: Path, tmp_path: Path) -> None:
    private_dir(state / "a" / "exports")
    levels = [state / "a" / "exports", state / "a", state, state.parent, tmp_path / "home"]
    assert [mode(level) for level in levels] == [0o700] * 5


def test_our_levels_are_closed_and_those_above_are_left_alone(state: Path) -> None:
    (state / "exports").mkdir(parents=True)
    assert mode(state) == 0o755
    private_dir(state / "exports")
    assert (mode(state), mode(state / "exports")) == (0o700, 0o700)
    assert mode(state.parent) == 0o755


def test_a_directory_elsewhere_keeps_its_mode(state: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "cockpit"
    elsewhere.mkdir()
    private_dir(elsewhere / "new")
    assert (mode(elsewhere), mode(elsewhere / "new")) == (0o755, 0o700)


def test_exports_are_private_and_hold_every_row_in_each_form(state: Path) -> None:
    rows: list[tuple[list[str], dict[str, int | None]]] = [(["=1+1", "a,b"], {"job": 1}), (["2", '"x"'], {"job": None})]
    paths = export_table(state / "exports", "queue", ["job", "name"], rows)
    assert [path.suffix for path in paths] == [".csv", ".md", ".json", ".jsonl"]
    assert [mode(path) for path in paths] == [0o600] * 4
    assert paths[0].read_text() == 'job,name\n\'=1+1,"a,b"\n2,"""x"""\n'
    assert paths[1].read_text() == '| job | name |\n| --- | --- |\n| =1+1 | a,b |\n| 2 | "x" |\n'
    assert json.loads(paths[2].read_text()) == [{"job": 1}, {"job": None}]
    assert [json.loads(line) for line in paths[3].read_text().splitlines()] == [{"job": 1}, {"job": None}]


def test_no_rows_are_an_empty_list(state: Path) -> None:
    table, words, full, lines = export_table(state / "exports", "queue", ["job"], [])
    assert words.read_text() == "| job |\n| --- |\n"
    assert (table.read_text(), json.loads(full.read_text()), lines.read_text()) == ("job\n", [], "")


def test_rows_are_written_as_they_come(state: Path) -> None:
    alive: weakref.WeakSet[_Row] = weakref.WeakSet()

    def rows() -> Iterator[tuple[list[str], dict[str, int]]]:
        for number in range(5_000):
            row = _Row(job=number)
            alive.add(row)
            assert len(alive) < 10
            yield [str(number)], row

    _, _, full, _ = export_table(state / "exports", "queue", ["job"], rows())
    assert len(json.loads(full.read_text())) == 5_000


class _Row(dict[str, int]):
    """A record that a WeakSet can hold."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def test_names_are_no_markup_in_a_document(state: Path) -> None:
    _, words, _, _ = export_table(state / "exports", "queue", ["job"], [(["**a**|[b](c)<d>`e`"], {})])
    assert words.read_text().endswith("| \\*\\*a\\*\\*\\|\\[b\\](c)\\<d\\>\\`e\\` |\n")


def test_an_export_that_fails_leaves_nothing_behind(state: Path) -> None:
    def rows() -> Iterator[tuple[list[str], dict[str, int]]]:
        yield ["1"], {"job": 1}
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        export_table(state / "exports", "queue", ["job"], rows())
    assert list((state / "exports").iterdir()) == []


def test_a_disk_that_is_full_only_at_the_end_leaves_nothing_behind(tmp_path: Path) -> None:
    # What is written last reaches the disk when the file is closed.
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            export_table(tmp_path / "exports", "queue", ["a column"], [(["1"], {"job": 1})])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert list((tmp_path / "exports").iterdir()) == []
