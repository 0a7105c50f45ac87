"""The storage pane: what is mounted where, how full it is, what does not answer; FSx as AWS tells it. No Textual.

A network file system is one line for all nodes on which it is the same; local ones are one line with the fullest
node, and one more for each node in trouble.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from cockpit.cluster import Cluster, View
from cockpit.formats.hostlist import fold
from cockpit.gpu_models import MountReading
from cockpit.models import Fault, Health
from cockpit.sources.gpus import GPUS
from cockpit.sources.storage import STORAGE
from cockpit.storage_models import FileSystem, FileSystemUse, StorageReading
from cockpit.storage_problems import of_storage
from cockpit.text import printable
from cockpit.words import MISSING, mib, plural, size, span
from screens.grid_model import Cell, Column
from screens.nothing_there import NO_STORAGE
from screens.pane_spec import PaneSpec
from themes import state_token

FULL_PCT, VERY_FULL_PCT = 90.0, 97.0
HUNG = "does not answer"
NETWORK = frozenset({"lustre", "nfs", "nfs4", "efs", "cifs", "smb3", "beegfs", "gpfs", "ceph", "9p", "wekafs"})
_RANK = {health: rank for rank, health in enumerate(Health)}
_FINE = ("AVAILABLE", "UPDATING", "")


@dataclass(frozen=True, slots=True)
class StorageRow:
    """One line: a mount on some nodes, or an FSx file system."""

    key: str
    what: str  # the path, or the file system's id
    kind: str
    state: str
    health: Health
    used_pct: float | None = None
    inodes_pct: float | None = None
    total_mib: float | None = None
    free_mib: float | None = None
    nodes: tuple[str, ...] = ()
    about: str = ""


@dataclass(frozen=True, slots=True)
class _Seen:
    """One mount on one node, at the time of its reading."""

    node: str
    mount: MountReading
    at: float


class StorageRows:
    """The rows of the last readings; the very same objects while they say the same."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._asked: tuple[object, object] = (None, None)
        self._rows: tuple[StorageRow, ...] | None = None

    def rows(self) -> tuple[StorageRow, ...] | None:
        """Every line, worst first; None while no node and no file system was read."""
        view = self._cluster.view
        if (view.fleet, view.storage) != self._asked:
            self._asked = (view.fleet, view.storage)
            made = storage_rows(view)
            self._rows = self._rows if made == self._rows else made
        return self._rows


def storage_rows(view: View) -> tuple[StorageRow, ...] | None:
    """Mounts as the probes see them, then FSx; None when nothing of either was read."""
    readings = [watch.reading for watch in view.fleet.nodes.values() if watch.reading] if view.fleet else []
    if not readings and view.storage is None:
        return None
    seen = [
        _Seen(name, mount, watch.reading.taken_at)
        for name, watch in (view.fleet.nodes.items() if view.fleet else ())
        if watch.reading
        for mount in watch.reading.mounts
    ]
    rows = [*_mount_rows(seen), *(_fsx_rows(view.storage) if view.storage else ())]
    return tuple(sorted(rows, key=lambda row: (-_RANK[row.health], -(row.used_pct or 0.0), row.key)))


def _mount_rows(seen: Iterable[_Seen]) -> Iterator[StorageRow]:
    alike: dict[tuple[str, str, str], list[_Seen]] = defaultdict(list)
    for one in seen:
        mount = one.mount
        shared = mount.kind in NETWORK
        source = mount.source if shared else ""
        odd = _state(one)[1] is not Health.OK
        apart = _state(one)[0] if shared and odd else one.node if odd else ""
        alike[mount.path, source or mount.kind, apart].append(one)
    for (path, source, apart), group in alike.items():
        yield _mount_row(f"mount:{path}:{source}:{apart}", group)


