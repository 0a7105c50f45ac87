"""Jobs that write nothing although they wrote in a rhythm before: one stat a minute, one look at the end of a log.

It is silent when unsure: a log without a rhythm says nothing, nor one whose end tells of a checkpoint or an evaluation.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cockpit.cluster import Cluster
from cockpit.diagnosis.progress import Progress, progress_of
from cockpit.fleet_state import Silence
from cockpit.formats.log_lines import shown_line
from cockpit.formats.output_paths import job_outputs
from cockpit.models import FaultError, Job
from cockpit.sources.remote_file import read_piece, stamps_of

EVERY_S = 60.0
LEAST_S = 300.0  # of silence; before that no log is read
MOST_JOBS = 12  # those with the most GPUs
NEW_A_LOOK = 4  # jobs of which Slurm is asked where they write: once each
_TAIL = 128 * 1024


@dataclass(frozen=True, slots=True)
class _Known:
    """What the end of a log told when it was last written at `stamp`."""

    stamp: int
    progress: Progress


class SilenceWatch:
    """Looks once a minute while the cluster is watched; what it finds goes to `cluster.silences`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._paths: dict[tuple[int, int | None], str] = {}
        self._known: dict[str, _Known] = {}

    def start(self) -> None:
        """On a daemon thread, until the cluster is stopped."""
        threading.Thread(target=self._run, name="silences", daemon=True).start()

    def _run(self) -> None:
        while not self._cluster.wait_stopped(EVERY_S):
            if not self._cluster.pace.paused:
                try:
                    self._cluster.silences = self.look()
                except Exception:  # nothing is known then, and nothing is said
                    self._cluster.silences = {}

    def look(self) -> Mapping[int, Silence]:
        """The jobs that are silent against their own rhythm, by id; waits for the head, {} when it does not answer."""
        jobs = self._candidates()
        self._learn(jobs)
        paths = {job.job_id: path for job in jobs if (path := self._paths.get((job.job_id, job.restarts)))}
        try:
            stamps = stamps_of(self._cluster.head, paths.values())
            now, steady = self._cluster.head_now(), self._cluster.clock.steady()
            found = {}
            for job_id, path in paths.items():
                age_s = now - stamps[path] if path in stamps else 0.0
                if age_s >= LEAST_S and (rhythm_s := self._broken(path, stamps[path], age_s)) is not None:
                    found[job_id] = Silence(age_s, rhythm_s, steady)
        except FaultError:
            return {}
        self._known = {path: known for path, known in self._known.items() if path in stamps}
        return found

    def _candidates(self) -> list[Job]:
        queue, now = self._cluster.view.queue, self._cluster.head_now()
        running = [
            job
            for job in (queue.jobs if queue else ())
            if job.state == "R" and (job.gpus or 0) >= 2 and now - (job.started_at or now) > LEAST_S
        ]
        jobs = sorted(running, key=lambda job: -(job.gpus or 0))[:MOST_JOBS]
        keys = {(job.job_id, job.restarts) for job in jobs}
        self._paths = {key: path for key, path in self._paths.items() if key in keys}
        return jobs

    def _learn(self, jobs: Iterable[Job]) -> None:
        """Where jobs write: Slurm is asked once for each, a few a look; "" where it does not tell."""
        new = [job for job in jobs if (job.job_id, job.restarts) not in self._paths]
        for job in new[:NEW_A_LOOK]:
            try:
                files = job_outputs(self._cluster.job_detail(job)).files
            except FaultError:
                return
            self._paths[job.job_id, job.restarts] = files[0].path if files else ""

    def _broken(self, path: str, stamp: int, age_s: float) -> float | None:
        """The rhythm that the silence is longer than; None when it is not, or there is none. Read once a silence."""
        known = self._known.get(path)
        if known is None or known.stamp != stamp:
            piece = read_piece(self._cluster.head, path, None, _TAIL)
            lines = [shown_line(raw) for raw in piece.data.rstrip(b"\n").split(b"\n")]
            known = self._known[path] = _Known(stamp, progress_of(lines) if piece.kind == "file" else Progress())
        sure = known.progress.stale(age_s) and not known.progress.phase
        return known.progress.rhythm_s if sure else None


def watch_silences(cluster: Cluster) -> None:
    """Begin to look."""
    SilenceWatch(cluster).start()
