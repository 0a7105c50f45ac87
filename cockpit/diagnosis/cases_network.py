"""What EFA's own counters say: time-outs and peers that did not answer while the ranks wait."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.diagnosis.evidence import WAITING, Evidence
from cockpit.diagnosis.gathered import GatheredEfa
from cockpit.diagnosis.hypothesis import HUNG, POSSIBLE, Hypothesis
from cockpit.words import plural, span

_TELLING = ("unresponsive_remote_events", "impaired_remote_conn_events", "retrans_timeout_events")
EFA_WORDS = {
    "unresponsive_remote_events": "unresponsive remotes",
    "impaired_remote_conn_events": "impaired connections",
    "retrans_timeout_events": "retransmission time-outs",
    "rdma_read_wr_err": "failed reads",
    "rdma_write_wr_err": "failed writes",
    "rx_drops": "dropped packets",
}
_SHOWN = 6


def efa_words(efa: GatheredEfa) -> str:
    """`3 unresponsive remotes, 12 retransmission time-outs`."""
    return ", ".join(f"{count} {EFA_WORDS.get(name, name)}" for name, count in efa.grown)


def of_network(evidence: Evidence) -> Iterator[Hypothesis]:
    """Only beside a job that stands still: some time-outs are no harm to one that goes on."""
    waiting = [rank for rank in evidence.ranks if rank.state == WAITING]
    still = evidence.job.running and 2 * len(waiting) > len(evidence.ranks)
    if not still or any(log.grown for log in evidence.logs):
        return
    found = [each for each in evidence.efa if any(name in _TELLING for name, _ in each.grown)]
    if not found:
        return
    worst = max(found, key=lambda each: sum(count for name, count in each.grown if name in _TELLING))
    others = len(evidence.efa) - len(found)
    yield Hypothesis(
        "efa-counters",
        HUNG,
        "EFA counts time-outs or peers that do not answer",
        f"EFA on {worst.node}: {efa_words(worst)} within {span(evidence.now - worst.since)}",
        POSSIBLE,
        22,
        tuple(rank.rank for rank in evidence.ranks if rank.node == worst.node),
        (worst.node,),
        tuple(f"{each.node}: {efa_words(each)}" for each in found[:_SHOWN]),
        (f"{plural(others, 'node')} of the job counted none",) if others else (),
        "Check EFA on these nodes (`cockpit efa NODES`); where many count the same, look at the node that counts none.",
    )
