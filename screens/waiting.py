"""How old what is shown is, and why there is nothing to show yet, in words. Imports no Textual."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from cockpit.cluster import Cluster
from cockpit.models import Freshness
from cockpit.sources.base import SourceKey
from cockpit.sources.gpus import GPUS
from cockpit.sources.slurm import NODES
from cockpit.words import span


def stale_words(cluster: Cluster, source: SourceKey[Any]) -> str | None:
    """`stale 34s` or `lost 5m` when the data of a source may no longer be trusted, else None."""
    state, steady = cluster.store.state(source), cluster.clock.steady()
    freshness = state.freshness(steady)
    if freshness in (Freshness.LIVE, Freshness.NEVER):
        return None
    return f"{freshness.value} {span(state.age_s(steady))}"


def waiting_words(cluster: Cluster, source: SourceKey[Any]) -> str:
    """Why there is nothing to see yet: still reading, or the fault with its next step and the next try."""
    # No GPU is looked for before the nodes are known: what keeps those away is the answer.
    state = cluster.store.state(NODES if source is GPUS and cluster.view.nodes is None else source)
    if state.error is None:
        return f"reading from {cluster.config.head} …"
    words = [f"{state.error.what}: {state.error.why}", state.error.next_step]
    if others := still_read(cluster, state.name):
        words.append(f"still read: {', '.join(others)}")
    if state.next_at is not None:
        words.append(f"next try in {span(state.next_at - cluster.clock.steady())}, r tries now")
    return "\n".join(word for word in words if word)


def failing_facts(cluster: Cluster, names: Container[str]) -> list[tuple[str, str]]:
    """Of sources that fail: when the next try is, and what is still read; as labels and words."""
    steady = cluster.clock.steady()
    tries = [state.next_at for state in cluster.sources() if state.name in names and state.next_at is not None]
    others = ", ".join(name for name in still_read(cluster, "") if name not in names)
    return [
        ("next try", f"in {span(min(tries) - steady)}; r tries now" if tries else ""),
        ("goes on", others or "nothing else is read either"),
    ]


def still_read(cluster: Cluster, but: str) -> list[str]:
    """The names of the other sources that answer: their panes go on."""
    steady = cluster.clock.steady()
    live = [state for state in cluster.sources() if state.freshness(steady) is Freshness.LIVE and state.error is None]
    return [state.name for state in live if state.name != but]
