"""Machines that hang, drop, lie and come back: every call ends in time, with words that help."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cockpit.hosts.dial import Limits
from cockpit.hosts.ssh import SshHost, open_ssh
from cockpit.models import Fault, FaultError, FaultKind
from tests.sshd import Sshd, free_address, needs_sshd, wait_for

pytestmark = needs_sshd

QUICK = Limits(handshake_s=1.0, auth_s=2.0, dial_s=8.0, keepalive_s=0.5, dead_after_s=1.5)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    with Sshd(tmp_path / "sshd") as running:
        yield running


@contextlib.contextmanager
def tcp_server(serve: Callable[[socket.socket], object]) -> Iterator[tuple[str, int]]:
    """A hand-written server; `serve` gets each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept: list[socket.socket] = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    kept.append(connection)
                    serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()[:2]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for connection in kept:
                connection.close()


def fault_at(tmp_path: Path, address: str, port: int, *, limits: Limits = QUICK) -> Fault:
    """What a run against address:port ends with."""
    config = tmp_path / "ssh_config"
    config.write_text("Host *\n  IdentityAgent none\n  ConnectTimeout 2\n")
    host = open_ssh(f"{address}:{port}", ssh_config=config, limits=limits)
    try:
        with pytest.raises(FaultError) as error:
            host.run(["true"], deadline_s=30)
        return error.value.fault
    finally:
        host.close()


def test_accepts_and_never_answers(tmp_path: Path) -> None:
    with tcp_server(lambda _: None) as (address, port):
        fault = fault_at(tmp_path, address, port)
    assert fault.kind is FaultKind.TIMEOUT
    assert "accepts TCP but never answers" in fault.why


def test_closes_at_once(tmp_path: Path) -> None:
    taken: list[socket.socket] = []

    def drop(connection: socket.socket) -> None:
        taken.append(connection)
        connection.close()

    with tcp_server(drop) as (address, port):
        fault = fault_at(tmp_path, address, port)
    assert fault.kind is FaultKind.UNREACHABLE
    assert "closes it at once" in fault.why
    assert "MaxStartups" in fault.next_step
    assert len(taken) == 3  # it was tried again, since such servers often recover


def test_closes_with_a_word(tmp_path: Path) -> None:
    def drop(connection: socket.socket) -> None:
        connection.sendall(b"Exceeded MaxStartups\x1b[2J\r\n")
        connection.close()

    with tcp_server(drop) as (address, port):
        fault = fault_at(tmp_path, address, port)
    assert "Exceeded MaxStartups" in fault.why
    assert "\x1b" not in fault.line()


def test_not_ssh_at_all(tmp_path: Path) -> None:
    with tcp_server(lambda connection: connection.sendall(b"220 ftp ready\r\n" * 3)) as (address, port):
        fault = fault_at(tmp_path, address, port)
    assert "not SSH" in fault.why
    assert "220 ftp ready" in fault.why


def test_stops_after_the_banner(tmp_path: Path) -> None:
    with tcp_server(lambda connection: connection.sendall(b"SSH-2.0-hung\r\n")) as (address, port):
        fault = fault_at(tmp_path, address, port)
    assert fault.kind is FaultKind.TIMEOUT
    assert "handshake stopped" in fault.why


def test_nothing_listens(tmp_path: Path) -> None:
    fault = fault_at(tmp_path, *free_address())
    assert fault.kind is FaultKind.UNREACHABLE
    assert "refused" in fault.why


def test_a_name_without_address(tmp_path: Path) -> None:
    fault = fault_at(tmp_path, "no-such-host.invalid", 22)
    assert fault.kind is FaultKind.UNREACHABLE
    assert "has no address" in fault.why


def test_the_deadline_holds_while_connecting(tmp_path: Path) -> None:
    slow = Limits(handshake_s=20.0)
    with tcp_server(lambda _: None) as (address, port):
        host = open_ssh(f"{address}:{port}", limits=slow)
        began = time.monotonic()
        with pytest.raises(FaultError) as error:
            host.run(["true"], deadline_s=0.7)
        assert time.monotonic() - began < 5
        assert error.value.fault.kind is FaultKind.TIMEOUT
        assert "banner" in error.value.fault.why
        host.close()


def test_back_off_fails_at_once_and_retry_now_ends_it(tmp_path: Path) -> None:
    taken: list[socket.socket] = []

    def drop(connection: socket.socket) -> None:
        taken.append(connection)
        connection.close()

    with tcp_server(drop) as (address, port):
        host = open_ssh(f"{address}:{port}", limits=QUICK)
        faults = []
        for _ in range(3):
            with pytest.raises(FaultError) as error:
                host.run(["true"], deadline_s=20)
            faults.append(error.value.fault)
        assert len(taken) == 3  # one dial with its retries; the later calls did not try
        assert len(set(faults)) == 1  # word for word, so that all sources that fail this way are one problem
        host.retry_now()
        with pytest.raises(FaultError):
            host.run(["true"], deadline_s=20)
        assert len(taken) == 6
        host.close()


def test_frozen_after_the_login(server: Sshd) -> None:
    host = server.host()
    host.run(["true"], deadline_s=20)
    pids = server.signal_sessions(signal.SIGSTOP)
    assert pids
    began = time.monotonic()
    with pytest.raises(FaultError) as error:
        host.run(["true"], deadline_s=1.5)
    assert time.monotonic() - began < 6
    assert error.value.fault.kind is FaultKind.TIMEOUT
    assert "no sign of life" in error.value.fault.why
    assert not host.connected  # so that the next call connects anew
    assert host.run(["echo", "again"], deadline_s=20).stdout == b"again\n"
    _resume(pids)
    host.close()


