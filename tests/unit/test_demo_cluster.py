"""Starting and stopping the demo: nothing of it stays behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import paramiko
import pytest

from cockpit.demo.cluster import DemoCluster


def connected(demo: DemoCluster) -> paramiko.SSHClient:
    assert demo.folder is not None
    client = paramiko.SSHClient()
    client.load_host_keys(str(demo.folder / "known_hosts"))
    path = str(demo.folder / "id_ed25519")
    client.connect("127.0.0.1", demo.port, "demo", key_filename=path, allow_agent=False, look_for_keys=False)
    return client


def demo_threads() -> list[threading.Thread]:
    """Threads of the demo itself; a server-side transport is one, too."""
    return [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("demo-") or getattr(thread, "server_mode", False)
    ]


def test_stop_leaves_no_thread_no_process_and_no_folder() -> None:
    demo = DemoCluster()
    config = demo.start()
    folder = config.parent
    client = connected(demo)
    for line in ("sleep 300", "squeue", "cat"):
        client.exec_command(line)
    assert demo_threads()
    demo.stop()
    assert demo_threads() == []
    assert not folder.exists()
    client.close()


def test_stop_twice_and_without_start() -> None:
    demo = DemoCluster(nodes=1)
    demo.stop()
    with demo as config:
        assert config.is_file()
    demo.stop()
    assert not config.exists()


def test_start_again_after_stop() -> None:
    demo = DemoCluster(nodes=2)
    first = demo.start()
    with pytest.raises(RuntimeError, match="started already"):
        demo.start()
    demo.stop()
    second = demo.start()
    assert first != second
    client = connected(demo)
    _, stdout, _ = client.exec_command("sinfo -h -o '%D %P'")
    assert stdout.read().splitlines()[-1].startswith(b"1 interactive")
    client.close()
    demo.stop()
    assert demo_threads() == []


def test_two_demos_do_not_meet() -> None:
    one, two = DemoCluster(nodes=3), DemoCluster(nodes=5)
    with one as first, two as second:
        assert first.parent != second.parent
        assert one.port != two.port
        client = paramiko.SSHClient()
        client.load_host_keys(str(second.parent / "known_hosts"))
        path = str(first.parent / "id_ed25519")
        with pytest.raises(paramiko.AuthenticationException):
            client.connect("127.0.0.1", two.port, "demo", key_filename=path, allow_agent=False, look_for_keys=False)
        client.close()


def test_large_cluster_has_a_host_key_line_for_every_node() -> None:
    with DemoCluster(nodes=256) as config:
        lines = (config.parent / "known_hosts").read_text().splitlines()
    assert len(lines) == 257
    assert len({line.split()[2] for line in lines}) == 1


def test_unknown_scenario_and_size() -> None:
    with pytest.raises(KeyError):
        DemoCluster(scenario="nonsense")
    with pytest.raises(ValueError, match="nodes must be"):
        DemoCluster(nodes=0)


def module(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cockpit.demo", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )


@pytest.mark.parametrize("way", ["eof", "sigterm"])
def test_module_serves_until_told_to_stop(way: str) -> None:
    with module("--nodes", "3", "--scenario", "calm") as process:
        assert process.stdout is not None
        assert process.stdin is not None
        config = Path(process.stdout.readline().rstrip("\n"))
        assert config.is_file()
        if way == "eof":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
    assert not config.parent.exists()


def test_folder_is_removed_even_when_nobody_stops_it() -> None:
    code = "from cockpit.demo.cluster import DemoCluster; demo = DemoCluster(2); print(demo.start())"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, timeout=30, check=True
    )
    assert done.stderr == ""
    assert not Path(done.stdout.strip()).parent.exists()


def test_module_refuses_nonsense() -> None:
    with module("--nodes", "5000") as process:
        assert process.wait(15) == 2
