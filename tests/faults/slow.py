"""A slurmctld that answers only now and then."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from tests.rig import Rig
from tests.rig.spec import HEAD

FROZEN_S, AWAKE_S = 1.0, 0.15


@contextlib.contextmanager
def slow_controller(rig: Rig, *, awake_s: float = AWAKE_S, ends_frozen: bool = False) -> Iterator[None]:
    """slurmctld answers only now and then: frozen for a second, awake for a moment, and so on."""
    (pid,) = rig.pids(HEAD, "slurmctld")
    over = threading.Event()

    def pulse() -> None:
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            over.wait(FROZEN_S)
            if over.is_set() and ends_frozen:
                return
            os.kill(pid, signal.SIGCONT)
            over.wait(awake_s)

    thread = threading.Thread(target=pulse, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if ends_frozen:
            os.kill(pid, signal.SIGSTOP)
