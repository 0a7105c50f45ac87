"""A day's memory: what the cockpit keeps after 24 simulated hours is no more than after two."""

from __future__ import annotations

from collections import Counter

from cockpit.fleet import watch_freshness
from cockpit.formats.log_buffer import LogBuffer
from cockpit.models import Freshness
from tests.faults.conftest import Seen
from tests.faults.day import LOOKS_AN_HOUR, Day
from tests.faults.weight import endless_caches, weigh

NODES = 8


def grown(before: Counter[str], after: Counter[str]) -> list[str]:
    """The attributes that hold more, worst first."""
    more = Counter({path: after[path] - before[path] for path in after if after[path] > before[path] + 256})
    return [f"{path}: {before[path]:,} -> {after[path]:,} bytes" for path, _ in more.most_common(12)]


def test_a_day_of_changes_takes_no_more_memory_than_two_hours(seen: Seen) -> None:
    day = Day(NODES)
    weights: list[Counter[str]] = []
    caches: list[dict[str, int]] = []
    for _ in range(24):
        for _ in range(LOOKS_AN_HOUR):
            day.look()
        weights.append(weigh(day.cluster, (day.head, day.clock)))
        caches.append(endless_caches())
    view, steady = day.cluster.view, day.clock.steady()
    assert view.queue is not None
    # Of the last look the cockpit has heard nothing: every second one fails.
    assert max(job.job_id for job in view.queue.jobs) == 100_000 + day.number - 1
    assert {watch_freshness(probe.stream._watch, steady) for probe in day.probes} <= {Freshness.LIVE, Freshness.STALE}
    early, late = weights[1], weights[-1]
    more = late.total() - early.total()
    assert more < early.total() * 0.03, grown(early, late)
    assert caches[-1] == caches[1]
    kept = f"{early.total() / 2**10:,.0f} KiB after 2 hours, {more / 2**10:+.1f} KiB until the 24th"
    seen(f"{day.number:,} refreshes, all of them different; {kept}")


def test_a_log_that_is_followed_for_a_day_takes_no_more_than_its_bound(seen: Seen) -> None:
    buffer = LogBuffer(most_bytes=2**18, most_lines=2_000)
    weights = []
    for hour in range(24):
        for number in range(100):
            lines = (b"step %d loss %d\n" % (hour * 100_000 + number * 100 + each, each) for each in range(100))
            buffer.feed(b"".join(lines))
        weights.append(weigh(buffer).total())
    assert buffer.held().lines[-1].text.startswith("step 2309999 ")
    assert max(weights[1:]) < weights[0] * 1.05, weights
    seen(f"a log of 240,000 lines, followed: {weights[-1] / 2**10:,.0f} KiB")
