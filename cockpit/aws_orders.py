"""One call to AWS that changes something, as data: the line a person could type is the line that is carried out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOW = "<now>"  # stands for the time at which it is carried out: a plan may lie on the screen for a while


@dataclass(frozen=True, slots=True)
class AwsOrder:
    """`method` of a boto3 client of `service`, with its request."""

    service: str
    method: str
    request: Mapping[str, Any]
    region: str = ""

    @property
    def argv(self) -> tuple[str, ...]:
        """The same as a command of the AWS CLI, version 2."""
        where = ("--region", self.region) if self.region else ()
        body = json.dumps(self.request, separators=(",", ":"))
        return ("aws", self.service, self.method.replace("_", "-"), *where, "--cli-input-json", body)


def order_of(argv: tuple[str, ...]) -> AwsOrder:
    """The order behind such a command; raises ValueError for any other command."""
    if len(argv) < 5 or argv[0] != "aws" or "--cli-input-json" not in argv:
        raise ValueError("is no order to AWS")
    options = dict(zip(argv[3::2], argv[4::2], strict=True))
    request = json.loads(options["--cli-input-json"])
    if not isinstance(request, dict):
        raise ValueError("is no order to AWS")
    return AwsOrder(argv[1], argv[2].replace("-", "_"), request, options.get("--region", ""))


def filled(value: Any, now: str) -> Any:
    """The request with the time put in for NOW, however deep it stands."""
    if isinstance(value, dict):
        return {key: filled(item, now) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, now) for item in value]
    return now if value == NOW else value
