"""Which processes on this node are a job's, and which of them are its ranks. Nothing here can disturb them.

Runs in a child: the environment of a process that hangs in a driver can be locked, and then hangs its reader.
"""

import os
import re

from cockpit.probe.agent.node import stat_fields
from cockpit.probe.agent.pids import cgroup_job
from cockpit.probe.agent.values import decode, read_file, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    Process = dict[str, object]

# Only these names leave the node: an environment holds secrets.
NAMES = (
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT",
    "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS",
    "SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST",
    "SLURM_DISTRIBUTION", "SLURM_RESTART_COUNT", "CUDA_VISIBLE_DEVICES", "NCCL_RAS_ADDR", "NCCL_RAS_ENABLE",
    "NCCL_NET", "NCCL_DEBUG", "FI_PROVIDER", "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE",
    "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "XDG_CACHE_HOME", "HOME",
)  # fmt: skip
_MAX_ENVIRON = 2**20
_MAX_PROCESSES = 4000
# What stands between a launcher and the program itself.
_WRAPPERS = ("sh", "bash", "dash", "zsh", "ksh", "env", "numactl", "timeout", "taskset", "nice", "time", "tini", "nsys")
_LAUNCHERS = ("srun", "slurmstepd", "sshd", "sudo")
_SCRIPT = re.compile(r"(?:.*/)?([\w.-]+\.(?:py|sh))$")


def scan(proc: str, job: int, listed: "list[int]", with_environ: bool) -> "list[Process]":
    """Every process of the job: those Slurm lists, those of its cgroup or with its id, and all their children."""
    found: dict[int, "Process"] = {}  # noqa: UP037 - 3.6 would evaluate it
    others: dict[int, int] = {}
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        pid = int(name)
        about = _about(proc, pid, job, pid in listed, with_environ)
        if about is None:
            continue
        if about["mine"]:
            found[pid] = about
        else:
            others[pid] = int(str(about["ppid"]))
    for pid in sorted(others):
        if _descends(pid, others, found):
            about = _about(proc, pid, job, True, with_environ)
            if about is not None:
                found[pid] = about
    own = os.getpid()
    kept = [found[pid] for pid in sorted(found) if pid != own and found[pid]["comm"] not in _LAUNCHERS]
    return mark_ranks(kept[:_MAX_PROCESSES])


def _descends(pid: int, others: "dict[int, int]", found: "dict[int, Process]") -> bool:
    for _ in range(64):
        parent = others.get(pid)
        if parent is None:
            return False
        if parent in found:
            return found[parent]["comm"] not in _LAUNCHERS
        pid = parent
    return False


def _about(proc: str, pid: int, job: int, listed: bool, with_environ: bool) -> "Process | None":
    base = f"{proc}/{pid}"
    stat = read_file(f"{base}/stat", 1024)
    comm, state, start, parent = stat_fields(stat)
    if not start:
        return None
    words = decode(stat or b"").rpartition(")")[2].split()
    process: "Process" = {"pid": pid, "ppid": int(parent), "comm": comm, "s": state, "start": int(start)}  # noqa: UP037
    in_group, step, task = cgroup_job(read_text(f"{base}/cgroup"))
    kernel = words[6:7] and int(words[6]) & 0x200000  # PF_KTHREAD
    process["mine"] = listed or in_group == job
    if kernel or (in_group not in (None, job) and not listed):
        return process
    environ = environ_of(base) if with_environ else "not read"
    if isinstance(environ, dict):
        process["mine"] = process["mine"] or environ.get("SLURM_JOB_ID") == str(job)
    if process["mine"]:
        process["env"] = environ
        process["step"], process["task"] = step, task
        process["cpu"] = int(words[11]) + int(words[12])
        process["threads"] = int(words[17])
        # Whatever holds the lock of an environment holds that of the arguments, too.
        process["prog"] = _program(base) if with_environ else ""
    return process


def environ_of(base: str) -> "object":
    """The values of NAMES as a dict, or a word that says why not."""
    try:
        with open(f"{base}/environ", "rb", 0) as file:
            raw = b"".join(iter(lambda: file.read(65536), b""))[:_MAX_ENVIRON]
    except PermissionError:
        return "denied"
    except OSError:
        return "gone"
    found = {}
    for entry in raw.split(b"\0"):
        name, _, value = entry.partition(b"=")
        text = decode(name)
        if text in NAMES:
            found[text] = decode(value)[:2000]
    return found


def _program(base: str) -> str:
    """The script or program that runs, without its arguments, which may hold secrets."""
    words = (read_file(f"{base}/cmdline", 8192) or b"").split(b"\0")
    for word in words[1:6]:
        script = _SCRIPT.match(decode(word))
        if script is not None:
            return script.group(1)
    if decode(words[0]).rpartition("/")[2].startswith("python") and b"-m" in words[1:-1]:
        return decode(words[words.index(b"-m") + 1])[:64]
    return ""


def mark_ranks(processes: "list[Process]") -> "list[Process]":
    """Set `rank`, `local` and `lead` (1: the process to look at) where a process is one of a rank.

    With RANK in any environment of a step, only RANK counts there: torchrun's own process has Slurm's number of
    its node. Children inherit RANK, so the rank is the process whose parent does not have it.
    """
    by_pid = {process["pid"]: process for process in processes}
    launched = {str(process.get("step")) for process in processes if _number(process, "RANK") is not None}
    for process in processes:
        rank = _number(process, "RANK")
        local = _number(process, "LOCAL_RANK")
        if rank is None and str(process.get("step")) not in launched and _is_task(process):
            rank, local = _number(process, "SLURM_PROCID"), _number(process, "SLURM_LOCALID")
        process["rank"], process["local"] = rank, local
    for process in processes:
        parent = by_pid.get(process["ppid"])
        if process["rank"] is not None and (parent is None or parent["rank"] != process["rank"]):
            _lead(process, processes)["lead"] = 1
    return processes


def _is_task(process: "Process") -> bool:
    """Whether srun started it: the batch script itself has number 0 and is no rank."""
    step = _env(process, "SLURM_STEP_ID")
    return step.isdigit() and len(step) < 10 and str(process.get("step")) not in ("batch", "extern", "interactive")


def _lead(process: "Process", processes: "list[Process]") -> "Process":
    """Past the wrappers: the only child of a shell that started the program."""
    for _ in range(8):
        children = [each for each in processes if each["ppid"] == process["pid"] and each["s"] != "Z"]
        wraps = str(process["comm"]) in _WRAPPERS
        if not wraps or len(children) != 1 or children[0]["rank"] not in (process["rank"], None):
            return process
        children[0]["rank"], children[0]["local"] = process["rank"], process["local"]
        process = children[0]
    return process


def _env(process: "Process", name: str) -> str:
    environ = process.get("env")
    return str(environ.get(name, "")) if isinstance(environ, dict) else ""


def _number(process: "Process", name: str) -> "int | None":
    text = _env(process, name)
    return int(text) if text.isdigit() and len(text) < 10 else None
