"""The table, details, curve and matrix of NCCL tests, over runs that the stand-in printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cockpit.cluster import Cluster
from cockpit.config import Rules
from cockpit.demo.nccl_stand_in import Speeds
from cockpit.models import Health
from cockpit.nccl.history import History, HistoryRun
from cockpit.nccl.models import Shape
from cockpit.nccl.place import history_path
from screens import nccl_table
from screens.detail_registry import details, explain
from screens.grid_paint import fit
from screens.lines import Line, Subject, links
from screens.nccl_book import NcclBook, nccl_book, rows_of
from screens.nccl_curve import Curve, curve_lines
from screens.nccl_matrix import matrix_lines, usual_of
from screens.problem_table import text_of
from tests.nccl_runs import PAIR, add_run
from tests.still import still_cluster

HOSTILE = "\x1b]0;x\x07\u202e[bold]\n"


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "runs.jsonl")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    found, _, _ = still_cluster()
    yield found
    found.stop()


def read(book: NcclBook) -> None:
    """As the thread does, but here and now."""
    book._look()


def text(lines: Sequence[Line]) -> str:
    return "\n".join(text_of(line) for line in lines)


def test_the_first_run_is_held_against_the_catalogue_the_next_against_it(history: History) -> None:
    add_run(history, Speeds(), 1000.0)
    add_run(history, Speeds(pair_gbs=350), 2000.0)
    newest, oldest = rows_of(history.load(), Rules())
    assert oldest.expected is not None
    assert oldest.expected.basis == "catalogue"
    assert oldest.trend_pct is None
    assert nccl_table.health(oldest) is Health.OK
    assert newest.expected is not None
    assert newest.expected.basis == "history"
    assert newest.before == oldest.run
    assert newest.trend_pct == pytest.approx(-25, abs=2)
    assert nccl_table.trend_cell(newest)[1] == "critical"
    assert "usual here" in str(nccl_table.expected_cell(newest))
    assert nccl_table.health(newest) in (Health.WARN, Health.CRITICAL)


def test_the_narrowest_column_of_what_is_expected_cuts_no_number(history: History) -> None:
    add_run(history, Speeds(), 1000.0)
    add_run(history, Speeds(sockets=True), 2000.0)
    column = next(c for c in nccl_table.NcclTable(lambda: 0.0).columns() if c.id == "pct")
    for row in rows_of(history.load(), Rules()):
        assert re.search(r"\d,[ a-z]*…$", fit(str(nccl_table.expected_cell(row)), column.width, "…"))


def test_a_bad_run_is_no_measure_for_later_ones(history: History) -> None:
    good = add_run(history, Speeds(), 1000.0)
    add_run(history, Speeds(sockets=True), 2000.0)
    add_run(history, Speeds(), 3000.0)
    rows = rows_of(history.load(), Rules())
    assert rows[0].before == good
    assert rows[0].trend_pct == pytest.approx(0, abs=1)
    assert nccl_table.trend_cell(rows[0])[0] in "0 %"
    assert nccl_table.health(rows[1]) is Health.CRITICAL


def test_other_shapes_are_never_compared(history: History) -> None:
    add_run(history, Speeds(), 1000.0)
    add_run(history, Speeds(), 2000.0, nodes=PAIR[:1])
    assert rows_of(history.load(), Rules())[0].before is None


def test_details_show_proof_rows_curve_and_links(cluster: Cluster) -> None:
    history = History(history_path(cluster.config.name))
    add_run(history, Speeds(), 1000.0)
    run = add_run(history, Speeds(pair_gbs=390), 2000.0)
    cluster.read_once()
    read(nccl_book(cluster))
    lines = details(cluster, Subject("nccl", run.id))
    told = text(lines)
    assert "Selected provider is efa" in told
    assert "8 GiB" in told
    assert "bus bandwidth over message size" in told
    assert "●" in told
    assert {link.key for line in lines for link in links(line) if link.kind == "node"} == set(PAIR)
    assert text(explain(cluster, Subject("nccl", run.id))).startswith("Slower than it should be")


def test_hostile_words_in_the_file_stay_words(cluster: Cluster) -> None:
    history = History(history_path(cluster.config.name))
    wild = HistoryRun(
        HOSTILE, 1.0, HOSTILE, Shape(HOSTILE, collective=HOSTILE, algorithm="ring"), (HOSTILE, "n2"),
        reasons=(HOSTILE,), proof=(HOSTILE,), settings=((HOSTILE, HOSTILE),), transport=HOSTILE, origin=HOSTILE,
        pairs=((HOSTILE, "n2", None),),
    )  # fmt: skip
    history.append(wild)
    book = nccl_book(cluster)
    read(book)
    (row,) = book.rows() or ()
    spec = nccl_table.nccl_spec(cluster)
    told = [str(column.cell(row)) for column in spec.columns] + [field(row) for field in spec.fields.values()]
    told += [spec.copied([row.run.id]), text(details(cluster, Subject("nccl", row.run.id)))]
    assert all("\x1b" not in word and "\u202e" not in word and "\x07" not in word for word in told)
    assert nccl_table.health(row) is Health.UNKNOWN


def test_nothing_kept_yet_says_which_key_runs_one(cluster: Cluster) -> None:
    spec = nccl_table.nccl_spec(cluster)
    read(nccl_book(cluster))
    assert "N runs one" in spec.empty(cluster.view)


def test_a_history_that_cannot_be_read_is_no_empty_one(cluster: Cluster) -> None:
    history_path(cluster.config.name).mkdir(parents=True)
    read(nccl_book(cluster))
    spec = nccl_table.nccl_spec(cluster)
    assert "cannot be read" in spec.empty(cluster.view)


def test_a_curve_needs_two_sizes_and_has_real_axes() -> None:
    assert curve_lines((Curve(((2**30, 400.0),)),)) == ()
    lines = curve_lines((Curve(((2**20, 40.0), (2**30, 400.0))), Curve(((2**30, 430.0),), 3)))
    told = text(lines)
    assert "1 MiB" in told
    assert "1 GiB" in told
    assert "430" in told
    assert "GB/s" in told


def test_the_matrix_marks_what_deviates() -> None:
    pairs = {("a", "b"): 400.0, ("a", "c"): 398.0, ("b", "c"): 200.0, ("c", "d"): None}
    assert usual_of(pairs) == pytest.approx(400)
    lines = matrix_lines(("a", "b", "c", "d"), pairs, running=frozenset([frozenset("bd")]))
    row_c, row_d = text_of(lines[3]), text_of(lines[4])
    assert row_c.split()[2:6] == ["●", "✖", "\\", "✖"]
    assert row_d.split()[2:6] == ["·", "›", "✖", "\\"]
    many = tuple(f"n{at}" for at in range(60))
    assert "1 of them deviate" in text(matrix_lines(many, {(many[0], many[1]): 400.0, (many[2], many[3]): 100.0}))
