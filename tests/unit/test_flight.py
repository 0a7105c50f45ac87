"""Flight records against each other: who never arrived, what does not match, and that a bad file harms nothing."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest

from cockpit.diagnosis.flight import BEHIND, P2P, SILENT, SIZE, TYPE, Disagreement, compare
from cockpit.formats.errors import FormatError
from cockpit.formats.flight_recorder import FlightRecord, parse_record
from cockpit.probe.agent import sweep, tails
from cockpit.rank_models import NO_TIME, OLDER
from tests.unit.diagnosis_kit import R, verdict

WORLD = 4


def entry(
    seq: int, name: str = "all_reduce", *, size: int = 80, state: str = "completed", **more: Any
) -> dict[str, Any]:
    return {
        "record_id": seq,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": f"nccl:{name}",
        "time_created_ns": 10**18 + seq,
        "input_sizes": [[size]],
        "input_dtypes": ["Float"],
        "output_sizes": [[size]],
        "output_dtypes": ["Float"],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": state == "completed",
        "timeout_ms": 600000,
        "is_p2p": False,
        "frames": [{"name": "step", "filename": "/job/train.py", "line": 90}],
        **more,
    }


def record(entries: list[dict[str, Any]], *, enqueued: int | None = None, **more: Any) -> dict[str, Any]:
    last = max((one["collective_seq_id"] for one in entries), default=0)
    done = max((one["collective_seq_id"] for one in entries if one["state"] == "completed"), default=0)
    status = {"last_enqueued_collective": last if enqueued is None else enqueued}
    status |= {"last_started_collective": last, "last_completed_collective": done}
    return {
        "version": "2.5",
        "nccl_version": "2.27.3",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
        "pg_status": {"0": status},
        "entries": entries,
        **more,
    }


def parsed(by_rank: dict[int, dict[str, Any]]) -> dict[int, FlightRecord]:
    return {rank: parse_record(pickle.dumps(one, 2), rank) for rank, one in by_rank.items()}


def first(by_rank: dict[int, dict[str, Any]]) -> Disagreement:
    return compare(parsed(by_rank), range(WORLD))[0]


GOOD = [entry(seq) for seq in range(1, 6)]
WAITS = [*GOOD, entry(6, "broadcast", state="started")]


def test_one_form_reads_as_the_other() -> None:
    told = record(WAITS)
    by_pickle = parse_record(pickle.dumps(told, 2), 3)
    plain = json.loads(json.dumps(told))
    assert parse_record(json.dumps(plain).encode(), 3) == by_pickle
    assert by_pickle.groups[0].members == (0, 1, 2, 3)
    assert by_pickle.operations[-1].name == "broadcast"
    assert by_pickle.operations[-1].frames == ("step (train.py:90)",)


def test_who_never_arrived() -> None:
    found = first({0: record(WAITS), 1: record(WAITS), 2: record(GOOD), 3: record(WAITS)})
    assert (found.kind, found.ranks, found.seq) == (BEHIND, (2,), 6)
    assert "rank 2 never called broadcast (operation 6) that ranks 0-1,3 wait in" in found.sentence


def test_buffers_that_begin_at_different_places() -> None:
    found = compare(parsed({rank: record(GOOD[rank:]) for rank in range(WORLD)}), range(WORLD))
    assert found == ()


def test_another_operation() -> None:
    odd = [*GOOD, entry(6, "all_gather", state="started")]
    found = first({0: record(WAITS), 1: record(odd), 2: record(WAITS), 3: record(WAITS)})
    assert (found.kind, found.ranks, found.seq) == (TYPE, (1,), 6)
    assert found.where == "step (train.py:90)"


def test_other_sizes_but_not_where_they_may_differ() -> None:
    def sized(name: str) -> dict[int, dict[str, Any]]:
        return {rank: record([entry(1, name, size=9 if rank == 3 else 8, state="started")]) for rank in range(WORLD)}

    assert (first(sized("all_reduce")).kind, first(sized("all_reduce")).ranks) == (SIZE, (3,))
    assert compare(parsed(sized("all_to_all")), range(WORLD)) == ()


def test_a_rank_without_a_record() -> None:
    found = first({rank: record(WAITS) for rank in (0, 1, 3)})
    assert (found.kind, found.ranks) == (SILENT, (2,))


def test_a_send_without_its_receive() -> None:
    send = entry(0, "send 1->2", state="started", is_p2p=True, p2p_seq_id=7)
    by_rank = {rank: record([*GOOD, send] if rank == 1 else GOOD) for rank in range(WORLD)}
    found = first(by_rank)
    assert (found.kind, found.ranks) == (P2P, (2,))


def send_or_receive(number: int, name: str, group: str = "0", state: str = "scheduled") -> dict[str, Any]:
    """One of a batch: PyTorch gives it no events, so it stays `scheduled` for ever."""
    more: dict[str, Any] = {"is_p2p": True, "p2p_seq_id": number, "process_group": (group, ""), "pg_id": int(group)}
    return entry(0, name, state=state, **more)


def test_a_batch_of_sends_and_receives_has_ended_when_the_entry_behind_it_says_so() -> None:
    """And ranks of a pipeline number them each for themselves."""
    by_rank: dict[int, list[dict[str, Any]]] = {0: [], 1: [], 2: [], 3: []}
    for number in range(1, 5):
        by_rank[0] += [send_or_receive(number, "send 0->1"), send_or_receive(number, "coalesced", state="completed")]
        by_rank[1] += [send_or_receive(2 * number, "recv 1<-0"), send_or_receive(2 * number, "send 1->2")]
        by_rank[1] += [send_or_receive(2 * number, "coalesced", state="completed")]
        by_rank[2] += [send_or_receive(number, "recv 2<-1"), send_or_receive(number, "coalesced", state="completed")]
    assert compare(parsed({rank: record(GOOD + more) for rank, more in by_rank.items()}), range(WORLD)) == ()
    by_rank[1] += [send_or_receive(9, "send 1->2"), send_or_receive(9, "coalesced")]
    found = first({rank: record(GOOD + more) for rank, more in by_rank.items()})
    assert (found.kind, found.ranks) == (P2P, (2,))
    by_rank[2] += [send_or_receive(5, "recv 2<-1"), send_or_receive(5, "coalesced")]
    assert compare(parsed({rank: record(GOOD + more) for rank, more in by_rank.items()}), range(WORLD)) == ()


def test_sends_name_ranks_as_their_group_numbers_them() -> None:
    config = {"7": {"name": "7", "desc": "", "ranks": "[1, 3]"}}
    by_rank = {rank: record(GOOD, pg_config=config) for rank in range(WORLD)}
    by_rank[1] = record([*GOOD, send_or_receive(4, "send 0->1", "7", "started")], pg_config=config)
    found = first(by_rank)
    assert (found.kind, found.ranks) == (P2P, (3,))


def test_a_status_belongs_to_the_group_whose_entries_have_its_number() -> None:
    """Each process numbers the groups that it is in; a name is the same for all."""
    config = {name: {"name": name, "desc": "", "ranks": ranks} for name, ranks in (("3", "[0, 2]"), ("4", "[1, 3]"))}
    status = {"last_started_collective": 0, "last_completed_collective": 0}
    by_rank = {}
    for rank, (name, number, seq) in enumerate((("3", 2, 7), ("4", 1, 9), ("3", 1, 7), ("4", 2, 9))):
        own = [entry(seq, process_group=(name, ""), pg_id=number)]
        by_rank[rank] = record(
            own, pg_config=config, pg_status={str(number): {"last_enqueued_collective": seq, **status}}
        )
    assert compare(parsed(by_rank), range(WORLD)) == ()


def test_what_a_full_buffer_dropped_was_called_all_the_same() -> None:
    """One rank of a pipeline has more operations than another, so its buffer reaches less far back."""
    busy = [entry(seq, process_group=("5", ""), pg_id=5) for seq in range(90, 95)]
    config = {"0": {"name": "0", "desc": "", "ranks": "[0, 1]"}, "5": {"name": "5", "desc": "", "ranks": "[0]"}}
    status = {"0": {"last_enqueued_collective": 6, "last_started_collective": 6, "last_completed_collective": 6}}
    late = record(busy, pg_config=config, pg_status=status)
    whole = record([entry(6, "barrier")], pg_config=config, pg_status=status)
    assert compare(parsed({0: late, 1: whole}), (0, 1)) == ()
    status["0"]["last_enqueued_collective"] = 5
    found = compare(parsed({0: late, 1: whole}), (0, 1))[0]
    assert (found.kind, found.ranks, found.seq) == (BEHIND, (0,), 6)


def test_sends_do_not_count_as_collectives() -> None:
    def told(sends: int) -> dict[str, Any]:
        more = [send_or_receive(number, "send 0->0", state="completed") for number in range(sends)]
        return record([*GOOD, *more], enqueued=sends)

    assert compare(parsed({rank: told(10 + rank) for rank in range(WORLD)}), range(WORLD)) == ()


def test_all_match_says_nothing() -> None:
    assert compare(parsed({rank: record(WAITS) for rank in range(WORLD)}), range(WORLD)) == ()


@pytest.mark.parametrize("raw", [b"", b"\x80\x02}", b"{", b"[]", b"\x80\x02K\x01.", b"\x80\x02cos\nsystem\n."])
def test_what_is_no_record_is_refused(raw: bytes) -> None:
    with pytest.raises(FormatError):
        parse_record(raw, 0)


def test_shared_and_nested_sizes_stay_small() -> None:
    nested: list[Any] = ["x" * 100]
    for _ in range(60):
        nested = [nested] * 16
    told = parse_record(pickle.dumps(record([entry(1, input_sizes=nested)]), 2), 0)
    assert len(told.operations[0].sizes_in) < 10_000


# In a diagnosis.


def lines(by_rank: dict[int, bytes], node: int) -> dict[str, Any]:
    return {
        "lines": [
            {
                "k": "f",
                "t": 1,
                "pid": 1000 + rank,
                "is": {"path": f"/tmp/rank_{rank}", "z": base64.b64encode(zlib.compress(raw)).decode()},
            }
            for rank, raw in by_rank.items()
            if rank // 4 == node
        ]
    }


def test_the_verdict_uses_them_and_tells_of_a_refused_one() -> None:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(8)))}}
    raws = {r: pickle.dumps(record(WAITS if r != 6 else GOOD, pg_config=config), 2) for r in range(8)}
    raws[1] = b"\x80\x02cposix\nsystem\n(X\x02\x00\x00\x00idtR."
    spins = R(moves=True)
    found = verdict(default=spins, extra={"p5-1": lines(raws, 0), "p5-2": lines(raws, 1)})
    assert (found.verdict.state, found.verdict.ranks, found.verdict.nodes) == ("hung", (6,), ("p5-2",))
    assert found.evidence.records == 7
    assert any("rank_1" in what and "refused" in why for what, why in found.evidence.missing)


def eight(but: dict[int, bytes | None]) -> dict[int, bytes]:
    """The records of eight ranks, some of them another one or none."""
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(8)))}}
    whole = pickle.dumps(record(WAITS, pg_config=config), 2)
    return {rank: raw for rank in range(8) if (raw := but.get(rank, whole)) is not None}


def silent_ones(raws: dict[int, bytes], **more: Any) -> tuple[int, ...]:
    told = {name: {**lines(raws, node), **more.pop(name, {})} for node, name in enumerate(("p5-1", "p5-2"))}
    for each in verdict(default=R(moves=True), extra=told, **more).evidence.disagreements:
        if each.kind == SILENT:
            return each.ranks
    return ()


def test_a_rank_that_wrote_none_is_told_but_not_one_whose_record_was_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert silent_ones(eight({5: None})) == (5,)
    assert silent_ones(eight({5: b"damaged"})) == ()
    assert silent_ones(eight({}), faults={"p5-2": "no answer"}) == ()
    unread = {"no": [["files of the ranks", "no time was left to read them"]]}
    assert silent_ones(eight({5: None, 6: None}), **{"p5-2": unread}) == ()
    moments = iter(range(100))
    monkeypatch.setattr("cockpit.diagnosis.read.time.monotonic", lambda: next(moments))
    assert silent_ones(eight({})) == ()


def test_records_that_were_too_many_stand_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.diagnosis.read.RECORDS_S", -1.0)
    raws = eight({})
    found = verdict(default=R(moves=True), extra={"p5-1": lines(raws, 0), "p5-2": lines(raws, 1)})
    assert [what for what, _ in found.evidence.missing] == ["flight records of ranks 0-7"]


def test_an_older_record_is_none() -> None:
    why = {"k": "f", "t": 1, "pid": 1005, "is": {"path": "/tmp/rank_5", "why": OLDER}}
    told = lines(eight({5: None}), 1)
    told["lines"].append(why)
    assert silent_ones(eight({5: None}), **{"p5-2": told}) == (5,)
    assert OLDER in Path(tails.__file__).read_text()
    assert NO_TIME in Path(sweep.__file__).read_text()
