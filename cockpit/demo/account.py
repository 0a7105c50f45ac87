"""A ParallelCluster as it lies in AWS, built in moto's server over real HTTP: stack, both tables, instances.

The demo's AWS is laid out by it, and that of the tests.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

REGION = "us-east-1"
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
BATCH = 25  # items in one write of DynamoDB
STAMP = "2026-11-01 10:00:00.123456+00:00"
_TEMPLATE = {
    "Parameters": {name: {"Type": "String"} for name in ("ClusterUser", "Scheduler", "ClusterCWLogGroup")},
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {}}},
}


@functools.cache
def _client(service: str, endpoint: str) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        service,
        region_name=REGION,
        endpoint_url=endpoint,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # noqa: S106 - moto takes any
        config=Config(retries={"max_attempts": 1}),
    )


@dataclass
class Account:
    """One cluster named `name`; every helper writes through the real API."""

    endpoint: str
    name: str = "prod"
    nodes: dict[str, str] = field(default_factory=dict)  # node -> instance id
    head: str = ""

    def client(self, service: str) -> Any:
        """A plain client of moto's server, beside the cockpit's own."""
        return _client(service, self.endpoint)

    def build(self, nodes: Sequence[str], kind: str = "p5.48xlarge") -> Account:
        """Stack, tables with a RUNNING fleet, the head, and an instance for each node."""
        self.head = self.launch("HeadNode", kind="m5.xlarge")[0]
        self._stack()
        self._tables()
        alike: dict[tuple[str, str], list[str]] = {}
        for node in nodes:
            queue, _, resource, _ = node.split("-")
            alike.setdefault((queue, resource), []).append(node)
        for (queue, resource), names in alike.items():
            self._add(names, queue, resource, kind)
        return self

    def launch(
        self, node_type: str, kind: str, count: int = 1, tags: Mapping[str, str] | None = None, address: str = ""
    ) -> list[str]:
        """Tagged instances of one sort; returns their ids. A single one may be given its private address."""
        own = {"PrivateIpAddress": address} if address else {}
        told = {"Name": node_type, "cluster-name": self.name, "node-type": node_type, **(tags or {})}
        pairs = [
            {"Key": key if key == "Name" else f"parallelcluster:{key}", "Value": value} for key, value in told.items()
        ]
        answer = self.client("ec2").run_instances(
            ImageId="ami-12c6146b",
            InstanceType=kind,
            MinCount=count,
            MaxCount=count,
            **own,
            TagSpecifications=[{"ResourceType": "instance", "Tags": pairs}],
        )
        return [str(one["InstanceId"]) for one in answer["Instances"]]

    def _add(self, names: Sequence[str], queue: str, resource: str, kind: str) -> None:
        """Instances for nodes named <queue>-st-<resource>-<n>, and their items in the node table."""
        tags = {"queue-name": queue, "compute-resource-name": resource}
        for node, instance in zip(names, self.launch("Compute", kind, len(names), tags), strict=True):
            self.nodes[node] = instance
        self._note(names)

    def add_node(self, node: str, address: str, kind: str = "p5.48xlarge") -> None:
        """One more instance at an address of ours, as ParallelCluster's resume program launches it."""
        queue, _, resource, _ = node.split("-")
        tags = {"queue-name": queue, "compute-resource-name": resource}
        self.nodes[node] = self.launch("Compute", kind, 1, tags, address)[0]
        self._note([node])

    def _note(self, names: Sequence[str]) -> None:
        puts = [
            {"PutRequest": {"Item": {"Id": {"S": node}, "InstanceId": {"S": self.nodes[node]},
                                     "HeadNodePrivateIp": {"S": "10.0.0.1"}}}}
            for node in names
        ]  # fmt: skip
        for at in range(0, len(puts), BATCH):
            batch = {f"parallelcluster-slurm-{self.name}": puts[at : at + BATCH]}
            self.client("dynamodb").batch_write_item(RequestItems=batch)

    def address(self, node: str) -> str:
        answer = self.client("ec2").describe_instances(InstanceIds=[self.nodes[node]])
        return str(answer["Reservations"][0]["Instances"][0]["PrivateIpAddress"])

    def _stack(self) -> None:
        outputs = {"HeadNodeInstanceID": self.head, "HeadNodePrivateIP": "10.0.0.1", "FSXIds": "fs-0123456789abcdef0"}
        body = _TEMPLATE | {"Outputs": {key: {"Value": value} for key, value in outputs.items()}}
        self.client("cloudformation").create_stack(
            StackName=self.name,
            TemplateBody=json.dumps(body),
            Parameters=[
                {"ParameterKey": "ClusterUser", "ParameterValue": "ubuntu"},
                {"ParameterKey": "Scheduler", "ParameterValue": "slurm"},
                {
                    "ParameterKey": "ClusterCWLogGroup",
                    "ParameterValue": f"/aws/parallelcluster/{self.name}-202611011000",
                },
            ],
            Tags=[
                {"Key": "parallelcluster:version", "Value": "3.16.1"},
                {"Key": "parallelcluster:cluster-name", "Value": self.name},
            ],
        )

    def _tables(self) -> None:
        ddb = self.client("dynamodb")
        for table, index in ((f"parallelcluster-{self.name}", False), (f"parallelcluster-slurm-{self.name}", True)):
            names = ["Id", "InstanceId"] if index else ["Id"]
            extra: dict[str, Any] = {}
            if index:
                keys = [{"AttributeName": "InstanceId", "KeyType": "HASH"}]
                whole = {"ProjectionType": "ALL"}
                extra["GlobalSecondaryIndexes"] = [{"IndexName": "InstanceId", "KeySchema": keys, "Projection": whole}]
            ddb.create_table(
                TableName=table,
                KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
                BillingMode="PAY_PER_REQUEST",
                **extra,
            )
        self.set_fleet("RUNNING")

    def set_fleet(self, status: str, *, old_form: bool = False) -> None:
        """What the head node would write."""
        item: dict[str, Any] = {"Id": {"S": "COMPUTE_FLEET"}}
        if old_form:
            item |= {"Status": {"S": status}, "LastUpdatedTime": {"S": STAMP}}
        else:
            item["Data"] = {"M": {"status": {"S": status}, "lastStatusUpdatedTime": {"S": STAMP}}}
        self.client("dynamodb").put_item(TableName=f"parallelcluster-{self.name}", Item=item)

    def fleet_item(self) -> dict[str, Any]:
        """The item exactly as it lies in the table."""
        key = {"Id": {"S": "COMPUTE_FLEET"}}
        answer = self.client("dynamodb").get_item(TableName=f"parallelcluster-{self.name}", Key=key)
        item: dict[str, Any] = answer["Item"]
        return item

    @property
    def status(self) -> str:
        """The fleet's status as it lies in the table."""
        return str(self.fleet_item()["Data"]["M"]["status"]["S"])

    def terminate(self, node: str) -> None:
        """End a node's instance; its item stays in the table, as in ParallelCluster."""
        self.client("ec2").terminate_instances(InstanceIds=[self.nodes[node]])
