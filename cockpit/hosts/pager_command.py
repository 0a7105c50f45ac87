"""The command line that shows a file of the head or of a node in the pager, by the system's ssh."""

from __future__ import annotations

from cockpit.config import ClusterConfig
from cockpit.hosts.base import command_line
from cockpit.hosts.shell_command import find_shell
from cockpit.hosts.ssh_target import parse_written

# The pager of whoever logs in there; less shows control characters as visible signs.
_PAGE = 'exec ${PAGER:-$(command -v less || echo more)} -- "$1"'


def find_pager(config: ClusterConfig, path: str, node: str = "", address: str = "") -> list[str]:
    """The argv for a file of a node, or of the head when that is "".

    For a node it asks `ssh -G`, so never call it on the UI thread; raises FaultError.
    """
    page = ["sh", "-c", _PAGE, "sh", path]
    if node:
        return _over_ssh(find_shell(config, node, address), page)
    if config.head == "local":
        return page
    parts = parse_written(config.head)
    argv = ["ssh"]
    if config.ssh_config is not None:
        argv += ["-F", str(config.ssh_config.expanduser())]
    argv += [] if parts.user is None else ["-l", parts.user]
    argv += [] if parts.port is None else ["-p", str(parts.port)]
    return _over_ssh([*argv, "--", parts.host], page)


def _over_ssh(shell: list[str], page: list[str]) -> list[str]:
    """A shell's argv as one that runs a command with a terminal instead."""
    return [shell[0], "-t", *shell[1:], command_line(page, deadline_s=None)]
