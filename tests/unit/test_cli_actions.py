"""Changes from the command line: exit codes, questions, and nothing sent that was not confirmed."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cockpit.demo.cluster import DemoCluster
from cockpit.demo.programs import registry
from tests.unit.action_kit import is_write


class Demo:
    """A demo cluster, its config, and every simulated command that reached it."""

    def __init__(self) -> None:
        self.cluster = DemoCluster(scenario="calm")
        self.sent: list[tuple[bool, list[str]]] = []
        self.config = self.cluster.start()

    @property
    def writes(self) -> list[list[str]]:
        return [argv for _, argv in self.sent if is_write(argv)]


@pytest.fixture(name="demo")
def a_demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[Demo]:
    demo = Demo()
    real = registry.run

    def logged(sim: Any, argv: Any, env: Any, host: str, *, root: bool = False) -> Any:
        demo.sent.append((root, list(argv)))
        return real(sim, argv, env, host, root=root)

    monkeypatch.setattr("cockpit.demo.execution.run", logged)
    monkeypatch.setattr("cockpit.demo.stubs.run", logged)
    yield demo
    demo.cluster.stop()


def argv_of(demo: Demo, words: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "cockpit", "--config", str(demo.config), *words]


def environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "SUDO_USER": "maria",
        "LOGNAME": "maria",
    }


def cockpit(demo: Demo, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv_of(demo, words),
        capture_output=True,
        text=True,
        env=environment(home),
        timeout=90,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_a_dry_run_prints_the_plan_and_changes_nothing(demo: Demo, tmp_path: Path) -> None:
    done = cockpit(demo, tmp_path, "drain", "gpu-st-p5-1", "--reason", "x", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "update nodename=gpu-st-p5-1 state=drain 'reason=maria: x'" in done.stdout
    assert "48212  aisha  jupyter" in done.stdout
    assert demo.writes == []
    assert not (tmp_path / "state").exists()


def test_read_only_is_exit_4_and_nothing_is_sent(demo: Demo, tmp_path: Path) -> None:
    commands = [
        ("drain", "gpu-st-p5-1", "--reason", "x"),
        ("reboot", "gpu-st-p5-1", "--reason", "x", "--confirm", "demo"),
        ("scale", "gpu", "10"),
        ("queue", "down", "gpu"),
        ("cancel", "48212"),
    ]
    for words in commands:
        done = cockpit(demo, tmp_path, "--read-only", *words, "--yes")
        assert done.returncode == 4, words
        assert "read-only: the cockpit was started with --read-only" in done.stderr
    assert cockpit(demo, tmp_path, "drain", "gpu-st-p5-1", "--reason", "x", "--dry-run", "--read-only").returncode == 4
    assert demo.writes == []


def test_a_change_is_done_seen_recorded_and_undone(demo: Demo, tmp_path: Path) -> None:
    done = cockpit(demo, tmp_path, "drain", "gpu-st-p5-[1-2]", "--reason", "NCCL", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["schema"], told["cluster"], told["result"]["outcome"]) == (1, "demo", "ok")
    assert told["result"]["targets"]["gpu-st-p5-1"]["state"] == "done"
    assert all(demo.cluster.sim.nodes[f"gpu-st-p5-{number}"].drain for number in (1, 2))
    assert [argv[1:4] for argv in demo.writes] == [["update", "nodename=gpu-st-p5-[1-2]", "state=drain"]]
    audit = json.loads(cockpit(demo, tmp_path, "audit", "--json").stdout)
    (entry,) = audit["actions"]
    assert entry["id"] == told["result"]["audit_id"]
    assert entry["who"]["login"].startswith("demo@")
    assert entry["commands"][0][0] == "sudo"
    text = cockpit(demo, tmp_path, "audit", "--since", "1h").stdout
    assert "reason: maria: NCCL" in text
    assert cockpit(demo, tmp_path, "undo", entry["id"], "--yes").returncode == 0
    assert not demo.cluster.sim.nodes["gpu-st-p5-1"].drain


def test_exit_codes(demo: Demo, tmp_path: Path) -> None:
    for words, code, says in (
        (("drain", "nope", "--reason", "x", "--yes"), 2, "no such node on demo: nope"),
        (("drain", "gpu-st-p5-[1-100000]", "--reason", "x", "--yes"), 2, "more than 65,536 hosts"),
        (("drain", "gpu-st-p5-1", "--yes"), 2, "say why"),
        (("drain", "gpu-st-p5-1", "--reason", "x"), 4, "without a terminal it needs --yes"),
        (("reboot", "gpu-st-p5-1", "--reason", "x", "--yes"), 4, "this needs --confirm demo beside --yes"),
        (("reboot", "gpu-st-p5-1", "--reason", "x", "--yes", "--confirm", "Demo"), 4, "not confirmed"),
        (("cancel", "nonsense", "--yes"), 2, "is no job id"),
        (("cancel", "99999", "--yes"), 4, "is not in the queue"),
        (("scale", "gpux", "3", "--yes"), 2, "no queue gpux"),
        (("scale", "gpu", "99", "--yes"), 4, "that is a change of its configuration"),
        (
            ("scale", "gpu", "-1", "--dry-run"),
            2,
            "'-1' is no number of nodes: say how many shall be up, a whole number",
        ),
        (("scale", "gpu", "--dry-run", "--", "-1"), 2, "from 0 to 12, which is all that queue gpu has"),
        (("scale", "gpu", "1e9", "--dry-run"), 2, "'1e9' is no number of nodes"),
        (("scale", "gpu", "abc", "--dry-run"), 2, "'abc' is no number of nodes"),
        (("scale", "gpu", "", "--dry-run"), 2, "cockpit: say how many shall be up"),
        (("scale", "gpu", "9999999999", "--dry-run"), 2, "'9999999999' is no number of nodes"),
        (("stop", "--dry-run"), 4, "cannot be stopped or started from here; `cockpit demo --scenario idle`"),
        (("start", "--dry-run"), 4, "the config names nothing of AWS"),
        (("undo", "2020", "--yes"), 2, "no recorded action '2020'"),
        (("audit", "--since", "soon"), 2, "--since soon"),
    ):
        done = cockpit(demo, tmp_path, *words)
        assert done.returncode == code, (words, done.stderr)
        assert says in done.stderr
        assert "Traceback" not in done.stderr
    assert demo.writes == []


def test_a_head_that_is_away_is_exit_3_with_the_reason(demo: Demo, tmp_path: Path) -> None:
    away = tmp_path / "away.yaml"
    away.write_text('clusters: {away: {head: "root@127.0.0.1:1"}}\n')
    for words in (("drain", "n1", "--reason", "x"), ("cancel", "12"), ("scale", "gpu", "3"), ("nice", "-100", "12")):
        done = cockpit(demo, tmp_path, *words, "--config", str(away), "--yes")
        assert done.returncode == 3, done.stderr
        assert "connection refused" in done.stderr


class Terminal:
    """The command on a pseudo-terminal."""

    def __init__(self, demo: Demo, home: Path, *words: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            argv_of(demo, words), stdin=slave, stdout=slave, stderr=slave, env=environment(home), start_new_session=True
        )
        os.close(slave)
        self.output = ""

    def until(self, text: str) -> None:
        deadline = time.monotonic() + 60
        while text not in self.output:
            assert time.monotonic() < deadline, self.output
            if select.select([self.master], [], [], 0.2)[0]:
                self.output += os.read(self.master, 65536).decode(errors="replace")

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def end(self) -> int:
        code = self.process.wait(60)
        os.close(self.master)
        return code


def test_the_question_wants_the_count_and_a_paste_is_no_answer(demo: Demo, tmp_path: Path) -> None:
    screen = Terminal(demo, tmp_path, "drain", "gpu-st-p5-[1-2]", "--reason", "x")
    screen.until("type how many it changes, 2, to go on:")
    screen.type("y\ny\n")
    screen.until("nothing was changed")
    assert screen.end() == 4
    assert demo.writes == []
    screen = Terminal(demo, tmp_path, "drain", "gpu-st-p5-[1-2]", "--reason", "x")
    screen.until("to go on:")
    screen.type("2\n")
    screen.until("done, seen in Slurm")
    assert screen.end() == 0
    assert demo.cluster.sim.nodes["gpu-st-p5-2"].drain


def test_ctrl_c_while_watching_tells_what_was_done(demo: Demo, tmp_path: Path) -> None:
    screen = Terminal(demo, tmp_path, "scale", "gpu", "10", "--yes")
    screen.until("powering up")
    os.kill(screen.process.pid, signal.SIGINT)
    screen.until("cancelled: scale gpu to 10 nodes")
    assert screen.end() == 130
    audit = json.loads(cockpit(demo, tmp_path, "audit", "--json").stdout)
    assert audit["actions"][-1]["outcome"] == "cancelled"


def test_the_cli_stays_lean() -> None:
    script = "import cockpit.cli, sys; cockpit.cli._parser(); print(any(m.startswith('actions') for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
