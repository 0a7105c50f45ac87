"""Secrets made unreadable in what leaves the machine: passwords, tokens, keys; ids of AWS when asked for."""

from __future__ import annotations

import json
import re
from typing import Any

from cockpit.formats.sweep import unpacked
from cockpit.probe.agent.tails import packed

MASK = "[redacted]"
# A value ends at what ends it in a log, in a shell and in JSON, so that JSON stays JSON.
_VALUE = r"[^\s\"'\\,;&}\]]+"
_NAME = (
    r"(?i:[A-Za-z0-9_.-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|auth(?:orization)?"
    r"|credential|private[_-]?key|session[_-]?key|webhook)[A-Za-z0-9_.-]*)"
)
_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL), MASK),
    (re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}\b"), MASK),
    (re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,})"), MASK),
    (re.compile(r"\b(?:xox[abprs]-[\w-]{10,}|sk-[\w-]{20,}|wandb_v1_\w{20,}|npm_\w{30,}|pypi-[\w-]{40,})"), MASK),
    (re.compile(r"\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"), MASK),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{12,}"), rf"\1 {MASK}"),
    (re.compile(r"(\w+://[^\s/:@\"']*:)[^\s/@\"']+@"), rf"\1{MASK}@"),
    # `token=x`, `"token": "x"`, `--password x`; not "tokens/s" or "token 12".
    (re.compile(rf"({_NAME}[\"']?\s*[=:]\s*(?:\\?[\"'])?)(?!\[redacted){_VALUE}"), rf"\1{MASK}"),
    (re.compile(rf"(--?{_NAME}\s+)(?!-){_VALUE}"), rf"\1{MASK}"),
)
_NUMBERS_ONLY = re.compile(r"(?i)^(?:[\w.-]*tokens?(?:_per_\w+|/s)?)[\"']?\s*[=:]\s*[\d.,]+$")
_AWS = re.compile(
    r"\b(?:i|vpc|subnet|sg|eni|vol|snap|ami|fs|lt|rtb|acl|igw|nat|cr|eipalloc)-[0-9a-f]{8,17}\b"
    r"|\barn:aws[\w-]*:[^\s\"']+|\b\d{12}\b(?=\.dkr\.ecr)"
)


def redacted(text: str, *, aws: bool = False) -> str:
    """The text without secrets."""
    for pattern, stand_in in _SECRETS:
        text = pattern.sub(lambda found, stand_in=stand_in: _replaced(found, stand_in), text)  # type: ignore[misc]
    return _AWS.sub(MASK, text) if aws else text


def _replaced(found: re.Match[str], stand_in: str) -> str:
    # "tokens: 412,334" is what a training loop counts.
    return found[0] if _NUMBERS_ONLY.match(found[0]) else found.expand(stand_in)


def redacted_record(value: Any, *, aws: bool = False) -> Any:
    """Every string of a JSON value, and the files that are packed into a node's lines."""
    if isinstance(value, str):
        if value.startswith('{"k":"t"'):
            return _tail_line(value, aws=aws)
        return redacted(value, aws=aws)
    if isinstance(value, dict):
        return {key: each if key == "z" else redacted_record(each, aws=aws) for key, each in value.items()}
    return [redacted_record(each, aws=aws) for each in value] if isinstance(value, list) else value


def _tail_line(line: str, *, aws: bool) -> str:
    """A line that holds the end of a file: unpacked, cleaned, packed again."""
    try:
        told = json.loads(line)
        inner = told["is"]
        text = unpacked(inner["z"]).decode("utf-8", "replace")
        inner["z"] = packed(redacted(text, aws=aws).encode())
        return json.dumps(told, separators=(",", ":"))
    except (ValueError, KeyError, TypeError):
        return '{"k":"t","is":{"path":"","why":"not readable, so left out"}}'
