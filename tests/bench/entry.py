"""`python -m tests.bench.entry LOG --config FILE [--heartbeat]`: the cockpit, with a log of what it does.

One JSON object a line: `beat` (a source was read: name, how long, processor time so far), `started` (a
process), and with --heartbeat `late` (the event loop: by how much, and in which function it then was).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from cockpit.app import CockpitApp
from cockpit.cluster import Cluster
from cockpit.clusters import Clusters
from cockpit.config_file import load_config
from cockpit.sources.base import SourceKey
from tests.bench.heartbeat import PERIOD_S, heartbeat

LOOK_AFTER_S = 0.025  # a loop that has not woken by then is looked at while it is busy
_WAITS = ("wait", "select", "recv", "get", "_recv_until")
_OURS = ("/cockpit/", "/screens/", "/themes/", "/actions/")

Tell = Callable[..., None]


class Watcher:
    """Finds out what the threads do while the event loop is late: one more thread looks at their stacks.

    A thread that keeps all others from running, as in a long sort, is seen right after that, at the same line.
    """

    def __init__(self) -> None:
        self._waiting_since = time.monotonic()
        self.place = ""
        threading.Thread(target=self._watch, name="bench-watcher", daemon=True).start()

    def began(self, at: float) -> None:
        """The loop is alive at that moment."""
        self._waiting_since, self.place = at, ""

    def _watch(self) -> None:
        while True:
            before = time.monotonic()
            time.sleep(PERIOD_S)
            latest = min(before, self._waiting_since)
            if not self.place and time.monotonic() - latest > PERIOD_S + LOOK_AFTER_S:
                me = threading.get_ident()
                frames = [frame for thread, frame in sys._current_frames().items() if thread != me]
                self.place = " | ".join(filter(None, map(place_of, frames)))


def place_of(frame: FrameType) -> str:
    """The innermost function on a stack, and the innermost of the cockpit; "" for a thread that waits."""
    # Hundreds of threads may wait, and looking at them would itself be a stall.
    if frame.f_code.co_name in _WAITS:
        return ""
    at: FrameType | None = frame
    while at is not None and not any(part in at.f_code.co_filename for part in _OURS):
        at = at.f_back
    return " < ".join(dict.fromkeys(_name(each) for each in (frame, at) if each is not None))


def _name(frame: FrameType) -> str:
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_code.co_name}:{frame.f_lineno}"


class WatchedApp(CockpitApp):
    """The cockpit with a heartbeat in its event loop."""

    tell: Tell

    async def on_load(self) -> None:
        """Start the heartbeat with the event loop."""
        watcher = Watcher()

        def late(at: float, late_s: float) -> None:
            self.tell("late", at=at, late_s=late_s, place=watcher.place)

        self.run_worker(heartbeat(late, watcher.began))


def main() -> int:
    """Run the cockpit until `q`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--heartbeat", action="store_true")
    args = parser.parse_args()
    config = load_config(args.config)
    with args.log.open("a", buffering=1) as log:
        tell = teller(log.write)
        sys.addaudithook(lambda event, args: event == "subprocess.Popen" and tell("started", argv=str(args[0])))
        cluster = Cluster(config.clusters[config.default or next(iter(config.clusters))])
        app = CockpitApp(Clusters.only(cluster))
        if args.heartbeat:
            app = WatchedApp(Clusters.only(cluster))
            app.tell = tell
        cluster.store.listen(lambda name: tell_beat(tell, cluster, name))
        try:
            app.run()
        finally:
            cluster.stop()
    return app.return_code or 0


def teller(write: Callable[[str], Any]) -> Tell:
    """A function that writes one event as a line, from any thread."""

    def tell(event: str, **facts: Any) -> None:
        write(json.dumps({"event": event, "at": time.monotonic(), **facts}) + "\n")

    return tell


def tell_beat(tell: Tell, cluster: Cluster, name: str) -> None:
    """Log that a source was read, and what the process and its children have cost by then."""
    key: SourceKey[object] = SourceKey(name)
    state = cluster.store.state(key)
    spent = os.times()
    tell(
        "beat",
        name=name,
        took_s=state.good.took_s if state.good else None,
        error=state.error.line() if state.error else None,
        own_cpu_s=spent.user + spent.system,
        children_cpu_s=spent.children_user + spent.children_system,
    )


if __name__ == "__main__":
    sys.exit(main())
