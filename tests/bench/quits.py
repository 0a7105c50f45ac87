"""How long leaving takes while something hangs. Textual's own exit is part of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.quiet import STARTED_S, wait_data
from tests.bench.session import Session
from tests.bench.targets import Target

HANG_S = 7.0  # by then a poll waits for an answer that does not come


def measure_quits(target: Target) -> dict[str, float | None]:
    """Seconds from `q` to the end: a head frozen under an open connection, and while connecting to a frozen one."""
    with Session(target, heartbeat=False) as session:
        wait_data(session)
        with _frozen(target):
            time.sleep(HANG_S)
            hung = session.quit_s()
    with _frozen(target), Session(target, heartbeat=False) as session:
        session.wait(lambda text: "reading from" in text, STARTED_S)
        time.sleep(1.0)
        return {"quit_hung_s": hung, "quit_connecting_s": session.quit_s()}


@contextmanager
def _frozen(target: Target) -> Iterator[None]:
    """SIGSTOP for the demo's process, or for every process of the rig's head with its sshd."""
    if target.pid is not None:
        os.kill(target.pid, signal.SIGSTOP)
    elif target.rig is not None:
        target.rig.freeze("head")
    try:
        yield
    finally:
        if target.pid is not None:
            os.kill(target.pid, signal.SIGCONT)
        elif target.rig is not None:
            target.rig.thaw("head")
