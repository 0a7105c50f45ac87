"""Many nodes at once: those that hang are named and delay nobody; what a node without Python tells; what is kept."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cockpit.catalog.checks import check_fact, checks_for, known_checks, parts_for
from cockpit.checks.facts import Facts, Known
from cockpit.checks.history import CheckHistory, since
from cockpit.checks.judge import drift, judge
from cockpit.checks.models import CheckRun, NodeResult, PairResult, Result, Verdict
from cockpit.checks.report import exit_code, run_lines, run_record
from cockpit.checks.runner import CheckRunner, Target
from cockpit.formats.errors import FormatError
from cockpit.formats.look import PartState, parse_look
from cockpit.hosts.base import Completed
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.probe.look import Asking, look_argv, look_stdin

ANSWER = json.dumps({"k": "look", "v": 1, "t": time.time(), "host": "n", "s": 1, "py": "3.9", "parts": {}},
                    separators=(",", ":")).encode()  # fmt: skip


class FakeHost:
    """Answers, hangs until it is let go, or fails."""

    name = "node"

    def __init__(self, answer: bytes = ANSWER, gate: threading.Event | None = None, fault: Fault | None = None) -> None:
        self.answer, self.gate, self.fault = answer, gate, fault

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        if self.gate is not None:
            self.gate.wait(30)
            raise FaultError(Fault(FaultKind.TIMEOUT, self.name, "gave no answer within 85 s"))
        if self.fault is not None:
            raise FaultError(self.fault)
        return Completed(0, self.answer, b"", 0.01)


def runner(hosts: dict[str, FakeHost], kind: str = "efa") -> CheckRunner:
    return CheckRunner(kind, lambda name: hosts[name])  # type: ignore[arg-type,return-value]


def test_64_nodes_of_which_8_hang() -> None:
    gate = threading.Event()
    hosts = {f"n{number}": FakeHost(gate=gate if number % 8 == 0 else None) for number in range(64)}
    told: list[str] = []

    def on_result(node: NodeResult) -> None:
        told.append(node.node)
        if len(told) == 56:  # all that can answer have, while eight still hang
            gate.set()

    run = runner(hosts).run([Target(name) for name in hosts], on_result)
    assert len(run.nodes) == 64
    assert len(run.asked) == 56
    assert {node.node for node in run.nodes if node.fault} == {f"n{number}" for number in range(0, 64, 8)}
    assert set(told[:56]) == {node.node for node in run.asked}
    lines = "\n".join(run_lines(run))
    assert "NO ANSWER n[0,8,16,24,32,40,48,56]" in lines
    assert exit_code(run) == 1


class MeetingHost(FakeHost):
    """Answers only once all of them are being asked."""

    def __init__(self, meeting: threading.Barrier) -> None:
        super().__init__()
        self.meeting = meeting

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        self.meeting.wait(30)
        return super().run(argv, **options)


def test_64_nodes_are_asked_at_the_same_time() -> None:
    """So that all of them take as long as the slowest: nobody waits for another's answer."""
    meeting = threading.Barrier(64)
    hosts: dict[str, FakeHost] = {f"n{number}": MeetingHost(meeting) for number in range(64)}
    run = runner(hosts).run([Target(name) for name in hosts])
    assert len(run.asked) == 64, run.nodes[0].fault
    assert run.took_s < 2 * max(node.took_s for node in run.nodes)


def test_a_run_that_is_cancelled_waits_for_nobody() -> None:
    gate = threading.Event()
    hosts = {"a": FakeHost(), "b": FakeHost(gate=gate)}
    check = runner(hosts)
    run = check.run([Target("a"), Target("b")], lambda _: check.cancel())
    assert [node.node for node in run.nodes] == ["a"]
    assert run.left_out == (("b", "cancelled"),)
    gate.set()


def test_faults_of_nodes_are_told_and_exit_codes_follow() -> None:
    refused = Fault(FaultKind.UNREACHABLE, "node a", "connection refused", "is it up?")
    run = runner({"a": FakeHost(fault=refused)}).run([Target("a")])
    assert run.nodes[0].fault == refused
    assert run.verdict is Verdict.UNKNOWN
    assert exit_code(run) == 3
    garbled = runner({"a": FakeHost(answer=b"Welcome!\r\n")}).run([Target("a")])
    assert garbled.nodes[0].fault is not None
    assert garbled.nodes[0].fault.kind is FaultKind.GARBLED
    nothing = runner({"a": FakeHost(answer=b"")}).run([Target("a")])
    assert "log in there by hand" in (nothing.nodes[0].fault or refused).next_step
    broken = CheckRunner("efa", lambda _: (_ for _ in ()).throw(RuntimeError("x"))).run([Target("a")])
    assert broken.nodes[0].fault is not None