def _state(one: _Seen) -> tuple[str, Health]:
    mount = one.mount
    if mount.hung_since is not None:
        return HUNG, Health.CRITICAL
    if mount.error:
        return "error", Health.WARN
    used = _used_pct(mount)
    inodes = _inodes_pct(mount)
    worst = max((pct for pct in (used, inodes) if pct is not None), default=None)
    if worst is None:
        return "not read", Health.UNKNOWN
    if worst < FULL_PCT:
        return "ok", Health.OK
    word = "full" if worst == used else "out of inodes" if worst >= VERY_FULL_PCT else "many inodes"
    return (word if worst >= VERY_FULL_PCT else f"nearly {word}" if word == "full" else word), (
        Health.CRITICAL if worst >= VERY_FULL_PCT else Health.WARN
    )


def _used_pct(mount: MountReading) -> float | None:
    """As df counts it: what root alone may use is neither used nor free."""
    used, free = mount.used_mib, mount.available_mib
    return 100 * used / (used + free) if used is not None and free is not None and used + free else None


def _inodes_pct(mount: MountReading) -> float | None:
    return 100 * mount.inodes_used / mount.inodes if mount.inodes and mount.inodes_used is not None else None


def _mount_row(key: str, group: Sequence[_Seen]) -> StorageRow:
    """Alike mounts as one line: the numbers are those of the fullest, the state that of the first to hang."""
    fullest = max(group, key=lambda one: _used_pct(one.mount) or 0.0)
    word, health = _state(max(group, key=lambda one: _RANK[_state(one)[1]]))
    mount, names = fullest.mount, tuple(sorted({one.node for one in group}))
    about = [f"{plural(len(names), 'node')}: {fold(names)}"]
    since = [one.at - one.mount.hung_since for one in group if one.mount.hung_since is not None]
    if since:
        about.insert(0, f"since {span(max(since))}")
    if mount.error:
        about.insert(0, mount.error)
    if mount.kind in NETWORK:
        about.append(mount.source)
    elif len(names) > 1:
        about.append(f"fullest on {fullest.node}")
    return StorageRow(
        key,
        mount.path,
        mount.kind,
        word,
        health,
        _used_pct(mount),
        _inodes_pct(mount),
        mount.total_mib,
        mount.available_mib,
        names,
        " · ".join(filter(None, about)),
    )


def _fsx_rows(reading: StorageReading) -> Iterator[StorageRow]:
    worst: dict[str, Health] = {}
    for problem in of_storage(reading):
        worst[problem.subject] = max(worst.get(problem.subject, Health.OK), problem.health, key=_RANK.__getitem__)
    for system in reading.systems.data or ():
        part = reading.use.get(system.id)
        use = part.data if part is not None and part.data is not None else FileSystemUse()
        yield _fsx_row(system, use, part.fault if part is not None else None, worst.get(system.id, Health.OK))


def _fsx_row(system: FileSystem, use: FileSystemUse, fault: Fault | None, health: Health) -> StorageRow:
    total = system.capacity_gib * 1024.0 if system.capacity_gib is not None else None
    free = use.free_bytes / 2**20 if use.free_bytes is not None else None
    return StorageRow(
        f"fsx:{system.id}",
        system.id,
        " ".join(word for word in ("fsx", system.type.lower(), system.deployment) if word),
        "ok" if system.lifecycle in _FINE else system.lifecycle.lower(),
        health,
        100 * (1 - free / total) if free is not None and total else None,
        None,
        total,
        free,
        about=" · ".join(_fsx_words(system, use, fault)),
    )


def _fsx_words(system: FileSystem, use: FileSystemUse, fault: Fault | None) -> Iterator[str]:
    if system.why:
        yield system.why
    if use.read_bytes_s is not None:
        yield f"reads {size(use.read_bytes_s)}/s"
    if use.write_bytes_s is not None:
        yield f"writes {size(use.write_bytes_s)}/s"
    if use.metadata_ops_s is not None:
        yield f"{use.metadata_ops_s:,.0f} metadata operations/s"
    if use.fullest_target_free_bytes is not None:
        yield f"{size(use.fullest_target_free_bytes)} free on its fullest target"
    if use.clients is not None:
        yield f"{use.clients:,.0f} clients"
    if fault is not None:
        yield f"CloudWatch: {fault.why}{f' → {fault.next_step}' if fault.next_step else ''}"
    elif use.at is None:
        yield "CloudWatch lists no metric of it yet"
    if system.mb_s_per_tib:
        yield f"{system.mb_s_per_tib} MB/s per TiB bought"


