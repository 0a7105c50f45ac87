"""Flight records against each other: who never arrived, what does not match, and that a bad file harms nothing."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

import pytest

from cockpit.diagnosis.flight import BEHIND, P2P, SILENT, SIZE, TYPE, Disagreement, compare
from cockpit.formats.errors import FormatError
from cockpit.formats.flight_recorder import FlightRecord, parse_record
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
