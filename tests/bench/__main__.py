"""`python -m tests.bench`: measure, write bench.json and docs/BENCH.md, and say which budgets are missed."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench import parts, report
from tests.bench.budgets import PARTS
from tests.bench.engine import measure_engine
from tests.bench.flat import flat_queue
from tests.bench.keys import measure_keys
from tests.bench.pool import measure_diagnosis, measure_pool
from tests.bench.probe import measure_probe
from tests.bench.quiet import measure_quiet
from tests.bench.quits import measure_quits
from tests.bench.starts import measure_starts, watch_data_s
from tests.bench.targets import Target, demo_target, rig_targets
from tests.rig.require import missing as no_rig

CHECKOUT = Path(__file__).parents[2]
BIG, SMALL = (1024, 20_000), (128, 2_000)
# Of each size what is measured. The demo watches the GPUs of 64 nodes at most: every one of them is a real probe here.
DEMOS = {12: "starts", 64: "starts quiet keys", 256: "starts quiet"}
ENGINE = (3, 64, 1024)
POOL, DIAGNOSES = (64, 128), (3, 64)  # 256 nodes, each with sshd and probe, are 1,300 processes here

Columns = dict[str, dict[str, Any]]


class Bench:
    """What has been measured so far, by section and column; `quick` takes a quarter of the time."""

    def __init__(self, quick: bool) -> None:
        self.sections: dict[str, Columns] = {}
        self._runs = 1 if quick else 3
        self._rest_s, self._keys_s = (5.0, 6.0) if quick else (9.0, 10.0)
        self._began = time.monotonic()
        self._warm = False  # whether anything was started before

    def note(self, section: str, column: str, measure: Callable[[], dict[str, Any]]) -> None:
        """Measure and keep; a measurement that fails is told and leaves its figures out."""
        print(f"{time.monotonic() - self._began:5.0f} s  {section}, {column}", file=sys.stderr, flush=True)
        try:
            found = measure()
        except (TimeoutError, ValueError, OSError) as error:
            found = {"failed": str(error)}
            print(f"         {error}", file=sys.stderr)
        self.sections.setdefault(section, {}).setdefault(column, {}).update(found)

    def cluster(self, section: str, column: str, target: Target, *, only: str = "starts quiet changes keys") -> None:
        """What `only` names about one target."""
        if "starts" in only:
            first, self._warm = not self._warm, True
            self.note(section, column, lambda: measure_starts(target, self._runs, warm_up=first))
        if "quiet" in only:
            self.note(section, column, lambda: measure_quiet(target, self._rest_s))
        if "changes" in only:
            self.note(section, column, lambda: _changing(measure_quiet(target, self._rest_s, changing=True)))
        if "keys" in only:
            self.note(section, column, lambda: measure_keys(target, self._keys_s))

    def rig(self, nodes: int, jobs: int, *, whole: bool) -> None:
        """One slurmctld; `whole` also measures a small terminal, single jobs, and the cockpit on the head."""
        size = f"{nodes:,} nodes, {jobs:,} entries"
        with rig_targets(size, nodes, jobs) as (ssh, local):
            self.note(PARTS, size, lambda: parts.measure_reads(ssh) | parts.measure_requests(ssh))
            if not whole:
                self.cluster("Over SSH", size, ssh, only="starts quiet keys")
                return
            self.cluster("Over SSH", size, ssh)
            self.cluster("On the head itself", size, local, only="starts quiet")
            self.note("On the head itself", size, lambda: {"watch_s": watch_data_s(local)})
            self.note(
                "80x24, 256 colours, over SSH",
                size,
                lambda: measure_keys(ssh, self._keys_s / 2, size=(80, 24), colours="256"),
            )
            with flat_queue(ssh) as flat:
                self.note("As many single jobs, over SSH", size, lambda: measure_keys(flat, self._keys_s))

    def demo(self, nodes: int) -> None:
        """The demo of that size."""
        with demo_target(nodes) as target:
            name = f"{nodes} nodes"
            self.cluster("Demo", name, target, only=DEMOS[nodes])
            self.note("Demo", name, lambda: measure_quits(target))


def _changing(found: dict[str, Any]) -> dict[str, Any]:
    return {f"changing_{name}": value for name, value in found.items()}


def main() -> int:
    """Measure; 0 also when budgets are missed, since a bench is no test."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a minute; writes bench.json only")
    quick: bool = parser.parse_args().quick
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell started us in the background
    about, bench = report.machine(), Bench(quick)
    bench.note(PARTS, "anywhere", parts.measure_loading)
    if (reason := no_rig()) is None:
        for nodes, jobs in (BIG,) if quick else (SMALL, BIG):
            bench.rig(nodes, jobs, whole=(nodes, jobs) == BIG and not quick)
    else:
        print(f"demo only: {reason}", file=sys.stderr)
    for nodes in [*DEMOS][:1] if quick else DEMOS:
        bench.demo(nodes)
    for nodes in ENGINE:
        bench.note("Work of the engine", f"{nodes:,} nodes, {8 * nodes:,} GPUs", partial(measure_engine, nodes))
    if not quick:
        for nodes in POOL:
            bench.note("Many nodes through one head", f"{nodes} nodes", partial(measure_pool, nodes, 30.0))
        for nodes in DIAGNOSES:
            bench.note("A hung job over SSH", f"{nodes} nodes, {8 * nodes} ranks", partial(measure_diagnosis, nodes))
    bench.note("On a node", "8 GPUs", lambda: measure_probe(10.0 if quick else 30.0))
    sections = list(bench.sections.items())
    report.write_json(CHECKOUT / "bench.json", about, sections)
    text = report.document(about, sections)
    print(text)
    if not quick:
        (CHECKOUT / "docs" / "BENCH.md").write_text(text, encoding="utf-8")
    print("\n".join(["missed:", *report.missed(sections)] if report.missed(sections) else ["every budget is met"]))
    return 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
