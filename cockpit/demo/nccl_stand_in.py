"""What `all_reduce_perf` and its siblings print, for machines without GPUs: nccl-tests 2.17.9 on p5.48xlarge.

Run as a program it is one task of a Slurm step and behaves as the real one does with MPI: rank 0 prints. How fast
each node and pair is stands in a JSON file, $NCCL_STAND_IN. Only the standard library is used.
"""

from __future__ import annotations

import getopt
import json
import os
import random
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSION, NCCL = "2.17.9", 22903
_HEX = (0x53, 0x64, 0x75, 0x86, 0x97, 0xA8, 0xB9, 0xCA)
_SHARED = ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter")
_ROOTLESS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
_LATENCY_US = 61.0
_SIZE = re.compile(r"(\d+)([KMGT]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True, slots=True)
class Speeds:
    """How fast things are: GB/s of bus bandwidth, and shares of it for single nodes and pairs (`a,b`)."""

    pair_gbs: float = 470.0
    alone_gbs: float = 476.0
    many_gbs: float = 369.0  # three nodes and more
    nodes: Mapping[str, float] = field(default_factory=dict)  # also alone
    network: Mapping[str, float] = field(default_factory=dict)  # only together with others
    pairs: Mapping[str, float] = field(default_factory=dict)
    failing: Sequence[str] = ()  # with others: their GPU cannot be used
    wrong: Mapping[str, int] = field(default_factory=dict)  # wrong values a row
    sockets: bool = False
    noise: float = 0.01
    row_s: float = 0.0  # a row takes so long

    def busbw_gbs(self, nodes: Sequence[str]) -> float:
        """What these nodes reach together."""
        share = min(self.nodes.get(node, 1.0) for node in nodes)
        if len(nodes) == 1:
            return self.alone_gbs * share
        share = min(share, *(self.network.get(node, 1.0) for node in nodes))
        share *= self.pairs.get(",".join(sorted(nodes)), 1.0)
        full = self.pair_gbs if len(nodes) == 2 else self.many_gbs
        return (4.1 if self.sockets else full) * share


@dataclass(frozen=True, slots=True)
class Asked:
    """nccl-tests' arguments, as far as they change what is printed."""

    collective: str = "all_reduce"
    minimum: int = 32 * 2**20
    maximum: int = 32 * 2**20
    step: int = 2**20
    factor: int = 1
    iters: int = 20
    warmup: int = 1
    check: int = 1

    def sizes(self) -> Iterator[int]:
        """Every size, in order."""
        size = self.minimum
        while size <= self.maximum:
            yield size
            size = size * self.factor if self.factor > 1 else size + self.step


def parse_arguments(program: str, argv: Sequence[str]) -> Asked:
    """Read the command line; raises getopt.GetoptError for what the real one answers with its usage."""
    pairs, _ = getopt.getopt(list(argv), "t:g:b:e:i:f:n:w:m:p:c:o:d:r:z:a:G:T:C:N:R:J:S:M:h")
    given = dict(pairs)
    if "-h" in given:
        raise getopt.GetoptError("")
    name = re.fullmatch(r"(?:.*/)?([a-z_]+)_perf(?:_\w+)?", program)
    return Asked(
        collective=name[1] if name else "all_reduce",
        minimum=_bytes(given.get("-b", "32M")),
        maximum=_bytes(given.get("-e", given.get("-b", "32M"))),
        step=max(1, _bytes(given.get("-i", "1M"))),
        factor=int(given.get("-f", "1")),
        iters=int(given.get("-n", "20")),
        warmup=int(given.get("-w", "1")),
        check=int(given.get("-c", "1")),
    )


def _bytes(text: str) -> int:
    found = _SIZE.match(text)
    return int(found[1]) * _UNITS[found[2].upper()] if found else 0


def header(asked: Asked, program: str) -> Iterator[str]:
    """The lines before the devices."""
    step = f"{asked.factor}(factor)" if asked.factor > 1 else f"{asked.step}(bytes)"
    yield f"# nccl-tests version {VERSION} nccl-headers={NCCL} nccl-library={NCCL}"
    yield f"# Collective test starting: {program}"
    yield (
        f"# nThread 1 nGpus 1 minBytes {asked.minimum} maxBytes {asked.maximum} step: {step}"
        f" warmup iters: {asked.warmup} iters: {asked.iters} agg iters: 1 validation: {asked.check} graph: 0"
    )
    yield "#"


def devices(hosts: Sequence[str], gpus: int) -> Iterator[str]:
    """One line a rank."""
    yield "# Using devices"
    for rank in range(len(hosts) * gpus):
        host, device = hosts[rank // gpus], rank % gpus
        yield (
            f"#  Rank {rank:2d} Group  0 Pid {41000 + rank:6d} on {host:>10} device {device:2d}"
            f" [0000:{_HEX[device % 8]:02x}:00] NVIDIA H100 80GB HBM3"
        )


def nccl_log(hosts: Sequence[str], ranks: int, *, sockets: bool) -> Iterator[str]:
    """Some of the lines of NCCL_DEBUG=INFO."""
    head = f"{hosts[0]}:41000:41000 [0] NCCL INFO "
    if sockets:
        lines = [
            "NET/Plugin: Could not find: libnccl-net.so.",
            "NET/Socket : Using [0]ens32:10.0.0.11<0>",
            "Using network Socket",
        ]
    else:
        lines = [
            "NET/OFI Initializing aws-ofi-nccl 1.18.0",
            "NET/OFI Using Libfabric version 2.4",
            "NET/OFI Running on p5.48xlarge platform, NCCL_TOPO_FILE environment variable is already set",
            "NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)",
            "Using network Libfabric",
        ]
    lines += [
        f"comm 0x55d0 rank 0 nRanks {ranks} nNodes {len(hosts)} localRanks {ranks // len(hosts)} localRank 0 MNNVL 0",
        "NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
    ]
    yield from (head + line for line in lines)


def table_head() -> Iterator[str]:
    """The three lines with the columns' names, and the one before them."""
    yield "#"
    blank = f"# {'':>10}  {'':>12}  {'':>8}  {'':>6}  {'':>6}"
    yield f"{blank}           out-of-place                       in-place          "
    half = "{:>7}  {:>6}  {:>6}  {:>6}"
    names, units = half.format("time", "algbw", "busbw", "#wrong"), half.format("(us)", "(GB/s)", "(GB/s)", "")
    yield f"# {'size':>10}  {'count':>12}  {'type':>8}  {'redop':>6}  {'root':>6}  {names}  {names} "
    yield f"# {'(B)':>10}  {'(elements)':>12}  {'':>8}  {'':>6}  {'':>6}  {units}  {units} "


def factor_of(collective: str, ranks: int) -> float:
    """busbw = algbw times this."""
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if collective in _SHARED else 1.0


def table_row(asked: Asked, size: int, busbw_gbs: Sequence[float], ranks: int, wrong: int = 0) -> str:
    """One row; `busbw_gbs` is what both placements reach with an endless message."""
    reduces = asked.collective in ("all_reduce", "reduce_scatter", "reduce")
    root = -1 if asked.collective in _ROOTLESS else 0
    text = f"{size:12d}  {size // 4:12d}  {'float':>8}  {'sum' if reduces else 'none':>6}  {root:6d}"
    factor = factor_of(asked.collective, ranks)
    for at, full in enumerate(busbw_gbs):
        time_us = _LATENCY_US + size / (full / max(factor, 1e-9) * 1000)
        algbw = size / time_us / 1000
        checked = asked.check and not (at and asked.collective in ("alltoall", "sendrecv"))
        last = f"{wrong:>6g}" if checked else "   N/A"
        text += f"  {_number(time_us, 7)}  {_number(algbw, 6)}  {_number(algbw * factor, 6)}  {last}"
    return text


def _number(value: float, width: int) -> str:
    """As nccl-tests prints: fewer decimals for larger numbers, so that the column holds."""
    digits = len(str(int(value))) if value >= 1 else 0
    decimals = 2 if digits < width - 2 else 1 if digits < width - 1 else 0
    return f"{value:{width}.{decimals}f}"


def footer(average: float, wrong: int, program: str) -> Iterator[str]:
    """The end; without it a run did not finish."""
    yield f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"
    yield f"# Avg bus bandwidth    : {average:g} "
    yield "#"
    yield f"# Collective test concluded: {program}"
    yield "#"


def whole_run(asked: Asked, nodes: Sequence[str], gpus: int, speeds: Speeds, *, debug: bool) -> Iterator[str]:
    """Everything that rank 0 prints, line by line."""
    program, ranks = f"{asked.collective}_perf", len(nodes) * gpus
    noise = random.Random(",".join(nodes))  # noqa: S311 - the same nodes always give the same
    yield from header(asked, program)
    yield from devices(nodes, gpus)
    if debug:
        yield from nccl_log(nodes, ranks, sockets=speeds.sockets and len(nodes) > 1)
    yield from table_head()
    full, wrong = speeds.busbw_gbs(nodes), sum(speeds.wrong.get(node, 0) for node in nodes)
    reached, rows = 0.0, 0
    for size in asked.sizes():
        pair = [full * (1 + noise.uniform(-speeds.noise, speeds.noise)) for _ in range(2)]
        yield table_row(asked, size, pair, ranks, wrong)
        reached, rows = reached + sum(pair) / 2, rows + 1
    yield from footer(reached / max(1, rows), 2 * wrong * rows if asked.check else 0, program)


# -- as a program: one task of a step


def _expand(text: str) -> list[str]:
    """A host list of Slurm's with one level of brackets."""
    names: list[str] = []
    for prefix, group in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?", text):
        if not group:
            names.append(prefix)
        for part in group.split(",") if group else ():
            low, _, high = part.partition("-")
            names += [f"{prefix}{number:0{len(low)}d}" for number in range(int(low), int(high or low) + 1)]
    return names


def speeds_from(path: str | None) -> Speeds:
    """The file's speeds; full speed without one."""
    content: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8")) if path and Path(path).exists() else {}
    return Speeds(**content)


def _usage(program: str, error: str) -> int:
    if error:
        print(f"{program}: {error}", file=sys.stderr)
    print(f"USAGE: {program} \n\t[-t,--nthreads <num threads>] \n\t[-g,--ngpus <gpus per thread>]")
    return 255 if error else 0


def main(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """One task; returns nccl-tests' exit code."""
    program = os.path.basename(argv[0])
    try:
        asked = parse_arguments(program, argv[1:])
    except getopt.GetoptError as error:
        return _usage(program, error.msg)
    nodes = _expand(env.get("SLURM_STEP_NODELIST") or env.get("SLURMD_NODENAME") or os.uname().nodename)
    ranks, rank = int(env.get("SLURM_NTASKS", "1")), int(env.get("SLURM_PROCID", "0"))
    speeds = speeds_from(env.get("NCCL_STAND_IN"))
    failing = [node for node in nodes if node in speeds.failing] if len(nodes) > 1 else []
    me = env.get("SLURMD_NODENAME", "")
    if me in failing and env.get("SLURM_LOCALID", "0") == "0":
        print(f"{me}: Test CUDA failure common.cu:941 'system not yet initialized'")
        print(f" .. {me} pid 41000: Test failure common.cu:891")
        return 2
    if rank != 0:
        return 0
    for line in whole_run(asked, nodes, max(1, ranks // len(nodes)), speeds, debug=env.get("NCCL_DEBUG") == "INFO"):
        if failing and line.startswith("# ") and "size" in line:
            time.sleep(60)  # the others wait for the failing rank, until the launcher ends them
            return 3
        if not line.startswith("#"):
            time.sleep(speeds.row_s)
        print(line, flush=True)
    return 7 if asked.check and any(speeds.wrong.get(node) for node in nodes) else 0


if __name__ == "__main__":
    # A wrapper may give the name under which it was called.
    sys.exit(main([os.environ.get("NCCL_STAND_IN_NAME", sys.argv[0]), *sys.argv[1:]], os.environ))
