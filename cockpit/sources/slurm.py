"""Slurm's own words about nodes, queue and configuration, by the cheapest calls there are.

One `sinfo` and one `squeue` per refresh, as text with control separators (JSON costs 20 to 90 times the
bytes and up to 4.9 GB of the head's memory at 20,000 jobs), and a slow look at the configuration.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from dataclasses import replace

from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.formats.arrays import count_states, fold_queue
from cockpit.formats.scontrol import parse_config, parse_partitions, parse_ping
from cockpit.formats.sinfo import node_args, parse_nodes
from cockpit.formats.slurm_errors import classify, complaint
from cockpit.formats.squeue import parse_queue, queue_args
from cockpit.hosts.base import Completed, Host
from cockpit.hosts.survey import HeadFacts, survey_head
from cockpit.models import (
    Fault,
    FaultError,
    FaultKind,
    Job,
    Node,
    NodesReading,
    QueueReading,
    QueueRow,
    SlurmSite,
)
from cockpit.sources.base import SourceKey
from cockpit.sources.slurm_env import SLURM_SET, SLURM_UNSET

NODES: SourceKey[NodesReading] = SourceKey("nodes")
QUEUE: SourceKey[QueueReading] = SourceKey("queue")
SITE: SourceKey[SlurmSite] = SourceKey("slurm")

READ_DEADLINE_S = 12.0
PING_DEADLINE_S = 4.0
_UNCLEAR = (FaultKind.TIMEOUT, FaultKind.CONTROLLER_DOWN, FaultKind.CONTROLLER_HUNG, FaultKind.FAILED)


class SlurmClient:
    """Runs Slurm's programs on the head: found once, by absolute path, in a scrubbed environment."""

    def __init__(self, host: Host, clock: Clock = SYSTEM_CLOCK) -> None:
        self._host, self._clock = host, clock
        self._facts: HeadFacts | None = None
        self._survey_failed: tuple[float, FaultError] | None = None
        self._lock = threading.Lock()
        self._controller_bad = False

    def facts(self) -> HeadFacts:
        """What the head is like; asked once, then remembered. Raises FaultError.

        One survey serves everybody who waits for it, also when it fails.
        """
        asked_at = self._clock.steady()
        with self._lock:
            if self._facts is None:
                failed = self._survey_failed
                if failed is not None and failed[0] > asked_at:
                    raise failed[1]
                self._facts = self._survey()
            return self._facts

    def look_again(self) -> HeadFacts:
        """Ask the head anew: its clock drifts, and Slurm may have moved."""
        facts = self._survey()
        with self._lock:
            self._facts = facts
        return facts

    def _survey(self) -> HeadFacts:
        try:
            return survey_head(self._host, self._clock)
        except FaultError as error:
            self._survey_failed = (self._clock.steady(), error)
            raise

    def known_facts(self) -> HeadFacts | None:
        """What the head is like if it was asked already; never waits."""
        return self._facts

    def argv(self, program: str, args: Sequence[str], *, as_root: bool = False) -> tuple[str, ...]:
        """The whole command, by its absolute path, behind `sudo -n` where it needs root; raises FaultError."""
        directory = self.facts().slurm_dir
        if directory is None:
            self._facts = None
            raise FaultError(
                Fault(
                    FaultKind.MISSING,
                    f"looking for Slurm on {self._host.name}",
                    "no squeue in PATH, /opt/slurm/bin or the login shell's PATH",
                    "is `head` the cluster's head node?",
                )
            )
        return (*(("sudo", "-n") if as_root else ()), f"{directory}/{program}", *args)

    def run(self, program: str, args: Sequence[str], *, deadline_s: float = READ_DEADLINE_S) -> Completed:
        """Run one of Slurm's programs; raises FaultError when it is not there or the head does not answer."""
        return self._run(self.argv(program, args), deadline_s)

    def send(self, argv: Sequence[str], *, deadline_s: float, stdin: bytes = b"") -> Completed:
        """Run a command that changes the cluster, as `argv()` gave it: once, never again by itself.

        After a FaultError of kind TIMEOUT the change may still happen: look before you say anything. Only the
        runner of actions calls this; it asks for nothing and checks nothing.
        """
        return self._run(argv, deadline_s, stdin)

    def probe(self, argv: Sequence[str], *, deadline_s: float) -> Completed:
        """Run another harmless command on the head, such as `sudo -n -l`; raises FaultError."""
        return self._run(argv, deadline_s)

    def _run(self, argv: Sequence[str], deadline_s: float, stdin: bytes = b"") -> Completed:
        return self._host.run(argv, deadline_s=deadline_s, stdin=stdin, env=SLURM_SET, unset=SLURM_UNSET)

    def read(self, program: str, args: Sequence[str], what: str) -> bytes:
        """The output of a read; raises FaultError, with the controller's own state found out by a ping."""
        self.facts()  # without them there is nothing to ping with, and their fault says all
        if self._controller_bad:  # a read would block for MessageTimeout (59 s on ParallelCluster), a ping does not
            fault = self._controller_fault(what)
            self._controller_bad = fault is not None
            if fault is not None:
                raise FaultError(fault)
        try:
            return self._checked(self.run(program, args), what)
        except FaultError as error:
            if error.fault.kind is FaultKind.MISSING:
                self._facts = None
            if error.fault.kind not in _UNCLEAR:
                raise
            fault = self._controller_fault(what)
            self._controller_bad = fault is not None
            raise FaultError(fault or error.fault) from error

    def _checked(self, done: Completed, what: str) -> bytes:
        # Some failures come with exit status 0, an error text and no output: not an empty cluster.
        if fault := complaint(
            done.rc, done.stdout, done.stderr, what=what, took_s=done.took_s, deadline_s=READ_DEADLINE_S
        ):
            raise FaultError(fault)
        return done.stdout

    def _controller_fault(self, what: str) -> Fault | None:
        """What is wrong with the controller or the way to it; None when a ping finds it well."""
        try:
            done = self.run("scontrol", ["ping"], deadline_s=PING_DEADLINE_S)
        except FaultError as error:
            if error.fault.kind is not FaultKind.TIMEOUT:
                return error.fault
            return self._head_fault() or Fault(
                FaultKind.CONTROLLER_HUNG,
                what,
                "slurmctld does not answer, not even a ping",
                "on the head: is slurmctld stopped or swapping? `systemctl status slurmctld`",
            )
        if any(controller.up for controller in parse_ping(done.stdout)):
            return None
        return classify(done.rc or 1, done.stdout, done.stderr, what=what)

    def _head_fault(self) -> Fault | None:
        """Whether the head itself hangs: then nothing is known about the controller."""
        try:
            self._host.run(["true"], deadline_s=PING_DEADLINE_S)
        except FaultError as error:
            return error.fault
        return None


