"""The policy that we tell people to use holds every call that the code makes, and no more."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import cockpit
from cockpit import aws_policy
from cockpit.formats.aws_errors import Call


def calls() -> Iterator[tuple[str, str]]:
    """(service, method) of every `.call(...)` and `.pages(...)` with a literal service, and of every AwsOrder."""
    for path in Path(cockpit.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            words = [arg.value for arg in node.args[:2] if isinstance(arg, ast.Constant)] if _asks(node) else []
            if len(words) == 2 and all(isinstance(word, str) for word in words):
                yield str(words[0]), str(words[1])


def _asks(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("call", "pages", "AwsOrder")


def action(service: str, method: str) -> str:
    operation = "".join(word.capitalize() for word in method.split("_")).replace("Aws", "AWS")
    return Call(service, operation).permission


def test_every_call_is_in_the_policy() -> None:
    known = {
        *aws_policy.READS, *aws_policy.TABLE_READS, *aws_policy.POWER_TABLE, *aws_policy.POWER_EC2,
        *aws_policy.POWER_HYPERPOD, *aws_policy.SCHEDULING,
    }  # fmt: skip
    made = {action(service, method) for service, method in calls()}
    assert len(made) > 20
    assert made <= known
    # These methods are put together in the code: start/stop of instances, HyperPod's batches, schedules, quotas.
    assert known - made <= {
        "ec2:StartInstances", "ec2:StopInstances", "sagemaker:BatchRebootClusterNodes",
        "sagemaker:BatchReplaceClusterNodes", "scheduler:CreateSchedule", "scheduler:UpdateSchedule",
        "servicequotas:GetServiceQuota", "servicequotas:GetAWSDefaultServiceQuota",
    }  # fmt: skip


def test_the_policy_grows_with_what_is_wanted() -> None:
    assert len(aws_policy.policy()["Statement"]) == 2
    whole = aws_policy.policy(power=True, schedule_role="arn:aws:iam::123456789012:role/x", stack="prod")
    assert len({statement["Sid"] for statement in whole["Statement"]}) == 7
    assert "parallelcluster-prod" in json.dumps(whole)


def test_the_documented_policy_is_the_one_in_the_code() -> None:
    text = (Path(cockpit.__file__).parents[1] / "docs" / "AWS.md").read_text(encoding="utf-8")
    block = text.split("```json\n")[1].split("```")[0]
    assert json.loads(block) == aws_policy.policy(power=True, schedule_role="ROLE-ARN")
