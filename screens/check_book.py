"""What is known of a cluster's checks: this cockpit's runs with their evidence, and the kept ones. Imports no Textual.

The history is read on a thread: a home directory may hang. `rows` never waits.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cockpit.checks.place import history_path
from cockpit.cluster import Cluster
from screens.file_book import FileBook
from screens.per_cluster import PerCluster

if TYPE_CHECKING:
    from cockpit.checks.history import KeptNode, KeptRun
    from cockpit.checks.models import CheckRun, NodeResult, PairResult, Verdict

KINDS = ("efa", "health")
# What other runs add to a kind: pairs of nodes to EFA, NVIDIA's diagnostics to health.
_BESIDE = {"efa": "pair", "health": "deep"}


@dataclass(frozen=True, slots=True)
class Said:
    """What one check said of a node, and when; `says` is "" where it passed in a run that was read back."""

    verdict: Verdict
    says: str
    at: float


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One node. `at` is None when it was never checked; `result` is there only of a run of this cockpit."""

    node: str
    kind: str
    queue: str = ""
    type: str = ""
    at: float | None = None
    checks: Mapping[str, Said] = field(default_factory=dict)
    fault: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    result: NodeResult | None = None
    asking: bool = False
    note: str = ""  # why it is not asked with all others

    @property
    def verdict(self) -> Verdict | None:
        """The worst of its checks; None when it was never checked."""
        from cockpit.checks.models import Verdict, worst

        if self.at is None and not self.checks:
            return None
        told = [said.verdict for said in self.checks.values()]
        return worst([*told, Verdict.UNKNOWN] if self.fault else told)

    @property
    def worst(self) -> tuple[str, Said] | None:
        """The worst check that is not fine, the first of equals."""
        bad = [each for each in self.checks.items() if each[1].verdict.rank < 3]  # fail, warn, unknown
        return min(bad, key=lambda each: each[1].verdict.rank, default=None)


class CheckBook(FileBook["KeptRun"]):
    """What was found of every node, by this cockpit and by others."""

    name = "checks"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, history_path(cluster.config.name))
        self._cluster = cluster
        self._lock = threading.Lock()
        self._own: dict[tuple[str, str], NodeResult] = {}  # (kind, node) of the runs of this cockpit
        self._pairs: dict[frozenset[str], PairResult] = {}
        self._asking: frozenset[tuple[str, str]] = frozenset()
        self._own_ids: set[str] = set()
        self._changes = 0
        self._made: dict[str, tuple[object, tuple[CheckRow, ...]]] = {}
        self._newest: dict[str, dict[str, tuple[float, KeptNode]]] = {}  # by kind and node, none of this cockpit's
        self._beside: dict[str, dict[str, dict[str, Said]]] = {}

    # What is known.

    @property
    def kept(self) -> tuple[KeptRun, ...]:
        """The history, oldest first."""
        return self._found or ()

    def rows(self, kind: str) -> tuple[CheckRow, ...] | None:
        """Every node in Slurm's order, the very same object while nothing changed.

        () while no node was ever checked, None before the history was read once.
        """
        self.read_when_due()
        if self._found is None:
            return None
        view = self._cluster.view
        made_from = (view.nodes, self._found, self._changes)
        before = self._made.get(kind)
        if before is None or before[0] != made_from:
            new = tuple(self._rows(kind))
            same = {row.node: row for row in before[1]} if before else {}
            # Rows that say the same stay the same objects: the table then draws nothing.
            new = tuple(same[row.node] if same.get(row.node) == row else row for row in new)
            self._made[kind] = before = (made_from, before[1] if before and before[1] == new else new)
        return before[1]

    def row(self, kind: str, node: str) -> CheckRow | None:
        """One node."""
        return next((row for row in self.rows(kind) or () if row.node == node), None)

    def pairs_of(self, node: str) -> tuple[PairResult, ...]:
        """The pair checks of this cockpit with that node, newest first."""
        with self._lock:
            found = [pair for ends, pair in self._pairs.items() if node in ends]
        return tuple(sorted(found, key=lambda pair: -pair.at))

    def _rows(self, kind: str) -> Iterable[CheckRow]:
        from cockpit.checks.targets import type_of_features, why_not

        with self._lock:
            own = {node: result for (of, node), result in self._own.items() if of == kind}
            asking = {node for of, node in self._asking if of == kind}
        newest, beside = self._newest.get(kind, {}), self._beside.get(kind, {})
        if not own and not newest and not asking and not beside:
            return
        nodes = self._cluster.view.nodes
        names = [node.name for node in nodes] if nodes is not None else list({**newest, **own})
        known = {node.name: node for node in nodes or ()}
        for name in names:
            node = known.get(name)
            row = CheckRow(
                name,
                kind,
                min(node.partitions, default="") if node else "",
                type_of_features(node) if node else "",
                checks=beside.get(name, {}),
                asking=name in asking,
                note=why_not(node) if node else "",
            )
            yield _filled(row, own.get(name), newest.get(name))

    # What is new.

    def asking(self, kind: str, nodes: Iterable[str]) -> None:
        """These are being asked just now, no others."""
        with self._lock:
            self._asking = frozenset((kind, node) for node in nodes)
            self._changes += 1
        self._tell()

    def add(self, kind: str, node: NodeResult) -> None:
        """One node has answered, or will not."""
        with self._lock:
            self._own[kind, node.node] = node
            self._asking -= {(kind, node.node)}
            self._changes += 1
        self._tell()

    def keep(self, run: CheckRun) -> None:
        """Write a run down; raises OSError (no room, no right). What it found is known in any case."""
        from cockpit.checks.history import CheckHistory

        with self._lock:
            self._pairs.update({frozenset((pair.server, pair.client)): pair for pair in run.pairs})
            if run.kind in KINDS:
                self._own_ids.add(run.id)
        CheckHistory(self._path).append(run)
        self.read()

    # The file.

    def _load(self, *, there: bool) -> tuple[KeptRun, ...]:
        from cockpit.checks.history import CheckHistory

        runs = CheckHistory(self._path).load()
        # Here, since a year of runs takes longer to go through than a key may wait.
        self._newest = {kind: _newest_of(runs, kind, self._own_ids) for kind in KINDS}
        self._beside = {kind: _beside_of(runs, _BESIDE[kind]) for kind in KINDS}
        return runs


