"""`scontrol listpids` of the demo: the ranks that a node's jobs run on its GPUs."""

from __future__ import annotations

from cockpit.demo.gpu_state import node_ranks
from cockpit.demo.programs.call import Call
from cockpit.demo.programs.table import Answer, encode

_HEADER = "PID      JOBID    STEPID   LOCALID GLOBALID\n"


def listpids(call: Call, words: list[str]) -> Answer:
    """Every process of this node, or of one job; in words when the job has none here, as Slurm says it."""
    node = call.sim.nodes.get(call.host)
    if node is None:
        return Answer(1, encode(_HEADER), b"scontrol: error: stepd_available: Couldn't find nodename\n")
    job_id = words[0].partition(".")[0] if words else ""
    found = [rank for rank in node_ranks(call.sim, node) if not job_id or str(rank.job_id) == job_id]
    if job_id and not found:
        return Answer(1, encode(_HEADER), encode(f"JobId={job_id} does not exist on node (null).\n"))
    rows = [f"{rank.pid:<8} {rank.job_id:<8} {rank.step:<8} {rank.local:<7} {rank.rank or 0:<8}\n" for rank in found]
    return Answer(0, encode(_HEADER + "".join(rows)))
