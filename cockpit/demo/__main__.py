"""`python -m cockpit.demo`: serve the demo cluster until standard input closes or SIGTERM comes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading

from cockpit.demo.cluster import DemoCluster
from cockpit.demo.scenarios import SCENARIOS
from cockpit.demo.sim import MAX_NODES


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cockpit.demo", description=__doc__)
    parser.add_argument("--nodes", type=int, default=12, metavar="N", help=f"1 to {MAX_NODES}, default 12")
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="busy")
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Serve; the first line on standard output is the path of the generated config."""
    args = _parse(argv)
    try:
        demo = DemoCluster(args.nodes, args.scenario, args.seed)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    with demo as config:
        print(config, flush=True)
        threading.Thread(target=_wait_for_eof, args=(over,), daemon=True).start()
        over.wait()
    return 0


def _wait_for_eof(over: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    over.set()


if __name__ == "__main__":
    raise SystemExit(main())
