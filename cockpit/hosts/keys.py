"""Logging in: which keys are offered in which order, and what to say when none is taken."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import paramiko
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import PublicBlob
from paramiko.ssh_exception import (
    AuthenticationException,
    BadAuthenticationType,
    PasswordRequiredException,
    SSHException,
)

from cockpit.hosts.ssh_faults import reason
from cockpit.hosts.ssh_target import SshTarget
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

# A hung agent must not hold the connection for ever; a key that asks for a touch needs some seconds.
_AGENT_TIMEOUT_S = 20.0


class _AgentSocket(AgentSSH):
    """The agent behind one socket; paramiko's own class knows SSH_AUTH_SOCK only."""

    def __init__(self, path: str) -> None:
        super().__init__()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(_AGENT_TIMEOUT_S)
        try:
            sock.connect(path)
            self._connect(sock)  # type: ignore[attr-defined]
        except BaseException:
            sock.close()
            raise

    def close(self) -> None:
        self._close()  # type: ignore[attr-defined]


class Publishes(Protocol):
    """The part of a transport that authentication needs."""

    parting_words: str

    def auth_publickey(self, username: str, key: paramiko.PKey) -> list[str]: ...
    def auth_none(self, username: str) -> list[str]: ...
    def is_active(self) -> bool: ...
    def get_banner(self) -> bytes | None: ...


@dataclass
class Login:
    """One attempt to log in, and the notes for the fault when it fails."""

    target: SshTarget
    offered: list[str] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)  # files with a passphrase
    broken: list[str] = field(default_factory=list)
    agent_note: str = ""
    methods: tuple[str, ...] = ()

    def run(self, transport: Publishes) -> None:
        """Offer key after key; raises FaultError(AUTH) when the server takes none."""
        agent = self._agent()
        try:
            for label, key in self._candidates(agent):
                if self._offer(transport, label, key):
                    return
                if not transport.is_active():
                    break
        except BadAuthenticationType as error:
            self.methods = tuple(error.allowed_types)
        finally:
            if agent is not None:
                agent.close()
        if not self.methods and transport.is_active():
            self._ask_methods(transport)
        raise self._refused(transport)

    def _offer(self, transport: Publishes, label: str, key: paramiko.PKey) -> bool:
        self.offered.append(label)
        try:
            further = transport.auth_publickey(self.target.user, key)
        except BadAuthenticationType:
            raise
        except AuthenticationException as error:
            if "timeout" in str(error).lower():
                why = "the login got no answer; the machine may be overloaded, or its user database hangs"
                raise self._fault(FaultKind.TIMEOUT, why, "look at its console") from error
            return False
        except (SSHException, OSError, ValueError) as error:
            # Mostly an agent that refuses to sign: the next key may still do.
            self.offered[-1] += f" ({reason(error)})"
            return False
        if further:
            why = f"the key was taken, but the server also wants {', '.join(map(printable, further))}"
            raise self._fault(FaultKind.AUTH, why, "the cockpit cannot answer prompts: use a login without one")
        return True

    def _ask_methods(self, transport: Publishes) -> None:
        try:
            transport.auth_none(self.target.user)
        except BadAuthenticationType as error:
            self.methods = tuple(error.allowed_types)
        except (SSHException, OSError, EOFError):
            pass

    def _agent(self) -> _AgentSocket | None:
        path = self.target.identity_agent
        if path is None:
            return None
        try:
            return _AgentSocket(path)
        except (OSError, SSHException) as error:
            self.agent_note = f"the agent at {path} does not answer ({reason(error)})"
            return None

    def _candidates(self, agent: _AgentSocket | None) -> Iterator[tuple[str, paramiko.PKey]]:
        held = {key.blob: key for key in agent.get_keys()} if agent else {}
        yielded: set[bytes] = set()
        usable = False
        for path in self.target.identity_files:
            for label, key in self._from_file(path, held):
                usable = True
                yielded.add(key.asbytes())
                yield label, key
        # Every key offered counts against the server's MaxAuthTries (6 by default). When the config names
        # keys, the agent's others stay where they are, unless none of the named ones could be read.
        if self.target.identities_only or (self.target.identities_explicit and usable):
            return
        for blob, key in held.items():
            if blob not in yielded:
                if "-cert-" in key.get_name():
                    # paramiko would send the bare key under the certificate's name.
                    key.public_blob = PublicBlob(key.get_name(), blob)  # type: ignore[assignment]
                yield f"agent key {printable(key.comment)!r} ({key.get_name()})", key

    def _from_file(self, path: str, held: dict[bytes, AgentKey]) -> Iterator[tuple[str, paramiko.PKey]]:
        name = printable(path)
        from_agent = held.get(_public_blob(path))
        if from_agent is not None:
            for certificate in self._certificates(path):
                if _load_certificate(from_agent, certificate):
                    yield f"agent key for {name} with {printable(certificate)}", from_agent
                    from_agent.public_blob = None
            yield f"agent key for {name}", from_agent
            return
        key = self._load(path)
        if key is None:
            return
        for certificate in self._certificates(path):
            if _load_certificate(key, certificate):
                yield f"{name} with certificate {printable(certificate)}", key
        key.public_blob = None
        yield name, key

    def _certificates(self, path: str) -> list[str]:
        beside = f"{path}-cert.pub"
        paths = dict.fromkeys((*self.target.certificate_files, beside))
        return [name for name in paths if os.path.isfile(name)]

    def _load(self, path: str) -> paramiko.PKey | None:
        if not os.path.isfile(path):
            if self.target.identities_explicit:
                self.broken.append(f"{printable(path)} is not there")
            return None
        try:
            return paramiko.PKey.from_path(path)
        except (TypeError, PasswordRequiredException):  # cryptography's way to ask for a passphrase
            self.locked.append(path)
        except Exception as error:  # unknown key types, damaged files, no right to read
            self.broken.append(f"{printable(path)}: {reason(error)}")
        return None

    def _refused(self, transport: Publishes) -> FaultError:
        said = printable(transport.parting_words)
        if not transport.is_active() and "authentication" not in said.lower():
            why = f"the connection was lost during the login ({said or 'without a word'})"
            return self._fault(FaultKind.UNREACHABLE, why, "look at sshd's log on that machine")
        parts = [f"login as {printable(self.target.user)!r} was refused"]
        if self.offered:
            parts.append(f"offered: {', '.join(self.offered)}")
        else:
            parts.append("no usable key was found")
        parts += [f"{printable(path)} has a passphrase and is not in the agent" for path in self.locked]
        parts += self.broken
        parts += [self.agent_note] if self.agent_note else []
        if self.methods:
            parts.append(f"the server takes {', '.join(printable(name) for name in self.methods)}")
        if said:
            parts.append(f"it ended with {said!r} (MaxAuthTries)")
        banner = transport.get_banner()
        if banner:
            parts.append(f"it says: {printable(banner[:200].strip())}")
        return self._fault(FaultKind.AUTH, "; ".join(parts), self._advice())

    def _advice(self) -> str:
        if self.locked:
            add = f"ssh-add {printable(self.locked[0])}"
            if self.target.identity_agent and not self.agent_note:
                return f"run `{add}` and try again"
            return f'run `eval "$(ssh-agent)"` and `{add}`, then start the cockpit from that shell'
        if not self.offered:
            return "name a key with IdentityFile in the ssh config, or load one with ssh-add"
        if len(self.offered) > 3:
            return "name the right key with IdentityFile and set IdentitiesOnly yes"
        return "check the login name and that the key is in its authorized_keys (sshd's log names the cause)"

    def _fault(self, kind: FaultKind, why: str, next_step: str) -> FaultError:
        what = f"SSH to {self.target.alias} ({self.target.address})"
        return FaultError(Fault(kind, what, why, next_step))


