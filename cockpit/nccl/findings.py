"""What is remarkable about one run, each with its weight: launch, errors, data, network, NVLS, the curve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from cockpit.catalog.nccl_expected import network_facts, without_nvls
from cockpit.nccl.models import Judgement, NcclError, NcclRow, NcclRun, Shape
from cockpit.words import binary_size, plural

LARGE_BYTES = 2**30  # only from here on a size says something about bandwidth
_FALLS, _UNEVEN, _BROKEN = 0.90, 1.5, 0.5
_NOTE = Judgement.PASS


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say. `level` PASS is a remark that decides nothing."""

    level: Judgement
    text: str
    flag: str = ""


def launch_findings(run: NcclRun) -> Iterator[Finding]:
    """A run that was no test of the machine, whatever its numbers."""
    if run.copies > 1:
        yield Finding(
            Judgement.UNJUDGED,
            "not one job: several independent copies printed their tables into each other; the binary was built"
            " without MPI (ldd shows no libmpi) or started without it, so the numbers mean nothing",
            "copies",
        )
    ranks = run.evidence.ranks or (0 if run.ranks_cut else len(run.ranks))
    if ranks == 1:
        yield Finding(Judgement.UNJUDGED, "one rank only: nothing was sent, so there is nothing to judge", "one_rank")
    places = [(rank.host, rank.device, rank.pci) for rank in run.ranks if ":" in rank.pci]
    if len(places) > len(set(places)):
        yield Finding(Judgement.UNJUDGED, "several ranks share one GPU: the numbers say little", "shared_gpu")
    if run.elided:
        yield Finding(_NOTE, "somebody replaced rows of this text by dots", "elided")
    if run.reduced_to_bytes is not None:
        size = binary_size(run.reduced_to_bytes)
        yield Finding(_NOTE, f"the largest size was cut to {size}: the GPU's memory allowed no more", "reduced")


def error_findings(run: NcclRun) -> Iterator[Finding]:
    """Failures, equal ones of several hosts as one, and the end that is missing."""
    key = lambda error: (error.kind, error.text, error.cause, error.next_step)  # noqa: E731
    for _, group in groupby(sorted(run.errors, key=key), key=key):
        yield Finding(Judgement.FAIL, _error_text(list(group)), "error")
    if not run.errors and not run.complete:
        yield Finding(Judgement.INCOMPLETE, _missing_end(run), "incomplete")


def _error_text(errors: list[NcclError]) -> str:
    error = errors[0]
    hosts = sorted({each.host for each in errors if each.host})
    words = {
        "launch": "did not start", "init": "failed while starting", "cuda": "CUDA call failed",
        "nccl": "NCCL call failed", "data": "wrong data", "timeout": "timed out", "cancelled": "cancelled",
        "node": "lost a node",
    }  # fmt: skip
    where = f" on {', '.join(hosts[:3])}{f' and {len(hosts) - 3} more' if len(hosts) > 3 else ''}" if hosts else ""
    cause = f"; {error.cause}" if error.cause else ""
    step = f"; next: {error.next_step}" if error.next_step else ""
    return f"{words.get(error.kind, 'failed')}{where}: {error.text}{cause}{step}"


def _missing_end(run: NcclRun) -> str:
    if not run.rows:
        return "incomplete: the text ends before the first row; the run did not finish, or its output is cut off"
    size = binary_size(run.rows[-1].size_bytes)
    return f"incomplete: no footer after the row of {size}; the run did not finish, or its output is cut off"


def wrong_elements(run: NcclRun) -> int | None:
    """Wrong elements over all rows and the footer; None where nothing was checked."""
    if run.parameters.get("validation") == 0:
        return None
    by_rows = [row.wrong for row in run.rows if row.wrong is not None]
    footer = run.footer.out_of_bounds if run.footer is not None else None
    had_errors = any(half.error is not None for row in run.rows for half in row.placements)
    if not by_rows and not had_errors and not footer:
        return None  # the footer says OK also when nothing was checked
    return max(sum(by_rows), footer or 0)


def data_findings(run: NcclRun) -> Iterator[Finding]:
    """Wrong values, and whether they were looked for at all."""
    wrong = wrong_elements(run)
    if wrong:
        sizes = [binary_size(row.size_bytes) for row in run.rows if row.wrong]
        at = f" at {', '.join(sizes[:4])}{' and more' if len(sizes) > 4 else ''}" if sizes else ""
        yield Finding(
            Judgement.FAIL,
            f"wrong data: {wrong:,} wrong values{at}; a GPU or a link corrupts data: take these nodes out of use",
            "wrong_data",
        )
    elif wrong is None and run.rows:
        ok = " although the footer says OK" if run.footer is not None and run.footer.out_of_bounds_ok else ""
        yield Finding(_NOTE, f"the data was not checked (-c 0){ok}", "check_off")
    if run.footer is not None and run.footer.average_ok is False:
        yield Finding(Judgement.FAIL, "the average is below NCCL_TESTS_MIN_BW, as nccl-tests itself says", "min_bw")