def _newest_of(runs: Iterable[KeptRun], kind: str, own_ids: Container[str]) -> dict[str, tuple[float, KeptNode]]:
    """What the newest run said of each node; those of this cockpit are known better already."""
    found: dict[str, tuple[float, KeptNode]] = {}
    for run in runs:
        if run.kind == kind and run.id not in own_ids:
            found.update({name: (run.at, node) for name, node in run.nodes.items()})
    return found


def _beside_of(runs: Iterable[KeptRun], kind: str) -> dict[str, dict[str, Said]]:
    """What pair checks or diagnostics said last of each node; of several partners the worst."""
    told: dict[str, dict[str, Said]] = {}
    for run in runs:
        for name, node in run.nodes.items() if run.kind == kind else ():
            told.setdefault(name, {}).update(
                {check: Said(verdict, says, run.at) for check, (verdict, says) in node.checks.items()}
            )
    return {name: _worst_by_check(checks) for name, checks in told.items()}


def _filled(row: CheckRow, own: NodeResult | None, kept: tuple[float, KeptNode] | None) -> CheckRow:
    """With what is newer: this cockpit's result, or a run of somebody else's."""
    from dataclasses import replace

    if own is not None and (kept is None or own.at >= kept[0]):
        said = {result.check: Said(result.verdict, result.says, own.at) for result in own.results}
        return replace(
            row,
            queue=own.queue or row.queue,
            type=own.instance_type or row.type,
            at=own.at,
            checks={**said, **row.checks},
            fault=own.fault.line() if own.fault else "",
            versions=own.versions,
            result=own,
        )
    if kept is None:
        return row
    at, node = kept
    said = {check: Said(verdict, says, at) for check, (verdict, says) in node.checks.items()}
    return replace(row, at=at, checks={**said, **row.checks}, fault=node.fault, versions=node.versions)


def _worst_by_check(checks: Mapping[str, Said]) -> dict[str, Said]:
    """`efa.pair:gpu-7` and others as one `efa.pair` that names the partner."""
    found: dict[str, Said] = {}
    for name, said in checks.items():
        check, _, partner = name.partition(":")
        told = Said(said.verdict, f"with {partner}: {said.says}" if partner and said.says else said.says, said.at)
        if check not in found or told.verdict.rank < found[check].verdict.rank:
            found[check] = told
    return found


check_book = PerCluster(CheckBook)