def test_a_greeting_before_the_answer_does_no_harm() -> None:
    assert parse_look(b"Welcome to the cluster\n" + ANSWER + b"\n").host == "n"
    for bad in (b"", b"{", b'{"k":"look","v":9}', b'{"k":"look"' + b"[" * 100_000, b"\xff" * 100):
        with pytest.raises(FormatError):
            parse_look(bad)


def test_any_answer_can_be_judged() -> None:
    parts = {name: {"rc": 0, "out": "[[1,2,3],{},null,[[]]]", "s": "x"} for name in parts_for("efa")}
    odd: list[Any] = [parts, dict.fromkeys(parts), {name: {"rc": 0, "out": "{}"} for name in parts}, [], 7]
    for told in odd:
        look = parse_look(json.dumps({"k": "look", "v": 1, "parts": told}, separators=(",", ":")).encode())
        for kind in ("efa", "health"):
            results = judge(Facts(look), kind)
            assert results
            assert not any("could not be judged" in result.says for result in results), results


def test_a_node_without_python_tells_what_a_shell_can(tmp_path: Path) -> None:
    """The script as it is sent, run by a shell whose PATH has no python3."""
    asking = Asking(parts_for("efa") | {"slow": {"kind": "run", "argv": ["sleep", "60"], "timeout_s": 1}}, 20.0)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in (
        "sh",
        "timeout",
        "head",
        "tr",
        "sed",
        "awk",
        "uname",
        "date",
        "grep",
        "readlink",
        "cat",
        "dd",
        "sleep",
    ):
        (tools / name).symlink_to(shutil.which(name) or "/bin/false")
    (tools / "fi_info").write_text("#!/bin/sh\necho 'fi_getinfo: -61 (No data available)'; exit 61\n")
    (tools / "fi_info").chmod(0o755)
    data = look_stdin(asking)
    script = data[24 : 24 + int(data[:8])].decode()
    done = subprocess.run([tools / "sh", "-c", script], capture_output=True, env={"PATH": str(tools)}, check=True)
    look = parse_look(done.stdout)
    assert look.python == ""
    assert look.part("fi_info").rc == 61
    assert look.part("slow").state is PartState.LATE
    assert look.part("stuck").state is PartState.UNASKED
    assert look.part("host").rows[0][0] == "/proc/uptime"
    results = {result.check: result for result in judge(Facts(look), "efa")}
    assert results["efa.devices"].says.startswith("no EFA device")


def test_the_look_is_given_to_old_pythons(tmp_path: Path) -> None:
    found = [path for minor in (6, 7, 8) if (path := shutil.which(f"python3.{minor}"))]
    working = [path for path in found if _runs(path)]
    if not working:
        pytest.skip("no old Python here")
    asking = Asking({"kernel": {"kind": "run", "argv": ["uname", "-r"], "timeout_s": 5}}, 20.0, reading=True)
    for python in working:
        argv = [
            python,
            "-IS",
            "-c",
            *look_argv(asking)[3:],
            "sys=/none",
            "kmsg=/none",
            "journalctl=/none",
            "dmesg=/none",
        ]
        done = subprocess.run(argv, input=look_stdin(asking), capture_output=True, check=True, timeout=60)
        look = parse_look(done.stdout)
        assert look.part("kernel").done
        assert look.reading is not None
        assert look.reading.mem_total_mib


def _runs(python: str) -> bool:
    return subprocess.run([python, "-IS", "-c", "import zlib"], capture_output=True, check=False).returncode == 0


# -- the catalogue


def test_every_rule_has_its_entry_and_every_entry_its_rule() -> None:
    look = parse_look(ANSWER)
    judged = {result.check for kind in ("efa", "health") for result in judge(Facts(look), kind)}
    judged |= {"efa.admin"}
    wanted = {name for kind in ("efa", "health") for name in checks_for(kind) if not name.startswith("aws.")}
    assert wanted <= judged
    assert judged <= set(known_checks())