def _resume(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_frozen_while_a_command_runs(server: Sshd) -> None:
    host = server.host(limits=QUICK)
    faults: list[Fault] = []

    def run() -> None:
        with pytest.raises(FaultError) as error:
            host.run(["sleep", "60"], deadline_s=60)
        faults.append(error.value.fault)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert wait_for(lambda: len(server.sessions()) >= 2)
    time.sleep(0.5)
    pids = server.signal_sessions(signal.SIGSTOP)
    thread.join(20)  # long before the deadline: the pulse finds it
    assert [fault.kind for fault in faults] == [FaultKind.UNREACHABLE]
    assert "no sign of life" in faults[0].why
    _resume(pids)
    host.close()


def test_frozen_under_a_stream(server: Sshd) -> None:
    host = server.host(limits=QUICK)
    lines = iter(host.stream(["sh", "-c", "echo first; printf half; exec cat"], open_deadline_s=20))
    assert next(lines) == b"first"
    pids = server.signal_sessions(signal.SIGSTOP)
    with pytest.raises(FaultError) as error:
        list(lines)
    assert error.value.fault.kind is FaultKind.UNREACHABLE
    _resume(pids)
    host.close()


def test_an_idle_connection_stays(server: Sshd) -> None:
    host = server.host(limits=QUICK)
    host.run(["true"], deadline_s=20)
    first = host._dialer._current
    time.sleep(2.5)  # longer than dead_after_s: the answers to the pulse count as life
    host.run(["true"], deadline_s=20)
    assert host._dialer._current is first
    host.close()


@pytest.mark.parametrize("frozen", [False, True])
def test_close_from_another_thread_ends_everything_at_once(server: Sshd, frozen: bool) -> None:
    host = server.host()
    faults: list[Fault] = []

    def guarded(work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            with pytest.raises(FaultError) as error:
                work()
            faults.append(error.value.fault)

        return run

    lines = iter(host.stream(["cat"], open_deadline_s=20))
    tcp = host.open_tcp(server.address, server.port, deadline_s=20)
    tcp.recv(10)
    works = [lambda: host.run(["sleep", "60"], deadline_s=60), lambda: next(lines)]
    threads = [threading.Thread(target=guarded(work), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    time.sleep(0.7)
    pids = server.signal_sessions(signal.SIGSTOP) if frozen else []
    began = time.monotonic()
    host.close()
    for thread in threads:
        thread.join(5)
    assert time.monotonic() - began < 2
    assert [fault.kind for fault in faults] == [FaultKind.UNREACHABLE] * 2
    with pytest.raises(FaultError):
        host.run(["true"], deadline_s=5)
    _resume(pids)


_QUIT = """
import sys, threading
from pathlib import Path
from cockpit.hosts import open_host
host = open_host("box", ssh_config=Path(sys.argv[1]))
host.run(["true"], deadline_s=20)
print("up", flush=True)
sys.stdin.readline()
def hang():
    try:
        host.run(["true"], deadline_s=300)
    except Exception:
        pass
threading.Thread(target=hang, daemon=True).start()
if sys.argv[2] == "close":
    host.close()
print([t.name for t in threading.enumerate() if not t.daemon], flush=True)
"""


@pytest.mark.parametrize("how", ["close", "leave"])
def test_a_process_quits_with_a_frozen_server(server: Sshd, how: str) -> None:
    argv = [sys.executable, "-c", _QUIT, str(server.write_config()), how]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        pids = server.signal_sessions(signal.SIGSTOP)
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "['MainThread']\n"
        assert child.wait(10) == 0
    _resume(pids)


def test_reconnects_after_the_session_was_killed(server: Sshd) -> None:
    host = server.host()
    host.run(["true"], deadline_s=20)
    server.signal_sessions(signal.SIGKILL)
    assert wait_for(lambda: not host.connected)
    assert host.run(["echo", "back"], deadline_s=20).stdout == b"back\n"
    host.close()


def test_a_command_in_flight_when_the_session_is_killed(server: Sshd) -> None:
    host = server.host()
    lines = iter(host.stream(["sh", "-c", "echo first; printf half; exec cat"], open_deadline_s=20))
    assert next(lines) == b"first"
    server.signal_sessions(signal.SIGKILL)
    with pytest.raises(FaultError) as error:
        list(lines)  # half a line that a broken connection leaves behind is no line
    assert error.value.fault.kind is FaultKind.UNREACHABLE
    host.close()


def test_a_connection_that_dies_while_a_session_is_asked_for(server: Sshd) -> None:
    host = server.host()
    host.run(["true"], deadline_s=20)
    server.signal_sessions(signal.SIGSTOP)
    caught: list[Exception] = []

    def ask() -> None:
        try:
            host.run(["true"], deadline_s=20)
        except Exception as error:
            caught.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.3)  # by now the question is out
    server.signal_sessions(signal.SIGKILL)
    asking.join(20)
    (error,) = caught
    assert isinstance(error, FaultError), error  # not paramiko's EOFError
    assert error.fault.kind is FaultKind.UNREACHABLE
    assert host.run(["echo", "back"], deadline_s=20).stdout == b"back\n"
    host.close()


def test_comes_back_when_the_server_does(server: Sshd) -> None:
    host: SshHost = server.host()
    host.run(["true"], deadline_s=20)
    server.stop()
    assert wait_for(lambda: not host.connected)
    with pytest.raises(FaultError) as error:
        host.run(["true"], deadline_s=20)
    assert "refused" in error.value.fault.why
    server.start()
    host.retry_now()
    assert host.run(["true"], deadline_s=20).rc == 0
    host.close()