def network_findings(run: NcclRun, shape: Shape) -> Iterator[Finding]:
    """Which way the data went, proven by a line of the log; only where there is a network between the ranks."""
    if shape.nodes == 1:
        return
    evidence = run.evidence
    settings = {**run.env, **evidence.settings}
    meant = settings.get("NCCL_NET_PLUGIN", "").lower() == "none" or settings.get("NCCL_NET", "").lower() == "socket"
    because = f" (why: {evidence.fallback_line})" if evidence.fallback_line else ""
    proof = f"the log says: {evidence.transport_line}{because}"
    if evidence.transport in ("socket", "mixed"):
        some = "some ranks used" if evidence.transport == "mixed" else "NCCL used"
        if meant:
            yield Finding(Judgement.WARN, f"over sockets, as the environment asked for; {proof}", "socket_on_purpose")
        else:
            yield Finding(Judgement.FAIL, f"socket fall-back: {some} TCP instead of EFA; {proof}", "socket_fallback")
    elif evidence.transport == "tcp":
        yield Finding(Judgement.FAIL, f"libfabric without EFA; {proof}", "not_efa")
    elif evidence.transport == "efa":
        yield Finding(_NOTE, f"over EFA: {evidence.transport_line}", "efa")
        yield from _efa_findings(run, shape)


def _efa_findings(run: NcclRun, shape: Shape) -> Iterator[Finding]:
    facts, evidence = network_facts(shape.instance_type), run.evidence
    # Older plugins count each device, newer ones may group those of a GPU: only fewer than GPUs is surely wrong.
    if facts is not None and evidence.nics is not None and evidence.nics < min(facts.nics, facts.gpus):
        text = f"only {plural(evidence.nics, 'EFA device')} found on a node where {facts.name} has {facts.nics}"
        yield Finding(Judgement.WARN, text, "nics_missing")
    if evidence.gdr is False and shape.instance_type.startswith("p") and shape.instance_type[:3] != "p5.4":
        yield Finding(Judgement.WARN, "GPUDirect is off (GDR 0): data goes through the hosts' memory", "no_gdr")


def nvls_findings(run: NcclRun, shape: Shape, busbw_gbs: float | None) -> Iterator[Finding]:
    """NVLS (NVLink SHARP) off where the GPUs have it: one node then gives about a fifth less."""
    facts, evidence = network_facts(shape.instance_type), run.evidence
    gpu = facts.gpu if facts is not None else ""
    if gpu not in ("H100", "H200", "B200", "B300") or shape.collective != "all_reduce":
        return
    if evidence.nvls is False:
        yield Finding(Judgement.WARN, f"NVLS off; the log says: {evidence.nvls_line}", "nvls_off")
    elif shape.nodes == 1 and busbw_gbs is not None and without_nvls(gpu, busbw_gbs):
        doubt = ", although the log shows it on" if evidence.nvls else ""
        yield Finding(
            Judgement.WARN,
            f"NVLS off, by the number{doubt}: {busbw_gbs:.1f} GB/s is what {gpu} gives without it (360-370);"
            " look at nvidia-fabricmanager and NCCL_NVLS_ENABLE",
            "nvls_off",
        )


def curve_findings(run: NcclRun) -> Iterator[Finding]:
    """What the sizes tell together: unequal repeats, a fall towards large sizes, placements that differ."""
    yield from _repeats(run.rows)
    best: NcclRow | None = None
    for row in run.rows:
        value, top = row.busbw_gbs, best.busbw_gbs if best is not None else None
        if value is None or row.label:
            continue
        if best is None or top is None or value > top:
            best = row
        elif row.size_bytes > best.size_bytes >= 2**20 and value < _FALLS * top and row is run.rows[-1]:
            sizes = f"{top:.1f} GB/s at {binary_size(best.size_bytes)}, {value:.1f} at {binary_size(row.size_bytes)}"
            yield Finding(Judgement.WARN, f"falls with size: {sizes}; drops or congestion do that", "falls")
    yield from _uneven(run.rows)


def _repeats(rows: tuple[NcclRow, ...]) -> Iterator[Finding]:
    """The same size measured several times (-N) should give the same."""
    by_size: dict[tuple[str, str, str, int], list[float]] = {}
    for row in rows:
        if row.busbw_gbs is not None and row.size_bytes >= 2**20:
            by_size.setdefault((row.label, row.dtype, row.redop, row.size_bytes), []).append(row.busbw_gbs)
    for (_, _, _, size), values in by_size.items():
        usual, low = median(values), min(values)
        if len(values) < 3 or low >= _FALLS * usual:
            continue
        which = values.index(low) + 1
        words = (
            f"{binary_size(size)} was measured {len(values)} times: {low:.1f} GB/s in row {which}, {usual:.1f} usually"
        )
        if low < _BROKEN * usual:
            text = f"{words}, {usual / max(low, 0.01):.0f} times as much: that row went another way, as after a"
            yield Finding(Judgement.FAIL, f"{text} socket fall-back", "unequal_repeats")
        else:
            yield Finding(Judgement.WARN, words, "unequal_repeats")


def _uneven(rows: tuple[NcclRow, ...]) -> Iterator[Finding]:
    for row in reversed(rows):
        values = [half.busbw_gbs for half in row.placements if half.busbw_gbs]
        if row.size_bytes >= 2**20 and len(values) == 2 and max(values) > _UNEVEN * min(values):
            text = f"in place and out of place differ: {values[0]:.2f} and {values[1]:.2f} GB/s"
            yield Finding(Judgement.WARN, f"{text} at {binary_size(row.size_bytes)}", "uneven")
            return
