"""Through other machines: ProxyJump, ProxyCommand, and the pool of nodes behind a head."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.config import NodeAccess
from cockpit.hosts import open_host, retry_now
from cockpit.hosts.local import LocalHost
from cockpit.hosts.pool import NodePool
from cockpit.hosts.ssh import SshHost, open_ssh
from cockpit.models import FaultError, FaultKind
from tests.sshd import Sshd, needs_sshd, wait_for

pytestmark = needs_sshd


@pytest.fixture(scope="module")
def bastion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("bastion")) as running:
        yield running


@pytest.fixture(scope="module")
def inner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("inner")) as running:
        yield running


def hello(text: str, config: Path) -> bytes:
    host = open_ssh(text, ssh_config=config)
    try:
        return host.run(["sh", "-c", "echo $SSH_CONNECTION"], deadline_s=40).stdout
    finally:
        host.close()


def write(tmp_path: Path, *blocks: str) -> Path:
    path = tmp_path / "ssh_config"
    path.write_text("".join(blocks))
    return path


def test_proxy_jump(tmp_path: Path, bastion: Sshd, inner: Sshd) -> None:
    config = write(
        tmp_path,
        bastion.ssh_config(alias="bastion"),
        inner.ssh_config("ProxyJump bastion", alias="inner"),
        inner.ssh_config("ProxyJump none", alias="straight"),
        bastion.ssh_config(alias="second"),
        inner.ssh_config("ProxyJump bastion,second", alias="far"),
    )
    before = bastion.log.read_text().count("Accepted publickey")
    assert inner.address.encode() in hello("inner", config)
    assert bastion.log.read_text().count("Accepted publickey") == before + 1
    hello("straight", config)
    assert bastion.log.read_text().count("Accepted publickey") == before + 1
    hello("far", config)
    assert bastion.log.read_text().count("Accepted publickey") == before + 3


def test_a_jump_in_a_circle_ends(tmp_path: Path, bastion: Sshd) -> None:
    config = write(
        tmp_path,
        bastion.ssh_config("ProxyJump b", alias="a"),
        bastion.ssh_config("ProxyJump a", alias="b"),
    )
    with pytest.raises(FaultError) as error:
        hello("a", config)
    assert "circle" in error.value.fault.why


def test_a_jump_host_that_is_an_option_is_refused(tmp_path: Path, inner: Sshd) -> None:
    config = write(tmp_path, inner.ssh_config("ProxyJump=-oProxyCommand=id", alias="inner"))
    with pytest.raises(FaultError):
        hello("inner", config)


def test_a_jump_host_that_refuses_names_itself(tmp_path: Path, bastion: Sshd, inner: Sshd) -> None:
    unknown = tmp_path / "empty"
    unknown.write_text("")
    config = write(
        tmp_path,
        bastion.ssh_config(f"UserKnownHostsFile {unknown}", alias="bastion"),
        inner.ssh_config("ProxyJump bastion", alias="inner"),
    )
    with pytest.raises(FaultError) as error:
        hello("inner", config)
    assert error.value.fault.kind is FaultKind.HOST_KEY
    assert "bastion" in error.value.fault.what


def test_proxy_command(tmp_path: Path, bastion: Sshd, inner: Sshd) -> None:
    config = tmp_path / "ssh_config"
    # Talks more on stderr than a pipe holds, as a verbose helper does.
    noise = "head -c 300000 /dev/zero >&2"
    command = f'ProxyCommand sh -c "{noise}; exec ssh -F {config} -W %h:%p bastion"'
    config.write_text(bastion.ssh_config(alias="bastion") + inner.ssh_config(command, alias="inner"))
    assert inner.address.encode() in hello("inner", config)


def test_a_failing_proxy_command_is_quoted(tmp_path: Path, inner: Sshd) -> None:
    config = write(tmp_path, inner.ssh_config("ProxyCommand echo session-manager is missing >&2; exit 3"))
    with pytest.raises(FaultError) as error:
        hello("box", config)
    assert error.value.fault.kind is FaultKind.UNREACHABLE
    assert "session-manager is missing" in error.value.fault.why


def pool_config(tmp_path: Path, bastion: Sshd, inner: Sshd) -> Path:
    """One config in which the node has no entry of its own but a key and a known host."""
    both = tmp_path / "known_hosts"
    both.write_text(bastion.known_hosts.read_text() + inner.known_hosts.read_text())
    inner.authorized_keys.write_text(Path(f"{bastion.client_key}.pub").read_text())
    general = f"Host *\n  IdentityFile {bastion.client_key}\n  IdentityAgent none\n  IdentitiesOnly yes\n"
    general += f"  UserKnownHostsFile {both}\n  GlobalKnownHostsFile /dev/null\n"
    return write(tmp_path, bastion.ssh_config(f"UserKnownHostsFile {both}", alias="head"), general)


@pytest.fixture
def node_pool(tmp_path: Path, bastion: Sshd, inner: Sshd) -> Iterator[NodePool]:
    original = inner.authorized_keys.read_text()
    config = pool_config(tmp_path, bastion, inner)
    head = open_ssh("head", ssh_config=config)
    pool = NodePool(head, NodeAccess(port=inner.port), ssh_config=config)
    yield pool
    pool.close()
    head.close()
    inner.authorized_keys.write_text(original)


def test_nodes_through_the_head(node_pool: NodePool, inner: Sshd, bastion: Sshd) -> None:
    before = bastion.log.read_text().count("Accepted publickey")
    node = node_pool.node(inner.address)
    for _ in range(2):
        assert inner.address.encode() in node.run(["sh", "-c", "echo $SSH_CONNECTION"], deadline_s=40).stdout
    assert node_pool.node(inner.address) is node
    assert bastion.log.read_text().count("Accepted publickey") == before + 1


def test_nodes_are_checked_as_strictly_as_the_head(
    tmp_path: Path, node_pool: NodePool, inner: Sshd, bastion: Sshd
) -> None:
    (tmp_path / "known_hosts").write_text(bastion.known_hosts.read_text())
    with pytest.raises(FaultError) as error:
        node_pool.node(inner.address).run(["true"], deadline_s=40)
    fault = error.value.fault
    assert fault.kind is FaultKind.HOST_KEY
    assert inner.pattern in fault.what
    assert "-J head" in fault.next_step


@contextmanager
def strangers(tmp_path: Path, bastion: Sshd, inner: Sshd, access: NodeAccess) -> Iterator[NodePool]:
    """A pool with a head that is known and nodes that are not."""
    original = inner.authorized_keys.read_text()
    config = pool_config(tmp_path, bastion, inner)
    (tmp_path / "known_hosts").write_text(bastion.known_hosts.read_text())
    head = open_ssh("head", ssh_config=config)
    pool = NodePool(head, replace(access, port=inner.port, host_keys="head"), ssh_config=config)
    try:
        yield pool
    finally:
        pool.close()
        head.close()
        inner.authorized_keys.write_text(original)


def pinned(node: object, key: bytes) -> bool:
    """Whether this key is the one that the node is held to, or becomes so now."""
    assert isinstance(node, SshHost)
    target = node.target()
    assert target.pins is not None
    return target.pins.holds(target.alias, key)


def test_a_stranger_is_held_to_the_key_that_it_first_showed(tmp_path: Path, bastion: Sshd, inner: Sshd) -> None:
    with strangers(tmp_path, bastion, inner, NodeAccess()) as pool:
        node = pool.node(inner.address)
        assert node.run(["true"], deadline_s=40).rc == 0
        shown = base64.b64decode(inner.public(inner.host_keys[0]).split()[1])
        assert pinned(node, shown)
        assert not pinned(node, b"another")


def test_a_login_to_the_node_of_before_pins_nothing_for_the_next(tmp_path: Path, bastion: Sshd, inner: Sshd) -> None:
    with strangers(tmp_path, bastion, inner, NodeAccess(user="me")) as pool:
        old = pool.node("n1", "10.0.0.1")
        assert isinstance(old, SshHost)
        under_way = old.target()  # what a dial in flight has in its hands
        pool.forget("n1")
        assert under_way.pins is not None
        assert under_way.pins.holds("n1", b"old")
        new = pool.node("n1", "10.0.0.2")
        assert pinned(new, b"new")
        assert not pinned(new, b"old")


def test_a_node_that_made_room_for_another_keeps_its_key(tmp_path: Path, bastion: Sshd, inner: Sshd) -> None:
    config = inner.write_config()
    pool = NodePool(LocalHost(), NodeAccess(max=1, host_keys="head"), ssh_config=config, guests=0)
    assert pinned(pool.node("n1"), b"first")
    pool.node("n2")
    assert not pinned(pool.node("n1"), b"second")
    pool.close()


def test_nothing_is_trusted_at_first_sight_without_the_head(tmp_path: Path, bastion: Sshd, inner: Sshd) -> None:
    with strangers(tmp_path, bastion, inner, NodeAccess(via="direct")) as pool:
        node = pool.node("n1", "10.0.0.1")
        assert isinstance(node, SshHost)
        assert node.target().pins is None


def test_a_node_that_is_down_is_told_by_the_head(node_pool: NodePool) -> None:
    with pytest.raises(FaultError) as error:
        node_pool.node("127.0.0.2").run(["true"], deadline_s=40)
    assert error.value.fault.kind is FaultKind.UNREACHABLE
    assert "head cannot connect to it" in error.value.fault.why


@pytest.mark.parametrize("name", ["-oProxyCommand=id", "a b", "$(id)", ""])
def test_hostile_node_names_are_refused(node_pool: NodePool, name: str) -> None:
    with pytest.raises(FaultError):
        node_pool.node(name)


def test_the_longest_unused_is_given_up_but_none_in_use(tmp_path: Path, bastion: Sshd, inner: Sshd) -> None:
    access = NodeAccess(via="head", port=inner.port, max=2)
    pool = NodePool(LocalHost(), access, ssh_config=inner.write_config(), guests=0)
    first, second = pool.node("127.0.0.1"), pool.node("127.0.0.2")
    assert pool.node("127.0.0.1") is first
    pool.node("127.0.0.3")  # in place of the second
    assert pool.node("127.0.0.1") is first
    assert pool.node("127.0.0.2") is not second
    with pytest.raises(FaultError) as error:
        second.run(["true"], deadline_s=5)
    assert error.value.fault.kind is FaultKind.UNREACHABLE
    pool.close()
    with pytest.raises(FaultError):
        pool.node("127.0.0.1")


def test_a_node_in_use_keeps_its_place(tmp_path: Path, bastion: Sshd, inner: Sshd) -> None:
    config = write(tmp_path, inner.ssh_config(alias=inner.address))
    pool = NodePool(LocalHost(), NodeAccess(via="direct", port=inner.port, max=1), ssh_config=config, guests=0)
    stream = pool.node(inner.address).stream(["cat"], open_deadline_s=30)
    with pytest.raises(FaultError) as error:
        pool.node("127.0.0.9")
    assert "nodes.max" in error.value.fault.next_step
    stream.close()
    assert wait_for(lambda: pool.node("127.0.0.9") is not None)
    pool.close()


def test_a_node_that_nobody_watches_is_asked_beside_all_that_are(tmp_path: Path, bastion: Sshd, inner: Sshd) -> None:
    """A check of the nodes beyond `nodes.max` needs no place of those that stream."""
    config = write(tmp_path, inner.ssh_config(alias=inner.address) + inner.ssh_config(alias="guest"))
    pool = NodePool(LocalHost(), NodeAccess(via="direct", port=inner.port, max=1), ssh_config=config)
    stream = pool.node(inner.address).stream(["cat"], open_deadline_s=30)
    assert pool.node("guest").run(["echo", "here"], deadline_s=30).stdout == b"here\n"
    stream.close()
    pool.close()


def test_many_logins_through_a_server_that_drops_them(tmp_path: Path) -> None:
    with Sshd(tmp_path / "sshd", options=["MaxStartups 2:80:6"]) as server:
        # Many names for one machine, so that each is a connection of its own.
        names = [f"n{number}" for number in range(16)]
        config = write(tmp_path, *(server.ssh_config(alias=name) for name in names))
        pool = NodePool(LocalHost(), NodeAccess(via="direct", port=server.port), ssh_config=config)
        results: list[bytes] = []

        def ask(name: str) -> None:
            results.append(pool.node(name).run(["echo", name], deadline_s=60).stdout)

        threads = [threading.Thread(target=ask, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        pool.close()
    assert sorted(results) == sorted(f"{name}\n".encode() for name in names)


def test_open_host_gives_what_the_config_says(tmp_path: Path, inner: Sshd) -> None:
    host = open_host("box", ssh_config=inner.write_config())
    assert host.name == "box"
    assert host.run(["true"], deadline_s=30).rc == 0
    retry_now(host)
    host.close()
    with pytest.raises(FaultError):
        host.run(["true"], deadline_s=30)


def test_nodes_behind_an_open_host_take_its_login(tmp_path: Path, bastion: Sshd, inner: Sshd) -> None:
    config = write(tmp_path, bastion.ssh_config("User headuser", alias="head"))
    pool = NodePool(open_host("head", ssh_config=config), NodeAccess(), ssh_config=config)
    node = pool.node("10.0.0.9")
    assert isinstance(node, SshHost)
    assert node.target().user == "headuser"
    assert node.target().via == "head"
