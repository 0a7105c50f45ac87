"""`cockpit efa` and `cockpit check` from the command line, their actions, and what a config says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from actions.checks import (
    EFA_CHECK,
    HEALTH_CHECK,
    deep_action,
    pair_action,
    pair_targets,
    pairs_found,
    proposed,
)
from actions.errors import ActionError
from actions.spec import READ, Context, Scope, Targets
from cockpit.checks.deep import DeepRequest
from cockpit.checks.models import NodeResult, PairResult, Result, Verdict
from cockpit.checks.pair import Ends, PairCheck
from cockpit.checks.targets import choose, is_here, type_of_features
from cockpit.cli import main
from cockpit.config import ConfigError
from cockpit.config_file import load_config
from cockpit.models import FaultError, Health, Node, NodeState
from tests.unit.action_kit import Kit


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def config(folder: Path, checks: str = "") -> Path:
    path = folder / "config.yaml"
    path.write_text("clusters:\n  box: {kind: slurm, head: local}\n" + checks)
    return path


def test_a_bare_machine_has_no_efa_device(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """This very machine: head local, no Slurm that answers, no EFA."""
    assert main(["efa", "--window", "0.1", "--config", str(config(state))]) == 1
    told = capsys.readouterr()
    assert "EFA devices: no EFA device" in told.out
    assert "next:" in told.out
    assert "Traceback" not in told.err
    assert (state / "state/cockpit/checks/box.jsonl").exists()


def test_the_same_as_json(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["efa", "--json", "--window", "0.1", "--config", str(config(state))]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["cluster"], told["check"], told["verdict"]) == (1, "box", "efa", "fail")
    (node,) = told["nodes"]
    assert {check["check"]: check["says"] for check in node["checks"] if check["verdict"] == "fail"} == {
        "efa.devices": "no EFA device"
    }


def test_nodes_that_cannot_be_reached_end_with_3(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = state / "config.yaml"
    path.write_text("clusters:\n  far: {kind: slurm, head: nobody@127.0.0.1:1}\n")
    assert main(["check", "--config", str(path)]) == 3
    assert capsys.readouterr().err


def test_wrong_usage(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["efa", "--pair", "a", "b", "--pairs", "--config", str(config(state))]) == 2
    with pytest.raises(SystemExit):
        main(["efa", "--window", "9999", "--config", str(config(state))])


# -- which nodes


def test_all_that_are_up_unless_named(tmp_path: Path) -> None:
    kit = Kit(tmp_path, nodes=12, scenario="busy")
    chosen = choose(kit.cluster)
    names = {target.node for target in chosen.targets}
    left = dict(chosen.left_out)
    assert names
    assert names.isdisjoint(left)
    assert any("there is no machine" in why for why in left.values())
    known = chosen.targets[0].known
    assert (known.instance_type, known.gpus) == ("p5.48xlarge", 8)
    down = next(name for name, why in left.items() if why == "is down")
    assert [target.node for target in choose(kit.cluster, down).targets] == [down]  # named: asked all the same
    assert {target.known.queue for target in choose(kit.cluster, queue="prio").targets} == {"prio"}
    for hostlist, queue in (("nobody", ""), ("", "nothing")):
        with pytest.raises(FaultError):
            choose(kit.cluster, hostlist, queue)


def test_the_type_from_parallelclusters_features() -> None:
    features = ("static", "p5en.48xlarge", "gpu-cr", "efa")
    assert type_of_features(Node("n", NodeState("idle"), "idle", Health.OK, features=features)) == "p5en.48xlarge"
    assert type_of_features(Node("n", NodeState("idle"), "idle", Health.OK, features=("fast",))) == ""
    assert not is_here("some-node-of-a-cluster")


# -- actions


def test_looking_is_tier_0_and_allowed_where_nothing_may_be_changed(tmp_path: Path) -> None:
    kit = Kit(tmp_path, read_only=True)
    names = tuple(target.node for target in choose(kit.cluster).targets[:2])
    for action in (EFA_CHECK, HEALTH_CHECK):
        assert action.disabled_reason(Context(kit.cluster, Targets(Scope.NODE, names))) is None
        plan = action.plan(kit.cluster, Targets(Scope.NODE, names))
        assert (plan.tier, plan.steps, plan.confirm.kind) == (READ, (), "none")
    assert pair_action([(names[0], names[1])]).disabled_reason(Context(kit.cluster)) is not None


@pytest.mark.parametrize(("verdict", "ok"), [(Verdict.PASS, True), (Verdict.FAIL, False)])
def test_a_pair_goes_through_the_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, ok: bool
) -> None:
    kit = Kit(tmp_path)
    names = [target.node for target in choose(kit.cluster).targets[:2]]
    pairs = [(names[0], names[1])]
    ran: list[Ends] = []

    def run(_: PairCheck, ends: Ends) -> PairResult:
        ran.append(ends)
        return PairResult(ends.server, ends.client, 1.0, 0.1, Result("efa.pair", verdict, "so it is"))

    monkeypatch.setattr(PairCheck, "run", run)
    plan = pair_action(pairs).plan(kit.cluster, pair_targets(pairs))
    assert plan.confirm.kind == "yes"
    assert plan.steps[0].argv[:5] == ("fi_pingpong", "-p", "efa", "-e", "rdm")
    assert kit.run(plan, "n").outcome == "refused"
    assert not ran
    result = kit.run(plan, "y")
    assert result.ok is ok
    assert [(ends.server, ends.client) for ends in ran] == pairs
    assert [pair.result.verdict for pair in pairs_found(result)] == [verdict]
    assert kit.writes == []
    with pytest.raises(ActionError):
        pair_action([(names[0], names[0])]).plan(kit.cluster, pair_targets(pairs))


def test_diagnostics_take_idle_nodes_only(tmp_path: Path) -> None:
    kit = Kit(tmp_path, scenario="calm")
    assert kit.cluster.view.nodes is not None
    idle = next(node.name for node in kit.cluster.view.nodes if node.word == "idle")
    busy = next(node.name for node in kit.cluster.view.nodes if node.gpus_used)
    plan = deep_action(DeepRequest((), 1)).plan(kit.cluster, kit.nodes(f"{idle},{busy}"))
    assert plan.steps[0].subjects == (idle,)
    assert [name for name, _ in plan.left_out] == [busy]
    with pytest.raises(ActionError, match="idle nodes only"):
        deep_action(DeepRequest((), 1)).plan(kit.cluster, kit.nodes(busy))
    with pytest.raises(ActionError, match="levels"):
        deep_action(DeepRequest((), 7)).plan(kit.cluster, kit.nodes(idle))


def test_the_reason_that_is_proposed_for_a_drain() -> None:
    bad = NodeResult("n", 0.0, 0.0, (Result("efa.devices", Verdict.FAIL, "31 of 32 devices"),))
    assert proposed(bad) == ("drain", "EFA devices: 31 of 32 devices")
    warned = NodeResult("n", 0.0, 0.0, (Result("efa.devices", Verdict.WARN, "hm"),))
    assert proposed(warned) is None


# -- the config


def test_what_a_config_may_say(tmp_path: Path) -> None:
    checks = (
        "checks:\n"
        "  thresholds: {host.disk: {warn_pct: 70}, limits.memlock: {pass_kib: 1}}\n"
        "  off: [efa.ptrace, own.slow]\n"
        "  commands:\n"
        "    - {name: slow, argv: [sleep, 1], timeout: 2s, for: [efa, health]}\n"
        "    - {name: hot, argv: [sensors], parse: number, above: 90, severity: fail, next: look}\n"
    )
    told = load_config(config(tmp_path, checks)).checks
    assert told.thresholds["host.disk"] == {"warn_pct": 70.0}
    assert told.off == ("efa.ptrace", "own.slow")
    assert (told.commands[0].argv, told.commands[0].timeout_s, told.commands[0].kinds) == (
        ("sleep", "1"),
        2.0,
        ("efa", "health"),
    )
    assert (told.commands[1].above, told.commands[1].severity, told.commands[1].next_step) == (90.0, "fail", "look")


@pytest.mark.parametrize(
    ("checks", "words"),
    [
        ("  thresholds: {host.disc: {warn_pct: 1}}", "did you mean `host.disk`"),
        ("  thresholds: {host.disk: {warn: 1}}", "is not a known key"),
        ("  thresholds: {gpu.xid: {x: 1}}", "has no thresholds"),
        ("  off: [nothing]", "no check named 'nothing'"),
        ("  commands: [{name: x}]", "needs `argv`"),
        ("  commands: [{name: X y, argv: [a]}]", "lower-case"),
        ("  commands: [{name: x, argv: [a], parse: match}]", "needs a `pattern`"),
        ("  commands: [{name: x, argv: [a], parse: number}]", "needs `above` or `below`"),
        ("  commands: [{name: x, argv: [a], pattern: '('}]", "no regular expression"),
        ("  commands: [{name: x, argv: [a]}, {name: x, argv: [b]}]", "stands twice"),
        ("  commands: {name: x}", "must be a list"),
    ],
)
def test_mistakes_in_a_config(tmp_path: Path, checks: str, words: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml:\d+: checks") as caught:
        load_config(config(tmp_path, f"checks:\n{checks}\n"))
    assert words in str(caught.value)


def test_the_demo_answers_all_of_it(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cockpit.demo.cluster import DemoCluster

    with DemoCluster(nodes=6) as path:
        assert main(["efa", "--json", "--window", "0.2", "--config", str(path)]) == 1
        told = json.loads(capsys.readouterr().out)
        short = [node["node"] for node in told["nodes"] if node["verdict"] == "fail"]
        assert len(short) == 1
        assert told["nodes"][0]["drain_reason"] == "EFA devices: 31 of 32 devices"
        assert {node["verdict"] for node in told["nodes"][1:]} == {"pass"}
        assert main(["check", "--json", "--config", str(path)]) == 0
        told = json.loads(capsys.readouterr().out)
        assert {check["verdict"] for node in told["nodes"] for check in node["checks"]} <= {
            *("pass", "warn", "not applicable"),
        }
        names = [node["node"] for node in told["nodes"][:2]]
        assert main(["efa", "--pair", *names, "--yes", "--json", "--config", str(path)]) == 0
        (pair,) = json.loads(capsys.readouterr().out)["pairs"]
        assert pair["verdict"] == "pass"
