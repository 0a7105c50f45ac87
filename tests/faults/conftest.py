"""Fixtures of the fault suite: one cockpit that lives through all of it, and what was seen for docs/RELIABILITY.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.faults.seat import Seat
from tests.rig import Rig

Seen = Callable[[str], None]


@pytest.fixture(scope="module")
def seat(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seat]:
    """The same cockpit for every fault of a module: none may need a restart."""
    found = Seat(rig, tmp_path_factory.mktemp("seat"))
    try:
        yield found.start()
    finally:
        found.close()


@pytest.fixture
def seen(record_property: Callable[[str, object], None]) -> Seen:
    """Note what came of a fault, in words for the table."""
    return lambda words: record_property("seen", words)
