"""FSx's and CloudWatch's answers to models, and the questions put to CloudWatch. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cockpit.formats.aws_ec2 import epoch, text
from cockpit.storage_models import FileSystem, FileSystemUse

Answer = Mapping[str, Any]

NAMESPACE = "AWS/FSx"
PERIOD_S = 60
FS_ID = re.compile(r"fs-[0-9a-f]{8,17}")

# name in the answer -> metric, statistic, whether it is a sum over the period of what should be a rate
_QUERIES = {
    "free": ("FreeDataStorageCapacity", "Sum", False),
    "fullest": ("FreeDataStorageCapacity", "Minimum", False),
    "targets": ("FreeDataStorageCapacity", "SampleCount", False),
    "read": ("DataReadBytes", "Sum", True),
    "written": ("DataWriteBytes", "Sum", True),
    "reads": ("DataReadOperations", "Sum", True),
    "writes": ("DataWriteOperations", "Sum", True),
    "metadata": ("MetadataOperations", "Sum", True),
    "clients": ("ClientConnections", "Maximum", False),
}


def parse_file_systems(pages: Iterable[Answer]) -> tuple[FileSystem, ...]:
    """Every file system of DescribeFileSystems' pages."""
    return tuple(_system(entry) for page in pages for entry in page.get("FileSystems") or ())


def _system(entry: Answer) -> FileSystem:
    lustre = entry.get("LustreConfiguration") or {}
    return FileSystem(
        id=text(entry.get("FileSystemId")),
        type=text(entry.get("FileSystemType")),
        lifecycle=text(entry.get("Lifecycle")),
        why=text((entry.get("FailureDetails") or {}).get("Message")),
        capacity_gib=entry.get("StorageCapacity"),
        deployment=text(lustre.get("DeploymentType")),
        mb_s_per_tib=lustre.get("PerUnitStorageThroughput"),
        mount_name=text(lustre.get("MountName")),
        dns=text(entry.get("DNSName")),
        compression=text(lustre.get("DataCompressionType")),
        metadata_iops=(lustre.get("MetadataConfiguration") or {}).get("Iops"),
    )


def parse_metric_names(pages: Iterable[Answer]) -> tuple[str, ...]:
    """The names of all metrics that ListMetrics tells of, each once."""
    return tuple(sorted({text(m.get("MetricName")) for page in pages for m in page.get("Metrics") or ()}))


def queries(fs: str, offered: Sequence[str]) -> list[dict[str, Any]]:
    """What to ask GetMetricData for: only what CloudWatch offers for this file system, since each is charged."""
    return [
        {
            "Id": name,
            "MetricStat": {
                "Metric": {
                    "Namespace": NAMESPACE,
                    "MetricName": metric,
                    "Dimensions": [{"Name": "FileSystemId", "Value": fs}],
                },
                "Period": PERIOD_S,
                "Stat": statistic,
            },
        }
        for name, (metric, statistic, _) in _QUERIES.items()
        if metric in offered
    ]


def parse_use(pages: Iterable[Answer], offered: Sequence[str]) -> FileSystemUse:
    """The newest value of each metric; a metric that has none yet is None."""
    newest: dict[str, tuple[float, float]] = {}
    for page in pages:
        for result in page.get("MetricDataResults") or ():
            points = zip(result.get("Timestamps") or (), result.get("Values") or (), strict=False)
            for stamp, value in points:
                at, name = epoch(stamp), str(result.get("Id"))
                if at is not None and at >= newest.get(name, (-1.0, 0.0))[0]:
                    newest[name] = at, float(value)
    values = {name: value / PERIOD_S if _QUERIES[name][2] else value
              for name, (_, value) in newest.items() if name in _QUERIES}  # fmt: skip
    return FileSystemUse(
        at=max((at for at, _ in newest.values()), default=None),
        free_bytes=values.get("free"),
        fullest_target_free_bytes=values.get("fullest"),
        targets=int(values["targets"]) if "targets" in values else None,
        read_bytes_s=values.get("read"),
        write_bytes_s=values.get("written"),
        read_ops_s=values.get("reads"),
        write_ops_s=values.get("writes"),
        metadata_ops_s=values.get("metadata"),
        clients=values.get("clients"),
        offered=tuple(offered),
    )
