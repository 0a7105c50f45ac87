"""Amazon SageMaker HyperPod with Slurm."""

from __future__ import annotations

from cockpit.hosts.survey import HeadFacts


class HyperPod:
    """Nodes belong to instance groups that SageMaker keeps at their size."""

    id = "hyperpod"
    title = "HyperPod"

    def recognises(self, facts: HeadFacts) -> bool:
        return facts.hyperpod

    def origin(self, node: str) -> str:
        return ""
