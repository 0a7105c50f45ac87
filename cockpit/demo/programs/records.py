"""Nodes, jobs and partitions as `scontrol show` prints them: lines that -o joins with blanks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cockpit.demo.jobs import USERS, SimJob
from cockpit.demo.machines import (
    CORES_PER_SOCKET,
    CPUS,
    CPUS_PER_GPU,
    GPU_TYPE,
    GPUS,
    MEM_MIB,
    SLURM_VERSION,
    SOCKETS,
    THREADS_PER_CORE,
    SimNode,
)
from cockpit.demo.programs import nodestate
from cockpit.demo.programs.jobfields import JobRow, error_path, gres_ask, output_path, work_dir
from cockpit.demo.programs.nodefields import cpu_load, free_mem
from cockpit.demo.programs.partitions import PartitionSetup
from cockpit.demo.programs.spelling import gres_used, memory, padded, ranges, stamp, tres
from cockpit.demo.sim import SimReservation
from cockpit.formats.hostlist import fold

_YEAR_S = 365 * 86400.0
_ONE_NODE_KEYS = "TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A"


def node_lines(node: SimNode, env: Mapping[str, str], detail: bool) -> list[str]:
    """One node. Arch, Version and OS are missing while it never registered, as on a real controller."""
    known = node.registered
    lines = [
        f"NodeName={node.name} {'Arch=x86_64 ' if known else ''}CoresPerSocket={CORES_PER_SOCKET} ",
        f"CPUAlloc={node.cpus_used} CPUEfctv={CPUS} CPUTot={CPUS} CPULoad={cpu_load(node)}",
        f"AvailableFeatures={node.features}",
        f"ActiveFeatures={node.features}",
        f"Gres=gpu:{GPU_TYPE}:{GPUS}",
    ]
    if detail:
        lines += ["GresDrain=N/A", f"GresUsed={gres_used(node)}"]
    version = f"Version={SLURM_VERSION}" if known else ""
    lines.append(f"NodeAddr={node.address} NodeHostName={node.name} {version}")
    if known:
        lines.append("OS=Linux 6.8.0-1029-aws #31-Ubuntu SMP Wed Apr 23 18:42:41 UTC 2025 ")
    lines += [
        f"RealMemory={MEM_MIB} AllocMem={node.mem_used_mib} FreeMem={free_mem(node)} Sockets={SOCKETS} Boards=1",
        f"State={nodestate.complete(node).upper()} ThreadsPerCore={THREADS_PER_CORE} {_ONE_NODE_KEYS}",
        f"Partitions={','.join(sorted(node.partitions))} ",
        f"BootTime={stamp(node.boot_at, env, 'None')} SlurmdStartTime={stamp(node.boot_at, env, 'None')}",
        f"LastBusyTime={stamp(node.busy_at, env, 'Unknown')} ResumeAfterTime=None",
        f"CfgTRES=cpu={CPUS},mem={memory(MEM_MIB)},billing={CPUS}",
        f"AllocTRES={_allocated(node)}",
        "CapWatts=n/a",
        "CurrentWatts=0 AveWatts=0",
        "ExtSensorsJoules=n/a ExtSensorsWatts=0 ExtSensorsTemp=n/a",
    ]
    if node.reason:
        lines.append(f"Reason={node.reason} [{node.reason_by}@{stamp(node.reason_at, env, 'Unknown')}]")
    return lines


def _allocated(node: SimNode) -> str:
    return f"cpu={node.cpus_used},mem={memory(node.mem_used_mib)}" if node.shares else ""


def partition_lines(setup: PartitionSetup, nodes: Sequence[SimNode], state: str = "UP") -> list[str]:
    """One partition with all of its nodes, powered down or not."""
    members = setup.members(nodes)
    count = len(members)
    return [
        f"PartitionName={setup.name}",
        "AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL",
        f"AllocNodes=ALL Default={'YES' if setup.default else 'NO'} QoS=N/A",
        "DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
        f"MaxNodes=UNLIMITED MaxTime={setup.max_time} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED "
        "MaxCPUsPerSocket=UNLIMITED",
        f"Nodes={fold(node.name for node in members)}",
        f"PriorityJobFactor=1 PriorityTier={setup.priority_tier} RootOnly=NO ReqResv=NO OverSubscribe=NO",
        "OverTimeLimit=NONE PreemptMode=OFF",
        f"State={state} TotalCPUs={count * CPUS} TotalNodes={count} SelectTypeParameters=NONE",
        "JobDefaults=(null)",
        "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
        f"TRES={tres(count * CPUS, count * MEM_MIB, count)}",
        "ResumeTimeout=GLOBAL SuspendTimeout=GLOBAL SuspendTime=GLOBAL PowerDownOnIdle=NO",
    ]


def reservation_lines(made: SimReservation, env: Mapping[str, str]) -> list[str]:
    """One reservation; Slurm makes a year of an infinite one."""
    ends = made.began_at + _YEAR_S
    flags = ",".join((*made.flags, "SPEC_NODES"))
    return [
        f"ReservationName={made.name} StartTime={stamp(made.began_at, env, '')} EndTime={stamp(ends, env, '')} "
        "Duration=365-00:00:00",
        f"Nodes={fold(made.nodes)} NodeCnt={len(made.nodes)} CoreCnt={len(made.nodes) * CPUS // THREADS_PER_CORE} "
        f"Features=(null) PartitionName=(null) Flags={flags}",
        f"TRES=cpu={len(made.nodes) * CPUS}",
        f"Users={','.join(made.users)} Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null)",
        "MaxStartDelay=(null)",
    ]


def job_lines(row: JobRow, detail: bool) -> list[str]:
    """One job record; blanks in the reason become underscores, and -d adds the GPU indexes per node."""
    job = row.job
    return [
        *_job_head(row, detail),
        *_job_times(row),
        *_job_place(job),
        *(_job_detail(job) if detail and job.gpus else ()),
        *_job_rest(job),
        "",
    ]


def _job_head(row: JobRow, detail: bool) -> Iterator[str]:
    job = row.job
    ids = f"JobId={job.job_id} "
    if job.array_job_id is not None:
        ids += f"ArrayJobId={job.array_job_id} ArrayTaskId={row.tasks} "
        ids += f"ArrayTaskThrottle={job.ask.throttle} " if job.ask.throttle else ""
    if job.het_job_id is not None:
        ids += f"HetJobId={job.het_job_id} HetJobOffset={job.het_offset} "
    yield f"{ids}JobName={job.ask.name}"
    if job.het_job_id is not None:
        yield f"HetJobIdSet={job.het_job_id}-{job.het_job_id + job.het_size - 1}"
    yield f"UserId={job.ask.user}({USERS[job.ask.user]}) GroupId=research(2000) MCS_label=N/A"
    yield f"Priority={job.priority} Nice={job.nice} Account=(null) QOS=(null)"
    reason = job.reason.replace(" ", "_")
    yield f"JobState={job.shown_state} Reason={reason} Dependency={job.dependency or '(null)'}"
    exit_code = {"FAILED": "1:0", "CANCELLED": "0:15", "TIMEOUT": "0:15"}.get(job.state, "0:0")
    yield f"Requeue=1 Restarts={job.restarts} BatchFlag=1 Reboot=0 ExitCode={exit_code}"
    if detail:
        yield "DerivedExitCode=0:0"


def _job_times(row: JobRow) -> Iterator[str]:
    job, env = row.job, row.env
    limit = "UNLIMITED" if job.ask.limit_s is None else padded(job.ask.limit_s)
    yield f"RunTime={padded(job.run_s(row.now))} TimeLimit={limit} TimeMin=N/A"
    eligible = stamp(job.eligible_at, env, "Unknown")
    yield f"SubmitTime={stamp(job.submitted_at, env, 'Unknown')} EligibleTime={eligible}"
    yield f"AccrueTime={eligible}"
    ends = stamp(job.ends_at, env, "Unknown")
    yield f"StartTime={stamp(job.started_at, env, 'Unknown')} EndTime={ends} Deadline=N/A"
    evaluated = job.evaluated_at if job.evaluated_at is not None else job.started_at
    yield (
        f"SuspendTime=None SecsPreSuspend=0 LastSchedEval={stamp(evaluated, env, 'Unknown')} "
        f"Scheduler={'Main' if job.state != 'PENDING' else 'Backfill:*'}"
    )


def _job_place(job: SimJob) -> Iterator[str]:
    yield f"Partition={job.ask.partition} AllocNode:Sid=demo-head:2378"
    yield f"ReqNodeList={job.ask.on or '(null)'} ExcNodeList=(null)"
    scheduled = f" SchedNodeList={fold(job.scheduled)}" if job.scheduled else ""
    yield f"NodeList={fold(job.hosts)}{scheduled}"
    if job.hosts:
        yield f"BatchHost={job.hosts[0]}"
    count = f"{job.ask.nodes}-{job.ask.nodes}" if job.state == "PENDING" else f"{job.ask.nodes}"
    tasks = job.ask.nodes * job.ask.gpus
    yield f"NumNodes={count} NumCPUs={job.cpus} NumTasks={tasks} CPUs/Task={CPUS_PER_GPU} ReqB:S:C:T=0:0:*:*"
    total = tres(job.cpus, job.mem_mib, job.ask.nodes)
    yield f"ReqTRES={total}"
    yield f"AllocTRES={'(null)' if job.state == 'PENDING' else total}"
    yield "Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*"


def _job_detail(job: SimJob) -> Iterator[str]:
    """JOB_GRES and one line for each group of nodes on which it holds the same indexes."""
    yield f"JOB_GRES=gpu:{GPU_TYPE}:{sum(len(gpus) for gpus in job.gpus.values())}"
    groups: dict[tuple[int, ...], list[str]] = {}
    for host, gpus in job.gpus.items():
        groups.setdefault(gpus, []).append(host)
    for gpus, hosts in groups.items():
        cpus = ranges(cpu for gpu in gpus for cpu in range(gpu * CPUS_PER_GPU, (gpu + 1) * CPUS_PER_GPU))
        mem = job.mem_mib // job.ask.nodes
        gres = f"gpu:{GPU_TYPE}:{len(gpus)}(IDX:{ranges(gpus)})"
        yield f"  Nodes={fold(hosts)} CPU_IDs={cpus} Mem={mem} GRES={gres}"


def _job_rest(job: SimJob) -> Iterator[str]:
    mem = memory(job.mem_mib // job.ask.nodes)
    yield f"MinCPUsNode={CPUS_PER_GPU * job.ask.gpus} MinMemoryNode={mem} MinTmpDiskNode=0"
    yield "Features=(null) DelayBoot=00:00:00"
    share = "NO" if job.ask.gpus == GPUS else "OK"
    yield f"OverSubscribe={share} Contiguous=0 Licenses=(null) Network=(null)"
    yield f"Command={work_dir(job)}/train.sbatch"
    yield f"WorkDir={work_dir(job)}"
    if job.ask.comment:
        yield f"Comment={job.ask.comment} "
    yield f"StdErr={error_path(job)}"
    yield "StdIn=/dev/null"
    yield f"StdOut={output_path(job)}"
    yield "Power="
    yield f"{'TresPerJob' if job.ask.whole else 'TresPerNode'}={gres_ask(job)}"
    yield f"TresPerTask=cpu:{CPUS_PER_GPU}"
