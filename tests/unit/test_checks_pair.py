"""Pairs over EFA with a stand-in fi_pingpong that really listens and connects; nothing of it may stay behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from cockpit.checks.deep import DeepRequest, parse_deep, submit_argv
from cockpit.checks.models import PairResult, Verdict
from cockpit.checks.pair import Ends, PairCheck, client_argv, judge_ping, new_port, pairs_of, server_argv
from cockpit.formats.efa_tools import parse_ping
from cockpit.hosts.base import Completed
from cockpit.hosts.local import LocalHost
from cockpit.models import Fault, FaultError, FaultKind

ROWS = """bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64      10      =10      1.2k        0.00s      1.77      36.25       0.03
256     10      =10      5k          0.00s     14.80      {latency}       0.06
1m      10      =10      20m         0.01s   9800.00     107.00       0.01
"""
# -B PORT listens and serves one; -P PORT ADDRESS connects, as the real one does over TCP before it uses EFA.
STAND_IN = """#!{python} -IS
import os, socket, sys, time
words = sys.argv[1:]
assert words[:4] == ["-p", "efa", "-e", "rdm"], words
rows = open({rows!r}).read()
if words[4] == "-B":
    open({pids!r}, "a").write(str(os.getpid()) + "\\n")
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", int(words[5])))
    server.listen(1)
    peer, _ = server.accept()
    peer.sendall(b"x")
    print(rows, flush=True)
else:
    try:
        peer = socket.create_connection((words[6], int(words[5])), 5)
    except OSError as error:
        print("fi_pingpong: connect: " + str(error))
        sys.exit(1)
    peer.recv(1)
    {client}
    print(rows, flush=True)
