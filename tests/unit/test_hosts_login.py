"""Keys, agents, certificates and host keys against a real sshd."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.models import Fault, FaultError, FaultKind
from tests.sshd import Sshd, keygen, needs_sshd, sign_user, ssh_agent

pytestmark = needs_sshd


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    with Sshd(tmp_path / "sshd") as running:
        yield running


def say_hello(server: Sshd, *options: str) -> bytes:
    host = server.host(*options)
    try:
        return host.run(["echo", "hello"], deadline_s=30).stdout
    finally:
        host.close()


def refusal(server: Sshd, *options: str, kind: FaultKind = FaultKind.AUTH) -> Fault:
    with pytest.raises(FaultError) as error:
        say_hello(server, *options)
    assert error.value.fault.kind is kind
    return error.value.fault


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_key_file(server: Sshd, tmp_path: Path, kind: str) -> None:
    key = keygen(tmp_path / "key", kind)
    server.authorized_keys.write_text(Path(f"{key}.pub").read_text())
    assert say_hello(server, f"IdentityFile {key}") == b"hello\n"


def test_a_wrong_key_names_what_was_offered(server: Sshd, tmp_path: Path) -> None:
    stranger = keygen(tmp_path / "stranger")
    server.authorized_keys.write_text("")
    fault = refusal(server, f"IdentityFile {stranger}")
    assert str(stranger) in fault.why
    assert "publickey" in fault.why  # what the server takes
    assert "authorized_keys" in fault.next_step


def test_no_key_at_all(server: Sshd, tmp_path: Path) -> None:
    server.client_key.unlink()
    fault = refusal(server)
    assert "no usable key" in fault.why
    assert "is not there" in fault.why


def test_a_locked_key_says_ssh_add(server: Sshd, tmp_path: Path) -> None:
    locked = keygen(tmp_path / "locked", passphrase="secret words")
    server.client_key.unlink()
    fault = refusal(server, f"IdentityFile {locked}")
    assert "passphrase" in fault.why
    assert f"ssh-add {locked}" in fault.next_step


def test_agent(server: Sshd, tmp_path: Path) -> None:
    key = keygen(tmp_path / "key")
    server.authorized_keys.write_text(Path(f"{key}.pub").read_text())
    with ssh_agent(tmp_path, key) as path:
        # The file itself cannot be used: the agent's copy is found by the public half.
        key.write_text("gone")
        options = (f"IdentityAgent {path}", f"IdentityFile {key}")
        assert say_hello(server, *options) == b"hello\n"
        key.unlink()
        server.client_key.unlink()
        assert say_hello(server, f"IdentityAgent {path}", "IdentitiesOnly no") == b"hello\n"


def test_the_agents_other_keys_stay_out_when_a_key_is_named(server: Sshd, tmp_path: Path) -> None:
    keys = [keygen(tmp_path / f"other{number}") for number in range(8)]  # more than MaxAuthTries
    with ssh_agent(tmp_path, *keys) as path:
        assert say_hello(server, f"IdentityAgent {path}") == b"hello\n"
        assert say_hello(server, f"IdentityAgent {path}", "IdentitiesOnly no") == b"hello\n"
        server.client_key.unlink()
        fault = refusal(server, f"IdentityAgent {path}", "IdentitiesOnly no")
    assert "MaxAuthTries" in fault.why
    assert "IdentitiesOnly" in fault.next_step


def test_a_locked_key_that_the_agent_holds(server: Sshd, tmp_path: Path) -> None:
    key = keygen(tmp_path / "key")
    server.authorized_keys.write_text(Path(f"{key}.pub").read_text())
    with ssh_agent(tmp_path, key) as path:
        change = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret words", "-f", str(key)]
        subprocess.run(change, check=True, capture_output=True)
        Path(f"{key}.pub").unlink()
        assert say_hello(server, f"IdentityAgent {path}", f"IdentityFile {key}") == b"hello\n"


def test_a_dead_agent_is_named(server: Sshd, tmp_path: Path) -> None:
    server.client_key.unlink()
    fault = refusal(server, f"IdentityAgent {tmp_path}/nobody.sock")
    assert "nobody.sock" in fault.why


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
@pytest.mark.parametrize("where", ["beside", "CertificateFile", "agent"])
def test_user_certificate(tmp_path: Path, kind: str, where: str) -> None:
    ca = keygen(tmp_path / "ca")
    with Sshd(tmp_path / "sshd", options=[f"TrustedUserCAKeys {ca}.pub"]) as server:
        server.authorized_keys.write_text("")
        key = keygen(tmp_path / "key", kind)
        refusal(server, f"IdentityFile {key}")
        sign_user(ca, key, server.user)
        if where == "beside":
            assert say_hello(server, f"IdentityFile {key}") == b"hello\n"
        elif where == "CertificateFile":
            moved = Path(f"{key}-cert.pub").rename(tmp_path / "elsewhere.pub")
            options = (f"IdentityFile {key}", f"CertificateFile {moved}")
            assert say_hello(server, *options) == b"hello\n"
        else:
            with ssh_agent(tmp_path, key) as path:
                server.client_key.unlink()
                Path(f"{key}-cert.pub").unlink()
                assert say_hello(server, f"IdentityAgent {path}", "IdentitiesOnly no") == b"hello\n"


def test_an_unknown_host_is_refused_before_any_key_is_shown(server: Sshd) -> None:
    server.known_hosts.write_text("")
    fault = refusal(server, kind=FaultKind.HOST_KEY)
    shown = subprocess.run(
        ["ssh-keygen", "-lf", f"{server.host_keys[0]}.pub"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split()[1] in fault.why
    assert "Accepted" not in server.log.read_text()
    assert server.known_hosts.read_text() == ""  # nothing is ever added silently


def test_the_printed_command_shows_the_same_key(server: Sshd) -> None:
    server.known_hosts.write_text("")
    fault = refusal(server, kind=FaultKind.HOST_KEY)
    command = fault.next_step.split("then: ", 1)[1]
    # `yes` typed after comparing, as a person would; ssh reads it from the askpass program.
    askpass = server.directory / "askpass"
    askpass.write_text('#!/bin/sh\necho "$1" >> "$0.asked"\necho yes\n')
    askpass.chmod(0o700)
    env = {
        "PATH": "/usr/bin:/bin",
        "SSH_ASKPASS": str(askpass),
        "SSH_ASKPASS_REQUIRE": "force",
        "DISPLAY": ":0",
    }
    subprocess.run(["sh", "-c", command], check=True, env=env, stdin=subprocess.DEVNULL, timeout=30)
    shown = re.search(r"SHA256:[^ ]+", fault.why)
    assert shown is not None
    assert shown[0] in Path(f"{askpass}.asked").read_text()
    assert say_hello(server) == b"hello\n"


def test_a_changed_key_is_refused_loudly(server: Sshd, tmp_path: Path) -> None:
    other = keygen(tmp_path / "other")
    server.known_hosts.write_text(f"{server.pattern} {server.public(other)}\n")
    fault = refusal(server, kind=FaultKind.HOST_KEY)
    assert "HAS CHANGED" in fault.why
    assert f"{server.known_hosts}:1" in fault.why


def test_hashed_and_damaged_known_hosts(server: Sshd) -> None:
    subprocess.run(["ssh-keygen", "-H", "-f", str(server.known_hosts)], check=True, capture_output=True)
    with server.known_hosts.open("a") as stream:
        stream.write("damaged line\n@cert-authority * nonsense\n")
    host = server.host()
    assert host.run(["true"], deadline_s=30).rc == 0
    assert len(host.warnings) == 2
    host.close()


def test_many_known_hosts(server: Sshd) -> None:
    own = server.known_hosts.read_text()
    other = own.split(" ", 1)[1]
    server.known_hosts.write_text("".join(f"node{number} {other}" for number in range(3000)) + own)
    assert say_hello(server) == b"hello\n"


@pytest.mark.parametrize("known", ["rsa", "ecdsa", "ed25519"])
def test_a_host_known_by_one_type_only_is_known(tmp_path: Path, known: str) -> None:
    with Sshd(tmp_path, host_key_kinds=("ed25519", "rsa", "ecdsa")) as server:
        server.known_hosts.write_text(f"{server.pattern} {server.public(server.directory / f'host_{known}')}\n")
        assert say_hello(server) == b"hello\n"
