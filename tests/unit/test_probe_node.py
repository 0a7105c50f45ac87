"""What the probe reads of the machine itself: mounts that hang, EFA, the kernel log, stuck processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cockpit.probe.agent.child import Child, Nursery, answer
from cockpit.probe.agent.driver import Driver
from cockpit.probe.agent.inventory import hidden_gpus
from cockpit.probe.agent.mounts import mounts_of_interest
from cockpit.probe.agent.node import Node, stat_fields
from cockpit.probe.agent.pids import cgroup_job, describe
from cockpit.probe.agent.question import Question
from cockpit.probe.bundle import probe_argv
from tests.rig.procs import program
from tests.sshd import wait_for
from tests.unit.probe_runs import INTERVAL_S, QUIET, Run

XID = "NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
MOUNTS = r"""proc /proc proc rw 0 0
/dev/nvme0n1p1 / ext4 rw 0 0
/dev/nvme1n1 /opt/dlami/nvme ext4 rw 0 0
tmpfs /run tmpfs rw 0 0
tmpfs /dev/shm tmpfs rw 0 0
172.31.4.1@tcp:/abcdef /fsx lustre rw 0 0
127.0.0.1:/ /home nfs4 rw 0 0
s3fs /data\040sets fuse.s3fs rw 0 0
portal /run/user/1000/doc fuse.portal rw 0 0
/dev/loop0 /snap/core squashfs ro 0 0
"""


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_mounts_of_interest() -> None:
    found = [(path, kind) for path, kind, _ in mounts_of_interest(MOUNTS)]
    assert found == [
        ("/", "ext4"), ("/opt/dlami/nvme", "ext4"), ("/dev/shm", "tmpfs"), ("/fsx", "lustre"), ("/home", "nfs4"),
        ("/data sets", "fuse.s3fs"),
    ]  # fmt: skip


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc with these mounts and otherwise only what the test puts there."""
    root = tmp_path / "proc"
    (root / "self").mkdir(parents=True)
    (root / "self/mounts").write_text(MOUNTS)
    (root / "loadavg").write_text("1.50 2.25 3.00 1/100 4242\n")
    (root / "meminfo").write_text("MemTotal: 2097152 kB\nMemFree: 1 kB\nMemAvailable: 1048576 kB\n")
    (root / "stat").write_text("cpu 1 2 3\nbtime 1700000000\n")
    return root


