"""Who acts: the person at this keyboard, and the login on the head that their commands run as."""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cockpit.text import printable

if TYPE_CHECKING:
    from cockpit.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Who:
    """The local user and machine, and the remote login ("" when the head was not asked yet)."""

    user: str
    host: str
    login: str

    def line(self) -> str:
        """`maria@laptop as ec2-user@head`."""
        return f"{self.user}@{self.host}" + (f" as {self.login}" if self.login else "")


def local_user() -> str:
    """The person: whoever called sudo when the cockpit itself runs as root."""
    name = os.environ.get("SUDO_USER") if os.geteuid() == 0 else None
    try:
        return printable(name or getpass.getuser())
    except (KeyError, OSError):  # a user id without a name, as in some containers
        return f"uid {os.geteuid()}"


def who(cluster: Cluster) -> Who:
    """Who acts on this cluster; never waits."""
    facts = cluster.slurm.known_facts()
    login = f"{facts.user}@{facts.hostname}" if facts else ""
    return Who(local_user(), printable(socket.gethostname()), login)