def test_every_threshold_that_a_site_may_move_is_read() -> None:
    folder = Path(judge.__code__.co_filename).parent
    sources = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    named = {name for check in known_checks() for name in check_fact(check).thresholds}
    assert {name for name in named if f'"{name}"' not in sources} == set()


# -- drift, history, report


def node(name: str, *results: Result, queue: str = "gpu", **versions: str) -> NodeResult:
    return NodeResult(name, 1000.0, 1.0, results, queue=queue, instance_type="p5.48xlarge", versions=versions)


def test_drift_names_the_odd_ones_of_each_queue() -> None:
    nodes = [node(f"n{number}", efa="3.0.0", plugin="1.18") for number in range(3)]
    nodes += [node("n3", efa="2.8.0"), node("other", queue="cpu", efa="1.0")]
    (found,) = drift(nodes, "efa")
    assert (found.title, found.usual, found.usual_count) == ("EFA driver", "3.0.0", 3)
    assert found.odd == (("2.8.0", ("n3",)),)


def run_of(at: float, verdict: Verdict, kind: str = "efa") -> CheckRun:
    result = Result("efa.devices", verdict, "31 of 32 devices")
    return CheckRun(f"r{at}", kind, at, nodes=(node("n1", result),))


def test_since_when(tmp_path: Path) -> None:
    history = CheckHistory(tmp_path / "checks" / "x.jsonl")
    for at, verdict in ((100, Verdict.PASS), (200, Verdict.FAIL), (300, Verdict.FAIL)):
        history.append(run_of(at, verdict))
    broken = NodeResult("n1", 400.0, 1.0, fault=Fault(FaultKind.TIMEOUT, "n1", "no answer"))
    history.append(CheckRun("r400", "efa", 400.0, nodes=(broken,)))
    runs = history.load()
    told = since(runs, "n1", "efa.devices")
    assert told is not None
    assert (told.at, told.runs, told.before) == (200, 2, Verdict.PASS)
    assert since(runs, "n1", "efa.plugin") is None
    assert oct(history.path.stat().st_mode)[-3:] == "600"
    line = "\n".join(run_lines(run_of(500.0, Verdict.FAIL), runs))
    assert "2 runs" in line
    with history.path.open("ab") as file:
        file.write(b'{"half a line')
    history.append(run_of(600, Verdict.PASS))
    assert len(history.load()) == 5
    assert history.skipped == 1


def test_pairs_are_kept_at_both_nodes(tmp_path: Path) -> None:
    history = CheckHistory(tmp_path / "x.jsonl")
    pair = PairResult("a", "b", 100.0, 1.0, Result("efa.pair", Verdict.FAIL, "no answer"))
    history.append(CheckRun("p", "pair", 100.0, pairs=(pair,)))
    runs = history.load()
    assert since(runs, "a", "efa.pair:b") is not None
    assert since(runs, "b", "efa.pair:a") is not None


def test_the_worst_comes_first_and_nodes_with_the_same_finding_are_one_line() -> None:
    bad = Result("efa.plugin", Verdict.FAIL, "no plugin", next_step="install it")
    fine = Result("efa.plugin", Verdict.PASS, "1.18")
    warned = Result("efa.plugin", Verdict.WARN, "old")
    run = CheckRun("r", "efa", 0.0, 3.0, nodes=(node("a", fine), node("b", warned), node("c", bad), node("d", bad)))
    lines = list(run_lines(run))
    assert lines[0] == "FAIL    c,d: OFI plugin for NCCL: no plugin"
    assert lines[-1] == "4 nodes: 2 failed, 1 with warnings, 1 fine, in 3.0 s"
    record = run_record(run)
    assert [each["node"] for each in record["nodes"]] == ["c", "d", "b", "a"]
    assert record["nodes"][0]["drain_reason"] == "OFI plugin for NCCL: no plugin"
    assert record["nodes"][2]["drain_reason"] is None
    assert record["nodes"][0]["checks"][0]["sources"]
    json.dumps(record)
    assert exit_code(run) == 1
    assert exit_code(CheckRun("r", "efa", 0.0, nodes=(node("a", fine), node("b", warned)))) == 0


def test_known_facts_travel_with_the_target() -> None:
    host = FakeHost()
    (told,) = runner({"a": host}).run([Target("a", Known("a", queue="q", instance_type="p4d.24xlarge"))]).nodes
    assert (told.queue, told.instance_type) == ("q", "p4d.24xlarge")
    devices = told.of("efa.devices")
    assert devices is not None
    assert devices.verdict is not Verdict.PASS
