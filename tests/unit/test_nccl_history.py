"""The history: appended privately, read whatever broke off, compared only with its like."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cockpit.cli import main
from cockpit.config import Rules
from cockpit.formats.nccl_tests import NcclReader
from cockpit.nccl.history import History, HistoryRun, baseline, busbw_at, changes, history_record
from cockpit.nccl.models import Judgement, NcclVersions, Shape
from cockpit.nccl.place import history_path
from cockpit.nccl.shape import shape_of
from cockpit.nccl.verdict import judge
from tests.formats import nccl_text as text

SIZE = 2**31
SHAPE = Shape("p5.48xlarge", "log", 2, 16, 8, "all_reduce")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def kept(at: float, busbw: float = 444.0, **changes: Any) -> HistoryRun:
    values = {"verdict": "pass", "shape": SHAPE, "busbw_large_gbs": busbw, "curve": ((SIZE, busbw),), **changes}
    return HistoryRun(id=str(at), at=at, **values)


def test_a_run_comes_back_as_it_was_kept() -> None:
    run = NcclReader().feed_all(text.whole(444, log=text.EFA_LOG).splitlines()).runs()[0]
    verdict = judge(run, shape_of(run))
    known = NcclVersions(driver="580.95", efa="3.3.0g", plugin="ignored: the log knows better")
    record = history_record(run, verdict, at=1000.0, nodes=("gpu-1", "gpu-2"), versions=known, job_id=7)
    history = History(history_path("prod"))
    assert history.load() == ()
    history.append(record)
    (back,) = history.load()
    assert back == record
    assert (back.versions.plugin, back.versions.driver, back.versions.efa) == ("1.18.0", "580.95", "3.3.0g")
    assert (back.transport, back.nodes, back.good) == ("efa", ("gpu-1", "gpu-2"), True)
    assert busbw_at(back, SIZE) == 444


def test_the_file_is_private_and_only_grows(tmp_path: Path) -> None:
    history = History(history_path("a/../b"))
    history.append(kept(1))
    first = history.path.read_bytes()
    history.append(kept(2))
    assert history.path.read_bytes().startswith(first)
    assert history.path.stat().st_mode & 0o777 == 0o600
    assert history.path.parent == tmp_path / "state/cockpit/nccl"
    assert history.path.parent.stat().st_mode & 0o777 == 0o700
    assert all("schema" in json.loads(line) for line in history.path.read_text().splitlines())


def test_a_line_that_broke_off_spoils_no_other() -> None:
    history = History(history_path("prod"))
    history.append(kept(1))
    with history.path.open("ab") as file:
        file.write(b'{"schema": 1, "id": "x", "at"')
    history.append(kept(2))
    with history.path.open("ab") as file:
        file.write(b'\n[1]\n{"at": "soon"}\n{"at": 5, "verdict": "pass", "curve": 7}\n\xff\n' + b"x" * 300_000 + b"\n")
    assert [run.at for run in history.load()] == [1, 2]
    assert history.skipped == 6


def test_what_others_wrote_into_it_is_harmless() -> None:
    history = History(history_path("prod"))
    history.append(kept(1, reasons=("a\x1b[31m",), nodes=("n\u202e",), shape=replace(SHAPE, instance_type="p5\x07")))
    (run,) = history.load()
    assert all(word.isprintable() for word in (*run.reasons, *run.nodes, run.shape.instance_type))


def test_several_writers_at_once_lose_nothing() -> None:
    def write(start: int) -> None:
        history = History(history_path("prod"))
        for number in range(20):
            history.append(kept(start + number))

    threads = [threading.Thread(target=write, args=(start,)) for start in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    history = History(history_path("prod"))
    assert len(history.load()) == 60
    assert history.skipped == 0


def test_the_baseline_is_the_median_of_the_last_good_runs_of_the_same_shape() -> None:
    runs = [kept(at, busbw) for at, busbw in enumerate((10, 440, 441, 442, 443, 444))]
    runs += [
        kept(20, 100, verdict="fail"),
        kept(21, 100, shape=replace(SHAPE, nodes=4)),
        kept(22, 100, shape=replace(SHAPE, algorithm="ring")),
        kept(23, 100, curve=((2**30, 100.0),)),
        kept(24, 100, verdict="incomplete"),
    ]
    found = baseline(runs, replace(SHAPE, type_from="given"), SIZE, Rules(nccl_min_pct=95))
    assert found is not None
    assert (found.basis, found.good_gbs) == ("history", 442)
    assert found.warn_below_gbs == pytest.approx(442 * 0.95)
    assert baseline(runs, SHAPE, SIZE, before=2) == baseline(runs[:2], SHAPE, SIZE)
    assert baseline([], SHAPE, SIZE) is None


def test_shapes_without_a_public_figure_learn_from_themselves() -> None:
    learned = kept(1, 30, verdict="unjudged", flags=("efa", "no_expectation"))
    assert learned.good
    assert not kept(1, 30, verdict="unjudged", flags=("above_cap",)).good
    assert baseline([learned], SHAPE, SIZE) is not None


def test_a_fall_is_laid_at_what_changed() -> None:
    old = kept(1, versions=NcclVersions(nccl="2.27.3", plugin="1.16.2"), nodes=("a", "b"))
    new = kept(2, 300, verdict="fail", versions=NcclVersions(nccl="2.29.2", plugin="1.16.2"), nodes=("b", "c"))
    assert changes([old, new], new) == ("NCCL 2.27.3 -> 2.29.2", "other nodes")
    assert changes([new], new) == ()


# -- the command line


def config(folder: Path) -> list[str]:
    path = folder / "config.yaml"
    path.write_text("clusters:\n  prod:\n    head: local\nrules: {nccl_min_pct: 80}\n")
    return ["--config", str(path)]


def test_reading_saving_and_listing(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = state / "run.txt"
    source.write_text(text.whole(444, log=text.EFA_LOG))
    for _ in range(2):
        assert main(["nccl", "read", str(source), "--save", "--json", *config(state)]) == 0
        read = json.loads(capsys.readouterr().out)
    assert (read["verdict"], read["cluster"]) == ("pass", "prod")
    assert read["expected"]["basis"] == "history"
    assert main(["nccl", "history", "--json", *config(state)]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [run["busbw_large_gbs"] for run in listed["runs"]] == [444, 444]
    assert listed["runs"][0]["versions"]["nccl"] == "2.29.3"
    assert main(["nccl", "history", "--node", "nobody", *config(state)]) == 0
    assert "no NCCL test of prod" in capsys.readouterr().out
    assert main(["nccl", "history", "--collective", "all_reduce", *config(state)]) == 0
    assert "node-1, node-2" in capsys.readouterr().out


def test_the_rules_of_the_config_count(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = state / "run.txt"
    source.write_text(text.whole(380))
    assert main(["nccl", "read", str(source)]) == 0
    assert capsys.readouterr().out.startswith("WARN")
    assert main(["nccl", "read", str(source), *config(state)]) == 0
    assert capsys.readouterr().out.startswith("PASS")


def test_exit_codes_and_errors(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = state / "bad.txt"
    bad.write_text(text.whole(4, log=text.SOCKET_LOG))
    assert main(["nccl", "read", str(bad)]) == 1
    assert "socket fall-back" in capsys.readouterr().out
    assert main(["nccl", "read", str(state / "none.txt")]) == 2
    assert "none.txt: cannot be read: No such file" in capsys.readouterr().err
    assert main(["nccl", "read", str(state)]) == 2
    with pytest.raises(SystemExit):
        main(["nccl", "read", str(bad), "--nodes", "0"])
    broken = state / "broken.json"
    broken.write_text('{"a": 1}')
    assert main(["nccl", "read", str(broken)]) == 3
    assert "not what nccl-tests -J writes" in capsys.readouterr().err


def test_a_text_without_any_test_in_it_is_incomplete(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in ("", "hello\n\x1b]52;c;eA==\x07\n", "\x00" * 5000):
        (state / "x").write_text(content)
        assert main(["nccl", "read", str(state / "x"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["verdict"] == Judgement.INCOMPLETE.value


def test_a_huge_line_is_read_in_pieces(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = state / "huge.txt"
    source.write_bytes(b"x" * 5_000_000 + b"\n" + text.whole(444).encode())
    assert main(["nccl", "read", str(source), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["busbw_large_gbs"] == 444


def test_several_runs_in_one_file_count_by_their_worst(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = state / "two.txt"
    source.write_text(text.whole(444) + text.whole(200))
    assert main(["nccl", "read", str(source), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["busbw_large_gbs"]) == ("fail", 200)
    assert [run["verdict"] for run in found["runs"]] == ["pass", "fail"]


def test_nothing_hostile_reaches_the_terminal(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = state / "evil.txt"
    evil = "ev\u202eil\x9b31m: Test CUDA failure a.cu:1 'b\x07ad\x1b]52;c;eA==\x07'\n"
    source.write_text(text.header() + text.device_list(gpu="GPU\x9b31m\x1b[2J") + evil)
    assert main(["nccl", "read", str(source)]) == 1
    out = capsys.readouterr().out
    assert all(char.isprintable() or char == "\n" for char in out)
