"""A look at many idle nodes by one srun: what is asked for, what comes back by its labelled lines, who is silent."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actions.check_jobs import job_check, run_of
from actions.errors import ActionError
from actions.outcome import Result
from cockpit.checks.by_job import JobLook, answers, srun_args
from cockpit.checks.models import CheckRun, Verdict
from cockpit.checks.targets import choose
from cockpit.cli import main
from cockpit.hosts.base import Completed
from cockpit.nccl.run import idle_nodes
from tests.unit.action_kit import Kit

LOOK = {"k": "look", "v": 1, "t": time.time(), "host": "n", "s": 1, "py": "3.9", "parts": {}}
ANSWER = json.dumps(LOOK, separators=(",", ":")).encode()


def said(told: Mapping[str, bytes], *more: bytes) -> bytes:
    """What srun --label prints of these nodes, line by line in turn, as tasks that run at once do."""
    tasks = []
    for number, (node, raw) in enumerate(told.items()):
        packed = base64.encodebytes(raw).splitlines()
        tasks.append([b"%2d: %s" % (number, line) for line in (f"cockpit-look {node}".encode(), *packed)])
    turns = [task[at] for at in range(max(map(len, tasks), default=0)) for task in tasks if at < len(task)]
    return b"\n".join([*turns, *more]) + b"\n"


def test_answers_are_put_together_by_task() -> None:
    told = {"gpu-1": b"x" * 5000, "gpu-2": b"\x00\xff" * 300, "gpu-3": b"y"}
    assert answers(said(told), list(told)) == told


def test_what_is_no_answer_is_left_out() -> None:
    noise = (
        b"srun: job 7 queued and waiting for resources",
        b" 9: cockpit-look $(id)",
        b"10: ",
        b"z" * 5000,
        b"\xff\xfe",
    )
    told = {"gpu-1": b"one", "other": b"not asked", "gpu-2": b""}
    assert answers(said(told, *noise), ["gpu-1", "gpu-2"]) == {"gpu-1": b"one"}
    torn = said({"gpu-1": b"one"}).replace(base64.b64encode(b"one"), b"b25")
    assert answers(torn, ["gpu-1"]) == {}
    assert answers(b"", ["gpu-1"]) == {}


def test_the_task_hands_its_stdin_to_the_look_and_ends_with_it(tmp_path: Path) -> None:
    """Run by a real shell, as srun runs it: what it prints is what answers() reads."""
    args = srun_args(JobLook(("gpu-1",), "", 0, 20.0), ["sh", "-c", "cat; echo more"])
    task = args[args.index("sh") :]
    done = subprocess.run(task, input=b"all of it\n" * 200, env={"PATH": "/usr/bin:/bin", "SLURMD_NODENAME": "gpu-1"},
                          capture_output=True, check=True, timeout=20)  # fmt: skip
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) < 200
    labelled = b"\n".join(b"0: " + line for line in lines)
    assert answers(labelled, ["gpu-1"]) == {"gpu-1": b"all of it\n" * 200 + b"more\n"}


def test_srun_takes_whole_nodes_for_a_short_while() -> None:
    look = JobLook(("gpu-1", "gpu-2"), "gpu", 8, 30.0)
    args = srun_args(look, ["sh"])
    for word in ("--nodes=2", "--nodelist=gpu-[1-2]", "--ntasks-per-node=1", "--partition=gpu", "--gpus-per-node=8",
                 "--exclusive", "--immediate=60", "--time=2", "--label"):  # fmt: skip
        assert word in args
    assert not any("unbuffered" in word for word in args)  # it would cut lines
    assert not [
        word for word in srun_args(JobLook(("a",), "", 0, 1.0), ["sh"]) if word.startswith(("--part", "--gpus"))
    ]
    assert look.deadline_s > 60 + 60 * look.limit_min


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path, scenario="idle")


def idle(kit: Kit) -> list[str]:
    return list(idle_nodes(kit.cluster.view.nodes or ())[0])


def looked(kit: Kit, names: Sequence[str], silent: Sequence[str] = (), rc: int = 0) -> tuple[Result, CheckRun | None]:
    """The whole way: plan, run with an srun that answers, and what is told of it."""

    def srun(argv: Sequence[str]) -> Completed:
        asked = next(word.partition("=")[2] for word in argv if word.startswith("--nodelist="))
        nodes = [target.node for target in choose(kit.cluster, asked).targets]
        return Completed(rc, said({node: ANSWER for node in nodes if node not in silent}), b"srun: error: x\n", 2.0)

    kit.head.answers["srun"] = srun
    targets = kit.nodes(",".join(names))
    result = kit.run(job_check("efa").plan(kit.cluster, targets))
    return result, run_of(kit.cluster, "efa", choose(kit.cluster, targets.folded).targets, result)


def test_idle_nodes_are_asked_and_judged_and_busy_ones_left_out(kit: Kit) -> None:
    names = [node.name for node in kit.cluster.view.nodes or ()]
    result, run = looked(kit, names)
    assert result.outcome == "ok"
    assert run is not None
    assert [node.node for node in run.nodes] == idle(kit)
    assert all(node.fault is None and node.results for node in run.nodes)
    assert {name for name, _ in run.left_out} == set(names) - set(idle(kit))
    (entry,) = kit.log.entries()
    assert any("cockpit-look-" in word for word in entry.begin["commands"][0])


def test_a_node_that_stays_silent_is_unknown_and_named(kit: Kit) -> None:
    mute, *others = idle(kit)
    result, run = looked(kit, [mute, *others], silent=[mute], rc=1)
    assert run is not None
    found = {node.node: node for node in run.nodes}
    fault = found[mute].fault
    assert fault is not None
    assert "without --job" in fault.next_step
    assert found[mute].verdict is Verdict.UNKNOWN
    assert all(found[name].fault is None for name in others)
    assert result.outcome != "ok"


def test_an_srun_that_does_not_answer_tells_nothing_of_any_node(kit: Kit) -> None:
    names = idle(kit)
    kit.head.answers["srun"] = lambda argv: Completed(1, b"", b"srun: error: Unable to allocate resources\n", 60.0)
    result = kit.run(job_check("health").plan(kit.cluster, kit.nodes(",".join(names))))
    assert result.outcome == "failed"
    run = run_of(kit.cluster, "health", choose(kit.cluster, ",".join(names)).targets, result)
    assert run is not None
    assert all(node.fault is not None for node in run.nodes)


def test_without_an_idle_node_it_is_refused(kit: Kit) -> None:
    busy = next(node.name for node in kit.cluster.view.nodes or () if node.state.base == "allocated")
    with pytest.raises(ActionError, match="not idle"):
        job_check("efa").plan(kit.cluster, kit.nodes(busy))


def test_nodes_of_several_queues_are_one_srun_in_the_queue_that_all_are_in(kit: Kit) -> None:
    queues = {node.name: node.partitions for node in kit.cluster.view.nodes or ()}
    assert {queues[name] for name in idle(kit)} == {("gpu",), ("gpu", "prio")}
    (step,) = job_check("efa").plan(kit.cluster, kit.nodes(",".join(idle(kit)))).steps
    assert step.subjects == tuple(idle(kit))
    assert "--partition=gpu" in step.argv
    (asked,) = job_check("efa", "prio").plan(kit.cluster, kit.nodes("gpu-st-p5-8")).steps
    assert "--partition=prio" in asked.argv


@pytest.mark.parametrize(
    "words", [["efa", "--job", "--window", "1"], ["efa", "--job", "--pairs"], ["check", "--job", "--deep", "1"]]
)
def test_what_does_not_go_together_is_said(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "--job" in capsys.readouterr().err


def test_a_node_that_takes_the_name_of_another_makes_both_unknown() -> None:
    forged = said({"gpu-1": b"one", "gpu-2": b"two"}).replace(b" 1: cockpit-look gpu-2", b" 1: cockpit-look gpu-1")
    assert answers(forged, ["gpu-1", "gpu-2"]) == {}


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.text(max_size=40))
def test_a_hostile_node_says_nothing_for_others(noise: bytes, name: str) -> None:
    """Whatever tasks print: only asked nodes get answers."""
    forged = said({"gpu-1": b"one"}) + noise + b"\n7: cockpit-look " + name.encode() + b"\n7: AAAA\n"
    assert set(answers(forged, ["gpu-1", "gpu-2"])) <= {"gpu-1", "gpu-2"}
