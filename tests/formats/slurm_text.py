"""Slurm output written for tests, in the form the real programs give it."""

from __future__ import annotations

from cockpit.formats.sinfo import NODE_FIELDS
from cockpit.formats.squeue import QUEUE_FIELDS

_JOB = {
    "JobID": "1",
    "ArrayTaskID": "N/A",
    "HetJobID": "N/A",
    "HetJobOffset": "N/A",
    "StateCompact": "R",
    "Partition": "gpu",
    "UserName": "alice",
    "Account": "(null)",
    "QOS": "(null)",
    "NumNodes": "1",
    "NumCPUs": "8",
    "NumTasks": "1",
    "tres-alloc": "cpu=8,mem=8000M,node=1,billing=8",
    "tres-per-node": "gres/gpu:h100:4",
    "tres-per-job": "N/A",
    "tres-per-task": "N/A",
    "SubmitTime": "1795982090",
    "EligibleTime": "1795982090",
    "StartTime": "1795982091",
    "EndTime": "1796111691",
    "TimeLimit": "1-12:00:00",
    "PriorityLong": "4294901759",
    "NodeList": "gpu-st-p5-1",
    "SchedNodes": "(null)",
    "Dependency": "(null)",
    "Reservation": "(null)",
    "RestartCnt": "0",
    "Requeue": "1",
    "BatchHost": "gpu-st-p5-1",
    "Feature": "(null)",
    "Reason": "None",
    "Comment": "(null)",
    "admin_comment": "(null)",
    "system_comment": "(null)",
    "Name": "train-a",
}
_NODE = {
    "NodeList": "gpu-st-p5-1",
    "PartitionName": "gpu",
    "Available": "up",
    "StateComplete": "mixed",
    "Gres": "gpu:h100:8",
    "GresUsed": "gpu:h100:7(IDX:0-6)",
    "CPUsState": "14/178/0/192",
    "CPUsLoad": "0.99",
    "Memory": "2000000",
    "AllocMem": "14000",
    "FreeMem": "21413",
    "Version": "25.05.9",
    "NodeAddr": "10.0.0.1",
    "NodeHost": "ip-10-0-0-1",
    "Features": "static,p5.48xlarge,gpu",
    "Weight": "1",
    "Reservation": "",
    "User": "Unknown",
    "Timestamp": "Unknown",
    "Comment": "(null)",
    "Extra": "(null)",
    "Reason": "none",
}

# What users really call their jobs, and what an attacker would.
HOSTILE = [
    b"a|b",
    b"line1\nline2",
    b"unit\x1fseparator",
    b"record\x1eseparator",
    b"record\x1e\nseparator",
    b"\x1e\n77\x1f77\x1fN/A\x1fR",
    b"[/]",
    b"[@click=app.quit]x[/]",
    b"\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "訓練ジョブ".encode(),
    "🚀 launch 👩‍🔬".encode(),
    "\u202egnp.exe\u202c".encode(),
    "é é".encode(),
    b"x" * 200,
    b"\xff\xfe latin \xe9",
    b"tab\tand\rreturn\x0b\x0c",
    b"(null)",
    b"",
    b" ",
    b"%j %i {x} $(reboot) `id`",
]


def queue(*records: bytes, mark: str = "") -> bytes:
    """Output of squeue with these records, each ended by the separator and the mark."""
    return b"".join(record + f"\x1e{mark}\n".encode() for record in records)


def job(**values: str | bytes) -> bytes:
    """One record; keys are the names of columns, with `_` for `-`; ArrayJobID follows JobID."""
    named = {_column(key): value for key, value in values.items()}
    fields: dict[str, str | bytes] = {**_JOB, **named}
    fields.setdefault("ArrayJobID", fields["JobID"])
    assert set(fields) == set(QUEUE_FIELDS), set(fields) ^ set(QUEUE_FIELDS)
    return b"\x1f".join(_bytes(fields[name]) for name in QUEUE_FIELDS)


def node(**values: str | bytes) -> bytes:
    """One row of sinfo; keys are sinfo's names."""
    fields: dict[str, str | bytes] = {**_NODE, **values}
    assert set(fields) == set(NODE_FIELDS), set(fields) ^ set(NODE_FIELDS)
    return b"\x1f".join(_bytes(fields[name]) for name in NODE_FIELDS)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _column(key: str) -> str:
    return key.replace("_", "-") if key.startswith("tres_") else key
