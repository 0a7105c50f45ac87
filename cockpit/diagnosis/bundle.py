"""The evidence of one job in one tar.gz: what was gathered, twice, a report to read, no secrets."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

from cockpit.config import ConfigError
from cockpit.diagnosis.diagnose import Diagnosis, diagnose
from cockpit.diagnosis.gathered import Gathered, gathered_from, gathered_json
from cockpit.diagnosis.redact import redacted, redacted_record
from cockpit.diagnosis.report import diagnosis_json, diagnosis_lines
from cockpit.export import open_private_binary, private_dir

EVIDENCE = "evidence.json"
MAX_BYTES = 256 * 2**20
_README = """What lies here
- report.md: the verdict and what speaks for it, to read
- diagnosis.json: the same for programs
- evidence.json: all that was gathered; `cockpit diagnose --from` reads it and says the same
- slurm/: Slurm's own record of the job and its steps
- logs/: the ends of the job's files
- nodes/: what each node told, one JSON a line
- earlier.json: the same evidence as gathered some seconds before, to compare
Passwords, tokens and keys were made unreadable. Read it yourself before you send it to somebody.
"""


def write_bundle(path: Path, looks: Sequence[Gathered], *, aws: bool = False) -> Diagnosis:
    """Write all looks, oldest first, to a new private file; returns the diagnosis of the last. Raises OSError."""
    told = [redacted_record(gathered_json(each), aws=aws) for each in looks]
    # What is read back is what was written: so both say the same.
    diagnosis = diagnose(gathered_from(told[-1]))
    private_dir(path.parent) if not path.parent.exists() else None
    root = path.name.removesuffix(".tar.gz")
    with open_private_binary(path) as file, tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as tar:
        for name, data in _files(told, diagnosis):
            info = tarfile.TarInfo(f"{root}/{name}")
            info.size, info.mode, info.mtime = len(data), 0o600, int(time.time())
            tar.addfile(info, io.BytesIO(data))
    return diagnosis


def _files(told: Sequence[dict[str, object]], diagnosis: Diagnosis) -> list[tuple[str, bytes]]:
    last = gathered_from(told[-1])
    files = [
        ("README", _README.encode()),
        ("report.md", _report(diagnosis).encode()),
        ("diagnosis.json", _json(diagnosis_json(diagnosis))),
        (EVIDENCE, _json(told[-1])),
        ("slurm/job.txt", last.job_text),
        ("slurm/steps.txt", last.step_text),
    ]
    files += [("earlier.json", _json(each)) for each in told[:-1][-1:]]
    files += [(f"logs/{number}-{_safe(log.path)}", log.data) for number, log in enumerate(last.logs)]
    files += [(f"nodes/{_safe(node.name)}.jsonl", b"\n".join(node.lines) + b"\n") for node in last.nodes]
    return files


def _report(diagnosis: Diagnosis) -> str:
    verdict = diagnosis.verdict
    body = "\n".join(diagnosis_lines(diagnosis)).replace("```", "'''")
    return redacted(f"# Job {diagnosis.evidence.job.label}: {verdict.sentence}\n\n```text\n{body}\n```\n")


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _safe(name: str) -> str:
    last = name.rpartition("/")[2]
    return "".join(char if char.isalnum() or char in "._-" else "_" for char in last)[:80].lstrip(".") or "file"


def read_bundle(path: Path) -> Gathered:
    """What a bundle holds; nothing is unpacked to the disk. Raises ConfigError for what is none."""
    try:
        with tarfile.open(path, "r:gz") as tar:
            for member in tar:
                if member.isfile() and member.name.rpartition("/")[2] == EVIDENCE:
                    return _read(tar, member)
    except (OSError, tarfile.TarError, ValueError, EOFError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read as a bundle: {error}") from error
    raise ConfigError(f"{path}: is no bundle: it holds no {EVIDENCE}")


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Gathered:
    if member.size > MAX_BYTES:
        raise ValueError(f"its evidence is bigger than {MAX_BYTES >> 20} MiB")
    file = tar.extractfile(member)
    return gathered_from(json.loads(file.read(MAX_BYTES) if file is not None else b""))
