"""Where the time goes: loading, one read by its parts, the requests of Slurm's programs by themselves."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.formats.sinfo import node_args
from cockpit.formats.squeue import queue_args
from cockpit.sources.slurm import SlurmReads
from tests.bench.quiet import controller_requests
from tests.bench.stats import median
from tests.bench.targets import Target

RUNS = 3
# What a start loads, in its order; a fresh interpreter tells how long each takes after the ones before.
_LOADS = {
    "load_textual_s": "textual.app, textual.screen, textual.widgets",
    "load_frame_s": "cockpit.cli, cockpit.app, cockpit.config_file",
    "load_engine_s": "cockpit.cluster",
    "load_ssh_s": "cockpit.hosts.ssh",
    "load_screens_s": "screens.cockpit_screen",
}
_PROGRAM = """
import json, time
found = {{}}
for name, modules in {loads!r}.items():
    began = time.perf_counter()
    exec(f"import {{modules}}")
    found[name] = time.perf_counter() - began
print(json.dumps(found))
"""


def measure_loading() -> dict[str, Any]:
    """Medians, in seconds, of loading what a start loads."""
    rounds = [_loaded() for _ in range(RUNS)]
    return {name: median([each[name] for each in rounds]) for name in _LOADS}


def _loaded() -> dict[str, float]:
    argv = [sys.executable, "-c", _PROGRAM.format(loads=_LOADS)]
    found: dict[str, float] = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    return found


def measure_reads(target: Target) -> dict[str, Any]:
    """Processor time of receiving the two answers of a refresh, of reading them first, and when nothing has changed."""
    config = load_config(target.config)
    cluster = Cluster(config.clusters[config.default or next(iter(config.clusters))], watch_gpus=False)
    try:
        reads = SlurmReads(cluster.slurm)
        _read_both(reads)  # the connection, and what is remembered of each entry
        whole = _cpu(lambda: _read_both(reads))
        first = _cpu(lambda: _read_both(SlurmReads(cluster.slurm)))
        received = _cpu(lambda: [cluster.slurm.read(program, args, "a bench") for program, args in _asked()])
    finally:
        cluster.stop()
    return {
        "receive_cpu_s": received,
        "parse_cpu_s": max(0.0, first - received),
        "compare_cpu_s": max(0.0, whole - received),
    }


def _read_both(reads: SlurmReads) -> None:
    reads.nodes()
    reads.queue()


def _asked() -> tuple[tuple[str, list[str]], ...]:
    return ("sinfo", node_args()), ("squeue", queue_args())


def _cpu(work: Callable[[], object]) -> float:
    """Of this process with all its threads; the least of RUNS, since whatever disturbs only adds."""
    took = []
    for _ in range(RUNS):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def measure_requests(target: Target) -> dict[str, Any]:
    """What slurmctld counts for one raw `sinfo` and one raw `squeue`, as the cockpit runs them."""
    found = {}
    for name, argv in zip(("sinfo_requests", "squeue_requests"), target.reads(), strict=True):
        before = controller_requests(target)
        target.run(argv)
        found[name] = sum(controller_requests(target).values()) - sum(before.values())
    return found
