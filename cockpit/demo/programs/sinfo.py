"""sinfo of the demo: per node with -N, else nodes that look alike folded into one line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from cockpit.demo.machines import SLURM_VERSION, SimNode
from cockpit.demo.programs import nodestate
from cockpit.demo.programs.call import Call
from cockpit.demo.programs.nodefields import LONG, SHORT, SUMMED, NodeRow, name_of
from cockpit.demo.programs.partitions import PARTITIONS
from cockpit.demo.programs.table import (
    Answer,
    Column,
    WrongUse,
    encode,
    options,
    parse_long,
    parse_short,
    render,
)
from cockpit.formats.errors import FormatError
from cockpit.formats.hostlist import expand

_DEFAULT = "%9P %.5a %.10l %.6D %.6t %N"
_LONG_LIST = "%9P %.5a %.10l %.6D %.11T %N"
_NODES = "%#N %.6D %#P %6t"
_NODES_LONG = "%#N %.6D %#P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
_SUMMARY = "%9P %.5a %.10l %.16F %N"
_REASONS = "%20E %9u %19H %N"
_SHORTS = "ade:hi:ln:M:No:O:p:rRS:st:TvVF"
_LONGS = (
    "all dead exact noheader iterate= long nodes= Node format= Format= partition= responding list-reasons "
    "sort= summarize states= reservation verbose version future local federation"
)
_SAME = {
    "--all": "-a",
    "--noheader": "-h",
    "--long": "-l",
    "--nodes": "-n",
    "--Node": "-N",
    "--format": "-o",
    "--Format": "-O",
    "--partition": "-p",
    "--list-reasons": "-R",
    "--summarize": "-s",
    "--states": "-t",
    "--version": "-V",
}
_STATES = (
    "unknown,down,idle,allocated,alloc,?,mixed,mix,future,drain,drained,draining,no_respond,reserved,perfctrs,"
    "cloud,completing,comp,powering_down,powered_down,power_down,powering_up,fail,maint,reboot,all"
)


def sinfo(call: Call) -> Answer:
    """Answer one call of sinfo. Raises WrongUse for what the real one refuses."""
    pairs, _ = options("sinfo", call.argv, _SHORTS, _LONGS)
    given = {_SAME.get(name, name): value for name, value in pairs}
    if "-V" in given:
        return Answer(0, encode(f"slurm {SLURM_VERSION}\n"))
    if "-a" in given and "-p" in given:
        raise WrongUse("sinfo: error: Conflicting options, -a and -p, specified.  Please choose one or the other.\n")
    nodes = _select(call, given)
    columns, complaints = _columns(given, nodes)
    rows = _rows(call, given, nodes, columns)
    title = b""
    if "-l" in given and "-h" not in given:
        title = encode(time.strftime("%a %b %d %H:%M:%S %Y\n", time.localtime(call.sim.now)))
    return Answer(0, title + render(columns, rows, "-h" not in given), encode(complaints))


def _select(call: Call, given: dict[str, str]) -> list[SimNode]:
    """The nodes that -n, -t and -R leave, in Slurm's order by name."""
    # Dynamic before static, as names sort; numbers already ascend.
    nodes = sorted(call.sim.nodes.values(), key=lambda node: (node.static, node.index))
    if "-n" in given:
        try:
            wanted = set(expand(given["-n"]))
        except FormatError:
            wanted = set()
        nodes = [node for node in nodes if node.name in wanted]
    if "-t" in given:
        states = [word.strip().lower() for word in given["-t"].split(",")]
        if bad := [word for word in states if word not in _STATES.split(",")]:
            raise WrongUse(f'sinfo: error: Bad state string: "{bad[0]}"\nsinfo: error: valid states: {_STATES}\n')
        nodes = [node for node in nodes if any(_in_state(node, state) for state in states)]
    if "-R" in given:
        nodes = [node for node in nodes if node.reason]
    return nodes


def _in_state(node: SimNode, state: str) -> bool:
    words = {node.base, nodestate.word(node), nodestate.short_state(node).rstrip("#%~*+"), *node.flags}
    if not node.responding:
        words.add("no_respond")
    return state == "all" or state in words


def _columns(given: dict[str, str], nodes: Sequence[SimNode]) -> tuple[list[Column[NodeRow]], str]:
    if "-O" in given:
        return parse_long("sinfo", given["-O"], LONG)
    form = given.get("-o")
    if form is None:
        if "-R" in given:
            form = _REASONS
        elif "-s" in given:
            form = _SUMMARY
        elif "-N" in given:
            form = _NODES_LONG if "-l" in given else _NODES
        else:
            form = _LONG_LIST if "-l" in given else _DEFAULT
    # %#X is as wide as the widest value, at least as wide as the header.
    widest = max((len(node.name) for node in nodes), default=8)
    form = form.replace("%#N", f"%{max(8, widest)}N").replace("%#P", "%.11P")
    return parse_short("sinfo", form, SHORT)


def _rows(
    call: Call, given: dict[str, str], nodes: Sequence[SimNode], columns: Sequence[Column[NodeRow]]
) -> list[NodeRow]:
    """Rows: one for each node and partition with -N, else one for each set of equal values."""
    only = given["-p"].split(",") if "-p" in given else None
    setups = [setup for setup in PARTITIONS if only is None or setup.name in only]
    available = {setup.name: _available(call, setup.name) for setup in setups}
    single = [
        NodeRow((node,), setup, call.env, available[setup.name])
        for setup in setups
        for node in nodes
        if setup.name in node.partitions
    ]
    if "-N" in given:
        return sorted(single, key=lambda row: (row.one.static, row.one.index))
    return _grouped(single, columns, call)


def _available(call: Call, name: str) -> str:
    state = call.sim.queue_states.get(name, "UP").lower()
    return "inact" if state == "inactive" else state


def _grouped(single: Sequence[NodeRow], columns: Sequence[Column[NodeRow]], call: Call) -> list[NodeRow]:
    """Nodes with the same text in every field that is no sum go into one row."""
    fields = [column.field for column in columns if column.field is not None]
    keys = [field for field in fields if name_of(field) not in SUMMED]
    groups: dict[tuple[str, ...], dict[str, NodeRow]] = {}
    for row in single:
        groups.setdefault(tuple(field.text(row) for field in keys), {})[row.one.name] = row
    return [
        replace(next(iter(rows.values())), nodes=tuple(row.one for row in rows.values())) for rows in groups.values()
    ]
