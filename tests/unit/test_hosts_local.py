"""LocalHost keeps the promises of hosts.base.Host."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.hosts import open_host
from cockpit.hosts.local import LocalHost, LocalStream
from cockpit.models import FaultError, FaultKind
from tests.sshd import wait_for


@pytest.fixture
def host() -> Iterator[LocalHost]:
    local = LocalHost()
    yield local
    local.close()


def fault_of(error: pytest.ExceptionInfo[FaultError]) -> FaultKind:
    return error.value.fault.kind


def test_local_is_what_open_host_gives() -> None:
    assert isinstance(open_host("local"), LocalHost)


def test_exit_status_signal_and_missing_program(host: LocalHost) -> None:
    assert host.run(["sh", "-c", "echo out; echo err >&2; exit 7"], deadline_s=5).rc == 7
    assert host.run(["sh", "-c", "kill -9 $$"], deadline_s=5).rc == -9
    missing = host.run(["no-such-program-here"], deadline_s=5)
    assert missing.rc == 127
    assert b"no-such-program-here" in missing.stderr


def test_both_streams_are_drained_and_stdin_is_echoed(host: LocalHost) -> None:
    script = "head -c 5000000 /dev/zero & head -c 2000000 /dev/zero >&2; wait"
    done = host.run(["sh", "-c", script], deadline_s=20)
    assert (len(done.stdout), len(done.stderr)) == (5_000_000, 2_000_000)
    data = os.urandom(3_000_000)
    assert host.run(["cat"], stdin=data, deadline_s=20).stdout == data
    assert host.run(["true"], stdin=data, deadline_s=20).rc == 0  # reads none of it


def test_no_shell_sees_the_arguments(host: LocalHost) -> None:
    hostile = ["$(id)", "a'b\"c", "x\ny", "*", "-n", ""]
    assert host.run(["printf", "%s|", *hostile], deadline_s=5).stdout.decode() == "|".join([*hostile, ""])


def test_env_is_added_and_unset(host: LocalHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_TEST_GONE", "x")
    script = 'echo "$A ${COCKPIT_TEST_GONE-none} $HOME"'
    done = host.run(["sh", "-c", script], env={"A": "1 2"}, unset=["COCKPIT_TEST_GONE"], deadline_s=5)
    assert done.stdout.decode().strip() == f"1 2 none {os.environ['HOME']}"


def test_deadline_ends_the_whole_group(host: LocalHost, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"trap '' TERM; sleep 60 & echo $! > {pid_file}; wait; sleep 60"
    with pytest.raises(FaultError) as error:
        host.run(["sh", "-c", script], deadline_s=0.5)
    assert fault_of(error) is FaultKind.TIMEOUT
    pid = int(pid_file.read_text())
    assert wait_for(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_background_child_does_not_hold_the_answer(host: LocalHost) -> None:
    done = host.run(["sh", "-c", "sleep 30 & echo done"], deadline_s=15)
    assert done.stdout == b"done\n"


def test_too_much_output_is_garbled(host: LocalHost) -> None:
    with pytest.raises(FaultError) as error:
        host.run(["sh", "-c", "yes"], deadline_s=20, max_bytes=100_000)
    assert fault_of(error) is FaultKind.GARBLED


def test_close_wakes_a_run_at_once(host: LocalHost) -> None:
    raised: list[FaultError] = []

    def run() -> None:
        with pytest.raises(FaultError) as error:
            host.run(["sleep", "60"], deadline_s=60)
        raised.append(error.value)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    time.sleep(0.3)
    host.close()
    thread.join(5)
    assert [error.fault.kind for error in raised] == [FaultKind.UNREACHABLE]
    with pytest.raises(FaultError):
        host.run(["true"], deadline_s=1)


def test_stream_gives_lines_and_ends_with_stdin(host: LocalHost) -> None:
    stream = host.stream(["cat"], open_deadline_s=5, stdin=b"one\ntwo\nhalf", max_line=100)
    stream.close_stdin()
    assert list(stream) == [b"one", b"two", b"half"]
    assert isinstance(stream, LocalStream)
    assert stream.rc == 0


def test_stream_cuts_long_lines_and_tells_stderr(host: LocalHost) -> None:
    heard: list[bytes] = []
    script = "head -c 100000 /dev/zero | tr '\\0' x; echo; echo next; echo oops >&2"
    stream = host.stream(["sh", "-c", script], open_deadline_s=5, max_line=10, on_stderr=heard.append)
    assert list(stream) == [b"x" * 10, b"next"]
    assert wait_for(lambda: b"".join(heard) == b"oops\n")


def test_stream_of_a_missing_program(host: LocalHost) -> None:
    with pytest.raises(FaultError) as error:
        host.stream(["no-such-program-here"], open_deadline_s=5)
    assert fault_of(error) is FaultKind.MISSING


def test_stream_close_ends_the_iteration(host: LocalHost) -> None:
    stream = host.stream(["sh", "-c", "echo first; sleep 60"], open_deadline_s=5)
    lines = iter(stream)
    assert next(lines) == b"first"
    threading.Timer(0.2, stream.close).start()
    assert list(lines) == []


def test_host_close_ends_a_stream_with_a_fault(host: LocalHost) -> None:
    lines = iter(host.stream(["sh", "-c", "echo first; sleep 60"], open_deadline_s=5))
    next(lines)
    threading.Timer(0.2, host.close).start()
    with pytest.raises(FaultError) as error:
        next(lines)
    assert fault_of(error) is FaultKind.UNREACHABLE


def test_open_tcp(host: LocalHost) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        channel = host.open_tcp("127.0.0.1", port, deadline_s=5)
        peer, _ = server.accept()
        channel.sendall(b"ping")
        assert peer.recv(10) == b"ping"
        channel.settimeout(0.1)
        with pytest.raises(FaultError) as error:
            channel.recv(10)
        assert fault_of(error) is FaultKind.TIMEOUT
        peer.sendall(b"pong")
        channel.settimeout(5)
        assert channel.recv(10) == b"pong"
        peer.close()
        channel.close()
    with pytest.raises(FaultError) as error:
        host.open_tcp("127.0.0.1", port, deadline_s=5)
    assert fault_of(error) is FaultKind.UNREACHABLE
