"""SshHost against a real sshd: commands, streams, TCP channels."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cockpit.hosts.session import SshStream
from cockpit.hosts.ssh import SshHost
from cockpit.models import FaultError, FaultKind
from tests.sshd import Sshd, needs_sshd, wait_for

pytestmark = needs_sshd


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def host(server: Sshd) -> Iterator[SshHost]:
    ssh = server.host()
    yield ssh
    ssh.close()


def test_exit_status_and_output(host: SshHost) -> None:
    done = host.run(["sh", "-c", "echo out; echo err >&2; exit 7"], deadline_s=20)
    assert (done.rc, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    assert host.run(["true"], deadline_s=20).rc == 0
    assert host.run(["no-such-program-here"], deadline_s=20).rc == 127
    assert host.connected
    assert not host.busy


@pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("SEGV", 11), ("TERM", 15)])
def test_a_signal_is_a_negative_status(host: SshHost, name: str, number: int) -> None:
    assert host.run(["sh", "-c", f"kill -{name} $$"], deadline_s=20).rc == -number


def test_the_connection_uses_no_weak_algorithm_and_compresses(host: SshHost, server: Sshd) -> None:
    host.run(["true"], deadline_s=20)
    connection = host._dialer._current
    assert connection is not None
    transport: Any = connection.transport
    assert transport.remote_cipher == "aes128-gcm@openssh.com"
    assert transport.remote_compression == transport.local_compression == "zlib@openssh.com"
    for offered in (*transport.preferred_ciphers, *transport.preferred_macs, *transport.preferred_keys):
        assert not any(weak in offered for weak in ("cbc", "3des", "md5", "sha1", "ssh-rsa", "ssh-dss"))


def test_text_shrinks_on_the_wire(host: SshHost) -> None:
    text = b"123456 gpu-dy-p5-%d alice RUNNING 1:00:00 node[001-064] gpu:h100[8]\n"
    text = b"".join(text % number for number in range(5000))
    host.run(["true"], deadline_s=20)
    connection = host._dialer._current
    assert connection is not None
    before = connection.wire.received
    assert host.run(["cat"], stdin=text, deadline_s=20).stdout == text
    assert connection.wire.received - before < len(text) / 5


def test_both_streams_are_drained(host: SshHost) -> None:
    script = "head -c 5000000 /dev/urandom & head -c 2000000 /dev/urandom >&2; wait"
    done = host.run(["sh", "-c", script], deadline_s=60)
    assert (len(done.stdout), len(done.stderr)) == (5_000_000, 2_000_000)


def test_stdin_comes_back_and_may_be_ignored(host: SshHost) -> None:
    data = os.urandom(5_000_000)  # more than the channel's window in both directions
    assert host.run(["cat"], stdin=data, deadline_s=60).stdout == data
    assert host.run(["true"], stdin=data, deadline_s=60).rc == 0


def test_hostile_arguments_arrive_as_they_are(host: SshHost) -> None:
    hostile = [
        "$(id)",
        "a'b\"c",
        "x\ny",
        "*",
        "-n",
        "",
        "~",
        "!!",
        "\\",
        "`id`",
        "é",
        ";exit 3",
        "$HOME",
        "A=b",
    ]
    done = host.run(["printf", "%s\\0", *hostile], deadline_s=20)
    assert done.stdout.decode().split("\0") == [*hostile, ""]


def test_env_and_unset(host: SshHost) -> None:
    script = 'echo "$A ${HOME-none}"'
    done = host.run(["sh", "-c", script], env={"A": "1 $(id)"}, unset=["HOME"], deadline_s=20)
    assert done.stdout == b"1 $(id) none\n"


@pytest.mark.skipif(not os.path.exists("/bin/tcsh") or os.geteuid() != 0, reason="needs /bin/tcsh, and root to run it")
def test_csh_as_login_shell(tmp_path: Path) -> None:
    # sshd takes the shell from the password file; a forced command is the same line through csh.
    with Sshd(tmp_path, options=['ForceCommand exec /bin/tcsh -c "$SSH_ORIGINAL_COMMAND"']) as csh:
        host = csh.host()
        plain = ["$(id)", "a'b\"c", "*", "-n", "", "$HOME", "A=b", "`id`", "~"]
        for hostile in (plain, [*plain, "x\ny", "!!", "\\", "\\n", "\n"]):
            argv = ["printf", "%s|", *hostile]
            done = host.run(argv, env={"A": "1 2"}, unset=["HOME"], deadline_s=20)
            assert done.stdout.decode() == "|".join([*hostile, ""])
        host.close()


def test_deadline_and_the_remote_process_goes_too(host: SshHost, server: Sshd) -> None:
    host.run(["true"], deadline_s=20)
    marker = f"{60 + os.getpid() / 1e7:.7f}"
    began = time.monotonic()
    with pytest.raises(FaultError) as error:
        host.run(["sleep", marker], deadline_s=1.5)
    assert time.monotonic() - began < 10
    assert error.value.fault.kind is FaultKind.TIMEOUT
    assert wait_for(lambda: not _running(server, marker))
    assert host.connected  # sshd answered all the while, so the connection was kept
    assert host.run(["true"], deadline_s=20).rc == 0


def _running(server: Sshd, argument: str) -> bool:
    lines = []
    for pid in server.sessions():
        try:
            lines.append(Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:
            continue
    return any(argument.encode() in line for line in lines)


def test_more_threads_than_sessions(host: SshHost) -> None:
    results: list[int] = []
    argv = ["sleep", "0.2"]
    threads = [threading.Thread(target=lambda: results.append(host.run(argv, deadline_s=60).rc)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [0] * 12


def test_a_server_with_fewer_sessions_than_we_take(tmp_path: Path) -> None:
    with Sshd(tmp_path, options=["MaxSessions 2"]) as small:
        host = small.host()
        try:
            results: list[int] = []
            threads = [
                threading.Thread(target=lambda: results.append(host.run(["true"], deadline_s=60).rc)) for _ in range(6)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert results == [0] * 6
        finally:
            host.close()


def test_sessions_that_were_given_up_do_not_block_the_host(tmp_path: Path) -> None:
    with Sshd(tmp_path, options=["MaxSessions 2"]) as small:
        host = small.host()
        try:
            for _ in range(2):  # commands that no signal of `timeout` ends
                with pytest.raises(FaultError):
                    host.run(["setsid", "-w", "sh", "-c", "trap '' TERM; sleep 20; sleep 20"], deadline_s=1)
            assert host.run(["echo", "fine"], deadline_s=20).stdout == b"fine\n"
        finally:
            host.close()


def test_too_much_output_is_garbled(host: SshHost) -> None:
    with pytest.raises(FaultError) as error:
        host.run(["yes"], deadline_s=30, max_bytes=100_000)
    assert error.value.fault.kind is FaultKind.GARBLED
    assert host.run(["true"], deadline_s=20).rc == 0


def test_background_child_does_not_hold_the_answer(host: SshHost) -> None:
    assert host.run(["sh", "-c", "sleep 30 & echo done"], deadline_s=25).stdout == b"done\n"


def test_stream_gives_lines_and_ends_with_stdin(host: SshHost) -> None:
    stream = host.stream(["cat"], open_deadline_s=20, stdin=b"one\ntwo\nhalf")
    assert host.busy
    lines = iter(stream)
    assert [next(lines), next(lines)] == [b"one", b"two"]
    stream.close_stdin()
    assert list(lines) == [b"half"]
    assert isinstance(stream, SshStream)
    assert stream.rc == 0
    assert not host.busy


def test_stream_takes_a_long_stdin(host: SshHost) -> None:
    program = b"x" * 5_000_000
    stream = host.stream(["wc", "-c"], open_deadline_s=20, stdin=program)
    stream.close_stdin()
    assert [line.strip() for line in stream] == [b"5000000"]


def test_stream_cuts_long_lines_and_tells_stderr(host: SshHost) -> None:
    heard: list[bytes] = []
    script = "echo oops >&2; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo next"
    stream = host.stream(["sh", "-c", script], open_deadline_s=20, max_line=1000, on_stderr=heard.append)
    assert list(stream) == [b"x" * 1000, b"next"]
    assert b"".join(heard) == b"oops\n"


def test_stream_that_cannot_start_says_so(host: SshHost) -> None:
    heard: list[bytes] = []
    stream = host.stream(["no-such-program-here"], open_deadline_s=20, on_stderr=heard.append)
    assert list(stream) == []
    assert isinstance(stream, SshStream)
    assert stream.rc == 127
    assert b"no-such-program-here" in b"".join(heard)


def test_closing_a_stream_ends_the_remote_command(host: SshHost, server: Sshd) -> None:
    stream = host.stream(["sh", "-c", "echo first; exec cat"], open_deadline_s=20)
    lines = iter(stream)
    assert next(lines) == b"first"
    assert _running(server, "cat")
    stream.close()
    assert list(lines) == []
    assert wait_for(lambda: not _running(server, "cat"))


def test_streams_leave_room_for_commands(host: SshHost) -> None:
    streams = [host.stream(["cat"], open_deadline_s=20) for _ in range(5)]
    with pytest.raises(FaultError) as error:
        host.stream(["cat"], open_deadline_s=0.5)
    assert error.value.fault.kind is FaultKind.TIMEOUT
    assert host.run(["true"], deadline_s=20).rc == 0
    for stream in streams:
        stream.close()
    late = host.stream(["echo", "room"], open_deadline_s=20)
    assert list(late) == [b"room"]


def test_open_tcp_reaches_what_only_the_server_may(host: SshHost, server: Sshd) -> None:
    channel = host.open_tcp(server.address, server.port, deadline_s=20)
    channel.settimeout(10)
    assert channel.recv(8) == b"SSH-2.0-"
    channel.close()
    with pytest.raises(FaultError) as error:
        host.open_tcp(server.address, 1, deadline_s=20)
    assert error.value.fault.kind is FaultKind.UNREACHABLE
    assert not host.busy


def test_forbidden_forwarding_is_denied(tmp_path: Path) -> None:
    with Sshd(tmp_path, options=["AllowTcpForwarding no"]) as strict:
        host = strict.host()
        with pytest.raises(FaultError) as error:
            host.open_tcp(strict.address, strict.port, deadline_s=20)
        host.close()
    assert error.value.fault.kind is FaultKind.DENIED
    assert "AllowTcpForwarding" in error.value.fault.next_step


def test_the_shell_tools_the_wrapper_needs_are_there() -> None:
    assert shutil.which("timeout")
    assert shutil.which("env")
