"""A real OpenSSH server on a loopback address of its own, for tests. Needs no root; ended by pid.

with Sshd(tmp_path) as server:
    host = server.host()
"""

from __future__ import annotations

import contextlib
import getpass
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import pytest

from tests.rig.procs import descendants

if TYPE_CHECKING:
    from cockpit.hosts.dial import Limits
    from cockpit.hosts.ssh import SshHost

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_START_S = 15.0


def missing() -> str | None:
    """What keeps an sshd from being tested here, or None."""
    absent = [name for name in ("sshd", "ssh-keygen", "ssh") if shutil.which(name, path=_PATH) is None]
    return f"needs {', '.join(absent)} (Debian, Ubuntu: apt-get install openssh-server)" if absent else None


# For `pytestmark` of modules that need the server.
needs_sshd = [
    pytest.mark.sshd,
    pytest.mark.skipif(missing() is not None, reason=missing() or "sshd is there"),
]


def keygen(path: Path, kind: str = "ed25519", *, passphrase: str = "") -> Path:
    """A new key pair; returns the private file's path."""
    argv = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, timeout=30)
    return path


def sign_user(ca: Path, key: Path, principal: str) -> None:
    """Make key-cert.pub beside the key."""
    argv = ["ssh-keygen", "-q", "-s", str(ca), "-I", "test", "-n", principal, f"{key}.pub"]
    subprocess.run(argv, check=True, timeout=30)


def free_address() -> tuple[str, int]:
    """A loopback address and a port that nobody uses; on Linux not 127.0.0.1, so that tests cannot meet."""
    address = f"127.{random.randrange(20, 250)}.{random.randrange(1, 250)}.{random.randrange(1, 250)}"
    for candidate in (address, "127.0.0.1"):
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind((candidate, 0))
            return candidate, int(sock.getsockname()[1])
    raise OSError("no loopback address can be bound")


class Sshd:
    """The server, its keys, a client key that may log in, and an ssh config that names it `box`."""

    def __init__(
        self, directory: Path, *, host_key_kinds: Sequence[str] = ("ed25519",), options: Sequence[str] = ()
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o700)
        self.directory = directory
        self.user = getpass.getuser()
        self.address, self.port = free_address()
        self.host_keys = [keygen(directory / f"host_{kind}", kind) for kind in host_key_kinds]
        self.client_key = keygen(directory / "client")
        self.authorized_keys = directory / "authorized_keys"
        self.authorized_keys.write_text(Path(f"{self.client_key}.pub").read_text())
        self.known_hosts = directory / "known_hosts"
        self.trust()
        self.log = directory / "sshd.log"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def trust(self) -> None:
        """Write known_hosts anew, with every host key of the server."""
        lines = [f"{self.pattern} {self.public(key)}\n" for key in self.host_keys]
        self.known_hosts.write_text("".join(lines))

    @property
    def pattern(self) -> str:
        """The server's name in known_hosts."""
        return f"[{self.address}]:{self.port}"

    @staticmethod
    def public(key: Path) -> str:
        """Type and key of a public file, without the comment."""
        return " ".join(Path(f"{key}.pub").read_text().split()[:2])

    def __enter__(self) -> Sshd:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start listening, with the same keys as before when it is started again."""
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # sshd insists on it when it is root
        config = self.directory / "sshd_config"
        config.write_text("\n".join(self._config()) + "\n")
        program = shutil.which("sshd", path=_PATH)
        assert program is not None
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [program, "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._wait()

    def _config(self) -> list[str]:
        return [
            *self._options,  # sshd takes the first value it reads
            f"ListenAddress {self.address}:{self.port}",
            *(f"HostKey {key}" for key in self.host_keys),
            f"AuthorizedKeysFile {self.authorized_keys}",
            "PidFile none",
            "UsePAM no",
            "StrictModes no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
            "MaxStartups 100",
            "LogLevel VERBOSE",
        ]

    def _wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + _START_S
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection((self.address, self.port), 1) as sock:
                if sock.recv(4) == b"SSH-":
                    return
            time.sleep(0.02)
        raise AssertionError(f"sshd did not start: {self.log.read_text()[-2000:]}")

    @property
    def pid(self) -> int:
        """The server that listens."""
        assert self._process is not None
        return self._process.pid

    def sessions(self) -> list[int]:
        """Every process that serves a connection or runs a command, oldest first."""
        return descendants(self._process.pid) if self._process is not None else []

    def signal_sessions(self, number: int) -> list[int]:
        """Send a signal to all of them; returns their pids."""
        pids = self.sessions()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids

    def stop(self) -> None:
        """End the server and every session."""
        if self._process is None:
            return
        pids = self.sessions()
        self._process.terminate()
        self._process.wait(10)
        self._process = None
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def ssh_config(self, *extra: str, alias: str = "box") -> str:
        """One Host block for the client; `extra` lines come first, so they win."""
        lines = [
            f"Host {alias}",
            *extra,
            f"HostName {self.address}",
            f"Port {self.port}",
            f"User {self.user}",
            f"IdentityFile {self.client_key}",
            "IdentitiesOnly yes",
            "IdentityAgent none",
            f"UserKnownHostsFile {self.known_hosts}",
            "GlobalKnownHostsFile /dev/null",
        ]
        return "\n".join(lines) + "\n"

    def write_config(self, *extra: str) -> Path:
        """The same as a file of its own."""
        path = self.directory / f"ssh_config_{len(list(self.directory.iterdir()))}"
        path.write_text(self.ssh_config(*extra))
        return path

    def host(self, *extra: str, limits: Limits | None = None) -> SshHost:
        """A host for `box`; close it."""
        from cockpit.hosts.ssh import open_ssh

        return open_ssh("box", ssh_config=self.write_config(*extra), limits=limits)


@contextlib.contextmanager
def ssh_agent(directory: Path, *keys: Path) -> Iterator[str]:
    """A real ssh-agent that holds these keys; yields its socket's path."""
    path = str(directory / "agent.sock")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    try:
        # The socket is there a moment before anybody listens on it.
        assert wait_for(lambda: _accepts(path), _START_S)
        for key in keys:
            argv = ["ssh-add", "-q", str(key)]
            subprocess.run(argv, check=True, timeout=30, env={**os.environ, "SSH_AUTH_SOCK": path})
        yield path
    finally:
        agent.terminate()
        agent.wait(10)


def _accepts(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


def wait_for(condition: object, seconds: float = 10.0) -> bool:
    """Poll a callable until it is true; False when it never was."""
    assert callable(condition)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.05)
    return False
