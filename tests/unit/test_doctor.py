"""The doctor's steps: what rests on what, deadlines, words, and the whole on the demo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cockpit import aws_policy
from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig, Config, PrometheusSettings
from cockpit.demo.cluster import DemoCluster
from cockpit.doctor import on_prometheus
from cockpit.doctor.aws_rights import asks, needed
from cockpit.doctor.examine import examine, worst
from cockpit.doctor.here import Here
from cockpit.doctor.models import Finding, Step, Verdict, failed, not_applicable, passed, unknown
from cockpit.doctor.on_head import sudo_line
from cockpit.doctor.on_nodes import sample
from cockpit.doctor.report import result_json, result_lines, summary
from cockpit.hosts.local import LocalHost
from cockpit.models import Fault, FaultError, FaultKind, Health, Node, NodeState


def step(name: str, finding: Finding, *after: str) -> Step:
    return Step(name, f"the {name}", lambda: finding, after)


def test_what_rests_on_a_failed_step_is_not_tried() -> None:
    results = examine(
        [
            step("a", passed("fine")),
            step("b", failed("broken", "mend it"), "a"),
            step("c", passed("never seen"), "b"),
            step("d", passed("never seen"), "c"),
            step("e", passed("seen"), "a"),
        ]
    )
    verdicts = [Verdict.PASS, Verdict.FAIL, Verdict.NOT_TRIED, Verdict.NOT_TRIED, Verdict.PASS]
    assert [result.verdict for result in results] == verdicts
    assert results[2].finding.detail == "needs: the b"
    assert worst(results) is Verdict.FAIL


def test_what_is_not_needed_or_not_known_blocks_nothing() -> None:
    results = examine(
        [step("a", not_applicable("local")), step("b", unknown("who knows"), "a"), step("c", passed("x"), "b")]
    )
    assert results[2].verdict is Verdict.PASS
    assert worst(results) is Verdict.PASS


def test_a_step_that_hangs_is_given_up_at_its_deadline() -> None:
    forever = threading.Event()

    def hang() -> Finding:
        forever.wait()
        return passed("too late")

    (result,) = examine([Step("a", "a", hang, deadline_s=0.05)])
    forever.set()
    assert (result.verdict, result.finding.detail) == (Verdict.FAIL, "no answer within 0.05 s")


def test_faults_become_findings_with_their_next_step() -> None:
    def refuse() -> Finding:
        raise FaultError(Fault(FaultKind.AUTH, "SSH to head", "refused", "ssh-add"))

    def defect() -> Finding:
        raise ZeroDivisionError("oops")

    first, second = examine([Step("a", "a", refuse), Step("b", "b", defect)])
    assert first.finding == failed("SSH to head: refused", "ssh-add")
    assert "defect of the cockpit" in second.finding.remedy[0]


def test_it_ends_when_asked_to() -> None:
    stop = threading.Event()
    results = examine([step("a", passed("x")), step("b", passed("x"))], lambda result: stop.set(), stop=stop)
    assert [result.id for result in results] == ["a"]


def test_text_from_outside_stays_on_its_line() -> None:
    (result,) = examine([step("a", failed("said \x1b[31m\nmore", "run\x07 this"))])
    lines = result_lines(result)
    assert len(lines) == 2
    assert not any(char in "".join(lines) for char in "\x1b\n\x07")
    assert lines[0].startswith("FAIL")
    assert result_json(result)["verdict"] == "fail"


def test_long_words_are_wrapped_below_themselves_and_remedies_stay_whole() -> None:
    (result,) = examine([step("a", failed("word " * 40, "ssh -o " + "x" * 200))])
    lines = result_lines(result, 100)
    assert max(map(len, lines[:-1])) <= 100
    assert lines[1].startswith(" " * 41 + "word")
    assert lines[-1].endswith("x" * 200)
    assert len(result_lines(result)) == 2


def test_the_summary_counts() -> None:
    results = examine([step("a", passed("x")), step("b", failed("x")), step("c", passed("x"), "b")])
    assert summary(results) == "1 failure; 1 pass, 1 not tried"


def test_a_sample_sees_every_queue_first() -> None:
    nodes = [Node(f"n{n}", NodeState("idle"), "idle", Health.OK, partitions=(f"q{n // 4}",)) for n in range(12)]
    assert [node.name for node in sample(nodes)] == ["n0", "n4", "n8", "n1"]


def test_the_sudo_line_names_whole_paths() -> None:
    assert sudo_line("ops", "/opt/slurm/bin") == (
        "ops ALL=(root) NOPASSWD: /opt/slurm/bin/scontrol, /opt/slurm/bin/scancel"
    )


def test_every_right_to_read_has_a_question() -> None:
    scope = AwsScope(stack="prod", fleet_table="parallelcluster-prod", nodes_table="parallelcluster-slurm-prod")
    assert set(asks(scope, 0.0)) == {*aws_policy.READS, *aws_policy.TABLE_READS}
    assert all(set(needed(kind)) <= set(asks(scope, 0.0)) for kind in ("parallelcluster", "slurm", "hyperpod"))


def test_the_state_directory_must_be_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config({"x": ClusterConfig("x")}, "x")
    steps = {step.id: step for step in Here(config, "x").steps()}
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert steps["state"].look().verdict is Verdict.PASS
    assert list((tmp_path / "cockpit").iterdir()) == []
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    found = steps["state"].look()
    assert found.verdict is Verdict.FAIL
    assert "mkdir -p" in found.remedy[0]


def test_a_prometheus_that_is_not_there_fails_with_the_line_to_try(free_port: int) -> None:
    config = replace(ClusterConfig("x"), prometheus=PrometheusSettings(f"http://127.0.0.1:{free_port}"))
    (asked,) = on_prometheus.steps(config, LocalHost())
    found = asked.look()
    assert found.verdict is Verdict.FAIL
    assert "curl" in found.remedy[-1]
    (asked,) = on_prometheus.steps(ClusterConfig("x"), LocalHost())
    assert asked.look().verdict is Verdict.NOT_APPLICABLE


@pytest.fixture
def free_port() -> int:
    from tests.sshd import free_address

    return free_address()[1]


# -- the whole


def doctor(config: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
    argv = [sys.executable, "-m", "cockpit", "--config", str(config), "doctor", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120, check=False)


@pytest.fixture(scope="module")
def demo() -> Iterator[Path]:
    cluster = DemoCluster()
    yield cluster.start()
    cluster.stop()


def test_the_demo_is_healthy(demo: Path, tmp_path: Path) -> None:
    done = doctor(demo, tmp_path, "--json")
    told: dict[str, Any] = json.loads(done.stdout)
    verdicts = {step["id"]: step["verdict"] for step in told["steps"]}
    assert done.returncode == 0, told
    through = (
        "config",
        "state",
        "dns",
        "tcp",
        "host_key",
        "auth",
        "slurm_programs",
        "slurm",
        "nodes",
        "python",
        "probe",
    )
    assert {verdicts[name] for name in through} == {"pass"}
    assert {verdicts[name] for name in ("aws", "aws_reads", "prometheus")} == {"not applicable"}
    assert told["cluster"] == "demo"
    assert told["policies"]["cockpit"]["Version"] == "2012-10-17"


def test_the_text_has_a_line_a_step_and_the_policies_on_request(demo: Path, tmp_path: Path) -> None:
    done = doctor(demo, tmp_path, "--policy")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("pass       config")
    assert any(line.startswith("no failure; ") for line in lines)
    assert '"ec2:DescribeInstances",' in done.stdout


def test_a_bad_config_is_exit_2_and_says_where(tmp_path: Path) -> None:
    bad = tmp_path / "config.yaml"
    bad.write_text("clusters:\n  prod:\n    haed: x\n")
    done = doctor(bad, tmp_path)
    assert done.returncode == 2
    assert f"{bad}:3: clusters.prod.haed: is not a known key; did you mean `head`?" in done.stdout
    done = doctor(bad, tmp_path, "--json")
    assert (done.returncode, json.loads(done.stdout)["steps"][0]["verdict"]) == (2, "fail")
