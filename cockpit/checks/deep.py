"""NVIDIA's own diagnostics (`dcgmi diag`) on idle nodes, as a Slurm job: planning it, and reading what it says.

Opt-in: it takes the GPUs for itself, from under a minute (level 1) to half an hour and more (level 3).
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cockpit.checks.models import Result, Verdict
from cockpit.formats.hostlist import fold
from cockpit.text import printable

NAME_PREFIX = "cockpit-dcgm-"
LEVELS = (1, 2, 3)
LIMIT_MIN = {1: 10, 2: 30, 3: 120}
TYPICAL = {1: "under a minute", 2: "a few minutes", 3: "half an hour and more"}
_MARK = "#cockpit-dcgm"
_MOST_LINES = 4000
_ROW = re.compile(r"\|\s*([A-Za-z][\w /()-]{1,60}?)\s*\|\s*(Pass|Fail|Warn|Skip)\b[^|]*\|")
_WORDS = {"pass": Verdict.PASS, "fail": Verdict.FAIL, "warn": Verdict.WARN, "skip": Verdict.NA}

# What each node does; the marks let one output file tell of many nodes.
_TASK = f"""n=${{SLURMD_NODENAME:-$(uname -n)}}
command -v dcgmi >/dev/null 2>&1 || {{ echo "{_MARK} $n missing"; exit 0; }}
out=$(timeout -k 10 "$1" dcgmi diag -r "$0" -j 2>&1); rc=$?
printf '%s\\n' "$out" | tr -d '\\000' | sed "s/^/{_MARK} $n | /"
echo "{_MARK} $n rc=$rc"
"""


@dataclass(frozen=True, slots=True)
class DeepRequest:
    """One diagnostic run on idle nodes."""

    nodes: tuple[str, ...]
    level: int = 1
    partition: str = ""
    account: str = ""
    output_dir: str = "."
    name: str = field(default_factory=lambda: NAME_PREFIX + secrets.token_hex(4))

    @property
    def output(self) -> str:
        """The file that Slurm writes, with %j for the job id."""
        return f"{self.output_dir.rstrip('/') or '/'}/{self.name}-%j.out"


def submit_argv(request: DeepRequest) -> tuple[str, ...]:
    """sbatch of the whole run: every node at the same time, alone on its node. Raises ValueError for a wrong level."""
    if request.level not in LEVELS:
        raise ValueError(f"dcgmi's levels are {', '.join(map(str, LEVELS))}, not {request.level}")
    limit_min = LIMIT_MIN[request.level]
    count = len(request.nodes)
    wrapped = (
        f"srun --nodes={count} --ntasks={count} --ntasks-per-node=1 --mpi=none "
        f"sh -c {shlex.quote(_TASK)} {request.level} {limit_min * 60 - 30}"
    )
    options = [
        f"--job-name={request.name}",
        f"--nodes={count}",
        f"--nodelist={fold(request.nodes)}",
        "--exclusive",
        "--no-requeue",
        f"--time={limit_min}",
        f"--output={request.output}",
        *([f"--partition={request.partition}"] if request.partition else []),
        *([f"--account={request.account}"] if request.account else []),
    ]
    return ("sbatch", "--parsable", *options, f"--wrap={wrapped}")


def parse_deep(text: str, nodes: Sequence[str]) -> dict[str, Result]:
    """What each node's diagnostics said; a node that said nothing is unknown, never well."""
    said: dict[str, list[str]] = {}
    ends: dict[str, str] = {}
    for line in text.splitlines()[: _MOST_LINES * max(1, len(nodes))]:
        found = re.fullmatch(rf"{_MARK} (\S+) (\| (?P<out>.*)|(?P<end>missing|rc=\d+))", line)
        if found is None:
            continue
        if found["end"]:
            ends[found[1]] = found["end"]
        else:
            said.setdefault(found[1], []).append(found["out"] or "")
    return {node: _node(said.get(node, []), ends.get(node, "")) for node in nodes}


def _node(lines: Sequence[str], end: str) -> Result:
    if end == "missing":
        return Result("gpu.dcgm", Verdict.UNKNOWN, "dcgmi is not on the node (package datacenter-gpu-manager)")
    tests = list(_tests("\n".join(lines)))
    evidence = tuple(printable(f"{name}: {word}{f' - {why}' if why else ''}") for name, word, why in tests)
    if not tests:
        raw = tuple(printable(line) for line in lines[:30])
        ended = "" if end else "; it did not end"
        return Result("gpu.dcgm", Verdict.UNKNOWN, f"nothing that can be read{ended}", raw)
    verdicts = [_WORDS.get(word.lower(), Verdict.UNKNOWN) for _, word, _ in tests]
    bad = [name for (name, _, _), verdict in zip(tests, verdicts, strict=True) if verdict is Verdict.FAIL]
    warned = [name for (name, _, _), verdict in zip(tests, verdicts, strict=True) if verdict is Verdict.WARN]
    if bad:
        fact_step = Result("gpu.dcgm", Verdict.FAIL, "").fact.next_step
        says = printable(f"failed: {', '.join(dict.fromkeys(bad))}")
        return Result("gpu.dcgm", Verdict.FAIL, says, evidence[:60], fact_step)
    if warned:
        return Result("gpu.dcgm", Verdict.WARN, printable(f"warned: {', '.join(dict.fromkeys(warned))}"), evidence[:60])
    if not end:
        return Result("gpu.dcgm", Verdict.UNKNOWN, "it did not end", evidence[:60])
    passed = sum(verdict is Verdict.PASS for verdict in verdicts)
    return Result("gpu.dcgm", Verdict.PASS if passed else Verdict.UNKNOWN, f"{passed} tests passed", evidence[:60])


def _tests(text: str) -> Iterator[tuple[str, str, str]]:
    """(test, Pass/Fail/Warn/Skip, why) of the JSON in whatever shape, else of the table. The schema is not promised."""
    start = text.find("{")
    if start >= 0:
        try:
            yield from _of_json(json.loads(text[start : text.rfind("}") + 1]))
            return
        except (ValueError, RecursionError):
            pass
    for found in _ROW.finditer(text):
        yield found[1].strip(), found[2], ""


def _of_json(raw: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """Every object with a status, under the name of the nearest test around it."""
    if depth > 12:
        return
    if isinstance(raw, dict):
        name = str(raw.get("name") or raw.get("category") or name)[:80]
        status = raw.get("status", raw.get("result"))
        if isinstance(status, str) and status.lower() in _WORDS:
            yield name or "test", status, _why(raw)
        for value in raw.values():
            if isinstance(value, (dict, list)):
                yield from _of_json(value, name, depth + 1)
    elif isinstance(raw, list):
        for value in raw[:500]:
            yield from _of_json(value, name, depth + 1)


def _why(raw: dict[str, Any]) -> str:
    said = raw.get("warnings") or raw.get("warning") or raw.get("info") or ""
    return json.dumps(said)[:200] if isinstance(said, (list, dict)) else str(said)[:200]
