"""Plain EC2 instances with Slurm on them."""

from __future__ import annotations

from cockpit.hosts.survey import HeadFacts


class PlainSlurm:
    """The kind of every Slurm head that is nothing more special."""

    id = "slurm"
    title = "Slurm"

    def recognises(self, facts: HeadFacts) -> bool:
        return facts.slurm_dir is not None

    def origin(self, node: str) -> str:
        return ""
