"""What one process does, from its Python stack and from where it is in the kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cockpit.rank_models import Frame, RankProcess, ThreadStack

# Kinds that wait for other ranks: whoever is in one of them is a victim.
WAITS_FOR_OTHERS = frozenset({"collective", "setup", "rendezvous", "network"})
_DEPTH = 14

_DATA = r"(try_)?get_data$|load_(batch|data|sample)|next_batch|get_batch|fetch_(batch|data)|read_(batch|shard)"
_GROUP = r"barrier|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|wait_for_(all|others|peers)"
_GPU_WAIT = r"^(_?wait|wait_tensor|item|cpu|synchronize|(_engine_)?(run_)?backward|reduce|send|recv)$"
# The first row that fits a frame names it; frames are looked at from the innermost out. (kind, function, file)
_TABLE: tuple[tuple[str, str, str], ...] = (
    ("debugger", r"^(set_trace|interaction|cmdloop|breakpointhook|input)$", r"(pdb|bdb|cmd|code)\.py$"),
    ("data", r"", r"torch/utils/data/|/dataloader\.py$|/data_loader\.py$|/datasets?/|webdataset|/dataset\.py$"),
    ("data", _DATA, r""),
    ("storage", r"^(save|load)_(checkpoint|state|model)|checkpoint|^_?(save|write|load)_?file$|^fsync$", r""),
    ("storage", r"^(_?save|_?load|persistent_\w+)$", r"torch/serialization\.py$|safetensors|distributed/checkpoint"),
    ("setup", r"ncclCommInitRank|_new_process_group_helper|^init_process_group$|^_init_process_group", r""),
    ("rendezvous", r"_store_based_barrier|rendezvous|TCPStore|_create_c10d_store|wait_for_(master|workers|rank)", r""),
    ("collective", _GROUP, r""),
    ("collective", _GPU_WAIT, r"torch/"),
    ("compile", r"compile_fx|_compile|async_compile|codegen", r"torch/_(dynamo|inductor)|triton/"),
    ("evaluation", r"^(evaluate|evaluation|validate|validation|eval_(loop|step|epoch))", r""),
    ("garbage", r"^(collect|__del__)$", r""),
    ("service", r"", r"/(requests|urllib3|botocore|boto3|httpx|aiohttp|wandb|mlflow)/"),
)  # fmt: skip
_COMPILED = tuple((kind, re.compile(function), re.compile(file)) for kind, function, file in _TABLE)
# Where a wait ends; what it is for stands further out.
_LEAVES = re.compile(
    r"^(wait|_?wait_for_\w*lock|get|poll|_poll|select|acquire|sleep|recv\w*|read\w*|accept|join|__enter__)$"
)
_LIBRARY = re.compile(r"/lib(64)?/python3?[\d.]*/(?!site-packages|dist-packages)|^<frozen|^<built-in")

# Where the kernel holds a sleeping thread.
_CHANNELS: tuple[tuple[str, str], ...] = (
    ("stopped", r"do_signal_stop|ptrace_stop|do_jobctl"),
    ("storage", r"nfs|^rpc_|ptlrpc|cl_sync_io|cl_lock|ll_|lustre|lov_|osc_|fuse|request_wait_answer|ceph|gpfs|cifs|smb|"
     r"wait_on_page|folio_wait|io_schedule|jbd2|ext4|xfs|blk_|sync_inodes|wb_wait|d_alloc_parallel|rwsem_down"),
    ("driver", r"^nv|^_nv|uvm|os_acquire|rm_|gsp"),
    ("pipe", r"pipe_(read|write|wait)|anon_pipe|fifo_open|wait_for_partner"),
    ("network", r"inet_csk_accept|inet_wait_for_connect|sk_wait|wait_woken|tcp_|unix_|skb_wait|skb_recv|inet_stream"),
    ("network", r"ep_poll|epoll_wait|do_poll|do_select|poll_schedule"),
    ("sleep", r"nanosleep|schedule_timeout$"),
    ("lock", r"futex"),
    ("child", r"^(do_)?wait(4|id|pid)?$|kernel_wait"),
)  # fmt: skip
_CHANNEL_RES = tuple((kind, re.compile(pattern)) for kind, pattern in _CHANNELS)
_WORDS = {
    "collective": "waits in a collective operation",
    "setup": "sets up communication",
    "rendezvous": "waits for the other ranks to come",
    "network": "waits for something from the network",
    "data": "loads data",
    "storage": "reads or writes a file",
    "debugger": "stands in a debugger",
    "garbage": "collects garbage",
    "service": "talks to a service",
    "compile": "compiles",
    "evaluation": "evaluates",
    "pipe": "waits for the other end of a pipe",
    "sleep": "sleeps",
    "lock": "waits for a lock",
    "child": "waits for another process",
    "driver": "is in the GPU's driver",
    "running": "runs",
    "stopped": "is stopped",
    "python": "is elsewhere in the program",
}


# What the kernel says beside a stack when it says more than that it waits.
_TELLING = ("pipe", "driver", "storage", "sleep", "child")


@dataclass(frozen=True, slots=True)
class Doing:
    """`kind` as in _WORDS; `key` is the same for ranks that do the same; `where` names function, file and line."""

    kind: str
    words: str
    key: str
    where: str = ""
    stacked: bool = False  # a Python stack says so

    @property
    def short(self) -> str:
        """The words without the place."""
        return _WORDS.get(self.kind, "waits in the kernel")

    @property
    def waits_for_others(self) -> bool:
        """True where the rank is a victim."""
        return self.kind in WAITS_FOR_OTHERS


def doing(process: RankProcess) -> Doing | None:
    """What it does by the latest that was read; None when nothing was."""
    pulse = process.second or process.first
    channel = channel_kind(pulse.wait_channel, pulse.state) if pulse else ""
    threads = process.dumps[-1].threads if process.dumps else ()
    main = next((thread for thread in threads if thread.main), None)
    if main is not None and main.frames:
        return _of_stack(main, channel, process)
    if not channel or pulse is None:
        return None
    name = pulse.wait_channel or pulse.state
    words = _WORDS.get(channel, "waits in the kernel") + _behind(process)
    return Doing(channel, words, f"{channel}:{process.program or process.command}", name)


def channel_kind(channel: str, state: str) -> str:
    """The kind of what a thread waits for in the kernel; "" when that is not told."""
    if state in ("T", "t"):
        return "stopped"
    if not channel:
        return "running" if state == "R" else ""
    for kind, pattern in _CHANNEL_RES:
        if pattern.search(channel):
            return kind
    return "kernel"


def _of_stack(thread: ThreadStack, channel: str, process: RankProcess) -> Doing:
    kind, frame = _classified(thread.frames)
    if kind == "python":
        # The program's own names say nothing; then the kernel's word for what it waits for is the better one.
        kind = channel if channel in ("network", "storage", "pipe", "driver", "stopped", "lock", "sleep") else kind
    where = place(frame)
    behind = _behind(process) or (f", {_WORDS[channel]}" if channel in _TELLING and channel != kind else "")
    words = f"{_WORDS.get(kind, 'waits in the kernel')} in {where}{behind}"
    return Doing(kind, words, f"{kind}:{frame.function}:{short_file(frame)}", where, stacked=True)


def _classified(frames: tuple[Frame, ...]) -> tuple[str, Frame]:
    own: Frame | None = None
    for frame in frames[:_DEPTH]:
        for kind, function, file in _COMPILED:
            if function.search(frame.function) and file.search(frame.file):
                return kind, frame
        if own is None and not _LEAVES.match(frame.function) and not _LIBRARY.search(frame.file):
            own = frame
    return "python", own or frames[0]


def place(frame: Frame) -> str:
    """`load_batch (train.py:30)`."""
    line = f":{frame.line}" if frame.line is not None else ""
    return f"{frame.function} ({short_file(frame)}{line})"


def short_file(frame: Frame) -> str:
    """The last part of a path."""
    return frame.file.rpartition("/")[2]


def _behind(process: RankProcess) -> str:
    file = process.close.file if process.close else ""
    if file.startswith("pipe:"):
        return " on a pipe"
    return f" on {file}" if file.startswith("/") else ""
