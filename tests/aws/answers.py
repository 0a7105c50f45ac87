"""AWS's answers where moto has none: botocore's own clients, whose real service models check every answer."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import boto3
from botocore.config import Config
from botocore.stub import ANY, Stubber

from cockpit.sources.aws_client import AwsAccess, AwsCalls
from tests.aws.moto_cluster import REGION

__all__ = ["ANY", "Answers"]


class Answers:
    """Queues answers per service; `calls` is the cockpit's way to them. An answer the model forbids raises."""

    def __init__(self) -> None:
        self._stubs: dict[str, Stubber] = {}
        self._regions: dict[str, list[str | None]] = defaultdict(list)
        self.calls = AwsCalls(AwsAccess(REGION), self._client)

    def _stub(self, service: str) -> Stubber:
        if service not in self._stubs:
            client = boto3.client(
                service,
                region_name=REGION,
                aws_access_key_id="testing",
                aws_secret_access_key="testing",
                config=Config(retries={"max_attempts": 0}),
            )
            self._stubs[service] = Stubber(client)
            self._stubs[service].activate()
        return self._stubs[service]

    def _client(self, access: AwsAccess, service: str, region: str | None) -> Any:
        self._regions[service].append(region)
        return self._stub(service).client

    def add(self, service: str, method: str, answer: dict[str, Any], request: dict[str, Any] | None = None) -> None:
        """The next answer of a service, and the request it is the answer to."""
        self._stub(service).add_response(method, answer, request)

    def refuse(self, service: str, method: str, code: str, message: str = "no") -> None:
        """The next answer is an error."""
        self._stub(service).add_client_error(method, code, message, http_status_code=400)

    def all_asked(self) -> None:
        """Raise when an answer was not fetched."""
        for stub in self._stubs.values():
            stub.assert_no_pending_responses()
