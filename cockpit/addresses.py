"""What a user may write for a machine (`user@host:port`, an alias, a name): taken apart and checked, pure text."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z0-9_.:][A-Za-z0-9_.:%-]*")
_USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.@+\\-]*")
_WRITTEN = re.compile(
    r"(?:ssh://)?(?:(?P<user>.+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:]+|[^:]*:[^:]*:.*))(?::(?P<port>[0-9]+))?/?"
)
_LONGEST_PORT = 5


@dataclass(frozen=True, slots=True)
class Written:
    """What a user wrote, taken apart: alias or host name, and login and port where given."""

    host: str
    user: str | None = None
    port: int | None = None


def take_apart(text: str) -> Written:
    """`user@host:port` in its parts; raises ValueError for what could be read as an option or a command."""
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        raise ValueError("is not a host name, an alias or user@host:port")
    host = match["v6"] or match["host"]
    refuse_odd_name(host)
    if match["user"] is not None and not _USER.fullmatch(match["user"]):
        raise ValueError("has a login name with characters that no login has")
    port = match["port"]
    if port is not None and not (len(port) <= _LONGEST_PORT and 0 < int(port) < 65536):
        raise ValueError("has a port outside 1 to 65535")
    return Written(host, match["user"], None if port is None else int(port))


def refuse_odd_name(host: str) -> None:
    """Raise ValueError for a name that begins with a dash (ssh takes it as an option) or holds shell characters."""
    if host.startswith("-"):
        raise ValueError("begins with a dash, which ssh would read as an option")
    if not _NAME.fullmatch(host):
        raise ValueError("has characters that no host name has")


def short_name(host: str) -> str:
    """A host by its first word: `head.prod.example` is head, an address of numbers stays whole."""
    return host if host.replace(".", "").isdigit() else host.partition(".")[0]
