"""known_hosts files of every quality, and what is said about a key that is not in them."""

from __future__ import annotations

import base64
import hmac
import os
import subprocess
from pathlib import Path

import pytest

from cockpit.hosts.host_keys import HostKeyCheck, Pins
from cockpit.hosts.known_hosts import KnownHosts, fingerprint, load
from cockpit.hosts.ssh_target import SshTarget
from cockpit.models import Fault, FaultError, FaultKind
from tests.sshd import keygen, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")


def make_key(kind: str = "ssh-ed25519", seed: int = 0) -> bytes:
    """A key in wire format that no one can log in with."""
    body = seed.to_bytes(4, "big") * 8
    return len(kind).to_bytes(4, "big") + kind.encode() + (32).to_bytes(4, "big") + body


def line(names: str, blob: bytes, kind: str = "ssh-ed25519") -> str:
    return f"{names} {kind} {base64.b64encode(blob).decode()}\n"


def check(path: Path, hostname: str = "head", port: int = 22, **more: str) -> HostKeyCheck:
    target = SshTarget("head", hostname, "me", port, user_known_hosts_files=(str(path),), **more)  # type: ignore[arg-type]
    return HostKeyCheck.for_target(target)


def refusal(checked: HostKeyCheck, kind: str, blob: bytes) -> Fault:
    with pytest.raises(FaultError) as error:
        checked.verify(kind, blob)
    assert error.value.fault.kind is FaultKind.HOST_KEY
    return error.value.fault


def test_plain_port_pattern_and_alias_names(tmp_path: Path) -> None:
    key, other = make_key(seed=1), make_key(seed=2)
    path = tmp_path / "known_hosts"
    path.write_text(
        line("head,10.0.0.1", key) + line("[odd]:2222", key) + line("*.prod,!bad.prod", key) + line("x", other)
    )
    for hostname, port in (("HEAD", 22), ("10.0.0.1", 22), ("odd", 2222), ("a.prod", 22)):
        check(path, hostname, port).verify("ssh-ed25519", key)
    check(path, "whatever", host_key_alias="x").verify("ssh-ed25519", other)
    for hostname, port in (("bad.prod", 22), ("odd", 22), ("odd", 2223)):
        refusal(check(path, hostname, port), "ssh-ed25519", key)


def test_a_key_of_the_bare_name_is_good_for_other_ports(tmp_path: Path) -> None:
    key = make_key(seed=1)
    path = tmp_path / "known_hosts"
    path.write_text(line("head", key))
    check(path, "head", 2222).verify("ssh-ed25519", key)
    assert "not in known_hosts" in refusal(check(path, "head", 2222), "ssh-ed25519", make_key(seed=2)).why


def test_names_hashed_by_ssh_keygen(tmp_path: Path) -> None:
    key = make_key(seed=3)
    path = tmp_path / "known_hosts"
    path.write_text(line("head", key) + line("[head]:2222", make_key(seed=4)))
    subprocess.run(["ssh-keygen", "-H", "-f", str(path)], check=True, capture_output=True)
    assert "head" not in path.read_text()
    check(path).verify("ssh-ed25519", key)
    check(path, "head", 2222).verify("ssh-ed25519", make_key(seed=4))
    assert "HAS CHANGED" in refusal(check(path), "ssh-ed25519", make_key(seed=5)).why


def test_damaged_lines_lose_nothing_else(tmp_path: Path) -> None:
    key = make_key(seed=1)
    good = line("head", key)
    path = tmp_path / "known_hosts"
    damaged = [
        "head ssh-ed25519\n",
        "head ssh-ed25519 not-base64!!\n",
        "head ssh-rsa " + base64.b64encode(key).decode() + "\n",
        "|1|broken ssh-ed25519 " + base64.b64encode(key).decode() + "\n",
        "@nonsense " + good,
        "@cert-authority *.prod " + good.split(" ", 1)[1],
        "\x00\xff\n",
    ]
    path.write_text("# comment\n\n" + "".join(damaged) + good, encoding="latin-1")
    checked = check(path)
    checked.verify("ssh-ed25519", key)
    assert [text.split(":")[1] for text in checked.known.warnings] == [str(n) for n in range(3, 10)]
    assert "host certificates" in refusal(check(path, "a.prod"), "ssh-ed25519", key).why


def test_revoked_key_is_refused_even_when_another_line_holds_it(tmp_path: Path) -> None:
    key = make_key(seed=1)
    path = tmp_path / "known_hosts"
    for text in (line("head", key) + "@revoked " + line("*", key), "@revoked " + line("head", key)):
        path.write_text(text)
        os.utime(path, ns=(1, len(text)))
        assert "REVOKED" in refusal(check(path), "ssh-ed25519", key).why


