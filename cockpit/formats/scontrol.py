"""scontrol's texts about the site: ping, configuration, partitions. Nothing in them is quoted."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cockpit.formats.gres import number
from cockpit.formats.times import config_seconds
from cockpit.formats.words import NO_VALUE, word
from cockpit.models import PartitionConfig, SlurmSite
from cockpit.text import printable

_PING = re.compile(r"^Slurmctld\(([^)]*)\) at (\S+) (?:is|are) (\S+)", re.MULTILINE)
_CONFIG = re.compile(r"^([A-Za-z][\w/:]*(?:\[\d+\])?)\s*=[ \t]*(.*)$", re.MULTILINE)
# In the order in which they are shown; what is unlimited or open to all is left out.
_LIMIT_KEYS = """
    MaxTime DefaultTime MinNodes MaxNodes MaxCPUsPerNode MaxMemPerNode QoS AllowAccounts DenyAccounts AllowQos DenyQos
    AllowGroups AllocNodes RootOnly ReqResv OverSubscribe ExclusiveUser PreemptMode PriorityTier PriorityJobFactor
    GraceTime
"""
_LIMITS = tuple(_LIMIT_KEYS.split())
_NO_LIMIT = frozenset({"ALL", "UNLIMITED", "NO", "0", "OFF", "INFINITE"})
_USUALLY_1 = frozenset({"MinNodes", "PriorityTier", "PriorityJobFactor"})
_PAIR = re.compile(r"(?:^|\s)([A-Z][A-Za-z]*)=(\S*)")


@dataclass(frozen=True, slots=True)
class Controller:
    """A slurmctld as `scontrol ping` sees it; `role` is primary, backup, backup1, ..."""

    role: str
    host: str
    up: bool


def parse_ping(raw: bytes) -> tuple[Controller, ...]:
    """The controllers of `scontrol ping`, which answers at once even when slurmctld is dead."""
    found: list[Controller] = []
    for roles, hosts, states in _PING.findall(raw.decode("utf-8", "replace")):
        # Slurm before 19.05 puts all controllers on one line: (primary/backup) at a/b are UP/DOWN.
        for role, host, state in zip(roles.split("/"), hosts.split("/"), states.split("/"), strict=False):
            found.append(Controller(printable(role), printable(host), state == "UP"))
    return tuple(found)


def parse_config(raw: bytes) -> SlurmSite:
    """`scontrol show config` as far as the cockpit needs it; what is not told stays None or empty."""
    values = {key: value.strip() for key, value in _CONFIG.findall(raw.decode("utf-8", "replace"))}
    private = _words(values.get("PrivateData", ""))
    storage = values.get("AccountingStorageType")
    version = _word(values.get("SLURM_VERSION", ""))
    suspend_time_s = config_seconds(values.get("SuspendTime", ""))
    controller = values.get("SlurmctldHost[0]") or values.get("SlurmctldHost") or values.get("ControlMachine", "")
    return SlurmSite(
        version=version,
        cluster_name=_word(values.get("ClusterName", "")),
        controller=_word(controller.partition("(")[0]),
        private_data=private,
        message_timeout_s=config_seconds(values.get("MessageTimeout", "")),
        suspend_time_s=suspend_time_s,
        suspend_timeout_s=config_seconds(values.get("SuspendTimeout", "")),
        resume_timeout_s=config_seconds(values.get("ResumeTimeout", "")),
        accounting=None if storage is None else storage.endswith("slurmdbd"),
        # Up to 22.05 sinfo leaves powered-down cloud nodes out unless PrivateData names cloud.
        slurm_user=_word(values.get("SlurmUser", "").partition("(")[0]),
        kept_up=_word(values.get("SuspendExcNodes", "")),
        hides_powered_down=suspend_time_s is not None and "cloud" not in private and _before_23_02(version),
    )


def parse_partitions(raw: bytes) -> tuple[PartitionConfig, ...]:
    """`scontrol -o show partition`, in its order; the node lists also name nodes that sinfo hides."""
    partitions = []
    for line in raw.decode("utf-8", "replace").splitlines():
        values = dict(_PAIR.findall(line))
        if "PartitionName" not in values:
            continue
        partitions.append(
            PartitionConfig(
                name=printable(values["PartitionName"]),
                state=printable(values.get("State", "")),
                hostlist=_word(values.get("Nodes", "")),
                total_nodes=number(values.get("TotalNodes", "")),
                default=values.get("Default") == "YES",
                hidden=values.get("Hidden") == "YES",
                max_time=printable(values.get("MaxTime", "")),
                limits=tuple((key, printable(value)) for key in _LIMITS if _limits(key, value := values.get(key, ""))),
            )
        )
    return tuple(partitions)


def _limits(key: str, value: str) -> bool:
    """Whether a queue's value keeps anything out: most say that everything is allowed."""
    return value not in NO_VALUE and value not in _NO_LIMIT and (value != "1" or key not in _USUALLY_1)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation as scontrol tells it; `active` while it holds its nodes."""

    name: str
    hostlist: str
    users: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    active: bool = False


def parse_reservations(raw: bytes) -> tuple[Reservation, ...]:
    """`scontrol -o show reservation`; () for `No reservations in the system`."""
    found = []
    for line in raw.decode("utf-8", "replace").splitlines():
        values = dict(_PAIR.findall(line))
        if "ReservationName" in values:
            found.append(
                Reservation(
                    printable(values["ReservationName"]),
                    _word(values.get("Nodes", "")),
                    _words(values.get("Users", "")),
                    _words(values.get("Flags", "")),
                    values.get("State") == "ACTIVE",
                )
            )
    return tuple(found)


def version_of(text: str) -> tuple[int, int, int]:
    """`23.02.7`, `slurm-wlm 22.05.8` or `25.11.8-0pre1` as numbers; zeros where there are none."""
    found = re.search(r"([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?", text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else (0, 0, 0)


def _word(text: str) -> str:
    return word(text, NO_VALUE)


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in _word(text).split(",") if part.strip())


def _before_23_02(version: str) -> bool:
    return (0, 0, 0) < version_of(version) < (23, 2, 0)
