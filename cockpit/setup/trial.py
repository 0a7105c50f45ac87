"""A cluster that is not in the config yet, tested as the doctor tests one that is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cockpit.config import ClusterConfig, Config
from cockpit.doctor.examine import examine
from cockpit.doctor.models import Result, Verdict
from cockpit.doctor.wiring import Doctor
from cockpit.setup.find import Candidate

# Without these there is nothing that the cockpit could show.
NEEDED = ("dns", "tcp", "host_key", "auth", "slurm_programs", "kind", "slurm")


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it, and the entry with what the head told filled in."""

    results: tuple[Result, ...]
    config: ClusterConfig

    @property
    def usable(self) -> bool:
        """Whether Slurm was reached; the rest may be mended later."""
        return not any(result.id in NEEDED and _stops(result) for result in self.results)


def config_of(candidate: Candidate) -> ClusterConfig:
    """The entry that a candidate would become."""
    return ClusterConfig(
        candidate.name,
        kind=candidate.kind or None,
        head=candidate.head,
        region=candidate.region or None,
        profile=candidate.profile or None,
        stack=candidate.stack or None,
    )


def try_out(
    config: ClusterConfig,
    told: Callable[[Result], None] = lambda result: None,
    *,
    stop: threading.Event | None = None,
) -> Trial:
    """Every step on this entry, until `stop` is set; waits for the head, its nodes and AWS: not for the UI thread."""
    with Doctor(Config({config.name: config}, config.name), config.name) as doctor:
        steps = [step for step in doctor.steps() if step.id != "config"]
        results = examine(steps, told, stop=stop)
        return Trial(results, _completed(config, doctor))


def _completed(config: ClusterConfig, doctor: Doctor) -> ClusterConfig:
    """What the head told and nobody named: with them AWS can be asked while the head is off."""
    kind, facts = doctor.cluster.kind, doctor.cluster.slurm.known_facts()
    region = config.region or (facts.region if facts and not config.profile else "") or None
    stack = config.stack or (facts.stack if facts else "") or None
    return replace(
        config,
        kind=config.kind or (kind.id if kind else None),
        region=region,
        stack=stack if stack != config.name else None,
    )


def _stops(result: Result) -> bool:
    return result.verdict in (Verdict.FAIL, Verdict.NOT_TRIED)


def failures(results: Iterable[Result]) -> list[Result]:
    """Those to mend."""
    return [result for result in results if result.verdict is Verdict.FAIL]
