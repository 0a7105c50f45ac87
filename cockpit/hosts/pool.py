"""Connections to many nodes: few at a time through one bastion, and never more than a bound in all."""

from __future__ import annotations

import getpass
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from cockpit.addresses import Written
from cockpit.config import NodeAccess
from cockpit.hosts.base import Host
from cockpit.hosts.dial import Limits
from cockpit.hosts.host_keys import Pins
from cockpit.hosts.jump import Jumps, ThroughHost
from cockpit.hosts.ssh import SshHost, config_route, with_via
from cockpit.hosts.ssh_target import SshTarget, check_name, resolve
from cockpit.hosts.turns import Turns
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

_DROP_RETRIES = 5
GUESTS = 96  # beside those that are watched: nodes that are asked once, for seconds, by a check or a diagnosis


class NodePool:
    """Nodes by name or address, connected when first used; with too many, the longest unused is given up.

    With `via: head` they are reached through the head by direct-tcpip, otherwise as the ssh config says.
    Their host keys are checked as strictly as the head's, unless `host_keys: head` says that a node may be
    trusted when it is first seen through the head: it then must show the same key until forget(), which is
    called when Slurm powers the node down, gives it another address, or it leaves the cluster.
    """

    def __init__(
        self,
        head: Host,
        access: NodeAccess,
        *,
        ssh_config: Path | None = None,
        limits: Limits | None = None,
        guests: int = GUESTS,
    ) -> None:
        self._head, self._access, self._ssh_config = head, access, ssh_config
        self._most = access.max + guests
        self._limits = limits or Limits()
        self._turns = Turns(self._way_is_there)
        self._jumps = Jumps()
        self._lock = threading.Lock()
        self._nodes: OrderedDict[str, SshHost] = OrderedDict()
        self._closed = False
        # Only the head vouches for a node that nobody knows; straight from here it may be anyone.
        self._pinning = access.host_keys == "head" and access.via == "head"
        self._pins: dict[str, Pins] = {}

    def node(self, name: str, address: str = "") -> Host:
        """The node, not connected yet or still connected. Never blocks.

        The ssh config is asked for `name`; where it has no HostName for it, `address` is connected to. Raises
        FaultError for a name that no host can have, and FAILED when `nodes.max` and GUESTS others are in use.
        """
        check_name(name)
        if address:
            check_name(address)
        with self._lock:
            if self._closed:
                why = "this connection was closed by the cockpit"
                raise FaultError(Fault(FaultKind.UNREACHABLE, f"node {printable(name)}", why))
            host = self._nodes.get(name)
            if host is None:
                self._make_room(name)
                host = self._nodes[name] = self._new(name, address)
            self._nodes.move_to_end(name)
            return host

    def _make_room(self, wanted: str) -> None:
        """Give up the longest unused. One in use is never taken from under its stream."""
        while len(self._nodes) >= self._most:
            idle = next((name for name, host in self._nodes.items() if not host.busy), None)
            if idle is None:
                why = f"{len(self._nodes)} nodes are connected and in use already"
                step = "ask fewer at a time, or raise `nodes.max` in the config"
                raise FaultError(Fault(FaultKind.FAILED, f"node {printable(wanted)}", why, step))
            self._nodes.pop(idle).close()

    def _new(self, name: str, address: str) -> SshHost:
        through_head = self._access.via == "head"
        pins = self._pins.setdefault(name, Pins()) if self._pinning else None
        limits, jumps = self._limits, self._jumps
        route = ThroughHost(self._head) if through_head else config_route(self._ssh_config, limits, jumps=jumps)
        return SshHost(
            name,
            lambda: self._resolve(name, address, pins),
            route,
            limits=self._limits,
            turns=self._turns,
            drop_retries=_DROP_RETRIES,
        )

    def _resolve(self, name: str, address: str, pins: Pins | None) -> SshTarget:
        access = self._access
        target = resolve(Written(name, access.user, access.port), ssh_config=self._ssh_config)
        if address and target.hostname.lower() == name.lower():
            target = replace(target, hostname=address)
        target = replace(target, pins=pins)
        if access.via != "head":
            return target
        find: Callable[[], SshTarget | None] | None = getattr(self._head, "target", None)
        head = find() if find is not None else None
        if head is None:
            return with_via(target, None)
        # Nobody named a login for the nodes: that of the head is the better guess than ours here.
        if access.user is None and target.user == getpass.getuser():
            target = replace(target, user=head.user)
        return with_via(target, self._head.name)

    def _way_is_there(self) -> bool:
        return self._access.via != "head" or bool(getattr(self._head, "connected", True))

    def prefer(self, names: Iterable[str]) -> None:
        """Connect these before all others: somebody looks at them."""
        self._turns.prefer(frozenset(names))

    def forget(self, name: str) -> None:
        """Give up the connection to one node, which may come back as another machine with another key.

        A login still under way to the old one pins nothing for the new one.
        """
        with self._lock:
            host = self._nodes.pop(name, None)
            self._pins.pop(name, None)
        self._turns.forget(name)
        if host is not None:
            host.close()

    def retry_now(self) -> None:
        """Forget the back-off of every node."""
        with self._lock:
            hosts = list(self._nodes.values())
        for host in hosts:
            host.retry_now()

    def close(self) -> None:
        """Give up every node at once. The head belongs to whoever made it. Never blocks."""
        with self._lock:
            self._closed = True
            hosts, self._nodes = list(self._nodes.values()), OrderedDict()
        for host in hosts:
            host.close()
        self._jumps.close()
