from cockpit.formats.scontrol import (
    Controller,
    parse_config,
    parse_partitions,
    parse_ping,
    parse_reservations,
    version_of,
)
from cockpit.models import PartitionConfig

CONFIG = b"""\
Configuration data as of 2026-11-29T19:58:30
AccountingStorageHost   = localhost
AccountingStorageType   = accounting_storage/slurmdbd
AuthInfo                = (null)
ClusterName             = prod
MessageTimeout          = 60 sec
PrivateData             = cloud,jobs
ResumeTimeout           = 1800 sec
SLURM_CONF              = /opt/slurm/etc/slurm.conf
SLURM_VERSION           = 24.05.8
SlurmctldHost[0]        = head(10.0.0.5)
SlurmctldHost[1]        = spare(10.0.0.6)
SuspendTime             = 600 sec
SuspendTimeout          = 120 sec

Cgroup Support Configuration:
CgroupPlugin            = autodetect

Slurmctld(primary) at head is UP
"""
PARTITIONS = b"""\
PartitionName=gpu AllowGroups=ALL Default=YES Hidden=NO MaxTime=UNLIMITED \
Nodes=gpu-dy-p5-[1-8],gpu-st-p5-[1-8] State=UP TotalCPUs=3072 TotalNodes=16 \
JobDefaults=(null) TRES=cpu=3072,mem=31250G,node=16
PartitionName=old AllowGroups=ALL Default=NO Hidden=YES MaxTime=12:00:00 Nodes=(null) State=INACTIVE \
TotalNodes=0
"""


def test_ping() -> None:
    assert parse_ping(b"Slurmctld(primary) at head is UP\n") == (Controller("primary", "head", True),)
    assert parse_ping(
        b"Slurmctld(primary) at head is DOWN\n"
        b"*****************************************\n"
        b"** RESTORE SLURMCTLD DAEMON TO SERVICE **\n"
        b"Slurmctld(backup) at spare is UP\n"
    ) == (Controller("primary", "head", False), Controller("backup", "spare", True))
    assert parse_ping(b"Slurmctld(primary/backup) at a/b are UP/DOWN\n") == (
        Controller("primary", "a", True),
        Controller("backup", "b", False),
    )
    assert parse_ping(b"slurm_ping error\n") == ()


def test_config() -> None:
    site = parse_config(CONFIG)
    assert (site.version, site.cluster_name, site.controller) == ("24.05.8", "prod", "head")
    assert site.private_data == ("cloud", "jobs")
    assert (site.message_timeout_s, site.suspend_time_s) == (60, 600)
    assert (site.suspend_timeout_s, site.resume_timeout_s) == (120, 1800)
    assert site.accounting is True
    assert site.hides_powered_down is False


def test_config_without_accounting_and_power_saving() -> None:
    site = parse_config(
        b"AccountingStorageType = accounting_storage/none\nPrivateData = none\nSuspendTime = INFINITE\n"
    )
    assert (site.accounting, site.private_data, site.suspend_time_s) == (False, (), None)
    assert parse_config(b"AccountingStorageType = (null)\n").accounting is False


def test_powered_down_nodes_are_hidden_up_to_22_05_unless_private_data_names_cloud() -> None:
    old = b"SLURM_VERSION = 22.05.8\nSuspendTime = 600 sec\nPrivateData = "
    assert parse_config(old + b"none\n").hides_powered_down is True
    assert parse_config(old + b"cloud\n").hides_powered_down is False


def test_what_the_config_does_not_tell_stays_unknown() -> None:
    site = parse_config(b"")
    assert (site.version, site.accounting, site.message_timeout_s) == ("", None, None)


def test_partitions() -> None:
    assert parse_partitions(PARTITIONS) == (
        PartitionConfig("gpu", "UP", "gpu-dy-p5-[1-8],gpu-st-p5-[1-8]", 16, True, False, "UNLIMITED"),
        PartitionConfig("old", "INACTIVE", "", 0, False, True, "12:00:00", (("MaxTime", "12:00:00"),)),
    )
    assert parse_partitions(b"No partitions in the system\n") == ()


def test_numbers_of_any_length_do_not_stop_the_reading() -> None:
    huge = b"9" * 5000
    site = parse_config(b"ClusterName = prod\nSLURM_VERSION = " + huge + b".5\nMessageTimeout = " + huge + b" sec\n")
    assert (site.cluster_name, site.message_timeout_s) == ("prod", None)
    assert parse_partitions(b"PartitionName=a TotalNodes=" + huge)[0].total_nodes is None


def test_the_configuration_tells_slurm_user_and_nodes_that_stay_up() -> None:
    site = parse_config(b"SlurmUser               = slurm(401)\nSuspendExcNodes         = gpu-st-p5-[1-8]:4,x1\n")
    assert (site.slurm_user, site.kept_up) == ("slurm", "gpu-st-p5-[1-8]:4,x1")
    assert parse_config(b"SuspendExcNodes         = (null)\n").kept_up == ""


def test_reservations_as_22_05_prints_them() -> None:
    raw = (
        b"ReservationName=cockpit-gpu-st-p5-2 StartTime=2026-11-30T02:11:20 EndTime=2027-11-30T02:11:20 "
        b"Duration=365-00:00:00 Nodes=gpu-st-p5-2 NodeCnt=1 CoreCnt=192 Features=(null) PartitionName=(null) "
        b"Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=192 Users=root,ops Groups=(null) Accounts=(null) "
        b"Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n"
    )
    (found,) = parse_reservations(raw)
    assert (found.name, found.hostlist, found.users) == ("cockpit-gpu-st-p5-2", "gpu-st-p5-2", ("root", "ops"))
    assert found.active
    assert "MAINT" in found.flags
    assert parse_reservations(b"No reservations in the system\n") == ()


def test_versions() -> None:
    assert version_of("slurm-wlm 22.05.8") == (22, 5, 8)
    assert version_of("25.11.8-0pre1") == (25, 11, 8)
    assert version_of("?") == (0, 0, 0)
