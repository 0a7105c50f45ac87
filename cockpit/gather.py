"""Gathers evidence about one job from all of its nodes at once. It only reads, and ends when the time is up.

Every piece has a thread and a deadline of its own: what does not answer is missing, and nothing else waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from statistics import median

from cockpit.cluster import Cluster
from cockpit.diagnosis.gathered import Gathered, GatheredEfa, GatheredGpu, GatheredLog, GatheredNode
from cockpit.fleet import GpuRow, gpu_freshness
from cockpit.formats.hostlist import fold
from cockpit.formats.output_paths import OutputFile, job_outputs
from cockpit.formats.scontrol_show import JobDetail
from cockpit.formats.sweep import MAX_LINE
from cockpit.gpu_models import Value, known
from cockpit.hosts.base import Host, LineStream, NotAskedError
from cockpit.models import Fault, FaultError, FaultKind, Freshness, Health
from cockpit.outputs import find_job, output_places
from cockpit.probe.bundle import sweep_argv, sweep_stdin
from cockpit.sources.base import unexpected
from cockpit.sources.output_file import Where
from cockpit.sources.remote_file import Piece, read_piece

DEADLINE_S = 10.0
SLACK_S = 0.8  # before the deadline: then what has come is handed over
AT_ONCE = 96  # nodes asked at the same time
TELL_EVERY_S = 0.25
LOG_BYTES = 256 * 1024
GROWTH_S = 2.0
_LEAST_LOOK_S = 3.0
_MOST_LINES = 5000

Changed = Callable[[Gathered], object]


class Gatherer:
    """One gathering. run() blocks until everything has come or the time is up; stop() ends it sooner.

    `packed_spy` goes to nodes without a py-spy and is gone with the end; `trigger` has the flight recorders write.
    """

    def __init__(
        self,
        cluster: Cluster,
        job: str,
        *,
        deadline_s: float = DEADLINE_S,
        changed: Changed | None = None,
        records: bool = True,
        packed_spy: bytes = b"",
        trigger: bool = False,
    ) -> None:
        self._cluster, self._job, self._deadline_s, self._changed = cluster, job, deadline_s, changed
        self._records, self._packed_spy, self._trigger = records, packed_spy, trigger
        self._until = 0.0
        self._lock = threading.Condition()
        self._pending = 0
        self._unasked: set[str] = set()
        self._streams: set[LineStream] = set()
        self._stopped = False
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        self._now = Gathered(job, cluster.config.name)

    def run(self) -> Gathered:
        """Gather; raises ConfigError and FaultError only when Slurm cannot say which job it is."""
        began = time.monotonic()
        self._until = began + self._deadline_s - SLACK_S
        self._now = replace(self._now, taken_at=self._cluster.clock.now())
        detail, raw = find_job(self._cluster, self._job)
        self._update(lambda now: replace(now, job_text=raw, head_ahead_s=self._cluster.head_now() - now.taken_at))
        if not self._stopped:
            self._start_all(detail)
        self._wait()
        self._close_streams()
        with self._lock:
            self._pending = 0
            whole = all(not node.fault for node in self._now.nodes) and not self._stopped
            self._now = replace(
                self._now, whole=whole, took_s=time.monotonic() - began, gpus=self._gpus(), efa=self._efa()
            )
            self._note_silent()
        return self._now

    @property
    def stopped(self) -> bool:
        """Whether somebody has ended it before its time."""
        return self._stopped

    def stop(self) -> None:
        """End now; run() returns what has come. From any thread."""
        with self._lock:
            self._stopped = True
            self._lock.notify_all()
        self._close_streams()

    # Threads.

    def _start_all(self, detail: JobDetail) -> None:
        nodes = self._nodes_of(detail)
        self._update(lambda now: replace(now, nodes=nodes))
        self._start("steps", lambda: self._steps(detail))
        outputs = job_outputs(detail)
        places = output_places(self._cluster, outputs)
        if not outputs.files:
            self._lack("its output", outputs.why)
        for file in outputs.files:
            self._start(f"output {file.path}", lambda file=file: self._log(file, places))  # type: ignore[misc]
        if detail.get("JobState").split(" ")[0] in ("RUNNING", "COMPLETING", "SUSPENDED"):
            for node in nodes:
                self._start(node.name, lambda node=node: self._node(node, detail.job_id))  # type: ignore[misc]

    def _start(self, what: str, work: Callable[[], None]) -> None:
        def body() -> None:
            try:
                work()
            except FaultError as error:
                self._lack(what, error.fault.line())
            except Exception as error:  # one piece's nonsense must not end the gathering
                self._lack(what, unexpected(what, error).line())
            finally:
                with self._lock:
                    self._pending -= 1
                    self._lock.notify_all()

        with self._lock:
            self._pending += 1
        threading.Thread(target=body, name=f"gather-{what}", daemon=True).start()

    def _wait(self) -> None:
        next_at = 0.0
        while True:
            with self._lock:
                over = self._pending <= 0 or self._stopped or time.monotonic() >= self._until
                if not over:
                    self._lock.wait(min(TELL_EVERY_S, max(0.01, self._until - time.monotonic())))
                now = self._now
            if over:
                return
            began = time.monotonic()
            if self._changed is not None and began >= next_at:
                self._changed(replace(now, gpus=self._gpus(), efa=self._efa()))
                # Whoever is told may diagnose at once: with many nodes that takes time of its own.
                next_at = time.monotonic() + max(TELL_EVERY_S, 3 * (time.monotonic() - began))

    def _update(self, change: Callable[[Gathered], Gathered]) -> None:
        with self._lock:
            self._now = change(self._now)

    def _lack(self, what: str, why: str) -> None:
        self._update(lambda now: replace(now, missing=(*now.missing, (what, why))))

    def _note_silent(self) -> None:
        """Nodes of which nothing has come; called with the lock held."""
        silent = [node for node in self._now.nodes if not node.lines and not node.fault and node.asked_at is not None]
        for node in silent:
            late = replace(node, fault=f"no answer within {self._deadline_s:g} s")
            self._now = replace(self._now.with_node(late), whole=False)
        if self._unasked and not self._stopped:
            why = "it was not their turn to be connected to before the time was up; look again, or watch them before"
            missing = (*self._now.missing, (f"nodes {fold(self._unasked)}", why))
            self._now = replace(self._now, whole=False, missing=missing)

    # Slurm's side.

    def _nodes_of(self, detail: JobDetail) -> tuple[GatheredNode, ...]:
        from cockpit.diagnosis.read import job_facts

        known_nodes = {node.name: node for node in self._cluster.view.nodes or ()}
        found = []
        for name in job_facts(detail, self._job).nodes:
            node = known_nodes.get(name)
            found.append(GatheredNode(name, state=node.word if node else "", reason=node.reason if node else ""))
        return tuple(found)

    def _steps(self, detail: JobDetail) -> None:
        raw = self._cluster.slurm.read("scontrol", ["show", "step", str(detail.job_id)], "reading the job's steps")
        self._update(lambda now: replace(now, step_text=raw))

    # Nodes.

    def _node(self, node: GatheredNode, job_id: int) -> None:
        with self._slots:
            left_s = self._until - time.monotonic()
            if self._stopped or left_s < 0.5:
                self._unasked.add(node.name)
                return
            self._update(lambda now: now.with_node(replace(node, asked_at=self._cluster.clock.now())))
            try:
                self._read(self._cluster.node_host(node.name), node.name, job_id)
            except NotAskedError:
                self._unasked.add(node.name)
                self._update(lambda now: now.with_node(node))
            except FaultError as error:
                self._fail(node.name, error.fault)
            finally:
                self._cluster.let_go(node.name)

    def _read(self, host: Host, name: str, job_id: int) -> None:
        left_s = max(_LEAST_LOOK_S, self._until - time.monotonic() - 0.5)
        directory = self._cluster.slurm.facts().slurm_dir
        options: dict[str, str | float] = {"deadline": left_s, "records": "1" if self._records else "0"}
        if self._trigger:
            options["trigger"] = "1"
        if directory:
            options["scontrol"] = f"{directory}/scontrol"
        # Dialling counts into the clock's error; a command that is asked on a live connection is dated anew.
        stream = host.stream(
            sweep_argv(job_id, **options),
            open_deadline_s=left_s,
            stdin=sweep_stdin(self._packed_spy),
            max_line=MAX_LINE,
        )
        with self._lock:
            self._streams.add(stream)
            stopped = self._stopped
            self._now = self._now.with_node(replace(self._node_now(name), asked_at=self._cluster.clock.now()))
        try:
            if not stopped:
                self._take_lines(stream, name)
        finally:
            with self._lock:
                self._streams.discard(stream)
            with suppress(Exception):
                stream.close()

    def _take_lines(self, stream: LineStream, name: str) -> None:
        for line in stream:
            with self._lock:
                node = self._node_now(name)
                if len(node.lines) >= _MOST_LINES:
                    return
                at = node.answered_at if node.answered_at is not None else self._cluster.clock.now()
                self._now = self._now.with_node(replace(node, lines=(*node.lines, line), answered_at=at))
            if line.startswith((b'{"k":"e"', b'{"k":"x"')):
                return
        raise FaultError(Fault(FaultKind.FAILED, f"looking at {name}", "it ended before it had told everything"))

    def _node_now(self, name: str) -> GatheredNode:
        return next(node for node in self._now.nodes if node.name == name)

    def _fail(self, name: str, fault: Fault) -> None:
        def failed(now: Gathered) -> Gathered:
            node = next(each for each in now.nodes if each.name == name)
            return now.with_node(replace(node, fault=f"{fault.what}: {fault.why}", next_step=fault.next_step))

        if not self._stopped and time.monotonic() < self._until:
            self._update(failed)

    def _close_streams(self) -> None:
        with self._lock:
            streams, self._streams = list(self._streams), set()
        for stream in streams:
            with suppress(Exception):
                stream.close()

    # Output.

    def _log(self, file: OutputFile, places: list[Where]) -> None:
        why = "not there: looked on " + " and ".join(place.name for place in places)
        for place in places:
            host = place.host()
            for path in (file.path, *file.others):
                piece = read_piece(host, path, None, LOG_BYTES)
                if piece.kind == "none":
                    continue
                if piece.kind != "file":
                    why = f"{path} on {place.name}: {piece.kind}"
                    continue
                self._keep_log(_log_of(file, path, place.name, piece), host, path, piece)
                return
        self._lack(f"output {file.path}", why)

    def _keep_log(self, log: GatheredLog, host: Host, path: str, piece: Piece) -> None:
        self._update(lambda now: replace(now, logs=(*now.logs, log)))
        wait_s = min(GROWTH_S, self._until - time.monotonic() - 1.0)
        if wait_s <= 0.5:
            return
        with self._lock:
            self._lock.wait_for(lambda: self._stopped, wait_s)
        later = read_piece(host, path, piece.size, LOG_BYTES)
        grown = replace(
            log,
            grown=later.kind == "file" and (later.size, later.id) != (piece.size, piece.id),
            data=log.data + later.data,
            size=later.size,
            age_s=float(max(0, later.now - later.mtime)),
        )
        self._update(lambda now: replace(now, logs=tuple(grown if each == log else each for each in now.logs)))

    # GPUs: what streams already.

    def _gpus(self) -> tuple[GatheredGpu, ...]:
        names = {node.name for node in self._now.nodes}
        steady = self._cluster.clock.steady()
        job_ids = {self._job_id()}
        found = []
        for row in self._cluster.view.gpu_rows:
            own = row.job is None or row.job.job_id in job_ids
            if row.node in names and own and row.allocated is not False:
                found.append(_gpu(row, self._usual_power(row), live=gpu_freshness(row, steady) is Freshness.LIVE))
        return tuple(found)

    def _efa(self) -> tuple[GatheredEfa, ...]:
        """Since the job began, as far as its nodes were watched then."""
        from cockpit.diagnosis.read import job_facts

        detail = self._detail()
        began = job_facts(detail, self._job).started_at if detail is not None else None
        changes = self._cluster.streams.efa
        grown = [changes.since(node.name, began or 0.0) for node in self._now.nodes]
        return tuple(GatheredEfa(each.node, each.since, tuple(each.grown.items())) for each in grown if each)

    def _detail(self) -> JobDetail | None:
        from cockpit.formats.scontrol_show import parse_job_details

        details = parse_job_details(self._now.job_text)
        return details[0] if details else None

    def _job_id(self) -> int:
        detail = self._detail()
        return detail.job_id if detail is not None else 0

    def _usual_power(self, row: GpuRow) -> float | None:
        if row.sample is None:
            return None
        series = self._cluster.streams.history.series(row.node, row.sample.gpu.key, "power_w")
        values = [value for _, value in series if value is not None]
        return median(values) if len(values) >= 10 else None


def _log_of(file: OutputFile, path: str, where: str, piece: Piece) -> GatheredLog:
    data = piece.data
    if piece.start > 0:  # not half a line
        data = data[data.find(b"\n") + 1 :]
    age_s = float(max(0, piece.now - piece.mtime))
    return GatheredLog(path, where, file.stream, data, piece.size, age_s, piece.start == 0)


def _gpu(row: GpuRow, usual_power_w: float | None, *, live: bool) -> GatheredGpu:
    sample = row.sample
    if sample is None:
        return GatheredGpu(row.node, row.slot)
    return GatheredGpu(
        node=row.node,
        slot=row.slot,
        util_pct=known(sample.util_pct),
        mem_util_pct=known(sample.mem_util_pct),
        mem_used_mib=known(sample.mem_used_mib),
        power_w=known(sample.power_w),
        power_limit_w=known(sample.power_limit_w),
        usual_power_w=usual_power_w,
        sm_clock_mhz=known(sample.sm_clock_mhz),
        sm_clock_max_mhz=known(sample.gpu.sm_clock_max_mhz),
        temp_c=known(sample.temp_c),
        lost=sample.lost.why or sample.lost.kind.value if sample.lost else "",
        throttle=sample.throttle,
        trouble=tuple(each.title for each in row.findings if each.health is Health.CRITICAL and not each.lasting),
        pids=tuple(process.pid for process in row.processes),
        ranks=tuple(int(rank) for process in row.processes if (rank := _rank(process.rank)) is not None),
        live=live,
    )


def _rank(value: Value) -> float | None:
    return known(value)
