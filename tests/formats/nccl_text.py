# ruff: noqa: E501 - the lines are as long as the real ones
"""Output of nccl-tests in every layout, as its printf formats write it. Numbers are made up but consistent."""

from __future__ import annotations

HOSTS = ("node-1", "node-2")

V1_2017 = """\
# NCCL 2.0.5 performance test
#                                                 out-of-place                    in-place
#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res
   536870912     134217728   float     sum   20.000  26.84  46.98    2e-07   20.500  26.19  45.83    2e-07
  1073741824     268435456   float     sum   40.000  26.84  46.98    2e-07   41.000  26.19  45.83    2e-07
 Out of bounds values : 0 OK
 Avg bus bandwidth    : 46.4
"""

OLD_HEAD = """\
#
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
OLD_ALL_REDUCE = (
    "# nThread 1 nGpus 8 minBytes 1073741824 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
    + OLD_HEAD
    + "  1073741824     268435456   float     sum   8142.6  131.87  230.77  2e-07   8141.2  131.89  230.81    N/A\n"
)
OLD_BROADCAST = """\
#       size         count    type    root     time   algbw   busbw  error     time   algbw   busbw  error
           8             2   float       0    45.82    0.00    0.00    N/A    38.17    0.00    0.00    N/A
"""
OLD_REDUCE = """\
#       size         count    type   redop    root     time   algbw   busbw  error     time   algbw   busbw  error
     1048576        262144   float     sum       3    45.82   22.88   22.88  1e-07    38.17   27.47   27.47  1e-07
"""
OLD_ALL_GATHER = "       65536          8192   float    16.57    1.98    1.98  0e+00    13.83    2.37    2.37  0e+00\n"

HEAD = """\
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
ROW_8 = "           8             2     float     sum      -1    69.12    0.00    0.00      0    72.43    0.00    0.00      0\n"
ROW_2G = "  2147483648     536870912     float     sum      -1   9074.5  236.65  443.72      0   9108.5  235.77  442.06      0\n"
FOOTER = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 110.973 \n#\n"

WITH_STAMP = """\
# nccl-tests version 2.17.9 nccl-headers=22903 nccl-library=22903
# Collective test starting: all_reduce_perf_mpi
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong           timestamp
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         %Y-%m-%d %H:%M:%S
  1073741824     268435456     float     sum      -1   4607.6  233.04  436.95       0   4565.6  235.18  440.96       0  2026-11-04 03:12:07
"""
PER_ITERATION = """\
# Per-Iteration Report: CUDA event timing; i_* uses max over process rows
#                                                              out-of-place (+ per-iteration)                                in-place (+ per-iteration)
#       size         count      type   redop    root     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)     (us)     (us)      (%)     (us)  (GB/s)  (GB/s)             (us)     (us)     (us)      (%)
  1073741824     268435456     float     sum      -1   4607.6  233.04  436.95       0   4590.1   4700.2   4699.0     0.61   4565.6  235.18  440.96       0   4550.0   4600.0   4599.0     0.33
"""
CPU_TIME = """\
#       size         count      type   redop    root  cputime   algbw   busbw  #wrong  cputime   algbw   busbw  #wrong
  1073741824     268435456     float     sum      -1   4607.6  233.04  436.95       0   4565.6  235.18  440.96       0
"""
ALLTOALL = "  1073741824      67108864     float    none      -1    12000   89.48   83.89       0    12100   88.74   83.19     N/A\n"
EXPONENT = " 17179869184    4294967296     float     sum      -1  1.2e+07    1.43    2.68       0  1.2e+07    1.43    2.68 1.5e+06\n"


def device_list(nodes: int = 2, gpus: int = 8, gpu: str = "NVIDIA H100 80GB HBM3") -> str:
    """The lines below `# Using devices`, as since 2.14.1."""
    lines = [
        f"#  Rank {rank:2d} Group  0 Pid {50000 + rank:6d} on {f'node-{rank // gpus + 1}':>10} device {rank % gpus:2d}"
        f" [0000:{0x50 + 0x10 * (rank % gpus):02x}:00] {gpu}"
        for rank in range(nodes * gpus)
    ]
    return "# Using devices\n" + "\n".join(lines) + "\n"


def header(maximum: int = 2**31, validation: int = 1, name: str = "all_reduce_perf") -> str:
    """The first lines, as 2.17 prints them."""
    return (
        "# nccl-tests version 2.17.9 nccl-headers=22903 nccl-library=22903\n"
        f"# Collective test starting: {name}\n"
        f"# nThread 1 nGpus 1 minBytes 8 maxBytes {maximum} step: 2(factor) warmup iters: 5 iters: 20"
        f" agg iters: 1 validation: {validation} graph: 0\n#\n"
    )


def row(size: int, busbw: float, ranks: int = 16, wrong: str = "0") -> str:
    """One row of all_reduce with a consistent time."""
    algbw = busbw / (2 * (ranks - 1) / ranks)
    time_us = size / algbw / 1000 if algbw else 12.34
    half = f"  {time_us:7.0f}  {algbw:6.2f}  {busbw:6.2f}  {wrong:>6}"
    return f"{size:12d}  {size // 4:12d}     float     sum      -1{half}{half}\n"


def whole(
    busbw: float = 444.0, *, nodes: int = 2, size: int = 2**31, gpu: str = "NVIDIA H100 80GB HBM3", log: str = "",
    footer: str = FOOTER, wrong: str = "0", validation: int = 1,
) -> str:  # fmt: skip
    """A complete run of all_reduce with one large row, and NCCL's log lines between header and table."""
    head = header(size, validation) + device_list(nodes, gpu=gpu)
    return head + log + HEAD + ROW_8 + row(size, busbw, 8 * nodes, wrong) + footer


EFA_LOG = """\
node-1:25:25 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.18.0
node-1:25:25 [0] NCCL INFO NET/OFI Using Libfabric version 2.4
node-1:25:25 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)
node-1:25:25 [0] NCCL INFO NET/OFI Using transport protocol RDMA (platform set)
node-1:25:25 [0] NCCL INFO Using network Libfabric
node-1:25:25 [0] NCCL INFO comm 0x7f rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0
node-1:25:25 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 24)
node-1:25:25 [0] NCCL INFO Channel 00/0 : 9[1] -> 0[0] [receive] via NET/Libfabric/0/GDRDMA
node-1:25:25 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1
"""
SOCKET_LOG = """\
node-1:25:25 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so.
node-1:25:25 [0] NCCL INFO NET/IB : No device found.
node-1:25:25 [0] NCCL INFO NET/Socket : Using [0]ens32:10.0.0.11<0>
node-1:25:25 [0] NCCL INFO Using network Socket
node-1:25:25 [0] NCCL INFO Channel 00/0 : 9[1] -> 0[0] [receive] via NET/Socket/0
"""
