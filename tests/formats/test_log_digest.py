"""A log of any size: what is found in it, and that neither chunks nor sizes change the answer."""

from __future__ import annotations

import os
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.formats.log_digest import CHUNK, KINDS, LONGEST, LogReader, digest_of
from cockpit.formats.log_models import LogDigest, RankPosition

SAMPLES = Path(os.environ.get("COCKPIT_SAMPLES") or Path(__file__).parents[3] / "shared" / "samples") / "logs"
LOG = b"""step 1
node-1:1:2 [0] NCCL INFO NCCL version 2.27.3+cuda12.8
[rank3]: Traceback (most recent call last):
[rank5]: Traceback (most recent call last):
[rank3]:   File "train.py", line 3, in <module>
[rank5]:   File "train.py", line 3, in <module>
[rank3]: mymodule.BadBatch: shapes differ
step 2
[rank5]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited
Root Cause (first observed failure):
[0]:
  time      : 2026-08-10_03:05:11
  host      : node-1
  rank      : 7 (local_rank: 7)
  exitcode  : -6 (pid: 2608408)
srun: error: node-44: task 3: Exited with exit code 1
the end"""


def kinds(digest: LogDigest) -> list[tuple[int, str, str]]:
    return [(found.line, found.sign.id, found.name) for found in digest.findings]


def test_what_is_found() -> None:
    digest = digest_of([LOG])
    assert kinds(digest) == [
        (3, "traceback", "BadBatch"),
        (4, "dist-backend", ""),
        (10, "torchrun", ""),
        (16, "task-ended", ""),
    ]
    first = digest.findings[0]
    assert (first.text, first.ranks) == ("[rank3]: mymodule.BadBatch: shapes differ", (3,))
    assert digest.nccl_version == "2.27.3"
    assert (digest.lines, digest.size_bytes, digest.last_text) == (17, len(LOG), "the end")
    root = digest.root_causes[0]
    assert (root.rank, root.exit_code, root.host, root.at) == (7, -6, "node-1", "2026-08-10_03:05:11")


@pytest.mark.parametrize("seed", range(20))
def test_where_it_is_cut_changes_nothing(seed: int) -> None:
    chance = random.Random(seed)
    cuts = sorted(chance.sample(range(len(LOG)), chance.randint(1, 60)))
    chunks = [LOG[start:end] for start, end in zip([0, *cuts], [*cuts, len(LOG)], strict=True)]
    assert digest_of(chunks) == digest_of([LOG])


def test_a_long_ordinary_stretch_before_an_error_is_counted_not_read() -> None:
    body = b"step 12 loss 1.8\n" * 100_000
    digest = digest_of([body, b"OSError: [Errno 28] No space left on device\n", body])
    assert [(found.line, found.sign.id) for found in digest.findings] == [(100_001, "no-space")]
    assert digest.lines == 200_001


def test_a_line_without_an_end_stays_bounded_and_what_follows_counts() -> None:
    digest = digest_of([b"x" * (10 * LONGEST), b"y" * CHUNK, b"\nDisk quota exceeded\n"])
    assert kinds(digest) == [(2, "quota", "")]
    assert digest.lines == 2


def test_memory_is_bounded_whatever_comes() -> None:
    def hostile() -> Iterator[bytes]:
        for number in range(200):
            yield b"".join(b"[rank%d]: Bad%dError: x\n" % (number * 500 + at, number * 500 + at) for at in range(500))
            yield b"Traceback (most recent call last):" * 2000

    tracemalloc.start()
    digest = digest_of(hostile())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(digest.findings) <= KINDS
    assert peak < 40 * 2**20


def test_positions_of_ranks() -> None:
    head = b"[rank2]:[E810 03:04:10.9 ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank 2]"
    digest = digest_of(
        [
            head + b"  failure detected by watchdog at work sequence id: 78 PG status: last enqueued work: 79, "
            b"last completed work: 77\n",
            head.replace(b"2]", b"4]").replace(b"rank2", b"rank4")
            + b" Received a dump signal due to a collective timeout from this local rank and we will try. "
            b"Last enqueued NCCL work: 77, last completed NCCL work: 77.\n",
        ]
    )
    assert digest.positions == (
        RankPosition(2, "0", 79, 77, timed_out=True, seq=78),
        RankPosition(4, "0", 77, 77),
    )


def test_an_empty_log() -> None:
    assert LogReader().close() == LogDigest()
