"""Each case of a hung job, and what only looks like one: verdict, ranks, nodes, and how sure it is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cockpit.diagnosis.diagnose import Diagnosis, diagnose
from cockpit.diagnosis.evidence import UNREAD
from cockpit.diagnosis.gathered import GatheredGpu, gathered_from, gathered_json
from cockpit.diagnosis.report import diagnosis_json, diagnosis_lines
from tests.unit.diagnosis_kit import (
    BARRIER,
    ELSEWHERE,
    GONE,
    LOADER,
    NODES,
    SAVE,
    R,
    gathered,
    job_text,
    steps,
    verdict,
)

STORE = [["_store_based_barrier", "/x/torch/distributed/distributed_c10d.py", 700]]


def short(found: Diagnosis) -> tuple[str, tuple[int, ...], tuple[str, ...], str]:
    told = found.verdict
    return told.state, told.ranks, told.nodes, found.hypotheses[0].id if found.hypotheses else ""


@pytest.mark.parametrize(
    ("about", "ranks", "nodes", "id_", "confidence"),
    [
        ({"ranks": {5: GONE}}, (5,), ("p5-2",), "rank-died", "certain"),
        ({"ranks": {5: R(state="Z", stack=None)}}, (5,), ("p5-2",), "rank-died", "certain"),
        (
            {"ranks": {2: R(state="T", channel="do_signal_stop", stack=None)}},
            (2,),
            ("p5-1",),
            "rank-stopped",
            "certain",
        ),
        (
            {"ranks": {6: R(state="D", channel="rpc_wait_bit_killable", stack=None, file="/fsx/shard")}},
            (6,),
            ("p5-2",),
            "storage-hung",
            "certain",
        ),
        (
            {"ranks": {6: R(state="D", channel="uvm_ioctl", stack=None)}},
            (6,),
            ("p5-2",),
            "driver-hung",
            "certain",
        ),
        ({"ranks": {3: R(stack=ELSEWHERE, channel="hrtimer_nanosleep")}}, (3,), ("p5-1",), "rank-elsewhere", "likely"),
        ({"ranks": {3: R(stack=LOADER)}}, (3,), ("p5-1",), "data-loader", "likely"),
        ({"ranks": {0: R(stack=SAVE)}}, (0,), ("p5-1",), "storage-stall", "likely"),
        ({"ranks": {7: R(comm="sleep", stack=None)}}, (7,), ("p5-2",), "rank-never-started", "likely"),
        ({"ranks": {7: GONE}, "tasks": 7}, (7,), ("p5-2",), "rank-never-started", "certain"),
        ({"ranks": {7: GONE}, "default": R(stack=STORE)}, (7,), ("p5-2",), "rank-never-started", "certain"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_rank_is_to_blame(
    about: dict[str, Any], ranks: tuple[int, ...], nodes: tuple[str, ...], id_: str, confidence: str
) -> None:
    found = verdict(**about)
    assert short(found) == ("hung", ranks, nodes, id_), [each.sentence for each in found.hypotheses]
    assert found.verdict.confidence == confidence
    assert f"rank {ranks[0]} on {nodes[0]}" in found.verdict.sentence
    best = found.hypotheses[0]
    assert best.next_step
    assert best.moves
    assert best.speaks_for


def test_stacks_are_grouped_the_odd_ones_first() -> None:
    found = verdict(ranks={3: R(stack=LOADER)})
    assert [group.ranks for group in found.groups] == [(3,), (0, 1, 2, 4, 5, 6, 7)]
    assert found.groups[0].label == "rank 3: loads data in _try_get_data (dataloader.py:1133)"
    assert found.evidence.ranks[3].state == "elsewhere"


def test_a_whole_node_of_ranks_is_gone() -> None:
    found = verdict(ranks=dict.fromkeys(range(4, 8)))
    assert found.verdict.ranks == (4, 5, 6, 7)
    assert found.verdict.nodes == ("p5-2",)


def test_a_rank_killed_for_memory() -> None:
    log = steps(last="slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks were killed.")
    found = verdict(ranks={5: GONE}, log=log)
    assert short(found) == ("hung", (5,), ("p5-2",), "out-of-memory")
    assert "memory" in found.verdict.sentence


def test_without_stacks_the_kernels_word_tells() -> None:
    waits = R(stack=None, channel="wait_woken")
    found = verdict(default=waits, ranks={3: R(stack=None, channel="hrtimer_nanosleep")})
    assert short(found)[:3] == ("hung", (3,), ("p5-1",))


def test_waiters_that_poll_are_told_from_the_one_that_stands_still() -> None:
    def polls(name: str) -> R:
        return R(stack=[[name, "/job/train.py", 12]], channel="hrtimer_nanosleep", moves=True)

    found = verdict(default=polls("f"), ranks={3: R(stack=ELSEWHERE, channel="hrtimer_nanosleep")})
    assert short(found)[:3] == ("hung", (3,), ("p5-1",))
    bare = R(stack=None, channel="hrtimer_nanosleep", moves=True)
    found = verdict(default=bare, ranks={3: R(stack=None, channel="hrtimer_nanosleep")})
    assert found.verdict.state in ("hung", "unclear")
    assert found.verdict.ranks == (3,)


# Not hung.


def test_output_that_grows_is_no_hang_even_if_one_rank_is_elsewhere() -> None:
    found = verdict(ranks={3: R(stack=LOADER)}, log=steps(), grown=True)
    assert found.verdict.state == "not hung"
    assert found.verdict.ranks == ()


def test_ranks_that_move_are_no_hang() -> None:
    works = R(stack=[["step", "/job/train.py", 9]], later=[["other", "/job/train.py", 19]], moves=True, channel="")
    found = verdict(default=works)
    assert short(found) == ("not hung", (), (), "progress")


def test_a_rank_that_is_twice_seen_in_a_read_and_moves_does_not_hang() -> None:
    works = R(stack=[["step", "/job/train.py", 9]], later=[["other", "/job/train.py", 19]], moves=True, channel="")
    found = verdict(default=works, ranks={4: R(state="D", stack=None, channel="folio_wait_bit", moves=True)})
    assert found.verdict.state == "not hung"


def test_output_in_its_rhythm_is_no_hang() -> None:
    found = verdict(log=steps(every_s=60), age_s=70, grown=False)
    assert found.verdict.state == "not hung"


def test_a_stopped_rank_counts_even_while_output_comes() -> None:
    found = verdict(ranks={2: R(state="T", channel="do_signal_stop")}, log=steps(), grown=True)
    assert short(found)[:2] == ("hung", (2,))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("saving checkpoint to /fsx/ckpt/77", "checkpoint"),
        ("running validation on 5000 samples", "evaluates"),
        ("compiling the model with torch.compile", "compiles"),
        ("loading checkpoint shards: 3/30", "loads"),
    ],
)
def test_quiet_for_a_reason_is_told_as_a_possibility(line: str, words: str) -> None:
    found = verdict(log=steps(last=line), age_s=200)
    assert found.verdict.state in ("not hung", "unclear")
    assert words in found.verdict.sentence


def test_all_in_a_checkpoint() -> None:
    found = verdict(default=R(stack=SAVE, moves=True), log=steps(), age_s=100)
    assert short(found) == ("not hung", (), (), "phase-storage")


def test_gpus_that_work_are_no_hang() -> None:
    gpus = [GatheredGpu(n, s, util_pct=99, mem_util_pct=60, power_w=600, live=True) for n in NODES for s in range(4)]
    assert verdict(gpus=gpus).verdict.state == "not hung"


def test_gpus_that_spin_are_one() -> None:
    gpus = [
        GatheredGpu(n, s, util_pct=100, mem_util_pct=1, power_w=150, power_limit_w=700, live=True)
        for n in NODES
        for s in range(4)
    ]
    found = verdict(gpus=gpus, log=steps(), age_s=900)
    assert short(found) == ("hung", (), (), "all-wait")
    assert found.verdict.confidence == "likely"


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY"])
def test_a_job_that_has_ended(state: str) -> None:
    found = verdict(job=job_text(state), log="OSError: [Errno 28] No space left on device\n")
    assert short(found)[0] == "ended"
    assert "no space left" in found.verdict.sentence


def test_a_job_that_waits() -> None:
    found = verdict(job=job_text("PENDING", Reason="Resources"))
    assert (found.verdict.state, "Resources" in found.verdict.sentence) == ("not started", True)


# Nodes, GPUs, file systems, meeting place.


def test_a_node_that_does_not_answer() -> None:
    found = verdict(faults={"p5-2": "p5-2: no answer within 10 s"})
    assert short(found) == ("hung", (4, 5, 6, 7), ("p5-2",), "node-lost")
    assert ("p5-2", "p5-2: no answer within 10 s") in found.evidence.missing


def test_nobody_answers_is_not_the_nodes_fault() -> None:
    found = verdict(faults=dict.fromkeys(NODES, "no route"))
    assert found.verdict.state == "unclear"
    assert "I can't tell" in found.verdict.sentence
    assert "2 nodes of 2 did not answer" in found.verdict.sentence


def test_a_lost_gpu_names_its_rank() -> None:
    gpu = GatheredGpu("p5-2", 1, lost="the driver has lost it", live=True)
    found = verdict(gpus=[gpu])
    assert short(found) == ("hung", (5,), ("p5-2",), "gpu-lost")
    assert ("drain", "D", ("p5-2",)) in [(move.action, move.key, move.targets) for move in found.hypotheses[0].moves]


def test_a_mount_that_hangs() -> None:
    found = verdict(extra={"p5-1": {"mounts": [["/fsx", "lustre", "fs", "?", 1_795_999_000]]}})
    assert short(found)[3] == "storage-hung"
    assert found.verdict.nodes == ("p5-1",)


def test_ranks_that_look_for_another_master() -> None:
    found = verdict(
        default=R(stack=STORE, env={"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}),
        ranks={6: R(stack=STORE, env={"MASTER_ADDR": "10.0.0.9", "MASTER_PORT": "29500"})},
    )
    assert short(found) == ("hung", (6,), (), "wrong-master")


def test_a_rank_that_never_reached_the_master() -> None:
    found = verdict(default=R(stack=STORE, socks=[["client", "01", 9]]), ranks={6: R(stack=STORE, socks=[])})
    assert short(found) == ("hung", (6,), ("p5-2",), "rendezvous")


def test_sockets_instead_of_efa_are_slow_not_hung() -> None:
    log = steps(last="p5-1:1:2 [0] NCCL INFO Using network Socket")
    moving = R(stack=BARRIER, later=ELSEWHERE, moves=True)
    found = verdict(default=moving, log=log, grown=True)
    assert found.verdict.state in ("not hung", "slow")
    assert "socket-fallback" in [each.id for each in found.hypotheses]


def test_ranks_without_environments_come_from_slurms_list() -> None:
    whole = gathered(ranks={5: GONE})
    for node in whole.nodes:
        told = [json.loads(line) for line in node.lines]
        ranks = []
        for process in told[1]["ps"]:
            ranks.append(process.pop("rank"))
            del process["lead"], process["local"]
            process["env"] = "denied"
        pids = [[str(1000 + rank), "77", "0", str(rank % 4), str(rank)] for rank in ranks]
        told.insert(1, {"k": "l", "pids": pids})
        whole = whole.with_node(replace(node, lines=tuple(json.dumps(line).encode() for line in told)))
    found = diagnose(whole)
    assert (found.verdict.ranks, found.verdict.nodes) == ((5,), ("p5-2",))
    assert any("must be the job's owner or root" in why for _, why in found.evidence.missing)


def test_a_node_that_could_not_tell_its_ranks_has_not_lost_them() -> None:
    """On a busy node `scontrol listpids` may not answer in time, and a login that is not root reads no environment."""
    whole = gathered()
    for node in whole.nodes:
        told = [json.loads(line) for line in node.lines]
        pids = [[str(1000 + one["rank"]), "77", "0", str(one["local"]), str(one["rank"])] for one in told[1]["ps"]]
        for process in told[1]["ps"]:
            process |= {"env": "denied", "rank": None, "local": None, "lead": 0}
        told.insert(1, {"k": "l", "pids": pids if node.name == "p5-1" else []})
        whole = whole.with_node(replace(node, lines=tuple(json.dumps(line).encode() for line in told)))
    found = diagnose(whole)
    assert [rank.state for rank in found.evidence.ranks if rank.node == "p5-2"] == [UNREAD] * 4
    assert found.verdict.nodes == ()


# Reports, and back from JSON.


@pytest.mark.parametrize("ranks", [{}, {5: GONE}, {3: R(stack=LOADER)}])
def test_from_json_it_says_the_same(ranks: dict[int, R | None]) -> None:
    live = gathered(ranks=ranks, log=steps())
    back = gathered_from(json.loads(json.dumps(gathered_json(live))))
    assert back == live
    assert diagnosis_json(diagnose(back)) == diagnosis_json(diagnose(live))


def test_the_json_holds_what_was_promised() -> None:
    told = json.loads(json.dumps(diagnosis_json(verdict(ranks={5: GONE}))))
    assert set(told) >= {"schema", "verdict", "hypotheses", "evidence", "missing"}
    assert set(told["verdict"]) >= {"sentence", "ranks", "nodes", "confidence"}
    assert told["verdict"]["ranks"] == [5]
    assert len(told["evidence"]["ranks"]) == 8


def test_the_lines_lead_with_the_verdict() -> None:
    lines = diagnosis_lines(verdict(ranks={3: R(stack=LOADER)}))
    assert lines[2].startswith("HUNG (likely): rank 3 on p5-1 loads data")


def test_partial_answers_are_not_final() -> None:
    assert not diagnose(replace(gathered(), whole=False)).verdict.final


def test_hostile_text_is_harmless_everywhere() -> None:
    evil = "\x1b[2J\u202e<b>"
    stack = [[f"load_batch{evil}", f"/job/{evil}.py", 3]]
    found = verdict(
        ranks={3: R(stack=stack, file=f"/fsx/{evil}", channel=evil)},
        log=f"{evil} Disk quota exceeded\n",
        job=job_text(Comment=evil, Reason=evil),
    )
    told = json.dumps(diagnosis_json(found), ensure_ascii=False) + "\n".join(diagnosis_lines(found)).replace("\n", "")
    assert "\x1b" not in told
    assert "\u202e" not in told


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b'{"k":"p"}',
        b'{"k":"c","pid":1,"is":{}}',
        b'{"k":"zz"}',
        b"{" * 5000,
        b'{"k":"p","t":1,"ps":[{}]}',
    ],
)
def test_nonsense_from_a_node_is_counted_and_passed_over(line: bytes) -> None:
    whole = gathered(ranks={5: GONE})
    node = whole.nodes[0]
    broken = whole.with_node(replace(node, lines=(node.lines[0], line, *node.lines[1:])))
    assert diagnose(broken).verdict.ranks == (5,)


def test_ranks_in_another_part_of_a_heterogeneous_job_are_not_missing() -> None:
    """`srun --het-group=0,1` numbers the ranks of both parts; only one part is looked at."""
    parts = job_text(HetJobId="77", HetJobOffset="0")
    ranks = {rank: R(env={"WORLD_SIZE": "16"}) for rank in range(8)}
    found = verdict(ranks=ranks, job=parts, tasks=8)
    assert found.verdict.ranks == ()
    assert not any(each.ranks for each in found.hypotheses)
    one_gone = {**ranks, 5: GONE}
    assert 5 in verdict(ranks=one_gone, job=parts, tasks=8).verdict.ranks
