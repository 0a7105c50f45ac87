"""The way to the head, stage by stage: its name, TCP, its host key, the login. One connection, then closed."""

from __future__ import annotations

import shlex
import socket
import time
from typing import TYPE_CHECKING

from cockpit.config import ClusterConfig
from cockpit.doctor.models import Finding, Step, failed, not_applicable, of_fault, passed
from cockpit.models import FaultError
from cockpit.text import printable

if TYPE_CHECKING:
    from cockpit.hosts.dial import Connection
    from cockpit.hosts.jump import Route
    from cockpit.hosts.ssh_target import SshTarget
    from cockpit.hosts.wire import Wire

_LOCAL = "the cockpit runs on the head itself"
_SHOWN = 4


class WayIn:
    """What the stages hand on to each other; close() it."""

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._target: SshTarget | None = None
        self._route: Route | None = None
        self._wire: Wire | None = None
        self._connection: Connection | None = None
        self._refused: FaultError | None = None  # why the login failed, after the host key was found right

    def steps(self) -> tuple[Step, ...]:
        """The four stages in order."""
        return (
            Step("dns", "name of the head", self._dns, ("config",), 15.0),
            Step("tcp", "TCP to its SSH port", self._tcp, ("dns",), 60.0),
            Step("host_key", "its host key", self._host_key, ("tcp",), 60.0),
            Step("auth", "login", self._auth, ("host_key",), 5.0),
        )

    def ssh_line(self, *options: str) -> str:
        """The line that takes the same way by hand."""
        config = ["-F", str(self._config.ssh_config)] if self._config.ssh_config else []
        return shlex.join(["ssh", *options, *config, *_words_of(self._config.head)])

    def _dns(self) -> Finding:
        from cockpit.hosts.ssh_faults import connect_fault
        from cockpit.hosts.ssh_target import resolve

        if self._config.head == "local":
            return not_applicable(_LOCAL)
        target = self._target = resolve(self._config.head, ssh_config=self._config.ssh_config)
        if via := _via(target):
            return not_applicable(f"{printable(target.hostname)} is looked up on the way there, {via}")
        try:
            found = socket.getaddrinfo(target.hostname, target.port, type=socket.SOCK_STREAM)
        except OSError as error:
            fault = connect_fault(target, error, timeout_s=target.connect_timeout_s)
            return of_fault(fault, f"by hand: getent hosts {shlex.quote(target.hostname)}")
        addresses = list(dict.fromkeys(printable(str(entry[4][0])) for entry in found))
        return passed(f"{printable(target.hostname)} is {', '.join(addresses[:_SHOWN])}")

    def _tcp(self) -> Finding:
        from cockpit.hosts.dial import Limits, Progress
        from cockpit.hosts.ssh import config_route

        if self._target is None:
            return not_applicable(_LOCAL)
        limits = Limits()
        self._route = config_route(self._config.ssh_config, limits)
        began = time.monotonic()
        try:
            self._wire = self._route.open(self._target, limits, Progress(until=began + limits.dial_s))
        except FaultError as error:
            return of_fault(error.fault, f"by hand: {self.ssh_line('-v')}")
        took_ms = (time.monotonic() - began) * 1000
        way = _via(self._target) or f"in {took_ms:.0f} ms"
        return passed(f"{printable(self._target.hostname)}:{self._target.port} is open, {way}")

    def _host_key(self) -> Finding:
        from cockpit.hosts.dial import LOGGING_IN, Limits, Progress, establish

        if self._target is None or self._wire is None:
            return not_applicable(_LOCAL)
        progress = Progress(until=time.monotonic() + Limits().dial_s)
        try:
            self._connection = establish(self._target, self._wire, Limits(), progress, compress=False)
        except FaultError as error:
            if progress.stage != LOGGING_IN:
                return of_fault(error.fault)
            self._refused = error
        return passed("known_hosts holds the key that it shows")

    def _auth(self) -> Finding:
        if self._target is None:
            return not_applicable(_LOCAL)
        if self._refused is not None:
            return of_fault(self._refused.fault, f"by hand: {self.ssh_line('-v')}")
        if self._connection is None:
            return failed("the connection went away")
        return passed(f"as {printable(self._target.user)}")

    def close(self) -> None:
        """Let go of the connection. Never blocks."""
        if self._connection is not None:
            self._connection.kill("the doctor has seen enough")
        elif self._wire is not None:
            self._wire.kill()
        if self._route is not None:
            self._route.close()


def _words_of(head: str) -> list[str]:
    """`user@host:port` as ssh takes it."""
    from cockpit.hosts.ssh_target import parse_written

    written = parse_written(head)
    port = ["-p", str(written.port)] if written.port is not None else []
    user = ["-l", written.user] if written.user is not None else []
    return [*port, *user, written.host]


def _via(target: SshTarget) -> str:
    """In words how a target is reached when not straight."""
    if target.proxy_jump:
        return f"through {printable(', '.join(target.proxy_jump))} (ProxyJump)"
    return "by the ProxyCommand of the ssh config" if target.proxy_command is not None else ""