def test_unknown_key_names_fingerprint_and_command(tmp_path: Path) -> None:
    real = keygen(tmp_path / "key")
    public = Path(f"{real}.pub").read_text().split()
    blob = base64.b64decode(public[1])
    shown = subprocess.run(["ssh-keygen", "-lf", f"{real}.pub"], capture_output=True, text=True, check=True)
    fault = refusal(check(tmp_path / "absent", "head", 2222), "ssh-ed25519", blob)
    assert shown.stdout.split()[1] in fault.why
    assert fingerprint(blob) == shown.stdout.split()[1]
    assert "StrictHostKeyChecking=ask" in fault.next_step
    assert "-p 2222" in fault.next_step


def test_known_hosts_that_keep_nothing_are_named() -> None:
    target = SshTarget("head", "head", "me", user_known_hosts_files=("/dev/null",))
    fault = refusal(HostKeyCheck.for_target(target), "ssh-ed25519", make_key())
    assert "UserKnownHostsFile" in fault.next_step


def test_changed_key_names_both_fingerprints_and_the_line(tmp_path: Path) -> None:
    old, new = make_key(seed=1), make_key(seed=2)
    path = tmp_path / "known_hosts"
    path.write_text("# first\n" + line("[head]:2222", old))
    fault = refusal(check(path, "head", 2222), "ssh-ed25519", new)
    for part in (fingerprint(old), fingerprint(new), f"{path}:2", "HAS CHANGED"):
        assert part in fault.why
    command = fault.next_step.split(": ", 1)[1]
    assert command == f"ssh-keygen -R '[head]:2222' -f {path}"


def test_known_types_are_asked_for_first(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text(line("head", make_key("ssh-rsa"), "ssh-rsa"))
    offered = ("ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256")
    assert check(path).preferred(offered)[:2] == ("rsa-sha2-512", "rsa-sha2-256")
    assert check(path, "stranger").preferred(offered) == offered
    fault = refusal(check(path), "ssh-ed25519", make_key())
    assert "only other types: ssh-rsa" in fault.why


def test_a_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "known_hosts"
    path.write_text(line("head", make_key(seed=1)))
    first = load(str(path))
    assert load(str(path)) is first
    path.write_text(line("head", make_key(seed=2)) + line("other", make_key(seed=3)))
    assert load(str(path)).plain("head")[0].blob == make_key(seed=2)


def test_looking_up_does_not_walk_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "known_hosts"
    names = [f"node{number}" for number in range(3000)]
    path.write_text("".join(line(name, make_key(seed=number)) for number, name in enumerate(names)))
    with path.open("a") as stream:
        stream.write(line("|1|" + base64.b64encode(b"s" * 20).decode() + "|" + "A" * 27 + "=", make_key()))
    tried: list[bytes] = []
    digest = hmac.digest

    def watched(key: bytes, text: bytes, name: str) -> bytes:
        tried.append(text)
        return digest(key, text, name)

    monkeypatch.setattr(hmac, "digest", watched)
    for number, name in enumerate(names):
        check(path, name).verify("ssh-ed25519", make_key(seed=number))
    assert tried == []  # no hashed line was tried, since the plain ones were enough
    refusal(check(path, "stranger"), "ssh-ed25519", make_key())
    assert tried == [b"stranger"]
    assert len(KnownHosts([str(path)]).plain("node2999")) == 1


def test_only_a_machine_without_any_known_key_is_trusted_at_first_sight(tmp_path: Path) -> None:
    path, pins = tmp_path / "known_hosts", Pins()
    rsa, seen = make_key("ssh-rsa", 1), make_key(seed=2)
    path.write_text(line("known,bare", rsa, "ssh-rsa") + line("[ported]:2222", rsa, "ssh-rsa"))
    for hostname, port in (("known", 22), ("bare", 2222), ("ported", 2222)):
        checked = check(path, hostname, port, pins=pins)  # type: ignore[arg-type]
        assert "known for this host are only other types: ssh-rsa" in refusal(checked, "ssh-ed25519", seen).why
    path.write_text(line("bare", make_key(seed=1)))
    checked = check(path, "bare", 2222, pins=pins)  # type: ignore[arg-type]
    assert "only other keys: ssh-ed25519" in refusal(checked, "ssh-ed25519", seen).why
    stranger = check(path, "stranger", pins=pins)  # type: ignore[arg-type]
    stranger.verify("ssh-ed25519", seen)
    stranger.verify("ssh-ed25519", seen)
    assert "another key before" in refusal(stranger, "ssh-ed25519", make_key(seed=3)).why