@dataclass(frozen=True, slots=True)
class StorageTable:
    """Columns and filter fields over mounts and file systems."""

    def columns(self) -> tuple[Column[StorageRow], ...]:
        """Every column, in order; the narrowest screen keeps what, its state, how full it is and where."""
        return (
            Column("what", "mount", lambda r: r.what, lambda r: r.what, 8, 30),
            Column("state", "state", lambda r: (r.state, state_token(r.health)), lambda r: -_RANK[r.health], 8, 16,
                   note="sorts worst first"),
            Column("used", "used", _used, lambda r: r.used_pct, 5, 6, "right", down_first=True),
            Column("free", "free", lambda r: _size(r.free_mib), lambda r: r.free_mib, 5, 7, "right", 2),
            Column("size", "of", lambda r: _size(r.total_mib), lambda r: r.total_mib, 5, 7, "right", 3),
            Column("inodes", "inodes", lambda r: _pct(r.inodes_pct), lambda r: r.inodes_pct, 6, 7, "right", 4,
                   note="in use"),
            Column("kind", "kind", lambda r: r.kind, lambda r: r.kind, 5, 28, drop=1),
            Column("about", "where", lambda r: (r.about, ""), None, 26, 140, cut=True, note="which nodes have it"),
        )  # fmt: skip

    def fields(self) -> Mapping[str, Callable[[StorageRow], str]]:
        """What `field:value` in a filter may name."""
        return {
            "mount": lambda r: r.what,
            "state": lambda r: r.state,
            "kind": lambda r: r.kind,
            "node": lambda r: " ".join(r.nodes),
        }


def _used(row: StorageRow) -> Cell:
    token = "" if row.used_pct is None or row.used_pct < FULL_PCT else state_token(row.health)
    return _pct(row.used_pct), token


def _pct(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f} %"


def _size(value: float | None) -> str:
    return MISSING if value is None else mib(value)


def storage_spec(cluster: Cluster) -> PaneSpec:
    """What is mounted and how full it is, as a pane."""
    kept, table = StorageRows(cluster), StorageTable()
    return PaneSpec(
        id="storage",
        kind="storage",
        source=GPUS,
        rows=lambda view: kept.rows(),
        key=lambda row: row.key,
        health=lambda row: row.health,
        columns=table.columns(),
        fields=table.fields(),
        record=asdict,
        copied=lambda keys: "\n".join(line_of(row) for row in kept.rows() or () if row.key in set(keys)),
        empty=lambda view: NO_STORAGE,
        nodes=lambda row: row.nodes,
        sort="state",
        headline=lambda view: headline(cluster, kept.rows()),
    )


def headline(cluster: Cluster, rows: Sequence[StorageRow] | None) -> str:
    """How many there are and deviate, and why FSx is not among them when it could not be read."""
    found = rows or ()
    bad = sum(1 for row in found if row.health is not Health.OK)
    words = [plural(len(found), "line"), *([f"{bad} not well"] if bad else [])]
    error = cluster.store.state(STORAGE).error
    if error is not None:
        words.append(f"FSx not read: {printable(error.why)}{f' → {error.next_step}' if error.next_step else ''}")
    return " · ".join(words)


def line_of(row: StorageRow) -> str:
    """A line as one pastes it into a channel."""
    used = f"{row.used_pct:.0f} % of {mib(row.total_mib)} used" if row.used_pct is not None else ""
    return " · ".join(word for word in (row.what, row.kind, row.state, used, row.about) if word)


def find_row(cluster: Cluster, key: str) -> StorageRow | None:
    """The line of that key by what is known now; None when it is over."""
    return next((row for row in storage_rows(cluster.view) or () if row.key == key), None)
