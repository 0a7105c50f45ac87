"""Flight records of several ranks against each other: who never arrived, what does not match."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cockpit.diagnosis.naming import ranks_word
from cockpit.formats.flight_recorder import FlightRecord, Operation

BEHIND, TYPE, SIZE, DTYPE, STATE, P2P, SILENT = (
    "never arrived", "another operation", "other sizes", "other types", "did not finish", "no partner", "no record",
)  # fmt: skip
# Sizes of these differ between ranks by design.
_UNEVEN = ("all_to_all", "gather", "scatter", "reduce_scatter")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first operation of a group where ranks differ. `ranks` are the odd ones."""

    kind: str
    group: str
    ranks: tuple[int, ...]
    sentence: str
    seq: int | None = None
    where: str = ""  # what the odd ones called instead, or last


def compare(records: Mapping[int, FlightRecord], members: Sequence[int] = ()) -> tuple[Disagreement, ...]:
    """The most telling disagreement of each group first. `members`: every rank that should have a record."""
    found: list[Disagreement] = []
    mixed = {operation.group for record in records.values() for operation in record.operations if operation.p2p}
    for group in _groups(records):
        # Where ranks also send and receive, a group's status counts those in between.
        found += list(_of_group(group, records, counted=group not in mixed))[:1]
    found += _unpaired(records)
    lacking = tuple(sorted(set(members) - set(records))) if records else ()
    if lacking and len(lacking) < len(members):
        words = f"{ranks_word(lacking)} wrote no flight record while the others did: frozen or dead"
        found.append(Disagreement(SILENT, "", lacking, words))
    return tuple(sorted(found, key=lambda each: _ORDER.index(each.kind)))


_ORDER = (TYPE, SIZE, DTYPE, BEHIND, P2P, STATE, SILENT)


def _groups(records: Mapping[int, FlightRecord]) -> list[str]:
    names: dict[str, None] = {}
    for record in records.values():
        names |= dict.fromkeys(operation.group for operation in record.operations if not operation.p2p)
        names |= dict.fromkeys(group.group for group in record.groups)
    return list(names)


def _of_group(group: str, records: Mapping[int, FlightRecord], *, counted: bool) -> Iterator[Disagreement]:
    known = {rank: records[rank] for rank in _members(group, records) if rank in records}
    by_rank = {rank: _by_seq(record, group) for rank, record in known.items()}
    called = _last_called(group, known) if counted else {}
    by_rank = {rank: operations for rank, operations in by_rank.items() if operations or rank in called}
    if len(by_rank) < 2:
        return
    # Ring buffers begin at different places; what not all can tell is not compared.
    start = max((min(operations) for operations in by_rank.values() if operations), default=0)
    last = max((max(operations) for operations in by_rank.values() if operations), default=-1)
    for seq in range(start, last + 1):
        present = {rank: operations[seq] for rank, operations in by_rank.items() if seq in operations}
        # Not every operation that was called is there: old ones are dropped, and some dumps tell of open ones only.
        absent = [rank for rank in by_rank if rank not in present and _newest(by_rank[rank], called.get(rank)) < seq]
        if (found := _mismatch(group, seq, present)) is not None:
            yield found
        if absent and present:
            yield _behind(group, seq, absent, present, by_rank)
            return
    if called:
        yield from _lagging(group, records, list(by_rank))


def _newest(operations: Mapping[int, Operation], called: int | None) -> int:
    """The last operation that a rank is known to have called."""
    return max(max(operations, default=-1), -1 if called is None else called)


def _last_called(group: str, records: Mapping[int, FlightRecord]) -> dict[int, int]:
    """What the ranks' own status tells."""
    return {
        rank: each.enqueued
        for rank, record in records.items()
        for each in record.groups
        if each.group == group and each.enqueued is not None
    }


def _members(group: str, records: Mapping[int, FlightRecord]) -> list[int]:
    told = {
        member
        for record in records.values()
        for each in record.groups
        if each.group == group
        for member in each.members
    }
    return sorted(told) if told else sorted(records)


def _by_seq(record: FlightRecord, group: str) -> dict[int, Operation]:
    return {
        operation.seq: operation
        for operation in record.operations
        if operation.group == group and not operation.p2p and operation.seq is not None
    }


