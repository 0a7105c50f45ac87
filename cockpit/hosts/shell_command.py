"""The command line of the system's ssh that reaches a node by the way the cockpit itself takes."""

from __future__ import annotations

import getpass
from dataclasses import replace

from cockpit.addresses import Written
from cockpit.config import ClusterConfig, NodeAccess
from cockpit.hosts.ssh_target import SshTarget, check_name, parse_written, resolve

# What the config says of proxies does not count for a node behind the head; see NodePool.
_NO_PROXY = ("-o", "ProxyJump=none", "-o", "ProxyCommand=none")


def find_shell(config: ClusterConfig, node: str, address: str = "") -> list[str]:
    """The argv for a node of a cluster. Asks `ssh -G`, so never call it on the UI thread; raises FaultError."""
    access = config.nodes
    target = resolve(Written(node, access.user, access.port), ssh_config=config.ssh_config)
    head = None
    if access.via == "head" and config.head != "local":
        head = resolve(config.head, ssh_config=config.ssh_config)
    return shell_argv(config, target, head, address)


def shell_argv(config: ClusterConfig, target: SshTarget, head: SshTarget | None, address: str = "") -> list[str]:
    """The same from what the ssh config says of the node and, where it is reached through the head, of that.

    `address` is Slurm's; it counts where the ssh config has no HostName for the node. The node's name stays the
    one that is asked for, so that the user's own settings for it hold. Raises FaultError for a name that could be
    read as an option.
    """
    node = target.alias
    check_name(node)
    if address and target.hostname.lower() == node.lower():
        check_name(address)
        target = replace(target, hostname=address)
    argv = ["ssh"]
    if config.ssh_config is not None:
        argv += ["-F", str(config.ssh_config.expanduser())]
    if config.nodes.via == "head":
        argv += _NO_PROXY if head is None else ["-J", _jump(config.head)]
    argv += ["-l", _login(config.nodes, target, head), "-p", str(target.port)]
    if target.hostname != node:
        argv += ["-o", f"HostName={target.hostname}"]
    return [*argv, "--", node]


def _login(access: NodeAccess, target: SshTarget, head: SshTarget | None) -> str:
    # Nobody named a login for the nodes: that of the head is the better guess than ours here.
    if access.user is None and head is not None and target.user == getpass.getuser():
        return head.user
    return target.user


def _jump(written: str) -> str:
    """The head as -J wants it, which takes neither a URL nor a bare IPv6 address."""
    parts = parse_written(written)
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    user = "" if parts.user is None else f"{parts.user}@"
    return f"{user}{host}" if parts.port is None else f"{user}{host}:{parts.port}"
