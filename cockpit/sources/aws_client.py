"""The one way to AWS: clients made when first asked for, every failure a Fault that names the permission.

boto3 is loaded with the first call, on the thread that makes it, never before the first paint. Clients may be
shared by threads, the session that makes them may not, hence the lock.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cockpit.formats.aws_errors import Call, fault_of
from cockpit.models import FaultError, FaultKind

CONNECT_TIMEOUT_S = 5
READ_TIMEOUT_S = 20
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class AwsAccess:
    """Where and as whom AWS is asked; None means what boto3's own configuration says."""

    region: str | None = None
    profile: str | None = None
    endpoint_url: str | None = None
    attempts: int = ATTEMPTS


MakeClient = Callable[[AwsAccess, str, "str | None"], Any]


class AwsCalls:
    """Calls by service and method name; each raises FaultError. `make` is another maker of clients, for tests."""

    def __init__(self, access: AwsAccess, make: MakeClient | None = None) -> None:
        self.access = access
        self._make = make or _Session()
        self._clients: dict[tuple[str, str | None], Any] = {}
        self._lock = threading.Lock()

    def call(self, service: str, method: str, what: str = "", *, region: str | None = None, **request: Any) -> Any:
        """One request; `what` says in words what it is for."""
        try:
            return getattr(self._client(service, region), method)(**request)
        except Exception as error:
            raise self._fault(error, service, method, what, region) from error

    def pages(
        self, service: str, method: str, what: str = "", *, region: str | None = None, **request: Any
    ) -> Iterator[Mapping[str, Any]]:
        """Every page of an operation that has a paginator."""
        try:
            yield from self._client(service, region).get_paginator(method).paginate(**request)
        except Exception as error:
            raise self._fault(error, service, method, what, region) from error

    def region(self) -> str:
        """The region calls go to, whoever named it; "" while none is known."""
        with self._lock:
            for (_, elsewhere), client in self._clients.items():
                if elsewhere is None:
                    return str(client.meta.region_name or "")
        return self.access.region or ""

    def once(self) -> AwsCalls:
        """The same way, but each request is sent a single time: an order whose answer is lost may have been taken."""
        if self.access.attempts == 1 or not isinstance(self._make, _Session):
            return self
        return AwsCalls(replace(self.access, attempts=1), self._make)

    def forget(self) -> None:
        """Read credentials and configuration anew at the next call: a login may have been renewed."""
        with self._lock:
            self._clients.clear()
            if isinstance(self._make, _Session):
                self._make = _Session()

    def _client(self, service: str, region: str | None) -> Any:
        with self._lock:
            found = self._clients.get((service, region))
            if found is None:
                found = self._clients[service, region] = self._make(self.access, service, region)
            return found

    def _fault(self, error: Exception, service: str, method: str, what: str, region: str | None) -> FaultError:
        if isinstance(error, FaultError):
            return error
        operation = "".join(word.capitalize() for word in method.split("_")).replace("Aws", "AWS")
        where = region or self.access.region or ""
        fault = fault_of(error, Call(service, operation, where, self.access.profile or "", what))
        if fault.kind is FaultKind.AUTH:
            self.forget()  # botocore keeps keys it has read from a file, also after they were renewed there
        return FaultError(fault)


class _Session:
    """Makes boto3 clients out of one session, which is made with the first of them."""

    def __init__(self) -> None:
        self._session: Any = None

    def __call__(self, access: AwsAccess, service: str, region: str | None) -> Any:
        import boto3
        import botocore.session
        from botocore.config import Config

        if self._session is None:
            core = botocore.session.get_session()
            core.register_component("data_loader", _models())
            self._session = boto3.session.Session(
                botocore_session=core, profile_name=access.profile, region_name=access.region
            )
        config = Config(
            retries={"mode": "adaptive", "total_max_attempts": access.attempts},
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            user_agent_extra="gpu-cockpit",
        )
        return self._session.client(service, region_name=region, endpoint_url=access.endpoint_url, config=config)


@functools.cache
def _models() -> Any:
    """One reader of botocore's service models for all sessions: EC2's alone takes 0.3 s and some 30 MB."""
    from botocore.loaders import create_loader

    return create_loader()
