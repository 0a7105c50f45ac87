"""From `user@host:port` and ssh configs to targets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.addresses import Written
from cockpit.hosts import open_host, ssh_target
from cockpit.hosts.ssh_target import SshTarget, parse_written, resolve
from cockpit.models import FaultError, FaultKind
from tests.sshd import missing

needs_ssh = pytest.mark.skipif(missing() is not None, reason=missing() or "")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("head", Written("head")),
        ("ec2-user@head.prod", Written("head.prod", "ec2-user")),
        ("ec2-user@10.0.0.1:2222", Written("10.0.0.1", "ec2-user", 2222)),
        ("[fe80::1%eth0]:2222", Written("fe80::1%eth0", None, 2222)),
        ("fe80::1", Written("fe80::1")),
        ("ssh://me@head:22", Written("head", "me", 22)),
        ("me@corp@head", Written("head", "me@corp")),
    ],
)
def test_written_forms(text: str, written: Written) -> None:
    assert parse_written(text) == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-oProxyCommand=id",
        "-lroot",
        "a b",
        "head;id",
        "$(id)",
        "a@-oX=y",
        "me@",
        "`id`",
        "head:0",
        "h:99999",
        "-x@h",
    ],
)
def test_hostile_and_broken_names_are_refused(text: str) -> None:
    with pytest.raises(FaultError):
        parse_written(text)
    with pytest.raises(FaultError):
        open_host(text)


CONFIG = """
Include {directory}/more
Host alias
  HostName head.example
  User bob
  Port 2200
  IdentityFile {directory}/key_%h_%r
  IdentitiesOnly yes
  IdentityAgent none
  ProxyJump ops@bastion:2222,inner
  ConnectTimeout 7
  UserKnownHostsFile {directory}/a {directory}/b
  HostKeyAlias the-head
Host nojump
  ProxyJump none
  ProxyCommand none
Host command
  ProxyCommand nc %h %p --user %r --literal %%
Match host tagged exec "test 1 = 1"
  User matched
Match host tagged exec "test 1 = 2"
  User wrong
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/agent")
    (tmp_path / "more").write_text("Host included\n  HostName from.include\n  Port 2299\n")
    path = tmp_path / "config"
    path.write_text(CONFIG.format(directory=tmp_path))
    return path


@needs_ssh
def test_alias_with_everything(config: Path) -> None:
    target = resolve("alias", ssh_config=config)
    directory = config.parent
    assert target == SshTarget(
        alias="alias",
        hostname="head.example",
        user="bob",
        port=2200,
        identity_files=(f"{directory}/key_head.example_bob",),
        identities_explicit=True,
        identities_only=True,
        identity_agent=None,
        user_known_hosts_files=(f"{directory}/a", f"{directory}/b"),
        global_known_hosts_files=("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"),
        proxy_jump=("ops@bastion:2222", "inner"),
        connect_timeout_s=7.0,
        host_key_alias="the-head",
        config_file=config,
    )


@needs_ssh
def test_what_is_written_wins_over_the_config(config: Path) -> None:
    target = resolve("alice@alias:99", ssh_config=config)
    assert (target.user, target.port, target.hostname) == ("alice", 99, "head.example")


@needs_ssh
def test_include_and_match_are_read_as_openssh_reads_them(config: Path) -> None:
    included = resolve("included", ssh_config=config)
    assert (included.hostname, included.port) == ("from.include", 2299)
    assert resolve("tagged", ssh_config=config).user == "matched"


def _with_openssh(monkeypatch: pytest.MonkeyPatch) -> None:
    if missing() is not None:
        pytest.skip(missing() or "")


def _without_openssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)


@pytest.mark.parametrize("reader", [_with_openssh, _without_openssh])
def test_both_readers_agree(
    config: Path, monkeypatch: pytest.MonkeyPatch, reader: Callable[[pytest.MonkeyPatch], None]
) -> None:
    reader(monkeypatch)
    alias = resolve("alias", ssh_config=config)
    assert (alias.hostname, alias.user, alias.port) == ("head.example", "bob", 2200)
    assert alias.proxy_jump == ("ops@bastion:2222", "inner")
    assert alias.identity_agent is None
    command = resolve("command", ssh_config=config)
    assert command.proxy_command == f"nc command 22 --user {command.user} --literal %"
    assert command.identity_agent == "/agent"
    assert not command.identities_explicit
    nojump = resolve("nojump", ssh_config=config)
    assert (nojump.proxy_jump, nojump.proxy_command) == ((), None)


@needs_ssh
def test_a_config_that_ssh_cannot_read_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("Host x\n  NoSuchKeyword yes\n")
    with pytest.raises(FaultError) as error:
        resolve("x", ssh_config=broken)
    assert f"{broken}" in error.value.fault.why
    with pytest.raises(FaultError) as error:
        resolve("x", ssh_config=tmp_path / "absent")
    assert error.value.fault.kind is FaultKind.MISSING


@needs_ssh
def test_a_match_exec_that_hangs_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_target, "RESOLVE_DEADLINE_S", 0.5)
    slow = tmp_path / "slow"
    slow.write_text('Match exec "sleep 30"\n  User nobody\n')
    with pytest.raises(FaultError) as error:
        resolve("x", ssh_config=slow)
    assert error.value.fault.kind is FaultKind.TIMEOUT


@needs_ssh
def test_hostname_of_the_config_cannot_be_an_option(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("Host x\n  HostName -oProxyCommand=id\n")
    with pytest.raises(FaultError):
        resolve("x", ssh_config=path)
