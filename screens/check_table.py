"""Pane 6 as data: nodes against checks, worst first, and their versions. Imports no Textual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cockpit.catalog.checks import check_fact, checks_for, drift_items
from cockpit.checks.models import Verdict
from cockpit.cluster import Cluster
from cockpit.models import Health
from cockpit.report import iso
from cockpit.sources.base import SourceKey
from cockpit.text import printable
from cockpit.words import MISSING, plural, span
from screens.check_book import CheckBook, CheckRow, Said, check_book
from screens.check_runs import TITLES
from screens.grid_model import Cell, Column
from screens.lines import Subject
from screens.pane_spec import PaneSpec
from themes import UNICODE, state_token

# No source of the store: what was found at a time is shown with its age, and never stale.
CHECKS: SourceKey[tuple[CheckRow, ...]] = SourceKey("checks")
VIEWS = ("efa", "health", "versions")
NAMES: Mapping[str, str] = {"efa": "EFA", "health": "health", "versions": "versions"}
KEY_OF: Mapping[str, str] = {"efa": "E", "health": "C", "versions": "E"}
_SHORT = {
    "aws.interfaces": "attached",
    "aws.security_group": "sec. group",
    "efa.gpu_driver": "gpu driver",
    "host.memory_errors": "memory",
}
MOST_REASON = 180
_NEVER, _LEAST = 3, 14  # where never checked stands in the order; how wide a name of a site's own check may be
_RANKS = {Verdict.FAIL: 0, Verdict.WARN: 1, Verdict.UNKNOWN: 2, Verdict.PASS: 4, Verdict.NA: 5}
_CELLS = {
    Verdict.FAIL: "fail",
    Verdict.WARN: "warn",
    Verdict.UNKNOWN: "unknown",
    Verdict.PASS: "ok",
    Verdict.NA: "n/a",
}


def short_name(check: str) -> str:
    """The heading of a check's column: `devices`, `gpu driver`."""
    name = _SHORT.get(check) or check.partition(".")[2].replace("_", " ") or check
    return printable(name)[:_LEAST]


def health(row: CheckRow) -> Health:
    """How bad its worst check is; a node that was never checked is unknown."""
    return Health.UNKNOWN if row.verdict is None else row.verdict.health


def rank(row: CheckRow) -> tuple[int, int]:
    """Worst first, the more is wrong the earlier."""
    if row.verdict is None:
        return _NEVER, 0
    return _RANKS[row.verdict], -sum(said.verdict in (Verdict.FAIL, Verdict.WARN) for said in row.checks.values())


def verdict_word(row: CheckRow) -> str:
    """`fail`, `warn`, `no answer`, `unknown`, `pass`, `never`."""
    if row.verdict is None:
        return "never"
    if row.fault and row.verdict is Verdict.UNKNOWN:
        return "no answer"
    return row.verdict.value


def verdict_cell(row: CheckRow) -> Cell:
    """The word, whose sign stands before the row; while it is asked, that."""
    return ("asking …", "accent") if row.asking else (verdict_word(row), state_token(health(row)))


def said_cell(check: str, row: CheckRow) -> Cell:
    """Sign and word of one check; only what deviates has a colour."""
    said = row.checks.get(check)
    if said is None:
        return (MISSING if row.at is not None else ""), "dim"
    if said.verdict in (Verdict.PASS, Verdict.NA):
        return _CELLS[said.verdict], "dim"
    return f"{UNICODE.states[said.verdict.health]} {_CELLS[said.verdict]}", state_token(said.verdict.health)


def what_cell(row: CheckRow) -> Cell:
    """The worst finding; of a node that was never checked, why that may be."""
    text = what_text(row)
    return (text, "dim") if row.verdict is None or row.verdict.rank >= Verdict.UNKNOWN.rank else text


def what_text(row: CheckRow) -> str:
    """The worst finding in words; why the node gave no answer, or is not asked."""
    if row.fault or row.verdict is None:
        return row.fault.removeprefix(f"node {row.node}: ") or row.note
    if row.worst is None:
        return ""
    check, said = row.worst
    return f"{check_fact(check).title}: {said.says}"


def seen_checks(kind: str, rows: Iterable[CheckRow]) -> tuple[list[str], list[str]]:
    """(checks with trouble on any node, worst first; the other ones that were asked), each in the catalogue's order."""
    worst: dict[str, int] = {}
    for row in rows:
        for check, said in row.checks.items():
            worst[check] = min(worst.get(check, 9), said.verdict.rank)
    order = {name: place for place, name in enumerate(checks_for(kind))}
    named = sorted(worst, key=lambda check: (order.get(check, len(order)), check))
    bad = sorted((check for check in named if worst[check] < Verdict.PASS.rank), key=lambda check: worst[check])
    fine = [check for check in named if worst[check] == Verdict.PASS.rank]
    return bad, [*fine, *(check for check in named if worst[check] > Verdict.PASS.rank)]


@dataclass(frozen=True)
class CheckTable:
    """Columns and filter fields of one kind; `now` is the time on our own clock."""

    kind: str
    now: Callable[[], float]

    def columns(self, bad: Sequence[str] = (), fine: Sequence[str] = ()) -> tuple[Column[CheckRow], ...]:
        """Node, verdict, age and the worst finding always; checks with trouble before those without."""
        return (
            Column("node", "node", lambda r: r.node, lambda r: r.node, 8, 36),
            Column("verdict", "verdict", verdict_cell, rank, 8, 14),
            Column("age", "age", self._age, lambda r: r.at, 3, 6, "right", down_first=True, live=True),
            Column("what", "worst finding", what_cell, None, 28, 70, cut=True),
            *(self._check(check, 50) for check in bad),
            *(self._check(check, 60) for check in fine),
            Column("queue", "queue", lambda r: r.queue or MISSING, lambda r: r.queue, 4, 16, drop=40, wide=True),
            Column("type", "type", lambda r: r.type or MISSING, lambda r: r.type, 6, 18, wide=True),
        )

    @staticmethod
    def _check(check: str, drop: int) -> Column[CheckRow]:
        def order(row: CheckRow) -> int | None:
            said = row.checks.get(check)
            return None if said is None else _RANKS[said.verdict]

        title = check_fact(check).title
        return Column(check, short_name(check), partial(said_cell, check), order, 4, 14, drop=drop, note=title)

    def fields(self) -> Mapping[str, Callable[[CheckRow], str]]:
        """What `field:value` in a filter may name; `check:` finds the nodes where that check is not fine."""
        return {
            "node": lambda r: r.node,
            "queue": lambda r: r.queue,
            "verdict": verdict_word,
            "check": _wrong,
            "what": lambda r: " ".join([r.fault, *(said.says for _, said in _bad(r))]),
            "type": lambda r: r.type,
        }

    def _age(self, row: CheckRow) -> Cell:
        return "" if row.at is None else span(self.now() - row.at)


def _bad(row: CheckRow) -> list[tuple[str, Said]]:
    return [each for each in row.checks.items() if each[1].verdict.rank < Verdict.PASS.rank]


def _wrong(row: CheckRow) -> str:
    return " ".join(f"{check} {short_name(check)} {check_fact(check).title}" for check, _ in _bad(row))


def record(row: CheckRow) -> dict[str, Any]:
    """The whole row, for exports; with the evidence where it is known."""
    results = {result.check: result for result in row.result.results} if row.result else {}
    return {
        "node": row.node,
        "kind": row.kind,
        "queue": row.queue or None,
        "instance_type": row.type or None,
        "at": iso(row.at) if row.at is not None else None,
        "verdict": row.verdict.value if row.verdict else None,
        "error": row.fault or None,
        "versions": dict(row.versions),
        "checks": [
            {
                "check": check,
                "verdict": said.verdict.value,
                "says": said.says,
                "at": iso(said.at),
                "evidence": list(results[check].evidence) if check in results else None,
                "commands": list(results[check].commands) if check in results else None,
            }
            for check, said in row.checks.items()
        ],
    }


def headline(rows: Sequence[CheckRow]) -> str:
    """`12 · 1 fail · 2 no answer · 3 never`."""
    found = Counter(verdict_word(row) for row in rows)
    order = ("fail", "warn", "no answer", "unknown", "never", "pass", "not applicable")
    return " · ".join([f"{len(rows):,}", *(f"{found[word]} {word}" for word in order if found[word])])


def check_spec(cluster: Cluster, kind: str) -> PaneSpec:
    """The last check of every node, of one kind."""
    book, table = check_book(cluster), CheckTable(kind, cluster.clock.now)
    return PaneSpec(
        id=f"checks-{kind}",
        kind=kind,
        source=CHECKS,
        rows=lambda view: book.rows(kind) or (),
        key=lambda row: row.node,
        health=health,
        columns=table.columns(),
        fields=table.fields(),
        record=record,
        copied=lambda keys: _copied(book, kind, keys),
        empty=lambda view: _empty(book, kind),
        nodes=lambda row: (row.node,),
        command=lambda rows: ("cockpit", "efa" if kind == "efa" else "check", ",".join(row.node for row in rows)),
        sort="verdict",
        headline=lambda view: headline(book.rows(kind) or ()),
    )


def _copied(book: CheckBook, kind: str, keys: Sequence[str]) -> str:
    """Each node as one pastes it into a channel."""
    found = [row for row in (book.row(kind, key) for key in keys) if row is not None]
    return "\n".join(
        " · ".join(word for word in (row.node, f"{TITLES[kind]}: {verdict_word(row)}", what_text(row)) if word)
        for row in found
    )


def _empty(book: CheckBook, kind: str) -> str:
    if book.rows(kind) is None:
        return "reading the history …"
    if book.fault:
        return f"the history cannot be read: {printable(book.fault)}; {KEY_OF[kind]} checks anew"
    title = TITLES[kind][0].upper() + TITLES[kind][1:]
    return (
        f"no {TITLES[kind]} of this cluster is kept yet\n"
        f"{KEY_OF[kind]} asks all nodes that are up, after a question; from the nodes pane (2) the marked ones only\n"
        f"{title}s read only; they change nothing on the nodes."
    )


# -- versions


@dataclass(frozen=True, slots=True)
class VersionRow:
    """The versions of one node by name, and which of them are odd in its queue."""

    node: str
    queue: str
    type: str
    at: float
    versions: Mapping[str, str]
    odd: frozenset[str] = frozenset()


def version_rows(book: CheckBook) -> tuple[VersionRow, ...]:
    """Every node that has told versions; the odd ones are those that most of its queue and type have otherwise."""
    found: dict[str, CheckRow] = {}
    told: dict[str, dict[str, str]] = {}
    for kind in ("health", "efa"):  # the EFA check knows more of them
        for row in book.rows(kind) or ():
            if row.versions and row.at is not None:
                told[row.node] = {**told.get(row.node, {}), **row.versions}
                found[row.node] = row
    odd = _odd(found.values(), told)
    return tuple(
        VersionRow(row.node, row.queue, row.type, row.at or 0.0, told[row.node], odd.get(row.node, frozenset()))
        for row in found.values()
    )


def _odd(rows: Iterable[CheckRow], told: Mapping[str, Mapping[str, str]]) -> dict[str, frozenset[str]]:
    from cockpit.checks.judge import drift
    from cockpit.checks.models import NodeResult

    nodes = [
        NodeResult(row.node, row.at or 0.0, 0.0, queue=row.queue, instance_type=row.type, versions=told[row.node])
        for row in rows
    ]
    found: dict[str, set[str]] = {}
    for each in drift(nodes, "efa"):
        for _, names in each.odd:
            for name in names:
                found.setdefault(name, set()).add(each.name)
    return {node: frozenset(names) for node, names in found.items()}


def odd_names(rows: Iterable[VersionRow]) -> list[str]:
    """The programs whose versions are not one in a queue, in the catalogue's order."""
    found = {name for row in rows for name in row.odd}
    return [name for name, _ in drift_items("efa") if name in found]


def version_columns(now: Callable[[], float], odd: Sequence[str] = ()) -> tuple[Column[VersionRow], ...]:
    """One column a program, the `odd` ones first; a version that is not the usual one of the queue has its sign."""
    items = sorted(drift_items("efa"), key=lambda item: item[0] not in odd)
    return (
        Column("node", "node", lambda r: r.node, lambda r: r.node, 8, 36),
        Column("odd", "odd", _odd_cell, lambda r: (-len(r.odd), r.queue), 4, 6),
        Column("queue", "queue", lambda r: r.queue or MISSING, lambda r: r.queue, 4, 16, drop=30),
        *(_version(name, title, 20 if name in odd else 40) for name, title in items),
        Column("age", "age", lambda r: span(now() - r.at), lambda r: r.at, 3, 6, "right", drop=35, live=True),
        Column("type", "type", lambda r: r.type or MISSING, lambda r: r.type, 6, 18, wide=True),
    )


def _odd_cell(row: VersionRow) -> Cell:
    return (f"{UNICODE.states[Health.WARN]} {len(row.odd)}", "warning") if row.odd else ("", "dim")


def _version(name: str, title: str, drop: int) -> Column[VersionRow]:
    def cell(row: VersionRow) -> Cell:
        version = row.versions.get(name) or MISSING
        return (f"{UNICODE.states[Health.WARN]} {version}", "warning") if name in row.odd else version

    return Column(name, title, cell, lambda r: r.versions.get(name), 6, 38, drop=drop)


def versions_spec(cluster: Cluster) -> PaneSpec:
    """The versions on the nodes, queue by queue."""
    book, made = check_book(cluster), _Versions(check_book(cluster))
    return PaneSpec(
        id="checks-versions",
        kind="versions",
        source=CHECKS,
        rows=lambda view: made.rows(),
        key=lambda row: row.node,
        health=lambda row: Health.WARN if row.odd else Health.OK,
        columns=version_columns(cluster.clock.now),
        fields={
            "node": lambda r: r.node,
            "queue": lambda r: r.queue,
            "odd": lambda r: " ".join(sorted(r.odd)),
            "version": lambda r: " ".join(r.versions.values()),
            "type": lambda r: r.type,
        },
        record=lambda row: {
            "node": row.node,
            "queue": row.queue or None,
            "instance_type": row.type or None,
            "at": iso(row.at),
            "versions": dict(row.versions),
            "odd": sorted(row.odd),
        },
        copied=lambda keys: ",".join(keys),
        empty=lambda view: (
            "reading the history …"
            if book.rows("efa") is None
            else "no node has told its versions yet: an EFA check (E) or a health check (C) asks for them"
        ),
        nodes=lambda row: (row.node,),
        sort="odd",
        headline=lambda view: _drift_words(made.rows()),
    )


class _Versions:
    """The rows of the last look; the very same object while nothing has changed."""

    def __init__(self, book: CheckBook) -> None:
        self._book = book
        self._made_from: tuple[object, object] = (None, None)
        self._rows: tuple[VersionRow, ...] = ()

    def rows(self) -> tuple[VersionRow, ...]:
        made_from = (self._book.rows("efa"), self._book.rows("health"))
        if any(new is not old for new, old in zip(made_from, self._made_from, strict=True)):
            self._made_from, self._rows = made_from, version_rows(self._book)
        return self._rows


def _drift_words(rows: Sequence[VersionRow]) -> str:
    odd = sum(1 for row in rows if row.odd)
    if not rows:
        return "0"
    return f"{len(rows):,} · {plural(odd, 'node')} differ{'s' * (odd == 1)}" if odd else f"{len(rows):,} · all alike"


def drain_reason(cluster: Cluster, subjects: Iterable[Subject]) -> str:
    """The reason to propose for a drain: what fails; of several nodes what all have, else the names of the checks."""
    book = check_book(cluster)
    rows = [row for each in subjects if (row := book.row(each.kind, each.key)) is not None]
    failing = [row.worst for row in rows if row.worst is not None and row.worst[1].verdict is Verdict.FAIL]
    says = dict.fromkeys(f"{check_fact(check).title}: {said.says}" for check, said in failing)
    if len(says) <= 1:
        return "".join(says)[:MOST_REASON]
    return f"checks failed: {', '.join(dict.fromkeys(check_fact(check).title for check, _ in failing))}"[:MOST_REASON]
