"""Every job field that squeue can print, by its -O name and its -o letter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.demo.jobs import CODES, USERS, SimJob
from cockpit.demo.machines import CPUS_PER_GPU, GPU_TYPE, GPUS
from cockpit.demo.programs.spelling import array_tasks, duration, memory, stamp, tres
from cockpit.demo.programs.table import Field
from cockpit.formats.hostlist import fold


@dataclass(frozen=True, slots=True)
class JobRow:
    """One line of squeue; `task` is set when -r gives a waiting array task a line of its own."""

    job: SimJob
    now: float
    env: Mapping[str, str]
    task: int | None = None

    @property
    def tasks(self) -> str:
        """ArrayTaskID: `7`, `4-23%4`, or `N/A` for what is no array."""
        if self.task is not None:
            return str(self.task)
        if self.job.rest:
            return array_tasks(self.job.rest, self.job.ask.throttle, self.env)
        return "N/A" if self.job.task is None else str(self.job.task)

    @property
    def label(self) -> str:
        """JobArrayID: `123`, `123_7`, `123_[4-23%4]`, `123+1`."""
        job = self.job
        if job.array_job_id is not None:
            tasks = self.tasks
            return f"{job.array_job_id}_{tasks if tasks.isdigit() else f'[{tasks}]'}"
        return str(job.job_id) if job.het_job_id is None else f"{job.het_job_id}+{job.het_offset}"


def gres_ask(job: SimJob) -> str:
    """`gres/gpu:8`, or `gres/gpu:h100:8` where the type was asked for."""
    return f"gres/gpu:{f'{GPU_TYPE}:' if job.ask.typed else ''}{job.ask.gpus}"


def end_time(job: SimJob, env: Mapping[str, str]) -> str:
    """`NONE` for a run without limit, `N/A` for a job with no start in sight."""
    if job.started_at is None:
        return "N/A"
    return stamp(job.ends_at, env, "NONE")


def output_path(job: SimJob) -> str:
    """Where standard output goes; a waiting array names 4294967294 as its task, as Slurm does."""
    if job.array_job_id is None:
        return f"{work_dir(job)}/slurm-{job.job_id}.out"
    return f"{work_dir(job)}/slurm-{job.array_job_id}_{4294967294 if job.task is None else job.task}.out"


def error_path(job: SimJob) -> str:
    """Where standard error goes: to the same file, unless one of its own was asked for."""
    path = output_path(job)
    return path.removesuffix(".out") + ".err" if job.ask.own_errors else path


def work_dir(job: SimJob) -> str:
    return f"/fsx/{job.ask.user}/runs"


def limit(job: SimJob) -> str:
    return "UNLIMITED" if job.ask.limit_s is None else duration(job.ask.limit_s)


def _left(row: JobRow) -> str:
    if row.job.ask.limit_s is None:
        return "UNLIMITED"
    return duration(max(0.0, row.job.ask.limit_s - row.job.run_s(row.now)))


def _where(row: JobRow) -> str:
    """%R: the reason in brackets while a job waits or has failed, else its nodes."""
    if row.job.state in ("PENDING", "FAILED", "TIMEOUT"):
        return f"({row.job.reason})"
    return fold(row.job.hosts)


def _or(text: str, nothing: str = "(null)") -> str:
    return text or nothing


def _code(row: JobRow) -> str:
    return CODES[row.job.shown_state]


_FIELDS: dict[str, Field[JobRow]] = {
    "JobID": Field("JOBID", lambda row: str(row.job.job_id)),
    "JobArrayID": Field("JOBID", lambda row: row.label),
    "ArrayJobID": Field("ARRAY_JOB_ID", lambda row: str(row.job.array_job_id or row.job.job_id)),
    "ArrayTaskID": Field("ARRAY_TASK_ID", lambda row: row.tasks),
    "HetJobID": Field("HET_JOB_ID", lambda row: str(row.job.het_job_id or "N/A")),
    "HetJobOffset": Field("HET_JOB_OFFSET", lambda row: str(row.job.het_offset) if row.job.het_job_id else "N/A"),
    "HetJobIDSet": Field(
        "HET_JOB_ID_SET",
        lambda row: (
            f"{row.job.het_job_id}-{row.job.het_job_id + row.job.het_size - 1}" if row.job.het_job_id else "N/A"
        ),
    ),
    "StateCompact": Field("ST", _code),
    "State": Field("STATE", lambda row: row.job.shown_state),
    "Partition": Field("PARTITION", lambda row: row.job.ask.partition),
    "UserName": Field("USER", lambda row: row.job.ask.user),
    "UserID": Field("USER", lambda row: str(USERS[row.job.ask.user])),
    "GroupName": Field("GROUP", lambda row: "research"),
    "Account": Field("ACCOUNT", lambda row: "(null)"),
    "QOS": Field("QOS", lambda row: "(null)"),
    "NumNodes": Field("NODES", lambda row: str(row.job.ask.nodes)),
    "NumCPUs": Field("CPUS", lambda row: str(row.job.cpus)),
    "NumTasks": Field("TASKS", lambda row: str(row.job.ask.nodes * row.job.ask.gpus)),
    "cpus-per-task": Field("CPUS_PER_TASK", lambda row: str(CPUS_PER_GPU)),
    "tres-alloc": Field("TRES_ALLOC", lambda row: tres(row.job.cpus, row.job.mem_mib, row.job.ask.nodes)),
    "tres-per-node": Field("TRES_PER_NODE", lambda row: "N/A" if row.job.ask.whole else gres_ask(row.job)),
    "tres-per-job": Field("TRES_PER_JOB", lambda row: gres_ask(row.job) if row.job.ask.whole else "N/A"),
    "tres-per-socket": Field("TRES_PER_SOCKET", lambda row: "N/A"),
    "tres-per-task": Field("TRES_PER_TASK", lambda row: f"cpu:{CPUS_PER_GPU}"),
    "SubmitTime": Field("SUBMIT_TIME", lambda row: stamp(row.job.submitted_at, row.env, "N/A")),
    "EligibleTime": Field("ELIGIBLE_TIME", lambda row: stamp(row.job.eligible_at, row.env, "N/A")),
    "AccrueTime": Field("ACCRUE_TIME", lambda row: stamp(row.job.eligible_at, row.env, "N/A")),
    "StartTime": Field("START_TIME", lambda row: stamp(row.job.started_at, row.env, "N/A")),
    "EndTime": Field("END_TIME", lambda row: end_time(row.job, row.env)),
    "TimeLimit": Field("TIME_LIMIT", lambda row: limit(row.job), cut=False),
    "TimeLeft": Field("TIME_LEFT", _left, cut=False),
    "TimeUsed": Field("TIME", lambda row: duration(row.job.run_s(row.now)), cut=False),
    "PriorityLong": Field("PRIORITY", lambda row: str(row.job.priority)),
    "Priority": Field("PRIORITY", lambda row: f"{row.job.priority / 2**32:.14f}"),
    "Nice": Field("NICE", lambda row: str(row.job.nice)),
    "NodeList": Field("NODELIST", lambda row: fold(row.job.hosts)),
    "ReasonList": Field("NODELIST(REASON)", _where),
    "ReqNodes": Field("REQ_NODES", lambda row: row.job.ask.on),
    "ExcNodes": Field("EXC_NODES", lambda row: ""),
    "SchedNodes": Field("SCHEDNODES", lambda row: _or(fold(row.job.scheduled))),
    "Dependency": Field("DEPENDENCY", lambda row: _or(row.job.dependency)),
    "Reservation": Field("RESERVATION", lambda row: "(null)"),
    "RestartCnt": Field("RESTART_COUNT", lambda row: str(row.job.restarts)),
    "Requeue": Field("REQUEUE", lambda row: "1"),
    "BatchHost": Field("EXEC_HOST", lambda row: row.job.hosts[0] if row.job.hosts else "n/a"),
    "BatchFlag": Field("BATCH_FLAG", lambda row: "1"),
    "Feature": Field("FEATURES", lambda row: "(null)"),
    "Licenses": Field("LICENSES", lambda row: "(null)"),
    "OverSubscribe": Field("OVER_SUBSCRIBE", lambda row: "NO" if row.job.ask.gpus == GPUS else "OK"),
    "MinMemory": Field("MIN_MEMORY", lambda row: memory(row.job.mem_mib // row.job.ask.nodes)),
    "WorkDir": Field("WORK_DIR", lambda row: work_dir(row.job)),
    "Command": Field("COMMAND", lambda row: f"{work_dir(row.job)}/train.sbatch"),
    "StdOut": Field("STDOUT", lambda row: output_path(row.job)),
    "StdErr": Field("STDERR", lambda row: error_path(row.job)),
    "StdIn": Field("STDIN", lambda row: "/dev/null"),
    "exit_code": Field("EXIT_CODE", lambda row: "256" if row.job.state == "FAILED" else "0"),
    "Reason": Field("REASON", lambda row: row.job.reason),
    "Comment": Field("COMMENT", lambda row: _or(row.job.ask.comment)),
    "admin_comment": Field("ADMIN_COMMENT", lambda row: "(null)"),
    "system_comment": Field("SYSTEM_COMMENT", lambda row: "(null)"),
    "Name": Field("NAME", lambda row: row.job.ask.name),
}

LONG = {name.lower(): field for name, field in _FIELDS.items()}
_LETTERS = {
    "A": "JobID",
    "i": "JobArrayID",
    "F": "ArrayJobID",
    "K": "ArrayTaskID",
    "t": "StateCompact",
    "T": "State",
    "P": "Partition",
    "u": "UserName",
    "U": "UserID",
    "g": "GroupName",
    "a": "Account",
    "q": "QOS",
    "D": "NumNodes",
    "C": "NumCPUs",
    "b": "tres-per-node",
    "V": "SubmitTime",
    "S": "StartTime",
    "e": "EndTime",
    "l": "TimeLimit",
    "L": "TimeLeft",
    "M": "TimeUsed",
    "Q": "PriorityLong",
    "p": "Priority",
    "y": "Nice",
    "N": "NodeList",
    "R": "ReasonList",
    "n": "ReqNodes",
    "x": "ExcNodes",
    "Y": "SchedNodes",
    "E": "Dependency",
    "v": "Reservation",
    "B": "BatchHost",
    "f": "Feature",
    "h": "OverSubscribe",
    "m": "MinMemory",
    "Z": "WorkDir",
    "o": "Command",
    "r": "Reason",
    "k": "Comment",
    "j": "Name",
    "W": "Licenses",
}
SHORT = {letter: _FIELDS[name] for letter, name in _LETTERS.items()}
