"""Checks that failed when they were last asked are problems, until they pass, grow old, or the machine is another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.checks.failing import newest_failing
from cockpit.checks.models import Result, Verdict
from cockpit.checks.place import history_path
from cockpit.cluster import Cluster
from cockpit.kept_checks import TRUST_S
from cockpit.models import Health, Problem
from screens.detail_registry import details
from screens.lines import Subject
from tests.check_results import RISING, SHORT, SILENT, keep, node
from tests.still import NOON, StillClock, still_cluster
from tests.unit.details_cluster import leads_to, texts, watched, with_reading

ONE, TWO = "gpu-st-p5-1", "gpu-st-p5-2"
KEY = "check:efa:efa.devices"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")


def read() -> tuple[Cluster, StillClock]:
    cluster, _, clock = still_cluster(scenario="calm")
    cluster.read_once()
    return cluster, clock


def checked(cluster: Cluster) -> list[Problem]:
    cluster.read_once()
    return [problem for problem in cluster.problems() if problem.key.startswith("check:")]


def test_a_check_that_failed_on_several_nodes_is_one_problem_with_age_and_next_step() -> None:
    keep(node(ONE, SHORT), node(TWO, SHORT, RISING), at=NOON - 7200)
    cluster, _ = read()
    [problem] = checked(cluster)
    assert (problem.key, problem.health, problem.subject, problem.count) == (KEY, Health.WARN, "gpu-st-p5-[1-2]", 2)
    assert problem.title == "2 nodes fail EFA devices: 31 of 32 devices (asked 2h00m ago)"
    assert problem.next_step
    assert problem.since == NOON - 7200
    assert problem.about == (("node", ONE), ("node", TWO))


def test_it_goes_when_the_check_passes_again_and_stays_when_the_node_only_gave_no_answer() -> None:
    keep(node(ONE, SHORT), node(TWO, SHORT), at=NOON - 3600, run_id="a")
    keep(node(ONE), node(TWO, fault=SILENT), at=NOON - 1800, run_id="b")
    cluster, _ = read()
    assert [problem.subject for problem in checked(cluster)] == [TWO]
    keep(node(TWO), at=NOON - 60, run_id="c")
    assert checked(cluster) == []


def test_runs_of_another_kind_leave_it() -> None:
    keep(node(ONE, SHORT), at=NOON - 3600, run_id="a")
    keep(node(ONE, kind="health"), kind="health", at=NOON - 60, run_id="b")
    assert [problem.key for problem in checked(read()[0])] == [KEY]


def test_a_warning_is_no_problem() -> None:
    keep(node(ONE, RISING))
    assert checked(read()[0]) == []


def test_it_goes_when_it_is_too_old_to_be_trusted() -> None:
    keep(node(ONE, SHORT), at=NOON - 100)
    cluster, clock = read()
    assert checked(cluster)
    clock.time += TRUST_S
    assert checked(cluster) == []


def test_a_node_that_is_gone_or_off_has_none() -> None:
    keep(node("gpu-dy-p5-1", SHORT), node("no-such-node", SHORT))  # powered down; not Slurm's
    assert checked(read()[0]) == []


def test_what_was_asked_before_the_machine_came_up_says_nothing_of_it() -> None:
    keep(node(ONE, SHORT), node(TWO, SHORT), at=NOON - 3600)
    cluster, _, _ = watched({ONE: with_reading(booted_at=NOON - 600)}, scenario="calm")
    assert [one.node for one in cluster.kept_checks.failing(cluster.view)] == [TWO]


def test_since_is_when_it_began_to_fail() -> None:
    keep(node(ONE), at=NOON - 4000, run_id="a")
    keep(node(ONE, SHORT), at=NOON - 3000, run_id="b")
    keep(node(TWO), at=NOON - 2500, run_id="c")
    keep(node(ONE, SHORT), at=NOON - 2000, run_id="d")
    [one] = newest_failing(history_path("still"), NOON - TRUST_S)
    assert (one.at, one.since) == (NOON - 2000, NOON - 3000)


def test_a_pair_is_healed_by_the_same_pair_only() -> None:
    def pair(verdict: Verdict, other: str) -> Result:
        return Result(f"efa.pair:{other}", verdict, "no answer" if verdict is Verdict.FAIL else "reach each other")

    def both(verdict: Verdict, other: str, at: float, run_id: str) -> None:
        found = replace(node(ONE), results=(pair(verdict, other),))
        keep(found, kind="pair", at=at, run_id=run_id)

    both(Verdict.FAIL, TWO, NOON - 300, "a")
    both(Verdict.PASS, "gpu-st-p5-3", NOON - 200, "b")
    cluster, _ = read()
    assert [(each.key, each.evidence) for each in checked(cluster)] == [
        ("check:pair:efa.pair", f"{ONE} with {TWO}: no answer")
    ]
    both(Verdict.PASS, TWO, NOON - 100, "c")
    assert checked(cluster) == []


def test_acknowledging_it_puts_it_aside_until_it_grows() -> None:
    keep(node(ONE, SHORT), at=NOON - 100, run_id="a")
    cluster, _ = read()
    checked(cluster)
    cluster.acknowledge(KEY, "ticket 4711")
    assert [problem.acknowledged is not None for problem in checked(cluster)] == [True]
    keep(node(TWO, SHORT), at=NOON - 50, run_id="b")
    assert [(each.acknowledged, each.count) for each in checked(cluster)] == [(None, 2)]


def test_its_details_tell_what_each_node_said_and_lead_to_their_checks() -> None:
    keep(node(ONE, SHORT), node(TWO, replace(SHORT, says="30 of 32 [/] devices")))
    cluster, _ = read()
    checked(cluster)
    lines = details(cluster, Subject("problem", KEY))
    assert "31 of 32 devices" in texts(lines)
    assert "30 of 32 [/] devices" in texts(lines)
    assert "takes its share of the bandwidth" in texts(lines)  # the catalogue's meaning
    assert {("efa", ONE), ("efa", TWO), ("node", ONE)} <= leads_to(lines)


def test_half_a_line_and_a_file_of_something_else_are_passed_over() -> None:
    keep(node(ONE, SHORT))
    with history_path("still").open("ab") as file:
        file.write(b'{"schema": 1, "id": "x", "ki')
    cluster, _ = read()
    assert [problem.subject for problem in checked(cluster)] == [ONE]
    history_path("still").write_bytes(b"\x00\xff" * 300_000)
    assert checked(cluster) == []


def test_a_history_longer_than_one_piece_is_read_from_its_end() -> None:
    for number in range(100):
        keep(*(node(f"gpu-st-p5-{at}", *([SHORT] if at == 1 else [])) for at in range(1, 6)),
             at=NOON - 6000 + number, run_id=str(number))  # fmt: skip
    assert history_path("still").stat().st_size > 2**18
    [one] = newest_failing(history_path("still"), NOON - TRUST_S)
    assert (one.at, one.since) == (NOON - 5901, NOON - 6000)


def test_a_run_by_somebody_else_is_seen_while_the_cockpit_runs() -> None:
    cluster, _ = read()
    assert checked(cluster) == []
    keep(node(ONE, SHORT))
    assert cluster.kept_checks.sync()
    cluster._join("checks")
    assert [problem.key for problem in cluster.problems()] == [KEY]
    assert not cluster.kept_checks.sync()
