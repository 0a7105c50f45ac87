"""What a diagnosis says on the screen, and what differs between two of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cockpit.diagnosing import Diagnosing, DiagnosisLook
from cockpit.diagnosis.compare import compared
from cockpit.diagnosis.diagnose import Diagnosis, diagnose
from cockpit.diagnosis.evidence import MISSING, UNREAD, WAITING, Evidence, JobFacts, NodeEvidence, Rank
from cockpit.diagnosis.gathered import Gathered
from cockpit.diagnosis.hypothesis import Move
from cockpit.diagnosis.moves import REASON_CHARS, reason_of
from screens.hang_grid import grid_lines
from screens.hang_lines import Shown, hang_lines, hang_title, moves_of
from screens.lines import Line, Link
from screens.text_state import line_text
from tests.still import still_cluster
from tests.unit.diagnosis_kit import ELSEWHERE, GONE, LOADER, NOW, R, gathered, steps
from themes.glyphs import ASCII, UNICODE


def look_of(diagnosis: Diagnosis | None, **about: Any) -> DiagnosisLook:
    return DiagnosisLook("77", diagnosis, answered=2, nodes=2, **about)


def told(diagnosis: Diagnosis | None, **about: Any) -> str:
    return "\n".join(line_text(line) for line in hang_lines(look_of(diagnosis, **about), Shown()))


def texts(lines: list[Line]) -> list[str]:
    return [line_text(line) for line in lines]


def test_the_verdict_comes_first_then_what_to_do_then_the_ranks() -> None:
    found = diagnose(gathered({5: R(stack=ELSEWHERE)}, log=steps(), age_s=900.0))
    lines = told(found).split("\n")
    assert lines[0].startswith("✖ HUNG, likely: rank 5 on p5-2 waits for a lock"), lines[0]
    order = ["What to do", "Ranks  8 of 8 seen", "Who stands where", "What speaks for it", "What it wrote last"]
    places = [next(at for at, line in enumerate(lines) if line.startswith(words)) for words in order]
    assert places == sorted(places)


def test_every_move_has_its_key_as_the_user_has_it_and_leads_to_its_target() -> None:
    found = diagnose(gathered({5: GONE}))
    moves = moves_of(found)
    assert [move.action for move in moves] == [move.action for move in found.hypotheses[0].moves]
    keys = {move.action: "Z" for move in moves}
    lines = hang_lines(look_of(found), Shown(keys=keys))
    line = next(line for line in lines if line_text(line).startswith(f"  Z       {moves[0].action} "))
    links = [piece.subject.key for piece in line if isinstance(piece, Link)]
    assert links == list(moves[0].targets)


def test_no_move_of_a_hypothesis_that_says_otherwise() -> None:
    found = diagnose(gathered({5: GONE}))
    calm = replace(found, verdict=replace(found.verdict, state="not hung"))
    assert moves_of(calm) == ()


def test_capture_is_offered_only_where_something_ends_the_job() -> None:
    assert "capture first" in told(diagnose(gathered({5: GONE})))
    working = diagnose(gathered(default=R(moves=True), log=steps(), age_s=1.0, grown=True))
    assert working.verdict.state == "not hung"
    assert "capture first" not in told(working)


def test_the_grid_has_a_sign_for_each_rank_and_says_which_is_odd() -> None:
    found = diagnose(gathered({5: GONE}))
    lines = texts(grid_lines(found.evidence, UNICODE))
    assert lines[0] == "Ranks  7 of 8 seen   ✖ 1 missing  · 7 waiting"
    assert lines[1].split() == ["local", "rank", "0", "1", "2", "3"]
    assert lines[2].split() == ["p5-1", "·", "·", "·", "·", "ranks", "0-3"]
    assert lines[3].split()[:5] == ["p5-2", "·", "·", "·", "✖"] or "✖" in lines[3]
    assert lines[4].startswith("  ✖ rank 5 there is no process of it")


def test_signs_are_distinct_also_in_ascii() -> None:
    from cockpit.diagnosis import evidence
    from screens.hang_grid import rank_sign

    states = [evidence.MISSING, evidence.ZOMBIE, evidence.STOPPED, evidence.BLOCKED, evidence.ODD, evidence.ALONE]
    states += [evidence.WAITING, evidence.WORKING, evidence.UNREAD, evidence.UNKNOWN]
    for signs in (UNICODE, ASCII):
        assert len({rank_sign(state, signs) for state in states} - {"?"}) >= len(states) - 2
        assert rank_sign(evidence.MISSING, signs) != rank_sign(evidence.WAITING, signs)


def big(odd: int, nodes: int = 64) -> Evidence:
    names = [f"p5-{number}" for number in range(nodes)]
    ranks = [Rank(at, names[at // 8], at % 8, MISSING if at == odd else WAITING, "there") for at in range(nodes * 8)]
    return Evidence(
        JobFacts("77", 77), NOW, nodes=tuple(NodeEvidence(name) for name in names), ranks=tuple(ranks), world=nodes * 8
    )


def test_many_nodes_that_look_alike_share_a_line_and_the_odd_one_comes_first() -> None:
    lines = texts(grid_lines(big(odd=300), UNICODE))
    assert len(lines) == 5
    assert lines[2].split()[0] == "p5-37"
    assert lines[2].count("✖") == 1
    assert lines[3].endswith("63 nodes like this")


def test_a_node_that_did_not_answer_is_not_read_and_is_named_below() -> None:
    found = diagnose(replace(gathered(faults={"p5-2": "SSH to p5-2: timed out"}), whole=False))
    assert {rank.state for rank in found.evidence.ranks if rank.node == "p5-2"} == {UNREAD}
    text = told(found)
    assert "not everything was read: see the end" in text
    assert "4 not read" in text
    assert text.split("\n")[-1] == "  p5-2: SSH to p5-2: timed out"


def test_first_errors_stand_in_the_order_of_their_times() -> None:
    log = (
        "[rank3]:[E1130 06:00:09.0 ProcessGroupNCCL.cpp:683] [Rank 3] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600011 milliseconds "
        "before timing out.\n"
        "2026-11-30 05:59:01 OSError: [Errno 116] Stale file handle: '/fsx/data/shard-3'\n"
    )
    lines = told(diagnose(gathered({5: R(stack=ELSEWHERE)}, log=log, age_s=700.0))).split("\n")
    begin = lines.index("First errors, in time")
    assert lines[begin + 1].startswith("  05:59:01  ")
    assert lines[begin + 2].startswith("  06:00:09  ")


def test_titles() -> None:
    shown = Shown(steady=100.0)

    def title(look: DiagnosisLook) -> str:
        return "".join(
            piece if isinstance(piece, str) else piece[0] for piece in hang_title(look, "queue › job 7", shown)
        )

    running = DiagnosisLook("7", running=True, began_at=97.0)
    assert title(running) == "queue › job 7 · looking, esc stops: asking Slurm, 3s"
    partly = replace(running, answered=3, nodes=8)
    assert title(partly) == "queue › job 7 · looking, esc stops: 3 of 8 nodes answered, 3s"
    assert title(replace(partly, running=False, seen_at=95.0)) == "queue › job 7 · looked 5s ago, r looks again"
    stopped = replace(partly, running=False, stopped=True)
    assert title(stopped) == "queue › job 7 · stopped after 3 of 8 nodes answered, r looks again"


def test_a_fault_says_what_failed_and_how_to_try_again() -> None:
    text = told(None, fault="job 7: Slurm knows no such job")
    assert text.startswith("it could not be looked at: job 7: Slurm knows no such job\nr tries again")


def later(seconds: float, **about: Any) -> Diagnosis:
    return diagnose(replace(gathered(**about), taken_at=NOW + seconds))


def test_what_is_different_from_the_last_look() -> None:
    before = later(0, ranks={5: R(stack=LOADER)}, log=steps(), age_s=900.0)
    same = compared(before, later(42, ranks={5: R(stack=LOADER)}, log=steps(), age_s=942.0))
    assert same[0] == "the verdict is the same"
    assert same[1].startswith("rank 5, 42s later, still stands in _try_get_data (dataloader.py:")
    assert "CPU time moved on 0 of 8 ranks" in same
    assert "nothing was written to out.txt" in same


def test_cpu_time_that_moves_on_all_but_one_names_the_one() -> None:
    before = diagnose(gathered({5: R(stack=LOADER)}, default=R()))
    moved = diagnose(replace(gathered({5: R(stack=LOADER)}, default=R(moves=True)), taken_at=NOW + 60))
    assert "CPU time moved on 7 of 8 ranks; not on rank 5" in compared(before, moved)


def test_a_rank_that_was_started_again_or_goes_on_is_told() -> None:
    before = later(0, ranks={5: R(stack=ELSEWHERE)}, log=steps(), age_s=900.0)
    gone = compared(before, later(30, ranks={5: GONE}, log=steps(), age_s=930.0))
    assert "rank 5: missing, was elsewhere" in gone
    on = compared(before, later(30, default=R(moves=True), log=steps(30), age_s=1.0, grown=True))
    assert on[0].startswith("it is not hung now; it was hung: rank 5 on p5-2")
    assert any(words.startswith("out.txt has grown by") and "step 19 then, 29 now" in words for words in on)


def test_two_jobs_are_not_compared() -> None:
    one = later(0)
    other = replace(one, evidence=replace(one.evidence, job=replace(one.evidence.job, job_id=78)))
    assert compared(one, other) == ()


def test_the_reason_of_a_drain_fits_what_slurm_keeps() -> None:
    found = diagnose(gathered({5: GONE}))
    assert reason_of("77", found.verdict).startswith("job 77 hung: rank 5 on p5-2")
    long = replace(found.verdict, sentence="x" * 900)
    assert len(reason_of("77", long)) == REASON_CHARS
    assert isinstance(moves_of(found)[0], Move)


def test_heading_and_sentences_of_two_looks_count_the_same_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _, clock = still_cluster()
    answers, found = iter([0.0, 7.0]), gathered({5: R(stack=ELSEWHERE)}, log=steps(), age_s=900.0)

    class Slow:
        """Looks that take two seconds each."""

        stopped = False

        def __init__(self, *_: object, **__: object) -> None: ...

        def run(self) -> Gathered:
            at = next(answers)
            clock.time += 2.0
            return replace(found, taken_at=NOW + at)

    monkeypatch.setattr("cockpit.diagnosing.Gatherer", Slow)
    looking = Diagnosing(cluster, found.job, lambda: None)
    for _ in range(2):
        looking.start()
        looking._wait()
        clock.time += 5.0
    look = looking.look()
    assert any("7s later, still" in words for words in look.changes)
    assert look.before_s == 7.0