def _public_blob(path: str) -> bytes:
    """The public half of a key file, by which the agent's copy is found; empty when it cannot be told.

    It stands in the .pub file beside it, and unencrypted at the head of a private key in OpenSSH's format
    (PROTOCOL.key), so that a file with a passphrase is recognised too.
    """
    public = path if path.endswith(".pub") else f"{path}.pub"
    with contextlib.suppress(OSError, ValueError, IndexError), open(public, "rb") as stream:
        return base64.b64decode(stream.readline().split()[1])
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as stream:
        body = b"".join(line for line in stream.read(65536).splitlines() if b"-----" not in line)
        return _from_openssh_format(base64.b64decode(body))
    return b""


def _from_openssh_format(data: bytes) -> bytes:
    magic = b"openssh-key-v1\0"
    if not data.startswith(magic):
        return b""
    message = paramiko.Message(data[len(magic) :])
    for _ in ("cipher", "kdf", "kdf options"):
        message.get_binary()
    return message.get_binary() if message.get_int() == 1 else b""


def _load_certificate(key: paramiko.PKey, path: str) -> bool:
    """Attach a certificate when it belongs to this key; CertificateFile entries are for any of them."""
    try:
        key.load_certificate(path)
    except (ValueError, OSError, SSHException, IndexError):
        return False
    blob = key.public_blob
    own = key.asbytes()
    # The certificate repeats the public key after its type and a nonce; another key's must not be tried.
    type_size = 4 + int.from_bytes(own[:4], "big")
    fits = blob is not None and own[type_size:] in blob.key_blob
    if not fits:
        key.public_blob = None
    return fits
