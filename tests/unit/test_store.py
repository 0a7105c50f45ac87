"""The store: the last good answer outlives every error, and tells its age."""

from __future__ import annotations

from cockpit.models import Fault, FaultKind, Freshness, Snapshot
from cockpit.sources.base import Beat, SourceKey
from cockpit.store import Store
from tests.unit.test_poller import StillClock

KEY: SourceKey[str] = SourceKey("words")
FAULT = Fault(FaultKind.TIMEOUT, "reading words", "no answer", "wait")


def good(clock: StillClock, data: str) -> Beat:
    return Beat(Snapshot(clock.now(), 0.5, data), 5.0, clock.steady() + 5)


def bad(clock: StillClock, wait_s: float = 60.0) -> Beat:
    return Beat(Snapshot(clock.now(), 0.5, None, FAULT), wait_s, clock.steady() + wait_s)


def test_a_declared_source_is_never_until_its_first_answer() -> None:
    clock = StillClock()
    store = Store(clock)
    store.declare(KEY, 5)
    state = store.state(KEY)
    assert (state.data, state.age_s(clock.steady()), state.freshness(clock.steady())) == (
        None,
        None,
        Freshness.NEVER,
    )
    assert [s.name for s in store.states()] == ["words"]


def test_freshness_follows_the_age_and_an_error_keeps_the_data() -> None:
    clock = StillClock()
    store = Store(clock)
    store.put("words", good(clock, "hello"))
    seen = []
    for age_s in (0, 10, 11, 60, 61):
        clock.time = 1000 + age_s
        seen.append(store.state(KEY).freshness(clock.steady()))
    assert seen == [Freshness.LIVE, Freshness.LIVE, Freshness.STALE, Freshness.STALE, Freshness.LOST]
    store.put("words", bad(clock))
    state = store.state(KEY)
    assert state.data == "hello"
    assert state.error == FAULT
    assert state.freshness(clock.steady()) is Freshness.LOST  # the longer retry wait makes nothing fresher


def test_the_start_of_a_failure_is_kept_and_a_good_answer_ends_it() -> None:
    clock = StillClock()
    store = Store(clock)
    store.put("words", bad(clock))
    began = store.state(KEY).failing_since
    clock.time += 30
    store.put("words", bad(clock))
    assert store.state(KEY).failing_since == began
    assert store.state(KEY).freshness(clock.steady()) is Freshness.NEVER
    store.put("words", good(clock, "back"))
    assert store.state(KEY).error is None
    assert store.state(KEY).failing_since is None


def test_listeners_hear_of_each_change_until_they_stop() -> None:
    clock = StillClock()
    heard: list[str] = []
    store = Store(clock)
    stop = store.listen(heard.append)
    store.put("words", good(clock, "a"))
    stop()
    store.put("words", good(clock, "b"))
    assert heard == ["words"]
