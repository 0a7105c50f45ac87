"""The argv of a shell on a node, as OpenSSH itself reads it (`ssh -G`)."""

from __future__ import annotations

import getpass
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.config import ClusterConfig, NodeAccess
from cockpit.hosts.shell_command import find_shell, shell_argv
from cockpit.hosts.ssh_target import SshTarget
from cockpit.models import FaultError
from tests.sshd import missing

needs_ssh = pytest.mark.skipif(missing() is not None, reason=missing() or "")
SSH_CONFIG = """
Host head
  HostName head.example
  User ec2-user
  Port 2200
Host known-*
  HostName %h.example
  User bob
Host proxied-*
  ProxyJump bastion
Host commanded-*
  ProxyCommand nc %h %p
"""


@pytest.fixture
def config(tmp_path: Path) -> ClusterConfig:
    path = tmp_path / "ssh config"
    path.write_text(SSH_CONFIG)
    return ClusterConfig("one", head="head", ssh_config=path)


def read_by_ssh(argv: list[str]) -> dict[str, str]:
    """What OpenSSH would do with it."""
    assert argv[0] == "ssh"
    done = subprocess.run(["ssh", "-G", *argv[1:]], capture_output=True, text=True, check=True, timeout=30)
    pairs = (line.partition(" ") for line in done.stdout.splitlines())
    return {keyword: value for keyword, _, value in pairs}


@needs_ssh
def test_through_the_head_with_the_heads_login_to_slurms_address(config: ClusterConfig) -> None:
    told = read_by_ssh(find_shell(config, "p5-3", "10.0.0.5"))
    assert (told["hostname"], told["user"], told["port"]) == ("10.0.0.5", "ec2-user", "22")
    assert told["proxyjump"] == "head"
    assert told["host"] == "p5-3"  # the user's own settings for the node's name hold


@needs_ssh
@pytest.mark.parametrize("node", ["proxied-1", "commanded-1"])
def test_behind_the_head_the_nodes_own_proxies_do_not_count(config: ClusterConfig, node: str) -> None:
    told = read_by_ssh(find_shell(config, node))
    assert told["proxyjump"] == "head"
    assert "proxycommand" not in told
    beside_it = read_by_ssh(find_shell(replace(config, head="local"), node))
    assert {"proxyjump", "proxycommand"}.isdisjoint(beside_it)


@needs_ssh
@pytest.mark.parametrize(("node", "keyword"), [("proxied-1", "proxyjump"), ("commanded-1", "proxycommand")])
def test_directly_they_do(config: ClusterConfig, node: str, keyword: str) -> None:
    direct = replace(config, nodes=NodeAccess(via="direct"))
    assert read_by_ssh(find_shell(direct, node)).get(keyword)


@needs_ssh
def test_what_the_ssh_config_says_of_the_node_comes_before_slurms_address(config: ClusterConfig) -> None:
    told = read_by_ssh(find_shell(config, "known-1", "10.0.0.9"))
    assert (told["hostname"], told["user"]) == ("known-1.example", "bob")


@needs_ssh
def test_login_and_port_of_the_config_come_first(config: ClusterConfig) -> None:
    access = NodeAccess(user="root", port=2222)
    for via in ("head", "direct"):
        told = read_by_ssh(find_shell(replace(config, nodes=replace(access, via=via)), "known-1"))
        assert (told["user"], told["port"]) == ("root", "2222")


@needs_ssh
@pytest.mark.parametrize(
    ("head", "jump"),
    [
        ("me@head:2222", "me@head:2222"),
        ("ssh://me@head:2222", "me@head:2222"),
        ("me@corp@head", "me@corp@head"),
        ("fe80::1", "[fe80::1]"),
        ("me@[fe80::1]:2222", "me@[fe80::1]:2222"),
    ],
)
def test_every_way_to_write_a_head_is_one_that_ssh_takes(config: ClusterConfig, head: str, jump: str) -> None:
    assert read_by_ssh(find_shell(replace(config, head=head), "p5-3"))["proxyjump"] == jump


def test_without_an_ssh_config_none_is_named() -> None:
    target = SshTarget("p5-3", "p5-3", getpass.getuser())
    argv = shell_argv(ClusterConfig("one"), target, None)
    assert "-F" not in argv
    assert argv[-2:] == ["--", "p5-3"]


@pytest.mark.parametrize("name", ["-oProxyCommand=id", "a b", "$(id)", "x;id", ""])
def test_hostile_names_are_refused(name: str) -> None:
    target = SshTarget(name, name, "root")
    with pytest.raises(FaultError):
        shell_argv(ClusterConfig("one"), target, None)
    if name:
        with pytest.raises(FaultError):
            shell_argv(ClusterConfig("one"), SshTarget("p5-3", "p5-3", "root"), None, name)
