"""A coroutine that notices when its event loop is late; run alone it tells the machine's own share."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable

PERIOD_S = 0.01
TOLD_S = 0.01  # lateness from which on it is told


async def heartbeat(tell: Callable[[float, float], None], began: Callable[[float], None] = lambda at: None) -> None:
    """Call tell(at, late_s) after every wake-up that came too late; `began` is told when each wait begins."""
    while True:
        at = time.monotonic()
        began(at)
        await asyncio.sleep(PERIOD_S)
        late_s = time.monotonic() - at - PERIOD_S
        if late_s > TOLD_S:
            tell(at, late_s)


def main() -> None:
    """Print a line of JSON for each late wake-up until ended."""
    asyncio.run(heartbeat(lambda at, late_s: print(json.dumps({"at": at, "late_s": late_s}), flush=True)))


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(0)
