"""`scontrol -d show job N` and `scontrol -d show node N`, in the form with many lines.

Only that form can be read: there each free text has a line of its own. What a text holds itself, newlines
included, is still not marked in any way, so a line that does not begin like one of Slurm's belongs to the
value before it, and so does one that repeats, behind the first free text, a key that Slurm prints before it:
no comment can imitate a job's state. A job's name ends where Slurm's own second line begins; only a name that
imitates nearly the whole record still deceives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo

from cockpit.formats.errors import FormatError
from cockpit.formats.gres import gpus_of, parse_gres
from cockpit.formats.hostlist import expand
from cockpit.formats.node_state import parse_state
from cockpit.formats.times import instant
from cockpit.formats.words import NO_TEXT, digits, word
from cockpit.models import NodeState
from cockpit.text import printable

_LINE = re.compile(r"   (?:  )?([A-Z][A-Za-z_/:0-9]*)=")
_NEXT_KEY = re.compile(r" +(?=[A-Z][A-Za-z_/:]*=)")
_FIRST_JOB_LINE = re.compile(r"JobId=[0-9]+ ")
# Their values run to the end of the line, whatever is in them.
_FREE_KEYS = """
    Command SubmitLine WorkDir Comment AdminComment SystemComment StdErr StdIn StdOut Extra OS Reason MailUser
"""
_FREE_TEXT = frozenset(_FREE_KEYS.split())
_SOMEONES = _FREE_TEXT - {"OS"}  # these a person wrote; what a kernel calls itself imitates nothing
_SECOND_JOB_LINE = "   UserId="
_BEFORE_SECOND = ("   HetJobIdSet=", "   SLUID=")  # the last first; SLUID since Slurm 25.11
_STAMP = re.compile(r"[ \t]*\[([^\[\]@\n]*)@([^\[\]\n]*)\]")

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class JobDetail:
    """One job as scontrol tells it: `pairs` holds every key and value in order, for reading.

    `gpu_indices` maps each node to the GPUs the job holds there (the order of gres.conf); paths are empty
    when the job has none.
    """

    job_id: int
    pairs: Pairs
    std_out: str = ""
    std_err: str = ""
    work_dir: str = ""
    command: str = ""
    gpus: int | None = None
    gpu_indices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def get(self, key: str) -> str:
        """The value behind a key, "" when there is none."""
        return _get(self.pairs, key)


@dataclass(frozen=True, slots=True)
class NodeDetail:
    """One node as scontrol tells it; the reason's stamp is in `reason_by` and `reason_at`, not in it."""

    name: str
    state: NodeState
    pairs: Pairs
    reason: str = ""
    reason_by: str = ""
    reason_at: float | None = None
    comment: str = ""
    extra: str = ""

    def get(self, key: str) -> str:
        """The value behind a key, "" when there is none."""
        return _get(self.pairs, key)


def parse_job_details(raw: bytes) -> tuple[JobDetail, ...]:
    """Every record of `scontrol -d show job`: one, or one for each part of an array or het job."""
    return tuple(_job(lines) for lines in _records(raw, "JobId="))


def parse_job_detail(raw: bytes, job_id: int | None = None) -> JobDetail:
    """The record of that job, or else the first; raises FormatError when there is none."""
    details = parse_job_details(raw)
    if not details:
        raise FormatError("reading scontrol's answer", "it holds no job", raw)
    return next((detail for detail in details if detail.job_id == job_id), details[0])


def parse_node_details(raw: bytes, tz: tzinfo | None = None) -> tuple[NodeDetail, ...]:
    """Every record of `scontrol -d show node`; times in zone `tz` unless in epoch seconds."""
    return tuple(_node(lines, tz) for lines in _records(raw, "NodeName="))


def parse_node_detail(raw: bytes, tz: tzinfo | None = None) -> NodeDetail:
    """The first record; raises FormatError when there is none."""
    details = parse_node_details(raw, tz)
    if not details:
        raise FormatError("reading scontrol's answer", "it holds no node", raw)
    return details[0]


def parse_partition_pairs(raw: bytes) -> Pairs:
    """The first record of `scontrol show partition`; raises FormatError when there is none."""
    for lines in _records(raw, "PartitionName="):
        return _shown(_pairs(lines))
    raise FormatError("reading scontrol's answer", "it holds no queue", raw)


def _records(raw: bytes, first_key: str) -> Iterator[list[str]]:
    """The lines of each record; one begins with `first_key` at the start, or after an empty line."""
    record: list[str] = []
    empty_before = True
    # Not splitlines(): it would also split at what a job name may hold, such as a form feed.
    for line in raw.decode("utf-8", "replace").split("\n"):
        if line.startswith(first_key) and empty_before:
            if record:
                yield record
            record = [line]
        elif record:
            record.append(line)
        empty_before = not line.strip()
    if record:
        yield record