def test_a_hung_mount_hangs_nothing_else_and_is_not_asked_again(proc: Path, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    check = script(
        tmp_path / "check",
        f'echo "$1" >> {asked}\n[ "$1" = /fsx ] && exec sleep 300\n[ "$1" = /home ] && {{ echo gone; exit 1; }}\n'
        "echo '[100, 60, 40, 1000, 10]'",
    )
    options: dict[str, str | float] = {"proc": str(proc), "mount_check": check, "timeout": 0.5, "mounts": 0.6}
    with Run(options) as run:
        reading = run.until(lambda reading: any(mount.hung_since for mount in reading.mounts))
        mounts = {mount.path: mount for mount in reading.mounts}
        assert mounts["/fsx"].total_mib is None
        assert mounts["/fsx"].hung_since == pytest.approx(time.time(), abs=10)
        assert (mounts["/"].total_mib, mounts["/"].used_mib, mounts["/"].available_mib) == (100, 60, 40)
        assert (mounts["/data sets"].inodes, mounts["/data sets"].inodes_used) == (1000, 10)
        assert mounts["/home"].error == "gone"
        assert reading.load == (1.5, 2.25, 3.0)
        assert (reading.mem_total_mib, reading.mem_available_mib) == (2048, 1024)
        later = run.until(lambda after: after.number > reading.number + 8)
        assert next(mount for mount in later.mounts if mount.path == "/fsx").hung_since == mounts["/fsx"].hung_since
    names = asked.read_text().splitlines()
    assert names.count("/") >= 2
    assert names.count("/fsx") >= 1


class StuckNursery(Nursery):
    """Its children cannot die, as in D state: SIGKILL is sent and nothing is ever reaped."""

    def __init__(self) -> None:
        super().__init__()
        self.started = 0

    def start(self, body: object, talks: bool = False) -> object:  # type: ignore[override]
        self.started += 1
        child = super().start(lambda: time.sleep(60), talks)
        really = child.reap
        child.reap = lambda: False  # type: ignore[method-assign]
        self.reap_really = really
        return child


def test_a_child_that_cannot_die_is_never_joined_by_a_second() -> None:
    nursery = StuckNursery()
    question = Question(nursery, lambda: None, every_s=1.0, deadline_s=5.0)
    driver = Driver(nursery, lambda: None, 0.5, 1.0, 5.0, [0.1])
    driver.ask(0.0, b"f")
    for second in range(200):
        question.step(float(second))
        driver.step(float(second))
        driver.ask(float(second), b"f")
    assert nursery.started == 2  # one each
    assert question.late_since is not None
    assert driver.state == "hung"
    nursery.end()


def test_kernel_messages_come_from_the_journal_with_their_boot(proc: Path, tmp_path: Path) -> None:
    boot, now = "ab" * 16, time.time()
    (proc / "sys/kernel/random").mkdir(parents=True)
    (proc / "sys/kernel/random/boot_id").write_text("abababab-abab-abab-abab-abababababab\n")
    entries = [
        {"MESSAGE": XID, "__REALTIME_TIMESTAMP": str(int((now - 60) * 1e6)), "_BOOT_ID": "cd" * 16},
        {"MESSAGE": "usb 1-1: new device", "__REALTIME_TIMESTAMP": str(int(now * 1e6)), "_BOOT_ID": boot},
        {"MESSAGE": list(b"NVRM: \xff odd"), "__REALTIME_TIMESTAMP": str(int(now * 1e6)), "_BOOT_ID": boot},
        {"MESSAGE": "LustreError: 1:0: " + "x" * 900, "__REALTIME_TIMESTAMP": str(int(now * 1e6)), "_BOOT_ID": boot},
        {"MESSAGE": "NVRM: old", "__REALTIME_TIMESTAMP": str(int((now - 9000) * 1e6)), "_BOOT_ID": boot},
    ]
    journal = tmp_path / "journal.json"
    journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    program = script(
        tmp_path / "journalctl",
        f'case "$*" in *-f*) cat {journal}; exec sleep 300;; *"-n 1"*) head -n 1 {journal};; esac',
    )
    with Run({"proc": str(proc), "journalctl": program}) as run:
        reading = run.until(lambda reading: reading.messages)
        later = run.until(lambda after: after.number > reading.number)
    assert reading.log_source == "journal"
    assert [message.text for message in reading.messages][:2] == [XID, "NVRM: \ufffd odd"]
    assert len(reading.messages) == 3
    assert reading.messages[0].boot_id == "cd" * 16
    assert reading.messages[1].boot_id == reading.boot_id
    assert reading.messages[0].at == pytest.approx(now - 60, abs=0.01)
    assert len(reading.messages[2].text) <= 400
    assert later.messages == ()


def test_a_flood_of_messages_is_cut_and_counted(proc: Path, tmp_path: Path) -> None:
    now = str(int(time.time() * 1e6))
    lines = [json.dumps({"MESSAGE": f"NVRM: {place}", "__REALTIME_TIMESTAMP": now}) for place in range(1000)]
    journal = tmp_path / "journal.json"
    journal.write_text("\n".join(lines) + "\n")
    body = f'case "$*" in *-f*) cat {journal}; exec sleep 300;; *) head -n 1 {journal};; esac'
    program = script(tmp_path / "journalctl", body)
    with Run({"proc": str(proc), "journalctl": program}) as run:
        last = run.until(lambda reading: any(message.text == "NVRM: 999" for message in reading.messages))
    told = [message for reading in run.readings for message in reading.messages]
    assert last.messages_dropped + len(told) == 1000
    assert len(told) < 400
    assert max(len(reading.messages) for reading in run.readings) <= 20


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Hint: You are currently not seeing messages from other users and the system.", "journal: not permitted"),
        ("No journal files were opened due to insufficient permissions.", "journal: not permitted"),
        ("", "journal: none here"),
    ],
)
def test_an_unreadable_kernel_log_is_told(tmp_path: Path, said: str, reason: str) -> None:
    journalctl = script(tmp_path / "journalctl", f"echo '{said}' >&2")
    dmesg = script(tmp_path / "dmesg", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1")
    with Run({"journalctl": journalctl, "dmesg": dmesg}) as run:
        reading = run.until(lambda reading: "kernel log" in reading.not_read)
    assert reading.not_read["kernel log"] == f"{reason}; kmsg: No such file or directory; dmesg: not permitted"


def test_kernel_messages_of_kmsg(tmp_path: Path) -> None:
    kmsg = tmp_path / "kmsg"
    os.mkfifo(kmsg)
    writer = os.open(kmsg, os.O_RDWR)  # so that the reader's end stays open
    with Run({"kmsg": str(kmsg)}) as run:
        run.until(lambda reading: reading.log_source == "kmsg")
        now_us = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
        os.write(writer, f"4,1234,{now_us},-;{XID}\n SUBSYSTEM=pci\n".encode())
        reading = run.until(lambda reading: reading.messages)
    os.close(writer)
    [message] = reading.messages
    assert message.text == XID
    assert message.at == pytest.approx(time.time(), abs=10)


def test_kernel_messages_of_dmesg(tmp_path: Path) -> None:
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    lines = f"[    0.1] usb\n[{now:.6f}] efa 0000:00:1d.0: Admin queue is closed"
    dmesg = script(tmp_path / "dmesg", f"echo '{lines}'")
    with Run({"dmesg": dmesg}) as run:
        reading = run.until(lambda reading: reading.messages)
    assert [message.text for message in reading.messages] == ["efa 0000:00:1d.0: Admin queue is closed"]
    assert reading.log_source == "dmesg"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """One EFA device, one of another maker, and no GPU."""
    root = tmp_path / "sys"
    for name, vendor in (("rdmap16s27", "0x1d0f"), ("mlx5_0", "0x15b3")):
        device = root / "class/infiniband" / name
        for part in ("device", "hw_counters", "ports/1/hw_counters", "ports/1/gids"):
            (device / part).mkdir(parents=True)
        (device / "device/vendor").write_text(vendor + "\n")
        (device / "ports/1/gids/0").write_text("fe80:0000:0000:0000:0ea9:17ff:fe76:47ff\n")
        for counter, value in {"tx_bytes": 84417311044934, "rx_drops": 0, "lifespan": 12}.items():
            (device / "ports/1/hw_counters" / counter).write_text(f"{value}\n")
        (device / "hw_counters/keep_alive_rcvd").write_text("17\n")
    return root


def test_efa_counters(sysfs: Path) -> None:
    port = sysfs / "class/infiniband/rdmap16s27/ports/1/hw_counters"
    with Run({"sys": str(sysfs), "efa": 0.4}) as run:
        reading = run.until(lambda reading: reading.efa)
        [device] = reading.efa
        assert device.name == "rdmap16s27"
        assert device.gid.startswith("fe80:")
        assert dict(device.counters) == {"rx_drops": 0, "tx_bytes": 84417311044934, "dev.keep_alive_rcvd": 17}
        (port / "rx_drops").write_text("5\n")
        after = run.until(lambda reading: reading.efa[0].counters["rx_drops"] == 5)
        assert after.efa[0].counters["tx_bytes"] == 84417311044934
        changes = [json.loads(line)["e"] for line in run.lines if b'"e":[[0,' in line]
        assert changes[-1] == [[0, 0, 5]]
        # A new counter, as after a driver update, makes a new list.
        (port / "retrans_pkts").write_text("1\n")
        run.until(lambda reading: "retrans_pkts" in reading.efa[0].counters)


def test_a_stuck_efa_card_is_told(sysfs: Path) -> None:
    counter = sysfs / "class/infiniband/rdmap16s27/ports/1/hw_counters/tx_bytes"
    counter.unlink()
    os.mkfifo(counter)  # opening it blocks, as reading a counter of a stuck card does
    with Run({"sys": str(sysfs), "timeout": 0.5, "efa": 0.4}) as run:
        reading = run.until(lambda reading: "EFA counters" in reading.not_read)
        assert reading.not_read["EFA counters"] == "the card does not answer"
        assert reading.load


def stat(pid: int, comm: str, state: str, parent: int = 1) -> str:
    return f"{pid} ({comm}) {state} {parent} " + " ".join(["0"] * 17) + " 4711 0 0\n"


def test_stuck_processes_are_counted_and_the_longest_named(proc: Path) -> None:
    def put(pid: int, text: str, wchan: str = "") -> None:
        (proc / str(pid)).mkdir(exist_ok=True)
        (proc / str(pid) / "stat").write_text(text)
        (proc / str(pid) / "wchan").write_text(wchan)

    node = Node(str(proc))
    put(10, stat(10, "nvidia-smi) D (", "D"), "nvidia_ioctl")
    put(11, stat(11, "bash", "S"))
    assert node.scan(0.0)
    for pid in range(20, 28):
        put(pid, stat(pid, "python", "D"), "0")
    put(30, stat(30, "child", "D", parent=os.getpid()))  # the probe's own children do not count
    node.scan(100.0)
    assert node.stuck_count == 9
    longest = node.stuck(103.0)
    assert len(longest) == 5
    assert longest[0] == [10, "nvidia-smi) D (", "nvidia_ioctl", 103]
    assert longest[1][1:] == ["python", "", 3]


def test_a_pid_that_is_used_again_is_not_the_same_process(proc: Path) -> None:
    (proc / "10").mkdir()
    (proc / "10/stat").write_text(stat(10, "old", "D"))
    node = Node(str(proc))
    node.scan(0.0)
    (proc / "10/stat").write_text(stat(10, "new", "D").replace("4711", "9999"))
    node.scan(100.0)
    assert node.stuck(100.0) == [[10, "new", "", 0]]


def test_stat_fields_of_an_odd_name() -> None:
    assert stat_fields(stat(7, "a) R 1 (b", "D", 3).encode()) == ("a) R 1 (b", "D", "4711", "3")
    assert stat_fields(None) == stat_fields(b"") == ("", "", "", "")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_3", (4711, "0", "3")),
        ("9:memory:/slurm/uid_1000/job_88/step_batch/task_0\n1:name=systemd:/", (88, "batch", "0")),
        ("5:cpuset:/slurm_node1/uid_0/job_7/step_extern", (7, "extern", "")),
        ("4:freezer:/slurm/uid_5/job_12\n3:cpuset:/slurm/uid_5/job_12/step_2/task_1", (12, "2", "1")),
        ("0::/user.slice/user-1000.slice/session-3.scope", (None, "", "")),
    ],
)
def test_slurm_job_of_a_cgroup(path: str, expected: tuple[int | None, str, str]) -> None:
    assert cgroup_job(path) == expected


