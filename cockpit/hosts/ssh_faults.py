"""What paramiko, sockets and the resolver raise, in words for a tired engineer."""

from __future__ import annotations

import errno
import socket

from paramiko.ssh_exception import (
    AuthenticationException,
    ChannelException,
    IncompatiblePeer,
    SSHException,
)

from cockpit.hosts.ssh_target import SshTarget
from cockpit.hosts.wire import Wire
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

_ERRNO_WORDS = {
    errno.ECONNREFUSED: (
        "connection refused: the machine is up, but nothing listens on that port",
        "look whether sshd runs there, and whether the port is right",
    ),
    errno.EHOSTUNREACH: ("no route to it", "is the instance running, is the VPN up?"),
    errno.ENETUNREACH: ("no network towards it", "is the VPN up?"),
    errno.ECONNRESET: ("the connection was reset", "look at sshd's log on that machine"),
}

DIALS_AGAIN = "the cockpit dials again by itself; when it stays away, look at that machine and the network to it"


def what_of(target: SshTarget) -> str:
    """How faults name a connection."""
    return f"SSH to {target.alias} ({target.address})"


def connect_fault(target: SshTarget, error: Exception, *, timeout_s: float) -> Fault:
    """TCP never came to be."""
    what = what_of(target)
    if isinstance(error, socket.gaierror):
        why = f"the name {target.hostname!r} has no address ({error.strerror})"
        return Fault(FaultKind.UNREACHABLE, what, why, "check the name, DNS and the VPN")
    if isinstance(error, TimeoutError) or (isinstance(error, OSError) and error.errno == errno.ETIMEDOUT):
        why = f"no TCP connection within {timeout_s:g} s"
        step = "is the instance running, does its security group let this machine in, is the VPN up?"
        return Fault(FaultKind.UNREACHABLE, what, why, step)
    number = error.errno if isinstance(error, OSError) else None
    if number in _ERRNO_WORDS:
        return Fault(FaultKind.UNREACHABLE, what, *_ERRNO_WORDS[number])
    return Fault(FaultKind.UNREACHABLE, what, reason(error))


def reason(error: BaseException) -> str:
    """The library's own words, harmless and never empty."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return printable(text.strip().splitlines()[0] if text.strip() else type(error).__name__)


class DroppedError(FaultError):
    """The server closed before its banner: it may do better in a moment (MaxStartups)."""


def handshake_error(target: SshTarget, error: Exception, wire: Wire, took_s: float) -> FaultError:
    """TCP came to be, SSH did not."""
    note = wire.note()
    what = what_of(target)
    if note:
        why = f"the proxy failed: {printable(note)}"
        return FaultError(Fault(FaultKind.UNREACHABLE, what, why, "run the ProxyCommand by hand"))
    if wire.ended and not wire.first.startswith(b"SSH-"):
        return _dropped(what, wire.first)
    if wire.received == 0:
        why = f"it accepts TCP but never answers ({took_s:.0f} s without a banner)"
        step = "the machine is most likely hung or out of memory: look at its console"
        return FaultError(Fault(FaultKind.TIMEOUT, what, why, step))
    if not wire.first.startswith(b"SSH-"):
        why = f"what answers there is not SSH, it says {printable(wire.first)!r}"
        return FaultError(Fault(FaultKind.UNREACHABLE, what, why, "check the port"))
    return FaultError(_halfway(what, error, wire, took_s))


def _dropped(what: str, said: bytes) -> FaultError:
    why = "it accepts the connection and closes it at once"
    if said:
        why += f", saying {printable(said.strip())!r}"
    step = "sshd may be overloaded (MaxStartups), starting up, or refusing this address; look at its log"
    return DroppedError(Fault(FaultKind.UNREACHABLE, what, why, step))


def _halfway(what: str, error: Exception, wire: Wire, took_s: float) -> Fault:
    if isinstance(error, IncompatiblePeer):
        why = f"no algorithm in common: {reason(error)}"
        return Fault(FaultKind.UNREACHABLE, what, why, "its sshd is very old or locked down")
    if wire.ended:
        why = f"it closed the connection during the handshake ({reason(error)})"
        return Fault(FaultKind.UNREACHABLE, what, why, "look at sshd's log on that machine")
    why = f"the handshake stopped after {took_s:.0f} s ({reason(error)})"
    return Fault(FaultKind.TIMEOUT, what, why, "the machine is most likely hung: look at its console")


def session_fault(what: str, error: Exception) -> FaultError:
    """A session could not be opened or used."""
    if isinstance(error, FaultError):
        return error
    if isinstance(error, ChannelException) and error.code == 1:
        why = "sshd allows no sessions on this connection"
        return FaultError(Fault(FaultKind.DENIED, what, why, "look at MaxSessions in its sshd_config"))
    if isinstance(error, (EOFError, OSError, AuthenticationException, SSHException)):
        return FaultError(Fault(FaultKind.UNREACHABLE, what, f"the connection was lost ({reason(error)})", DIALS_AGAIN))
    return FaultError(Fault(FaultKind.FAILED, what, reason(error)))


def no_session_fault(what: str, waited_s: float) -> FaultError:
    """Every session of the connection was in use until the deadline."""
    why = f"no free session within {waited_s:.1f} s; sshd limits how many run at once (MaxSessions)"
    return FaultError(Fault(FaultKind.TIMEOUT, what, why, "wait for running commands, or raise MaxSessions"))


def forward_fault(target: SshTarget, address: str, port: int, error: Exception) -> FaultError:
    """The other machine could not, or may not, connect to address:port for us."""
    what = f"{printable(address)}:{port} through {target.alias}"
    if isinstance(error, FaultError):
        return error
    if isinstance(error, ChannelException) and error.code == 1:
        why = f"sshd on {target.alias} forbids forwarding"
        step = "look at AllowTcpForwarding and PermitOpen in its sshd_config"
        return FaultError(Fault(FaultKind.DENIED, what, why, step))
    if isinstance(error, ChannelException) or "Unable to open channel" in str(error):
        why = f"{target.alias} cannot connect to it (refused, no route, or no such name)"
        return FaultError(Fault(FaultKind.UNREACHABLE, what, why, "is that machine powered up?"))
    return session_fault(what, error)
