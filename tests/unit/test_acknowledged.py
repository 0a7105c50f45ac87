"""Acknowledged problems: out of the way until they get worse, grow, or come back; kept in a file that may break."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit import report
from cockpit.acknowledged import Acknowledged, login
from cockpit.acknowledged_file import AcknowledgedFile
from cockpit.cli import OK, WRONG, exit_code
from cockpit.models import FaultError, FaultKind, Health, Problem
from screens.print_table import acknowledged_lines, lines
from tests.still import NOON, StillClock, still_cluster

LOW = Problem("gpu:p5-1:hot", Health.WARN, "p5-1 GPU 3", "90 °C", "look")
OTHER = Problem("node:down:", Health.CRITICAL, "p5-2", "down", "look")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "cockpit" / "acknowledged"


class Watching:
    """One cockpit that looks at problems at times of a still clock."""

    def __init__(self, clock: StillClock | None = None) -> None:
        self.clock = clock or StillClock()
        self.book = Acknowledged(AcknowledgedFile("prod"), self.clock)
        self.book.sync()

    def look(self, *problems: Problem, after_s: float = 0.0, whole: bool = True) -> list[str]:
        """The keys of the open problems among these, this much later."""
        self.clock.time += after_s
        self.book.observe(problems, whole=whole)
        self.book.sync()
        return [problem.key for problem in self.book.marked(problems) if problem.acknowledged is None]


def test_an_acknowledged_problem_comes_after_the_open_ones_with_its_note() -> None:
    one = Watching()
    one.book.acknowledge(LOW, "  ticket 4711\x1b[2J ")
    first, second = one.book.marked([LOW, OTHER])
    assert (first.key, first.acknowledged) == (OTHER.key, None)
    assert second.acknowledged is not None
    assert (second.acknowledged.note, second.acknowledged.who) == ("ticket 4711␛[2J", login())
    assert second.acknowledged.at == NOON


@pytest.mark.parametrize("change", [{"health": Health.CRITICAL}, {"count": 2}])
def test_it_comes_back_when_it_gets_worse_or_grows_and_stays_back(change: dict[str, object]) -> None:
    one = Watching()
    one.book.acknowledge(LOW, "known")
    assert one.look(LOW) == []
    worse = replace(LOW, **change)  # type: ignore[arg-type]
    assert [p.acknowledged for p in one.book.marked([worse])] == [None]  # at once, before any look
    assert one.look(worse) == [LOW.key]
    assert one.look(LOW) == [LOW.key]
    assert Watching().look(LOW) == [LOW.key]  # and so it is for the next cockpit


def test_better_or_fewer_is_no_news() -> None:
    one = Watching()
    one.book.acknowledge(replace(OTHER, count=3), "known")
    assert one.look(replace(OTHER, health=Health.WARN, count=1)) == []
    assert one.look(replace(OTHER, count=3)) == []


@pytest.mark.parametrize(("away_s", "open_keys"), [(590, []), (610, [LOW.key])])
def test_it_comes_back_when_it_was_gone_for_more_than_ten_minutes(away_s: float, open_keys: list[str]) -> None:
    one = Watching()
    one.book.acknowledge(LOW, "known")
    assert one.look(LOW) == []
    one.look()
    assert one.look(LOW, after_s=away_s) == open_keys


def test_what_goes_away_and_comes_within_ten_minutes_may_do_so_for_ever() -> None:
    one = Watching()
    one.book.acknowledge(LOW, "flaps")
    for _ in range(4):
        assert one.look(LOW) == []
        one.look(after_s=300)
        assert one.look(LOW, after_s=300) == []


def test_it_is_gone_for_the_next_cockpit_too_which_saw_neither_end() -> None:
    one = Watching()
    one.book.acknowledge(LOW, "known")
    one.look(LOW)
    one.look()
    later = Watching(StillClock(NOON + 3600))
    assert later.look(LOW) == [LOW.key]


def test_a_cockpit_just_started_takes_nothing_for_gone() -> None:
    Watching().book.acknowledge(LOW, "known")
    later = Watching(StillClock(NOON + 3600))
    assert later.look(after_s=0) == later.look(after_s=50) == []
    assert later.look(LOW, after_s=700) == []  # it was never taken for gone


def test_a_cockpit_that_has_looked_for_a_while_takes_for_gone_what_is_not_there() -> None:
    Watching().book.acknowledge(LOW, "known")
    later = Watching(StillClock(NOON + 3600))
    later.look()
    later.look(after_s=61)
    assert later.look(LOW, after_s=601) == [LOW.key]


def test_a_problem_that_takes_minutes_to_be_seen_is_not_taken_for_gone_before() -> None:
    idle = Problem("job:idle:7", Health.WARN, "job 7", "idle", "ask")
    Watching().book.acknowledge(idle, "asked")
    later = Watching(StillClock(NOON + 3600))
    later.look()
    later.look(after_s=300)
    assert later.look(idle, after_s=900) == []


def test_while_something_is_not_read_nothing_is_taken_for_gone() -> None:
    one = Watching()
    one.book.acknowledge(LOW, "known")
    one.look(LOW)
    one.look(whole=False)
    assert one.look(LOW, after_s=3600) == []


def test_two_cockpits_see_what_the_other_does() -> None:
    one, two = Watching(), Watching()
    one.book.acknowledge(LOW, "mine")
    two.book.acknowledge(OTHER, "yours")
    assert one.look(LOW, OTHER) == two.look(LOW, OTHER) == []
    two.book.take_back(LOW.key)
    assert one.look(LOW, OTHER) == [LOW.key]


def test_an_end_that_one_cockpit_saw_does_not_undo_what_another_acknowledged_since() -> None:
    one, two = Watching(), Watching()
    one.book.acknowledge(LOW, "mild")
    two.look(LOW)
    one.clock.time += 5
    two.book.observe([replace(LOW, count=2)], whole=True)  # ended there, not yet written
    one.book.acknowledge(replace(LOW, count=2), "still known")
    two.book.sync()
    assert two.look(replace(LOW, count=2)) == one.look(replace(LOW, count=2)) == []


def test_the_file_is_private_and_whole(state: Path) -> None:
    Watching().book.acknowledge(LOW, "known")
    assert [path.name for path in state.glob("*.json")] == ["prod.json"]
    assert (state.stat().st_mode & 0o777, (state / "prod.json").stat().st_mode & 0o777) == (0o700, 0o600)
    assert json.loads((state / "prod.json").read_text())["acknowledged"][0]["key"] == LOW.key
    assert not [path for path in state.iterdir() if path.suffix not in (".json", ".lock")]


def test_a_cluster_may_have_any_name(state: Path) -> None:
    AcknowledgedFile("../a b/é").change(lambda book: book)
    assert AcknowledgedFile("../a b/é").path.parent == state


BROKEN = ["", "[]", "{", '{"schema": 2, "acknowledged": []}', '{"schema": 1, "acknowledged": [{"key": 3}]}',
          '{"schema": 1, "acknowledged": 7}', "\xff" * 3, "[" * 100_000]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_file_is_told_and_left_as_it_is(state: Path, text: str) -> None:
    one = Watching()
    one.book.acknowledge(LOW, "known")
    (state / "prod.json").write_text(text, encoding="latin-1")
    assert one.look(LOW, replace(OTHER, count=9)) == [OTHER.key]  # what was known goes on
    for _ in range(2):
        fault = one.book.fault()
        assert fault is not None
        assert "move that file away" in fault.next_step
        one.book.sync()
    with pytest.raises(FaultError) as raised:
        one.book.acknowledge(OTHER, "known")
    assert raised.value.fault.kind is FaultKind.GARBLED
    assert (state / "prod.json").read_text(encoding="latin-1") == text
    (state / "prod.json").unlink()
    one.book.acknowledge(OTHER, "known")
    assert one.book.fault() is None


def test_a_file_that_is_none_hangs_nobody(state: Path) -> None:
    one = Watching()
    one.book.acknowledge(LOW, "known")
    (state / "prod.json").unlink()
    os.mkfifo(state / "prod.json")
    one.book.sync()
    assert one.book.fault() is not None


def test_a_directory_that_cannot_be_made_is_an_error_with_a_next_step(state: Path) -> None:
    state.parent.mkdir()
    state.write_text("in the way")
    with pytest.raises(FaultError) as raised:
        Watching().book.acknowledge(LOW, "known")
    assert raised.value.fault.next_step


def test_the_cluster_counts_open_problems_only_and_tells_the_rest_last() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    keys = [problem.key for problem in cluster.problems()]
    assert exit_code(cluster, "status") == WRONG
    cluster.acknowledge(keys[0], "Maria has it")
    assert [problem.key for problem in cluster.problems()] == [*keys[1:], keys[0]]
    for key in keys[1:]:
        cluster.acknowledge(key, "known")
    assert exit_code(cluster, "status") == OK
    told = report.status(cluster)["problems"]
    assert [problem["key"] for problem in told] == keys  # worst first among the acknowledged
    assert told[0]["acknowledged"] == {"note": "Maria has it", "who": login(), "at": "2025-11-30T10:53:20Z"}
    shown = [line for line in lines(cluster, "status") if line.startswith("acked")]
    assert len(shown) == 3
    assert shown[0].endswith("Maria has it")
    assert [record["key"] for record in report.acknowledged(cluster)["acknowledged"]] == keys
    assert len(acknowledged_lines(cluster)) == 3
    cluster.take_back(keys[0])
    assert cluster.problems()[0].key == keys[0]
    assert exit_code(cluster, "status") == WRONG


def test_the_cluster_acknowledges_only_what_is_there() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    with pytest.raises(FaultError) as raised:
        cluster.acknowledge("no:such", "x")
    assert raised.value.fault.kind is FaultKind.MISSING


def test_a_broken_file_is_one_problem_among_the_others(state: Path) -> None:
    state.mkdir(parents=True)
    (state / "still.json").write_text("{")
    cluster, _, _ = still_cluster()
    cluster.read_once()
    assert [p.key for p in cluster.problems()].count("acknowledged:file") == 1
