"""The form of an NCCL test: few fields, each with its usual value, over the plan that they give. No Textual."""

from __future__ import annotations

from typing import cast

from actions.nccl_bench import Bench, NcclOptions, idle_words
from actions.spec import Option, Options, Plan
from cockpit.formats.hostlist import brief
from cockpit.words import plural
from screens.question import Question

_NODES = 60


def nccl_question(bench: Bench, queue: str = "") -> Question:
    """What the dialog asks; nothing typed means the usual."""

    def make(options: Options) -> Plan:
        return bench.plan(cast("NcclOptions", options))

    marked = f"{plural(len(bench.default), 'marked node')}: {brief(bench.default, _NODES)}" if bench.default else ""
    usual = marked or f"{idle_words(bench.cluster, queue)}; or a hostlist"
    size = () if bench.sweep else (Option("size", "word", "8G, the largest; or smallest:largest, such as 1M:8G"),)
    fields = (
        Option("test", "word", "all_reduce; or all_gather, reduce_scatter, alltoall, sendrecv, ..."),
        *size,
        Option("nodes", "word", usual),
        Option("program", "word", "what is found on the nodes; or a binary's full path, or a container"),
        Option("mpi", "word", "what Slurm has; or a type of srun --mpi=list"),
        Option("ring", "flag", "with NCCL_ALGO=Ring: shows a network loss that two nodes by default hide"),
    )
    note = "enter in a field plans anew"
    title = "find the bad node: NCCL sweep" if bench.sweep else "NCCL test"
    return Question(title, make, NcclOptions(queue=queue), fields, note=note)
