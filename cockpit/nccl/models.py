"""What a run of nccl-tests told: frozen, no I/O.

GB/s are 10^9 bytes per second as nccl-tests prints them, sizes are bytes, times microseconds. Every string
has passed `cockpit.text.printable`. A value that was not printed, or printed as N/A or nan, is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "reduce", "broadcast", "alltoall", "alltoallv", "gather", "scatter",
    "sendrecv", "hypercube",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class IterationTimes:
    """Spread over the iterations of one size (-I): microseconds, and the coefficient of variation in per cent."""

    min_us: float | None
    max_us: float | None
    p99_us: float | None
    cv_pct: float | None


@dataclass(frozen=True, slots=True)
class Placement:
    """One half of a row: out of place or in place.

    `wrong` counts wrong elements, None where nothing was checked; `error` is the float that nccl-tests before
    2.13 printed in its stead.
    """

    time_us: float | None
    algbw_gbs: float | None
    busbw_gbs: float | None
    wrong: int | None = None
    error: float | None = None
    iterations: IterationTimes | None = None


@dataclass(frozen=True, slots=True)
class NcclRow:
    """One size. `task` is the launcher's label of the line, `label` what stood before the size (hand-made tables)."""

    size_bytes: int
    count: int
    dtype: str
    redop: str = ""  # "" where the layout has no such column
    root: int | None = None
    out_of_place: Placement | None = None
    in_place: Placement | None = None
    stamp: str = ""
    task: str = ""
    label: str = ""

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The halves that were printed."""
        return tuple(half for half in (self.out_of_place, self.in_place) if half is not None)

    @property
    def busbw_gbs(self) -> float | None:
        """The better of both placements."""
        found = [half.busbw_gbs for half in self.placements if half.busbw_gbs is not None]
        return max(found, default=None)

    @property
    def wrong(self) -> int | None:
        """Wrong elements in both placements; None where neither was checked."""
        found = [half.wrong for half in self.placements if half.wrong is not None]
        return sum(found) if found else None


@dataclass(frozen=True, slots=True)
class NcclRank:
    """One line below `# Using devices`."""

    rank: int
    group: int | None
    pid: int
    host: str
    device: int
    pci: str
    gpu: str


@dataclass(frozen=True, slots=True)
class NcclError:
    """One failure. `kind`: launch, init, cuda, nccl, data, timeout, cancelled, node or internal."""

    kind: str
    text: str
    host: str = ""
    where: str = ""  # file:line in nccl-tests
    task: str = ""
    cause: str = ""  # what the text means, from the catalogue
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class NcclVersions:
    """What produced the numbers; "" where it was not told. A number without these is worth little."""

    nccl_tests: str = ""
    nccl: str = ""
    cuda: str = ""
    plugin: str = ""
    libfabric: str = ""
    driver: str = ""
    efa: str = ""


@dataclass(frozen=True, slots=True)
class NetEvidence:
    """What NCCL's own log lines say about the way the data went; lines are kept as proof.

    `transport` is efa, tcp (libfabric over another provider), socket, ib, mixed, or "" when no line told.
    """

    transport: str = ""
    transport_line: str = ""
    fallback_line: str = ""  # why the plugin was not used, where the log says so
    protocol: str = ""  # RDMA or SENDRECV
    nics: int | None = None
    gdr: bool | None = None
    nvls: bool | None = None
    nvls_line: str = ""
    platform: str = ""
    ranks: int | None = None
    nodes: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)  # NCCL_*, FI_*, OFI_NCCL_*: set by the environment
    warnings: tuple[str, ...] = ()  # NCCL WARN lines


@dataclass(frozen=True, slots=True)
class NcclFooter:
    """The last lines. Without them a run did not finish; `average_gbs` is over all sizes and no measure."""

    out_of_bounds: int | None = None
    out_of_bounds_ok: bool | None = None
    average_gbs: float | None = None
    average_ok: bool | None = None  # None: no minimum was asked for


@dataclass(frozen=True, slots=True)
class NcclRun:
    """One table with all that was printed around it."""

    collective: str = ""
    parameters: Mapping[str, int] = field(default_factory=dict)
    ranks: tuple[NcclRank, ...] = ()
    ranks_cut: bool = False  # a process' device list was cut at 2,048 characters
    versions: NcclVersions = NcclVersions()
    evidence: NetEvidence = NetEvidence()
    rows: tuple[NcclRow, ...] = ()
    rows_dropped: int = 0
    footer: NcclFooter | None = None
    errors: tuple[NcclError, ...] = ()
    exit_code: int | None = None
    copies: int = 1  # more than 1: a binary without MPI, started as several tasks
    elided: bool = False  # somebody replaced rows by `...`
    reduced_to_bytes: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)  # redacted
    env_hidden: int = 0  # variables that are not shown

    @property
    def complete(self) -> bool:
        """True when the footer with the average was seen."""
        return self.footer is not None and self.footer.average_gbs is not None

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names in the order of their ranks, each once."""
        return tuple(dict.fromkeys(rank.host for rank in self.ranks))


class Judgement(str, Enum):
    """The word of a verdict, best first."""

    PASS = "pass"  # noqa: S105 - a word, no password
    UNJUDGED = "unjudged"
    INCOMPLETE = "incomplete"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Shape:
    """What was measured: only runs of equal shape may be compared. `type_from` says how the type is known."""

    instance_type: str = ""
    type_from: str = ""  # given, log, gpu or name; "" when not known
    nodes: int | None = None
    ranks: int | None = None
    gpus_per_node: int | None = None
    collective: str = ""
    algorithm: str = "default"  # default or ring


@dataclass(frozen=True, slots=True)
class Expectation:
    """What this shape should reach in GB/s, from the catalogue or from this cluster's own history."""

    basis: str  # catalogue or history
    good_gbs: float
    warn_below_gbs: float | None
    fail_below_gbs: float | None
    min_size_bytes: int = 0
    sources: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The reading of one run; `reasons` begins with the one that decided."""

    word: Judgement
    reasons: tuple[str, ...]
    shape: Shape
    busbw_large_gbs: float | None = None
    size_large_bytes: int | None = None
    expectation: Expectation | None = None
    pct: float | None = None  # of the expectation
    cap_gbs: float | None = None  # what the network can carry at most
    latency_us: float | None = None  # median of the rows up to 8 KiB
    wrong: int | None = None
    data_checked: bool | None = None
    flags: tuple[str, ...] = ()
