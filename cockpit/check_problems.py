"""Checks that failed when they were last asked -> problems. Nothing asks again by itself: each says how old it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from cockpit.catalog.checks import check_fact
from cockpit.checks.failing import Failing
from cockpit.fleet import WITHOUT_MACHINE
from cockpit.formats.hostlist import brief
from cockpit.models import Health, Problem
from cockpit.view import View
from cockpit.words import plural, span

_ASK_AGAIN = {"efa": "`cockpit efa`", "health": "`cockpit check`"}
_MOST_TOLD = 20
_MOST_REASON = 180


def trusted(found: Iterable[Failing], view: View, oldest_at: float) -> tuple[Failing, ...]:
    """Those of nodes that are there, asked since `oldest_at`, and since the machine behind them came up."""
    nodes = {node.name: node for node in view.nodes or ()}
    up_since = _up_since(view)
    return tuple(
        one
        for one in found
        if one.at >= oldest_at
        and (node := nodes.get(one.node)) is not None
        and not node.state.has(*WITHOUT_MACHINE)
        and one.at >= up_since.get(one.node, 0.0)
    )


def _up_since(view: View) -> dict[str, float]:
    """When each node booted or its instance was launched, as far as that is known."""
    watches = view.fleet.nodes if view.fleet else {}
    found = {name: watch.reading.booted_at for name, watch in watches.items() if watch.reading is not None}
    for name, instance in view.instance_of_node.items():
        found[name] = max(found.get(name) or 0.0, instance.launched_at or 0.0)
    return {name: at for name, at in found.items() if at}


def of_checks(found: Iterable[Failing], now: float) -> Iterator[Problem]:
    """One problem a check, over all nodes where it fails."""
    alike: dict[tuple[str, str], list[Failing]] = defaultdict(list)
    for one in found:
        alike[one.kind, one.check].append(one)
    for (kind, check), failing in alike.items():
        fact, names = check_fact(check), list(dict.fromkeys(one.node for one in failing))
        oldest = min(one.at for one in failing)
        fails = "fails" if len(names) == 1 else f"{plural(len(names), 'node')} fail"
        again = _ASK_AGAIN.get(kind, "a new run")
        yield Problem(
            key=f"check:{kind}:{check}",
            health=Health.WARN,  # it was so when it was asked; what is seen to be so now comes first
            subject=brief(names),
            title=f"{fails} {fact.title}: {_says(failing)} (asked {span(now - oldest)} ago)",
            next_step=fact.next_step or f"enter shows what was found; {again} asks again",
            evidence="; ".join(f"{one.node} {_told(one)}" for one in failing[:_MOST_TOLD]),
            since=min(one.since for one in failing),
            count=len(names),
            about=tuple(("node", name) for name in names),
        )


def reason(found: Sequence[Failing]) -> str:
    """What to propose as the reason of a drain of nodes that fail one check; "" when none does."""
    return f"{check_fact(found[0].check).title}: {_says(found)}"[:_MOST_REASON] if found else ""


def _told(one: Failing) -> str:
    return f"with {one.partner}: {one.says}" if one.partner else one.says


def _says(failing: Sequence[Failing]) -> str:
    """What most of them say, and that others say something else."""
    said = [one.says for one in failing]
    usual = max(said, key=said.count)
    return usual if len(set(said)) == 1 else f"{usual}, others otherwise"
