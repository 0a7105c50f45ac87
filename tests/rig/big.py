"""A large queue on a real slurmctld, for benches: every entry is a record of its own, as a job is."""

from __future__ import annotations

from tests.rig.files import USERS
from tests.rig.rig import Rig
from tests.rig.spec import HEAD, Spec

JOB_NODES = (64, 32, 32, 16, 16, 16, 8, 8, 8, 8, 4, 4, 2, 2, 1, 1)
ARRAY_TASKS = 500
NAMES = ("llama-70b-pretrain", "sft", "nccl-check", "eval-harness", "tokenize", "dpo-sweep", "ablation-lr")
# What keeps the waiting ones waiting; held ones cost the scheduler nothing, so most are.
WAITS: tuple[dict[str, str | bool], ...] = (
    {"hold": True},
    {"hold": True},
    {"hold": True},
    {"begin": "now+30days"},
    {"hold": True, "partition": "prio"},
)
# The columns of a full poll, as wide as they are, 0x1f between fields and 0x1e at the end.
# fmt: off
FIELDS = (
    "JobID", "ArrayJobID", "ArrayTaskID", "HetJobID", "HetJobOffset", "StateCompact", "State",
    "Partition", "UserName", "Account", "QOS", "NumNodes", "NumCPUs", "tres-alloc", "tres-per-node",
    "tres-per-job", "tres-per-task", "SubmitTime", "EligibleTime", "StartTime", "EndTime", "TimeLimit",
    "TimeUsed", "PriorityLong", "NodeList", "SchedNodes", "Dependency", "Reservation", "RestartCnt",
    "Requeue", "BatchHost", "Feature", "WorkDir", "StdOut", "Reason", "Comment", "admin_comment",
    "system_comment", "Name",
)
# fmt: on


def big_spec(nodes: int, jobs: int) -> Spec:
    """CLOUD nodes that are allocated and then stay in power-up: ResumeProgram does nothing, for ten hours."""
    return Spec(static=0, dynamic=nodes, booted=False, resume_timeout_s=36_000, max_job_count=2 * jobs + 1000)


def fill(rig: Rig, jobs: int, timeout_s: float = 120.0) -> None:
    """Bring the queue to `jobs` entries, three quarters of the nodes allocated, some drained or down."""
    started = _start_jobs(rig, len(rig.nodes) * 3 // 4, jobs)
    left, number = jobs - started, 0
    while left > 0:
        tasks = min(ARRAY_TASKS, left)
        _waiting_array(rig, number, tasks)
        left, number = left - tasks, number + 1
    rig.wait_for(lambda: _configuring(rig) == started, timeout_s, f"{started} jobs to be allocated")
    for index, name in enumerate(rig.nodes[-12:]):
        state = "drain" if index % 3 else "down"
        rig.slurm("scontrol", "update", f"nodename={name}", f"state={state}", "reason=Xid 79: GPU lost")


def squeue_fields() -> str:
    """The -O argument of a full poll."""
    return ",".join(f"{name}:0\x1f" for name in FIELDS[:-1]) + f",{FIELDS[-1]}:0\x1e"


def local_squeue(rig: Rig) -> tuple[list[str], dict[str, str]]:
    """Argv and environment of a full poll from outside the namespaces, for timing without ssh."""
    env = {"PATH": "/usr/bin:/bin", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C"}
    return ["squeue", "-h", "-a", "-O", squeue_fields()], env | dict(rig.local_env)


def _start_jobs(rig: Rig, nodes: int, most: int) -> int:
    started = 0
    while nodes > 0 and started < most:
        size = min(JOB_NODES[started % len(JOB_NODES)], nodes)
        name = f"{NAMES[started % len(NAMES)]}-{started:03d}"
        rig.submit("true", nodes=size, exclusive=True, gpus_per_node=8, uid=_uid(started), job_name=name)
        nodes, started = nodes - size, started + 1
    return started


def _waiting_array(rig: Rig, number: int, tasks: int) -> None:
    name = f"{NAMES[number % len(NAMES)]}-{number:03d}"
    options = WAITS[number % len(WAITS)]
    # The node count is what tells these from started ones when a hold is released in a bench.
    array = rig.submit(
        "true", array=f"0-{tasks - 1}", job_name=name, uid=_uid(number), nodes=2, gpus_per_node=8, **options
    )
    if tasks > 1:
        # A changed task leaves the array's common record; only then does it cost what a job costs.
        rig.slurm("scontrol", "update", f"jobid={array}_[1-{tasks - 1}]", f"name={name}-r")


def _uid(number: int) -> int:
    return list(USERS.values())[number % len(USERS)]


def _configuring(rig: Rig) -> int:
    return len(rig.inside(HEAD, "squeue", "-h", "-t", "CF,R", "-o", "%A").stdout.splitlines())
