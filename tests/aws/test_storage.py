"""Storage: FSx by CloudWatch, with what it really offers, and `lfs quota`."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from cockpit.aws_models import Part
from cockpit.clock import SYSTEM_CLOCK
from cockpit.formats.aws_storage import queries
from cockpit.formats.errors import FormatError
from cockpit.formats.lfs_quota import parse_lfs_quota
from cockpit.models import Health, Problem
from cockpit.sources.aws_client import AwsAccess, AwsCalls
from cockpit.sources.storage import StorageReads, ids_in
from cockpit.storage_models import FileSystem, FileSystemUse, StorageReading
from cockpit.storage_problems import of_storage
from tests.aws.answers import Answers
from tests.aws.moto_cluster import REGION
from tests.still import NOON, StillClock

FS = "fs-0123456789abcdef0"


def system(**more: Any) -> dict[str, Any]:
    lustre = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250, "MountName": "abcdefgh"}
    told: dict[str, Any] = {"FileSystemId": FS, "FileSystemType": "LUSTRE", "Lifecycle": "AVAILABLE"}
    return told | {"StorageCapacity": 1200, "LustreConfiguration": lustre} | more


def result(name: str, *values: float) -> dict[str, Any]:
    stamps = [datetime.fromtimestamp(NOON - 60 * n, timezone.utc) for n in range(1, len(values) + 1)]
    return {"Id": name, "Timestamps": stamps, "Values": list(values)}


def test_only_offered_metrics_are_asked_for_and_rates_are_by_the_second() -> None:
    answers = Answers()
    answers.add("fsx", "describe_file_systems", {"FileSystems": [system()]}, {"FileSystemIds": [FS]})
    names = ["FreeDataStorageCapacity", "DataReadBytes", "CPUUtilization"]
    dimensions = [{"Name": "FileSystemId", "Value": FS}]
    metrics = [{"Namespace": "AWS/FSx", "MetricName": name, "Dimensions": dimensions} for name in names]
    answers.add("cloudwatch", "list_metrics", {"Metrics": metrics}, {"Namespace": "AWS/FSx", "Dimensions": dimensions})
    data = [result("free", 6e11, 5e11), result("fullest", 1e11), result("targets", 4.0), result("read", 6e10, 1.0)]
    answers.add("cloudwatch", "get_metric_data", {"MetricDataResults": data})
    reading = StorageReads(answers.calls, lambda: [FS, "not-an-id"], StillClock()).read()
    (found,) = reading.systems.data or ()
    assert (found.capacity_gib, found.mb_s_per_tib, found.mount_name) == (1200, 250, "abcdefgh")
    use = reading.use[FS].data
    assert use is not None
    assert (use.free_bytes, use.fullest_target_free_bytes, use.targets) == (6e11, 1e11, 4)
    assert (use.read_bytes_s, use.write_bytes_s, use.clients) == (1e9, None, None)
    assert use.offered == ("CPUUtilization", "DataReadBytes", "FreeDataStorageCapacity")
    assert [query["Id"] for query in queries(FS, use.offered)] == ["free", "fullest", "targets", "read"]


def test_a_file_system_keeps_its_numbers_while_cloudwatch_refuses() -> None:
    answers = Answers()
    clock = StillClock()
    reads = StorageReads(answers.calls, lambda: [FS], clock)
    for _ in range(2):
        answers.add("fsx", "describe_file_systems", {"FileSystems": [system()]})
    answers.add("cloudwatch", "list_metrics", {"Metrics": [{"MetricName": "ClientConnections"}]})
    answers.add("cloudwatch", "get_metric_data", {"MetricDataResults": [result("clients", 7.0)]})
    first = reads.read().use[FS]
    clock.time += 60
    answers.refuse("cloudwatch", "get_metric_data", "AccessDenied")
    second = reads.read().use[FS]
    assert (second.data, second.read_at) == (first.data, NOON)
    assert second.fault is not None
    assert "cloudwatch:GetMetricData" in second.fault.why


def test_moto_answers_the_same_questions(moto_endpoint: str) -> None:
    calls = AwsCalls(AwsAccess(REGION, None, moto_endpoint, attempts=1))
    made = calls.call("fsx", "create_file_system", FileSystemType="LUSTRE", StorageCapacity=1200,
                      SubnetIds=["subnet-12345678"])["FileSystem"]["FileSystemId"]  # fmt: skip
    reading = StorageReads(calls, lambda: [made], SYSTEM_CLOCK).read()
    assert [(fs.id, fs.type) for fs in reading.systems.data or ()] == [(made, "LUSTRE")]
    use = reading.use[made].data
    assert use is not None
    assert (use.free_bytes, use.offered) == (None, ())  # nothing is measured there, so nothing is told


def test_file_systems_are_known_from_the_stack_and_from_mounts() -> None:
    sources = [f"{FS}.fsx.us-east-1.amazonaws.com@tcp:/abc", "10.0.0.1@tcp:/x", "/dev/nvme0n1p1"]
    assert ids_in(["fs-aaaaaaaaaaaaaaaaa"], sources) == ("fs-aaaaaaaaaaaaaaaaa", FS)


def problems(use: FileSystemUse, **more: Any) -> dict[str, Problem]:
    told = FileSystem(FS, "LUSTRE", more.pop("lifecycle", "AVAILABLE"), capacity_gib=1024, **more)
    reading = StorageReading(Part((told,), 1.0), {FS: Part(use, 1.0)})
    return {problem.key.rsplit(":", 1)[1]: problem for problem in of_storage(reading)}


def test_full_broken_and_lopsided_file_systems() -> None:
    tib = 2.0**40
    assert problems(FileSystemUse(free_bytes=0.5 * tib, fullest_target_free_bytes=0.1 * tib, targets=4)) == {}
    assert problems(FileSystemUse(free_bytes=0.02 * tib))["full"].health is Health.CRITICAL
    assert problems(FileSystemUse(free_bytes=0.08 * tib))["full"].health is Health.WARN
    lopsided = problems(FileSystemUse(free_bytes=0.5 * tib, fullest_target_free_bytes=0.005 * tib, targets=4))
    assert "one of its 4 storage targets has 2% free" in lopsided["target"].title
    assert problems(FileSystemUse(), lifecycle="FAILED", why="no")["life"].health is Health.CRITICAL
    assert list(of_storage(None)) == []


_COLUMNS = b"  kbytes   quota   limit   grace   files   quota   limit   grace\n"
HEAD = b"Disk quotas for usr bob (uid 1000):\n      Filesystem" + _COLUMNS


def test_a_quota_within_its_limits_and_one_over() -> None:
    plain = parse_lfs_quota(HEAD + b"      /fsx  123456  1000000 1100000       -    1234       0       0     -\n")
    assert (plain.path, plain.used_kib, plain.soft_kib, plain.hard_kib, plain.grace) == (
        "/fsx",
        123456,
        10**6,
        1100000,
        "",
    )
    assert (plain.files, plain.soft_files, plain.over, plain.uncertain) == (1234, None, False, False)
    over = parse_lfs_quota(HEAD + b"/a/very/long/path/to/fsx\n  [1050000]* 1000000 1100000 6d23h59m 12 10 20 none\n")
    assert (over.path, over.used_kib, over.grace, over.over, over.uncertain) == (
        "/a/very/long/path/to/fsx", 1050000, "6d23h59m", True, True,
    )  # fmt: skip
    assert (over.soft_files, over.files_grace) == (10, "none")


@pytest.mark.parametrize(
    "raw", [b"", b"Permission denied.\n", HEAD, HEAD + b"/fsx 1 2 3\n", HEAD + b"/fsx x x x x x x x x\n"]
)
def test_what_is_no_quota_is_refused(raw: bytes) -> None:
    with pytest.raises(FormatError):
        parse_lfs_quota(raw)
