"""The log: what was changed, by whom, what came of it; and what the sources have met."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actions.audit import AuditLog, Entry
from cockpit.cluster import Cluster
from cockpit.event_models import ClusterEvent, ClusterEvents
from cockpit.models import Fault, FaultError, FaultKind, Health
from cockpit.text import printable
from screens.detail_registry import details, explain
from screens.lines import Link, Subject
from screens.log_book import log_book
from screens.log_table import log_spec
from screens.plan_dialog import PlanDialog
from screens.undoing import can_undo, last_undoable
from tests.screens.change_app import changing, without_pauses
from tests.screens.test_app import HOSTILE
from tests.still import still_cluster


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_pauses(monkeypatch, tmp_path)


def begin(audit_id: str, **changes: Any) -> dict[str, Any]:
    told = {
        "id": audit_id, "phase": "begin", "at": "2025-11-30T10:00:00Z", "cluster": "still", "action": "drain",
        "title": "drain gpu-st-p5-3", "scope": "node", "targets": "gpu-st-p5-3", "reason": "maria: hot",
        "who": {"user": "maria", "host": "laptop", "login": "ops@head"}, "confirmed": "typed '1'",
        "commands": [["scontrol", "update", "nodename=gpu-st-p5-3", "state=drain"]],
        "undo": [{"action": "resume", "names": "gpu-st-p5-3", "options": {}}],
    }  # fmt: skip
    return told | changes


def end(audit_id: str, outcome: str = "ok", **changes: Any) -> dict[str, Any]:
    told = {
        "id": audit_id, "phase": "end", "outcome": outcome, "took_s": 1.5, "text": "done, seen in Slurm",
        "changed": "gpu-st-p5-3", "results": [{"rc": 0, "took_s": 0.1, "said": "", "fault": None}],
    }  # fmt: skip
    return told | changes


def written(*records: dict[str, Any]) -> None:
    log = AuditLog("still")
    for record in records:
        log.append(record)


def read(cluster: Cluster) -> tuple[Any, ...]:
    book = log_book(cluster)
    for _ in range(2000):
        rows = book.rows()
        if rows is not None:
            return rows
        time.sleep(0.002)
    raise AssertionError("the record was never read")


def words(lines: Any) -> str:
    return "\n".join("".join(piece if isinstance(piece, str) else piece[0] for piece in line) for line in lines)


def test_every_outcome_has_its_word_and_its_sign_and_the_newest_is_first() -> None:
    written(
        begin("a"), end("a"), begin("b", at="2025-11-30T10:05:00Z"), end("b", "unverified"),
        begin("c", at="2025-11-30T10:06:00Z"),
        begin("d", at="2025-11-30T10:07:00Z", phase="refused", outcome="refused", text="read-only"),
    )  # fmt: skip
    cluster, _, _ = still_cluster()
    spec = log_spec(cluster)
    rows = read(cluster)
    assert [spec.key(row) for row in rows] == ["d", "c", "b", "a"]
    cells = {column.id: column for column in spec.columns}
    assert [cells["outcome"].cell(row)[0] for row in rows] == ["refused", "unknown", "not seen", "ok"]
    assert [spec.health(row).value for row in rows] == ["unknown", "warn", "warn", "ok"]
    assert spec.fields["who"](rows[0]) == "maria@laptop"
    assert "killed before its end" in words(details(cluster, Subject("log", "c")))
    assert "not known whether it ran" in words(details(cluster, Subject("log", "c")))
    assert "read-only" in words(details(cluster, Subject("log", "d")))
    assert "look at the cluster" in words(explain(cluster, Subject("log", "c")))
    assert json.dumps(spec.record(rows[0]))


@pytest.mark.parametrize("word", ["no capacity", *HOSTILE])
def test_what_the_daemons_complained_of_stands_among_the_changes(word: str) -> None:
    written(begin("a"), end("a"))
    cluster, _, _ = still_cluster()
    changed = read(cluster)[0].at
    bad = ClusterEvent(
        changed + 60, Health.WARN, "clustermgtd", "node-launch-failure-count", word, "ice-failures", 2,
        {"InsufficientInstanceCapacity": 2}, ("gpu-dy-p5-1", "gpu-dy-p5-2"),
    )  # fmt: skip
    fine = ClusterEvent(changed + 90, Health.OK, "clustermgtd", "cluster-instance-count", "4 instances")
    cluster.view = replace(cluster.view, events=ClusterEvents((bad, fine, bad)))
    spec, rows = log_spec(cluster), read(cluster)
    assert [row.event for row in rows] == [bad, None]
    assert spec.health(rows[0]) is Health.WARN
    assert spec.fields["on"](rows[0]) == "gpu-dy-p5-[1-2]"
    cells = {column.id: column.cell(rows[0]) for column in spec.columns}
    assert cells["reason"][0] == f"{printable(word)} (InsufficientInstanceCapacity 2)"
    told = details(cluster, Subject("log", rows[0].key))
    assert "ice-failures" in words(told)
    links = [piece.subject for line in told for piece in line if isinstance(piece, Link)]
    assert Subject("node", "gpu-dy-p5-2") in links
    assert json.loads(json.dumps(spec.record(rows[0])))["nodes"] == ["gpu-dy-p5-1", "gpu-dy-p5-2"]


def test_rows_stay_the_same_object_until_the_file_changes_and_another_cockpits_line_shows() -> None:
    written(begin("a"), end("a"))
    cluster, _, clock = still_cluster()
    rows = read(cluster)
    book = log_book(cluster)
    assert book.rows() is rows
    written(begin("b", at="2025-11-30T10:05:00Z"), end("b"))
    heard: list[str] = []
    book.listen(heard.append)
    clock.time += 3
    for _ in range(2000):
        if (found := book.rows()) is not None and len(found) == 2:
            break
        time.sleep(0.002)
    assert [row.key for row in book.rows() or ()] == ["b", "a"]
    assert heard[:1] == ["log"]


def test_a_record_that_cannot_be_read_says_so() -> None:
    AuditLog("still").path.mkdir(parents=True)
    cluster, _, _ = still_cluster()
    spec = log_spec(cluster)
    read(cluster)
    assert "the record cannot be read" in spec.empty(cluster.view)


def test_what_the_sources_met_is_one_line_each_until_it_is_over() -> None:
    cluster, head, clock = still_cluster()
    cluster.read_once()
    head.fault = FaultError(Fault(FaultKind.TIMEOUT, "reading the nodes", "no answer within 12 s", "wait"))
    for _ in range(3):
        clock.time += 5
        cluster.read_once()
    rows = [row for row in read(cluster) if row.trouble is not None and row.trouble.source == "nodes"]
    assert len(rows) == 1
    assert rows[0].trouble.polls == 3
    told = words(explain(cluster, Subject("log", rows[0].key)))
    assert "fails now" in told
    assert "nothing else is read either" in told
    assert "next try" in told
    spec = log_spec(cluster)
    assert "failing" in str(next(c for c in spec.columns if c.id == "outcome").cell(rows[0]))
    head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "reaching head", "no route", "is it up?"))
    clock.time += 5
    cluster.read_once()
    head.fault = None
    clock.time += 5
    cluster.read_once()
    troubles = [trouble for trouble in cluster.store.troubles() if trouble.source == "nodes"]
    assert [trouble.fault.why for trouble in troubles] == ["no answer within 12 s", "no route"]
    assert all(trouble.over_at is not None for trouble in troubles)
    shown = words(details(cluster, Subject("log", spec.key(read(cluster)[0]))))
    assert "is it up?" in shown
    assert "over since" in shown


def test_the_last_that_can_be_taken_back() -> None:
    def entry(audit_id: str, *, outcome: str = "ok", **changes: Any) -> Entry:
        return Entry(begin(audit_id, **changes), end(audit_id, outcome))

    first, second = entry("a"), entry("b")
    assert last_undoable([first, second]) is second
    back = entry("c", action="undo", title="undo b (drain gpu-st-p5-3): resume gpu-st-p5-3")
    assert last_undoable([first, second, back]) is first
    assert last_undoable([entry("d", undo=[]), Entry(begin("e"), end("e", "failed", changed=""))]) is None
    assert can_undo(back)
    assert not can_undo(Entry(begin("f", phase="refused"), begin("f", phase="refused")))


async def test_enter_shows_every_command_and_undo_is_offered_from_there() -> None:
    async with changing((120, 40)) as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("D")
        await at.planned()
        await at.press(*"hot", "enter", "1", "enter")
        await at.ended()
        await at.read()
        await at.press("escape", "9")
        await at.until(lambda: "maria: hot" in at.text())
        await at.press("enter")
        await at.until(lambda: "a, then u: undo" in at.text())
        assert "exit 0" in at.text()
        await at.press("a", "u")
        await at.planned()
        assert isinstance(at.app.screen, PlanDialog)
        assert "(drain gpu-st-p5-3): resume gpu-st-p5-3" in at.said()
        await at.press("y")
        await at.ended()
        assert at.writes[-1][-1] == "state=resume"


async def test_what_others_wrote_into_the_record_stays_text() -> None:
    for number, name in enumerate(HOSTILE):
        name = name.encode("utf-8", "replace").decode()
        odd = {
            "title": name, "reason": name, "targets": name, "action": name, "confirmed": name, "commands": [[name]],
            "who": {"user": name, "host": name, "login": name}, "scope": name if number % 2 else "job",
        }  # fmt: skip
        odd_end = {
            "text": name, "notes": [name], "findings": {name: name},
            "results": [{"rc": 1, "took_s": 1, "said": name, "fault": name}],
        }  # fmt: skip
        written(begin(str(number), **odd), end(str(number), name, **odd_end))
    written({"id": "x", "phase": "begin"}, {"id": "y", "phase": "begin", "who": 3, "commands": "no", "undo": 5})
    async with changing((160, 48), pane="9") as at:
        await at.until(lambda: "log 13" in at.text())
        for _ in range(len(HOSTILE) + 2):
            await at.press("enter")
            text = at.text()
            assert not [c for c in text if ord(c) < 32 and c != "\n"]
            assert "\x9b" not in text
            await at.press("e", "escape", "escape", "y", "j")
        await at.press("x", "asterisk", "y")
        assert at.app.is_running
