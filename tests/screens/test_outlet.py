"""What is told of files that were written."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.screens.test_app import cockpit


async def test_an_export_is_told_by_one_path_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with cockpit((80, 24)) as pilot:
        await pilot.read()
        await pilot.press("x")
        for _ in range(200):
            if notes := [note for note in pilot.app._notifications if "exported" in note.title]:
                break
            await pilot.settle()
            threading.Event().wait(0.01)
        words = str(notes[0].message)
        path, _, others = words.partition(", ")
        assert Path(path).is_file()
        assert others == ".md, .json and .jsonl"
        assert {each.suffix for each in Path(path).parent.iterdir()} == {".csv", ".md", ".json", ".jsonl"}
