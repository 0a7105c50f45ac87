"""What a look does only when it is asked for by name: a py-spy that comes along, a dump of the flight recorder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cockpit.config import ConfigError
from cockpit.probe.agent import recorder
from cockpit.probe.agent.shipped import Shipped
from cockpit.probe.bundle import packed_tool, sweep_argv, sweep_stdin

JOB = 10_000_000 + os.getpid()  # a sweep looks at the whole machine: tests beside this one have other jobs
STACK = [{"pid": 1, "thread_name": "MainThread", "os_thread_id": 1, "frames": [
    {"name": "load_batch", "filename": "/job/train.py", "line": 30}]}]  # fmt: skip
# What stands for py-spy: it says where it lies, and prints a stack as the real one does.
SPY = '#!/bin/sh\necho "$0" >> {noted}\nls -ld "$(dirname "$0")" >> {noted}\ncat <<\'E\'\n{stack}\nE\n'


@contextmanager
def rank(folder: Path, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like rank 3 of the job."""
    told = {"PATH": "/usr/bin:/bin", "RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "3", "SLURM_JOB_ID": str(JOB), **env}
    process = subprocess.Popen(["sleep", "60"], env=told, cwd=folder)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def started(folder: Path, pid: int, packed: bytes = b"", **options: str | float) -> subprocess.Popen[bytes]:
    scontrol = folder / "scontrol"
    scontrol.write_text(f"#!/bin/sh\necho PID JOBID STEPID LOCALID GLOBALID\necho {pid} {JOB} 0 3 3\n")
    scontrol.chmod(0o755)
    argv = sweep_argv(JOB, scontrol=str(scontrol), again=0.1, **options)
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)}
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert process.stdin is not None
    process.stdin.write(sweep_stdin(packed))
    process.stdin.flush()
    return process


def swept(folder: Path, pid: int, packed: bytes = b"", **options: str | float) -> list[dict[str, Any]]:
    process = started(folder, pid, packed, **options)
    try:
        assert process.stdout is not None
        lines = [json.loads(line) for line in process.stdout]
        assert process.wait(20) == 0
        return lines
    finally:
        process.kill()
        process.communicate()


def left_behind(folder: Path) -> list[Path]:
    return list(folder.glob("cockpit-py-spy-*"))


def missing(lines: list[dict[str, Any]]) -> dict[str, str]:
    return dict(next(line["no"] for line in lines if line["k"] == "e"))


def test_a_shipped_py_spy_runs_from_a_private_folder_and_is_gone_afterwards(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    script = SPY.format(noted=noted, stack=json.dumps(STACK))
    with rank(tmp_path) as process:
        lines = swept(tmp_path, process.pid, zlib.compress(script.encode()))
    stacks = [line["is"] for line in lines if line["k"] == "y"]
    assert [stack[0]["f"] for stack in stacks] == [[["load_batch", "/job/train.py", 30]]] * 2
    where = noted.read_text().splitlines()
    assert where[0].startswith(str(tmp_path / "cockpit-py-spy-"))
    assert where[1].startswith("drwx------")
    assert "stacks" not in missing(lines)
    assert left_behind(tmp_path) == []


def test_without_one_nothing_is_written_and_it_says_what_is_missing(tmp_path: Path) -> None:
    with rank(tmp_path) as process:
        lines = swept(tmp_path, process.pid)
    assert missing(lines)["stacks"].startswith("no py-spy on this node")
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("end", ["stdin", "TERM", "HUP"])
def test_whatever_ends_the_look_takes_it_away(tmp_path: Path, end: str) -> None:
    with rank(tmp_path) as process:
        look = started(tmp_path, process.pid, zlib.compress(b"#!/bin/sh\nexec sleep 30\n"))
        try:
            until(lambda: left_behind(tmp_path))
            if end == "stdin":
                assert look.stdin is not None
                look.stdin.close()
            else:
                look.send_signal(getattr(signal, f"SIG{end}"))
            look.wait(10)
            assert left_behind(tmp_path) == []
        finally:
            look.kill()
            look.wait()
            assert look.stdout is not None
            look.stdout.close()


def test_a_signal_while_the_folder_is_made_leaves_none_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("cockpit.probe.agent.shipped._PLACES", ())
    shipped, made = Shipped(), tempfile.mkdtemp

    def made_and_told_to_end(**words: str) -> str:
        folder = made(**words)
        signal.raise_signal(signal.SIGTERM)  # the folder is there, and nobody has been given its name
        return folder

    monkeypatch.setattr("tempfile.mkdtemp", made_and_told_to_end)
    before = signal.signal(signal.SIGTERM, lambda *_: shipped.remove())
    try:
        assert shipped.unpack(zlib.compress(b"x")) == ""
    finally:
        signal.signal(signal.SIGTERM, before)
    assert left_behind(tmp_path) == []


def test_what_did_not_arrive_whole_or_may_not_be_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    broken = Shipped()
    assert broken.unpack(b"no zlib") == ""
    assert "did not arrive whole" in broken.why
    monkeypatch.setattr("cockpit.probe.agent.shipped._PLACES", ())
    monkeypatch.setattr(os, "access", lambda *_: False)  # as on a file system mounted noexec
    barred = Shipped()
    assert barred.unpack(zlib.compress(b"x")) == ""
    assert barred.why == f"nothing may be run in {tmp_path}"
    assert left_behind(tmp_path) == []


def test_only_a_linux_program_travels(tmp_path: Path) -> None:
    script, program = tmp_path / "py-spy.py", tmp_path / "py-spy"
    script.write_text("#!/usr/bin/python3\n")
    program.write_bytes(b"\x7fELF" + bytes(100))
    assert zlib.decompress(packed_tool(program)) == program.read_bytes()
    for path, words in ((script, "is no Linux program"), (tmp_path / "none", "cannot be read")):
        with pytest.raises(ConfigError, match=words):
            packed_tool(path)


# The flight recorder.


@contextmanager
def recording(folder: Path, *, writes: bool = True) -> Iterator[tuple[str, list[bytes]]]:
    """A pipe that a rank reads, which then writes its record as PyTorch does; yields its stem and what was read."""
    stem = str(folder / "fr_")
    os.mkfifo(f"{stem}3.pipe")
    heard: list[bytes] = []
    over = threading.Event()
    fd = os.open(f"{stem}3.pipe", os.O_RDONLY | os.O_NONBLOCK)

    def read() -> None:
        while not over.wait(0.02):
            data = os.read(fd, 16)
            if data:
                heard.append(data)
                if writes:
                    (folder / "trace_3").write_bytes(b"a record")

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield stem, heard
    finally:
        over.set()
        thread.join()
        os.close(fd)


def test_the_recorder_is_asked_only_by_name_and_its_fresh_record_comes_back(tmp_path: Path) -> None:
    with recording(tmp_path) as (stem, heard):
        env = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": stem, "TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "trace_")}
        with rank(tmp_path, **env) as process:
            lines = swept(tmp_path, process.pid)
            assert heard == []
            assert not [line for line in lines if line["k"] == "f"]
            lines = swept(tmp_path, process.pid, trigger="1", deadline=20)
    assert heard == [b"1"]
    assert [line["is"]["path"].rpartition("/")[2] for line in lines if line["k"] == "f"][:1] == ["trace_3"]
    assert "flight record of rank 3" not in missing(lines)


