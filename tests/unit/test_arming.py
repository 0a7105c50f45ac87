"""Read-only: by the config, lifted for a while, or for good."""

from __future__ import annotations

import pytest

from cockpit.arming import ReadOnly
from tests.still import StillClock


def test_a_cluster_without_a_lock_is_open() -> None:
    lock = ReadOnly(forced=False, configured=False)
    assert (lock.on, lock.why()) == (False, "")


def test_armed_time_runs_out() -> None:
    clock = StillClock()
    lock = ReadOnly(forced=False, configured=True, clock=clock)
    assert lock.on
    assert "`:arm 15m`" in lock.why()
    lock.arm(60)
    clock.time += 59
    seen = [lock.on]
    assert lock.armed_for_s == 1
    clock.time += 1
    seen.append(lock.on)
    lock.arm(60)
    lock.disarm()
    assert [*seen, lock.on] == [False, True, True]


@pytest.mark.parametrize("seconds", [0, -1, 9 * 3600])
def test_nobody_arms_for_ever(seconds: float) -> None:
    with pytest.raises(PermissionError):
        ReadOnly(forced=False, configured=True).arm(seconds)


def test_the_command_lines_word_is_final() -> None:
    lock = ReadOnly(forced=True, configured=True)
    with pytest.raises(PermissionError):
        lock.arm(60)
    assert lock.on
