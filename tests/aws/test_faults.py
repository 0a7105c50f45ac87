"""AWS that misbehaves over real sockets, and Slurm's own word for a node's instance."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from cockpit.aws_models import AwsScope
from cockpit.formats.aws_errors import Call, fault_of
from cockpit.hosts.base import Completed
from cockpit.models import FaultError, FaultKind
from cockpit.sources import aws_client
from cockpit.sources.aws import AwsReads
from cockpit.sources.aws_client import AwsAccess, AwsCalls
from cockpit.sources.slurm_ids import ASK_AGAIN_AFTER, SlurmIds
from tests.aws.answers import Answers
from tests.still import still_cluster

SCOPE = AwsScope("us-east-1", filters=(("tag:Cluster", ("prod",)),))


@pytest.fixture
def deaf() -> Iterator[str]:
    """An endpoint that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_an_endpoint_that_never_answers_has_a_deadline(deaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_client, "READ_TIMEOUT_S", 0.2)
    with pytest.raises(FaultError) as caught:
        AwsReads(AwsCalls(AwsAccess("us-east-1", None, deaf, attempts=1)), lambda: SCOPE).read()
    assert caught.value.fault.kind is FaultKind.TIMEOUT
    assert "proxy, VPC endpoint" in caught.value.fault.next_step


def test_an_order_is_sent_a_single_time_and_a_read_again() -> None:
    calls = AwsCalls(AwsAccess("us-east-1", None, "http://127.0.0.1:9"))
    assert calls._client("ec2", None).meta.config.retries["total_max_attempts"] == aws_client.ATTEMPTS
    assert calls.once()._client("ec2", None).meta.config.retries["total_max_attempts"] == 1


@pytest.mark.parametrize(
    ("code", "message", "kind", "words"),
    [
        ("AuthFailure", "AWS was not able to validate", FaultKind.AUTH, "does not take these credentials"),
        ("UnrecognizedClientException", "x", FaultKind.AUTH, "enabled"),
        ("SignatureDoesNotMatch", "Signature expired", FaultKind.AUTH, "clock"),
        ("OptInRequired", "x", FaultKind.AUTH, "enable us-east-1"),
        ("ThrottlingException", "Rate exceeded", FaultKind.THROTTLED, "throttles"),
        ("ResourceNotFoundException", "Requested resource not found", FaultKind.MISSING, "being deleted"),
        ("InvalidInstanceID.NotFound", "i-1", FaultKind.MISSING, "i-1"),
        ("VcpuLimitExceeded", "You have requested more vCPU", FaultKind.FAILED, "VcpuLimitExceeded"),
        ("ConflictException", "update in progress", FaultKind.CONFLICT, "read it again"),
    ],
)
def test_what_aws_says_is_told_with_what_to_do(code: str, message: str, kind: FaultKind, words: str) -> None:
    answers = Answers()
    answers.refuse("ec2", "describe_instances", code, message)
    with pytest.raises(FaultError) as caught:
        answers.calls.call("ec2", "describe_instances", "reading the instances")
    assert caught.value.fault.kind is kind
    assert words in caught.value.fault.line()


@pytest.mark.parametrize(
    "name", ["SSOTokenLoadError", "UnauthorizedSSOTokenError", "TokenRetrievalError", "LoginTokenLoadError"]
)
def test_a_login_that_has_ended_is_known_by_name_also_where_botocore_lacks_it(name: str) -> None:
    error = type(name, (Exception,), {})("token has expired\x1b[2J")
    fault = fault_of(error, Call("ec2", "DescribeInstances", "us-east-1", "ops"))
    assert (fault.kind, "aws sso login --profile ops" in fault.next_step) == (FaultKind.AUTH, True)
    assert "\x1b" not in fault.line()


RECORD = """NodeName={name} Arch=x86_64 CoresPerSocket=1
   NodeAddr=10.0.0.1 NodeHostName={name} Version=25.11.8
   State=IDLE+CLOUD ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   InstanceId={instance} InstanceType=p5.48xlarge
   Comment=x
   InstanceId=i-00000000000000bad

"""


def test_slurm_tells_instance_ids_and_a_comment_cannot() -> None:
    cluster, head, _ = still_cluster()
    told = {"gpu-st-p5-1": "i-0123456789abcdef0", "gpu-st-p5-2": "(null)"}
    text = "".join(RECORD.format(name=name, instance=instance) for name, instance in told.items())
    head.answers["scontrol"] = lambda argv: Completed(0, text.encode(), b"", 0.1)
    assert SlurmIds(cluster.slurm, lambda: "25.11.8").read() == {"gpu-st-p5-1": "i-0123456789abcdef0"}


def test_where_slurm_tells_no_ids_it_is_asked_seldom_and_an_old_one_never() -> None:
    cluster, head, _ = still_cluster()
    asked: list[str] = []

    def scontrol(argv: object) -> Completed:
        asked.append(str(argv))
        return Completed(0, RECORD.format(name="a", instance="(null)").encode(), b"", 0.1)

    head.answers["scontrol"] = scontrol
    assert SlurmIds(cluster.slurm, lambda: "22.05.8").read() == {}
    assert SlurmIds(cluster.slurm, lambda: "").read() == {}
    assert asked == []
    ids = SlurmIds(cluster.slurm, lambda: "23.11.10")
    for _ in range(ASK_AGAIN_AFTER + 1):
        ids.read()
    assert len(asked) == 1
    ids.read()
    assert len(asked) == 2
