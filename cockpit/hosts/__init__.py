"""Reaching machines. Nothing here imports paramiko until a connection is really wanted."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cockpit.hosts.base import Host
from cockpit.hosts.deferred import DeferredHost
from cockpit.hosts.local import LocalHost
from cockpit.hosts.ssh_target import parse_written


def open_host(head: str, *, ssh_config: Path | None = None) -> Host:
    """The machine behind a config's `head`: "local", or user@host:port, or an alias of ssh_config.

    Connects to nothing yet: the first call on the host does. Raises FaultError for a name that cannot be
    one, such as an alias that begins with a dash.
    """
    if head == "local":
        return LocalHost()
    parse_written(head)
    return DeferredHost(head, partial(_ssh, head, ssh_config))


def _ssh(head: str, ssh_config: Path | None) -> Host:
    from cockpit.hosts.ssh import open_ssh

    return open_ssh(head, ssh_config=ssh_config)


def load(host: Host) -> None:
    """Load what the first call on the host would load; it connects to nothing."""
    if isinstance(host, DeferredHost):
        import cockpit.hosts.ssh  # noqa: F401


def retry_now(host: Host) -> None:
    """Forget the back-off of a host that could not be reached, so that the next call tries at once."""
    forget = getattr(host, "retry_now", None)
    if forget is not None:
        forget()
