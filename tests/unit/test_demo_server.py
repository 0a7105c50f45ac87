"""The demo behind its SSH server, through paramiko, the real OpenSSH client and the cockpit's own hosts."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import paramiko
import pytest
import yaml

from cockpit.demo.cluster import DemoCluster
from cockpit.hosts import open_host
from cockpit.models import FaultError

needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client here")


@pytest.fixture(name="demo", scope="module")
def a_demo() -> Iterator[DemoCluster]:
    demo = DemoCluster(clock=lambda: 1_795_993_917.0)  # time stands still, so that nodes stay as they are
    demo.start()
    yield demo
    demo.stop()


def folder_of(demo: DemoCluster) -> Path:
    assert demo.folder is not None
    return demo.folder


def connect(demo: DemoCluster) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    client.load_host_keys(str(folder_of(demo) / "known_hosts"))
    client.connect(
        "127.0.0.1",
        demo.port,
        "demo",
        key_filename=str(folder_of(demo) / "id_ed25519"),
        allow_agent=False,
        look_for_keys=False,
        timeout=10,
    )
    return client


@pytest.fixture(name="client")
def a_client(demo: DemoCluster) -> Iterator[paramiko.SSHClient]:
    client = connect(demo)
    yield client
    client.close()


def execute(client: paramiko.SSHClient, line: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    """Exit status, stdout and stderr of a command line."""
    transport = client.get_transport()
    assert transport is not None
    channel = transport.open_session(timeout=10)
    channel.settimeout(20)
    channel.exec_command(line)
    sender = threading.Thread(target=_feed, args=(channel, stdin), daemon=True)
    sender.start()
    stdout = channel.makefile("rb").read()
    stderr = channel.makefile_stderr("rb").read()
    sender.join(10)
    return channel.recv_exit_status(), stdout, stderr


def _feed(channel: paramiko.Channel, stdin: bytes) -> None:
    channel.sendall(stdin)
    channel.shutdown_write()


def gone(pid: int, within_s: float = 10.0) -> bool:
    """True when the process ends in time; one that only waits to be reaped has ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
        if done.stdout.strip()[:1] in (b"", b"Z"):
            return True
        time.sleep(0.05)
    return False


def test_simulated_program_answers(client: paramiko.SSHClient) -> None:
    rc, stdout, stderr = execute(client, "timeout -k 2 8 env LC_ALL=C squeue -h -o '%A|%j'")
    assert (rc, stderr) == (0, b"")
    assert len(stdout.splitlines()) > 15
    assert execute(client, "squeue -j 1") == (
        1,
        b"",
        b"slurm_load_jobs error: Invalid job id specified\n",
    )


def test_arguments_of_simulated_programs_are_not_evaluated(client: paramiko.SSHClient) -> None:
    assert execute(client, "scontrol show hostnames '$(id)'")[1] == b"$(id)\n"
    assert execute(client, "scontrol show node '`id`'") == (1, b"Node `id` not found\n", b"")


def test_other_commands_run_for_real(client: paramiko.SSHClient) -> None:
    line = "echo out; echo err >&2; hostname; pwd; exit 7"
    rc, stdout, stderr = execute(client, line)
    out, host, home = stdout.decode().splitlines()
    assert (rc, out, host, stderr) == (7, "out", "demo-head", b"err\n")
    assert home.endswith("/home/demo-head")


def test_environment_is_small_and_its_own(client: paramiko.SSHClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "1")
    stdout = execute(client, "/usr/bin/env")[1].decode()
    names = {line.partition("=")[0] for line in stdout.splitlines()}
    assert names <= {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "DEMO_HOST",
        "PWD",
        "SHLVL",
        "_",
        "OLDPWD",
    }


def test_shell_finds_the_programs_and_they_work(client: paramiko.SSHClient) -> None:
    rc, stdout, _ = execute(client, "command -v squeue && squeue -h -t CF -o '%A %j' | head -1")
    path, row = stdout.decode().splitlines()
    assert (rc, path.endswith("/bin/squeue")) == (0, True)
    assert row.endswith(" moe-8x22b-anneal")
    assert execute(client, f"{path} -h -t CF -o %t") == (0, b"CF\n", b"")
    rc, stdout, stderr = execute(client, "sh -c 'SLURM_TIME_FORMAT=%s squeue -j 1; echo $?; sudo -n scontrol ping'")
    assert stdout == b"1\nSlurmctld(primary) at demo-head is UP\n"
    assert stderr == b"slurm_load_jobs error: Invalid job id specified\n"


def test_stdin_and_half_close(client: paramiko.SSHClient) -> None:
    data = os.urandom(3_000_000)
    assert execute(client, "cat", data) == (0, data, b"")
    assert execute(client, "wc -c", b"12345")[1].strip() == b"5"


def test_large_output_of_both_streams(client: paramiko.SSHClient) -> None:
    rc, stdout, _ = execute(client, "head -c 4000000 /dev/zero")
    assert (rc, len(stdout)) == (0, 4_000_000)


