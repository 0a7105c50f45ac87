"""The strip of sources where there is little room: what fails is seen whole, what lives gives way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from cockpit.models import Fault, FaultKind, Snapshot
from cockpit.store import SourceState
from screens.chrome import source_pieces

NAMES = ("nodes", "queue", "slurm", "gpus", "aws", "storage", "events")
NOW = 1000.0
FAULT = Fault(FaultKind.DENIED, "reading", "not allowed")


def states(*failing: str) -> list[SourceState[str]]:
    good = Snapshot(0.0, 0.1, "x")
    return [
        SourceState(name, 5.0, good, NOW - (30.0 if name in failing else 2.0), FAULT if name in failing else None,
                    note="many" if name == "gpus" else "")
        for name in NAMES
    ]  # fmt: skip


def text(width: int, *failing: str) -> str:
    return "".join(
        piece if isinstance(piece, str) else piece[0] for piece in source_pieces(states(*failing), NOW, None, width)
    )


def test_with_room_every_source_has_its_age_and_note() -> None:
    assert text(200) == "".join(f" ● {name} 2s{' (many)' if name == 'gpus' else ''} " for name in NAMES)


@pytest.mark.parametrize("failing", [(), ("events",), ("aws", "events")])
def test_seven_sources_fit_80_columns_and_those_that_fail_are_whole(failing: tuple[str, ...]) -> None:
    line = text(80, *failing)
    assert cell_len(line) <= 80
    for name in failing:
        assert f"▲ {name} stale 30s failing" in line
    live = len(NAMES) - len(failing)
    shown = sum(f"● {name}" in line for name in NAMES)
    assert shown == live or f"● {live} live" in line


def test_the_live_ones_lose_their_ages_before_their_names() -> None:
    assert text(76) == "".join(f" ● {name} " for name in NAMES)


def test_where_many_fail_their_names_and_ages_are_seen() -> None:
    line = text(80, "aws", "storage", "events")
    assert line == " ▲ aws 30s  ▲ storage 30s  ▲ events 30s  ● 4 live "
    line = text(80, *NAMES)
    assert cell_len(line) <= 80
    assert line == f" ▲ {', '.join(NAMES)} 30s "


@pytest.mark.parametrize("width", range(12, 200, 4))
def test_the_age_of_what_is_not_live_never_gives_way(width: int) -> None:
    for failing in (NAMES, NAMES[:1], NAMES[3:]):
        assert "30s" in text(width, *failing)
    late = [replace(state, good=None, error=None) for state in states()[:1]]
    shown = source_pieces([*late, *states(*NAMES[1:])[1:]], NOW, None, width)
    line = "".join(piece if isinstance(piece, str) else piece[0] for piece in shown)
    assert "never" in line
    assert "30s" in line


def test_of_many_that_stand_together_the_oldest_age_is_told() -> None:
    old = [replace(state, good_at=NOW - 40.0) for state in states(*NAMES)[:1]]
    pieces = source_pieces([*old, *states(*NAMES)[1:]], NOW, None, 60)
    assert [piece[0] for piece in pieces] == [f" ▲ {', '.join(NAMES)} 40s "]
