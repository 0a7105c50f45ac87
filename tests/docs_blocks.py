"""The fenced blocks of the documentation, and the commands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = (*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md")
_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^ {4}(\$ |(\.venv/bin/)?cockpit |make |git |pip |pipx |uv |ssh )")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: where it is, its language, what stands behind that, its lines."""

    place: str
    language: str
    options: str
    lines: tuple[str, ...]

    @property
    def not_run(self) -> str | None:
        """Why its commands are not run; None when they are."""
        found = re.match(r"not-run:(.*)", self.options)
        return found[1].strip() if found else None

    @property
    def scenario(self) -> str:
        """The demo's scenario that it is run against."""
        found = re.search(r"demo=([a-z-]+)", self.options)
        return found[1] if found else "busy"

    @property
    def commands(self) -> tuple[str, ...]:
        """The lines behind a prompt."""
        return tuple(line.removeprefix("$ ") for line in self.lines if line.startswith("$ "))


def blocks(path: Path) -> Iterator[Block]:
    """Every fenced block of a file."""
    text = path.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        language, _, options = match["info"].strip().partition(" ")
        line = text.count("\n", 0, match.start()) + 1
        yield Block(f"{path.relative_to(ROOT)}:{line}", language, options, tuple(match["body"].splitlines()))


def loose_commands(path: Path) -> list[str]:
    """Lines that look like commands outside any fenced block."""
    text = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), path.read_text(encoding="utf-8"))
    return [f"{path.name}:{number}: {line}" for number, line in enumerate(text.splitlines(), 1) if _COMMAND.match(line)]


def synopses(block: Block) -> Iterator[tuple[str, ...]]:
    """The commands of a `usage` block: `cockpit a|b X    cockpit c Y` are `a`, `b` and `c`; `nccl run` is two words."""
    for line in block.lines:
        for part in re.split(r"\s{2,}(?=cockpit )", line):
            words = part.split()
            for name in words[1].split("|"):
                yield (name, *(word for word in words[2:3] if name == "nccl"))
