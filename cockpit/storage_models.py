"""FSx file systems as AWS tells them, and quotas as Lustre does. Frozen; missing values are None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cockpit.aws_models import UNREAD, Part


@dataclass(frozen=True, slots=True)
class FileSystem:
    """One FSx file system, as it is set up."""

    id: str
    type: str = ""  # LUSTRE, ONTAP, OPENZFS, WINDOWS
    lifecycle: str = ""  # AVAILABLE, CREATING, FAILED, DELETING, MISCONFIGURED, UPDATING, MISCONFIGURED_UNAVAILABLE
    why: str = ""  # AWS's own words when it failed
    capacity_gib: int | None = None
    deployment: str = ""
    mb_s_per_tib: int | None = None
    mount_name: str = ""
    dns: str = ""
    compression: str = ""
    metadata_iops: int | None = None


@dataclass(frozen=True, slots=True)
class FileSystemUse:
    """What CloudWatch measured in the newest full minute; None where it has no such metric for this file system."""

    at: float | None = None
    free_bytes: float | None = None
    fullest_target_free_bytes: float | None = None  # the object storage target with the least room
    targets: int | None = None
    read_bytes_s: float | None = None
    write_bytes_s: float | None = None
    read_ops_s: float | None = None
    write_ops_s: float | None = None
    metadata_ops_s: float | None = None
    clients: float | None = None
    offered: tuple[str, ...] = ()  # every metric that CloudWatch lists for it


@dataclass(frozen=True, slots=True)
class StorageReading:
    """Data of the source `storage`."""

    systems: Part[tuple[FileSystem, ...]] = UNREAD
    use: Mapping[str, Part[FileSystemUse]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Quota:
    """One line of `lfs quota`: KiB and files, with their soft and hard limits (None: no limit)."""

    path: str
    used_kib: int
    soft_kib: int | None
    hard_kib: int | None
    grace: str  # "" when the soft limit is kept
    files: int | None
    soft_files: int | None
    hard_files: int | None
    files_grace: str
    over: bool  # Lustre marks what is over a limit
    uncertain: bool = False  # some target did not answer, so that the true use is higher
