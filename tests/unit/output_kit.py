"""Files and hosts that the tests of a job's output share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from cockpit.hosts.base import Completed
from cockpit.hosts.local import LocalHost
from cockpit.models import Fault, FaultError, FaultKind

ERROR = b"RuntimeError\nTraceback (most recent call last):\n  File x\nValueError: bad\n"


def numbered(count: int) -> bytes:
    return b"".join(b"step %07d loss 1.23\n" % number for number in range(count))


class HungFile(LocalHost):
    """A machine that answers, with a file system that does not."""

    alive = True

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        unset: Sequence[str] = (),
        max_bytes: int = 0,
    ) -> Completed:
        if argv[0] == "true" and self.alive:
            return Completed(0, b"", b"", 0.01)
        raise FaultError(Fault(FaultKind.TIMEOUT, "here", f"`{argv[0]}` gave no answer within {deadline_s:g} s"))


def eventually(true: Callable[[], object], within_s: float = 10.0) -> None:
    until = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < until, "did not come true in time"
        time.sleep(0.01)