def test_login_with_a_terminal(client: paramiko.SSHClient) -> None:
    channel = client.invoke_shell("xterm-256color", width=100, height=30)
    channel.settimeout(20)
    shown = read_until(channel, b"[demo@demo-head]$ ")
    channel.sendall(b"stty size; echo $TERM; scontrol ping\n")
    shown = read_until(channel, b" is UP\r\n")
    assert b"\r\n30 100\r\n" in shown
    assert b"xterm-256color\r\n" in shown
    channel.sendall(b"sleep 300\n")
    read_until(channel, b"sleep 300\r\n")
    channel.sendall(b"exit 4\n\x03exit 5\n")
    assert channel.recv_exit_status() in (4, 5)
    channel.close()


def test_command_on_a_terminal_ends_with_its_channel(client: paramiko.SSHClient) -> None:
    transport = client.get_transport()
    assert transport is not None
    channel = transport.open_session(timeout=10)
    channel.get_pty()
    channel.exec_command("tty >/dev/null && echo $$; exec sleep 300")
    pid = int(channel.makefile("r").readline())
    channel.close()
    assert gone(pid)


def read_until(channel: paramiko.Channel, end: bytes) -> bytes:
    """What the channel says up to and with `end`."""
    seen = b""
    while end not in seen:
        data = channel.recv(4096)
        assert data, seen
        seen += data
    return seen


def test_status_of_a_killed_shell(client: paramiko.SSHClient) -> None:
    assert execute(client, "kill -9 $$")[0] == 137


def test_quick_commands_never_lose_their_answer(client: paramiko.SSHClient) -> None:
    for _ in range(25):
        assert execute(client, "scontrol ping") == (0, b"Slurmctld(primary) at demo-head is UP\n", b"")


def test_twenty_channels_at_once(client: paramiko.SSHClient) -> None:
    def one(number: int) -> tuple[int, bytes, bytes]:
        if number % 2:
            return execute(client, f"echo {number}; cat >/dev/null", b"x" * 200_000)
        return execute(client, f"scontrol show hostnames n[{number}-{number}]")

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(one, range(20)))
    for number, answer in enumerate(answers):
        assert answer == (0, f"{number}\n".encode() if number % 2 else f"n{number}\n".encode(), b"")


def test_process_ends_with_its_channel(client: paramiko.SSHClient) -> None:
    transport = client.get_transport()
    assert transport is not None
    channel = transport.open_session(timeout=10)
    channel.exec_command("sleep 300 & echo $! $$; wait")
    child, shell = map(int, channel.makefile("r").readline().split())
    channel.close()
    assert gone(child)
    assert gone(shell)


def test_process_ends_with_its_channel_after_a_half_close(demo: DemoCluster) -> None:
    client = connect(demo)
    transport = client.get_transport()
    assert transport is not None
    channel = transport.open_session(timeout=10)
    channel.exec_command("echo $$; exec sleep 300")
    channel.shutdown_write()
    pid = int(channel.makefile("r").readline())
    client.close()
    assert gone(pid)


def test_process_that_reads_nothing_and_says_nothing_ends_with_its_channel(demo: DemoCluster) -> None:
    client = connect(demo)
    transport = client.get_transport()
    assert transport is not None
    channel = transport.open_session(timeout=10)
    channel.exec_command("echo $$; exec sleep 300 >&- 2>&-")
    pid = int(channel.makefile("r").readline())
    channel.sendall(b"x" * 500_000)  # more than a pipe holds
    client.close()
    assert gone(pid)


@pytest.mark.parametrize("user", ["demo", "root"])
def test_other_keys_are_refused(demo: DemoCluster, user: str) -> None:
    client = paramiko.SSHClient()
    client.load_host_keys(str(folder_of(demo) / "known_hosts"))
    key = paramiko.RSAKey.generate(2048)
    with pytest.raises(paramiko.AuthenticationException):
        client.connect("127.0.0.1", demo.port, user, pkey=key, allow_agent=False, look_for_keys=False)
    client.close()


def test_other_users_are_refused_even_with_the_key(demo: DemoCluster) -> None:
    client = paramiko.SSHClient()
    client.load_host_keys(str(folder_of(demo) / "known_hosts"))
    path = str(folder_of(demo) / "id_ed25519")
    with pytest.raises(paramiko.AuthenticationException):
        client.connect("127.0.0.1", demo.port, "root", key_filename=path, allow_agent=False, look_for_keys=False)
    client.close()


def test_only_loopback_is_listened_on(demo: DemoCluster) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; tells which address would be used
        except OSError:
            pytest.skip("no address but loopback here")
        own = probe.getsockname()[0]
    for address in (own, "127.77.0.1"):
        with pytest.raises(OSError, match=r"refused|unreachable|timed out|assign"):
            socket.create_connection((address, demo.port), timeout=5)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_only_open_port_is_the_heads() -> None:
    before = _listening()  # other tests of this process may have servers of their own
    demo = DemoCluster(nodes=4)
    with demo:
        assert _listening() - before == {f"0100007F:{demo.port:04X}"}