def finished(child: Child) -> bool:
    child.read()
    return child.eof and child.reap()


def test_an_environment_that_may_not_be_read_is_denied() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    other = subprocess.Popen(["sleep", "60"], env={"RANK": "3"})

    def ask() -> object:
        os.setgid(65534)
        os.setuid(65534)
        return describe("/proc", [other.pid, 4_000_000], with_environ=True)

    child = Nursery().start(answer(ask))
    try:
        assert wait_for(lambda: finished(child), 10)
        told = json.loads(child.out)
        assert told["4000000"] is None
        assert told[str(other.pid)][:2] == ["root", "sleep"]
        assert told[str(other.pid)][6:] == ["p"] * 4
    finally:
        other.kill()
        other.wait(5)


def test_a_real_file_system_that_hangs(tmp_path: Path) -> None:
    # A FUSE mount whose server never says a word: statfs blocks in the kernel, as on a dead Lustre.
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("needs root and /dev/fuse")
    point = tmp_path / "hung"
    point.mkdir()
    mount = (
        "import ctypes,os,sys; fd=os.open('/dev/fuse',os.O_RDWR); libc=ctypes.CDLL(None,use_errno=True);"
        "opts=('fd=%d,rootmode=40000,user_id=0,group_id=0'%fd).encode(); os.set_inheritable(fd,True);"
        "bad=libc.mount(b'dead',sys.argv[1].encode(),b'fuse',0,opts);"
        "bad and sys.exit('no fuse: %d'%ctypes.get_errno()); os.execvp(sys.argv[2],sys.argv[2:])"
    )
    argv = ["unshare", "-m", "python3", "-c", mount, str(point)]
    if subprocess.run([*argv, "true"], capture_output=True, check=False, timeout=20).returncode:
        pytest.skip("FUSE cannot be mounted here")
    words = probe_argv(INTERVAL_S, **{**QUIET, "timeout": 0.5, "mounts": 0.5})
    with Run(argv=[*argv, *words]) as run:
        reading = run.until(lambda reading: any(mount.hung_since for mount in reading.mounts))
        [hung] = [mount for mount in reading.mounts if mount.hung_since]
        assert hung.path == str(point)
        assert any(mount.total_mib for mount in reading.mounts)
        later = run.until(lambda after: after.number > reading.number + 6)
        assert later.load
        assert wait_for(lambda: sum(program(pid).startswith("python") for pid in run.children()) <= 3, 5)


DEVICES = Path("/sys/fs/cgroup/devices")


@pytest.mark.skipif(os.getuid() != 0 or not os.access(DEVICES, os.W_OK), reason="needs root and cgroup devices (v1)")
def test_devices_that_a_cgroup_keeps_away_are_hidden_even_from_root(tmp_path: Path) -> None:
    dev = tmp_path / "dev"
    dev.mkdir()
    for number in range(3):
        os.mknod(dev / f"nvidia{number}", 0o020666, os.makedev(1, 3 if number == 1 else 5))
    for name in ("nvidiactl", "nvidia-uvm", "null"):
        (dev / name).touch()
    assert hidden_gpus(str(dev), os.listdir(dev)) == []
    group = DEVICES / f"cockpit-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "devices.deny").write_text("c 1:3 rwm")
        code = (
            "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid()))\n"
            "from cockpit.probe.agent.inventory import hidden_gpus\n"
            "print(hidden_gpus(sys.argv[2], os.listdir(sys.argv[2])))"
        )
        argv = [sys.executable, "-c", code, str(group / "cgroup.procs"), str(dev)]
        assert subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30).stdout == "[1]\n"
    finally:
        group.rmdir()
