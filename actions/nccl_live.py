"""What happens after an NCCL test or sweep was submitted: follow it, stop it, keep its result. Not a change by itself.

follow() runs on a thread of its own; everything it learns is one assignment each, so that screens may look any time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from actions.nccl import end_plan, job_by_id, jobs_named, started_job
from actions.outcome import Result
from actions.runner import Runner
from cockpit.formats.job_states import STARTED, job_state
from cockpit.formats.nccl_tests import NcclReader
from cockpit.hosts.base import LineStream
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.nccl.history import (
    History,
    HistoryRun,
    baseline,
    history_record,
)
from cockpit.nccl.measured import Outcome, Trial
from cockpit.nccl.models import NcclRow, NcclRun, NcclVersions, Verdict
from cockpit.nccl.place import history_path
from cockpit.nccl.rounds import SweepDriver, SweepRun, keeper_argv
from cockpit.nccl.run import NcclRequest, NodeFacts, follow_argv, output_path, parse_node_line
from cockpit.nccl.shape import Known, shape_of
from cockpit.nccl.sweep import Sweep, SweepOptions
from cockpit.nccl.sweep_kept import sweep_record
from cockpit.nccl.sweep_result import SweepResult, pair_matrix, sweep_result
from cockpit.nccl.verdict import judge, large_rows
from cockpit.sources.base import unexpected
from cockpit.sources.slurm import SlurmReads

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

Heard = Callable[[], None]
LOOK_S = 1.0
REST_S = 5.0  # what the output of an ended job may take over a shared file system
END_S = 30.0
OPEN_S = 30.0


class Live:
    """What tests and sweeps have in common. `over` is set once nothing more will come."""

    def __init__(self, cluster: Cluster, name: str, heard: Heard = lambda: None) -> None:
        self.cluster, self.name, self.heard = cluster, name, heard
        self.began_at = cluster.clock.steady()
        self.job_id: int | None = None
        self.state = "submitting"
        self.fault = ""
        self.record: HistoryRun | None = None
        self.over = threading.Event()
        self.stopped = threading.Event()

    def begin(self, result: Result) -> bool:
        """Take in how the submission ended; False when there is nothing to follow."""
        self.job_id = started_job(result)
        if self.job_id is None and result.outcome != "refused":
            with contextlib.suppress(FaultError):  # a warning may stand where the id was expected
                jobs = jobs_named(self.cluster, self.name)
                self.job_id = jobs[-1].job_id if jobs else None
        if self.job_id is None or result.outcome == "failed":
            self._end("not started", result.text)
            return False
        return True

    def run(self) -> None:
        """Follow it to its end; never raises, whatever happens is told."""
        try:
            self.follow()
        except FaultError as error:
            self.fault = self.fault or error.fault.line()
        except Exception as error:  # a thread's end must be told, whatever broke
            self.fault = self.fault or unexpected(f"following {self.name}", error).line()
        finally:
            if self.state not in ("ended", "stopped"):
                self.state = "stopped" if self.stopped.is_set() else "ended"
            self.over.set()
            self.heard()

    def follow(self) -> None:
        """Block until the end."""
        raise NotImplementedError

    def stop(self) -> None:
        """Cancel it; returns at once, the end is told as always."""
        if not self.stopped.is_set() and not self.over.is_set():
            self.stopped.set()
            threading.Thread(target=self._stop, name="nccl-stop", daemon=True).start()
            self.heard()

    def _stop(self) -> None:
        try:
            end_jobs(self.cluster, self.name)
        except FaultError as error:
            self.fault = f"the job may still run: {error.fault.line()}"
            self.heard()

    def _end(self, state: str, why: str = "") -> None:
        self.state, self.fault = state, why
        self.over.set()
        self.heard()

    def _keep(self, record: HistoryRun) -> None:
        self.record = record
        try:
            History(history_path(self.cluster.config.name)).append(record)
        except OSError as error:
            self.fault = f"the result could not be kept: {error.strerror or error}"


def end_jobs(cluster: Cluster, name: str, *, deadline_s: float = END_S) -> None:
    """Cancel the jobs of that very name and wait until Slurm has ended them; raises FaultError when some are left.

    By the runner and with a record, as every change; whoever confirmed the test has confirmed its end.
    """
    until, nap = cluster.clock.steady() + deadline_s, threading.Event()
    sent: set[str] = set()
    while alive := [str(job.job_id) for job in jobs_named(cluster, name) if not job_ended(job.state)]:
        if cluster.clock.steady() > until:
            left = f"job {', '.join(alive)} is still there"
            raise FaultError(Fault(FaultKind.FAILED, f"ending {name}", left, f"scancel {' '.join(alive)}"))
        if new := [label for label in alive if label not in sent]:  # one may come late, when its start was cut short
            plan = end_plan(cluster, name, new)
            result = Runner(cluster).run(plan, plan.confirm.word, lambda _: None, how=f"part of {name}")
            if result.outcome in ("refused", "failed"):
                raise FaultError(Fault(FaultKind.DENIED, f"ending {name}", result.text, f"scancel {' '.join(alive)}"))
            sent.update(new)
        nap.wait(LOOK_S / 2)


def cut_short(cluster: Cluster, name: str, over: threading.Event) -> None:
    """End the jobs of that name, also those that come late, until `over`; on a thread of its own.

    While a salloc waits for the prologs of its nodes, nothing but the end of its job keeps it from getting them.
    """

    def work() -> None:
        while not over.wait(LOOK_S):
            with contextlib.suppress(FaultError):
                end_jobs(cluster, name)

    threading.Thread(target=work, name="nccl-cut-short", daemon=True).start()


def job_ended(state: str) -> bool:
    """Whether a job of that short state will not run any more."""
    return state not in STARTED and state != "PD" and job_state(state).kind in ("good", "bad")


class LiveTest(Live):
    """One test: rows as they are printed, and its verdict, which goes into the history."""

    def __init__(self, cluster: Cluster, request: NcclRequest, heard: Heard = lambda: None) -> None:
        super().__init__(cluster, request.name, heard)
        self.request = request
        self.rows: tuple[NcclRow, ...] = ()
        self.nodes: dict[str, NodeFacts] = {}
        self.verdict: Verdict | None = None  # of what was printed so far
        self.result: NcclRun | None = None
        self._reader = NcclReader()
        self._stream: LineStream | None = None
        self._silent = True  # nothing of its output has come
        self._last_state = ""
        self._history = History(history_path(cluster.config.name))

    def follow(self) -> None:
        """Until the footer was printed, the job has ended, or the connection is gone."""
        assert self.job_id is not None
        path = output_path(self.request, self.job_id)
        self.state = "waiting for its output"
        self.heard()
        self._stream = stream = self.cluster.head.stream(follow_argv(path), open_deadline_s=OPEN_S)
        done = threading.Event()
        threading.Thread(target=self._watch_job, args=(stream, done), name="nccl-job", daemon=True).start()
        try:
            for line in stream:
                self._read(line)
                if self.result is not None and self.result.complete:
                    break
        finally:
            alive = not done.is_set()
            done.set()
            stream.close()
        complete = self.result is not None and self.result.complete
        if alive and not complete and not self.stopped.is_set():
            self.fault = f"the connection to the head ended; the job goes on and writes {path}"
        elif self._silent and not self.stopped.is_set():
            self.fault = (
                f"job {self.job_id} has ended ({self._last_state}), and the head sees no output of it in {path}: "
                "it was ended before it began, or this folder is not shared between the head and that node"
            )
        else:
            self._finish()

    def _read(self, line: bytes) -> None:
        self._silent = False
        if (facts := parse_node_line(line.decode("utf-8", "replace"))) is not None:
            self.nodes[facts.node] = facts
            self.state = "running"
        rows = tuple(self._reader.feed(line))
        runs = self._reader.runs()
        if runs:
            self.state, self.result = "running", runs[-1]
        if rows and runs:
            self.rows = (*self.rows, *rows)
            self.verdict = self._judged(runs[-1])
            self.heard()

    def _judged(self, run: NcclRun) -> Verdict:
        given = Known(self._type(), self.request.count, self.request.collective, self.request.algorithm == "ring")
        shape, large, rules = shape_of(run, given), large_rows(run), self.cluster.rules
        own = None
        if large:
            with contextlib.suppress(OSError):
                own = baseline(self._history.load(), shape, large[0].size_bytes, rules)
        return judge(run, shape, rules, own)

    def _type(self) -> str:
        """As AWS tells it, where it is the same for all; else the log or the GPUs tell."""
        known = self.cluster.view.instance_of_node
        types = {known[name].type.removeprefix("ml.") for name in self.request.nodes if name in known}
        return next(iter(types)) if len(types) == 1 else ""

    def _watch_job(self, stream: LineStream, done: threading.Event) -> None:
        """A test that fails prints no last line: then the end of its job is the end."""
        assert self.job_id is not None
        while not done.wait(LOOK_S):
            try:
                jobs = job_by_id(self.cluster, self.job_id)
            except FaultError:
                continue
            self._last_state = ", ".join(job_state(job.state).word for job in jobs) or "Slurm has forgotten it"
            if all(job_ended(job.state) for job in jobs):
                done_waiting = REST_S if not self.stopped.is_set() else LOOK_S
                if not done.wait(done_waiting):
                    done.set()
                    stream.close_stdin()
                return
            if not self.rows and jobs and jobs[-1].state == "PD":
                self.state = f"waiting in the queue ({jobs[-1].reason})"
                self.heard()

    def _finish(self) -> None:
        self.rows = (*self.rows, *self._reader.close())  # a row that srun broke in two is only known at the end
        runs = self._reader.runs()
        run = runs[-1] if runs else NcclRun()
        self.result, self.verdict = run, self._judged(run)
        self.state = "stopped" if self.stopped.is_set() else "ended"
        record = history_record(
            run,
            self.verdict,
            at=self.cluster.clock.now(),
            nodes=self.request.nodes,
            versions=self._versions(),
            job_id=self.job_id,
        )
        if not self.stopped.is_set():  # what somebody stopped tells nothing about the nodes
            self._keep(record)

    def _versions(self) -> NcclVersions:
        """Driver and EFA as the nodes told them; both where they differ."""
        told = self.nodes.values()
        drivers, efas = sorted({one.driver for one in told if one.driver}), sorted({one.efa for one in told if one.efa})
        return NcclVersions(driver=" and ".join(drivers), efa=" and ".join(efas))


@dataclass(frozen=True, slots=True)
class SweepLook:
    """How far a sweep has come, frozen: the sweep itself belongs to the thread that drives it."""

    pairs: Mapping[tuple[str, str], float | None] = field(default_factory=dict)
    running: tuple[tuple[str, ...], ...] = ()  # the nodes of each test that runs now
    phase: str = ""
    rounds: int = 0
    jobs: int = 0  # tests begun
    done: int = 0
    alone: Mapping[str, float] = field(default_factory=dict)
    found: SweepResult | None = None


class LiveSweep(Live):
    """A sweep: its rounds, every pair as it is measured, and what it finds."""

    def __init__(
        self, cluster: Cluster, request: NcclRequest, options: SweepOptions, name: str, heard: Heard = lambda: None
    ) -> None:
        super().__init__(cluster, name, heard)
        self.request = request
        self.sweep = Sweep(request.nodes, options)
        self.look = SweepLook()
        self._run: SweepRun | None = None
        self.on_outcome: Callable[[Trial, Outcome], None] = lambda trial, outcome: None

    def follow(self) -> None:
        """Until the sweep is over or stopped; its job is cancelled in any case."""
        assert self.job_id is not None
        folder = self.cluster.slurm.facts().slurm_dir or ""
        driver = SweepDriver(self.sweep, gone=self._gone, on_outcome=self._told, on_round=self._looked)
        self._run = run = SweepRun(self.cluster.head, driver, keeper_argv(self.request, self.job_id, slurm_dir=folder))
        self.state = "running"
        self.heard()
        try:
            if not self.stopped.is_set():
                run.run(open_deadline_s=OPEN_S)
        finally:
            end_jobs(self.cluster, self.name)
        finished = not self.stopped.is_set() and not driver.broken_off
        result = sweep_result(self.sweep, finished=finished)
        self._looked()
        self.look = replace(self.look, found=result)
        self.state = "ended" if finished else "stopped"
        if not finished and not self.stopped.is_set():
            self.fault = f"{driver.broken_off} before the sweep did"
        if self.sweep.measured.outcomes and not self.stopped.is_set():
            self._keep(sweep_record(self.sweep, result, self.request, at=self.cluster.clock.now(), job_id=self.job_id))

    @property
    def found(self) -> SweepResult:
        """What is known so far."""
        return self.look.found or sweep_result(self.sweep, finished=False)

    def _stop(self) -> None:
        if self._run is not None:
            self._run.cancel()
        super()._stop()

    def _told(self, trial: Trial, outcome: Outcome) -> None:
        self.on_outcome(trial, outcome)
        self._looked(result=True)

    def _looked(self, *, result: bool = False) -> None:
        """Freeze how it stands; on the thread that drives it."""
        sweep, measured, now = self.sweep, self.sweep.measured, self.sweep.open_trials
        alone = {node: max(values) for node in measured.nodes if (values := measured.alone(node))}
        self.look = SweepLook(
            pairs=pair_matrix(sweep),
            running=tuple(trial.nodes for trial in now),
            phase=now[0].phase if now else self.look.phase,
            rounds=sweep.rounds,
            jobs=sweep.jobs,
            done=len(measured.outcomes),
            alone=alone,
            found=sweep_result(sweep, finished=False) if result else self.look.found,
        )
        self.heard()

    def _gone(self) -> dict[str, str]:
        """Nodes that Slurm has lost by now, asked anew: a view may be seconds old."""
        try:
            nodes = SlurmReads(self.cluster.slurm).nodes().nodes
        except FaultError:
            return {}
        bad = ("down", "not_responding", "fail", "powered_down", "powering_down")
        return {node.name: f"is {node.word}" for node in nodes if node.state.base == "down" or node.state.has(*bad)}