def _mismatch(group: str, seq: int, present: Mapping[int, Operation]) -> Disagreement | None:
    names = Counter(operation.name for operation in present.values())
    if len(names) > 1:
        usual = names.most_common(1)[0][0]
        odd = tuple(rank for rank, operation in present.items() if operation.name != usual)
        other = present[odd[0]]
        words = f"{ranks_word(odd)} called {other.name} as operation {seq} where the others called {usual}"
        return Disagreement(TYPE, group, odd, words, seq, _where(other))
    name = next(iter(names), "")
    for kind, values in (
        (SIZE, {rank: operation.sizes_in for rank, operation in present.items()}),
        (DTYPE, {rank: operation.types_in for rank, operation in present.items()}),
    ):
        if (kind == SIZE and any(word in name for word in _UNEVEN)) or len(set(values.values())) < 2:
            continue
        usual = Counter(values.values()).most_common(1)[0][0]
        odd = tuple(rank for rank, value in values.items() if value != usual)
        words = f"{ranks_word(odd)} called {name} (operation {seq}) with {values[odd[0]]}, the others with {usual}"
        return Disagreement(kind, group, odd, words, seq, _where(present[odd[0]]))
    return None


def _behind(
    group: str,
    seq: int,
    absent: Sequence[int],
    present: Mapping[int, Operation],
    by_rank: Mapping[int, Mapping[int, Operation]],
) -> Disagreement:
    name = Counter(operation.name for operation in present.values()).most_common(1)[0][0]
    # One rank ahead of all others called one too many; else those that lack it are the suspects.
    if len(present) == 1 and len(absent) > 1:
        rank, operation = next(iter(present.items()))
        words = f"rank {rank} called {name} as operation {seq}, which no other rank did: one call too many"
        return Disagreement(TYPE, group, (rank,), words, seq, _where(operation))
    before = by_rank[absent[0]]
    last = before[max(before)] if before else None
    after = f"; the last it called was {last.name} (operation {last.seq})" if last is not None else ""
    words = f"{ranks_word(absent)} never called {name} (operation {seq}) that {ranks_word(present)} wait in{after}"
    return Disagreement(BEHIND, group, tuple(absent), words, seq, _where(last) if last is not None else "")


def _lagging(group: str, records: Mapping[int, FlightRecord], ranks: Sequence[int]) -> Iterator[Disagreement]:
    """All called the same: whoever enqueued or completed least, by the group's own status."""
    for kind, name, words in (
        (BEHIND, "enqueued", "never called"),
        (STATE, "completed", "called it and did not finish"),
    ):
        values: dict[int, int] = {}
        for rank in ranks:
            for each in records[rank].groups:
                value = getattr(each, name)
                if each.group == group and value is not None:
                    values[rank] = value
        if len(values) < 2 or len(set(values.values())) < 2:
            continue
        low = min(values.values())
        odd = tuple(rank for rank, value in values.items() if value == low)
        if len(odd) < len(values):
            sentence = f"{ranks_word(odd)} {words}: last {name} {low}, the others {max(values.values())}"
            yield Disagreement(kind, group, odd, sentence, low + 1)


def _where(operation: Operation) -> str:
    return " < ".join(operation.frames[:3])


def _unpaired(records: Mapping[int, FlightRecord]) -> list[Disagreement]:
    """A send without its receive, or the reverse, that has not completed. The numbers of both need not be the same."""
    sides: dict[tuple[str, tuple[int, int]], dict[str, tuple[int, Operation]]] = defaultdict(dict)
    for rank, record in records.items():
        for operation in _open_pairs(record):
            side = "send" if operation.name.startswith("send") else "recv"
            if operation.pair is not None:
                sides[operation.group, operation.pair].setdefault(side, (rank, operation))
    found = []
    for (group, pair), told in list(sides.items())[:64]:
        # PyTorch writes them as they are numbered within the group.
        order = next((each.members for one in records.values() for each in one.groups if each.group == group), ())
        sender, receiver = (order[number] if number < len(order) else number for number in pair)
        lacking = receiver if "recv" not in told else sender if "send" not in told else None
        if lacking is None or lacking not in records:
            continue
        rank, operation = next(iter(told.values()))
        words = f"rank {rank} waits in {operation.name} (number {operation.seq}); rank {lacking} never called its part"
        found.append(Disagreement(P2P, group, (lacking,), words, operation.seq, _where(operation)))
    return found


def _open_pairs(record: FlightRecord) -> Iterator[Operation]:
    """Sends and receives that have not completed; of a batch only the entry behind it tells whether it has."""
    done = {
        (operation.group, operation.seq)
        for operation in record.operations
        if operation.p2p and operation.pair is None and operation.state == "completed"
    }
    for operation in record.operations:
        is_open = operation.p2p and operation.seq is not None and operation.state != "completed"
        if is_open and operation.pair and (operation.group, operation.seq) not in done:
            yield operation
