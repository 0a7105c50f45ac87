"""docs/SECURITY.md is true: its policies are the code's, the files it names exist, the lock holds what is needed."""

from __future__ import annotations

import re

import pytest

from tests.docs import DOCS, ROOT, rendered

POLICIES = ("reading", "power")
TEXT = (DOCS / "SECURITY.md").read_text(encoding="utf-8")


def test_the_policies_are_those_of_the_code() -> None:
    assert rendered(TEXT) == TEXT  # if not: make docs
    assert [name for name in POLICIES if f"<!-- made by make docs: policy-{name} -->" in TEXT] == list(POLICIES)


def test_every_file_that_it_names_exists() -> None:
    named = re.findall(r"`((?:cockpit|screens|actions|tests|docs)/[\w/.]+)`", TEXT)
    assert len(named) > 30
    assert not [path for path in named if not (ROOT / path).exists()]


def test_no_shell_sees_a_string_and_no_pickle_is_run() -> None:
    """What the document says of the whole code."""
    words = r"shell=True|os\.system\(|^import pickle|^from pickle|yaml\.(?:unsafe_|full_)?load\([^,)]*\)"
    bad = re.compile(words, re.MULTILINE)
    for package in ("cockpit", "screens", "actions", "themes"):
        for path in (ROOT / package).rglob("*.py"):
            assert not bad.search(path.read_text(encoding="utf-8")), path


def test_the_lock_holds_every_dependency_with_hashes() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")  # as text: tomllib comes with Python 3.11
    wanted = re.findall(r'"([^"]+)"', project.split("\ndependencies = [")[1].split("]")[0])
    assert len(wanted) > 5
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    held = dict(re.findall(r"^([\w.-]+)==([\w.]+)", lock, re.MULTILINE))
    specifiers = pytest.importorskip("packaging.requirements")
    for line in wanted:
        found = specifiers.Requirement(line)
        assert found.name in held, f"{line}: run make lock"
        assert held[found.name] in found.specifier, f"{line}: run make lock"
    for entry in re.split(r"\n(?=\S)", lock.strip()):
        assert "--hash=sha256:" in entry, entry.split("\n")[0]
    assert "http" not in lock
