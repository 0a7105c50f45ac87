"""Adds NCCL's own word to what was gathered: two reports of its RAS, some seconds apart, if the version allows it."""

from __future__ import annotations

import time
from dataclasses import replace

from cockpit.cluster import Cluster
from cockpit.diagnosis.evidence import Evidence
from cockpit.diagnosis.gathered import Gathered
from cockpit.diagnosis.read import evidence_of
from cockpit.models import FaultError
from cockpit.sources.ras_client import ask, refusal, warning

APART_S = 15.0
_WHAT = "NCCL's RAS"


def with_ras(cluster: Cluster, gathered: Gathered, *, consent: bool = False, apart_s: float = APART_S) -> Gathered:
    """The same, with two reports, or with the reason why there are none. Takes `apart_s` and some seconds."""
    evidence = evidence_of(gathered)
    version = nccl_version(evidence)
    node = next((rank.node for rank in evidence.ranks if rank.process is not None), "")
    why = refusal(version, consent=consent) or ("" if node else "no node of the job has answered")
    if not why and any(rank.doing and rank.doing.kind == "setup" for rank in evidence.ranks):
        why = "the ranks are just making their communicators; asking then has crashed jobs"
    if why:
        return replace(gathered, missing=(*gathered.missing, (_WHAT, why)))
    address = next(iter(evidence.env.get("NCCL_RAS_ADDR", ())), "")
    reports: list[bytes] = []
    try:
        for look in range(2):
            if look:
                time.sleep(apart_s)
            reports.append(ask(cluster.node_host(node), address))
    except FaultError as error:
        return replace(gathered, ras=tuple(reports), missing=(*gathered.missing, (_WHAT, error.fault.line())))
    finally:
        cluster.let_go(node)
    note = (_WHAT, warning(version))
    return replace(gathered, ras=tuple(reports), missing=(*gathered.missing, note))


def nccl_version(evidence: Evidence) -> str:
    """As the job's own log tells it, "" when it does not."""
    return next((v for log in evidence.logs if (v := log.explained.digest.nccl_version)), "")
