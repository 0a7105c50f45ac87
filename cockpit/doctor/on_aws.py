"""AWS: as whom, whether the cluster is found, which rights are missing, its file systems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cockpit import aws_policy
from cockpit.aws_models import AwsScope, Stack
from cockpit.cluster import Cluster
from cockpit.doctor.aws_rights import READS_S, may_power, may_read
from cockpit.doctor.models import Finding, Step, Verdict, failed, not_applicable, passed, unknown
from cockpit.models import FaultError
from cockpit.sources.aws import read_hyperpod, read_instances, read_stack
from cockpit.sources.storage import StorageReads
from cockpit.text import printable
from cockpit.words import plural

_SHOWN = 120
_NO_AWS = "the config names nothing of AWS, and the head tells no region"
_ROLE_STEP = "`cockpit doctor --policy` prints the policies; docs/PERMISSIONS.md says how to put them in place"


class OnAws:
    """Each step asks with a single request a question, by the cluster's own way to AWS."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stack: Stack | None = None
        self._instances: tuple[str, ...] = ()

    def steps(self) -> tuple[Step, ...]:
        first = ("config",)
        return (
            Step("aws", "AWS credentials", self._credentials, first, 60.0),
            Step("aws_cluster", "cluster in AWS", self._found, ("aws",), 60.0),
            Step("aws_reads", "AWS rights to read", self._reads, ("aws",), READS_S + 15.0),
            Step("aws_power", "AWS rights to stop and start", self._power, ("aws", "aws_cluster"), 60.0),
            Step("aws_schedules", "role for stop --at", self._schedules, ("aws",), 10.0),
            Step("fsx", "FSx file systems", self._fsx, ("aws",), 60.0),
        )

    def _absent(self, *, first: bool = False) -> Finding | None:
        """Why nothing is asked of AWS; None when it is."""
        if self._cluster.aws.wanted:
            return None
        if self._cluster.slurm.known_facts() is not None:
            return not_applicable(_NO_AWS)
        if first:
            return unknown("the head, which may name its region, was not reached", "or name `region` in the config")
        return Finding(Verdict.NOT_TRIED, "needs: AWS credentials")

    @property
    def _kind(self) -> str:
        kind = self._cluster.aws.kind()
        return kind.id if kind else ""

    def _credentials(self) -> Finding:
        if absent := self._absent(first=True):
            return absent
        calls = self._cluster.aws.calls().once()
        answer = calls.call("sts", "get_caller_identity", "asking AWS who we are")
        who, region = printable(str(answer.get("Arn", ""))), calls.region()
        if not region:
            return failed(f"{who}, but no region is known", "set `region` in the config, such as us-east-1")
        return passed(f"{who} in {region}")

    def _found(self) -> Finding:
        if absent := self._absent():
            return absent
        calls, scope = self._cluster.aws.calls().once(), self._cluster.aws.scope()
        if scope.hyperpod:
            cluster = read_hyperpod(calls, scope.hyperpod)
            return passed(f"HyperPod {cluster.name}: {cluster.status}")
        words = ""
        if scope.stack:
            stack = self._stack = read_stack(calls, scope.stack)
            words = f"stack {stack.name}: {stack.status}, ParallelCluster {stack.version}; "
        if not scope.filters:
            return unknown("no instances are named", scope.hint)
        found = read_instances(calls, scope)
        self._instances = tuple(instance.id for instance in found if instance.alive)
        if not found and not scope.stack:
            return failed("no instance has these tags", "check `instances` and `region` in the config")
        return passed(f"{words}{plural(len(self._instances), 'instance')}")

    def _reads(self) -> Finding:
        if absent := self._absent():
            return absent
        wiring = self._cluster.aws
        told = may_read(wiring.calls().once(), wiring.scope(), self._kind, self._cluster.clock.now())
        return of_rights(told, _ROLE_STEP)

    def _power(self) -> Finding:
        if absent := self._absent():
            return absent
        if self._cluster.read_only:
            return not_applicable("read-only: nothing is stopped or started from here")
        scope, calls = self._cluster.aws.scope(), self._cluster.aws.calls().once()
        told = may_power(calls, self._instances)
        # No dry run exists for these: to ask is to do.
        told |= dict.fromkeys(_unasked(scope), (Verdict.UNKNOWN, "AWS has no dry run for it"))
        return of_rights(told, _ROLE_STEP)

    def _schedules(self) -> Finding:
        if absent := self._absent():
            return absent
        if self._kind == "hyperpod":
            return not_applicable("HyperPod cannot be stopped at a time")
        role = self._cluster.config.schedule_role
        if role is None:
            return not_applicable(
                "no `schedule_role` in the config: `stop --at` is not offered; --policy prints its policy"
            )
        return unknown(f"{role} is named; what it may do shows when the first schedule runs", _ROLE_STEP)

    def _fsx(self) -> Finding:
        if absent := self._absent():
            return absent
        ids = self._stack.fsx_ids if self._stack else ()
        if not ids:
            return not_applicable("the stack names none; those that nodes mount are found as their probes tell them")
        calls = self._cluster.aws.calls().once()
        reading = StorageReads(calls, lambda: ids, self._cluster.clock).read()
        systems = reading.systems.data or ()
        unread = [fs for fs, part in reading.use.items() if part.fault is not None]
        words = ", ".join(f"{system.id} {system.lifecycle}" for system in systems)
        if unread:
            fault = reading.use[unread[0]].fault
            assert fault is not None
            return failed(f"{words}; no metrics of {', '.join(unread)}: {fault.why}", fault.next_step)
        return passed(words or "none of them is there any more")

    def policies(self) -> Mapping[str, Any]:
        """The least that is needed: for who runs the cockpit, and for the role that schedules take."""
        config = self._cluster.config
        kind, stack = self._kind, self._name_in_tables()
        role = config.schedule_role or ""
        power = not self._cluster.read_only
        found = {
            "cockpit": aws_policy.policy(power=power, schedule_role=role, stack=stack, kind=kind, tags=config.instances)
        }
        if power and kind != "hyperpod":
            found["schedule_role"] = aws_policy.role_policy(kind, stack, config.instances)
            found["schedule_role_trust"] = aws_policy.role_trust()
        return found

    def _name_in_tables(self) -> str:
        try:
            return self._cluster.aws.scope().stack or "*"
        except FaultError:
            return "*"