"""


class Pair:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, client: str = "", latency: str = "17.30") -> None:
        self.pids = folder / "pids"
        self.pids.touch()
        rows = folder / "rows"
        rows.write_text(ROWS.format(latency=latency))
        program = folder / "bin" / "fi_pingpong"
        program.parent.mkdir()
        program.write_text(STAND_IN.format(python=sys.executable, rows=str(rows), pids=str(self.pids), client=client))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        self.host = LocalHost()
        self.check = PairCheck(lambda _: self.host)
        self.ends = Ends("a", "b", "127.0.0.1", new_port())

    def run(self) -> PairResult:
        return self.check.run(self.ends)

    def left(self) -> list[int]:
        """Servers that still live, after a moment to end in."""
        until = time.monotonic() + 10
        while True:
            pids = [int(word) for word in self.pids.read_text().split()]
            alive = [pid for pid in pids if Path(f"/proc/{pid}").exists() and "Z" not in _state(pid)]
            if not alive or time.monotonic() > until:
                return alive
            time.sleep(0.05)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_two_nodes_that_reach_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(tmp_path, monkeypatch)
    told = pair.run()
    assert told.result.verdict is Verdict.PASS, told
    assert told.result.says == "17 µs, 9,800 MB/s at 1 MiB"
    assert (told.latency_us, told.mb_s, told.size_bytes) == (17.3, 9800.0, 2**20)
    assert told.result.commands[0].startswith("a: fi_pingpong -p efa -e rdm -B ")
    assert pair.left() == []


def test_slow_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Pair(tmp_path, monkeypatch, latency="400.0").run().result.verdict is Verdict.WARN


def test_a_client_that_fails_leaves_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = 'print("fi_pingpong: ret=-113 (No route to host)"); sys.exit(113)'
    pair = Pair(tmp_path, monkeypatch, client=fails)
    told = pair.run()
    assert told.result.verdict is Verdict.FAIL
    assert "security group" in told.result.says
    assert told.result.next_step
    assert pair.left() == []


def test_an_interrupted_check_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(tmp_path, monkeypatch, client="time.sleep(600)")
    found: list[PairResult] = []
    thread = threading.Thread(target=lambda: found.append(pair.run()), daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not pair.pids.read_text() and time.monotonic() < until:
        time.sleep(0.02)
    pair.check.cancel()
    assert pair.left() == []
    pair.host.close()  # ends the client as well, as leaving the cockpit does
    thread.join(20)
    assert found[0].result.verdict is Verdict.UNKNOWN


def test_a_server_whose_connection_is_lost_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(tmp_path, monkeypatch)
    process = subprocess.Popen(server_argv(pair.ends.port), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"#started\n"
    while not pair.pids.read_text():
        time.sleep(0.02)
    process.stdin.close()
    assert process.wait(15) is not None
    process.stdout.close()
    assert pair.left() == []


def test_a_node_without_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sh", "timeout", "env", "cat"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path))
    told = PairCheck(lambda _: LocalHost()).run(Ends("a", "b", "127.0.0.1", new_port()))
    assert told.result.verdict is Verdict.UNKNOWN
    assert told.result.says == "fi_pingpong is not on a"


def test_a_node_that_cannot_be_reached() -> None:
    fault = Fault(FaultKind.UNREACHABLE, "node a", "connection refused")

    def stream(*_: object, **__: object) -> None:
        raise FaultError(fault)

    host = SimpleNamespace(name="a", stream=stream, run=lambda *_, **__: Completed(0, b"", b"", 0.1))
    told = PairCheck(lambda _: host).run(Ends("a", "b", "x", 1))
    assert told.result.verdict is Verdict.UNKNOWN
    assert "connection refused" in told.result.says


ENDS = Ends("a", "b", "10.0.0.1", 47592)


@pytest.mark.parametrize(
    ("text", "rc", "words"),
    [
        ("", 124, "security group or network ACL"),
        ("fi_pingpong: connect: Connection refused", 1, "refuses the control connection"),
        ("fi_getinfo: -61 (No data available)", 61, "-61"),
        ("ret=-103 (Software caused connection abort)", 1, "not reachable over EFA"),
        ("something else", 2, "status 2"),
    ],
)
def test_failures_in_words(text: str, rc: int, words: str) -> None:
    verdict, says = judge_ping(parse_ping(text), rc, ENDS, 100.0)
    assert (verdict, words in says) == (Verdict.FAIL, True)


def test_every_node_of_a_round_is_in_one_pair() -> None:
    (one,) = pairs_of(["a", "b", "c", "d"])
    assert sorted(node for pair in one for node in pair) == ["a", "b", "c", "d"]
    assert len(pairs_of([f"n{number}" for number in range(7)], 2)) == 2
    assert "timeout" in client_argv(1, "x")[2]


# -- NVIDIA's diagnostics


def test_the_job_of_the_diagnostics() -> None:
    argv = submit_argv(DeepRequest(("n1", "n2"), 2, partition="gpu", name="cockpit-dcgm-x"))
    assert argv[:2] == ("sbatch", "--parsable")
    assert "--nodelist=n[1-2]" in argv
    assert "--exclusive" in argv
    with pytest.raises(ValueError, match="levels"):
        submit_argv(DeepRequest(("n1",), 4))


def test_what_the_diagnostics_say() -> None:
    good = '{"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [{"name": "Denylist",' \
           ' "results": [{"gpu_id": "0", "status": "Pass"}]}]}]}}'  # fmt: skip
    bad = good.replace("Pass", "Fail").replace("Denylist", "Memory")
    text = (
        f"#cockpit-dcgm n1 | {good}\n#cockpit-dcgm n1 rc=0\n#cockpit-dcgm n2 | {bad}\n#cockpit-dcgm n2 rc=226\n"
        "#cockpit-dcgm n3 missing\nsrun: error: something\n"
        "#cockpit-dcgm n4 | | Denylist                  | Pass                    |\n#cockpit-dcgm n4 rc=0\n"
        f"#cockpit-dcgm n5 | {good}\n"
    )
    told = parse_deep(text, ["n1", "n2", "n3", "n4", "n5", "n6"])
    assert {node: result.verdict for node, result in told.items()} == {
        "n1": Verdict.PASS,
        "n2": Verdict.FAIL,
        "n3": Verdict.UNKNOWN,
        "n4": Verdict.PASS,
        "n5": Verdict.UNKNOWN,  # it did not end
        "n6": Verdict.UNKNOWN,
    }
    assert told["n2"].says == "failed: Memory"
    assert "dcgmi is not on the node" in told["n3"].says
