"""The bundle: it says offline what was said live, holds no secrets, and a bad one is refused."""

from __future__ import annotations

import io
import json
import stat
import tarfile
from pathlib import Path

import pytest

from cockpit.cli import main
from cockpit.config import ConfigError
from cockpit.diagnosis.bundle import read_bundle, write_bundle
from cockpit.diagnosis.diagnose import diagnose
from cockpit.diagnosis.redact import MASK, redacted
from tests.unit.diagnosis_kit import GONE, gathered, job_text, steps, sweep_lines

KEY = "AKIA" + "ABCDEFGHIJKLMNOP"
SECRETS = [
    (f"aws_access_key_id = {KEY}", KEY),
    ("export WANDB_API_KEY=0123456789abcdef", "0123456789abcdef"),
    ('{"password": "hunter2x", "a": 1}', "hunter2x"),
    ("Authorization: Bearer abcdefghijklmnop1234", "abcdefghijklmnop1234"),
    ("git clone https://bob:s3cretpw@github.com/x", "s3cretpw"),
    ("hf_" + "a" * 34, "a" * 34),
    ("ghp_" + "b" * 36, "b" * 36),
    ("train.py --hf-token abc123def456", "abc123def456"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
]
HARMLESS = [
    "step 12 tokens/s 412,334 loss 1.8",
    "tokens: 412334",
    "token 12 of 40",
    "tokens_per_second=412334.5",
    "the secretary of state",
    "SeqNum=78, OpType=BROADCAST",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_secrets_become_unreadable(text: str, secret: str) -> None:
    assert secret not in redacted(text)
    assert MASK in redacted(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_ids_of_aws_only_when_asked_for() -> None:
    text = "i-0123456789abcdef0 arn:aws:iam::123456789012:role/x"
    assert redacted(text) == text
    assert "0123456789abcdef0" not in redacted(text, aws=True)
    assert "123456789012" not in redacted(text, aws=True)


def test_json_stays_json() -> None:
    for text, _ in SECRETS[:9]:
        line = json.dumps({"k": "t", "said": text, "next": 1})
        assert json.loads(redacted(line))["next"] == 1


def test_offline_it_says_the_same_and_holds_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = steps(last=f"connecting with password=hunter2x and {KEY}")
    live = gathered(ranks={5: GONE}, log=log, job=job_text(Comment="api_key=zzz999"))
    path = tmp_path / "job-77.tar.gz"
    write_bundle(path, [live, live])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert main(["diagnose", "--from", str(path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == json.loads(json.dumps(told["verdict"]))
    assert told["verdict"]["sentence"] == diagnose(live).verdict.sentence
    assert (told["verdict"]["ranks"], told["verdict"]["nodes"]) == ([5], ["p5-2"])
    content = files(path)
    names = {name.partition("/")[2] for name in content}
    assert {"report.md", "README", "diagnosis.json", "evidence.json", "earlier.json", "slurm/job.txt"} <= names
    assert "nodes/p5-1.jsonl" in names
    whole = b"".join(content.values())
    for secret in (b"hunter2x", KEY.encode(), b"zzz999"):
        assert secret not in whole
    assert f"# Job 77: {told['verdict']['sentence']}".encode() in content["job-77/report.md"]


def test_secrets_in_the_files_that_nodes_sent(tmp_path: Path) -> None:
    from cockpit.probe.agent.tails import packed

    tail = {"k": "t", "t": 1, "pid": 0, "is": {"path": "/x", "now": 9, "mtime": 1, "z": packed(b"token=abcdef99\n")}}
    live = gathered()
    node = live.nodes[0]
    from dataclasses import replace

    line = json.dumps(tail, separators=(",", ":")).encode()
    live = live.with_node(replace(node, lines=(*node.lines[:2], line, *node.lines[2:])))
    path = tmp_path / "b.tar.gz"
    write_bundle(path, [live])
    found = diagnose(read_bundle(path)).evidence.logs
    assert [log.lines for log in found] == [(f"token={MASK}",)]


def files(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        found = {}
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None
            found[member.name] = file.read()
    return found


def bad(tmp_path: Path, content: bytes, name: str = "x/evidence.json") -> Path:
    path = tmp_path / "bad.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"version": 99}', b'{"version": 1}', b"[" * 100_000, b'{"version":1,"job":[]}']
)
def test_a_bad_bundle_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ConfigError):
        read_bundle(bad(tmp_path, content))
    with pytest.raises(ConfigError, match="no bundle"):
        read_bundle(bad(tmp_path, content, "../../etc/passwd"))


def test_what_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(b"no archive")
    with pytest.raises(ConfigError):
        read_bundle(path)
    with pytest.raises(ConfigError):
        read_bundle(tmp_path / "none.tar.gz")


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(b"mine")
    with pytest.raises(OSError, match="exists"):
        write_bundle(path, [gathered()])
    assert path.read_bytes() == b"mine"
    assert sweep_lines(0, {}, 8)