def test_a_job_without_pipes_says_so(tmp_path: Path) -> None:
    with rank(tmp_path) as process:
        lines = swept(tmp_path, process.pid, trigger="1")
    assert "TORCH_NCCL_DEBUG_INFO_PIPE_FILE" in missing(lines)["flight records"]


def test_a_pipe_that_nobody_reads_refuses_at_once_and_a_file_is_not_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert recorder.trigger(str(tmp_path / "pipe")) == "nobody reads its pipe"
    (tmp_path / "file").write_text("mine")
    assert recorder.trigger(str(tmp_path / "file")) == "what stands for its pipe is none"
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert recorder.trigger(str(tmp_path / "link")) != ""


def test_a_rank_that_writes_no_record_is_evidence_itself(tmp_path: Path) -> None:
    (tmp_path / "trace_3").write_bytes(b"an old record")
    os.utime(tmp_path / "trace_3", (time.time() - 3600,) * 2)
    with recording(tmp_path, writes=False) as (stem, heard):
        told = recorder.dumped(f"{stem}3.pipe", [str(tmp_path / "trace_3")], 0.5)
        until(lambda: heard)
    assert told == {"error": "it was asked for its flight record and wrote none within 0.5 s"}


def until(true: Any) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_files_that_no_time_was_left_for_are_told_as_unread(tmp_path: Path) -> None:
    """What was not read must not look like what is not there: a rank without a flight record counts as frozen."""
    slow = tmp_path / "py-spy"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    with rank(tmp_path) as process:
        lines = swept(tmp_path, process.pid, pyspy=str(slow), deadline=1.5)
    assert "no time was left" in missing(lines)["files of the ranks"]


def test_a_process_whose_memory_is_locked_is_told_and_hangs_nothing(tmp_path: Path) -> None:
    """What it hangs in may hold the lock of its memory: who reads its environment or arguments waits too."""
    proc = tmp_path / "proc"
    (proc / "77").mkdir(parents=True)
    (proc / "uptime").write_text("1000.0 1.0\n")
    (proc / "77/stat").write_text("77 (python3) D " + " ".join(["1"] * 18) + " 500 0 0 0\n")
    (proc / "77/cgroup").write_text(f"0::/system.slice/slurmstepd.scope/job_{JOB}/step_0/user/task_3\n")
    for name in ("environ", "cmdline"):
        os.mkfifo(proc / "77" / name)  # opening it blocks, as reading that of such a process does
    lines = swept(tmp_path, 77, proc=str(proc), deadline=12.0)
    told = next(line["ps"] for line in lines if line["k"] == "p")
    assert [(one["pid"], one["s"]) for one in told] == [(77, "D")]
    assert lines[-1]["k"] == "e"
    assert "environments" in missing(lines)


def test_a_record_is_told_once_and_places_without_one_are_not(tmp_path: Path) -> None:
    """It is looked for in several places, each in a child: they lie on network file systems as a rule."""
    record = tmp_path / "fr_3"
    record.write_bytes(b"{}")
    home = tmp_path / "home" / ".cache" / "torch"
    home.mkdir(parents=True)
    with rank(tmp_path, HOME=str(tmp_path / "home"), TORCH_FR_DUMP_TEMP_FILE=str(tmp_path / "fr_")) as process:
        lines = swept(tmp_path, process.pid, deadline=8.0)
    assert [line["is"]["path"] for line in lines if line["k"] == "f"] == [str(record)]