def _pairs(lines: list[str]) -> list[tuple[str, str]]:
    """Keys and raw values in order; a value may hold newlines."""
    body = _body(lines)
    pairs = _split_first("\n".join(lines[:body]))
    settled: frozenset[str] = frozenset()
    for line in lines[body:]:
        key = _key(line)
        if key in _SOMEONES and not settled:
            settled = frozenset(name for name, _ in pairs)
        found = [(key, line.partition("=")[2])] if key in _FREE_TEXT else _split_line(line) if key else []
        if found and settled.isdisjoint(name for name, _ in found):
            pairs += found
        else:
            pairs[-1:] = [(name, f"{value}\n{line}") for name, value in pairs[-1:]]
    return [(key, value.rstrip()) for key, value in pairs]


def _body(lines: list[str]) -> int:
    """Where the lines after the first value begin: behind those that belong to a job's name."""
    starts = [at for at, line in enumerate(lines) if at and line.startswith(_SECOND_JOB_LINE)]
    if not starts or not _FIRST_JOB_LINE.match(lines[0]):
        return 1
    # Later ones stand in a comment, unless no free text was seen yet: then the name imitated the line.
    free = (at for at, line in enumerate(lines) if at > starts[0] and _key(line) in _SOMEONES)
    first_free = next(free, len(lines))
    body = max(at for at in starts if at < first_free)
    for start in _BEFORE_SECOND:
        if body > 1 and lines[body - 1].startswith(start):
            body -= 1
    return body


def _key(line: str) -> str:
    found = _LINE.match(line)
    return found[1] if found else ""


def _split_first(line: str) -> list[tuple[str, str]]:
    """The first line; a job's name is its last value and may hold anything."""
    if not _FIRST_JOB_LINE.match(line):
        return _split_line(line)
    head, name_key, name = line.partition(" JobName=")
    return _split_line(head) + ([("JobName", name)] if name_key else [])


def _split_line(line: str) -> list[tuple[str, str]]:
    parts = (part.partition("=") for part in _NEXT_KEY.split(line.strip()))
    return [(key, value) for key, equals, value in parts if equals]


def _job(lines: list[str]) -> JobDetail:
    pairs = _pairs(lines)
    values = dict(pairs)
    job_id = values.get("JobId", "")
    return JobDetail(
        job_id=digits(job_id) or 0,
        pairs=_shown(pairs),
        std_out=_path(values.get("StdOut", "")),
        std_err=_path(values.get("StdErr", "")),
        work_dir=_path(values.get("WorkDir", "")),
        command=_path(values.get("Command", "")),
        gpus=gpus_of(parse_gres(values.get("JOB_GRES", ""))).count,
        gpu_indices=_gpu_indices(pairs),
    )


def _gpu_indices(pairs: list[tuple[str, str]]) -> dict[str, tuple[int, ...]]:
    """From lines such as `Nodes=a[1-2] CPU_IDs=0-7 Mem=8000 GRES=gpu:h100:4(IDX:0-3)`, one a node group."""
    found: dict[str, tuple[int, ...]] = {}
    names: list[str] = []
    for key, value in pairs:
        if key == "Nodes":
            names = _expand(value)
        elif key == "GRES":
            indices = gpus_of(parse_gres(value)).indices
            if indices:
                found |= dict.fromkeys(names, indices)
    return found


def _expand(text: str) -> list[str]:
    try:
        return expand(text)
    except FormatError:
        return []  # the rest of the record is still worth showing


def _node(lines: list[str], tz: tzinfo | None) -> NodeDetail:
    pairs = _pairs(lines)
    values = dict(pairs)
    reason, by, at = _cut_stamp(values.get("Reason", ""))
    return NodeDetail(
        name=printable(values.get("NodeName", "")),
        state=parse_state(values.get("State", "")),
        pairs=_shown(pairs),
        reason=_word(reason),
        reason_by=_word(by),
        reason_at=instant(at, tz),
        comment=_word(values.get("Comment", "")),
        extra=_word(values.get("Extra", "")),
    )


def _cut_stamp(reason: str) -> tuple[str, str, str]:
    """`text [user@time]` as text, user, time; of a reason with many lines the stamp follows the first."""
    stamps = list(_STAMP.finditer(reason))
    if not stamps:
        return reason, "", ""
    stamp = stamps[-1]
    return reason[: stamp.start()] + reason[stamp.end() :], stamp[1], stamp[2]


def _get(pairs: Pairs, key: str) -> str:
    return next((value for name, value in reversed(pairs) if name == key), "")


def _shown(pairs: list[tuple[str, str]]) -> Pairs:
    return tuple((printable(key), printable(value)) for key, value in pairs)


def _path(text: str) -> str:
    return word(text, NO_TEXT)


def _word(text: str) -> str:
    return word(text.strip(), NO_TEXT)
