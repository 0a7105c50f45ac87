"""The table of faults names tests that exist, and every test of this folder stands in it."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.faults.table import CASES, FAULT_TESTS

ROOT = Path(__file__).parents[2]


def ids_of(path: Path) -> set[str]:
    """The ids of a file's tests, without their parameters."""
    name = path.relative_to(ROOT).as_posix()
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{name}::{node.name}::" if isinstance(node, ast.ClassDef) else f"{name}::"
        for one in inside:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test_"):
                found.add(prefix + one.name)
    return found


def test_what_the_table_names_exists() -> None:
    for wanted in FAULT_TESTS:
        path = ROOT / wanted.partition("::")[0]
        assert any(found.startswith(wanted) for found in ids_of(path)), wanted


def test_every_fault_that_is_tried_stands_in_the_table() -> None:
    for path in (ROOT / "tests/faults").glob("test_*.py"):
        if path.name != "test_table.py":
            assert not [found for found in ids_of(path) if not found.startswith(FAULT_TESTS)]


def test_the_document_has_a_line_for_each_fault() -> None:
    text = (ROOT / "docs/RELIABILITY.md").read_text(encoding="utf-8")
    assert not [case.fault for case in CASES if f"| {case.fault} |" not in text]
