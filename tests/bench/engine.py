"""Work of the engine alone at two sizes, in processor time, which another program's load does not change much."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

from cockpit.clock import SystemClock
from cockpit.config import PrometheusSettings
from cockpit.diagnosis.diagnose import diagnose
from cockpit.formats.prometheus import FAST, PREFIX, Series, parse_answer
from cockpit.models import Health, Node, NodeState
from cockpit.sources.gpu_history import GpuHistory
from cockpit.sources.prometheus import PrometheusReads
from cockpit.sources.prometheus_client import PrometheusClient
from tests.unit import diagnosis_kit as kit

GPUS = 8


def measure_engine(nodes: int) -> dict[str, Any]:
    """A diagnosis of a job of that many nodes, and a look at as many through a Prometheus."""
    return {**_diagnosis(nodes), **_prometheus(nodes)}


def _diagnosis(nodes: int) -> dict[str, Any]:
    """From what was gathered of a job with one rank in a loader to the verdict; the asking of nodes is not in it."""
    world = nodes * GPUS
    names = tuple(f"p5-{number}" for number in range(1, nodes + 1))
    env = {"SLURM_TASKS_PER_NODE": f"{GPUS}(x{nodes})", "SLURM_JOB_NODELIST": f"p5-[1-{nodes}]"}
    ranks = {world - 3: kit.R(stack=kit.LOADER, env=env)}
    job = kit.job_text(NumTasks=str(world)).replace(b"p5-[1-2]", f"p5-[1-{nodes}]".encode())
    with mock.patch.multiple(kit, NODES=names, RANKS_A_NODE=GPUS):
        whole = kit.gathered(ranks, default=kit.R(env=env), world=world, tasks=world, job=job)
    found, took_s = _timed(lambda: diagnose(whole))
    if found.verdict.ranks != (world - 3,):
        raise ValueError(f"the odd rank was not found among {world}: {found.verdict}")
    return {"diagnosis_cpu_s": took_s}


def _prometheus(nodes: int) -> dict[str, Any]:
    """One look at the fleet: two answers read, joined and put into the history."""
    now = time.time()
    places = [(node, gpu) for node in range(nodes) for gpu in range(GPUS)]
    raw = {name: _answer([_series(*place, name, now, 50.0) for place in places]) for name in FAST}
    client = _Answers(raw, _answer([_series(*place, "", now, now - 5) for place in places]))
    fleet = [Node(f"p5-{node}", NodeState("idle"), "idle", Health.OK) for node in range(nodes)]
    reads = PrometheusReads(PrometheusSettings(""), lambda: fleet, GpuHistory(), client=client, clock=SystemClock())
    reading, took_s = _timed(reads.read)
    if len(reading.nodes) != nodes:
        raise ValueError("not every node was found")
    return {"prometheus_cpu_s": took_s, "prometheus_mib": client.mib}


def _series(node: int, gpu: int, name: str, at: float, value: float) -> dict[str, Any]:
    labels = {
        "__name__": f"{PREFIX}{name}", "Hostname": f"p5-{node}", "gpu": str(gpu), "device": f"nvidia{gpu}",
        "UUID": f"GPU-{node:04x}-{gpu:032x}", "modelName": "NVIDIA H100 80GB HBM3", "pci_bus_id": "00000000:53:00.0",
    }  # fmt: skip
    if name:  # the labels that tell what a GPU is are asked for once, with the times
        del labels["modelName"], labels["device"]
    return {"metric": labels, "value": [at, str(value)]}


def _answer(found: list[dict[str, Any]]) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": found}}).encode()


class _Answers(PrometheusClient):
    """A Prometheus without the network: the work is in reading what it says."""

    def __init__(self, values: dict[str, bytes], times: bytes) -> None:
        super().__init__(PrometheusSettings(""))
        self._values, self._times = values, times
        self.mib = (len(times) + sum(map(len, values.values()))) / 2**20

    def query(self, expression: str) -> tuple[Series, ...]:
        if "timestamp(" in expression:
            return parse_answer(self._times)
        name = expression.partition(f"{PREFIX}(")[2].partition(")")[0]
        return parse_answer(self._values[name]) if name in self._values else ()

    def query_range(self, expression: str, start: float, end: float, step_s: float) -> tuple[Series, ...]:
        return ()


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the processor seconds of the quickest of three runs."""
    times, found = [], None
    for _ in range(3):
        began = time.process_time()
        found = work()
        times.append(time.process_time() - began)
    return found, min(times)
