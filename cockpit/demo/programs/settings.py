"""`scontrol show config` of the demo: ParallelCluster's settings in Slurm 23.11's listing."""

from __future__ import annotations

from cockpit.demo import sim as simulation
from cockpit.demo.machines import SLURM_VERSION
from cockpit.demo.programs.call import Call
from cockpit.demo.programs.spelling import stamp
from cockpit.formats.hostlist import fold

# Keys whose value is the same on every demo cluster, in the order Slurm lists them.
_BEFORE_BOOT = """\
AccountingStorageBackupHost = (null)
AccountingStorageEnforce = none
AccountingStorageHost   = localhost
AccountingStorageExternalHost = (null)
AccountingStorageParameters = (null)
AccountingStoragePort   = 0
AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages
AccountingStorageType   = accounting_storage/none
AccountingStorageUser   = N/A
AccountingStoreFlags    = (null)
AuthAltTypes            = auth/jwt
AuthInfo                = (null)
AuthType                = auth/munge
BatchStartTimeout       = 10 sec
"""
_BEFORE_NEXT_ID = """\
CommunicationParameters = (null)
CompleteWait            = 0 sec
DebugFlags              = (null)
DefMemPerNode           = UNLIMITED
DependencyParameters    = (null)
DisableRootJobs         = No
EnforcePartLimits       = ALL
Epilog                  = (null)
EpilogMsgTime           = 2000 usec
FirstJobId              = 1
GresTypes               = gpu
HealthCheckInterval     = 0 sec
HealthCheckProgram      = (null)
InactiveLimit           = 0 sec
JobAcctGatherFrequency  = 30
JobAcctGatherType       = jobacct_gather/cgroup
JobCompType             = jobcomp/none
JobRequeue              = 1
KillWait                = 30 sec
LaunchParameters        = (null)
MaxArraySize            = 1001
MaxJobCount             = 10000
MaxJobId                = 67043328
MessageTimeout          = 60 sec
MinJobAge               = {min_job_age} sec
MpiDefault              = none
"""
_AFTER_NEXT_ID = """\
OverTimeLimit           = 0 min
PluginDir               = /opt/slurm/lib/slurm
PreemptMode             = OFF
PreemptType             = preempt/none
PriorityType            = priority/multifactor
PrivateData             = cloud
ProctrackType           = proctrack/cgroup
Prolog                  = (null)
RebootProgram           = /sbin/reboot
ResumeFailProgram       = (null)
ResumeProgram           = /opt/parallelcluster/scripts/slurm/slurm_resume
ResumeRate              = 0 nodes/min
ResumeTimeout           = {resume_timeout} sec
ReturnToService         = 1
SchedulerParameters     = (null)
SchedulerType           = sched/backfill
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CPU_MEMORY
SlurmUser               = slurm(401)
SlurmctldAddr           = (null)
SlurmctldDebug          = info
SlurmctldHost[0]        = {head}(127.0.0.1)
SlurmctldLogFile        = /var/log/slurmctld.log
SlurmctldPort           = 6820-6829
SlurmctldTimeout        = 300 sec
SlurmctldParameters     = idle_on_node_suspend,power_save_min_interval=30
SlurmdDebug             = info
SlurmdLogFile           = /var/log/slurmd.log
SlurmdPort              = 6818
SlurmdSpoolDir          = /var/spool/slurmd
SlurmdTimeout           = 180 sec
SlurmdUser              = root(0)
SLURM_CONF              = /opt/slurm/etc/slurm.conf
SLURM_VERSION           = {version}
StateSaveLocation       = /var/spool/slurm.state
SuspendExcNodes         = {static}
SuspendExcParts         = (null)
SuspendExcStates        = (null)
SuspendProgram          = /opt/parallelcluster/scripts/slurm/slurm_suspend
SuspendRate             = 0 nodes/min
SuspendTime             = {suspend_time} sec
SuspendTimeout          = {suspend_timeout} sec
TaskPlugin              = task/cgroup,task/affinity
TopologyPlugin          = topology/default
TreeWidth               = 30
UnkillableStepTimeout   = 180 sec
WaitTime                = 0 sec

Slurmctld(primary) at {head} is UP
"""


def show_config(call: Call) -> str:
    """The whole listing."""
    sim = call.sim
    return (
        f"Configuration data as of {stamp(sim.now, call.env, 'Unknown')}\n"
        + _BEFORE_BOOT
        + f"BOOT_TIME               = {stamp(sim.booted_at, call.env, 'Unknown')}\n"
        + f"ClusterName             = {simulation.CLUSTER}\n"
        + _BEFORE_NEXT_ID.format(min_job_age=int(simulation.MIN_JOB_AGE_S))
        + f"NEXT_JOB_ID             = {sim.last_id + 1}\n"
        + _AFTER_NEXT_ID.format(
            resume_timeout=int(simulation.RESUME_TIMEOUT_S),
            head=simulation.HEAD,
            version=SLURM_VERSION,
            static=fold(sim.kept_up) or "(null)",
            suspend_time=int(simulation.SUSPEND_TIME_S),
            suspend_timeout=int(simulation.SUSPEND_TIMEOUT_S),
        )
    )
