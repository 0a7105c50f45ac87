"""Slurm on the head: its programs, its answers, and as whom changes are sent."""

from __future__ import annotations

import getpass

from actions.rights import Rights, rights
from cockpit.cluster import Cluster
from cockpit.doctor.models import Finding, Step, failed, not_applicable, passed
from cockpit.hosts.survey import HeadFacts
from cockpit.kinds import ALL, find_kind
from cockpit.models import Node
from cockpit.sources.slurm import SlurmReads
from cockpit.words import plural

# What the cockpit ever runs behind `sudo -n`.
PROGRAMS_AS_ROOT = ("scontrol", "scancel")
_CLOCK_OFF_S = 30.0


class OnHead:
    """`nodes` is what Slurm told, once it was asked."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.nodes: tuple[Node, ...] = ()

    def steps(self) -> tuple[Step, ...]:
        return (
            Step("slurm_programs", "Slurm's programs", self._programs, ("config", "auth"), 30.0),
            Step("kind", "kind of cluster", self._kind, ("slurm_programs",), 10.0),
            Step("slurm", "Slurm answers", self._answers, ("slurm_programs",), 30.0),
            Step("rights", "right to change it", self._rights, ("slurm",), 30.0),
        )

    def _programs(self) -> Finding:
        facts = self._cluster.slurm.facts()
        if facts.slurm_dir is None:
            return failed(
                f"no squeue on {facts.hostname or 'the head'}: not in PATH, /opt/slurm/bin or the login shell's PATH",
                "is `head` the cluster's head node? if Slurm lies elsewhere, put it on the login's PATH there",
            )
        ahead = facts.clock_ahead_s
        off = f"; its clock is {abs(ahead):.0f} s off ours" if ahead is not None and abs(ahead) > _CLOCK_OFF_S else ""
        return passed(f"{facts.slurm_dir} on {facts.hostname}, as {facts.user}{off}")

    def _kind(self) -> Finding:
        facts, config = self._cluster.slurm.facts(), self._cluster.config
        shown, kind = find_kind(facts), self._cluster.kind
        if config.kind is None:
            return passed(f"{kind.title if kind else 'Slurm'}, by what the head shows")
        if shown is not None and shown.id != config.kind and _is_special(facts):
            return failed(
                f"the config says {config.kind}, but the head is of kind {shown.id}",
                f"set `kind: {shown.id}`: drains, replacements and power work differently there",
            )
        return passed(f"{kind.title if kind else config.kind}, as the config says")

    def _answers(self) -> Finding:
        reading = SlurmReads(self._cluster.slurm).nodes()
        self.nodes = reading.nodes
        queues = plural(len(reading.partitions), "queue")
        return passed(f"{plural(len(reading.nodes), 'node')} in {queues}")

    def _rights(self) -> Finding:
        if self._cluster.read_only:
            return not_applicable("read-only: nothing is changed from here")
        found = rights(self._cluster)
        if found.admin:
            return passed(f"{found.user} may change everything ({_rank(found)})")
        directory = self._cluster.slurm.facts().slurm_dir or ""
        if not found.sudo_says:
            return passed(f"{found.user} may by `sudo -n`, as each plan says")
        return failed(
            f"{found.user} has no right to change nodes, and `sudo -n` refuses: {found.sudo_says}",
            f"let Slurm: sacctmgr modify user {found.user} set adminlevel=Administrator",
            f"or sudo, in /etc/sudoers.d/cockpit on the head: {sudo_line(found.user, directory)}",
            "or look only: `read_only: true` in the config",
        )


def sudo_line(user: str, slurm_dir: str) -> str:
    """The line for sudoers that lets this login do what the actions need, and nothing else."""
    programs = ", ".join(f"{slurm_dir}/{program}" for program in PROGRAMS_AS_ROOT)
    return f"{user or getpass.getuser()} ALL=(root) NOPASSWD: {programs}"


def _rank(found: Rights) -> str:
    if found.uid == 0:
        return "root"
    return "Slurm's own user" if found.user == found.slurm_user else "an administrator of Slurm's accounting"


def _is_special(facts: HeadFacts) -> bool:
    """Whether the head carries the mark of a product, and is no plain Slurm for want of one."""
    return any(kind.recognises(facts) for kind in ALL[:-1])
