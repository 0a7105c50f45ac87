"""A session with a busy user on a changing cluster: key to paint, event-loop stalls, bytes of a refresh."""

from __future__ import annotations

import contextlib
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from tests.bench.churn import Churn
from tests.bench.quiet import wait_data
from tests.bench.session import Cursor, Event, Session
from tests.bench.stats import median, percentile, share_over
from tests.bench.targets import Target

STALL_S = 0.05
WALK = 4  # lines down, then up again: a small queue folds to few lines
_MIN_PAUSE_S, _MAX_PAUSE_S = 0.02, 0.12
# Everything a person may ask of a table with one key, and a filter typed.
_WORK = (*"!!><>>II", "w", "w", "G", "g", *"/llama", "\r", "\x1b", "/", *"state:r", "\x1b", " ", "U")

Sample = tuple[float, float | None]  # when the key was pressed, how long until it was painted


def measure_keys(
    target: Target, seconds: float, *, size: tuple[int, int] = (160, 48), colours: str = "truecolor"
) -> dict[str, Any]:
    """Half of the time in the nodes pane, half in the queue pane, then one key of every kind."""
    with Session(target, heartbeat=True, size=size, colours=colours) as session, _control() as control:
        wait_data(session)
        session.press(b"r")  # the wait after the first, slow read is long
        session.press(b"2")
        time.sleep(0.5)
        with Churn(target.rig):
            began = time.monotonic()
            samples = _walk(session, seconds / 2)
            found = {"queue_pane_s": _to_queue(session)}
            samples += _walk(session, seconds / 2)
            found |= {"page_s": _pages(session)}
            _work(session)
        found |= _key_figures(session, samples)
        found |= _stall_figures(session) | control(began, time.monotonic())
        return found | {"quit_s": session.quit_s()}


def _walk(session: Session, seconds: float) -> list[Sample]:
    cursor, samples, until = Cursor(session), [], time.monotonic() + seconds
    session.press(b"g")
    time.sleep(0.3)
    cursor.learn()
    step = 0
    while time.monotonic() < until:
        key = b"j" if step // WALK % 2 == 0 else b"k"
        samples.append((time.monotonic(), cursor.press(key)))
        step += 1
        time.sleep(random.uniform(_MIN_PAUSE_S, _MAX_PAUSE_S))
    return samples


def _to_queue(session: Session) -> float | None:
    """From `4` to the queue pane with its rows."""
    since = len(session.chunks)
    pressed = session.press(b"4")
    shown = session.wait(lambda text: re.search(r"queue [\d,]+ ", text), 10.0, since)
    time.sleep(0.5)
    return None if shown is None else shown - pressed


def _pages(session: Session) -> float | None:
    """From a key that scrolls half a page to the last byte of the lines."""
    found = []
    for key in (b"\x04", b"\x15") * 6:
        pressed = session.press(key)
        time.sleep(0.2)
        painted = [at for at, _ in session.chunks if pressed < at < pressed + 0.15]
        found.append(max(painted, default=pressed + 0.2) - pressed)
    return median(found)


def _work(session: Session) -> None:
    for key in _WORK:
        session.press(key.encode())
        time.sleep(0.15)


def _key_figures(session: Session, samples: list[Sample]) -> dict[str, Any]:
    """Keys pressed while a source was read or its answer painted count as `during refresh`."""
    windows = [(b["at"] - (b["took_s"] or 0) - 0.05, b["at"] + 0.3) for b in session.events("beat")]

    def busy(at: float) -> bool:
        return any(begin <= at <= end for begin, end in windows)

    kinds = {
        "key": [took for _, took in samples if took is not None],
        "key_idle": [took for at, took in samples if took is not None and not busy(at)],
        "key_refresh": [took for at, took in samples if took is not None and busy(at)],
    }
    found: dict[str, Any] = {"keys_not_seen": sum(1 for _, took in samples if took is None)}
    for name, took in kinds.items():
        found |= {
            f"{name}_median_ms": _ms(median(took)),
            f"{name}_p99_ms": _ms(percentile(took, 99)),
            f"{name}_worst_ms": _ms(max(took, default=None)),
            f"{name}_count": len(took),
        }
    return found


def _stall_figures(session: Session) -> dict[str, Any]:
    """How late the event loop was; what came before the first data is told apart."""
    ready = max(session.events("beat", name=name)[0]["at"] for name in ("nodes", "queue")) + 0.5
    late = session.events("late")
    running = [event for event in late if event["at"] > ready]
    return {
        "stall_worst_ms": _ms(max((event["late_s"] for event in running), default=0.0)),
        "stalls_over_50_ms": share_over([event["late_s"] for event in running], STALL_S),
        "start_stall_worst_ms": _ms(max((event["late_s"] for event in late if event["at"] <= ready), default=0.0)),
        "stalls": [_told(event) for event in sorted(late, key=lambda event: -event["late_s"])[:10]],
    }


def _told(event: Event) -> dict[str, Any]:
    return {"late_ms": _ms(event["late_s"]), "place": event["place"]}


@contextlib.contextmanager
def _control() -> Iterator[Any]:
    """The same heartbeat in an idle process at the same time: what of the lateness is the machine's own."""
    argv = [sys.executable, "-m", "tests.bench.heartbeat"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            yield lambda begin, end: _lateness(process, begin, end)
        finally:
            process.kill()


def _lateness(process: subprocess.Popen[bytes], begin: float, end: float) -> dict[str, Any]:
    process.kill()
    assert process.stdout is not None
    late = [json.loads(line) for line in process.stdout.read().decode().splitlines()]
    within = [event["late_s"] for event in late if begin < event["at"] < end]
    return {"control_stall_worst_ms": _ms(max(within, default=0.0))}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds
