"""What the checks of one node say: each verdict with evidence, meaning, next step, commands, since when. No Textual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.catalog.checks import check_fact, drift_items
from cockpit.checks.history import since
from cockpit.checks.models import Result, Verdict
from cockpit.cluster import Cluster
from cockpit.words import moment, plural, span
from screens import check_table
from screens.check_book import CheckRow, Said, check_book
from screens.check_runs import TITLES
from screens.details.parts import find_node, listed, node_link, queue_link
from screens.details.traffic import node_traffic_lines
from screens.lines import Line, Link, Piece, Subject, fact, facts, section
from themes import UNICODE, state_token

MOST_EVIDENCE = 24
_BESIDE = {"efa.pair": "pair", "gpu.dcgm": "deep"}  # checks that come from runs of another kind


def check_lines(cluster: Cluster, kind: str, node: str) -> list[Line]:
    """Everything known of the last check of a node, what is wrong first."""
    book = check_book(cluster)
    row = book.row(kind, node)
    if row is None:
        if book.rows(kind) is None:
            return [[("reading the history …", "dim")]]
        row = CheckRow(node, kind)
    key = check_table.KEY_OF[kind]
    if row.verdict is None:
        return [
            [f"no {TITLES[kind]} of {node or 'any node'} is known: {key} asks it"],
            *([[(f"  {row.note}", "dim")]] if row.note else []),
            [],
            *_node(cluster, row),
        ]
    told = sorted(row.checks.items(), key=lambda each: each[1].verdict.rank)
    bad = [each for each in told if each[1].verdict.rank < Verdict.PASS.rank]
    well = [each for each in told if each[1].verdict is Verdict.PASS]
    none = [check_fact(check).title for check, said in told if said.verdict is Verdict.NA]
    return [
        *_head(cluster, row),
        *_fault(row, key),
        *(line for check, said in bad for line in ([], *_finding(cluster, row, check, said))),
        *_well(row, well),
        *([[], section("not applicable here"), [(f"  {', '.join(none)}", "dim")]] if none else []),
        *_pairs(cluster, row),
        *_commands(row),
    ]


def version_lines(cluster: Cluster, node: str) -> list[Line]:
    """The versions of a node, those that are odd in its queue with what the others have."""
    rows = {row.node: row for row in check_table.version_rows(check_book(cluster))}
    row = rows.get(node)
    if row is None:
        return [[f"the versions of {node or 'the nodes'} are not known: E asks for them"]]
    peers = [each for each in rows.values() if (each.queue, each.type) == (row.queue, row.type)]
    lines: list[Line] = [*_node(cluster, CheckRow(node, "efa", row.queue, row.type)), [], section("versions")]
    for name, title in drift_items("efa"):
        version = row.versions.get(name, "")
        odd = name in row.odd
        lines.append(fact(title, version or "not told", "warning" if odd else "" if version else "dim"))
        if odd:
            lines += _others(name, row.versions[name], peers)
    note = "" if row.odd else f"all alike on {plural(len(peers), 'node')} of {row.queue or 'this kind'}"
    return [*lines, *([[], [(f"  {note}", "dim")]] if note else [])]


def _others(name: str, own: str, peers: Sequence[check_table.VersionRow]) -> list[Line]:
    """Which versions the other nodes of the queue have, the most usual first."""
    by_version: dict[str, list[str]] = {}
    for peer in peers:
        if (version := peer.versions.get(name, "")) and version != own:
            by_version.setdefault(version, []).append(peer.node)
    ranked = sorted(by_version.items(), key=lambda each: -len(each[1]))
    return [
        [*line[:1], f"{version} on ", *line[1:]]
        for version, nodes in ranked[:6]
        for line in listed("", [node_link(each) for each in nodes], most=8)
    ]


def _head(cluster: Cluster, row: CheckRow) -> list[Line]:
    health = check_table.health(row)
    pieces: list[Piece] = [(f"{UNICODE.states[health]} {check_table.verdict_word(row)}", state_token(health) or "ok")]
    bad, fine = _counts(row)
    pieces.append((f"  {plural(bad, 'check')} not fine, {fine} fine" if bad else f"  {plural(fine, 'check')} fine", ""))
    if row.asking:
        pieces.append(("  asking again …", "accent"))
    traffic = node_traffic_lines(cluster, row.node) if row.kind == "efa" else []
    return [pieces, *_node(cluster, row), *traffic]


def _counts(row: CheckRow) -> tuple[int, int]:
    verdicts = [said.verdict for said in row.checks.values()]
    return sum(verdict.rank < Verdict.PASS.rank for verdict in verdicts), verdicts.count(Verdict.PASS)


def _node(cluster: Cluster, row: CheckRow) -> list[Line]:
    """Which node, when, and how it was asked."""
    now, result = cluster.clock.now(), row.result
    when = "" if row.at is None else f"{moment(row.at, now)}, {span(now - row.at)} ago"
    took = f", took {result.took_s:.1f} s" if result else ""
    again = f", asked {plural(result.asked_again, 'time')} more" if result and result.asked_again else ""
    known = find_node(cluster.view, row.node)
    word = f"  {known.word}" if known else ""
    node: list[Piece] = [("  node         ", "dim"), node_link(row.node, known)]
    lines: list[Line] = [[*node, (word, "dim")]] if row.node else []
    if row.queue:
        lines.append([("  queue        ", "dim"), queue_link(row.queue)])
    return [*lines, *facts([("type", row.type), ("asked", f"{when}{took}{again}" if when else "")])]


def _fault(row: CheckRow, key: str) -> list[Line]:
    """Why the node gave no answer."""
    if not row.fault:
        return []
    fault = row.result.fault if row.result else None
    lines: list[Line] = [[], [("○ no answer", "unknown"), f"  {fault.why if fault else row.fault}"]]
    lines += facts([("asking", fault.what), ("next", fault.next_step)]) if fault else []
    return [*lines, [(f"  {key} asks it again", "dim")]]


def _finding(cluster: Cluster, row: CheckRow, check: str, said: Said) -> list[Line]:
    """One check that is not fine, in full."""
    about, result = check_fact(check), row.result.of(check) if row.result else None
    health = said.verdict.health
    lines: list[Line] = [
        [(f"{UNICODE.states[health]} {said.verdict.value}", state_token(health)), "  ", (about.title, "bright"),
         f": {said.says}"],
    ]  # fmt: skip
    lines += facts([("since", _since(cluster, row, check)), ("means", about.meaning)])
    step = result.next_step if result else about.next_step if said.verdict is Verdict.FAIL else ""
    lines += [fact("next", step, "accent")] if step else []
    lines += _evidence(result)
    if result is None and check not in _BESIDE:
        key = check_table.KEY_OF[row.kind]
        lines.append([(f"  the evidence of kept runs is not kept: {key} asks again", "dim")])
    return [*lines, *facts([("ran", "; ".join(result.commands) if result else "")])]


def _since(cluster: Cluster, row: CheckRow, check: str) -> str:
    """`14:02, in 3 runs; pass before`, by the history."""
    kind = _BESIDE.get(check, row.kind)
    told = since([run for run in check_book(cluster).kept if run.kind == kind], row.node, check)
    if told is None:
        return ""
    when = moment(told.at, cluster.clock.now())
    if told.before is not None:
        return f"{when}, {plural(told.runs, 'run')}; {told.before.value} before"
    return (
        f"{when}, {plural(told.runs, 'run')}, as long as runs are kept" if told.runs > 1 else f"{when}, the first run"
    )


def _evidence(result: Result | None) -> list[Line]:
    if result is None or not result.evidence:
        return []
    shown = result.evidence[:MOST_EVIDENCE]
    more = len(result.evidence) - len(shown)
    lines: list[Line] = [[("  evidence     " if not place else "               ", "dim"), line]
                         for place, line in enumerate(shown)]  # fmt: skip
    return [*lines, *([[(f"               and {plural(more, 'line')} more", "dim")]] if more > 0 else [])]


def _well(row: CheckRow, well: Sequence[tuple[str, Said]]) -> list[Line]:
    """What is as it should be, a line each."""
    if not well:
        return []
    titles = {check: check_fact(check).title for check, _ in well}
    width = max(map(len, titles.values()))
    lines: list[Line] = [[(f"  {titles[check]:<{width}}  ", "dim"), said.says] for check, said in well]
    return [[], section("as it should be"), *lines]


def _pairs(cluster: Cluster, row: CheckRow) -> list[Line]:
    """The pairs that this node was tried in from here."""
    pairs = check_book(cluster).pairs_of(row.node) if row.kind == "efa" else ()
    lines: list[Line] = []
    for pair in pairs:
        other = pair.client if pair.server == row.node else pair.server
        health = pair.result.verdict.health
        sign = (f"  {UNICODE.states[health]} ", state_token(health))
        when = moment(pair.at, cluster.clock.now())
        lines.append([sign, Link(other, "", Subject("efa", other)), f"  {pair.result.says}", (f"  {when}", "dim")])
        lines += [[(f"      {line}", "dim")] for line in pair.result.evidence[-4:]]
        lines += [[(f"      ran on {command}", "dim")] for command in pair.result.commands]
    return [[], section("pairs over EFA"), *lines] if lines else []


def _commands(row: CheckRow) -> list[Line]:
    """What was run or read on the node for all that is fine, each once."""
    results = row.result.results if row.result else ()
    asked: Mapping[str, None] = dict.fromkeys(
        command for result in results if result.verdict in (Verdict.PASS, Verdict.NA) for command in result.commands
    )
    if not asked:
        return []
    return [[], section("how the rest was asked"), *([(f"  {command}", "dim")] for command in asked)]