def _unasked(scope: AwsScope) -> tuple[str, ...]:
    if scope.hyperpod:
        return aws_policy.POWER_HYPERPOD
    return aws_policy.POWER_TABLE if scope.fleet_table else ()


def of_rights(told: Mapping[str, tuple[Verdict, str]], step: str) -> Finding:
    """One finding of many rights: the missing ones by name."""
    by = {verdict: [name for name, (found, _) in told.items() if found is verdict] for verdict in Verdict}
    good, missing, open_ = by[Verdict.PASS], by[Verdict.FAIL], by[Verdict.UNKNOWN]
    words = f"{len(good)} of {len(told)} are given"
    if missing:
        words += f"; missing: {', '.join(missing)}"
    if open_:
        why = shortened(told[open_[0]][1])
        words += f"; not known: {', '.join(open_)} ({why})"
    parts = {name: verdict for name, (verdict, _) in told.items()}
    if missing:
        return replace(failed(words, step), parts=parts)
    return replace(passed(words) if not open_ else unknown(words, step), parts=parts)


def shortened(text: str) -> str:
    """The beginning of what a server said."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def policy_text(policies: Mapping[str, Any]) -> list[str]:
    """Each policy under a line that says whose it is."""
    titles = {
        "cockpit": "policy for whoever runs the cockpit",
        "schedule_role": "policy of the role that `stop --at` hands to EventBridge Scheduler (`schedule_role`)",
        "schedule_role_trust": "who may take that role (its trust policy)",
    }
    return [line for name, found in policies.items() for line in (f"# {titles[name]}", json.dumps(found, indent=1))]
