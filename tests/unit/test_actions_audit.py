"""The record: on the disk before anything happens, private, whole lines only, and honest about what is not known."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from actions.audit import AuditError, AuditLog, Entry, new_id
from actions.audit_lines import lines, since
from cockpit.config import ConfigError
from tests.unit.action_kit import Kit


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SUDO_USER", "maria")
    monkeypatch.setenv("LOGNAME", "maria")


def records(log: AuditLog) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.path.read_text().splitlines()]


def test_one_line_before_and_one_after_with_all_that_was_done(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    kit.do("drain", "gpu-st-p5-[4-5]", reason="NCCL slow")
    begin, end = records(kit.log)
    assert begin["phase"] == "begin"
    assert begin["who"] == {"user": "maria", "host": os.uname().nodename, "login": "ops@head"}
    assert begin["commands"] == [list(kit.writes[0])]
    assert (begin["targets"], begin["reason"], begin["tier"]) == ("gpu-st-p5-[4-5]", "maria: NCCL slow", 2)
    assert begin["confirmed"] == "typed '2'"
    assert str(begin["at"]).endswith("Z")
    assert (end["id"], end["phase"], end["outcome"]) == (begin["id"], "end", "ok")
    assert end["results"] == [{"rc": 0, "took_s": 0.01, "said": "", "fault": None}]
    assert end["verified"] == {"done": "gpu-st-p5-[4-5]"}
    assert kit.log.path.stat().st_mode & 0o777 == 0o600


def test_the_line_before_is_there_when_the_command_is_sent(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    seen: list[int] = []
    real = kit.head.run

    def run(argv: list[str], **options: object) -> object:
        if argv[0] == "sudo" and "update" in argv:
            seen.append(len(records(kit.log)))
        return real(argv, **options)  # type: ignore[arg-type]

    kit.head.run = run  # type: ignore[method-assign, assignment]
    kit.do("drain", "gpu-st-p5-5", reason="x")
    assert seen == [1]


def test_no_record_no_change(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    kit.log.path.parent.mkdir(parents=True, exist_ok=True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    kit.log.path.write_bytes(b'{"half')
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))  # as a full disk: the line does not fit any more
    try:
        result = kit.run(kit.plan("drain", "gpu-st-p5-5", reason="x"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert result.outcome == "refused"
    assert result.text.startswith("no change without its record: ")
    assert kit.writes == []
    assert kit.log.path.read_bytes() == b'{"half'  # not half a line more


def test_a_folder_that_cannot_be_made_refuses_too(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    (tmp_path / "file").write_text("")
    kit.runner.audit = AuditLog("still", tmp_path / "file" / "audit")
    assert kit.run(kit.plan("drain", "gpu-st-p5-5", reason="x")).outcome == "refused"
    assert kit.writes == []


def test_a_full_disk_at_the_end_is_told_and_the_outcome_stays_open(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    plan = kit.plan("drain", "gpu-st-p5-5", reason="x")
    real = kit.log.append

    def append(record: dict[str, object]) -> None:
        if record["phase"] == "end":
            raise AuditError("no space left on device")
        real(record)

    kit.log.append = append  # type: ignore[method-assign, assignment]
    result = kit.run(plan)
    assert result.outcome == "ok"
    assert "the record of its end could not be written: no space left on device" in result.notes[-1]


def test_a_symbolic_link_or_a_device_is_no_record(tmp_path: Path) -> None:
    log = AuditLog("x", tmp_path)
    log.path.symlink_to("/dev/full")
    with pytest.raises(AuditError):
        log.append({"id": "1"})
    other = AuditLog("y", tmp_path)
    os.mkfifo(other.path)
    with pytest.raises(AuditError, match="no plain file"):
        other.append({"id": "1"})


@pytest.mark.parametrize("name", ["../../etc/passwd", "prod/eu", "a b", "naïve", "x" * 60])
def test_a_clusters_name_never_leaves_the_folder(tmp_path: Path, name: str) -> None:
    log = AuditLog(name, tmp_path)
    log.append({"id": "1", "phase": "begin"})
    assert log.path.parent == tmp_path
    assert AuditLog.of(log.path).path == log.path


def test_too_open_a_file_is_closed_to_others(tmp_path: Path) -> None:
    log = AuditLog("x", tmp_path)
    log.append({"id": "1", "phase": "begin"})
    log.path.chmod(0o644)
    log.append({"id": "2", "phase": "begin"})
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_half_lines_and_strangers_are_passed_over(tmp_path: Path) -> None:
    log = AuditLog("x", tmp_path)
    log.append({"id": "1", "phase": "begin"})
    with log.path.open("ab") as file:
        file.write(b'[1,2]\n\xff\xfe\n{"id":"9","phase":"end"}\n{"id":"2","phase":"be')
    log.append({"id": "3", "phase": "begin"})
    log.append({"id": "3", "phase": "end", "outcome": "ok"})
    assert [(entry.id, entry.outcome) for entry in log.entries()] == [("1", "outcome unknown"), ("3", "ok")]


def test_two_cockpits_never_mix_their_lines(tmp_path: Path) -> None:
    def write(number: int) -> None:
        log = AuditLog("x", tmp_path)
        for at in range(25):
            log.append({"id": f"{number}-{at}", "phase": "begin", "text": "y" * 5000})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(AuditLog("x", tmp_path).entries()) == 100


_KILLED = """
    import sys, threading
    from pathlib import Path
    from tests.unit.action_kit import Kit, is_write

    kit = Kit(Path(sys.argv[1]))
    real = kit.head.run

    def run(argv, **options):
        if is_write(argv):
            print("sent", flush=True)
            threading.Event().wait()
        return real(argv, **options)

    kit.head.run = run
    kit.run(kit.plan("drain", "gpu-st-p5-5", reason="x"))
"""


def test_a_cockpit_killed_between_the_two_lines_leaves_the_first(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", textwrap.dedent(_KILLED), str(tmp_path)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert process.stdout is not None
    assert process.stdout.readline() == b"sent\n"
    log = AuditLog("still", tmp_path)
    assert [entry.outcome for entry in log.entries()] == ["running"]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (entry,) = log.entries()
    assert entry.outcome == "outcome unknown"
    text = "\n".join(lines([entry]))
    assert "drain gpu-st-p5-5: outcome unknown" in text
    assert "[not known whether it ran]" in text
    assert "look at the cluster" in text


def test_a_refusal_is_one_line(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    kit.cluster.lock.forced = True
    kit.run(kit.plan("drain", "gpu-st-p5-5", reason="x"))
    (record,) = records(kit.log)
    assert (record["phase"], record["outcome"]) == ("refused", "refused")
    assert "[not run]" in "\n".join(lines(kit.log.entries()))


def test_what_others_wrote_reaches_the_terminal_harmless(tmp_path: Path) -> None:
    entry = Entry({"id": "1\x1b[2J", "title": "x\nroot@evil", "commands": [["a\x07", "b c"]], "who": {"user": "\x9b"}})
    text = lines([entry])
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for line in text for char in line)


def test_since_takes_ages_and_moments() -> None:
    assert since("2h", now=10_000) == 10_000 - 7200
    assert since("") == 0
    assert since("2026-11-30T18:00Z") == 1796061600
    with pytest.raises(ConfigError, match="--since soon"):
        since("soon")


def test_ids_are_typed_and_sorted_by_time() -> None:
    first = new_id()
    assert first[:8] == time.strftime("%Y%m%d", time.gmtime())
    assert len(first) == 20