def _mark() -> str:
    """What ends a record; new for each call, since every user of the head can read it off the process list."""
    return secrets.token_hex(6)


class SlurmReads:
    """The reads behind the three Slurm sources; remembers parsed records, so that only changed ones cost."""

    def __init__(self, client: SlurmClient) -> None:
        self._client = client
        self._jobs: dict[bytes, Job] = {}
        self._rows: dict[str, QueueRow] = {}
        self._nodes: dict[bytes, Node] = {}

    def nodes(self) -> NodesReading:
        """Every visible node once, and the queues."""
        mark = _mark()
        raw = self._client.read("sinfo", node_args(mark), "reading the nodes")
        return parse_nodes(raw, cache=self._nodes, mark=mark)

    def queue(self) -> QueueReading:
        """Every queue entry, and the lines they fold to."""
        mark = _mark()
        raw = self._client.read("squeue", queue_args(mark), "reading the queue")
        jobs = parse_queue(raw, cache=self._jobs, mark=mark)
        return QueueReading(jobs, fold_queue(jobs, cache=self._rows), count_states(jobs))

    def site(self) -> SlurmSite:
        """The configuration as far as screens need it, and a new look at the head."""
        self._client.look_again()
        site = parse_config(self._client.read("scontrol", ["show", "config"], "reading Slurm's configuration"))
        partitions = self._client.read("scontrol", ["-o", "show", "partition"], "reading the queues' limits")
        return replace(site, partitions=parse_partitions(partitions), sees_all_jobs=self._sees_all_jobs(site))

    def _sees_all_jobs(self, site: SlurmSite) -> bool | None:
        """Whether PrivateData hides others' jobs from this login; None when only accounting could tell."""
        facts = self._client.facts()
        if "jobs" not in site.private_data or facts.uid == 0:
            return True
        return None if site.accounting else False  # an operator's right would come from accounting
