"""A slurmctld that answers only now and then."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Iterator

from tests.rig import Rig
from tests.rig.spec import HEAD

FROZEN_S = (1.5, 2.5)  # never twice the same: who asks at a fixed pace would always meet it awake, or never
AWAKE_S, LOOK_S = 0.15, 0.001


@contextlib.contextmanager
def slow_controller(rig: Rig, *, stepwise: bytes = b"", ends_frozen: bool = False) -> Iterator[None]:
    """slurmctld answers only now and then: frozen for some two seconds, awake for a moment, and so on.

    With `stepwise` it is awake until its log holds these words once more: one step at a time, at whatever pace.
    """
    (pid,) = rig.pids(HEAD, "slurmctld")
    log = rig.layout.host_dir(HEAD) / "log" / "slurmctld.log"
    over = threading.Event()

    def stay_awake() -> None:
        if not stepwise:
            over.wait(AWAKE_S)
            return
        before = log.read_bytes().count(stepwise)
        while log.read_bytes().count(stepwise) == before and not over.wait(LOOK_S):
            pass

    def pulse() -> None:
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            over.wait(random.uniform(*FROZEN_S))
            if over.is_set() and ends_frozen:
                return
            os.kill(pid, signal.SIGCONT)
            stay_awake()

    thread = threading.Thread(target=pulse, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if ends_frozen:
            os.kill(pid, signal.SIGSTOP)