def _listening() -> set[str]:
    """The addresses at which this process listens."""
    inodes = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_link(fd)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                found.add(words[1])
    return found


def _is_link(fd: str) -> bool:
    try:
        os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return False
    return True


def test_private_files_are_private(demo: DemoCluster) -> None:
    folder = folder_of(demo)
    assert folder.stat().st_mode & 0o777 == 0o700
    for name in ("id_ed25519", "host_key", "config.yaml", "ssh_config"):
        assert (folder / name).stat().st_mode & 0o077 == 0


def test_node_answers_through_the_head_by_address_and_name(demo: DemoCluster, client: paramiko.SSHClient) -> None:
    for address in ("127.77.0.2", "gpu-st-p5-2"):
        node = through_head(demo, client, address)
        assert execute(node, "hostname") == (0, b"gpu-st-p5-2\n", b"")
        assert execute(node, "cat; hostname", b"x" * 500_000)[1] == b"x" * 500_000 + b"gpu-st-p5-2\n"
        node.close()


def through_head(demo: DemoCluster, head: paramiko.SSHClient, address: str) -> paramiko.SSHClient:
    transport = head.get_transport()
    assert transport is not None
    sock = transport.open_channel("direct-tcpip", (address, demo.port), ("127.0.0.1", 0), timeout=10)
    node = paramiko.SSHClient()
    node.load_host_keys(str(folder_of(demo) / "known_hosts"))
    path = str(folder_of(demo) / "id_ed25519")
    node.connect(address, demo.port, "demo", key_filename=path, sock=sock, allow_agent=False, look_for_keys=False)
    return node


@pytest.mark.parametrize(
    ("address", "port_offset"),
    [
        ("127.77.0.8", 0),  # lost
        ("127.77.0.9", 0),  # still booting
        ("127.77.9.9", 0),  # no node
        ("127.77.0.2", 1),  # nothing on that port
        ("127.0.0.1", 0),  # the demo forwards to its nodes only
    ],
)
def test_what_is_not_there_refuses(demo: DemoCluster, address: str, port_offset: int) -> None:
    client = connect(demo)
    transport = client.get_transport()
    assert transport is not None
    with pytest.raises(paramiko.ChannelException):
        transport.open_channel("direct-tcpip", (address, demo.port + port_offset), ("127.0.0.1", 0), timeout=10)
    client.close()


def test_nodes_forward_nowhere(demo: DemoCluster, client: paramiko.SSHClient) -> None:
    node = through_head(demo, client, "127.77.0.2")
    transport = node.get_transport()
    assert transport is not None
    with pytest.raises(paramiko.ChannelException):
        transport.open_channel("direct-tcpip", ("127.77.0.3", demo.port), ("127.0.0.1", 0), timeout=10)
    node.close()


def ssh(demo: DemoCluster, *argv: str, stdin: bytes = b"") -> tuple[int, bytes]:
    config = str(folder_of(demo) / "ssh_config")
    done = subprocess.run(["ssh", "-F", config, *argv], input=stdin, capture_output=True, timeout=30, check=False)
    return done.returncode, done.stdout


@needs_ssh
def test_openssh_reaches_head_and_nodes(demo: DemoCluster) -> None:
    rc, stdout = ssh(demo, "demo-head", "squeue")
    assert rc == 0
    assert stdout.startswith(b"             JOBID PARTITION")
    assert ssh(demo, "demo-head", "exit 9") == (9, b"")
    assert ssh(demo, "gpu-st-p5-3", "hostname") == (0, b"gpu-st-p5-3\n")
    assert ssh(demo, "127.77.0.4", "cat", stdin=b"y" * 300_000) == (0, b"y" * 300_000)
    assert ssh(demo, "gpu-st-p5-8", "hostname")[0] == 255


@needs_ssh
def test_openssh_without_a_command_gets_a_shell(demo: DemoCluster) -> None:
    assert ssh(demo, "demo-head", stdin=b"echo hello; exit 3\n") == (3, b"hello\n")


def test_cockpits_own_hosts_reach_it(demo: DemoCluster) -> None:
    config = yaml.safe_load((folder_of(demo) / "config.yaml").read_text())
    entry = config["clusters"][config["default"]]
    host = open_host(entry["head"], ssh_config=Path(entry["ssh_config"]))
    try:
        done = host.run(["squeue", "-h", "-O", "JobID:0\x1f,Name:0\x1e"], deadline_s=10, env={"LC_ALL": "C"})
        assert (done.rc, done.stderr) == (0, b"")
        assert done.stdout.count(b"\x1e\n") > 15
        channel = host.open_tcp("127.77.0.1", entry["nodes"]["port"], deadline_s=10)
        channel.settimeout(10)
        assert channel.recv(8) == b"SSH-2.0-"
        channel.close()
        with pytest.raises(FaultError):
            host.open_tcp("127.77.0.8", entry["nodes"]["port"], deadline_s=10)
    finally:
        host.close()
