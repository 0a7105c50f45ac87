"""What happens after NVIDIA's diagnostics were submitted: wait for their job, read what it wrote, keep what it says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from actions.nccl import JobThere, jobs_named
from actions.nccl_live import REST_S, Live, job_ended
from actions.spec import Plan
from cockpit.checks.deep import parse_deep
from cockpit.checks.models import CheckRun, NodeResult, Result
from cockpit.formats.output_paths import JobOutputs, job_outputs
from cockpit.kept_lines import run_id
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.outputs import find_job, output_places

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

LOOK_S = 5.0
_MAX_BYTES = 16 * 2**20
_READ_S = 30.0


class LiveDeep(Live):
    """One diagnostic run. `found` is what each node's dcgmi said, once the job has ended."""

    def __init__(self, cluster: Cluster, plan: Plan, heard: Callable[[], None] = lambda: None) -> None:
        """`plan` is one of actions.checks.deep_action."""
        wish = next(wish for wish in plan.wishes if isinstance(wish, JobThere))
        super().__init__(cluster, wish.job_name, heard)
        self.nodes = wish.names
        self.found: Mapping[str, Result] = {}
        self.kept: CheckRun | None = None

    def follow(self) -> None:
        """Until its job has ended; what was stopped tells nothing about the nodes."""
        detail = find_job(self.cluster, str(self.job_id))[0]  # at once: Slurm forgets ended jobs after minutes
        outputs = job_outputs(detail)
        self._wait()
        if self.stopped.is_set():
            return
        threading.Event().wait(REST_S)  # a shared file system may show the end of the file later
        text = self._read(outputs).decode("utf-8", "replace")
        self.found = parse_deep(text, self.nodes)
        now = self.cluster.clock.now()
        took_s = self.cluster.clock.steady() - self.began_at
        nodes = tuple(NodeResult(node, now, took_s, (result,)) for node, result in self.found.items())
        self.kept = CheckRun(run_id(now), "deep", now, took_s, nodes)

    def _wait(self) -> None:
        nap = threading.Event()
        while True:
            jobs = jobs_named(self.cluster, self.name)
            if all(job_ended(job.state) for job in jobs):
                return
            state = "waiting in the queue" if jobs[-1].state == "PD" else "running"
            if state != self.state:
                self.state = state
                self.heard()
            nap.wait(LOOK_S)

    def _read(self, outputs: JobOutputs) -> bytes:
        """The job's output from the first machine that has it; raises FaultError."""
        last: Fault | None = None
        for file in outputs.files[:1]:
            for place in output_places(self.cluster, outputs):
                try:
                    done = place.host().run(["cat", "--", file.path], deadline_s=_READ_S, max_bytes=_MAX_BYTES)
                except FaultError as error:
                    last = error.fault
                    continue
                if done.rc == 0:
                    return done.stdout
        why = f"{outputs.files[0].path} is on neither the head nor the first node" if outputs.files else outputs.why
        raise FaultError(last or Fault(FaultKind.MISSING, f"the output of {self.name}", why))
