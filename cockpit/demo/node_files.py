"""A demo node's own little /proc, /sys and kernel log, and the programs that the probe calls there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cockpit.demo import node_software
from cockpit.demo.gpu_state import COUNTERS, GPU_BUSES, Rank
from cockpit.demo.jobs import USERS

KERNEL = "6.1.134-150.224.amzn2023.x86_64"
_EFA_DEVICES = 32
_KINDS = 4  # every fourth EFA device is the same one by another name: hundreds of files more would cost too much
_RECORD = 8192  # one read of the kernel log gives one record; a file does so when records are as long as a read
_MEM_KIB = 2_097_152_000
_QUIET = (
    "lifespan", "rdma_read_bytes", "rdma_read_resp_bytes", "rdma_read_wr_err", "rdma_read_wrs", "rdma_write_wr_err",
    "rx_drops", "retrans_bytes", "retrans_pkts", "retrans_timeout_events", "impaired_remote_conn_events",
    "unresponsive_remote_events",
)  # fmt: skip
_OF_DEVICE = ("alloc_pd_err", "cmds_err", "create_qp_err", "keep_alive_rcvd", "no_completion_cmds", "reg_mr_err")
_MOUNTS = """\
/dev/nvme0n1p1 / xfs rw,noatime 0 0
10.0.24.11:/home /home nfs4 rw,vers=4.1,hard 0 0
10.0.31.200@tcp:/fsxdemo /fsx lustre rw,flock,lazystatfs 0 0
/dev/md0 /scratch xfs rw,noatime 0 0
tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0
"""
_DF = """\
#!/bin/sh
case "$1" in
    /) echo '[511992,{root},{root_free},262130,41877]' ;;
    /home) echo '[10485760,5511024,4974736,671088640,38112004]' ;;
    /fsx) echo '[100663296,72813021,27850275,4026531840,811204377]' ;;
    /scratch) echo '[28610560,{scratch},{scratch_free},1464843750,91733]' ;;
    /dev/shm) echo '[1024000,512,1023488,131072000,17]' ;;
    *) echo "$1: no such file or directory"; exit 1 ;;
