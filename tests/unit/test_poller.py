"""Polling: one at a time, never silent, polite, slower when nobody is there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources.base import IDLE_AFTER_S, Beat, Pace, Poller, SourceKey, next_wait

KEY: SourceKey[int] = SourceKey("numbers")


class StillClock:
    """Stands still until moved."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return 1_700_000_000 + self.time

    def steady(self) -> float:
        return self.time


@pytest.mark.parametrize(
    ("interval_s", "took_s", "failures", "wait_s"),
    [
        (5, 0.1, 0, 5),
        (5, 2.0, 0, 20),  # ten times what it took
        (5, 0.1, 1, 5),
        (5, 0.1, 3, 20),
        (5, 0.1, 50, 60),  # backs off to a minute and stays there
        (300, 0.1, 9, 300),  # never below the interval
    ],
)
def test_the_wait_between_polls(interval_s: float, took_s: float, failures: int, wait_s: float) -> None:
    assert next_wait(interval_s, took_s, failures) == wait_s


def poller(
    read: Callable[[], int], beats: list[Beat], clock: StillClock | None = None, pace: Pace | None = None
) -> Poller[int]:
    clock = clock or StillClock()
    return Poller(KEY, read, lambda name, beat: beats.append(beat), interval_s=5, pace=pace or Pace(clock), clock=clock)


def test_an_answer_and_a_fault_become_snapshots() -> None:
    beats: list[Beat] = []
    answers: Iterator[int | Exception] = iter(
        [7, FaultError(Fault(FaultKind.TIMEOUT, "reading", "no answer")), ValueError("odd")]
    )

    def read() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    source = poller(read, beats)
    for _ in range(3):
        source.poll_once()
    assert beats[0].snapshot.data == 7
    assert beats[0].snapshot.error is None
    assert beats[1].snapshot.error is not None
    assert beats[1].snapshot.error.kind is FaultKind.TIMEOUT
    assert beats[2].snapshot.error is not None
    assert "ValueError: odd" in beats[2].snapshot.error.why
    assert [beat.snapshot.data for beat in beats[1:]] == [None, None]


def test_after_half_an_hour_without_a_key_the_pace_drops_and_a_key_restores_it() -> None:
    clock = StillClock()
    pace = Pace(clock)
    beats: list[Beat] = []
    source = poller(lambda: 1, beats, clock, pace)
    source.poll_once()
    clock.time += IDLE_AFTER_S
    source.poll_once()
    assert pace.touch()
    source.poll_once()
    assert [beat.interval_s for beat in beats] == [5, 50, 5]
    assert "slow pace" in beats[1].note
    assert not pace.touch()


def test_a_poll_that_hangs_is_not_joined_by_a_second_one() -> None:
    entered, release = threading.Event(), threading.Event()
    running, most = 0, 0

    def read() -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        entered.set()
        release.wait(10)
        running -= 1
        return 1

    beats: list[Beat] = []
    source = poller(read, beats)
    source.start()
    assert entered.wait(5)
    for _ in range(5):
        source.poke()
    release.set()
    source.stop()
    assert most == 1


def test_refresh_works_while_paused() -> None:
    pace, polled = Pace(), threading.Semaphore(0)
    pace.paused = True

    def read() -> int:
        polled.release()
        return 1

    source: Poller[int] = Poller(KEY, read, lambda name, beat: None, interval_s=0.01, pace=pace)
    source.start()
    assert polled.acquire(timeout=5)
    assert not polled.acquire(timeout=0.4)
    source.poke()
    assert polled.acquire(timeout=5)
    pace.paused = False
    assert polled.acquire(timeout=5)
    source.stop()


def test_an_outage_does_not_slow_down_what_follows_it() -> None:
    clock = StillClock()
    beats: list[Beat] = []
    answers = iter([(0.1, True), (8.0, False), (9.0, False), (7.0, True), (0.1, True)])

    def read() -> int:
        took_s, good = next(answers)
        clock.time += took_s
        if not good:
            raise FaultError(Fault(FaultKind.TIMEOUT, "reading", "no answer"))
        return 1

    source = poller(read, beats, clock)
    for _ in range(5):
        source.poll_once()
    # The first answer after it took long only because it was asked while nobody answered.
    assert [beat.interval_s for beat in beats if beat.snapshot.error is None] == [5, 5, 5]
    assert not any(beat.note for beat in beats)


def test_a_controller_that_stays_slow_is_asked_less_often() -> None:
    clock = StillClock()
    beats: list[Beat] = []

    def read() -> int:
        clock.time += 2.0
        return 1

    source = poller(read, beats, clock)
    for _ in range(2):
        source.poll_once()
    assert [beat.interval_s for beat in beats] == [20, 20]
    assert "controller is slow" in beats[1].note