esac
"""
# py-spy is given: dump --json --nonblocking --pid N. A rank that works is at another line each time.
_PYSPY = """\
#!/bin/sh
exec sed "s/@LINE@/1$(date +%N | cut -c1-3)/" {folder}/proc/$5/pyspy.json
"""
_LISTPIDS = """\
#!/bin/sh
head -1 {folder}/listpids
awk -v job="$2" '$2 == job' {folder}/listpids
"""
_TORCH = "/opt/env/lib/python3.12/site-packages/torch"
_STEP = ("train_step", "/fsx/code/train.py", 212)
_REDUCE = [
    ("all_reduce", f"{_TORCH}/distributed/distributed_c10d.py", 2810),
    ("wrapper", f"{_TORCH}/distributed/c10d_logger.py", 81),
    _STEP,
]
_STACKS: dict[str, list[tuple[str, str, int]]] = {
    "train": [("forward", "/fsx/code/model.py", 0), _STEP],
    "spin": _REDUCE,
    "held": _REDUCE,
    "odd": [
        ("get", "/opt/env/lib/python3.12/queue.py", 180),
        ("_try_get_data", f"{_TORCH}/utils/data/dataloader.py", 1133),
        ("__next__", f"{_TORCH}/utils/data/dataloader.py", 708),
        ("train_loop", "/fsx/code/train.py", 198),
    ],
}


class NodeFiles:
    """The folder of one node. Everything is made at once; only what changes is written again."""

    def __init__(
        self, folder: Path, name: str, index: int, booted_at: float, efa_lost: int = 0, plugin: str = ""
    ) -> None:
        self.folder = folder
        self._booted_at = booted_at
        self._ranks: dict[int, Rank] = {}
        self._logged = 0
        folder.mkdir(mode=0o700, parents=True)
        self._make_proc(name)
        devices = [f"rdmap{79 + number * 3}s0" for number in range(_EFA_DEVICES - efa_lost)]
        self._make_sys(index, devices)
        node_software.make(folder, devices, plugin)
        (folder / "kmsg").touch()
        _program(folder / "py-spy", _PYSPY.format(folder=folder))
        _program(folder / "scontrol", _LISTPIDS.format(folder=folder))
        root, scratch = 158_000 + index * 977 % 40_000, 3_100_000 + index * 1_370_003 % 14_000_000
        _program(
            folder / "df",
            _DF.format(root=root, root_free=511_992 - root, scratch=scratch, scratch_free=28_610_560 - scratch),
        )

    def options(self) -> list[str]:
        """Words for the probe's command line that make it look here instead of at the machine below."""
        at = self.folder
        told = {"proc": "proc", "sys": "sys", "kmsg": "kmsg", "mount_check": "df", "root": "root", "tools": "tools"}
        told |= {"dev": "dev"}
        none = ("journalctl", "dmesg", "nvidia_smi", "neuron_ls", "neuron_monitor")
        return [
            *(f"{name}={at / path}" for name, path in told.items()),
            *(f"{name}={at / 'none' / name}" for name in none),
        ]

    def _make_proc(self, name: str) -> None:
        proc = self.folder / "proc"
        self._made("proc/self")
        self._made("proc/sys/kernel/random")
        number = hashlib.sha256(f"{name} {self._booted_at}".encode()).hexdigest()
        boot = f"{number[:8]}-{number[8:12]}-4{number[13:16]}-8{number[17:20]}-{number[20:]}"
        _write(proc / "sys/kernel/random/boot_id", boot + "\n")
        _write(proc / "stat", f"cpu 0 0 0 0\nbtime {int(self._booted_at)}\n")
        uptime_s = time.time() - self._booted_at
        _write(proc / "uptime", f"{uptime_s:.2f} {uptime_s * 150:.2f}".ljust(47) + "\n")
        _write(proc / "loadavg", "1.00 1.00 1.00 1/2800 99999".ljust(63) + "\n")
        _write(proc / "self/mounts", _MOUNTS)
        _write(proc / "sys/kernel/osrelease", KERNEL + "\n")
        self._write_memory(0)

    def _write_memory(self, used_kib: int) -> None:
        free = _MEM_KIB - 61_000_000 - used_kib
        text = f"MemTotal:       {_MEM_KIB} kB\nMemFree:        {free - 9_000_000} kB\nMemAvailable:   {free} kB\n"
        _replace(self.folder / "proc/meminfo", text + node_software.huge_pages())

    def _make_sys(self, index: int, devices: Sequence[str]) -> None:
        """GPUs and EFA devices on the bus. What devices share is there once, with links to it."""
        card = self._made("parts/gpu")
        _write(card / "vendor", "0x10de\n")
        _write(card / "class", "0x030200\n")
        for bus in GPU_BUSES:
            (self._made("sys/bus/pci/devices") / f"0000:{bus}:00.0").symlink_to(card)
        efa = self._made("parts/efa")
        for name, text in (("vendor", "0x1d0f"), ("device", "0xefa1"), ("p2p", "NVIDIA")):
            _write(efa / name, text + "\n")
        (efa / "driver").symlink_to(self._made("parts/drivers/efa"))
        for counter in _OF_DEVICE:
            _write(self._made("parts/hw_counters") / counter, "0\n")
        for kind in range(_KINDS):
            self._make_efa(index, kind)
        for number, name in enumerate(devices):
            device = self._made("sys/class/infiniband") / name
            device.symlink_to(self.folder / f"efa/{number % _KINDS}")

    def _make_efa(self, index: int, kind: int) -> None:
        device = self._made(f"efa/{kind}")
        gid = f"fe80:0000:0000:0000:0c{index % 256:02x}:{index // 256:02x}ff:fe4d:{kind:04x}"
        _write(self._made(f"efa/{kind}/ports/1/gids") / "0", gid + "\n")
        (device / "device").symlink_to(self.folder / "parts/efa")
        (device / "hw_counters").symlink_to(self.folder / "parts/hw_counters")
        counters = self._made(f"efa/{kind}/ports/1/hw_counters")
        for counter in (*COUNTERS, *_QUIET):
            _write(counters / counter, "0".ljust(23) + "\n")

    def _made(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def sweep_options(self) -> list[str]:
        """The same for one look at a job's processes."""
        at = self.folder
        return [
            f"proc={at / 'proc'}",
            f"mount_check={at / 'df'}",
            f"pyspy={at / 'py-spy'}",
            f"scontrol={at / 'scontrol'}",
        ]

    def put_state(self, state: dict[str, Any]) -> None:
        """Replace what the simulated NVML answers from."""
        _replace(self.folder / "state.json", json.dumps(state, separators=(",", ":")))

    def put_ranks(self, ranks: list[Rank]) -> None:
        """Make /proc hold exactly these processes."""
        wanted = {rank.pid: rank for rank in ranks}
        for pid, rank in list(self._ranks.items()):
            if wanted.get(pid) != rank:
                shutil.rmtree(self.folder / f"proc/{pid}", ignore_errors=True)
                del self._ranks[pid]
        for pid, rank in wanted.items():
            if pid not in self._ranks:
                self._make_process(rank)
                self._ranks[pid] = rank
        self._write_memory(41_000_000 * len(ranks))
        rows = [f"{one.pid} {one.job_id} {one.step} {one.local} {one.rank or 0}\n" for one in ranks]
        _replace(self.folder / "listpids", "PID JOBID STEPID LOCALID GLOBALID\n" + "".join(rows))

    def _make_process(self, rank: Rank) -> None:
        ticks = int((rank.started_at - self._booted_at) * os.sysconf("SC_CLK_TCK"))
        # Made beside and moved, so that nobody reads half a process.
        folder, made = self.folder / f"proc/{rank.pid}", self.folder / f"new-{rank.pid}"
        made.mkdir()
        # Field 22 is the start time; only what stands before it is ever read.
        stat = f"{rank.pid} ({rank.program[:15]}) S {rank.pid - 1} {'0 ' * 17}{ticks} 0 0\n"
        scope = f"/system.slice/slurmstepd.scope/job_{rank.job_id}/step_{rank.step}/user/task_{rank.node_rank}"
        uid = USERS[rank.uid_of]
        _write(made / "stat", stat)
        _write(made / "status", f"Name:\t{rank.program[:15]}\nState:\tS (sleeping)\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        _write(made / "cgroup", f"0::{scope}\n")
        _write(made / "cmdline", f"{rank.program}\0-u\0train.py\0")
        _write(made / "environ", "\0".join(f"{name}={value}" for name, value in _environ(rank).items()) + "\0")
        self._make_thread(made, rank)
        made.rename(folder)

    def _make_thread(self, made: Path, rank: Rank) -> None:
        """Where the main thread is, for a diagnosis: in the kernel, and by py-spy."""
        main = made / f"task/{rank.pid}"
        main.mkdir(parents=True)
        waits = rank.mode in ("spin", "held")
        where = "futex_wait_queue" if rank.mode == "odd" else "0"
        for place in (main, made):
            _write(place / "wchan", where)
        _write(main / "stat", (made / "stat").read_text(encoding="utf-8"))
        frames = _STACKS.get(rank.mode, _STACKS["train"])
        moving = 0 if waits or rank.mode == "odd" else 1  # its line is another one each time
        rows = [
            {"name": name, "filename": file, "line": "@LINE@" if moving and not at else line}
            for at, (name, file, line) in enumerate(frames)
        ]
        thread = {"pid": rank.pid, "thread_name": "MainThread", "os_thread_id": rank.pid, "frames": rows}
        _write(made / "pyspy.json", json.dumps([thread]).replace('"@LINE@"', "@LINE@"))

    def log(self, messages: list[tuple[float, str]], now: float) -> None:
        """Append the kernel messages that are due and have not been written; `messages` only ever grows."""
        due = [message for message in messages[self._logged :] if message[0] <= now]
        if not due:
            return
        offset = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
        with (self.folder / "kmsg").open("ab") as file:
            for at, text in due:
                self._logged += 1
                micro = max(0, int((at - offset) * 1e6))
                file.write(f"3,{self._logged},{micro},-;{text}\n".encode().ljust(_RECORD, b"\0"))


def _environ(rank: Rank) -> dict[str, object]:
    told: dict[str, object] = {
        "SLURM_JOB_ID": rank.job_id,
        "SLURM_STEP_ID": rank.step,
        "SLURM_PROCID": rank.node_rank,
        "SLURM_LOCALID": 0,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    if rank.rank is not None:
        told |= {"RANK": rank.rank, "LOCAL_RANK": rank.local, "WORLD_SIZE": rank.world, "MASTER_PORT": 29500}
    return told


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".new")
    _write(beside, text)
    beside.replace(path)


def _program(path: Path, text: str) -> None:
    _write(path, text)
    path.chmod(0o700)
